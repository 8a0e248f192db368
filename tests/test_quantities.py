"""Quantities of solutions: right, and within their stated errors."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb

x, y = pb.coordinates("x y")
t = pb.coordinates("t")
u, v = pb.field("u", x, y), pb.field("v", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
TORSION = 0.140577015081196  # of the unit square, by its series
TEN = 10.0  # times its error may a quantity be off


def within(quantity, exact):
    """Tell whether a quantity is as near to the exact value as it says, and says something."""
    assert np.isfinite(quantity.error)
    assert quantity.error < 1e-3 * max(1.0, abs(exact))
    return abs(quantity.value - exact) <= TEN * quantity.error


@pytest.fixture(scope="module")
def torsion():
    return pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 2), SQUARE, [pb.Dirichlet(u, 0)]))


@pytest.fixture(scope="module")
def disk():
    """A solution with two materials, inside and outside a circle of radius 1/2: u = (c − r²)/(4k)."""
    domain, inner = pb.Disk((x, y), (0, 0), 1), pb.Disk((x, y), (0, 0), 0.5)
    k = pb.per_region({inner: 5}, 1)
    return pb.solve(pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 1), domain, [pb.Dirichlet(u, 0)]), tol=1e-6), inner, k


@pytest.fixture(scope="module", params=["space-time", "lines"])
def cooling(request):
    T, rod = pb.field("T", x, t), pb.Interval((x, 0, 1))
    conditions = [pb.Dirichlet(T, 0), pb.Initial(T, sp.sin(sp.pi * x))]
    problem = pb.Problem(sp.Eq(T.diff(t), pb.laplacian(T)), rod * pb.TimeInterval(t, 0, 1), conditions)
    return pb.solve(problem, time=request.param), T, rod


def test_integrals_and_flows_of_the_torsion_problem(torsion):
    assert within(torsion.integral(2 * u), TORSION)
    assert within(torsion.integral(pb.grad(u).dot(pb.grad(u))), TORSION)
    assert within(torsion.mean(u, over=pb.Rectangle((x, 0, 0.5), (y, 0, 1))), TORSION / 2)
    assert within(torsion.flow(SQUARE.boundary), 2.0)
    assert within(torsion.flow(SQUARE.left), 0.5)
    assert within(torsion.integral(-pb.laplacian(u)), 2.0)


def test_a_quantity_is_a_number_with_an_error(torsion):
    found = torsion.maximum(u)
    assert float(found) == found.value
    assert found.place == pytest.approx([0.5, 0.5], abs=1e-3)
    assert "±" in str(found)
    assert "at (" in repr(found)


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: 2 * a - b + 1,
        lambda a, b: np.float64(3) - a / 4,
        lambda a, b: a * b,
        lambda a, b: 1 / a + b / a,
        lambda a, b: a**3 + abs(-b) ** 0.5,
        lambda a, b: b**-2,
    ],
)
def test_errors_of_formulas_bound_whatever_numbers_within_errors_give(formula):
    rng = np.random.default_rng(95_001)
    one, two = pb.Quantity(1.7, 0.1, np.zeros(2)), pb.Quantity(0.8, 0.05, note="rough")
    found = formula(one, two)
    drawn = [[own.value + own.error * k for k in (-1, 0, 1, *rng.uniform(-1, 1, 20))] for own in (one, two)]
    values = np.array([formula(a, b) for a in drawn[0] for b in drawn[1]])
    assert found.value == pytest.approx(formula(one.value, two.value))
    assert np.abs(values - found.value).max() <= found.error * (1 + 1e-12)
    assert found.error <= 3 * np.abs(values - found.value).max()
    assert found.place is None


def test_a_quotient_by_what_may_be_zero_has_no_bound():
    small = pb.Quantity(0.1, 0.2)
    assert (1 / small).error == (small**0.5).error == np.inf
    assert (2 * pb.Quantity(1.0, np.nan, note="unknown")).note == "unknown"
    with pytest.raises(TypeError):
        small + "1"


def test_values_of_expressions_at_points(torsion):
    inside, outside = [0.25, 0.5], [1.5, 0.5]
    slope = torsion.value(u.diff(x) * y + 1)
    assert slope([inside, outside]) == pytest.approx(
        [1 + 0.5 * torsion.derivative(u, x)([inside])[0], np.nan], nan_ok=True
    )
    assert slope(x=0.25, y=0.5).shape == ()
    assert 0 < slope.error([inside])[0] < 1e-4
    assert torsion.value(pb.normal_derivative(u))([[0.0, 0.5]]) == pytest.approx(
        -torsion.derivative(u, x)([[0.0, 0.5]])
    )
    with pytest.raises(pb.PiblsError, match="outward normals"):
        torsion.value(pb.normal_derivative(u))([[0.5, 0.5]])


def test_whatever_takes_points_takes_one_argument_per_coordinate(torsion):
    value, residual = torsion.value(u**2), torsion.residual(0)
    for function in (torsion, value, value.error, torsion.error_field, torsion.derivative(u, x), residual):
        assert function(0.2, [0.1, 0.3]) == pytest.approx(function([[0.2, 0.1], [0.2, 0.3]]), abs=0)
        for given in [(0.5,), (0.1, 0.2, 0.3)]:
            with pytest.raises(pb.PiblsError, match=r"one argument for each coordinate \('x', 'y'\)"):
                function(*given)


def test_materials_are_seen_from_one_side(disk):
    solution, inner, k = disk
    domain = solution.problem.domain
    assert within(solution.flow(domain.boundary), np.pi)
    assert within(solution.flow(inner.boundary), np.pi / 4)
    assert within(solution.integral(-pb.outside(pb.flux(u)), over=inner.boundary), np.pi / 4)
    # The slope jumps: −r/2k is −1/20 inside and −1/4 outside.
    n_x, n_y = pb.normal(x, y)
    slope = n_x * u.diff(x) + n_y * u.diff(y)
    assert within(solution.mean(pb.inside(slope), over=inner.boundary), -0.05)
    assert within(solution.mean(pb.outside(slope), over=inner.boundary), -0.25)
    assert within(solution.integral(k), np.pi * (5 / 4 + 3 / 4))
    assert within(solution.mean(u, over=inner), 3 / 16 + 1 / 160)
    assert within(solution.maximum(-u.diff(x)), 0.5)


@pytest.mark.parametrize("shape", [True, False])
def test_flux_through_a_contact_resistance(shape):
    w, rod, left = pb.field("w", x), pb.Interval((x, 0, 1)), pb.Interval((x, 0, 0.5))
    contact = pb.Interface(w, on=left if shape else x < sp.Rational(1, 2), resistance=1)
    ends = [pb.Dirichlet(w, 0, on=rod.left), pb.Dirichlet(w, 1, on=rod.right)]
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(x, 2), 0), rod, [*ends, contact]))
    for side, value in ((pb.inside, 0.25), (pb.outside, 0.75)):
        assert within(solution.integral(side(pb.flux(w)), over=contact), 0.5)
        assert within(solution.integral(side(w), over=contact), value)
    assert within(solution.flow(contact), -0.5)


def test_quantities_at_a_time_and_over_all_times(cooling):
    solution, T, rod = cooling
    cylinder, fall = solution.problem.domain, np.exp(-(np.pi**2) / 10)
    assert within(solution.integral(T, at=0.1), 2 / np.pi * fall)
    assert within(solution.mean(T, over=pb.Interval((x, 0, 0.5)), at=0.1), 2 / np.pi * fall)
    assert within(solution.flow(rod.left, at=0.1), np.pi * fall)
    assert within(solution.flow(cylinder.left), (1 - np.exp(-(np.pi**2))) / np.pi)
    assert within(solution.integral(T), 2 / np.pi**3 * (1 - np.exp(-(np.pi**2))))
    assert within(solution.maximum(T, at=0.1), fall)
    assert within(solution.minimum(T.diff(x)), -np.pi)
    assert solution.value(T.subs(t, 0.1))([[0.5, 0.9]]) == pytest.approx(solution([[0.5, 0.1]]), rel=1e-12)


def test_times_to_cool(cooling):
    solution, T, rod = cooling
    middle = np.log(10) / np.pi**2
    assert within(solution.first_time(T < 0.1, at=[0.5]), middle)
    assert within(solution.first_time(T.subs(x, 0.5) - 0.1), middle)
    assert within(solution.first_time(T < 0.1, over=rod), np.log(20 / np.pi) / np.pi**2)
    never = solution.first_time(T > 2, at=[0.5])
    assert np.isinf(never.value)
    assert "does not happen" in never.note
    with pytest.raises(pb.PiblsError, match="depends on x"):
        solution.first_time(T - 0.1)


def test_events_of_an_oscillator():
    w = pb.field("w", t)
    start = [pb.Initial(w, 0), pb.Initial(w.diff(t), 1)]
    solution = pb.solve(pb.Problem(w.diff(t, 2) + w, pb.TimeInterval(t, 0, 10), start))
    assert within(solution.first_time(w), np.pi)
    assert within(solution.first_time(w > sp.Rational(1, 2)), np.pi / 6)
    assert within(solution.first_time(w.diff(t)), np.pi / 2)
    assert within(solution.integral(w**2), 5 - np.sin(20) / 4)


def test_what_is_infinite_is_said_to_be_so():
    corner = pb.Polygon((x, y), [(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)])
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 1), corner, [pb.Dirichlet(u, 0)]), tol=1e-4)
    found = solution.maximum(pb.grad(u).dot(pb.grad(u)))
    assert np.isinf(found.error)
    assert found.place == pytest.approx([0, 0], abs=1e-6)
    # Towards the corner the slope falls without bound; it is largest in the middle of a side.
    steepest = solution.maximum(u.diff(x))
    assert steepest.error < 1e-3
    assert steepest.place[0] == pytest.approx(-1, abs=1e-6)
    assert within(solution.integral(u), 0.214075802220546)


def test_the_stress_at_a_hole():
    hole = pb.Disk((x, y), (0, 0), 5)
    plate = pb.Rectangle((x, 0, 50), (y, 0, 20)) - hole
    s = pb.stress([u, v], young=1000, poisson=0.3, plane="stress")
    conditions = [*pb.Symmetry([u, v], s, on=plate.left), *pb.Symmetry([u, v], s, on=plate.bottom)]
    conditions += pb.Traction(s, [100, 0], on=plate.right)
    conditions += [*pb.Traction(s, 0, on=plate.top), *pb.Traction(s, 0, on=plate.lift(hole.boundary))]
    solution = pb.solve(pb.Problem([sp.Eq(pb.div(row), 0) for row in s.tolist()], plate, conditions), tol=1e-5)
    found = solution.maximum(pb.von_mises(s))
    assert within(found, 324.8238)
    assert found.place == pytest.approx([0, 5], abs=1e-3)
    assert within(solution.force(plate.left)[0], -2000)


def test_convection_takes_the_conductivity_of_the_equation():
    wall, T = pb.Interval((x, 0, 1)), pb.field("T", x)
    for heat in (sp.Eq(-pb.div(3 * pb.grad(T)), 0), sp.Eq(3 * T.diff(x, 2), 0)):
        hot = pb.Dirichlet(T, 100, on=wall.left)
        solution = pb.solve(pb.Problem(heat, wall, [hot, pb.Convection(T, on=wall.right, h=6, ambient=10)]))
        assert solution([[1.0]])[0] == pytest.approx(40)  # 90 degrees over resistances of 1/3 and 1/6
        assert within(solution.flow(wall.right), 180)
    given = pb.Convection(T, on=wall.right, h=6, ambient=10, conductivity=3)
    assert pb.solve(pb.Problem(sp.Eq(T.diff(x, 2), 0), wall, [hot, given]))([[1.0]])[0] == pytest.approx(40)


def test_a_material_in_a_condition_is_that_inside():
    """The region ends where the domain does; on the line itself its inequality does not hold."""
    wall, brick, T = pb.Interval((x, 0, 0.3)), pb.Interval((x, 0, 0.2)), pb.field("T", x)
    k = pb.per_region({brick: 0.8}, 0.04)
    heat, right = sp.Eq(-pb.div(k * pb.grad(T)), 0), pb.Robin(T, 25, 0.04, -250, on=wall.right)
    for left in (pb.Robin(T, 8, k, 160, on=wall.left), pb.Convection(T, on=wall.left, h=8, ambient=20)):
        solution = pb.solve(pb.Problem(heat, wall, [left, right]))
        assert within(solution.flow(wall.right), 30 / (1 / 8 + 0.2 / 0.8 + 0.1 / 0.04 + 1 / 25))
    # A value that switches on the boundary alone is taken there.
    value = sp.Piecewise((1, x <= 0), (0, True))
    line = pb.solve(pb.Problem(sp.Eq(T.diff(x, 2), 0), wall, [pb.Dirichlet(T, value)]))
    assert line([[0.0], [0.3]]) == pytest.approx([1, 0], abs=1e-9)


def test_curl_and_von_mises():
    z = pb.coordinates("z")
    a, b, c = (pb.field(name, x, y, z) for name in "abc")
    assert len(pb.curl([a, b, c])) == 3
    flow = pb.Problem([pb.curl([u, v]) - 2, pb.div([u, v])], SQUARE, [pb.Dirichlet(u, -y), pb.Dirichlet(v, x)])
    assert within(pb.solve(flow).mean(pb.curl([u, v])), 2)
    strain = pb.stress([u, v], young=1, poisson=sp.Rational(1, 2) - sp.Rational(1, 100))
    thin = pb.stress([u, v], young=1, poisson=0, plane="stress")
    assert pb.von_mises(strain) != pb.von_mises(strain.tolist())
    assert pb.von_mises(thin) == pb.von_mises(thin.tolist())
    with pytest.raises(pb.PiblsError, match="has lost it"):
        pb.von_mises(strain - sp.eye(2))
    with pytest.raises(pb.PiblsError, match="one per space coordinate"):
        pb.curl([u])


def test_without_a_richer_solution_nothing_is_known_of_the_error():
    problem = pb.problems.poisson()
    solution = pb.PIELM(nodes=200, activation="sin").fit(problem, pb.Points.sample(problem, interior=400, boundary=100))
    found = solution.integral(problem.fields[0])
    assert found.value == pytest.approx(4 / np.pi**2, abs=1e-3)
    assert np.isnan(found.error)
    assert "no richer one" in found.note


def test_a_stored_solution_has_the_same_quantities(torsion, tmp_path):
    again = pb.load(torsion.save(tmp_path / "torsion.pibls"))
    field = again.problem.fields[0]
    assert again.integral(2 * field).value == pytest.approx(torsion.integral(2 * u).value, rel=1e-13)
    assert again.integral(2 * field).error == pytest.approx(torsion.integral(2 * u).error, rel=1e-3)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda s: s.integral(pb.normal(x, y)[0] * u), "outward normal"),
        (lambda s: s.integral([u]), "one expression"),
        (lambda s: s.integral(u > 0.1), "one expression"),
        (lambda s: s.integral(pb.inside(u)), "inside and outside"),
        (lambda s: s.integral(v), "asked about v"),
        (lambda s: s.integral(u, over=3), "is taken over a part of the boundary"),
        (lambda s: s.integral(u, at=1), "is a time"),
        (lambda s: s.integral(u, over=pb.Rectangle((y, 0, 1), (x, 0, 1))), "same order"),
        (lambda s: s.integral(u, over=pb.Disk((x, y), (5, 5), 1)), "nothing of"),
        (lambda s: s.first_time(u), "problems in time"),
        (lambda s: s.force(SQUARE.left), "one displacement"),
        (lambda s: s.flow(SQUARE.left, field="w"), "got w"),
        (lambda s: s.value(sp.Symbol("k") * u), "undeclared symbol k"),
    ],
)
def test_what_cannot_be_asked_is_refused(torsion, ask, words):
    with pytest.raises(pb.PiblsError, match=words):
        ask(torsion)


def test_a_solve_goes_on_until_its_goal_is_known(torsion):
    problem, flow = torsion.problem, pb.flow(SQUARE.left)
    for tol in (1e-3, 1e-5):
        found = flow(pb.solve(problem, goal=flow, tol=tol))
        assert found.error <= tol * found.value
        assert within(found, 0.5)
    coarse = pb.solve(problem, goal=pb.mean(u), tol=1e-4)
    assert coarse.status == "converged"
    assert "The quantity is 0.0702" in coarse.diagnostics.message
    assert coarse.network.cells < torsion.network.cells
    own = pb.solve(problem, goal=lambda solution: solution.maximum(u), tol=1e-4)
    assert within(own.maximum(u), 0.1473427065628)


def test_a_goal_without_bound_is_not_met():
    corner = pb.Polygon((x, y), [(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)])
    problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), corner, [pb.Dirichlet(u, 0)])
    solution = pb.solve(problem, goal=pb.minimum(u.diff(x)), tol=1e-2)
    assert solution.status == "stalled"
    assert "without bound" in solution.diagnostics.message
    with pytest.raises(pb.PiblsError, match="must return one Quantity"):
        pb.solve(problem, goal=lambda solution: 3, tol=1e-2)
    with pytest.raises(pb.PiblsError, match="a method or points of your own"):
        pb.solve(problem, goal=pb.mean(u), method=pb.PIELM(nodes=10))


def test_a_point_cloud_has_means_at_most():
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    inner = pb.Disk((x, y), (0, 0), 1).sample(300)
    cloud = pb.PointCloud((x, y), inner, circle, normals=circle)
    solution = pb.solve(pb.Problem(sp.Eq(-pb.laplacian(u), 4), cloud, [pb.Dirichlet(u, 0)]), tol=1e-3)
    assert within(solution.mean(pb.normal_derivative(u), over=cloud.boundary), -2)
    for ask in (lambda: solution.flow(cloud.boundary), lambda: solution.maximum(u), lambda: solution.mean(u)):
        with pytest.raises(pb.PiblsError):
            ask()


def test_values_that_are_no_numbers_are_told(torsion):
    found = torsion.integral(sp.log(u - 2))
    assert np.isnan(found.value)
    assert "not a finite real number" in found.note
    assert np.isinf(torsion.maximum(1 / u).error)


def test_complex_expressions_have_complex_values():
    psi, line = pb.field("psi", x, complex=True), pb.Interval((x, 0, 1))
    wave = sp.exp(sp.I * x)
    solution = pb.solve(pb.Problem(sp.Eq(psi.diff(x, 2) + psi, 0), line, [pb.Dirichlet(psi, wave)]))
    slope = solution.value(psi.diff(x))
    assert slope([[0.5]]) == pytest.approx(1j * np.exp(0.5j), abs=1e-7)
    assert 0 < slope.error([[0.5]])[0] < 1e-6
    assert within(solution.integral(psi * sp.conjugate(psi)), 1)
    assert within(solution.maximum(sp.im(psi)), np.sin(1))
    with pytest.raises(pb.PiblsError, match="takes a real expression"):
        solution.integral(psi)


def test_an_error_that_both_solutions_share_is_stated():
    # The first cells at the ends were halved in time alone: the heat in both solutions is wrong by the same share.
    c, bar = pb.field("c", x, t), pb.Interval((x, 0, 1))
    quenched = pb.solve(
        pb.Problem(
            sp.Eq(c.diff(t), c.diff(x, 2)), bar * pb.TimeInterval(t, 0, 0.1), [pb.Dirichlet(c, 0), pb.Initial(c, 1)]
        ),
        tol=1e-4,
    )
    rates = ((2 * np.arange(2000) + 1) * np.pi) ** 2
    assert within(quenched.mean(c), float((8 / rates**2 * (1 - np.exp(-0.1 * rates)) / 0.1).sum()))
    assert within(quenched.mean(c, at=0.05), float((8 / rates * np.exp(-0.05 * rates)).sum()))
    assert within(quenched.first_time(c - sp.Rational(3, 5), at=[0.5]), 0.0761503516)


def test_the_flux_through_an_edge_sees_where_materials_meet():
    # Copper, foam, plastic and steel across a triangle; in the foam the slope is 16000 times that in copper.
    level, conductivities = 2 * x + y, (400, sp.Rational(1, 40), sp.Rational(1, 5), 16)
    ends = (sp.Rational(1, 100), sp.Rational(2, 100), sp.Rational(21, 1000), sp.Rational(6, 100))
    parts, bounds, start, last = [], [*(level < end for end in ends[:-1]), True], sp.Integer(0), sp.Integer(0)
    for k, end in zip(conductivities, ends, strict=True):
        parts.append(start + 50 * (level - last) / k)
        start, last = start + 50 * (end - last) / k, end
    exact = sp.Piecewise(*zip(parts, bounds, strict=True))
    stack = pb.Polygon((x, y), [(0, 0), (0.03, 0), (0, 0.04)])
    k = sp.Piecewise(*zip(conductivities, bounds, strict=True))
    solution = pb.solve(
        pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), stack, [pb.Dirichlet(u, exact)]), tol=1e-4, progress=False
    )
    lengths = np.diff([0, 0.005, 0.01, 0.0105, 0.03])
    slope = -50 * float(sum(length / float(own) for length, own in zip(lengths, conductivities, strict=True)))
    assert within(solution.integral(pb.normal_derivative(u), over=stack.parts["edge0"]), slope)


def test_a_mean_over_a_curved_place_is_as_good_as_its_size():
    # In one cell around both circles two rules agree on this integral by chance, and not on the area.
    ring = pb.Disk((x, y), (5, 5), 2) - pb.Disk((x, y), (5, sp.Rational(11, 2)), sp.Rational(1, 2))
    exact = (x - 5) ** 2 + (y - 5) ** 2 + 3 * (x - 5)
    found = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 4), ring, [pb.Dirichlet(u, exact)])).mean(u)
    mean = (8 - 3 / 32) / (4 - 1 / 4)
    assert abs(found.value - mean) <= 3 * found.error
    assert found.error < 1e-8


@pytest.mark.parametrize("time", ["lines", "space-time"])
def test_where_two_solutions_cross_errors_stay(time):
    T, rod = pb.field("T", x, t), pb.Interval((x, 0, 1))

    def exact(X):
        modes = [size * np.sin(n * np.pi * X[:, 0]) * np.exp(-((n * np.pi) ** 2) * X[:, 1]) for n, size in parts]
        return np.sum(modes, axis=0)

    parts, start = ((1, 1.0), (3, 0.25)), sp.sin(sp.pi * x) + sp.sin(3 * sp.pi * x) / 4
    whole = rod * pb.TimeInterval(t, 0, 0.3)
    solution = pb.solve(
        pb.Problem(sp.Eq(T.diff(t), T.diff(x, 2)), whole, [pb.Dirichlet(T, 0), pb.Initial(T, start)]),
        tol=1e-2,
        time=time,
    )
    X = np.random.default_rng(0).uniform((0, 0.02), (1, 0.3), (500, 2))
    value = solution.value(T)
    ratios = np.abs(value(X) - exact(X)) / value.error(X)
    assert ratios.max() < 3.0
    cold = solution.first_time(T < 0.5, at=[0.5])
    assert cold.error >= value.error([[0.5, cold.value]])[0] / 5.0
