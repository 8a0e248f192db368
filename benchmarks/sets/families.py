"""Members of well-known families of problems for adaptive methods.

Peaks, layers, fronts, oscillations towards a point, singular lines, kinks and corners, narrow and wide.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.sets.held_out import SQUARE, WIDE, R, u, x, y


def minus_laplacian(w: sp.Expr) -> sp.Expr:
    return -w.diff(x, 2) - w.diff(y, 2)


def _made(exact: sp.Expr, domain: object, operator: Callable[[sp.Expr], sp.Expr] = minus_laplacian) -> pb.Problem:
    return pb.Problem(sp.Eq(operator(u), operator(exact)), domain, [pb.Dirichlet(u, exact)], exact=exact)


def peak(steepness: int, cx: sp.Expr, cy: sp.Expr) -> pb.Problem:
    """Return Poisson's equation for a Gaussian."""
    return _made(sp.exp(-steepness * ((x - cx) ** 2 + (y - cy) ** 2)), SQUARE)


def layer(width: sp.Expr) -> pb.Problem:
    """Return convection with little diffusion, and layers at two sides."""
    exact = (1 - sp.exp(-(1 - x) / width)) * (1 - sp.exp(-(1 - y) / width)) * sp.cos(sp.pi * (x + y))
    return _made(exact, WIDE, lambda w: width * minus_laplacian(w) + 2 * w.diff(x) + w.diff(y))


def front(steepness: int, cx: sp.Expr, cy: sp.Expr, radius: sp.Expr) -> pb.Problem:
    """Return Poisson's equation for a circular front."""
    return _made(sp.atan(steepness * (sp.sqrt((x - cx) ** 2 + (y - cy) ** 2) - radius)), SQUARE)


def oscillation(offset: sp.Expr) -> pb.Problem:
    """Return a wave equation whose solution oscillates faster and faster towards a corner."""
    r = sp.sqrt(x**2 + y**2)
    return _made(sp.sin(1 / (offset + r)), SQUARE, lambda w: minus_laplacian(w) - w / (offset + r) ** 4)


def corner(turns: sp.Expr, beside: sp.Expr = sp.S.Zero) -> pb.Problem:
    """Return Poisson's equation on a square less a wedge: singular at the re-entrant corner, and what is beside it."""
    angle = turns * sp.pi
    power, polar = sp.pi / angle, sp.atan2(y, x)
    turn = sp.Piecewise((polar, polar >= 0), (polar + 2 * sp.pi, True))
    exact = (x**2 + y**2) ** (power / 2) * sp.sin(power * turn) + beside
    directions = [0.0, *np.arange(np.pi / 4, float(angle) - 1e-9, np.pi / 4), float(angle)]
    points = [(0.0, 0.0)]
    for a in directions:
        reach = max(abs(np.cos(a)), abs(np.sin(a)))
        points.append((float(np.cos(a) / reach), float(np.sin(a) / reach)))
    wedge = pb.Polygon((x, y), points)
    equation = sp.Eq(-pb.laplacian(u), minus_laplacian(beside))
    return pb.Problem(equation, wedge, [pb.Dirichlet(u, exact)], exact=exact)


def kink(slope: sp.Expr, power: sp.Expr) -> pb.Problem:
    """Return a solution that is rough along a slanted line."""
    edge, smooth = slope * (y + 1), sp.cos(sp.pi * y / 2)
    return _made(sp.Piecewise((smooth, x <= edge), (smooth + (x - edge) ** power, True)), WIDE)


PEAK = sp.exp(-1000 * ((x + R(1, 2)) ** 2 + (y - R(2, 5)) ** 2))
FRONT = sp.atan(20 * (sp.sqrt((x - R(3, 2)) ** 2 + (y - R(3, 2)) ** 2) - R(3, 2)))

families: dict[str, Callable[[], pb.Problem]] = {
    "peak 1e3": lambda: peak(1000, R(37, 100), R(61, 100)),
    "peak 1e5": lambda: peak(100000, R(51, 100), R(117, 1000)),
    "layer 1e-1": lambda: layer(R(1, 10)),
    "layer 1e-2": lambda: layer(R(1, 100)),
    "layer 1e-3": lambda: layer(R(1, 1000)),
    "front 20": lambda: front(20, R(-1, 20), R(-1, 20), R(7, 10)),
    "front 50": lambda: front(50, R(1, 2), R(1, 2), R(1, 4)),
    "front 200": lambda: front(200, R(-1, 20), R(-1, 20), R(7, 10)),
    "front 1000": lambda: front(1000, R(-1, 20), R(-1, 20), R(7, 10)),
    "oscillation 1/10π": lambda: oscillation(1 / (10 * sp.pi)),
    "oscillation 1/50π": lambda: oscillation(1 / (50 * sp.pi)),
    "x^0.6": lambda: _made(x ** R(3, 5), SQUARE),
    "kink": lambda: kink(R(3, 5), R(5, 2)),
    "corner 5/4 π": lambda: corner(R(5, 4)),
    "corner 3/2 π": lambda: corner(R(3, 2)),
    "corner 7/4 π": lambda: corner(R(7, 4)),
    "corner 2π": lambda: corner(R(199, 100)),
    "corner 5/4 π, peak, front": lambda: corner(R(5, 4), PEAK + FRONT),
    "corner 3/2 π, peak, front": lambda: corner(R(3, 2), PEAK + FRONT),
    "corner 7/4 π, peak, front": lambda: corner(R(7, 4), PEAK + FRONT),
}
