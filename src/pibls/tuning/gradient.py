"""Derivatives of a number that a solution gives, by the parameters of its problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp

from pibls.budget import Budget
from pibls.checks import FloatArray, shorten
from pibls.errors import InputError, SolveError
from pibls.inverse.fitting_unknowns import Fits
from pibls.inverse.parametric import substituted
from pibls.inverse.response import Forward
from pibls.inverse.thresholds import STEP
from pibls.problem import Problem
from pibls.problem.unknown_numbers import open_in, unknown
from pibls.quantities import asked
from pibls.refinement.standards import NEGLIGIBLE, POINTS, SLIGHT
from pibls.runtime import blas_threads
from pibls.solution import Solution


@dataclass(frozen=True, eq=False)
class Gradient:
    """The derivatives of a number by parameters, each with its error.

    It is an array to NumPy; ``gradient["k"]`` is the derivative by one of them.

    Attributes
    ----------
    names
        The parameters.
    values, errors
        Derivatives and their estimated absolute errors.
    """

    names: tuple[str, ...]
    values: FloatArray
    errors: FloatArray

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype, copy=True if copy is None else copy)

    def __getitem__(self, key: Any) -> float:
        return float(self.values[key if isinstance(key, int) else self.names.index(str(key))])

    def __iter__(self) -> Iterator[float]:
        return iter(self.values.tolist())

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        rows = zip(self.names, self.values, self.errors, strict=True)
        return f"Gradient({', '.join(f'{name}: {value:.6g} ± {error:.1g}' for name, value, error in rows)})"


def sensitivity(solution: Solution, quantity: Any, parameters: Any, budget: float = 10.0) -> Gradient:
    """Return the derivatives of a number by parameters; see :meth:`pibls.Solution.sensitivity`."""
    wanted = asked(quantity, "quantity", "sensitivity")
    origin = solution.problem.origin
    if origin is None:
        raise InputError(
            "sensitivity is for solutions of a problem with parameters, pibls.solve(problem.at(k=2)). This solution's "
            "problem was made without pibls.parameter, or was loaded from a file."
        )
    stated, values = origin
    names = _names(parameters, values)
    others = stated.at(**{name: value for name, value in values.items() if name not in names})
    place = {name: float(values[name]) for name in names}
    moves = _Moves(solution, others, place, wanted)
    tol = solution.diagnostics.tolerance or 1e-6
    with blas_threads(most=1):
        shared = Budget(budget)
        first = moves.forward(tol, shared)
        # The other one is finer, if there is such a thing.
        finer = moves.forward(SLIGHT * tol, shared) if first.finest <= SLIGHT * tol else first
        coarse = first if finer is not first else moves.forward(tol / SLIGHT, shared)
        (found, doubt), (rough, _) = moves.slopes(finer), moves.slopes(coarse)
    return Gradient(names, found, np.abs(found - rough) + doubt)


def _names(parameters: Any, values: Any) -> tuple[str, ...]:
    """Return the names of parameters that were given a value, or refuse them."""
    given = parameters if isinstance(parameters, Sequence) and not isinstance(parameters, str) else [parameters]
    names = tuple(str(item) for item in given if isinstance(item, str | sp.Symbol))
    if not names or len(names) < len(given) or len(set(names)) < len(names) or not set(names) <= set(values):
        raise InputError(
            f"The 'parameters' of sensitivity must be among those that the problem was given, {', '.join(values)}, "
            f"each once. Got {shorten(parameters)} instead."
        )
    return names


@dataclass(frozen=True, eq=False)
class _Moves:
    """Solutions for parameters near given ones, by the problem linearised there."""

    solution: Solution
    problem: Problem  # with open parameters
    place: dict[str, float]
    quantity: Callable[[Solution], Any]
    known: dict[tuple[str, float], Problem] = field(default_factory=dict)  # with one parameter moved by a step

    def moved(self, name: str, step: float) -> Problem:
        """Return the problem with one parameter moved by a step."""
        if (name, step) not in self.known:
            self.known[name, step] = self.problem.at(**{**self.place, name: self.place[name] + step})
        return self.known[name, step]

    def forward(self, tol: float, budget: Budget) -> Forward:
        """Solve at the place; keep cells or features."""
        symbols = {symbol.name: symbol for symbol in open_in(self.problem.parameters)}
        # Numbers are looked for in units of the deviation of their prior.
        numbers = {symbols[n]: unknown(n, prior=(value, abs(value) or 1.0)) for n, value in self.place.items()}
        fits = Fits.of(substituted(self.problem, numbers), tol, budget, self.solution.diagnostics.seed)
        forward = fits.forward(fits.coordinates.point(fits.coordinates.means), tol, self.solution)
        X = self.problem.domain.sample(POINTS, "kronecker")
        wanted = [(name, (0,) * X.shape[1]) for name in self.solution.problem.field_names]
        own, found = (np.array(one.evaluate(X, wanted)) for one in (self.solution, forward.solution))
        if np.linalg.norm(found - own) > NEGLIGIBLE * np.linalg.norm(own):
            raise SolveError(
                "sensitivity solves the problem once more, and came to another of its solutions. Use differences of "
                "solutions that pibls.solve finds with start=."
            )
        return forward

    def slopes(self, forward: Forward) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the quantity, and how wrong fields and steps of a finite length make them."""
        order = [symbol.name for symbol in forward.parametric.problem.parameters]
        count = len(order)
        # Sides of the network: fields, their errors, a sensitivity for each parameter, and the rest.
        factor = np.column_stack([np.zeros(count), np.eye(count), np.zeros(count)])
        network, _ = forward.banded(forward.respond(forward.vector), factor, None)
        fields = len(forward.parametric.problem.fields)
        sides = np.zeros((3 + count, fields, fields))
        sides[0] = np.eye(fields)

        def at(name: str, step: float) -> float:
            moved = sides.copy()
            moved[2 + order.index(name)] = step * np.eye(fields)
            richer = moved.copy()
            richer[1] = -np.eye(fields)
            weights, finer = (np.concatenate(list(own.transpose(0, 2, 1)), axis=0).T for own in (moved, richer))
            # Without an estimate, no error of the number is looked for.
            changes: dict[str, Any] = {"network": network, "weights": weights, "richer": (network, finer)}
            changes |= {"problem": self.moved(name, step), "error_estimate": None, "points": None}
            return float(self.quantity(replace(forward.solution, **changes)))

        found, lost = [], []
        for name, value in self.place.items():
            steps = STEP * (abs(value) or 1.0) * np.array([1.0, 2.0])
            ends = np.array([[at(name, step), at(name, -step)] for step in steps])
            found.append((ends[:, 0] - ends[:, 1]) / (2.0 * steps))
            size = float(np.abs(ends).max())
            lost.append(np.spacing(size) / steps[0] + forward.error * (size * STEP / steps[0] + abs(found[-1][0])))
        near, far = np.array(found).T
        return near, np.abs(near - far) + lost
