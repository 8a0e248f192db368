"""Is the solution determined by what was asked? Small networks tell before a large one is tried.

A function v that all equations and conditions hardly see, though it is of size one, can be added to any solution:
the answer is not unique, or changes without bound under changes of the data that cannot be measured. The smallest
ratio of what is seen to the size, over all functions a pilot network can represent, finds such a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy import linalg

from pibls.budget import Budget
from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.geometry import Domain, Points
from pibls.geometry.landmarks import corners, has_inner_edges
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.system import Balanced, assemble
from pibls.tuning.fitting import Fitting
from pibls.tuning.judge import root_mean_square
from pibls.tuning.scales import widened

__all__ = ["MET", "Ambiguity", "ambiguity_of", "contradicts", "find_ambiguity", "joint_defects", "stay_apart"]

_RESOLVED = 1e-10  # directions of the network that are smaller than this are round-off, not functions
_FALLING = 0.25  # a well-posed problem keeps its visibility when the network widens
_DIM = 1e-3
_UNSEEN = 1e-6
_PERTURBED = 0.05
_SCALE = 3.0
_DECOMPOSITION = 5.0  # operations of a decomposition with singular values, over those of a solve
_STAYS, _APART = 0.7, 0.1
MET = 0.02
"""Relative residual below which statements count as met."""


@dataclass(frozen=True, eq=False)
class Ambiguity:
    """The function of a network that the equations and conditions see least.

    Attributes
    ----------
    visibility
        Size of what the equations and conditions see of it, relative to its own size.
    network, weights
        The function: a pilot network and its output weights, one row per field.
    """

    visibility: float
    network: BroadNetwork
    weights: FloatArray

    @property
    def is_unseen(self) -> bool:
        """Whether nothing of it is seen: solutions are not unique."""
        return self.visibility < _UNSEEN

    def hides_more_than(self, narrower: Ambiguity) -> bool:
        """Tell whether widening the network found a function that is seen still less: the problem is not well posed.

        For a well-posed problem the least visible function is a smooth one, which the narrower network had already.
        """
        falls = self.visibility < _DIM and self.visibility < _FALLING * narrower.visibility
        return falls or self.is_unseen

    def in_words(self, problem: Problem, X: FloatArray) -> str:
        """Say what is wrong, where it shows most among the points X, and what to do."""
        zero = (0,) * X.shape[1]
        values = self.network.evaluate(X, [zero])[zero] @ self.weights.T
        row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
        names = (symbol.name for symbol in problem.domain.coordinates)
        place = ", ".join(f"{name}={value:.2g}" for name, value in zip(names, X[row], strict=True))
        what = f"{problem.field_names[column]}, largest near {place},"
        if self.is_unseen:
            return (
                f"The solution is not unique: a change of {what} leaves every equation and condition as it is (to "
                f"{self.visibility:.0e}). Add the condition that is missing: a boundary part without one, an "
                "initial value or velocity, or a gauge such as Mean(u, 0). With incompatible data there is no solution."
            )
        return (
            f"The solution is unstable: a change of {what} of size one changes the equations and conditions by only "
            f"{self.visibility:.0e}, and the finer it is the less. Data cannot determine it, as in a heat "
            "equation run backwards; give conditions at the other end."
        )


def ambiguity_of(fitting: Fitting, budget: Budget | None = None) -> str:
    """Say what a linear problem leaves open, found by two small networks; an empty string if nothing."""
    nodes = fitting.pilot_nodes * 2 // 3
    with blas_threads(most=1):
        narrow, wide = (
            find_ambiguity(fitting.problem, fitting.points(n), fitting.network([(n, (_SCALE,) * fitting.axes)]))
            for n in (nodes, 2 * nodes)
        )
    _charge(budget, fitting, nodes, 2 * nodes)
    return wide.in_words(fitting.problem, fitting.compare_points) if wide.hides_more_than(narrow) else ""


def _charge(budget: Budget | None, fitting: Fitting, *widths: int) -> None:
    """Count what a decomposition with singular values takes, for each of some widths."""
    if budget is not None:
        budget.spend(_DECOMPOSITION * sum(map(fitting.operations, widths)))


def contradicts(fitting: Fitting, budget: Budget | None = None) -> bool:
    """Tell whether the statements of a linear problem can each be met, but not together, however wide the network.

    An unresolved solution looks like that too, until the network is widened; a layer, a corner or an inner edge even
    then, so problems that have those are not asked.
    """
    problem = fitting.problem
    domain = cast(Domain, problem.domain)
    if is_perturbed(problem) or corners(domain) or has_inner_edges(domain):
        return False
    defects = []
    with blas_threads(most=1):
        for doublings in range(3):
            nodes = fitting.pilot_nodes * 2**doublings
            network = fitting.network([(nodes, widened((_SCALE,) * fitting.axes, 2.0**doublings))])
            defects.append(joint_defects(problem, fitting.points(nodes), network))
            _charge(budget, fitting, nodes)
    return stay_apart(defects)


def find_ambiguity(problem: Problem, points: Points, network: BroadNetwork) -> Ambiguity:
    """Return the least visible function of a network.

    Examples
    --------
    >>> import sympy as sp
    >>> from pibls import Dirichlet, Interval, coordinates, field
    >>> from pibls.features import draw_network
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> line = Interval((x, 0, 1))
    >>> enough = Problem(u.diff(x, 2), line, [Dirichlet(u, 0)])
    >>> too_few = Problem(u.diff(x, 2), line, [Dirichlet(u, 0, on=line.left)])
    >>> network = draw_network(np.random.default_rng(0), line.bounds, [("sin", 40, 3.0)])
    >>> [find_ambiguity(p, Points.sample(p, 100), network).is_unseen for p in (enough, too_few)]
    [False, True]
    """
    system = assemble(problem, points, network, Balanced())
    seen = system.matrix if system.constraints is None else np.concatenate([system.matrix, system.constraints])
    values = network.combine(points.interior, [{(0,) * network.dimension: 1.0}])[0]
    values = values / np.sqrt(np.mean(np.sum(values**2, axis=1)))
    # An orthonormal basis of the functions themselves, so that sizes are those of functions and not of weights.
    _, sizes, right = linalg.svd(values / np.sqrt(len(values)), full_matrices=False)
    keep = sizes > _RESOLVED * sizes[0]
    basis = right[keep].T / sizes[keep]
    fields = len(problem.fields)
    lifted = np.concatenate([seen[:, i * network.size : (i + 1) * network.size] @ basis for i in range(fields)], axis=1)
    _, visible, directions = linalg.svd(lifted / np.sqrt(len(seen)), full_matrices=False)
    weights = directions[-1].reshape(fields, -1) @ basis.T
    return Ambiguity(float(visible[-1]), network, weights)


def joint_defects(problem: Problem, points: Points, network: BroadNetwork) -> tuple[float, float]:
    """Return how far all statements together are from being met, and the worst of them taken alone.

    Statements that can each be met but not together contradict each other, or ask for more than the network can do;
    statements that cannot even be met alone want a finer network.

    Examples
    --------
    >>> from pibls import Dirichlet, Interval, coordinates, field
    >>> from pibls.features import draw_network
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> line = Interval((x, 0, 1))
    >>> both = Problem(u.diff(x) - 1, line, [Dirichlet(u, 0)])
    >>> network = draw_network(np.random.default_rng(0), line.bounds, [("sin", 40, 3.0)])
    >>> together, alone = joint_defects(both, Points.sample(both, 100), network)
    >>> together > 0.1, alone < 1e-10
    (True, True)
    """
    system = assemble(problem, points, network, Balanced())
    alone = [_defect(system.matrix[block.rows], system.rhs[block.rows]) for block in system.blocks]
    size = float(np.sqrt(sum(np.mean(system.rhs[block.rows] ** 2) for block in system.blocks)))
    weights = linalg.lstsq(system.matrix, system.rhs, cond=_RESOLVED, lapack_driver="gelsy")[0]
    residual = system.rhs - system.matrix @ weights
    together = float(np.sqrt(sum(np.mean(residual[block.rows] ** 2) for block in system.blocks)))
    return (together / size if size > 0 else 0.0), max(alone, default=0.0)


def stay_apart(defects: Sequence[tuple[float, float]]) -> bool:
    """Tell from the joint defects of wider and wider networks whether statements contradict each other.

    >>> stay_apart([(0.7, 1e-2), (0.7, 1e-4), (0.7, 1e-6)]), stay_apart([(0.7, 1e-2), (0.1, 1e-4), (0.01, 1e-6)])
    (True, False)
    """
    (first, _), *_, (together, alone) = defects
    return together > max(_STAYS * first, _APART) and alone < 0.1 * together


def is_perturbed(problem: Problem) -> bool:
    """Tell whether lower-order terms dominate: then an unresolved layer or wave looks like a contradiction."""
    widths = np.ptp(problem.domain.bounds, axis=1) / 2
    X = problem.domain.sample(50, "kronecker", 1)
    for statement in problem.statements:
        sizes: dict[int, float] = {}
        for term, function in zip(statement.form.terms, statement.form.coefficient_functions, strict=True):
            if statement.is_equation:
                size = root_mean_square(function(X)) / float(np.prod(widths ** np.array(term.multi_index)))
                sizes[term.order] = max(size, sizes.get(term.order, 0.0))
        if sizes and sizes[max(sizes)] < _PERTURBED * max(sizes.values()):
            return True
    return False


def _defect(matrix: FloatArray, rhs: FloatArray) -> float:
    size = float(np.linalg.norm(rhs))
    if size == 0:
        return 0.0
    weights = linalg.lstsq(matrix, rhs, cond=_RESOLVED, lapack_driver="gelsy")[0]
    return float(np.linalg.norm(rhs - matrix @ weights)) / size
