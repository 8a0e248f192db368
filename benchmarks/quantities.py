"""Random quantities of solutions: how many lie within ten times their estimated errors.

    python -m benchmarks.quantities [--set NAME ...] [--only PROBLEM ...] [--processes N] [--seed S] [--times T]
                                    [--out FILE]

Of every problem with a closed form five quantities are asked: a derivative at a point of the boundary, the flux through
a part of it, a mean, a maximum and a value, each of a field and at a place drawn at random; another seed draws others,
and ``--times 3`` draws three times as many of every solution. The truth of an integral is
known as well as rules of different size agree, on the closed form or on the difference of the solution from it, that of
a derivative without a formula as well as one-sided differences agree; what is too coarse to judge is left open.
"""

from __future__ import annotations

import argparse
import signal
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.runner import LONGEST, ROUND_OFF
from benchmarks.sets import SETS, cases
from benchmarks.spread import resumed
from benchmarks.tables import ROOT
from pibls.problem.evaluate import compile_function
from pibls.report.views import tolerant
from pibls.runtime import available_cores, blas_threads

_WITHIN = 10.0  # estimates that an error may have
_RULES = (4_000, 9_000, 20_000)  # nodes of the rules that tell the truth about an integral
_SPREADS = 10.0  # of the rules that the truth may be away from the finest: kinks make them agree by chance
_DENSE = 20_000  # points among which a larger value is looked for
_NEAR = 4.0 ** -np.arange(3, 18)  # of the domain: distances within which a larger value is looked for, one by one
_AROUND = 64  # points at each of them
_STEPS = np.array([1e-3, 1e-4, 1e-5])  # of the domain: lengths over which differences are taken

Task = tuple[str, str, int, int]  # set, problem, seed, and how often five quantities are asked


@dataclass(frozen=True)
class Row:
    """One quantity: ``judged`` is ``"right"``, ``"wrong"`` or ``"open"``."""

    set: str
    problem: str
    status: str
    kind: str
    asked: str
    value: float
    error: float
    apart: float  # the true error, up to a doubt
    doubt: float
    judged: str


@dataclass(frozen=True)
class Truth:
    """The closed form of a solution."""

    problem: pb.Problem

    def at(self, expression: sp.Expr, X: Any, normals: Any = None) -> Any:
        """Return an expression of the coordinates at points, NaN where it is not finite."""
        function = compile_function(expression, self.problem.domain.coordinates)

        def rows(numbers: Any) -> Any:
            own = numbers[:, 0]
            return function(X[own], None if normals is None else normals[own])

        return np.asarray(tolerant(rows, np.arange(len(X))[:, None]))

    def integral(self, expression: sp.Expr, place: Any, less: Any = None, mean: bool = False) -> tuple[float, float]:
        """Return an integral by the finest of several rules, and how far the truth may be away.

        With a function ``less``, it is the integral of the difference from that.
        """
        found = []
        for n in _RULES:
            X, *normals, weights = place.quadrature(n)
            values = self.at(expression, X, *normals) - (0.0 if less is None else less(X))
            found.append(float(weights @ values / (weights.sum() if mean else 1.0)))
        return found[-1], _SPREADS * (max(found) - min(found))

    def slope(self, exact: sp.Expr, axis: sp.Symbol, X: Any) -> tuple[float, float]:
        """Return a derivative at a point, and how far the truth may be away."""
        try:
            return float(self.at(exact.diff(axis), X)[0]), 0.0
        except pb.PiblsError:  # a function without a formula
            way = np.eye(X.shape[1])[[self.problem.domain.coordinates.index(axis)]]
        found = [sign * float(own[0]) for sign in (1.0, -1.0) for own in self.differences(exact, X, sign * way)]
        return found[0], _SPREADS * (max(found) - min(found))

    def differences(self, exact: sp.Expr, X: Any, ways: Any) -> list[Any]:
        """Return the derivatives along given ways at points by one-sided differences, if these stay in the domain."""
        domain, nodes, found = self.problem.domain, np.linspace(0.0, 1.0, 8), []
        row = np.linalg.solve(np.vander(nodes, increasing=True).T, np.eye(len(nodes))[1])
        for step in _STEPS * np.ptp(domain.bounds[: len(domain.space) or 1], axis=1).min():
            Y = X[:, None] + step * nodes[:, None] * ways[:, None]
            if np.asarray(domain.contains(Y[:, 1:].reshape(-1, X.shape[1]))).all():
                found.append(self.at(exact, Y.reshape(-1, X.shape[1])).reshape(len(X), -1) @ row / step)
        return found


def quantities(task: Task) -> list[Row]:
    """Solve a problem and judge its quantities."""
    name, label, seed, times = task
    case = cases(name)[label]

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    with blas_threads(1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        problem = case.make()
        if problem.exact is None or case.expected != "converged" or problem.parameters:
            return []
        try:
            solution = pb.solve(problem, tol=case.tolerances[0], progress=False)
            asked = Asked(solution, Truth(problem), np.random.default_rng((zlib.crc32(label.encode()), seed)))
            return [Row(name, label, str(solution.status), *found) for _ in range(times) for found in asked.all()]
        except Exception as met:  # a benchmark goes on
            return [Row(name, label, "exception", type(met).__name__, str(met)[:200], *[np.nan] * 4, "open")]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


@dataclass(frozen=True)
class Asked:
    """Five quantities of a solution, each of a field and at a place drawn at random."""

    solution: pb.Solution
    truth: Truth
    rng: np.random.Generator

    def all(self) -> Iterator[tuple[Any, ...]]:
        """Yield kind, words, value, error, true error, its doubt, and the judgement of each."""
        for ask in (self.derivative, self.flux, self.mean, self.maximum, self.value):
            field = self.solution.problem.fields[self.rng.integers(len(self.solution.problem.fields))]
            try:
                if found := ask(field, sp.sympify(self.solution.problem.exact[field.label])):
                    yield ask.__name__, *found
            except Exception as met:  # of a closed form that cannot be evaluated, most often
                yield ask.__name__, f"{type(met).__name__}: {met}"[:200], *[np.nan] * 4, "open"

    @property
    def domain(self) -> Any:
        """The domain."""
        return self.solution.problem.domain

    @property
    def surface(self) -> Any:
        """The boundary; of time alone, its start."""
        return self.domain.boundary if self.domain.space else self.domain.initial

    def derivative(self, field: Any, exact: sp.Expr) -> tuple[Any, ...]:
        """Ask for a derivative at a point of the boundary."""
        axis = self.rng.choice(np.array(self.domain.space or self.domain.coordinates, dtype=object))
        points = self.surface.sample(64, "uniform", self.rng).points
        X = points[self.rng.integers(len(points))][None]
        return self._at(field.diff(axis), X, *self.truth.slope(exact, axis, X))

    def flux(self, field: Any, exact: sp.Expr) -> tuple[Any, ...]:
        """Ask for the integral of a normal derivative."""
        domain, space = self.domain, self.domain.space
        if not space or len(domain.coordinates) == 1:
            return ()
        parts = [part for name, part in domain.parts.items() if name not in ("initial", "final")] or [domain.boundary]
        part, normal = parts[self.rng.integers(len(parts))], pb.normal(*space)
        wanted, known = (sum(own.diff(s) * n for s, n in zip(space, normal, strict=True)) for own in (field, exact))
        found, words = self.solution.integral(wanted, over=part), f"{field} through {part.name}"
        try:
            return words, *self._integrated(found, wanted, known, part)
        except pb.PiblsError:  # a function without a formula
            X, normals, weights = part.quadrature(_RULES[0])
            less = self.solution.value(wanted)(X)
        every = [float(weights @ (-slope - less)) for slope in self.truth.differences(exact, X, -normals)]
        return words, *_judged(found, found.value + every[-1], _SPREADS * (max(every) - min(every)))

    def mean(self, field: Any, exact: sp.Expr) -> tuple[Any, ...]:
        """Ask for a mean over the domain."""
        return str(field), *self._integrated(self.solution.mean(field), field, exact, self.domain, mean=True)

    def maximum(self, field: Any, exact: sp.Expr) -> tuple[Any, ...]:
        """Ask for the largest value: no point has a larger one, and some nearby has it."""
        largest, size = self.solution.maximum(field), np.ptp(self.domain.bounds, axis=1)
        X = np.concatenate([self.domain.sample(_DENSE), self.surface.sample(_DENSE).points])
        higher, best, there = float(np.nanmax(self.truth.at(exact, X))), -np.inf, largest.place
        space = getattr(self.domain, "domain", self.domain)
        for distance in _NEAR:
            X = there + distance * size * self.rng.uniform(-1.0, 1.0, (_AROUND, len(size)))
            X = np.clip(np.vstack([X, there]), *self.domain.bounds.T)
            if self.domain.space:  # a domain contains what is outside by rounding, too
                X = X[np.asarray(space.level(X[:, : len(space.coordinates)])) >= 0.0]
            known = self.truth.at(exact, X) if len(X) else np.array([np.nan])
            if np.nanmax(known, initial=-np.inf) > best:
                best, there = float(np.nanmax(known)), X[int(np.nanargmax(known))]
        return str(field), *_judged(largest, max(higher, best), 0.0)

    def value(self, field: Any, exact: sp.Expr) -> tuple[Any, ...]:
        """Ask for a value at a point."""
        X = self.domain.sample(1, "uniform", self.rng)
        return self._at(field, X, float(self.truth.at(exact, X)[0]), 0.0)

    def _at(self, wanted: sp.Expr, X: Any, known: float, doubt: float) -> tuple[Any, ...]:
        value = self.solution.value(wanted)
        found = pb.Quantity(float(value(X)[0]), float(value.error(X)[0]))
        return f"{wanted} at {X[0].round(4).tolist()}", *_judged(found, known, doubt)

    def _integrated(
        self, found: pb.Quantity, wanted: sp.Expr, exact: sp.Expr, place: Any, mean: bool = False
    ) -> tuple[Any, ...]:
        """Judge an integral; where rules are too coarse for the closed form, by the difference of the solution."""
        judged = _judged(found, *self.truth.integral(exact, place, mean=mean))
        if judged[-1] != "open":
            return judged
        missing, doubt = self.truth.integral(exact, place, self.solution.value(wanted), mean)
        return _judged(found, found.value + missing, doubt)


def _judged(found: pb.Quantity, truth: float, doubt: float) -> tuple[Any, ...]:
    allowed = max(_WITHIN * found.error, ROUND_OFF * max(1.0, abs(truth))) if found.error < np.inf else np.inf
    apart = abs(found.value - truth)
    judged = "right" if apart + doubt <= allowed else "wrong" if apart - doubt > allowed else "open"
    return found.value, found.error, apart, doubt, judged if np.isfinite(truth) else "open"


def main() -> None:
    """Ask for quantities, and say how many are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=SETS, default=["everyday", "held_out", "unseen"], metavar="NAME")
    parser.add_argument("--only", nargs="+", metavar="PROBLEM")
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--seed", type=int, default=0, help="draws quantities")
    parser.add_argument("--times", type=int, default=1, help="how often five quantities are asked of a solution")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "quantities.csv")
    options = parser.parse_args()
    pairs = ((name, label) for name in options.set for label in cases(name) if label in (options.only or [label]))
    rows = resumed(
        Row,
        options.out,
        {pair: (*pair, options.seed, options.times) for pair in pairs},
        quantities,
        options.processes,
        key=lambda row: (row.set, row.problem),
        told=lambda row: "" if row.judged == "right" else f"{row.judged}: {row}",
    )
    for kind in ("derivative", "flux", "mean", "maximum", "value", "all"):
        own = [row for row in rows if kind in (row.kind, "all")]
        counts = Counter(row.judged for row in own)
        decided = counts["right"] + counts["wrong"]
        share = f"{counts['right'] / decided:.1%}" if decided else "none"
        print(f"{kind}: {share} of {decided} within {_WITHIN:g} estimates; {counts['open']} open")


if __name__ == "__main__":
    main()
