"""Sizes of jumps that a wave equation carries: along a characteristic, and from one to another on the boundary.

A jump is the value to the right of a characteristic less that to its left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.problem.characteristic_curves import Directions, Traced, graph
from pibls.problem.evaluate import compile_function
from pibls.problem.lowering import Form
from pibls.quadrature.roots import ROUNDING, SCAN
from pibls.quadrature.rules import gauss

Given = tuple[Form, float]
"""A condition, and the jump of its right-hand side."""


def carried_size(equation: Form, family: Directions, curve: Traced, since: float, size: float) -> sp.Expr:
    """Return a jump along a characteristic, as an expression of time, from its size at a time.

    For a u_xx + m u_xt + e u_tt + b u_x + d u_t + … it grows along x = X(t), X' = c, at the rate
    (∂ₓa − c ∂ₓm + c² ∂ₓe + e X'' − b + c d) / (m − 2 c e), since no term may be as singular as its slope.

    >>> import pibls as pb
    >>> x, t = pb.coordinates("x t")
    >>> u, line = pb.field("u", x, t), pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    >>> form = pb.Problem(u.diff(t, 2) + 3 * u.diff(t) - u.diff(x, 2), line, [pb.Dirichlet(u, 0)]).statements[0].form
    >>> carried_size(form, Directions((sp.S.One, sp.S.One), line), Traced(x - t), 0.0, 2.0)
    2.0*exp(-3*t/2)
    """
    if not size:
        return sp.S.Zero
    (x, t), c = equation.coordinates, family.slopes[0]
    found = {term.multi_index: term.coefficient for term in equation.terms}
    a, m, e, b, d = (found.get(index, sp.S.Zero) for index in ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1)))
    spread = a.diff(x) - c * m.diff(x) + c**2 * e.diff(x) + e * (c.diff(t) + c * c.diff(x))
    rate = (spread - b + c * d) / (m - 2 * c * e)
    start = sp.Float(since) if since else sp.S.Zero
    if not rate.free_symbols & {x, t}:
        return size * sp.exp(rate * (t - start))
    rates, course = compile_function(rate, (x, t)), compile_function(x - curve.level, (x, t))
    nodes, weights = gauss(SCAN)

    def grown(times: FloatArray) -> FloatArray:
        """Return the logarithm of the growth until some times."""
        spans = np.asarray(times) - since
        X = np.stack(np.broadcast_arrays(0.0, since + spans[:, None] * nodes), axis=-1).reshape(-1, 2)
        X[:, 0] = course(X)
        return np.asarray(spans * (rates(X).reshape(len(spans), -1) @ weights))

    until = float(family.domain.bounds[1, 1]) if curve.end is None else float(curve.end[1])
    return size * sp.exp(graph(grown, since, until, t, ROUNDING))


def entering_sizes(
    families: Sequence[Directions],
    place: FloatArray,
    normal: FloatArray,
    given: Sequence[Given],
    incoming: Iterable[tuple[Directions, float]] = (),
) -> list[float]:
    """Return the jumps along the characteristics that enter at a place of the boundary.

    No slope that is given there may be infinite, and no value may jump by anything but what is prescribed.
    """

    def row(family: Directions) -> FloatArray:
        """Return the change of each condition by a jump of size one along a family."""
        speed, found = float(family.at(place[None])[0, 0]), []
        # At an end of the interval a wave passes by in time, of which the slope of the characteristic is the unit.
        passing, pace = (1.0, 1.0) if normal[1] else (-np.sign(speed), abs(speed))
        for form, _ in given:
            values = [f(place[None], normal[None])[0] for f in form.coefficient_functions]
            factors = {term.multi_index: value for term, value in zip(form.terms, values, strict=True)}
            slope = (factors.get((1, 0), 0.0) - speed * factors.get((0, 1), 0.0)) / pace
            found.append(passing * factors.get((0, 0), 0.0) if form.order == 0 else slope)
        return np.array(found)

    right = np.array([jump if form.order == 0 else 0.0 for form, jump in given])
    right = right - sum((size * row(family) for family, size in incoming), np.zeros(len(given)))
    if not len(given) or not len(families):
        return [0.0] * len(families)
    return [float(size) for size in np.linalg.lstsq(np.stack([row(own) for own in families], axis=1), right)[0]]
