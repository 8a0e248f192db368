"""Materials that jump, elastic bodies in SI units, and narrow sources."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sympy as sp
from scipy.optimize import brentq
from scipy.special import exp1

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import (
    L_SHAPE,
    LAPLACE,
    LINE,
    SQUARE,
    WIDE,
    R,
    around,
    dirichlet,
    h,
    s,
    t,
    u,
    v,
    w,
    x,
    y,
    z,
)
from pibls.problems.manufactured import applied, manufactured

case, media = collected()
g = pb.field("g", x, y, t)
r = sp.sqrt(x**2 + y**2)


def _conducting(k: sp.Expr, of: Any = u) -> sp.Eq:
    return sp.Eq(pb.div(k * pb.grad(of)), 0)


# Materials ------------------------------------------------------------------------------------------------------------


@case("materials")
def steel_in_a_notch() -> pb.Problem:
    """Let two materials meet in an inward corner: u is like r^0.503."""
    power, angle = 2 / sp.pi * sp.acot(sp.sqrt(R(100, 102))), around(3 * sp.pi / 4) + 3 * sp.pi / 4
    near = sp.sin(power * angle) / sp.sin(power * sp.pi / 2)
    far = sp.sin(power * (3 * sp.pi / 2 - angle)) / sp.sin(power * sp.pi)
    exact = r**power * sp.Piecewise((near, x > 0), (far, True))
    return dirichlet(_conducting(sp.Piecewise((1, x > 0), (100, True))), L_SHAPE, exact)


@cache
def _three_sectors(ks: tuple[float, float, float]) -> tuple[float, np.ndarray]:
    """Return the lowest power of the distance where three materials meet, in two quadrants and a half, and its waves.

    In every sector u is a cos(λθ) + b sin(λθ); values and fluxes match at θ = π/2, π and 0.
    """

    def matching(power: float) -> np.ndarray:
        def at(angle: float, k: float) -> np.ndarray:
            c, d = np.cos(power * angle), np.sin(power * angle)
            return np.array([[c, d], [-k * d, k * c]])

        rows = np.zeros((6, 6))
        for n, (one, a, two, b) in enumerate([(0, np.pi / 2, 1, np.pi / 2), (1, np.pi, 2, -np.pi), (2, 0, 0, 0)]):
            rows[2 * n : 2 * n + 2, 2 * one : 2 * one + 2] += at(a, ks[one])
            rows[2 * n : 2 * n + 2, 2 * two : 2 * two + 2] -= at(b, ks[two])
        return rows

    powers = np.linspace(0.05, 1, 200)
    signs = np.sign([np.linalg.det(matching(power)) for power in powers])
    first = int(np.flatnonzero(signs[:-1] * signs[1:] < 0)[0])
    power = brentq(lambda p: np.linalg.det(matching(p)), powers[first], powers[first + 1], xtol=1e-15)
    return power, np.linalg.svd(matching(power))[2][-1].reshape(3, 2)


@case("materials")
def three_metals_meet() -> pb.Problem:
    power, waves = _three_sectors((1.0, 100.0, 10.0))
    angle = sp.atan2(y, x)
    parts = [float(a) * sp.cos(power * angle) + float(b) * sp.sin(power * angle) for a, b in waves]
    right, upper = x > 0, y > 0
    exact = r**power * sp.Piecewise((parts[0], right & upper), (parts[1], upper), (parts[2], True))
    return dirichlet(_conducting(sp.Piecewise((1, right & upper), (100, upper), (10, True))), WIDE, exact)


@case("materials")
def coated_fibre() -> pb.Problem:
    """Coat a fibre with a hundredth of its width that hardly conducts."""
    inner, outer = R(3, 10), R(31, 100)
    X, Y = x - R(1, 5), y + R(1, 10)
    a, b, c, d = sp.symbols("a b c d")
    core, coat = 50, R(1, 1000)
    found = sp.solve(
        [
            sp.Eq(a * inner, b * inner + c / inner),
            sp.Eq(core * a, coat * (b - c / inner**2)),
            sp.Eq(b * outer + c / outer, outer + d / outer),
            sp.Eq(coat * (b - c / outer**2), 1 - d / outer**2),
        ],
        [a, b, c, d],
    )
    square = X**2 + Y**2
    parts = (found[a], found[b] + found[c] / square, 1 + found[d] / square)
    exact = X * sp.Piecewise((parts[0], square < inner**2), (parts[1], square < outer**2), (parts[2], True))
    centre = (R(1, 5), -R(1, 10))
    k = pb.per_region({pb.Disk((x, y), centre, inner): core, pb.Disk((x, y), centre, outer): coat}, 1)
    return dirichlet(_conducting(k), WIDE, exact)


@case("materials")
def slanted_sandwich() -> pb.Problem:
    """Stack copper, foam, plastic and steel across a triangle of 3 by 4 cm."""
    level = 2 * x + y
    ends, ks = [R(1, 100), R(2, 100), R(21, 1000)], [400, R(1, 40), R(1, 5), 16]
    parts, start, last = [], sp.Integer(293), sp.S.Zero
    for k, end in zip(ks, [*ends, R(6, 100)], strict=True):
        parts.append(start + 50 * (level - last) / k)
        start, last = start + 50 * (end - last) / k, end
    bounds = [*(level < end for end in ends), True]
    triangle = pb.Polygon((x, y), [(0, 0), (R(3, 100), 0), (0, R(4, 100))])
    exact = sp.Piecewise(*zip(parts, bounds, strict=True))
    return dirichlet(_conducting(sp.Piecewise(*zip(ks, bounds, strict=True))), triangle, exact)


@case("materials")
def woven_plate() -> pb.Problem:
    """Cross two jumps of 1000 and 1/1000, where the solution is a product and not singular."""
    a, b = sp.Piecewise((1, x < R(3, 10)), (1000, True)), sp.Piecewise((1, y < R(3, 5)), (R(1, 1000), True))
    one = sp.Piecewise((x, x < R(3, 10)), (R(3, 10) + (x - R(3, 10)) / 1000, True))
    two = sp.Piecewise((y, y < R(3, 5)), (R(3, 5) + 1000 * (y - R(3, 5)), True))
    return dirichlet(_conducting(a * b), SQUARE, one * two)


@case("materials")
def front_that_moves() -> pb.Problem:
    """Warm the ground behind a front that goes like the root of time, conductivity and capacity jumping there."""
    (k1, c1), (k2, c2), cold = (R(3, 5), R(21, 5)), (R(11, 5), R(19, 10)), 12
    a1, a2, place = k1 / c1, k2 / c2, R(1, 2)
    there = place * sp.sqrt(a1 / a2)
    rise = cold * k1 * sp.erfc(there) * sp.exp(there**2 - place**2) * sp.sqrt(a2 / a1) / (k2 * sp.erf(place))
    behind = cold * (1 - sp.erf(x / (2 * sp.sqrt(a1 * t))) / sp.erf(place))
    ahead = -rise * (1 - sp.erfc(x / (2 * sp.sqrt(a2 * t))) / sp.erfc(there))
    passed = x < 2 * place * sp.sqrt(a1 * t)
    exact = sp.Piecewise((behind, passed), (ahead, True))
    k, c = sp.Piecewise((k1, passed), (k2, True)), sp.Piecewise((c1, passed), (c2, True))
    ground = pb.Interval((x, 0, 3))
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 1))]
    equation = sp.Eq(c * h.diff(t), (k * h.diff(x)).diff(x))
    return pb.Problem(equation, ground * pb.TimeInterval(t, 1, 4), conditions, exact=exact)


@case("materials")
def double_layer_of_charge() -> pb.Problem:
    """Let values and slopes jump across a line by what is given."""
    left, jump = sp.sin(2 * x) * sp.cosh(2 * y), sp.exp(x) * sp.cos(y)
    exact = sp.Piecewise((left, x < R(1, 2)), (left + jump, True))
    conditions = [pb.Interface(u, x < R(1, 2), jump=jump, flux=jump.diff(x)), pb.Dirichlet(u, exact)]
    return pb.Problem(LAPLACE, SQUARE, conditions, exact=exact)


# Elastic bodies -------------------------------------------------------------------------------------------------------


def _at_rest(stress: Any, force: Any = (0, 0)) -> list[sp.Eq]:
    return [sp.Eq(pb.div(row), f) for row, f in zip(stress.tolist(), force, strict=True)]


def _quarter_ring(stress: Any, outer: pb.Disk, inner: pb.Disk | None) -> tuple[Any, list[Any]]:
    """Return a quarter of a ring or disk, and its symmetries."""
    quarter = pb.Rectangle((x, 0, 1), (y, 0, 1))
    whole = outer if inner is None else outer - inner
    return whole & quarter, [*pb.Symmetry([u, v], stress, on=quarter.left | quarter.bottom)]


@case("elastic")
def steel_pipe() -> pb.Problem:
    """Put a pipe of 200 GPa under 50 MPa from inside, which moves it by 10⁻⁵ m."""
    young, nu, load = 200 * 10**9, R(3, 10), 50 * 10**6
    a, b = R(1, 10), R(3, 20)
    steel = pb.stress([u, v], young=young, poisson=nu)
    inner, outer = pb.Disk((x, y), (0, 0), a), pb.Disk((x, y), (0, 0), b)
    domain, conditions = _quarter_ring(steel, outer, inner)
    even = load * a**2 / (b**2 - a**2)
    stretch = (1 + nu) / young * even * (1 - 2 * nu + b**2 / (x**2 + y**2))
    conditions += [*pb.Traction(steel, -load, on=inner.boundary), *pb.Traction(steel, 0, on=outer.boundary)]
    return pb.Problem(_at_rest(steel), domain, conditions, exact={"u": x * stretch, "v": y * stretch})


@case("elastic")
def three_rings() -> pb.Problem:
    """Press a core, a ring and a mantle of three materials together from outside."""
    ends, youngs, nus, load = [R(1, 5), R(1, 2), 1], [200, 3, 70], [R(3, 10), R(2, 5), R(1, 3)], R(1, 10)
    even, pole = sp.symbols("even:3"), sp.symbols("pole:3")
    # The displacement is even r + pole/r; the traction 2 (λ + μ) even − 2 μ pole/r².
    shear = [e / (2 * (1 + n)) for e, n in zip(youngs, nus, strict=True)]
    bulk = [m / (1 - 2 * n) for m, n in zip(shear, nus, strict=True)]

    def radial(i: int, at: Any) -> tuple[sp.Expr, sp.Expr]:
        return even[i] * at + pole[i] / at, 2 * bulk[i] * even[i] - 2 * shear[i] * pole[i] / at**2

    matched = [pole[0], radial(2, ends[2])[1] + load]
    matched += [one - two for i in (0, 1) for one, two in zip(radial(i, ends[i]), radial(i + 1, ends[i]), strict=True)]
    found = sp.solve(matched, [*even, *pole])
    square = x**2 + y**2
    bounds = [square < ends[0] ** 2, square < ends[1] ** 2, True]
    stretch = sp.Piecewise(*((found[even[i]] + found[pole[i]] / square, bounds[i]) for i in range(3)))
    core, ring = pb.Disk((x, y), (0, 0), ends[0]), pb.Disk((x, y), (0, 0), ends[1])
    stresses = pb.stress(
        [u, v],
        young=pb.per_region({core: youngs[0], ring: youngs[1]}, youngs[2]),
        poisson=pb.per_region({core: nus[0], ring: nus[1]}, nus[2]),
    )
    outer = pb.Disk((x, y), (0, 0), 1)
    domain, conditions = _quarter_ring(stresses, outer, None)
    conditions += pb.Traction(stresses, -load, on=outer.boundary)
    return pb.Problem(_at_rest(stresses), domain, conditions, exact={"u": x * stretch, "v": y * stretch})


@case("elastic")
def strip_free_to_expand() -> pb.Problem:
    """Heat a thin strip that nothing holds but two points: it bends without any stress."""
    young, nu, alpha = 70 * 10**9, R(33, 100), R(23, 10**6)
    strip = pb.Rectangle((x, 0, R(1, 2)), (y, -R(1, 20), R(1, 20)))
    heat = 80 + 300 * x
    sheet = pb.stress([u, v], young=young, poisson=nu, plane="stress")
    load = young * alpha / (1 - nu) * heat
    exact = {"u": alpha * (80 * x + 150 * (x**2 - y**2)), "v": alpha * (80 * y + 300 * x * y)}
    conditions = [
        *pb.Traction(sheet, load),
        pb.Dirichlet(u, 0, on=(0, 0)),
        pb.Dirichlet(v, 0, on=(0, 0)),
        pb.Dirichlet(v, 0, on=(0.5, 0)),
    ]
    return pb.Problem(_at_rest(sheet, (load.diff(x), 0)), strip, conditions, exact=exact)


@case("elastic")
def rubber_ring() -> pb.Problem:
    """Load a ring of rubber that keeps its area, with a hole that is not in its middle."""
    rubber = pb.stress([u, v], young=10**6, poisson=R(49999, 100000))
    disk, hole = pb.Disk((x, y), (0, 0), 1), pb.Disk((x, y), (R(3, 10), R(1, 10)), R(1, 4))
    stream = sp.sin(3 * x) * sp.cosh(2 * y) / 1000
    exact = {u: stream.diff(y), v: -stream.diff(x)}
    domain = disk - hole
    pulls = applied(rubber * sp.Matrix(pb.normal(x, y)), exact, domain)
    conditions = [*pb.Traction(rubber, list(pulls), on=hole.boundary)]
    conditions += [pb.Dirichlet(of, value, on=disk.boundary) for of, value in exact.items()]
    equations = [manufactured(pb.div(row), exact, domain) for row in rubber.tolist()]
    return pb.Problem(equations, domain, conditions, exact={"u": exact[u], "v": exact[v]})


@case("elastic")
def sliding_crack() -> pb.Problem:
    """Pose the upper half of a steel block around the tip of a crack whose faces slide, in plane strain."""
    young, nu, factor = 200 * 10**9, R(3, 10), 30 * 10**6
    block = pb.Rectangle((x, -R(1, 10), R(1, 10)), (y, 0, R(1, 10)))
    steel = pb.stress([u, v], young=young, poisson=nu)
    shear, kappa, half = young / (2 * (1 + nu)), 3 - 4 * nu, sp.atan2(y, x) / 2
    size = factor / (2 * shear) * sp.sqrt(r / (2 * sp.pi))
    exact = {
        u: size * sp.sin(half) * (kappa + 1 + 2 * sp.cos(half) ** 2),
        v: -size * sp.cos(half) * (kappa - 1 - 2 * sp.sin(half) ** 2),
    }
    crack, ahead = block.bottom.where(lambda X: X[:, 0] < 0), block.bottom.where(lambda X: X[:, 0] >= 0)
    conditions = [
        *pb.Traction(steel, 0, on=crack),
        pb.Dirichlet(u, 0, on=ahead),
        pb.Condition(sp.Eq(steel[1, 1], 0), on=ahead),
        *(pb.Dirichlet(of, value, on=block.left | block.right | block.top) for of, value in exact.items()),
    ]
    return pb.Problem(_at_rest(steel), block, conditions, exact={"u": exact[u], "v": exact[v]})


@case("elastic")
def layered_ground() -> pb.Problem:
    """Load fill on clay on rock by its weight and by a tank; it only settles."""
    ends, youngs, nus = [-10, -4, 0], [5 * 10**9, 50 * 10**6, 5 * 10**6], [R(1, 5), R(9, 20), R(3, 10)]
    weight, load = 20000, 100000
    parts, start, last = [], sp.S.Zero, sp.Integer(-15)
    for end, young, nu in zip(ends, youngs, nus, strict=True):
        stiffness = young * (1 - nu) / ((1 + nu) * (1 - 2 * nu))
        settled = (weight * y**2 / 2 - load * y) / stiffness
        parts.append(start + settled - settled.subs(y, last))
        start, last = parts[-1].subs(y, end), end
    bounds = [y < ends[0], y < ends[1], True]
    young, nu = (sp.Piecewise(*zip(values, bounds, strict=True)) for values in (youngs, nus))
    soil = pb.stress([u, v], young=young, poisson=nu)
    ground = pb.Rectangle((x, 0, 20), (y, -15, 0))
    conditions = [
        *pb.Symmetry([u, v], on=ground.left | ground.right),
        *pb.Traction(soil, [0, -load], on=ground.top),
        pb.Dirichlet(u, 0, on=ground.bottom),
        pb.Dirichlet(v, 0, on=ground.bottom),
    ]
    exact = {"u": sp.S.Zero, "v": sp.Piecewise(*zip(parts, bounds, strict=True))}
    return pb.Problem(_at_rest(soil, (0, weight)), ground, conditions, exact=exact)


# Narrow sources -------------------------------------------------------------------------------------------------------


@case("narrow")
def well_without_echo() -> pb.Problem:
    """Send a wave of 20 per micrometre across a well of 2 nm that does not reflect it."""
    line, a, k = pb.Interval((x, -R(1, 10**6), R(1, 10**6))), 5 * 10**8, 2 * 10**7
    exact = sp.tanh(a * x) * sp.cos(k * x) + R(k, a) * sp.sin(k * x)
    return dirichlet(sp.Eq(w.diff(x, 2) + (k**2 + 2 * a**2 / sp.cosh(a * x) ** 2) * w, 0), line, exact, w)


@case("narrow")
def weld_seam() -> pb.Problem:
    """Heat a plate along a slanted line, a five-hundredth wide."""
    width = R(1, 500)
    near = (x + 2 * y - R(11, 10)) / (sp.sqrt(5) * width)
    bell = sp.exp(-(near**2)) / sp.sqrt(sp.pi)
    exact = 300 + 1000 * width * (near * sp.erf(near) + bell) / 2
    return dirichlet(sp.Eq(pb.laplacian(u), 1000 * bell / width), SQUARE, exact)


@case("narrow")
def welding_torch() -> pb.Problem:
    """Move a source of width 1/100 along a rod."""
    exact = 1500 * sp.exp(-((100 * (x - R(1, 10) - R(4, 5) * t)) ** 2))
    domain = LINE * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))]
    equation = manufactured(h.diff(t) - h.diff(x, 2) / 1000, {h: exact}, domain)
    return pb.Problem(equation, domain, conditions, exact=exact)


@case("narrow")
def orbiting_spot() -> pb.Problem:
    """Move a hot spot once round a plate."""
    X, Y = x - R(1, 2) - sp.cos(2 * sp.pi * t) / 5, y - R(1, 2) - sp.sin(2 * sp.pi * t) / 5
    exact = sp.exp(-100 * (X**2 + Y**2))
    domain = SQUARE * pb.TimeInterval(t, 0, 1)
    conditions = [pb.Dirichlet(g, exact), pb.Initial(g, exact.subs(t, 0))]
    equation = manufactured(g.diff(t) - pb.laplacian(g) / 20, {g: exact}, domain)
    return pb.Problem(equation, domain, conditions, exact=exact)


@case("narrow")
def needle_in_a_box() -> pb.Problem:
    box = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    exact = sp.exp(-400 * ((x - R(3, 10)) ** 2 + (y - R(3, 5)) ** 2) - 4 * (z - R(1, 2)) ** 2)
    return dirichlet(manufactured(-pb.laplacian(s), {s: exact}, box), box, exact, s)


@case("narrow")
def trap_for_particles() -> pb.Problem:
    """Absorb within 1/100 of a point as if there was nothing else; the supply is such that nothing shows."""
    trap = 10**6 * sp.exp(-10000 * ((x - R(7, 10)) ** 2 + (y - R(2, 5)) ** 2))
    return dirichlet(
        manufactured(-pb.laplacian(u) + trap * u, {u: 2 + sp.sin(3 * x) * y}, SQUARE), SQUARE, 2 + sp.sin(3 * x) * y
    )


@case("narrow")
def flash_on_a_rod() -> pb.Problem:
    """Heat a rod for a thousandth of the time."""
    start, stop, rate = R(7, 20), R(351, 1000), sp.pi**2 / 10
    flash = sp.Piecewise((1000, (t >= start) & (t < stop)), (0, True))
    full = 1000 * (1 - sp.exp(-rate * (stop - start))) / rate
    after = sp.Piecewise(
        (0, t < start),
        (1000 * (1 - sp.exp(-rate * (t - start))) / rate, t < stop),
        (full * sp.exp(-rate * (t - stop)), True),
    )
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, 0)]
    equation = sp.Eq(h.diff(t), h.diff(x, 2) / 10 + flash * sp.sin(sp.pi * x))
    return pb.Problem(equation, LINE * pb.TimeInterval(t, 0, 1), conditions, exact=after * sp.sin(sp.pi * x))


def _spots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Sum two narrow bells, by Green's function of a disk of radius 0.1."""
    Z, found = 10 * (X + 1j * Y), np.zeros(np.shape(X))
    for at, width, size in ((0.4 + 0.2j, 0.002, 1e6), (-0.3 - 0.5j, 0.02, -1e4)):
        away = np.maximum(abs(Z - at), 1e-150)
        found += size * width**2 * (np.log(abs(1 - Z * np.conj(at)) / away) / 2 - exp1(away**2 / width**2) / 4)
    return found / 100


@case("narrow")
def spots_of_two_sizes() -> pb.Problem:
    dish = pb.Disk((x, y), (0, 0), R(1, 10))
    one = 10**6 * sp.exp(-25 * 10**6 * ((x - R(1, 25)) ** 2 + (y - R(1, 50)) ** 2))
    two = -(10**4) * sp.exp(-25 * 10**4 * ((x + R(3, 100)) ** 2 + (y + R(1, 20)) ** 2))
    exact = pb.data("spots", _spots, x, y)
    return pb.Problem(sp.Eq(-pb.laplacian(u), one + two), dish, [pb.Dirichlet(u, 0)], exact=exact)
