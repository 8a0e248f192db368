"""Contradiction: statements that cannot hold together.

Two conditions may give different values of one thing in one place, or one of them another value than the solution of
all others has. Where statements can each be met, but not together, by wider and wider networks, they contradict too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from pibls.budget import Budget
from pibls.checks import FloatArray
from pibls.features import BroadNetwork, MultiIndex
from pibls.geometry import Points
from pibls.geometry.landmarks import corners, has_inner_edges
from pibls.problem import AtPoints, Average, OnPart, Problem, Statement
from pibls.quadrature.roots import CLOSE
from pibls.quantities.integrals import Integrals
from pibls.quantities.pair import SolutionPair
from pibls.quantities.where import where_of
from pibls.refinement import SMALLEST
from pibls.refinement.standards import FALLS, NEGLIGIBLE, PLAIN, POINTS, SLIGHT
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.residuals import root_mean_square
from pibls.system import Balanced, assemble
from pibls.wellposed.compatibility import SAMPLES
from pibls.wellposed.sensitivity import INVISIBLE

if TYPE_CHECKING:
    from pibls.tuning.fitting import Fitting


Slot = tuple[str, MultiIndex]


@dataclass(frozen=True, eq=False)
class Clash:
    """Two conditions on the same things at the same place."""

    names: tuple[str, str]  # what they are called
    slots: dict[Slot, float]  # the fields and derivatives in them, with the size of their coefficients
    place: FloatArray | None  # where they differ most; None if they are means
    values: tuple[float, float]  # what each gives there

    def in_words(self, solution: Solution, tol: float) -> str:
        """Say which conditions contradict each other, if by more than a small part of their terms."""
        X = solution.problem.domain.sample(POINTS, "kronecker", 3)
        state = solution.evaluate(X, list(self.slots))
        sizes = (float(np.abs(own).max()) for own in state)
        size = max(factor * own for factor, own in zip(self.slots.values(), sizes, strict=True))
        first, second = self.values
        if abs(first - second) <= min(tol, PLAIN) * max(size, abs(first), abs(second)):
            return ""
        symbols = solution.problem.domain.coordinates
        place = "on average"
        if self.place is not None:
            place = f"near {', '.join(f'{s.name}={v:.3g}' for s, v in zip(symbols, self.place, strict=True))}"
        return (
            f"The conditions contradict each other: {self.names[0]} and {self.names[1]} set the same quantity, and "
            f"{place} one says {first:.6g} and the other {second:.6g}. Restrict one of them with on=..., such "
            "as on=domain.boundary - part, or remove it."
        )


def find_clash(problem: Problem) -> Clash | None:
    """Return two conditions that give different values for the same thing; equations without derivatives are some."""
    given = [s for s in problem.statements if isinstance(s.place, OnPart) and s.form.is_linear and s.targets is None]
    laws = [s for s in problem.laws.statements if s.form.is_linear and s.form.order == 0]
    there = ((one, replace(law, place=one.place)) for law in laws for one in given)
    found = (_clash(one, two) for one, two in chain(combinations(given, 2), there))
    return next((clash for clash in found if clash is not None), None)


def clash_beyond(surplus: Statement, solution: Solution) -> Clash | None:
    """Return the difference between a condition and the solution of all others, if it is plainly beyond its error."""
    pair, place, form = SolutionPair(solution), surplus.place, surplus.form
    if pair.richer is None:
        return None
    slots = [(term.field, term.multi_index) for term in form.terms]
    left = pair.expression(form.expression - form.source, surplus.name)
    if isinstance(place, Average):
        X, normals = solution.problem.domain.sample(POINTS, "kronecker", 1), None
        whole = Integrals(pair, where_of(solution.problem.domain, None, None, surplus.name))
        found, missed = (whole.of(own, mean=True) for own in (left, pair.expression(form.expression, surplus.name)))
        values = np.array([found.value - missed.value]), np.array([found.value])
        error = np.array([found.error])
    else:
        assert isinstance(place, OnPart | AtPoints)
        X, normals = (place.points, None) if isinstance(place, AtPoints) else place.part.sample(POINTS, "kronecker", 1)
        own, other = pair.compared(left, X, normals)
        values, error = (0.0 - form.source_function(X, normals), own), pair.error(np.abs(own - other), np.abs(own))
    # Slopes may be infinite in a corner: what differs there alone says nothing.
    if root_mean_square(values[0] - values[1]) <= root_mean_square(error) / NEGLIGIBLE:
        return None
    sizes = [float(np.abs(own(X, normals)).max()) for own in form.coefficient_functions]
    names, factors = (surplus.name, "what the other conditions determine"), dict(zip(slots, sizes, strict=True))
    return _differing(names, factors, None if isinstance(place, Average) else X, values, INVISIBLE, error / NEGLIGIBLE)


def _clash(one: Statement, two: Statement) -> Clash | None:
    slots = [(term.field, term.multi_index) for term in one.form.terms]
    others = [(term.field, term.multi_index) for term in two.form.terms]
    if sorted(slots) != sorted(others) or {one.weight, two.weight} != {1.0}:
        return None
    parts = [s.place.part for s in (one, two) if isinstance(s.place, OnPart)]
    small, large = sorted(parts, key=lambda part: part.measure)
    X, normals = small.sample(POINTS, "kronecker", 1)
    shared = large.contains(X)
    # Two sides of a corner have it in common, and may differ there.
    if shared.mean() <= SLIGHT:
        return None
    X, normals = X[shared], normals[shared]
    first, second = (_row(s, slots, X, normals) for s in (one, two))
    if not np.allclose(first[:-1], second[:-1], atol=CLOSE):
        return None
    factors = dict(zip(slots, np.abs(first[:-1]).max(axis=1).tolist(), strict=True))
    return _differing((one.name, two.name), factors, X, (first[-1], second[-1]), CLOSE)


def _differing(
    names: tuple[str, str],
    slots: dict[Slot, float],
    X: FloatArray | None,
    values: tuple[FloatArray, FloatArray],
    digits: float,
    allowed: FloatArray | float = 0.0,
) -> Clash | None:
    """Return where two values of the same thing differ most beyond an allowed distance, unless they are the same."""
    first, second = values
    apart = np.abs(first - second) - allowed
    worst = int(apart.argmax())
    if apart[worst] <= digits * max(np.abs(first).max(), np.abs(second).max()):
        return None
    return Clash(names, slots, None if X is None else X[worst], (float(first[worst]), float(second[worst])))


def _row(s: Statement, slots: list[Slot], X: FloatArray, normals: FloatArray) -> FloatArray:
    """Return the coefficients of a condition at points, of size one in all, and its values."""
    own = {(t.field, t.multi_index): f for t, f in zip(s.form.terms, s.form.coefficient_functions, strict=True)}
    found = np.stack([*(own[slot](X, normals) for slot in slots), 0.0 - s.form.source_function(X, normals)])
    largest = np.take_along_axis(found, np.abs(found[:-1]).argmax(axis=0)[None], axis=0)
    scale = np.sqrt(np.square(found[:-1]).sum(axis=0)) * np.where(largest < 0, -1.0, 1.0)
    return np.asarray(found / np.where(scale == 0, 1.0, scale))


def contradiction_of(fitting: Fitting, budget: Budget | None = None) -> str:
    """Say by how much the statements of a linear problem cannot be met together, though each can, by wide networks.

    An unresolved solution looks like that too, until the network is widened; a layer, a corner or an inner edge even
    then, so problems that have those are not asked.
    """
    problem = fitting.problem
    domain = problem.domain
    # Beyond three coordinates twice the nodes are hardly finer along each: that nothing changes says nothing.
    if len(domain.coordinates) > 3 or _is_perturbed(problem) or corners(domain) or has_inner_edges(domain):
        return ""
    defects = []
    with blas_threads(most=1):
        for doublings in range(SAMPLES):
            network = fitting.pilot(2**doublings)
            defects.append(joint_defects(problem, fitting.points(network.size), network))
            if budget is not None:
                budget.spend(fitting.operations(network.size))
    (first, _), *_, (together, alone) = defects
    if not (together > max(FALLS * first, NEGLIGIBLE) and alone < NEGLIGIBLE * together):
        return ""
    return (
        f"The equations and conditions contradict each other: {together:.0%} of their right-hand sides stay unmet, "
        f"however wide the network is, though each of them alone is met to {alone:.0e}. Check signs and values, or "
        "remove a condition."
    )


def joint_defects(problem: Problem, points: Points, network: BroadNetwork) -> tuple[float, float]:
    """Return how far all statements together are from being met, and the worst of them taken alone.

    Statements that can each be met but not together contradict each other, or ask for more than the network can do;
    statements that cannot even be met alone want a finer network.
    """
    system, alone = assemble(problem, points, network, Balanced()), 0.0
    for rows in (block.rows for block in system.blocks):
        if (size := float(np.linalg.norm(system.rhs[rows]))) > 0:
            alone = max(alone, float(np.linalg.norm(_missed(system.matrix[rows], system.rhs[rows]))) / size)
    together, whole = (
        float(np.sqrt(sum(np.mean(values[block.rows] ** 2) for block in system.blocks)))
        for values in (_missed(system.matrix, system.rhs), system.rhs)
    )
    return (together / whole if whole > 0 else 0.0), alone


def _is_perturbed(problem: Problem) -> bool:
    """Tell whether lower-order terms dominate: then an unresolved layer or wave looks like a contradiction."""
    widths = np.ptp(problem.domain.bounds, axis=1) / 2
    X = problem.domain.sample(50, "kronecker", 1)
    for statement in problem.statements:
        sizes: dict[int, float] = {}
        for term, function in zip(statement.form.terms, statement.form.coefficient_functions, strict=True):
            if statement.is_equation:
                size = root_mean_square(function(X)) / float(np.prod(widths ** np.array(term.multi_index)))
                sizes[term.order] = max(size, sizes.get(term.order, 0.0))
        if sizes and sizes[max(sizes)] < NEGLIGIBLE * max(sizes.values()):
            return True
    return False


def _missed(matrix: FloatArray, rhs: FloatArray) -> FloatArray:
    """Return the part of right-hand sides that the best weights miss."""
    return np.asarray(rhs - matrix @ linalg.lstsq(matrix, rhs, cond=SMALLEST, lapack_driver="gelsy")[0])
