"""A second set of problems of the same kinds as the everyday ones, to find faults with.

Each has a closed form or a reference by SciPy, or is ill-posed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.special import erf, erfc

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import (
    DISK,
    L_SHAPE,
    LAPLACE,
    LINE,
    SQUARE,
    WIDE,
    R,
    around,
    c,
    course,
    dirichlet,
    eccentric,
    h,
    p,
    s,
    t,
    u,
    v,
    w,
    x,
    y,
    z,
)
from pibls.problems.manufactured import applied, manufactured, plane_stress

case, fresh = collected()
CUBE = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
g = pb.field("g", x, y, t)
q = pb.field("q", x, y)
r = sp.sqrt(x**2 + y**2)


def _given(operator: sp.Expr, domain: Any, exact: sp.Expr, of: Any = u) -> pb.Problem:
    return dirichlet(manufactured(operator, {of: exact}, domain), domain, exact, of)


def _flow(viscosity: Any = 1, *, inertia: bool = False) -> list[sp.Eq]:
    carried = [u * of.diff(x) + v * of.diff(y) if inertia else 0 for of in (u, v)]
    along = [
        sp.Eq(-viscosity * pb.laplacian(of) + p.diff(a) + k, 0)
        for of, a, k in zip((u, v), (x, y), carried, strict=True)
    ]
    return [*along, sp.Eq(u.diff(x) + v.diff(y), 0)]


# Corners and mixed conditions -----------------------------------------------------------------------------------------


@case("corner")
def half_disk_mixed() -> pb.Problem:
    side = pb.Rectangle((x, -2, 2), (y, 0, 2))
    domain = DISK & side
    exact = sp.sqrt(r) * sp.sin(sp.atan2(y, x) / 2)
    held, free = side.bottom.where(lambda X: X[:, 0] > 0), side.bottom.where(lambda X: X[:, 0] <= 0)
    flux = applied(pb.normal_derivative(u), {u: exact}, domain)
    conditions = [pb.Dirichlet(u, 0, on=held), pb.Neumann(u, 0, on=free), pb.Neumann(u, flux, on=DISK.boundary)]
    return pb.Problem(LAPLACE, domain, conditions, exact=exact)


@case("corner")
def triangle_under_load() -> pb.Problem:
    triangle = pb.Polygon((x, y), [(0, 0), (1, 0), (R(1, 2), sp.sqrt(3) / 2)])
    exact = y * (sp.sqrt(3) * x - y) * (sp.sqrt(3) * (1 - x) - y) / (2 * sp.sqrt(3))
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), triangle, [pb.Dirichlet(u, 0)], exact=exact)


@case("corner")
def notched_disk() -> pb.Problem:
    notch = pb.Polygon((x, y), [(0, 0), (2, -2 * sp.sqrt(3)), (2, 0)])
    angle = around(5 * sp.pi / 6) + 5 * sp.pi / 6
    exact = r ** R(3, 5) * sp.sin(R(3, 5) * angle)
    domain = DISK - notch
    flux = applied(pb.normal_derivative(u), {u: exact}, domain)
    return pb.Problem(
        LAPLACE, domain, [pb.Dirichlet(u, 0, on=notch.boundary), pb.Neumann(u, flux, on=DISK.boundary)], exact=exact
    )


@case("corner")
def two_notches() -> pb.Problem:
    tee = pb.Polygon(
        (x, y), [(-2, 0), (-R(1, 2), 0), (-R(1, 2), -1), (R(1, 2), -1), (R(1, 2), 0), (2, 0), (2, 1), (-2, 1)]
    )

    def around_notch(at: sp.Expr, bisector: sp.Expr) -> sp.Expr:
        turned = around(bisector).subs(x, x - at)
        return ((x - at) ** 2 + y**2) ** R(1, 3) * sp.cos(R(2, 3) * turned)

    return dirichlet(LAPLACE, tee, around_notch(-R(1, 2), sp.pi / 4) - 2 * around_notch(R(1, 2), 3 * sp.pi / 4))


@case("corner")
def cooled_notch() -> pb.Problem:
    exact = 1 + sp.cbrt(x**2 + y**2) * sp.cos(R(2, 3) * (around(3 * sp.pi / 4) + 3 * sp.pi / 4))
    beside = L_SHAPE.edge0 | L_SHAPE.edge5
    rest = L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    return pb.Problem(
        LAPLACE, L_SHAPE, [pb.Robin(u, 1, 1, exact, on=beside), pb.Dirichlet(u, exact, on=rest)], exact=exact
    )


@case("corner")
def free_notch_in_a_sheet() -> pb.Problem:
    """Take the first symmetric field of displacements around a free corner of 3π/2."""
    nu, power, half = R(3, 10), sp.Float("0.54448373678246395", 20), 3 * sp.pi / 4
    angle = around(half)
    kappa, shear = (3 - nu) / (1 + nu), 1 / (2 * (1 + nu))
    other = -(power * sp.cos(2 * half) + sp.cos(2 * half * power))
    along = kappa * sp.cos(power * angle) - power * sp.cos((power - 2) * angle) - other * sp.cos(power * angle)
    across = kappa * sp.sin(power * angle) + power * sp.sin((power - 2) * angle) + other * sp.sin(power * angle)
    one, two = (r**power * part.evalf(20) / (2 * shear) for part in (along, across))
    a, b = sp.cos(half), sp.sin(half)
    exact = {u: a * one - b * two, v: b * one + a * two}
    forces, tractions = plane_stress(u, v, nu)
    beside = L_SHAPE.edge0 | L_SHAPE.edge5
    rest = L_SHAPE.edge1 | L_SHAPE.edge2 | L_SHAPE.edge3 | L_SHAPE.edge4
    conditions = [pb.Condition(sp.Eq(traction, 0), on=beside) for traction in tractions]
    conditions += [pb.Dirichlet(of, value, on=rest) for of, value in exact.items()]
    return pb.Problem([sp.Eq(f, 0) for f in forces], L_SHAPE, conditions, exact={"u": exact[u], "v": exact[v]})


@case("corner")
def stiff_direction() -> pb.Problem:
    return dirichlet(sp.Eq(u.diff(x, 2) + 100 * u.diff(y, 2), 0), SQUARE, sp.cos(10 * x) * sp.exp(y))


@case("corner")
def slanted_fibres() -> pb.Problem:
    e, a = R(1, 1000), sp.pi / 6
    along = (sp.cos(a), sp.sin(a))
    lengthwise = along[0] * u.diff(x) + along[1] * u.diff(y)
    flux = [e * u.diff(axis) + (1 - e) * part * lengthwise for axis, part in zip((x, y), along, strict=True)]
    return _given(flux[0].diff(x) + flux[1].diff(y), SQUARE, sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y))


# Small holes ----------------------------------------------------------------------------------------------------------


@case("small hole")
def row_of_wells() -> pb.Problem:
    centres = [(R(1, 4), R(1, 2)), (R(1, 2), R(3, 5)), (R(4, 5), R(2, 5))]
    domain: Any = SQUARE
    for centre in centres:
        domain = domain - pb.Disk((x, y), centre, R(1, 50))
    exact = sum(sp.log((x - a) ** 2 + (y - b) ** 2) * k for (a, b), k in zip(centres, (1, -2, 1), strict=True))
    return dirichlet(LAPLACE, domain, exact)


@case("small hole")
def stream_past_a_wire() -> pb.Problem:
    a = R(3, 100)
    wire = pb.Disk((x, y), (0, 0), a)
    exact = x * (1 + a**2 / (x**2 + y**2)) + 5
    conditions = [pb.Neumann(u, 0, on=wire.boundary), pb.Dirichlet(u, exact, on=WIDE.boundary)]
    return pb.Problem(LAPLACE, WIDE - wire, conditions, exact=exact)


@case("small hole")
def narrow_gap() -> pb.Problem:
    return eccentric(R(3, 5), R(1, 2))


@case("small hole")
def pushed_rivet() -> pb.Problem:
    """Push a small hole in a sheet: displacements go like the logarithm of the distance."""
    nu, a = R(1, 3), R(1, 20)
    hole = pb.Disk((x, y), (R(1, 10), -R(1, 5)), a)
    X, Y = x - R(1, 10), y + R(1, 5)
    square, kappa = X**2 + Y**2, (3 - nu) / (1 + nu)
    exact = {u: -kappa * sp.log(square) / 2 + X**2 / square, v: X * Y / square}
    forces, tractions = plane_stress(u, v, nu)
    domain = WIDE - hole
    pulls = [applied(traction, exact, domain) for traction in tractions]
    conditions = [pb.Condition(sp.Eq(one, two), on=hole.boundary) for one, two in zip(tractions, pulls, strict=True)]
    conditions += [pb.Dirichlet(of, value, on=WIDE.boundary) for of, value in exact.items()]
    return pb.Problem([sp.Eq(f, 0) for f in forces], domain, conditions, exact={"u": exact[u], "v": exact[v]})


@case("small hole")
def source_in_a_channel() -> pb.Problem:
    channel = pb.Rectangle((x, 0, 10), (y, 0, 1)) - pb.Disk((x, y), (3, R(1, 2)), R(1, 10))
    exact = sp.log((x - 3) ** 2 + (y - R(1, 2)) ** 2) + x * y
    return dirichlet(LAPLACE, channel, exact)


# Materials ------------------------------------------------------------------------------------------------------------


@case("materials")
def hard_inclusion() -> pb.Problem:
    k, a2 = 10000, R(4, 25)
    X, Y = x + R(1, 5), y - R(1, 10)
    square = X**2 + Y**2
    share = R(k - 1, k + 1)
    exact = sp.Piecewise((2 * X / (k + 1), square < a2), (X * (1 - share * a2 / square), True))
    coefficient = sp.Piecewise((k, square < a2), (1, True))
    return dirichlet(sp.Eq(pb.div(coefficient * pb.grad(u)), 0), WIDE, exact)


@case("materials")
def five_layers() -> pb.Problem:
    ends, ks = [R(1, 10), R(3, 10), R(1, 2), R(9, 10)], [1, 10, R(1, 10), 100, 2]
    k = sp.Piecewise(*[(value, x < end) for value, end in zip(ks[:-1], ends, strict=True)], (ks[-1], True))
    drops, start, last = [], sp.S.Zero, sp.S.Zero
    for value, end in zip(ks, [*ends, sp.S.One], strict=True):
        drops.append(start + (x - last) / value)
        start, last = start + (end - last) / value, end
    exact = sp.Piecewise(*[(drop, x < end) for drop, end in zip(drops[:-1], ends, strict=True)], (drops[-1], True))
    conditions = [pb.Dirichlet(u, 0, on=SQUARE.left), pb.Dirichlet(u, start, on=SQUARE.right)]
    conditions += [pb.Neumann(u, 0, on=SQUARE.bottom | SQUARE.top)]
    return pb.Problem(sp.Eq(pb.div(k * pb.grad(u)), 0), SQUARE, conditions, exact=exact)


@case("materials")
def layered_cube() -> pb.Problem:
    level = z - R(2, 5)
    k = sp.Piecewise((1, level < 0), (50, True))
    potential = level * sp.exp(x) * sp.cos(y)
    exact = sp.Piecewise((potential, level < 0), (potential / 50, True))
    return dirichlet(sp.Eq(pb.div(k * pb.grad(s)), 0), CUBE, exact, s)


@case("materials")
def badly_touching_disk() -> pb.Problem:
    """Pose a disk whose contact with the sheet around it resists."""
    core = pb.Disk((x, y), (0, 0), R(1, 2))
    k, resistance, a = 5, R(1, 5), R(1, 2)
    inner, image = sp.symbols("inner image")
    found = sp.solve(
        [sp.Eq(k * inner, 1 - image / a**2), sp.Eq(a + image / a - inner * a, resistance * k * inner)], [inner, image]
    )
    exact = sp.Piecewise((found[inner] * x, x**2 + y**2 < a**2), (x * (1 + found[image] / (x**2 + y**2)), True))
    conditions = [pb.Interface(u, core, resistance=resistance), pb.Dirichlet(u, exact)]
    return pb.Problem(sp.Eq(pb.div(pb.per_region({core: k}, 1) * pb.grad(u)), 0), WIDE, conditions, exact=exact)


@case("materials")
def cooling_composite() -> pb.Problem:
    k = sp.Piecewise((1, x < R(1, 2)), (8, True))
    bend = sp.sin(2 * sp.pi * x)
    exact = sp.exp(-t) * sp.Piecewise((bend, x < R(1, 2)), (bend / 8, True))
    domain = LINE * pb.TimeInterval(t, 0, 1)
    source = sp.Piecewise(
        (sp.exp(-t) * (-bend + 4 * sp.pi**2 * bend), x < R(1, 2)),
        (sp.exp(-t) * (-bend / 8 + 4 * sp.pi**2 * bend), True),
    )
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t) - (k * h.diff(x)).diff(x), source), domain, conditions, exact=exact)


@case("materials")
def slanted_strip() -> pb.Problem:
    level = x + 2 * y - R(7, 5)
    k = sp.Piecewise((1, level < 0), (20, True))
    potential = level * (1 + x - y)
    exact = sp.Piecewise((potential, level < 0), (potential / 20, True))
    source = potential.diff(x, 2) + potential.diff(y, 2)
    return dirichlet(sp.Eq(pb.div(k * pb.grad(u)), source), SQUARE, exact)


# Narrow sources -------------------------------------------------------------------------------------------------------


@case("narrow")
def ring_of_heat() -> pb.Problem:
    return _given(
        pb.laplacian(u),
        SQUARE,
        sp.exp(-(((sp.sqrt((x - R(1, 2)) ** 2 + (y - R(1, 3)) ** 2 + R(1, 10000)) - R(1, 4)) * 40) ** 2)),
    )


@case("narrow")
def hot_wire_spreads() -> pb.Problem:
    line = pb.Interval((x, -1, 1))
    width = R(1, 400)
    exact = sp.sqrt(width / (width + 4 * t)) * sp.exp(-(x**2) / (width + 4 * t))
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), line * pb.TimeInterval(t, 0, R(1, 10)), conditions, exact=exact)


@case("narrow")
def ripples_on_a_wave() -> pb.Problem:
    return _given(w.diff(x, 2) + w, LINE, sp.sin(3 * x) + sp.sin(200 * x) / 1000, w)


@case("narrow")
def thin_insulation() -> pb.Problem:
    at, width = R(3, 10), R(1, 100)
    k = 1 / (1 + 100 * sp.exp(-(((x - at) / width) ** 2)))
    rise = x + 100 * width * sp.sqrt(sp.pi) / 2 * (sp.erf((x - at) / width) + sp.erf(at / width))
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq((k * w.diff(x)).diff(x), 0), LINE, conditions, exact=rise / rise.subs(x, 1))


@case("narrow")
def spike_in_space() -> pb.Problem:
    distance = (x - R(2, 5)) ** 2 + (y - R(1, 2)) ** 2 + (z - R(3, 5)) ** 2
    return _given(pb.laplacian(s), CUBE, sp.exp(-100 * distance), s)


@case("narrow")
def carried_pulse() -> pb.Problem:
    exact = sp.exp(-(((x - t - R(1, 5)) * 20) ** 2))
    conditions = [pb.Dirichlet(h, exact, on=LINE.left), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(sp.Eq(h.diff(t) + h.diff(x), 0), LINE * pb.TimeInterval(t, 0, R(1, 2)), conditions, exact=exact)


@case("narrow")
def drifting_spot() -> pb.Problem:
    spread = R(1, 50) + R(1, 25) * t
    exact = R(1, 50) / spread * sp.exp(-((x - R(3, 10) - t / 3) ** 2 + (y - R(1, 2)) ** 2) / spread)
    conditions = [pb.Dirichlet(g, exact), pb.Initial(g, exact.subs(t, 0))]
    equation = sp.Eq(g.diff(t) + g.diff(x) / 3, (g.diff(x, 2) + g.diff(y, 2)) / 100)
    return pb.Problem(equation, SQUARE * pb.TimeInterval(t, 0, 1), conditions, exact=exact)


# Layers ---------------------------------------------------------------------------------------------------------------


@case("layer")
def layers_at_every_side() -> pb.Problem:
    e = R(1, 100)
    one = 1 - sp.exp(-x / e) - sp.exp(-(1 - x) / e)
    return _given(-(e**2) * pb.laplacian(u) + u, SQUARE, one * one.subs(x, y))


@case("layer")
def wake_along_a_wall() -> pb.Problem:
    e = R(1, 1000)
    exact = (1 - sp.exp(-y / sp.sqrt(e))) * (1 - sp.exp(-(1 - y) / sp.sqrt(e))) * sp.sin(x)
    return _given(-e * pb.laplacian(u) + u.diff(x), SQUARE, exact)


@case("layer")
def two_widths() -> pb.Problem:
    a, b = pb.field("a", x), pb.field("b", x)
    one, two = sp.exp(-100 * x), sp.exp(-10 * (1 - x))
    exact = {a: one + two, b: one - two}
    equations = [
        manufactured(-a.diff(x, 2) / 10000 + a - b / 2, exact, LINE),
        manufactured(-b.diff(x, 2) / 100 + b - a / 2, exact, LINE),
    ]
    conditions = [pb.Dirichlet(a, exact[a]), pb.Dirichlet(b, exact[b])]
    return pb.Problem(equations, LINE, conditions, exact={"a": exact[a], "b": exact[b]})


@case("layer")
def viscous_shock() -> pb.Problem:
    nu = R(1, 100)
    exact = R(1, 2) - sp.tanh((x - R(2, 5) - t / 2) / (4 * nu)) / 2
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))]
    equation = sp.Eq(h.diff(t) + h * h.diff(x), nu * h.diff(x, 2))
    return pb.Problem(equation, LINE * pb.TimeInterval(t, 0, R(1, 2)), conditions, exact=exact)


# Evolutions -----------------------------------------------------------------------------------------------------------


def _warm(X: np.ndarray, _: np.ndarray, T: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(T > 0, erf(X / (2 * np.sqrt(np.maximum(T, 1e-300)))), np.sign(X)))


@case("evolution")
def step_in_a_plate() -> pb.Problem:
    exact = pb.data("warm", _warm, x, y, t)
    conditions = [pb.Dirichlet(g, exact, on=WIDE.left | WIDE.right), pb.Neumann(g, 0, on=WIDE.bottom | WIDE.top)]
    conditions += [pb.Initial(g, sp.Piecewise((-1, x < 0), (1, True)))]
    domain = WIDE * pb.TimeInterval(t, 0, R(1, 5))
    return pb.Problem(sp.Eq(g.diff(t), pb.laplacian(g)), domain, conditions, exact=exact)


def _fed(X: np.ndarray, T: np.ndarray) -> np.ndarray:
    root = np.sqrt(np.maximum(T, 1e-300))
    return np.asarray(
        np.where(T > 0, 2 * root / np.sqrt(np.pi) * np.exp(-((X / (2 * root)) ** 2)) - X * erfc(X / (2 * root)), 0)
    )


@case("evolution")
def sudden_flux() -> pb.Problem:
    exact = pb.data("fed", _fed, x, t)
    conditions = [pb.Neumann(h, 1, on=LINE.left), pb.Dirichlet(h, exact, on=LINE.right), pb.Initial(h, 0)]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, R(1, 2)), conditions, exact=exact)


@case("evolution")
def two_pulses_meet() -> pb.Problem:
    line = pb.Interval((x, -1, 1))
    exact = (sp.exp(-100 * (x - t) ** 2) + sp.exp(-100 * (x + t) ** 2)) / 2
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0)), pb.Initial(h.diff(t), 0)]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), line * pb.TimeInterval(t, 0, 1), conditions, exact=exact)


@case("evolution")
def swinging_beam() -> pb.Problem:
    exact = sp.sin(sp.pi * x) * sp.cos(sp.pi**2 * t)
    conditions = [
        pb.Dirichlet(h, 0),
        pb.Dirichlet(h.diff(x, 2), 0),
        pb.Initial(h, exact.subs(t, 0)),
        pb.Initial(h.diff(t), 0),
    ]
    return pb.Problem(
        sp.Eq(h.diff(t, 2) + h.diff(x, 4), 0), LINE * pb.TimeInterval(t, 0, R(1, 2)), conditions, exact=exact
    )


@case("evolution")
def lossy_line() -> pb.Problem:
    exact = sp.exp(-t) * sp.sin(sp.pi * x) * sp.cos(sp.sqrt(sp.pi**2 - 1) * t)
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, exact.subs(t, 0)), pb.Initial(h.diff(t), exact.diff(t).subs(t, 0))]
    return pb.Problem(
        sp.Eq(h.diff(t, 2) + 2 * h.diff(t), h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, 2), conditions, exact=exact
    )


@case("evolution")
def wave_packet() -> pb.Problem:
    line = pb.Interval((x, -5, 5))
    a, b = pb.field("a", x, t), pb.field("b", x, t)
    packet = sp.exp(-((x - 4 * t) ** 2) / (1 + 4 * t**2)) / (1 + 4 * t**2) ** R(1, 4)
    phase = 2 * (x - 4 * t) + 4 * t + 2 * t * (x - 4 * t) ** 2 / (1 + 4 * t**2) - sp.atan(2 * t) / 2
    exact = {a: packet * sp.cos(phase), b: packet * sp.sin(phase)}
    domain = line * pb.TimeInterval(t, 0, R(1, 2))
    equations = [
        manufactured(a.diff(t) + b.diff(x, 2) / 1, exact, domain),
        manufactured(b.diff(t) - a.diff(x, 2), exact, domain),
    ]
    conditions = [c_ for of in (a, b) for c_ in (pb.Dirichlet(of, exact[of]), pb.Initial(of, exact[of].subs(t, 0)))]
    return pb.Problem(equations, domain, conditions, exact={"a": exact[a], "b": exact[b]})


@case("evolution")
def travelling_population() -> pb.Problem:
    line = pb.Interval((x, -10, 20))
    exact = (1 + sp.exp((x - 5 * t / sp.sqrt(6)) / sp.sqrt(6))) ** (-2)
    conditions = [pb.Dirichlet(h, exact), pb.Initial(h, exact.subs(t, 0))]
    return pb.Problem(
        sp.Eq(h.diff(t), h.diff(x, 2) + h * (1 - h)), line * pb.TimeInterval(t, 0, 3), conditions, exact=exact
    )


@case("evolution")
def decaying_vortices() -> pb.Problem:
    a, b, e = (pb.field(name, x, y, t) for name in "abe")
    nu, decay = R(1, 10), sp.exp(-t / 5)
    exact = {
        a: -sp.cos(x) * sp.sin(y) * decay,
        b: sp.sin(x) * sp.cos(y) * decay,
        e: -(sp.cos(2 * x) + sp.cos(2 * y)) / 4 * decay**2,
    }
    equations = [
        sp.Eq(of.diff(t) + a * of.diff(x) + b * of.diff(y) + e.diff(k) - nu * (of.diff(x, 2) + of.diff(y, 2)), 0)
        for of, k in ((a, x), (b, y))
    ]
    side = pb.Rectangle((x, 0, 2), (y, 0, 2))
    domain = side * pb.TimeInterval(t, 0, 1)
    conditions = [k for of in (a, b) for k in (pb.Dirichlet(of, exact[of]), pb.Initial(of, exact[of].subs(t, 0)))]
    conditions += [pb.Dirichlet(e, exact[e])]
    return pb.Problem(
        [*equations, sp.Eq(a.diff(x) + b.diff(y), 0)],
        domain,
        conditions,
        exact={"a": exact[a], "b": exact[b], "e": exact[e]},
    )


# Nonlinear ------------------------------------------------------------------------------------------------------------


@case("nonlinear")
def glowing_disk() -> pb.Problem:
    b = 3 - 2 * sp.sqrt(2)
    exact = sp.log(8 * b / (1 + b * (x**2 + y**2)) ** 2)
    return pb.Problem(sp.Eq(pb.laplacian(u) + sp.exp(u), 0), DISK, [pb.Dirichlet(u, 0)], exact=exact)


@case("nonlinear")
def soap_saddle() -> pb.Problem:
    exact = sp.log(sp.cos(y) / sp.cos(x))
    operator = (
        (1 + u.diff(y) ** 2) * u.diff(x, 2)
        - 2 * u.diff(x) * u.diff(y) * u.diff(x, y)
        + (1 + u.diff(x) ** 2) * u.diff(y, 2)
    )
    return dirichlet(sp.Eq(operator, 0), WIDE, exact)


@case("nonlinear")
def power_law_ring() -> pb.Problem:
    ring = pb.Disk((x, y), (0, 0), 2) - pb.Disk((x, y), (0, 0), 1)
    exact = (x**2 + y**2) ** R(1, 3)
    square = u.diff(x) ** 2 + u.diff(y) ** 2
    return dirichlet(sp.Eq((square * u.diff(x)).diff(x) + (square * u.diff(y)).diff(y), 0), ring, exact)


@case("nonlinear")
def gas_ball() -> pb.Problem:
    line = pb.Interval((x, 0, 5))
    conditions = [pb.Dirichlet(w, 1, on=line.left), pb.Dirichlet(w.diff(x), 0, on=line.left)]
    return pb.Problem(
        sp.Eq(x * w.diff(x, 2) + 2 * w.diff(x) + x * w**5, 0), line, conditions, exact=1 / sp.sqrt(1 + x**2 / 3)
    )


@case("nonlinear")
def two_solutions() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 4, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 2), R(3, 2) * w**2), LINE, conditions, exact=4 / (1 + x) ** 2)


@case("nonlinear", course(lambda _, y: [y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]], [2.0, 0.0], "c"))
def relaxing_circuit() -> pb.Problem:
    equation = sp.Eq(c.diff(t, 2), 5 * (1 - c**2) * c.diff(t) - c)
    return pb.Problem(equation, pb.TimeInterval(t, 0, 12), [pb.Initial(c, 2), pb.Initial(c.diff(t), 0)])


@case("nonlinear", course(lambda _, y: [y[0] * (1.5 - y[1]), y[1] * (y[0] - 3)], [10.0, 5.0], "ab"))
def hares_and_lynxes() -> pb.Problem:
    a, b = pb.field("a", t), pb.field("b", t)
    equations = [sp.Eq(a.diff(t), a * (R(3, 2) - b)), sp.Eq(b.diff(t), b * (a - 3))]
    return pb.Problem(equations, pb.TimeInterval(t, 0, 6), [pb.Initial(a, 10), pb.Initial(b, 5)])


# Solids and flows -----------------------------------------------------------------------------------------------------


@case("system")
def flow_behind_a_grid() -> pb.Problem:
    domain = pb.Rectangle((x, -R(1, 2), 1), (y, -R(1, 2), R(3, 2)))
    rate = 20 - sp.sqrt(400 + 4 * sp.pi**2)
    exact = {
        u: 1 - sp.exp(rate * x) * sp.cos(2 * sp.pi * y),
        v: rate / (2 * sp.pi) * sp.exp(rate * x) * sp.sin(2 * sp.pi * y),
        p: (1 - sp.exp(2 * rate * x)) / 2,
    }
    conditions = [pb.Dirichlet(u, exact[u]), pb.Dirichlet(v, exact[v]), pb.Dirichlet(p, exact[p], on=domain.left)]
    return pb.Problem(
        _flow(R(1, 40), inertia=True),
        domain,
        conditions,
        exact={f: exact[k] for f, k in (("u", u), ("v", v), ("p", p))},
    )


@case("system")
def potential_and_flux() -> pb.Problem:
    a, b = pb.field("a", x, y), pb.field("b", x, y)
    exact = {u: sp.sin(2 * x) * sp.exp(y), a: 2 * sp.cos(2 * x) * sp.exp(y), b: sp.sin(2 * x) * sp.exp(y)}
    equations = [sp.Eq(a - u.diff(x), 0), sp.Eq(b - u.diff(y), 0), manufactured(a.diff(x) + b.diff(y), exact, SQUARE)]
    return pb.Problem(
        equations, SQUARE, [pb.Dirichlet(u, exact[u])], exact={"u": exact[u], "a": exact[a], "b": exact[b]}
    )


@case("system")
def conjugate_pair() -> pb.Problem:
    exact = {u: sp.exp(x) * sp.cos(y), v: sp.exp(x) * sp.sin(y)}
    equations = [sp.Eq(u.diff(x) - v.diff(y), 0), sp.Eq(u.diff(y) + v.diff(x), 0)]
    conditions = [pb.Dirichlet(u, exact[u]), pb.Observation(v, [[0, 0]], [0])]
    return pb.Problem(equations, SQUARE, conditions, exact={"u": exact[u], "v": exact[v]})


@case("system")
def clamped_round_plate() -> pb.Problem:
    operator = pb.laplacian(pb.laplacian(u))
    conditions = [pb.Dirichlet(u, 0), pb.Neumann(u, 0)]
    return pb.Problem(sp.Eq(operator, 64), DISK, conditions, exact=(1 - x**2 - y**2) ** 2)


@case("system")
def plane_wave_leaves() -> pb.Problem:
    a, b, k = pb.field("a", x, y), pb.field("b", x, y), 15
    exact = {a: sp.cos(k * x), b: sp.sin(k * x)}
    equations = [sp.Eq(pb.laplacian(of) + k**2 * of, 0) for of in (a, b)]
    conditions = [pb.Dirichlet(of, exact[of], on=SQUARE.left) for of in (a, b)]
    conditions += [pb.Neumann(of, 0, on=SQUARE.bottom | SQUARE.top) for of in (a, b)]
    conditions += [
        pb.Condition(sp.Eq(a.diff(x) + k * b, 0), on=SQUARE.right),
        pb.Condition(sp.Eq(b.diff(x) - k * a, 0), on=SQUARE.right),
    ]
    return pb.Problem(equations, SQUARE, conditions, exact={"a": exact[a], "b": exact[b]})


@case("system")
def pulled_block() -> pb.Problem:
    a, b, e = (pb.field(name, x, y, z) for name in "abe")
    exact = {a: x * y + z**2 / 2, b: sp.sin(x) * z, e: sp.exp(y) * x / 2}
    trace = a.diff(x) + b.diff(y) + e.diff(z)
    fields, axes = (a, b, e), (x, y, z)
    stresses = [
        [fields[i].diff(axes[j]) + fields[j].diff(axes[i]) + (trace if i == j else 0) for j in range(3)]
        for i in range(3)
    ]
    equations = [manufactured(sum(stresses[i][j].diff(axes[j]) for j in range(3)), exact, CUBE) for i in range(3)]
    top = [pb.Condition(sp.Eq(stresses[i][2], applied(stresses[i][2], exact, CUBE)), on=CUBE.top) for i in range(3)]
    rest = CUBE.left | CUBE.right | CUBE.bottom | CUBE.front | CUBE.back
    conditions = [*top, *(pb.Dirichlet(of, exact[of], on=rest) for of in fields)]
    return pb.Problem(equations, CUBE, conditions, exact={"a": exact[a], "b": exact[b], "e": exact[e]})


@case("system")
def rolling_shaft() -> pb.Problem:
    """Stokes flow between a turning shaft that is not in the middle of its bearing, and the bearing, by its stream."""
    exact = {u: y * sp.exp(x), v: -(y**2) / 2 * sp.exp(x), p: sp.sin(x * y)}
    domain = DISK - pb.Disk((x, y), (R(2, 5), 0), R(3, 10))
    equations = [manufactured(one.lhs, exact, domain) for one in _flow()]
    conditions = [
        pb.Dirichlet(u, exact[u]),
        pb.Dirichlet(v, exact[v]),
        pb.Observation(p, [[-0.5, 0]], [0]),
    ]
    return pb.Problem(equations, domain, conditions, exact={"u": exact[u], "v": exact[v], "p": exact[p]})


# Ill-posed ------------------------------------------------------------------------------------------------------------


@case("ill-posed")
def leaking_box() -> pb.Problem:
    conditions = [pb.Dirichlet(u, 1, on=SQUARE.left), pb.Dirichlet(u, 0, on=SQUARE.right | SQUARE.top | SQUARE.bottom)]
    return pb.Problem(_flow(), SQUARE, [*conditions, pb.Dirichlet(v, 0), pb.Mean(p, 0)])


@case("ill-posed")
def sheet_without_support() -> pb.Problem:
    forces, tractions = plane_stress(u, v, R(3, 10))
    n_x, _ = pb.normal(x, y)
    return pb.Problem(
        [sp.Eq(f, 0) for f in forces],
        SQUARE,
        [pb.Condition(sp.Eq(tractions[0], n_x)), pb.Condition(sp.Eq(tractions[1], 0))],
    )


@case("ill-posed")
def heat_with_one_end() -> pb.Problem:
    conditions = [pb.Dirichlet(h, 0, on=LINE.left), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t), h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, 1), conditions)


@case("ill-posed")
def string_without_velocity() -> pb.Problem:
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x))]
    return pb.Problem(sp.Eq(h.diff(t, 2), h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, 1), conditions)


@case("ill-posed")
def too_much_on_every_side() -> pb.Problem:
    return pb.Problem(LAPLACE, SQUARE, [pb.Dirichlet(u, x * y), pb.Neumann(u, 1)])


@case("ill-posed")
def two_for_three() -> pb.Problem:
    conditions = [pb.Dirichlet(w, 0, on=LINE.left), pb.Dirichlet(w, 1, on=LINE.right)]
    return pb.Problem(sp.Eq(w.diff(x, 3), 1), LINE, conditions)


@case("ill-posed")
def ring_that_is_heated() -> pb.Problem:
    return pb.Problem(sp.Eq(-w.diff(x, 2), 1), LINE, [pb.Periodic(w, x)])


@case("ill-posed")
def carried_both_ways() -> pb.Problem:
    return pb.Problem(sp.Eq(u.diff(x) + u.diff(y), 0), SQUARE, [pb.Dirichlet(u, x**2 + y)])


@case("ill-posed")
def beam_in_the_air() -> pb.Problem:
    conditions = [pb.Dirichlet(w.diff(x, 2), 0), pb.Dirichlet(w.diff(x, 3), 0)]
    return pb.Problem(sp.Eq(w.diff(x, 4), sp.sin(2 * sp.pi * x)), LINE, conditions)


@case("ill-posed")
def singing_square() -> pb.Problem:
    return pb.Problem(
        sp.Eq(pb.laplacian(u) + 5 * sp.pi**2 * u, sp.sin(sp.pi * x) * sp.sin(2 * sp.pi * y)),
        SQUARE,
        [pb.Dirichlet(u, 0)],
    )


@case("ill-posed")
def cooling_backwards() -> pb.Problem:
    conditions = [pb.Dirichlet(h, 0), pb.Initial(h, sp.sin(sp.pi * x) + x * (1 - x))]
    return pb.Problem(sp.Eq(h.diff(t), -(1 + x) * h.diff(x, 2)), LINE * pb.TimeInterval(t, 0, R(1, 10)), conditions)
