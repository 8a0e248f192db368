"""What holds across interfaces: jumps, contact resistances, layers, and any equation between both sides."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import resolve
from pibls.text import read_text

R = sp.Rational
x, y, z, t = pb.coordinates("x y z t")
u, v = pb.field("u", x, y), pb.field("v", x, y)
SQUARE = pb.Rectangle((x, -1, 1), (y, -1, 1))
DISK = pb.Disk((x, y), (0.1, 0), 0.6)
STAR = pb.Star((x, y), lambda a: R(1, 2) + sp.cos(5 * a) / 10)
INSIDE, OUTSIDE = sp.exp(x) * sp.cos(y), sp.sin(x + 2 * y) + 2


def made(on, inner, outer, domain=SQUARE, sign=-1, **settings):
    """Return a problem with different solutions inside and outside, and the jumps between them."""
    where = on if isinstance(on, sp.Basic) else on.condition

    def chosen(one, two):
        return sp.Piecewise((one, where), (two, True))

    exact = chosen(INSIDE, OUTSIDE)
    source = chosen(*(k * (w.diff(x, 2) + w.diff(y, 2)) for k, w in ((inner, INSIDE), (outer, OUTSIDE))))
    rise = sum(n * (outer * OUTSIDE - inner * INSIDE).diff(s) for s, n in zip((x, y), pb.normal(x, y), strict=True))
    equation = sp.Eq(sign * pb.div(chosen(inner, outer) * pb.grad(u)), sign * source)
    jumps = pb.Interface(u, on=on, jump=OUTSIDE - INSIDE, flux=rise, **settings)
    return pb.Problem(equation, domain, [pb.Dirichlet(u, exact), jumps], exact=exact)


MADE = {
    "line": made(x < R(1, 5), 1, 10),
    "slanted line": made(x + y / 3 < R(1, 10), 1, 10),
    "circle": made(DISK, 1, 1000),
    "circle, the other way": made(DISK, 1000, 1, sign=1),
    "circle, the same material": made(DISK, 1, 1),
    "star": made(STAR, 1, 1000),
    "rectangle": made(pb.Rectangle((x, -0.5, R(1, 3)), (y, -0.25, 0.5)), 1, 10),
    "triangle": made(pb.Polygon((x, y), [(-0.5, -0.4), (0.6, -0.3), (0, 0.6)]), 1, 10),
    "two disks": made(pb.Disk((x, y), (-0.5, 0), 0.3) | pb.Disk((x, y), (0.4, 0.2), 0.25), 1, 10),
    "across the boundary": made(pb.Disk((x, y), (0.8, 0), 0.5), 1, 10),
}


@pytest.mark.parametrize("name", MADE)
def test_given_jumps_are_met_and_errors_are_known(name):
    solution = pb.solve(MADE[name])
    error = solution.true_error()
    assert solution.status == "converged"
    assert error < 1e-6
    assert error < 10 * max(solution.error_estimate, 1e-12)


@pytest.mark.parametrize("resistance", [None, 3])
def test_stacked_slabs_are_exact(resistance):
    box, low = pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Rectangle((x, 0, 1), (y, 0, R(2, 5)))
    k, flow = pb.per_region({low: 1.38}, 400), 1000
    below, above = flow * y / R(138, 100), flow * (y - R(2, 5)) / 400
    exact = sp.Piecewise((below, y < R(2, 5)), (below.subs(y, R(2, 5)) + flow * (resistance or 0) + above, True))
    conditions = [
        pb.Dirichlet(u, 0, on=box.bottom),
        pb.Condition(sp.Eq(k * pb.normal_derivative(u), flow), on=box.top),
        pb.Neumann(u, 0, on=box.left | box.right),
    ]
    conditions += [] if resistance is None else [pb.Interface(u, on=low, resistance=resistance)]
    problem = pb.Problem(sp.Eq(-pb.div(k * pb.grad(u)), 0), box, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-9)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-10


def core(resistance, k=7):
    """Return a warm core in a shell, with a layer between them, and its closed form."""
    inner, outer = pb.Disk((x, y), (0, 0), 0.5), pb.Disk((x, y), (0, 0), 1)
    r2 = x**2 + y**2
    # What flows out through any circle is half its radius inside, and what the core makes beyond.
    shell = -sp.log(r2) / 16
    middle = sp.log(4) / 16 + R(1, 4) * resistance + (R(1, 4) - r2) / (4 * k)
    exact = sp.Piecewise((middle, r2 < R(1, 4)), (shell, True))
    source = pb.per_region({inner: 1}, 0)
    equation = sp.Eq(-pb.div(pb.per_region({inner: k}, 1) * pb.grad(u)), source)
    return pb.Problem(
        equation, outer, [pb.Dirichlet(u, 0), pb.Interface(u, on=inner, resistance=resistance)], exact=exact
    )


@pytest.mark.parametrize("resistance", [R(1, 1000), 1, 1000])
def test_contact_resistance_around_a_core(resistance):
    solution = pb.solve(core(resistance), tol=1e-7)
    assert solution.status == "converged"
    assert solution.true_error() < 3e-7
    (lacking,) = (found.rms for name, found in solution.diagnostics.residuals.items() if "Interface" in name)
    assert lacking < 2e-3 * (1 + resistance / 4)


def test_equations_between_both_sides():
    w = pb.field("w", x)
    rod = pb.Interval((x, 0, 3))
    ends = [pb.Dirichlet(w, 0, on=rod.left), pb.Dirichlet(w, 1, on=rod.right)]
    slope = pb.normal_derivative(w)
    # Inside w = a x; outside it is 1 at the end, of three times the slope, and begins with twice the value.
    held = [sp.Eq(pb.outside(w), 2 * pb.inside(w)), sp.Eq(pb.outside(slope), 3 * pb.inside(slope))]
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(x, 2), 0), rod, [*ends, pb.Interface(held, on=x < 1)]))
    assert solution([[0.5], [2.0]]) == pytest.approx([0.5 / 8, 5 / 8], abs=1e-9)


def test_electrodes_that_hold_each_side():
    w = pb.field("w", x)
    rod = pb.Interval((x, 0, 2))
    plate = pb.Interface([sp.Eq(pb.inside(w), 2), sp.Eq(pb.outside(w), 5)], on=x < 1)
    solution = pb.solve(pb.Problem(sp.Eq(w.diff(x, 2), 0), rod, [pb.Dirichlet(w, 0), plate]))
    assert solution([[0.5], [1.5]]) == pytest.approx([1.0, 2.5], abs=1e-9)


def test_a_layer_that_conducts_along_itself():
    # A thin layer of high conductivity on the circle: what flows into it leaves along it, [∂u/∂n] = −κ u_ss.
    kappa, inner = R(2), pb.Disk((x, y), (0, 0), 0.5)
    nx, ny = pb.normal(x, y)
    curvature = 2  # one over the radius: the derivative along a circle is that along its tangent, less the bend
    along = ny**2 * u.diff(x, 2) - 2 * nx * ny * u.diff(x, y) + nx**2 * u.diff(y, 2)
    slope = pb.normal_derivative(u)
    law = sp.Eq(pb.outside(slope) - pb.inside(slope), -kappa * pb.inside(along - curvature * slope))
    # u = x inside and (a r + b/r) cos outside, by values and slopes at r = 1/2: u_ss = -4 u.
    a, b = sp.symbols("a b")
    found = sp.solve([a / 2 + 2 * b - R(1, 2), a - 4 * b - 1 - kappa * 4 * R(1, 2)], [a, b])
    outer = found[a] * x + found[b] * x / (x**2 + y**2)
    exact = sp.Piecewise((x, x**2 + y**2 < R(1, 4)), (outer, True))
    conditions = [pb.Dirichlet(u, outer), pb.Interface(law, on=inner)]
    solution = pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 0), SQUARE, conditions, exact=exact))
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def elastic(on):
    """Return two elastic bodies with given jumps of displacements and tractions."""
    where, materials = on.condition, ((R(2), R(1)), (R(1, 2), R(3)))
    sides = (sp.sin(x + y), sp.cos(x - y)), (x * y + 1, sp.exp(x / 2))

    def stresses(lame, shear, p, q):
        spread = lame * (p.diff(x) + q.diff(y))
        return spread + 2 * shear * p.diff(x), shear * (p.diff(y) + q.diff(x)), spread + 2 * shear * q.diff(y)

    forces, tractions = [], []
    nx, ny = pb.normal(x, y)
    for material, side in zip(materials, sides, strict=True):
        a, b, c = stresses(*material, *side)
        forces.append((a.diff(x) + b.diff(y), b.diff(x) + c.diff(y)))
        tractions.append((a * nx + b * ny, b * nx + c * ny))
    lame, shear = (sp.Piecewise((materials[0][i], where), (materials[1][i], True)) for i in (0, 1))
    a, b, c = stresses(lame, shear, u, v)
    right = [sp.Piecewise((forces[0][i], where), (forces[1][i], True)) for i in (0, 1)]
    exact = {w: sp.Piecewise((sides[0][i], where), (sides[1][i], True)) for i, w in enumerate((u, v))}
    jumps = [
        pb.Interface(w, on=on, jump=sides[1][i] - sides[0][i], flux=tractions[1][i] - tractions[0][i])
        for i, w in enumerate((u, v))
    ]
    equations = [sp.Eq(pb.div([a, b]), right[0]), sp.Eq(pb.div([b, c]), right[1])]
    return pb.Problem(equations, SQUARE, [*(pb.Dirichlet(w, e) for w, e in exact.items()), *jumps], exact=exact)


def test_elastic_bodies_that_are_joined_with_a_gap():
    solution = pb.solve(elastic(DISK))
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6


def test_heat_through_a_contact_in_time():
    w = pb.field("w", x, t)
    domain = pb.Interval((x, -1, 1)) * pb.TimeInterval(t, 0, 1)
    # Odd about the contact: half the gap is w beside it, w_x = 2 w / R with R = 2 is w_x = w.
    rate = sp.Float(0.860333589019379762)  # of s tan s = 1
    shape = sp.cos(rate * (1 - sp.Abs(x))) * sp.sign(x) * sp.exp(-(rate**2) * t)
    inner, outer = (shape.subs({sp.Abs(x): s * x, sp.sign(x): s}) for s in (-1, 1))
    exact = sp.Piecewise((inner, x < 0), (outer, True))
    conditions = [pb.Neumann(w, 0), pb.Initial(w, exact.subs(t, 0)), pb.Interface(w, on=x < 0, resistance=2)]
    problem = pb.Problem(sp.Eq(w.diff(t), w.diff(x, 2)), domain, conditions, exact=exact)
    solution = pb.solve(problem)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-6
    with pytest.raises(pb.PiblsError, match="it has an interface"):
        pb.solve(problem, time="lines")


def test_a_nonlinear_problem_with_a_jump():
    where = x + y / 3 < R(1, 10)
    one, two = sp.sin(x + y), x * y + 2
    exact = sp.Piecewise((one, where), (two, True))
    source = sp.Piecewise(*((w.diff(x, 2) + w.diff(y, 2) - w**3, c) for w, c in ((one, where), (two, True))))
    rise = sum(n * (two - one).diff(s) for s, n in zip((x, y), pb.normal(x, y), strict=True))
    conditions = [pb.Dirichlet(u, exact), pb.Interface(u, on=where, jump=two - one, flux=rise)]
    problem = pb.Problem(sp.Eq(pb.laplacian(u) - u**3, source), SQUARE, conditions, exact=exact)
    solution = pb.solve(problem, tol=1e-5)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-5


def test_a_radiating_gap_is_nonlinear():
    w = pb.field("w", x)
    rod = pb.Interval((x, 0, 2))
    ends = [pb.Dirichlet(w, 2, on=rod.left), pb.Dirichlet(w, 0, on=rod.right)]
    gap = pb.Interface(sp.Eq(pb.inside(w) ** 4 - pb.outside(w) ** 4, -pb.inside(w.diff(x))), on=x < 1)
    problem = pb.Problem(sp.Eq(w.diff(x, 2), 0), rod, [*ends, gap])
    assert not problem.is_linear
    solution = pb.solve(problem)
    slope = float(sp.nsolve((2 - sp.Symbol("q")) ** 4 - sp.Symbol("q") ** 4 - sp.Symbol("q"), 0.9))
    assert solution([[0.5], [1.5]]) == pytest.approx([2 - slope / 2, slope / 2], abs=1e-6)


def test_a_surface_in_space():
    # A closed surface in a single cell: what is above must not be taken for what is below.
    w, space = pb.field("w", x, y, z), (x, y, z)
    box, where = pb.Box(*((s, -1, 1) for s in space)), x**2 / R(49, 100) + y**2 / R(1, 4) + z**2 / R(9, 100) < 1
    one, two, low = sp.exp(x + y + z), sp.sin(x) * sp.sin(y) * sp.sin(z), R(1, 1000)

    def chosen(a, b):
        return sp.Piecewise((a, where), (b, True))

    equation = sp.Eq(pb.div(chosen(1, low) * pb.grad(w)), chosen(3 * one, -3 * low * two))
    rise = sum(n * (low * two - one).diff(s) for s, n in zip(space, pb.normal(*space), strict=True))
    conditions = [pb.Dirichlet(w, two), pb.Interface(w, on=where, jump=two - one, flux=rise)]
    solution = pb.solve(pb.Problem(equation, box, conditions, exact=chosen(one, two)), tol=1e-3)
    assert solution.status == "converged"
    assert solution.true_error() < 1e-3


def test_a_flux_grows_with_the_slope_whatever_the_sign_of_the_equation():
    n, k = pb.normal(x, y), 2 + x
    wanted = n[0] * k * u.diff(x) + n[1] * k * u.diff(y)
    for equation in (pb.div(k * pb.grad(u)), -pb.div(k * pb.grad(u)), -sum((k * u.diff(s)).diff(s) for s in (x, y))):
        problem = pb.Problem(sp.Eq(equation, 1), SQUARE, [pb.Dirichlet(u, 0)])
        found = resolve(problem.laws.flux(u), (x, y))
        assert sp.expand(found - wanted) == 0


def test_the_flux_of_two_fields_in_two_equations_is_that_of_the_first_equation_for_the_first_field():
    equations = [pb.laplacian(u) + pb.laplacian(v) - 1, pb.laplacian(u) - 2 * pb.laplacian(v)]
    laws = pb.Problem(equations, SQUARE, [pb.Dirichlet(u, 0), pb.Dirichlet(v, 0)]).laws
    assert laws.carriers == {u.label: 0, v.label: 1}
    assert resolve(laws.flux(u), (x, y)).coeff(v.diff(x)) == pb.normal(x)


def test_a_divergence_of_known_data_is_a_source_and_no_flux():
    line = pb.Interval((x, 0, 1))
    c = pb.field("c", x)
    solution = pb.solve(pb.Problem(c.diff(x) - pb.div([x**2]), line, [pb.Dirichlet(c, 0, on=line.left)]))
    assert solution([0.5]) == pytest.approx(0.25, abs=1e-6)


def test_interfaces_are_stored_and_written(tmp_path):
    laws = [sp.Eq(pb.outside(u), 2 * pb.inside(u)), sp.Eq(pb.outside(pb.flux(u)), pb.inside(pb.flux(u)))]
    for interface in (
        pb.Interface(u, on=DISK, jump=x, flux=y),
        pb.Interface(u, on=x < R(1, 5), resistance=R(1, 3), weight=2),
        pb.Interface(laws, on=STAR),
    ):
        problem = pb.Problem(sp.Eq(-pb.laplacian(u), 1), SQUARE, [pb.Dirichlet(u, 0), interface])
        again = read_text(problem.to_text()).problem
        assert str(again) == str(problem)
    solution = pb.solve(problem, tol=1e-3)
    loaded = pb.load(solution.save(tmp_path / "interface.pibls"))
    assert str(loaded.problem) == str(problem)
    X = SQUARE.sample(500, "uniform", 1)
    assert (loaded(X) == solution(X)).all()
    assert r"\mathrm{out}" in problem.latex()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pb.Interface(u, on=3), "shape such as Disk"),
        (lambda: pb.Interface(sp.Eq(u, 0), on=DISK), "on which side"),
        (lambda: pb.Interface(sp.Eq(pb.inside(u), 0), on=DISK, jump=1), "alone"),
        (lambda: pb.inside(x), "takes a field"),
        (lambda: pb.flux(u + v), "takes a field"),
        (lambda: pb.Condition(pb.inside(u), on=SQUARE.left), "only in the equations of an Interface"),
        (lambda: pb.Interface(pb.inside(u) * pb.outside(u), on=DISK), "multiplies both sides"),
        (lambda: pb.Interface(u, on=pb.Interval((z, 0, 1)), jump=1), "other coordinates"),
        (lambda: pb.Interface(u, on=pb.Disk((x, y), (9, 9), 1), jump=1), "nothing of it lies inside"),
        (lambda: [pb.Interface(u, on=DISK, jump=k) for k in (1, 2, 3)], "one condition too many"),
    ],
)
def test_what_cannot_be_met_is_refused(make, words):
    def solved():
        found = make()
        conditions = found if isinstance(found, list) else [found]
        return pb.solve(pb.Problem(sp.Eq(pb.laplacian(u), 1), SQUARE, [pb.Dirichlet(u, 0), *conditions]))

    with pytest.raises(pb.PiblsError, match=words):
        solved()


def test_a_single_network_refuses_interfaces():
    with pytest.raises(pb.PiblsError, match="cannot be met by a single network"):
        pb.Points.sample(MADE["circle"])


def test_sides_are_picked_by_place():
    solution = pb.solve(MADE["circle, the same material"], tol=1e-4)
    angles = np.linspace(0, 6, 50)
    for sign, exact in ((-1, INSIDE), (1, OUTSIDE)):
        radius = 0.6 + sign * 1e-7
        X = np.stack([0.1 + radius * np.cos(angles), radius * np.sin(angles)], axis=1)
        assert solution(X) == pytest.approx(sp.lambdify((x, y), exact)(*X.T), abs=1e-3)
