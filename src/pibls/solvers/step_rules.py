"""Steps of a nonlinear least-squares iteration: the linear model at a point, and how far to follow it.

A rule is composed with a direction: the same direction can be taken whole, shortened, or damped.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

from pibls.errors import PiblsError
from pibls.solvers.base import Solver
from pibls.solvers.constrained import factorise_constrained
from pibls.solvers.dense import EPS, Array, array_namespace
from pibls.solvers.inputs import column_norms
from pibls.system import System

__all__ = [
    "FullStep",
    "LineSearch",
    "Model",
    "NOT_WORTH",
    "Point",
    "StepRule",
    "Tangent",
    "Trial",
    "TrustRegion",
    "norm",
]

# Where shortening a step does not help, and no larger share of the residual could be removed, damping does not help.
NOT_WORTH = 0.3
_EXACTING = 1e3


class Model(Protocol):
    """What is to be solved: residuals of rows, and the linear system of a step."""

    def residual(self, weights: Array) -> tuple[Array, Array]:
        """Return the residual of least-squares rows, and of rows that must vanish exactly."""
        ...

    def system(self, weights: Array) -> System:
        """Return the system J d = −r whose solution is the step from weights."""
        ...


@dataclass(frozen=True, eq=False)
class Point:
    """Weights and their residual."""

    weights: Array
    soft: Array
    hard: Array

    @classmethod
    def of(cls, model: Model, weights: Array) -> Point | None:
        """Evaluate the residual; None where it has no finite value."""
        try:
            soft, hard = model.residual(weights)
        except PiblsError:
            # A trial step may leave the domain of a logarithm or overflow an exponential.
            return None
        point = cls(weights, soft, hard)
        return point if point.norm < float("inf") else None

    @cached_property
    def norm(self) -> float:
        """Norm of the residual, rows that must vanish counted many times; infinite where it is not a number."""
        total = (norm(self.soft) ** 2 + self.violation**2) ** 0.5
        return total if total == total else float("inf")

    @cached_property
    def violation(self) -> float:
        """Norm of the rows that must vanish, counted many times."""
        return _EXACTING * norm(self.hard)

    def removable(self, image: Array) -> float:
        """Return the size of what a step of image J d would remove, rows that must vanish included."""
        return float((norm(image) ** 2 + self.violation**2) ** 0.5)


@dataclass(frozen=True, eq=False)
class Tangent:
    """The linear model at a point, factorised."""

    system: System
    solver: Solver
    damping: float = 0.0

    @cached_property
    def factor(self) -> Any:
        """The factorisation, with rows √μ D for a damping μ and D the column norms."""
        matrix = self.system.matrix
        if self.system.constraints is not None:
            return factorise_constrained(self.solver, matrix, self.system.constraints)
        ridge: Any = 0.0
        if self.damping > 0:
            ridge = self.damping * column_norms(matrix, "gauss_newton") ** 2
        return self.solver.factorise(matrix, ridge=ridge)

    def rounding(self, weights: Array) -> float:
        """Return the size of the rounding errors in a residual of such weights."""
        xp = array_namespace(self.system.matrix)
        return 0.5 * EPS * float(xp.linalg.matrix_norm(self.system.matrix)) * norm(weights)

    def damped(self, damping: float) -> Tangent:
        """Return the same model with another damping, to be factorised anew."""
        return replace(self, damping=damping)

    def step(self, here: Point) -> tuple[Array, Array]:
        """Return the step d from a point, and J d.

        Solved for are the weights after the step, not the step itself: they have minimal norm then, and large weights
        that early, rough states needed do not stay for ever in directions that later steps cannot see.
        """
        system = self.system
        if system.constraints is not None:
            goals = (system.matrix @ here.weights - here.soft, system.constraints @ here.weights - here.hard)
            step = self.factor.solve(*goals) - here.weights
            return step, system.matrix @ step
        if self.damping > 0:
            return self.correction(here)
        goal, rest = self.factor.weights_and_residual(system.matrix @ here.weights - here.soft)
        return goal - here.weights, -here.soft - rest

    def correction(self, here: Point) -> tuple[Array, Array]:
        """Return the shortest step from a point, and J d; there can be no rows that must vanish.

        Small corrections carry smaller rounding errors than weights: this refines a solution to its last digit.
        """
        step, rest = self.factor.weights_and_residual(-here.soft)
        return step, -here.soft - rest


@dataclass(frozen=True, eq=False)
class Trial:
    """An accepted step: where it leads, its length, the tangent it used, and what the whole step would remove."""

    point: Point
    length: float
    tangent: Tangent
    removable: float


class StepRule(Protocol):
    """How far to go along a direction."""

    def advance(self, model: Model, here: Point, tangent: Tangent) -> Trial | None:
        """Return an accepted step, or None if there is none."""
        ...


@dataclass(frozen=True)
class FullStep:
    """Take the whole step wherever it leads: Newton's method, for starts close to the solution."""

    def advance(self, model: Model, here: Point, tangent: Tangent) -> Trial | None:
        """Return the full step if the residual there is finite."""
        step, image = tangent.step(here)
        point = Point.of(model, here.weights + step)
        return None if point is None else Trial(point, 1.0, tangent, here.removable(image))


@dataclass(frozen=True)
class LineSearch:
    """Shorten the step until the residual falls by a share of what the linear model promises.

    Parameters
    ----------
    sufficient
        That share.
    shrink
        Factor between trial lengths.
    shortest
        Length at which the search gives up.
    """

    sufficient: float = 1e-2
    shrink: float = 0.4
    shortest: float = 2e-2

    def advance(self, model: Model, here: Point, tangent: Tangent) -> Trial | None:
        """Return the longest step of the sequence that is accepted."""
        step, image = tangent.step(here)
        length = 1.0
        while length >= self.shortest:
            point = Point.of(model, here.weights + length * step)
            if point is not None and _falls(here, point, _predicted(here, length * image), self.sufficient):
                return Trial(point, length, tangent, here.removable(image))
            length *= self.shrink
        return None


@dataclass(frozen=True)
class TrustRegion:
    """Damp the step (Levenberg–Marquardt) until the residual falls by a share of what the damped model promises.

    Parameters
    ----------
    sufficient
        That share.
    dampings
        Dampings to try, relative to the column norms.
    """

    sufficient: float = 1e-3
    dampings: tuple[float, ...] = (1e-8, 1e-5, 1e-2)

    def advance(self, model: Model, here: Point, tangent: Tangent) -> Trial | None:
        """Return the step of the smallest damping that is accepted."""
        hopeless = here.removable(tangent.step(here)[1]) <= NOT_WORTH * here.norm
        if hopeless or tangent.system.constraints is not None:
            return None
        for damping in self.dampings:
            damped = tangent.damped(damping)
            step, image = damped.step(here)
            point = Point.of(model, here.weights + step)
            if point is not None and _falls(here, point, _predicted(here, image), self.sufficient):
                return Trial(point, 1.0, damped, here.removable(image))
        return None


def norm(array: Array) -> float:
    """Return the Euclidean norm of a vector."""
    return float(array_namespace(array).linalg.vector_norm(array))


def _predicted(here: Point, image: Array) -> float:
    """Return the squared norm that the linear model promises after a step."""
    return norm(here.soft + image) ** 2


def _falls(here: Point, there: Point, predicted: float, share: float) -> bool:
    promised = max(0.0, here.norm**2 - predicted)
    return there.norm < here.norm and here.norm**2 - there.norm**2 >= share * promised
