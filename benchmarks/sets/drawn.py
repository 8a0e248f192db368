"""Problems drawn at random, as many as are asked for: operator, domain, conditions and exact solution by chance.

Every number gives the same problem on every machine. Sources and data follow from the exact solution, so that the true
error of any solve is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.case import Case, exact_error
from benchmarks.sets.posing import begun, held, posed, told

__all__ = ["KINDS", "drawn_case"]

x, y, z, t = (pb.coordinates(name) for name in "xyzt")
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
Draw = Callable[[np.random.Generator], pb.Problem]


def _number(rng: np.random.Generator, low: float, high: float) -> sp.Rational:
    """Return a number between two others, with two decimals."""
    return sp.Rational(round(100 * float(rng.uniform(low, high))), 100)


def _pick(rng: np.random.Generator, some: Sequence[Any]) -> Any:
    return some[int(rng.integers(len(some)))]


def _function(rng: np.random.Generator, where: Sequence[sp.Symbol], box: Any, *, mild: bool = False) -> sp.Expr:
    """Return a smooth function: waves, a peak, a front, a power or a fraction, alone or as a sum of two."""
    local = [
        sp.nsimplify((2 * s - (a + b)) / (b - a), rational=True)
        for s, (a, b) in zip(where, np.asarray(box), strict=True)
    ]
    away = sum((s - _number(rng, -0.7, 0.7)) ** 2 for s in local)
    along = sum(_number(rng, -1, 1) * s for s in local)
    wave = sp.prod([_pick(rng, (sp.sin, sp.cos))(_number(rng, 0.3, 3 if mild else 6) * s + 1) for s in local])
    smooth = [wave, sp.exp(along), 1 / (1 + away), (2 + along) ** 3, sp.cos(2 * along) + local[0]]
    sharp = [
        sp.exp(-_number(rng, 5, 60) * away),
        sp.tanh(_number(rng, 3, 20) * along),
        sp.sqrt(sp.Rational(1, 50) + away),
    ]
    every = smooth if mild else [*smooth, *smooth, *sharp]
    found = _pick(rng, every) + (_pick(rng, smooth) if rng.random() < 0.5 else 0)
    scale = 1 if mild or rng.random() < 0.7 else sp.Integer(10) ** int(rng.integers(-6, 7))
    return scale * (found + (_number(rng, -3, 3) if rng.random() < 0.4 else 0))


def _interval(rng: np.random.Generator) -> Any:
    start, size = _number(rng, -2, 2), _number(rng, 0.5, 3) * sp.Integer(10) ** int(_pick(rng, (0, 0, 0, -3, 3)))
    return pb.Interval((x, start, start + size))


def _rectangle(rng: np.random.Generator) -> Any:
    wide, high = _number(rng, 0.5, 2), _number(rng, 0.5, 2)
    return pb.Rectangle((x, 0, wide), (y, -1, -1 + high))


def _plane(rng: np.random.Generator) -> Any:
    """Return a domain in the plane."""
    disk = partial(pb.Disk, (x, y))
    around = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(4, 8)))) if rng.random() < 0.3 else None
    even = np.linspace(0, 2 * np.pi, int(rng.integers(3, 9)), endpoint=False) + 0.3
    angles = even if around is None or np.diff([*around, around[0] + 2 * np.pi]).max() > 2.2 else around
    corners = [
        (sp.Rational(round(100 * r * np.cos(a)), 100), sp.Rational(round(100 * r * np.sin(a)), 100))
        for a, r in zip(angles, rng.uniform(0.6, 1.2, len(angles)), strict=True)
    ]
    box = pb.Rectangle((x, -1, 1), (y, -1, 1))
    hole = disk((_number(rng, -0.3, 0.3), _number(rng, -0.3, 0.3)), _number(rng, 0.1, 0.5))
    notch = pb.Rectangle((x, 0, 2), (y, _number(rng, -0.5, 0.5), 2))
    return _pick(
        rng,
        (
            lambda: _rectangle(rng),
            lambda: disk((0, 0), 1),
            lambda: disk((0, 0), 1) - hole,
            lambda: pb.Polygon((x, y), corners),
            lambda: box - hole,
            lambda: box - notch,
            lambda: box | disk((1, 0), sp.Rational(4, 5)),
            lambda: box & disk((0, 0), sp.Rational(6, 5)),
        ),
    )()


def _space(rng: np.random.Generator) -> Any:
    """Return a domain in space."""
    box = pb.Box((x, -1, 1), (y, -1, 1), (z, 0, _number(rng, 0.7, 2)))
    ball = pb.Ball((x, y, z), (0, 0, 0), 1)
    return _pick(rng, (box, ball, box - pb.Ball((x, y, z), (0, 0, 0), sp.Rational(1, 2))))


def _conditions(rng: np.random.Generator, u: Any, exact: Any, domain: Any, *, needed: bool = True) -> list[Any]:
    """Return values on one part of the boundary and slopes, or both combined, on the rest."""
    known, slope, low = {u: exact}, pb.normal_derivative(u), domain.bounds[0]
    kind = int(rng.integers(4))
    if kind == 0 or (needed and len(domain.coordinates) == 1):
        return held(known)
    combined = told(_number(rng, 0.5, 3) * u + slope, known, domain)
    if kind == 1:
        return [combined]
    middle = float(np.mean(low))
    left = domain.boundary.where(lambda X: X[:, 0] < middle)
    right = domain.boundary.where(lambda X: X[:, 0] >= middle)
    return [*held(known, left), told(slope if kind == 2 else 2 * u + slope, known, domain, right)]


def _elliptic(rng: np.random.Generator, u: Any, domain: Any) -> Any:
    """Return a second-order operator that has one solution for values, slopes and combinations of both."""
    where, box = domain.coordinates, domain.bounds
    k = _pick(rng, (1, _number(rng, 0.1, 5), 2 + sp.sin(where[0]), sp.exp(_function(rng, where, box, mild=True) / 9)))
    drift = sum(_number(rng, -3, 3) * u.diff(s) for s in where) if rng.random() < 0.3 else 0
    decay = _pick(rng, (0, 0, _number(rng, 0, 20), 1 + where[0] ** 2)) * u
    # A drift may make it singular if only combinations of value and slope are given.
    return -pb.div([k * slope for slope in pb.grad(u)]) + decay + (drift if decay != 0 else 0)


def _steady(rng: np.random.Generator, shape: Callable[[np.random.Generator], Any]) -> pb.Problem:
    domain = shape(rng)
    u = pb.field("u", *domain.coordinates)
    exact = _function(rng, domain.coordinates, domain.bounds)
    return posed(_elliptic(rng, u, domain), {u: exact}, domain, _conditions(rng, u, exact, domain))


def _sound(rng: np.random.Generator) -> pb.Problem:
    domain, waves = _plane(rng), _number(rng, 1, 9)
    u = pb.field("u", x, y)
    return posed(pb.laplacian(u) + waves**2 * u, {u: _function(rng, (x, y), domain.bounds)}, domain)


def _bent(rng: np.random.Generator) -> pb.Problem:
    """Return a plate, or a beam, that is clamped all round."""
    domain = _pick(rng, (_interval, _rectangle))(rng)
    u = pb.field("w", *domain.coordinates)
    exact = _function(rng, domain.coordinates, domain.bounds, mild=True)
    slope = told(pb.normal_derivative(u), {u: exact}, domain)
    return posed(pb.laplacian(pb.laplacian(u)), {u: exact}, domain, [*held({u: exact}), slope])


def _nonlinear(rng: np.random.Generator) -> pb.Problem:
    """Return a nonlinear problem whose operator is monotone: it has one solution."""
    domain = _pick(rng, (_interval, _rectangle, _plane))(rng)
    u = pb.field("u", *domain.coordinates)
    exact = _function(rng, domain.coordinates, domain.bounds, mild=True)
    operators = (-pb.laplacian(u) + u**3, -pb.laplacian(u) + sp.exp(u / 9), -pb.laplacian(u) + u + sp.tanh(u))
    return posed(_pick(rng, operators), {u: exact}, domain, _conditions(rng, u, exact, domain))


def _coupled(rng: np.random.Generator) -> pb.Problem:
    domain = _pick(rng, (_interval, _plane))(rng)
    u, v = (pb.field(name, *domain.coordinates) for name in "uv")
    exact = {u: _function(rng, domain.coordinates, domain.bounds), v: _function(rng, domain.coordinates, domain.bounds)}
    a, b = _number(rng, 0.1, 3), _number(rng, 0.1, 3)
    return posed([-pb.laplacian(u) + u + a * v, -b * pb.laplacian(v) + v - a * u], exact, domain)


def _elastic(rng: np.random.Generator) -> pb.Problem:
    domain = _plane(rng)
    u, v = (pb.field(name, x, y) for name in "uv")
    exact = {of: _function(rng, (x, y), domain.bounds, mild=True) for of in (u, v)}
    steel = pb.stress([u, v], young=_pick(rng, (1, 210, 2 * 10**11)), poisson=_number(rng, 0.1, 0.45))
    return posed([pb.div(row) for row in steel.tolist()], exact, domain)


def _flow(rng: np.random.Generator) -> pb.Problem:
    """Return Stokes flow from a stream function, or Navier–Stokes flow."""
    domain = _plane(rng)
    u, v, p = (pb.field(name, x, y) for name in "uvp")
    stream, waves = _function(rng, (x, y), domain.bounds, mild=True), sp.sin(2 * x) * sp.cos(y)
    exact = {u: stream.diff(y), v: -stream.diff(x), p: waves}
    moves = rng.random() < 0.5
    pull = {of: u * of.diff(x) + v * of.diff(y) if moves else 0 for of in (u, v)}
    momentum = [-pb.laplacian(of) + pull[of] + p.diff(s) for of, s in ((u, x), (v, y))]
    level = pb.Condition(sp.Eq(p, waves), on=domain.sample(1, seed=3))
    return posed([*momentum, pb.div([u, v])], exact, domain, [*held({u: exact[u], v: exact[v]}), level])


def _course(rng: np.random.Generator) -> pb.Problem:
    """Return an evolution on a line: heat, reaction, Burgers' equation, waves, or transport from one end."""
    line, last = _interval(rng), _number(rng, 0.2, 2)
    domain = line * pb.TimeInterval(t, 0, last)
    u = pb.field("u", x, t)
    exact = _function(rng, (x, t), domain.bounds)
    size = sp.Rational(str(float(np.ptp(line.bounds)))) ** 2
    kind = int(rng.integers(5))
    operators = (
        u.diff(t) - _number(rng, 0.01, 1) * size * u.diff(x, 2),
        u.diff(t) - size * u.diff(x, 2) / 10 + u - _number(rng, -2, 2) * sp.sqrt(size) * u.diff(x),
        u.diff(t) + u * sp.sqrt(size) * u.diff(x) / 10 - size * u.diff(x, 2) / 20,
        u.diff(t, 2) - _number(rng, 0.2, 2) * size * u.diff(x, 2),
        u.diff(t) + _number(rng, 0.1, 1) * sp.sqrt(size) * u.diff(x) + u,
    )
    if kind == 2:
        exact = _function(rng, (x, t), domain.bounds, mild=True)
    known = {u: exact}
    ends = held(known, line.left) if kind == 4 else held(known, line.left | line.right)
    return posed(operators[kind], known, domain, [*ends, *begun(known, domain, 2 if kind == 3 else 1)])


def _ordinary(rng: np.random.Generator) -> pb.Problem:
    """Return an ordinary differential equation from a start: linear or not, of first or second order, or a pair."""
    domain = pb.Interval((t, 0, _number(rng, 0.5, 6)))
    u, v = pb.field("u", t), pb.field("v", t)
    exact = _function(rng, (t,), domain.bounds, mild=True)
    kind = int(rng.integers(4))
    start = [pb.Dirichlet(u, exact.subs(t, 0), on=domain.left)]
    if kind == 3:
        other = _function(rng, (t,), domain.bounds, mild=True)
        pair = {u: exact, v: other}
        return posed([u.diff(t) + u - v, v.diff(t) + 2 * v + sp.sin(u)], pair, domain, held(pair, domain.left))
    operators = (u.diff(t) + _number(rng, -1, 5) * u, u.diff(t) + u**3, u.diff(t, 2) + _number(rng, 0, 30) * u)
    if kind == 2:
        start.append(told(u.diff(t), {u: exact}, domain, domain.left))
    return posed(operators[kind], {u: exact}, domain, start)


def _in_time(rng: np.random.Generator) -> pb.Problem:
    """Return an evolution in the plane: heat, reaction or waves."""
    shape = _pick(rng, (_rectangle, _plane))(rng)
    domain = shape * pb.TimeInterval(t, 0, _number(rng, 0.2, 1))
    u = pb.field("u", x, y, t)
    exact = _function(rng, (x, y, t), domain.bounds, mild=True)
    kind = int(rng.integers(3))
    operators = (
        u.diff(t) - _number(rng, 0.1, 1) * pb.laplacian(u),
        u.diff(t) - pb.laplacian(u) / 5 + u**3 - u,
        u.diff(t, 2) - pb.laplacian(u),
    )
    known = {u: exact}
    return posed(operators[kind], known, domain, [*held(known), *begun(known, domain, 2 if kind == 2 else 1)])


def _layered(rng: np.random.Generator) -> pb.Problem:
    """Return convection or reaction with a thin layer at one end, on a line or on a rectangle."""
    domain = _pick(rng, (_interval, _rectangle))(rng)
    (low, high), u = domain.bounds[0], pb.field("u", *domain.coordinates)
    width = sp.Rational(str(float(high - low)))
    thin = sp.Integer(10) ** -int(rng.integers(1, 6))
    edge = sp.exp((x - sp.Rational(str(float(high)))) / (thin * width))
    across = sp.cos(y) if len(domain.coordinates) > 1 else 1
    exact = _function(rng, domain.coordinates, domain.bounds, mild=True) + edge * across
    operators = (
        -thin * width * pb.laplacian(u) + u.diff(x),
        -((thin * width) ** 2) * pb.laplacian(u) + u,
        -thin * width * pb.laplacian(u) + u.diff(x) + u / width,
    )
    return posed(_pick(rng, operators), {u: exact}, domain)


def _cornered(rng: np.random.Generator) -> pb.Problem:
    """Return Laplace's or Poisson's equation with a power of the distance from a re-entrant corner."""
    turn = _number(rng, 3.3, 6)
    angles = [turn * k / 4 for k in range(5)]
    around = [
        (sp.Rational(str(round(float(sp.cos(w)), 3))), sp.Rational(str(round(float(sp.sin(w)), 3)))) for w in angles
    ]
    (a, b), (c, d) = around[0], around[-1]
    opening = float(np.arctan2(float(d), float(c)) % (2 * np.pi) - np.arctan2(float(b), float(a)))
    power = sp.pi / sp.Float(opening, 20)
    singular = (x**2 + y**2) ** (power / 2) * sp.cos(power * _turned(opening))
    u = pb.field("u", x, y)
    exact = singular + (_function(rng, (x, y), [[-1, 1], [-1, 1]], mild=True) if rng.random() < 0.5 else 0)
    return posed(-pb.laplacian(u), {u: exact}, pb.Polygon((x, y), [(0, 0), *around]))


def _turned(opening: float) -> sp.Expr:
    """Return the angle at the origin from the middle of a sector that begins on the first axis."""
    half = sp.Float(opening / 2, 20)
    return sp.atan2(y * sp.cos(half) - x * sp.sin(half), x * sp.cos(half) + y * sp.sin(half))


def _materials(rng: np.random.Generator) -> pb.Problem:
    """Return two materials that meet at a plane or a circle; the flux is continuous, and the value is zero there."""
    one, two = _number(rng, 0.5, 2), _number(rng, 0.5, 2) * sp.Integer(10) ** int(rng.integers(-3, 4))
    line = rng.random() < 0.4
    domain = pb.Interval((x, 0, 1)) if line else pb.Rectangle((x, -1, 1), (y, -1, 1))
    where, box = domain.coordinates, domain.bounds
    place = _number(rng, 0.3, 0.7)
    level = x - place if line or rng.random() < 0.5 else x**2 + y**2 - place**2
    smooth = level * _function(rng, where, box, mild=True)
    u, k = pb.field("u", *where), sp.Piecewise((one, level < 0), (two, True))
    exact = sp.Piecewise((smooth / one, level < 0), (smooth / two, True))
    source = sum(smooth.diff(s, 2) for s in where)
    return pb.Problem(sp.Eq(pb.div([k * s for s in pb.grad(u)]), source), domain, [pb.Dirichlet(u, exact)], exact=exact)


def _carried(rng: np.random.Generator) -> pb.Problem:
    """Return steady transport across a rectangle, given where it enters."""
    domain, u = _rectangle(rng), pb.field("u", x, y)
    speed, up = _number(rng, 0.3, 2), _number(rng, 0.3, 2)
    exact = _function(rng, (x, y), domain.bounds)
    conditions = held({u: exact}, domain.left | domain.bottom)
    return posed(speed * u.diff(x) + up * (1 + x**2) * u.diff(y) + u, {u: exact}, domain, conditions)


def _periodic(rng: np.random.Generator) -> pb.Problem:
    """Return an evolution on a circle."""
    line = pb.Interval((x, 0, 2 * sp.pi))
    domain, u = line * pb.TimeInterval(t, 0, _number(rng, 0.3, 2)), pb.field("u", x, t)
    exact = sp.sin(int(rng.integers(1, 4)) * x + t) * sp.exp(-t / 3) + sp.cos(x - _number(rng, 0, 2) * t)
    operators = (
        u.diff(t) + _number(rng, -2, 2) * u.diff(x),
        u.diff(t) - _number(rng, 0.05, 1) * u.diff(x, 2),
        u.diff(t) + u * u.diff(x) - u.diff(x, 2) / 5,
        u.diff(t) + u.diff(x, 3),
    )
    return posed(_pick(rng, operators), {u: exact}, domain, [pb.Periodic(u, x), *begun({u: exact}, domain)])


def _quantum(rng: np.random.Generator) -> pb.Problem:
    """Return Schrödinger's equation on a line, as two real fields."""
    line = pb.Interval((x, -2, 2))
    domain = line * pb.TimeInterval(t, 0, _number(rng, 0.3, 1.5))
    u, v = (pb.field(name, x, t) for name in "uv")
    exact = {of: _function(rng, (x, t), domain.bounds, mild=True) for of in (u, v)}
    well = _pick(rng, (0, x**2, 3 * sp.cos(x)))
    equations = [u.diff(t) + v.diff(x, 2) / 2 - well * v, v.diff(t) - u.diff(x, 2) / 2 + well * u]
    return posed(equations, exact, domain, [*held(exact, line.left | line.right), *begun(exact, domain)])


def _reacting(rng: np.random.Generator) -> pb.Problem:
    """Return two substances that diffuse and react, on a line or in the plane, in time."""
    shape = _pick(rng, (_interval, _rectangle))(rng)
    domain = shape * pb.TimeInterval(t, 0, _number(rng, 0.2, 1))
    where = domain.coordinates
    u, v = (pb.field(name, *where) for name in "uv")
    exact = {of: 2 + _function(rng, where, domain.bounds, mild=True) / 4 for of in (u, v)}
    size = sp.Rational(str(float(np.ptp(shape.bounds[0])))) ** 2
    rates = u * v**2 / 5, sp.sin(u) + v
    operators = [
        u.diff(t) - size * pb.laplacian(u) / 20 + rates[0],
        v.diff(t) - size * pb.laplacian(v) / 7 + rates[1],
    ]
    return posed(operators, exact, domain, [*held(exact), *begun(exact, domain)])


def _loaded(rng: np.random.Generator) -> pb.Problem:
    """Return an elastic body that is held on one side and loaded on the others, in the plane or in space."""
    space = rng.random() < 0.25
    domain = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) if space else _plane(rng)
    where = domain.coordinates
    fields = [pb.field(name, *where) for name in "uvw"[: len(where)]]
    exact = {of: _function(rng, where, domain.bounds, mild=True) for of in fields}
    steel = pb.stress(fields, young=_pick(rng, (1, 70)), poisson=_number(rng, 0.15, 0.4))
    middle = float(np.mean(domain.bounds[0]))
    left = domain.boundary.where(lambda X: X[:, 0] < middle)
    right = domain.boundary.where(lambda X: X[:, 0] >= middle)
    normals = pb.normal(*where)
    pulls = [sum(steel[i, j] * normals[j] for j in range(len(where))) for i in range(len(where))]
    conditions = [*held(exact, left), *(told(pull, exact, domain, right) for pull in pulls)]
    return posed([pb.div(row) for row in steel.tolist()], exact, domain, conditions)


def _scaled(rng: np.random.Generator) -> pb.Problem:
    """Return heat in a rectangle in units that make numbers very large or small."""
    length, unit = sp.Integer(10) ** int(rng.integers(-6, 5)), sp.Integer(10) ** int(rng.integers(-9, 10))
    domain = pb.Rectangle((x, 0, length), (y, 0, _number(rng, 0.2, 2) * length))
    u = pb.field("u", x, y)
    exact = unit * _function(rng, (x, y), domain.bounds, mild=True)
    k = sp.Integer(10) ** int(rng.integers(-8, 9))
    return posed(-k * pb.laplacian(u), {u: exact}, domain, _conditions_in_units(u, exact, domain, k, length))


def _conditions_in_units(u: Any, exact: Any, domain: Any, k: Any, length: Any) -> list[Any]:
    known, flow = {u: exact}, k * pb.normal_derivative(u)
    cooled = told(flow + k / length * u, known, domain, domain.right)
    return [*held(known, domain.left), cooled, told(flow, known, domain, domain.top | domain.bottom)]


KINDS: dict[str, tuple[int, Draw]] = {
    "line": (2, partial(_steady, shape=_interval)),
    "rectangle": (2, partial(_steady, shape=_rectangle)),
    "plane": (4, partial(_steady, shape=_plane)),
    "space": (1, partial(_steady, shape=_space)),
    "sound": (2, _sound),
    "bent": (1, _bent),
    "nonlinear": (2, _nonlinear),
    "coupled": (1, _coupled),
    "elastic": (1, _elastic),
    "flow": (1, _flow),
    "course": (3, _course),
    "ordinary": (2, _ordinary),
    "in_time": (1, _in_time),
    "layered": (2, _layered),
    "cornered": (2, _cornered),
    "materials": (2, _materials),
    "carried": (1, _carried),
    "periodic": (1, _periodic),
    "quantum": (1, _quantum),
    "reacting": (1, _reacting),
    "loaded": (1, _loaded),
    "scaled": (2, _scaled),
}


def drawn_case(number: int) -> Case:
    """Return the case of a number."""
    rng = np.random.default_rng((number, 20261118))
    shares = np.array([share for share, _ in KINDS.values()], dtype=float)
    kind = str(rng.choice(list(KINDS), p=shares / shares.sum()))
    tol = float(rng.choice(TOLERANCES))
    # Every problem is drawn anew when it is built, from a generator of its own.
    build = partial(KINDS[kind][1], np.random.default_rng((number, 1)))
    return Case(f"drawn_{number}", build, exact_error, kind, (tol,), (number % 3,))
