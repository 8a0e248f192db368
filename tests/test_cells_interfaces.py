"""Coefficients and sources that jump across curves and surfaces: cells are cut there, values and fluxes go on."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import (
    Cell,
    Layout,
    Level,
    Rows,
    Switching,
    TreeDomain,
    TreeSolver,
    contacts,
    contours,
    draw_reference,
    leaves,
    normal_flux,
    refined,
    resolve,
    split_at_planes,
)

R = sp.Rational
x, y, z, t = pb.coordinates("x y z t")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, -1, 1), (y, -1, 1))
CIRCLE = x**2 + y**2 - R(9, 25)
STAR = x**2 + y**2 - R(1, 4) - (x**5 - 10 * x**3 * y**2 + 5 * x * y**4)


def divergence(k, w, symbols=(x, y)):
    return sum((k * w.diff(s)).diff(s) for s in symbols)


def made(level, low, high, factor=None, domain=SQUARE, w=u):
    """Return a problem with a flux that is continuous where the level is zero, and so is the solution."""
    symbols = w.args
    flow = level * (sp.cos(x + 2 * y) if factor is None else factor)
    k = sp.Piecewise((low, level < 0), (high, True))
    exact = sp.Piecewise((flow / low, level < 0), (flow / high, True))
    equation = sp.Eq(divergence(k, w, symbols), sum(flow.diff(s, 2) for s in symbols))
    return pb.Problem(equation, domain, [pb.Dirichlet(w, exact)], exact=exact)


CASES = {
    "line": made(x + y / 3 - R(1, 10), 1, 10),
    "circle": made(CIRCLE, 1, 1000),
    "circle, the other way": made(CIRCLE, 1000, 1),
    "star": made(STAR, 1, 1000),
    "disk in a disk": made(CIRCLE, 1, 10, domain=pb.Disk((x, y), (0.1, 0), 1.2)),
    "line through a disk": made(x + y / 3 - R(1, 10), 1, 10, domain=pb.Disk((x, y), (0, 0), 1)),
    "small": made((x - R(3, 10)) ** 2 + (y - R(1, 5)) ** 2 - R(1, 900), 1, 10),
}


@pytest.mark.parametrize("name", CASES)
def test_jumps_across_curves_are_solved_and_estimated(name):
    solution = pb.solve(CASES[name], tol=1e-4)
    error = solution.true_error(20_000)
    assert solution.status == "converged"
    assert error < 2e-4
    assert error < 3 * max(solution.error_estimate, 1e-9)


def test_an_interface_that_moves_through_time():
    w = pb.field("w", x, t)
    level = x - R(3, 10) - t / 5
    k = sp.Piecewise((1, level < 0), (5, True))
    one, two = level * (1 + t), level / 5 * (1 + t)
    exact = sp.Piecewise((one, level < 0), (two, True))
    source = sp.Piecewise((one.diff(t), level < 0), (two.diff(t), True))
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(w, exact), pb.Initial(w, exact.subs(t, 0))]
    problem = pb.Problem(sp.Eq(w.diff(t) - divergence(k, w, (x,)), source), domain, conditions, exact=exact)
    assert Switching(problem).jumps
    solution = pb.solve(problem, tol=1e-4)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-4


def elastic(level):
    """Return two elastic bodies with the same traction on both sides of a line."""
    v = pb.field("v", x, y)
    above, normal = level > 0, sp.Matrix([level.diff(x), level.diff(y)])
    materials = (R(2), R(1)), (R(1, 2), R(3))
    sides = []
    for lame, shear in materials:
        acoustic = shear * (normal.T * normal)[0] * sp.eye(2) + (lame + shear) * normal * normal.T
        sides.append([level * sp.cos(x - y) * a for a in acoustic.solve(sp.Matrix([1, 2]))])

    def stresses(lame, shear, p, q):
        spread = lame * (p.diff(x) + q.diff(y))
        return spread + 2 * shear * p.diff(x), shear * (p.diff(y) + q.diff(x)), spread + 2 * shear * q.diff(y)

    forces = []
    for (lame, shear), (p, q) in zip(materials, sides, strict=True):
        a, b, c = stresses(lame, shear, p, q)
        forces.append((a.diff(x) + b.diff(y), b.diff(x) + c.diff(y)))
    lame, shear = (sp.Piecewise((materials[0][i], above), (materials[1][i], True)) for i in (0, 1))
    a, b, c = stresses(lame, shear, u, v)
    right = [sp.Piecewise((forces[0][i], above), (forces[1][i], True)) for i in (0, 1)]
    exact = {w: sp.Piecewise((sides[0][i], above), (sides[1][i], True)) for i, w in enumerate((u, v))}
    equations = [sp.Eq(pb.div([a, b]), right[0]), sp.Eq(pb.div([b, c]), right[1])]
    return pb.Problem(equations, SQUARE, [pb.Dirichlet(w, value) for w, value in exact.items()], exact=exact)


@pytest.mark.parametrize("level", [x - R(1, 5), x + y / 2 - R(1, 10)])
def test_tractions_go_on_where_equations_are_divergences(level):
    solution = pb.solve(elastic(level), tol=1e-5)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5


def test_stresses_that_are_not_told_are_not_guessed():
    v = pb.field("v", x, y)
    k = sp.Piecewise((1, CIRCLE < 0), (2, True))
    equations = [k * u.diff(x, 2) + u.diff(y, 2) + k * v.diff(x, y), v.diff(x, 2) + v.diff(y, 2) + k * u.diff(x, y)]
    problem = pb.Problem([sp.Eq(e, 1) for e in equations], SQUARE, [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0)])
    assert "write it as a divergence" in Switching(problem).hidden


def test_a_wedge_is_no_source_however_deep_cells_are_graded():
    wedge = sp.And(y > -R(1, 3) - x / 7, y < R(1, 3) + x)
    k = sp.Piecewise((10, wedge), (1, True))
    problem = pb.Problem(sp.Eq(divergence(k, u), -1), SQUARE, [pb.Dirichlet(u, 0)])
    layout = Layout(problem, draw_reference(2, 9, 0), 0)
    solver, root = TreeSolver(Rows(layout)), split_at_planes(layout.root)
    for level in range(8):
        cells = [leaf for leaf in leaves(root) if leaf.has_corner or not level]
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in cells})
    solver.solve(root)
    assert solver.weakest(0)[0] < 3


def test_what_a_part_makes_flows_out_of_it():
    triangle = sp.And(y > -R(1, 3) - x / 7, y < R(1, 3) + x, y < R(1, 2) - x)
    k = sp.Piecewise((10, triangle), (1, True))
    problem = pb.Problem(sp.Eq(divergence(k, u), -1), SQUARE, [pb.Dirichlet(u, 0)])
    layout = Layout(problem, draw_reference(2, 9, 0), 0)
    rows, root = Rows(layout), split_at_planes(layout.root)
    for level in range(3):
        cells = [leaf for leaf in leaves(root) if leaf.has_corner or not level]
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in cells})
    faces = [face for contact in contacts(root) for face in layout.faces(contact)]
    faces += [face for leaf in leaves(root) for face in layout.interface_faces(leaf)]
    checked = 0
    for part in (part for leaf in leaves(root) for part in layout.parts(leaf)):
        if part.boundary or part.whole:
            continue
        own = [face for face in faces if part in (face.below, face.above)]
        (found,) = rows.assembled([part])
        traced = zip(own, rows.traces.rows_on([(part, face) for face in own]), strict=True)
        out = sum(rows.flux.outflows.across([(part, face)])[0].own @ block for face, block in traced)
        low = np.arange(rows.width) < 20
        made_inside = found.means[0, low]
        assert np.linalg.norm(made_inside - out[0, low]) < 1e-4 * np.linalg.norm(made_inside)
        checked += 1
    assert checked > 10


def test_parts_of_a_divided_domain_add_up():
    problem = CASES["star"]
    layout = Layout(problem, draw_reference(2, 9, 0), 0)
    root = layout.root
    for _ in range(3):
        root = refined(root, {leaf: [(0, None), (1, None)] for leaf in leaves(root)})
    parts = [part for leaf in leaves(root) for part in layout.parts(leaf)]
    assert sum(part.integrals.sum() for part in parts) == pytest.approx(4.0, abs=1e-9)
    length = sum(face.weights.sum() for leaf in leaves(root) for face in layout.interface_faces(leaf))
    curves = contours(Level.of(STAR, (x, y)), SQUARE.bounds)
    assert length == pytest.approx(sum(curve.measure for curve in curves), rel=1e-8)


def test_a_stored_solution_knows_its_sides(tmp_path):
    solution = pb.solve(CASES["circle"], tol=1e-3)
    again = pb.load(solution.save(tmp_path / "jump.pibls"))
    X = SQUARE.sample(2000, "uniform", 3)
    assert (again(X) == solution(X)).all()


def test_only_edges_at_which_something_changes_are_interfaces():
    k = sp.Piecewise((10, sp.And(y > x, y < 1 - x)), (1, True))
    problem = pb.Problem(sp.Eq(divergence(k, u), 0), SQUARE, [pb.Dirichlet(u, 0)])
    pieces = [piece for held in TreeDomain(problem).interfaces.values() for piece in held]
    lengths = sorted(float(np.diff(piece.box[0])[0]) * piece.patch.measure for piece in pieces)
    assert lengths == pytest.approx([0.5 * np.sqrt(2), 1.5 * np.sqrt(2)], rel=1e-6)


@pytest.mark.parametrize(
    ("edge", "count", "length"),
    [
        (x + 2 * y - R(3, 10), 1, np.sqrt(5)),
        ((x - R(31, 100)) ** 2 + (y - R(77, 1000)) ** 2 - R(1, 10**6), 1, 2e-3 * np.pi),
        (x**2 + y**2 - R(3, 2), 4, 4 * 1.5**0.5 * (np.arcsin((2 / 3) ** 0.5) - np.arccos((2 / 3) ** 0.5))),
        (x**2 + y**2 + 1, 0, 0.0),
    ],
)
def test_contours_are_found_however_small(edge, count, length):
    found = contours(Level.of(edge, (x, y)), SQUARE.bounds)
    assert len(found) == count
    assert sum(curve.measure for curve in found) == pytest.approx(length, rel=1e-6)


def test_the_flux_of_a_divergence_is_read_from_it():
    k = pb.per_region({pb.Disk((x, y), (0, 0), 0.5): 2}, 1)
    flux = resolve(normal_flux(sp.Eq(-pb.div(k * pb.grad(u)), 1), (x, y)), (x, y))
    n = pb.normal(x, y)
    assert sp.expand(flux + k * (n[0] * u.diff(x) + n[1] * u.diff(y))) == 0
    assert normal_flux(sp.Eq(divergence(k, u), 1), (x, y)) is None


SHAPES = [
    pb.Disk((x, y), (0.1, 0), 0.5),
    pb.Rectangle((x, -0.3, 0.7), (y, -0.5, 0.1)),
    pb.Polygon((x, y), [(-0.8, -0.8), (0.8, -0.8), (0.8, 0), (0, 0), (0, 0.8), (-0.8, 0.8)]),
    pb.Polygon((x, y), [(0, 0.2), (0.8, 0.9), (0.1, -0.9), (-0.6, 0.7)]),
    pb.Star((x, y), lambda a: R(1, 2) + sp.cos(5 * a) / 10),
    pb.Rectangle((x, -0.9, 0.9), (y, -0.5, 0.5)) - pb.Disk((x, y), (0, 0), 0.3),
    pb.Disk((x, y), (-0.3, 0), 0.4) | pb.Disk((x, y), (0.3, 0), 0.4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_conditions_of_regions_are_those_of_the_shapes(shape):
    X = SQUARE.sample(4000, "uniform", 0)
    held = sp.lambdify((x, y), sp.Piecewise((1, shape.condition), (0, True)), "numpy")(*X.T)
    assert (held.astype(bool) == shape.contains(X)).all()


@pytest.mark.parametrize("values", [{}, 3, {pb.Disk((x, y), (0, 0), 1): "steel"}, {"disk": 1}])
def test_regions_that_are_none_are_refused(values):
    with pytest.raises(pb.PiblsError, match=r"Got|per_region"):
        pb.per_region(values)


def test_branches_are_numbered_apart():
    source = sp.Piecewise((1, sp.And(x < y, y < 1)), (sp.Abs(x + y), True)) + sp.Max(x, y)
    problem = pb.Problem(sp.Eq(pb.laplacian(u), source), SQUARE, [pb.Dirichlet(u, 0)])
    number = sp.lambdify((x, y), Switching(problem).branch.expression, "numpy")
    X = np.array([[-0.5, 0.2], [0.5, 0.2], [0.2, -0.5], [-0.6, -0.7]])
    assert len(set(np.asarray(number(*X.T)).tolist())) == 3


def test_an_interface_that_moves_through_a_plane():
    w = pb.field("w", x, y, t)
    level = (x - t / 4) ** 2 + y**2 - R(1, 4)
    k = sp.Piecewise((1, level < 0), (5, True))
    exact = sp.Piecewise((level, level < 0), (level / 5, True))
    source = sp.Piecewise((level.diff(t) - 4, level < 0), (level.diff(t) / 5 - 4, True))
    domain = SQUARE * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(w, exact), pb.Initial(w, exact.subs(t, 0))]
    problem = pb.Problem(sp.Eq(w.diff(t) - pb.div(k * pb.grad(w)), source), domain, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-2, budget=1)
    assert solution.true_error() < 3 * max(solution.error_estimate, 1e-2)


def test_a_cell_side_keeps_off_a_tangent_just_beside_it():
    tangents = np.array([[0.0, 0.75, 0.5 + 1e-7]])
    cell = Cell(np.zeros(2), np.ones(2), marks=np.empty((0, 2)), tangents=tangents).halved(1)
    for half in cell.halves:
        right = half.halved(0).halves[1]
        assert abs(right.halved(0).at - 0.75) > 0.02


def test_three_parts_in_a_cell_join_in_their_order():
    triangle = sp.And(y > -R(1, 3) - x / 7, y < R(1, 3) + x, y < R(1, 2) - x)
    k = sp.Piecewise((10, triangle), (1, True))
    problem = pb.Problem(sp.Eq(divergence(k, u), -1), SQUARE, [pb.Dirichlet(u, 0)])
    solution = pb.solve(problem, tol=2e-3)
    assert solution.status == "converged"
    # Found by cells graded nine times towards every corner, with functions of degree 13.
    assert solution([[0.1, 0.2]]) == pytest.approx(0.2128, rel=6e-3)


@pytest.mark.parametrize("divided", [False, True])
def test_what_is_continuous_where_a_coefficient_jumps_is_said(divided):
    rod, w = pb.Interval((x, 0, 1)), pb.field("w", x)
    k = sp.Piecewise((1, x < R(1, 2)), (2, True))
    equation = sp.Eq(w.diff(x, 2), 1 / k) if divided else sp.Eq(k * w.diff(x, 2), 1)
    solution = pb.solve(pb.Problem(equation, rod, [pb.Dirichlet(w, 0)]))
    low, high = solution.derivative(w, x)([[0.5 - 1e-9], [0.5 + 1e-9]])
    assert (1 if divided else 2) * high == pytest.approx(low, abs=1e-6)
    assert ("times slopes were taken to be continuous" in solution.diagnostics.message) != divided


@pytest.mark.parametrize("written", ["slopes", "divided", "flux"])
def test_waves_keep_their_slopes_where_the_speed_jumps_unless_written_as_a_divergence(written):
    t = pb.coordinates("t")
    h, string = pb.field("h", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    half = sp.Rational(1, 2)
    k = sp.Piecewise((5, x < half), (1, True))
    bent = sp.Piecewise((x * (1 + x) / 5, x < half), (x * (1 + x) - sp.Rational(3, 5), True))
    shape = bent if written == "flux" else sp.sin(sp.pi * x)
    operator, force = {
        "slopes": (h.diff(t, 2) - k * h.diff(x, 2), k * sp.pi**2 * shape - shape),
        "divided": (h.diff(t, 2) / k - h.diff(x, 2), sp.pi**2 * shape - shape / k),
        "flux": (h.diff(t, 2) - pb.div([k * h.diff(x)]), -shape - 2),
    }[written]
    exact = shape * sp.cos(t)
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, shape), pb.Initial(h.diff(t), 0)]
    problem = pb.Problem(sp.Eq(operator, force * sp.cos(t)), string, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-4, progress=False)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-4
    assert ("slopes were taken to be" in solution.diagnostics.message) == (written == "slopes")
