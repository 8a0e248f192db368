"""One problem of a set: how to build it, what to ask for, and how to judge the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import pibls as pb

__all__ = ["Build", "Case", "Reference", "collected", "exact_error"]

Build = Callable[[], pb.Problem]
Measure = Callable[[pb.Solution], float]
Reference = Callable[[np.ndarray], dict[str, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """A problem, the solves that are asked of it, and the judge of their solutions.

    Attributes
    ----------
    name, make, kind
        The name within a set, the function that builds the problem, and the kind of problem.
    error
        Returns the true error of a solution; None where there is no truth to compare with.
    estimate
        Returns the error that a solution claims; None for its ``error_estimate``.
    tolerances, seeds
        A solve is asked for each pair.
    accuracy
        Errors below it may be those of the reference.
    expected
        The status that a right answer has. ``"stalled"`` stands for a model that its data contradict.
    told
        A word that the message of a right answer contains.
    """

    name: str
    make: Build
    error: Measure | None
    kind: str = ""
    tolerances: tuple[float, ...] = (1e-4,)
    seeds: tuple[int, ...] = (0,)
    accuracy: float = 0.0
    expected: str = "converged"
    estimate: Measure | None = None
    told: str = ""


def exact_error(solution: pb.Solution) -> float:
    """Return the error against the exact solution at many points."""
    return solution.true_error(200_000 if len(solution.problem.domain.coordinates) == 1 else 20_000)


def _reference_error(solution: pb.Solution, reference: Reference) -> float:
    (low, high), fields = solution.problem.domain.bounds[0], solution.problem.field_names
    at = np.linspace(low, high, 400)[1:-1]
    known, found = reference(at), solution(at[:, None])
    values = found if isinstance(found, dict) else {fields[0]: found}
    return float(max(np.linalg.norm(values[f] - known[f]) / np.linalg.norm(known[f]) for f in known))


def collected(
    tolerances: tuple[float, ...] = (1e-4,), seeds: tuple[int, ...] = (0,)
) -> tuple[Callable[..., Any], dict[str, Case]]:
    """Return a decorator that lists functions which build problems, and the list.

    Each is solved to every tolerance with every seed; one that asks for other tolerances says so with ``asked``. A
    reference gives the fields at points of the line that a problem lives on; ``error`` judges a solution itself.
    """
    cases: dict[str, Case] = {}

    def case(
        kind: str,
        reference: Reference | None = None,
        error: Measure | None = None,
        told: str = "",
        asked: tuple[float, ...] = tolerances,
    ) -> Callable[..., Any]:
        def listed(make: Build) -> Build:
            def by_reference(solution: pb.Solution) -> float:
                return exact_error(solution) if reference is None else _reference_error(solution, reference)

            ill = kind == "ill-posed"
            judge = None if ill else error or by_reference
            expected = "ill-posed" if ill else "converged"
            cases[make.__name__] = Case(make.__name__, make, judge, kind, asked, seeds, expected=expected, told=told)
            return make

        return listed

    return case, cases
