"""Expressions at points, with their errors there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import GeometryError, InputError
from pibls.geometry.sampling import kronecker
from pibls.problem.field_expressions import Expression
from pibls.quantities.nearby import boxes_around
from pibls.quantities.pair import SolutionPair
from pibls.quantities.quantity import Quantity
from pibls.solution.field_functions import gather, inside_of

_AROUND = 8  # points of a box that tell how far two solutions are apart in it, and its functions along an axis


@dataclass(frozen=True, eq=False)
class ValueFunction:
    """An expression of a solution as a function of points; call it like the solution."""

    pair: SolutionPair
    expression: Expression
    name: str
    imaginary: ValueFunction | None = None  # the imaginary part of a complex expression

    def __call__(self, *points: Any, outside: str = "nan", **named: Any) -> Any:
        """Evaluate; points outside the domain give NaN, unless ``outside`` is ``"value"`` or ``"error"``."""
        real = self._of(points, outside, named, error=False)
        return real if self.imaginary is None else real + 1j * self.imaginary(*points, outside=outside, **named)

    def error(self, *points: Any, outside: str = "nan", **named: Any) -> FloatArray:
        """Return the estimated absolute errors at points; NaN where there is no richer solution to tell them."""
        real = self._of(points, outside, named, error=True)
        return (
            real if self.imaginary is None else np.hypot(real, self.imaginary.error(*points, outside=outside, **named))
        )

    @property
    def quantity(self) -> Quantity:
        """The value and error of an expression at a point, such as ``u.subs({x: 0, y: 1})``."""
        own, solution = self.expression, self.pair.solution
        places = {pins for _, _, pins in own.slots.values()}
        if own.free or own.sides or own.needs_normals or len(places) != 1 or self.imaginary is not None:
            point = ", ".join(f"{name}: 0" for name in solution.coordinate_names)
            raise InputError(
                f"The value of {self.name} is no single number. Take it at one point, as with .subs({{{point}}}), or "
                "ask for its mean, integral, maximum or minimum."
            )
        # At the point itself cells tell how large the error is.
        X = np.array([[number for _, number in places.pop()]])
        slots = {symbol: (name, index, ()) for symbol, (name, index, _) in own.slots.items()}
        free = replace(self, expression=replace(own, slots=slots))
        if not inside_of(solution, X, "nan", f"value of {self.name}").all():
            raise InputError(f"The value of {self.name} is asked for at {X[0].tolist()}, which is outside the domain.")
        return self.pair.quantity(float(free(X)[0]), float(free.error(X)[0]))

    def _of(self, given: tuple[Any, ...], outside: str, named: dict[str, Any], *, error: bool) -> FloatArray:
        solution = self.pair.solution
        points, shaped = gather(solution.coordinate_names, given, named, f"value of {self.name}")
        mask = inside_of(solution, points, outside, f"value of {self.name}")
        found, own = np.full(len(points), np.nan), points[mask]
        if len(own):
            normals = self._normals(own)
            found[mask] = (
                errors_at(self.pair, self.expression, own, normals)
                if error
                else self.pair.values(solution, self.expression, own, normals, None if normals is None else -normals)
            )
        return shaped(found)

    def _normals(self, X: FloatArray) -> FloatArray | None:
        if not self.expression.needs_normals:
            return None
        try:
            return np.asarray(self.pair.solution.problem.domain.boundary.normals(X))
        except GeometryError as error:
            raise InputError(f"The value of {self.name} needs outward normals: {error}") from error

    def __repr__(self) -> str:
        return f"Value({self.name})"


def errors_at(
    pair: SolutionPair,
    expression: Expression,
    X: FloatArray,
    normals: FloatArray | None = None,
    inward: FloatArray | None = None,
) -> FloatArray:
    """Return the errors of an expression at points: the distance to the richer solution, there or on average nearby.

    At a point both may cross, and be wrong all the same.
    """
    if pair.richer is None:
        return np.full(len(X), np.nan)
    inward = inward if normals is None else -normals
    own, other = pair.compared(expression, X, normals, inward)
    apart, size = np.abs(own - other), np.abs(own)
    if not expression.needs_normals:
        domain = pair.solution.problem.domain
        boxes, number = boxes_around(pair.richer.network, X, domain.bounds, _AROUND)
        pattern = 2.0 * kronecker(_AROUND, X.shape[1]) - 1.0
        Y = boxes.mean(axis=2)[:, None] + np.ptp(boxes, axis=2)[:, None] / 2 * pattern
        Y = Y.reshape(-1, X.shape[1])
        held = np.asarray(domain.contains(Y))
        squares = np.zeros((len(Y), 2))
        one, two = pair.compared(expression, Y[held])
        squares[held] = np.stack([np.square(one - two), np.square(one)], axis=1)
        count = np.maximum(held.reshape(len(boxes), -1).sum(axis=1), 1)
        nearby = np.sqrt(squares.reshape(len(boxes), -1, 2).sum(axis=1) / count[:, None])[number]
        apart, size = np.maximum(apart, nearby[:, 0]), np.maximum(size, nearby[:, 1])
    return np.asarray(pair.error(apart, size))
