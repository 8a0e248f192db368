"""Sensitivities: the fields of a solution, and their derivative by every unknown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from pibls.budget import Budget
from pibls.checks import FloatArray
from pibls.inverse.parametric import Parametric
from pibls.problem import AtPoints, Averages, MultiIndex, Statement
from pibls.solution import Solution
from pibls.solution.posterior import Posterior


class Response(Protocol):
    """The fields at some values of the unknowns, and how they answer to small changes of these."""

    @property
    def is_aged(self) -> bool:
        """Whether the sensitivities are those at other values nearby."""

    def evaluate(self, X: FloatArray, indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at points, shape (n, 1 + unknowns, fields): the fields first, then their sensitivities."""


@dataclass(frozen=True, eq=False)
class Forward(ABC):
    """Solves a problem for values of its unknowns near those that its cells or features were made for."""

    parametric: Parametric
    # solution, vector: the solution that cells or features were made for, with its error estimate, and the unknowns
    # there
    solution: Solution
    vector: FloatArray
    tol: float  # what was asked of it
    budget: Budget  # what may be spent

    finest: ClassVar[float]  # the smallest tolerance that is worth its price

    @property
    def error(self) -> float:
        """How wrong solutions made with it may be, as a share of their size; infinite if that is not known."""
        return np.inf if self.solution.error_estimate is None else self.solution.error_estimate

    @property
    def is_spent(self) -> bool:
        """Whether there is no more work to spend."""
        return self.budget.left == 0.0 or bool(self.budget.late)

    @abstractmethod
    def respond(self, vector: FloatArray, near: Any = None) -> Response:
        """Return the solution and its sensitivities, from a response nearby if that is of any use here."""

    @abstractmethod
    def banded(self, response: Any, factor: FloatArray, known: Any) -> tuple[Any, Posterior]:
        """Return a response as a network with nodes for its uncertainty, from a factor of the covariance.

        The first column is the move of unknowns that errors of the fields make, which these have themselves; the last
        is for what lies beyond all that fields are made of.
        """


class Predicted(NamedTuple):
    """Predicted measurements, and their derivative by the unknowns."""

    values: FloatArray
    slopes: FloatArray


def of_fields(
    parametric: Parametric, statement: Statement, response: Response, vector: FloatArray, X: FloatArray
) -> tuple[list[FloatArray], FloatArray]:
    """Return all terms of a statement and the numbers at points, and the change of its residual by fields alone."""
    dependence, normals = parametric.dependence(statement.form), getattr(statement.place, "normals", None)
    found = response.evaluate(X, dict.fromkeys(index for _, index in dependence.wanted))
    terms = [found[index][:, :, parametric.names.index(name)] for name, index in dependence.wanted]
    values = dependence.values(X, [own[:, 0] for own in terms], vector)
    slopes = [f for t, f in zip(dependence.terms, dependence.by_term, strict=True) if t.field in parametric.names]
    pairs = zip(slopes, terms, strict=True)
    return values, np.asarray(sum(function(X, normals, values)[:, None] * own[:, 1:] for function, own in pairs))


def predicted(
    parametric: Parametric,
    statement: Statement,
    response: Response,
    vector: FloatArray,
    elsewhere: FloatArray | None = None,
) -> Predicted:
    """Return the predictions of a response for one set of measurements, or for the same at other points."""
    place, dependence = statement.place, parametric.dependence(statement.form)
    assert isinstance(place, AtPoints | Averages)
    X, normals = place.points if elsewhere is None else elsewhere, getattr(place, "normals", None)
    terms, slopes = of_fields(parametric, statement, response, vector, X)
    slopes = dependence.slopes(X, normals, terms) + slopes
    values = np.asarray(dependence.residual(X, normals, terms))
    if isinstance(place, AtPoints):
        return Predicted(values, slopes)
    starts = [0, *place.ends[:-1]]
    return Predicted(*(np.add.reduceat((place.weights * own.T).T, starts, axis=0) for own in (values, slopes)))


def finer(solution: Solution) -> Solution:
    """Return the solution that the error of another was estimated with, or the same if there is none."""
    if solution.richer is None:
        return solution
    return replace(solution, network=solution.richer[0], weights=solution.richer[1])


def forwarded(parametric: Parametric, solution: Solution, vector: FloatArray) -> FloatArray:
    """Return the predictions of a solution for all measurements."""
    plain = Plain(solution, parametric.size)
    return np.concatenate([predicted(parametric, s, plain, vector)[0] for s in parametric.observations])


@dataclass(frozen=True, eq=False)
class Plain:
    """A solution as a response that does not answer."""

    solution: Solution
    unknowns: int

    is_aged = False

    def evaluate(self, X: FloatArray, indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at points, shape (n, 1 + unknowns, fields): the fields first, then zeros."""
        names, result = self.solution.problem.field_names, {}
        for index in indices:
            result[index] = np.zeros((len(X), 1 + self.unknowns, len(names)))
            result[index][:, 0] = np.stack(self.solution.evaluate(X, [(name, index) for name in names]), axis=1)
        return result
