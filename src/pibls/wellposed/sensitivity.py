"""Sensitivity: how much a solution changes when the right-hand sides of its equations and conditions change.

It is a property of the problem: on finer and finer even trees of cells it stays as it is. Where a function can be
added to a solution that no equation and no condition sees, it is beyond all bounds; where finer functions are seen less
and less, as in a heat equation run backwards, it grows with every level. Small networks tell the same of problems that
cells cannot solve: a function of size one of which hardly anything is seen can be added to any solution.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg

from pibls.budget import Budget
from pibls.cells.fitters import LinearFitter, degree_for
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart, part_values
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.state import TreeState, projected
from pibls.cells.tree import Cell, split_at_planes
from pibls.checks import FloatArray
from pibls.features import BroadNetwork
from pibls.features.reference import draw_reference
from pibls.geometry import Points
from pibls.problem import Problem
from pibls.refinement import SMALLEST
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN
from pibls.runtime import blas_threads
from pibls.solution.json_records import Network
from pibls.system import Balanced, assemble
from pibls.wellposed.compatibility import SAMPLES, halved
from pibls.wellposed.counting import has, lacking

if TYPE_CHECKING:
    from pibls.tuning.fitting import Fitting


_LEVELS = {1: (4, 5), 2: (3, 4), 3: (2, 3)}  # even trees, and how many where a problem seems unstable, or unseen
_UNSEEN = {1: 3e8, 2: 3e8, 3: 1e6}  # rounding in factors hides what is larger
SENSITIVE = 30.0  # sensitivities of well-posed problems are of the size of one
INVISIBLE = 1e-6  # share of a function, or of a value, that equations and conditions do not see
SCALE = 3.0  # of the nodes of a small network


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Sensitivity of a problem on even trees, and the change of a solution that is seen least."""

    problem: Problem
    sizes: tuple[float, ...]  # sensitivity on each tree, from coarse to fine
    # place, field: where that change is largest on the finest tree, and in which field
    place: FloatArray
    field: str
    operations: float = 0.0  # what it took to find out
    # whether that change tells of the cells, not of the problem: it is all in one part that the boundary cuts off, or
    # the equations do see it where it is largest, beside coefficients that are many times as large elsewhere
    is_spurious: bool = False
    is_level: bool = False  # whether that change is a constant wherever it is large

    @property
    def is_unseen(self) -> bool:
        """Whether something can be added to a solution that nothing sees, such as an eigenfunction at a resonance."""
        return self._may_be_unseen and (self.sizes[-2] > _UNSEEN[len(self.place)] or self.grows)

    @property
    def _may_be_unseen(self) -> bool:
        return not self.is_spurious and self.sizes[-1] > _UNSEEN[len(self.place)]

    @property
    def is_open(self) -> bool:
        """Whether a finer tree has to tell: nothing was seen of a change that the tree before did not resolve."""
        return self.is_unstable or (self._may_be_unseen and not self.is_unseen)

    @property
    def is_unstable(self) -> bool:
        """Whether a finer tree has functions that are seen much less, though something is seen of them."""
        return not self.is_spurious and self.grows and not self.is_unseen

    @property
    def grows(self) -> bool:
        """Whether much less is seen on the last tree than before: not on a line, where there are few functions."""
        *before, last = self.sizes[-3:]
        return len(self.place) > 1 and last > max(SENSITIVE, max(before) / NEGLIGIBLE)

    def in_words(self) -> str:
        """Say why the problem is ill-posed, where it shows most, and how to mend it."""
        seen = 1.0 / self.sizes[-1]
        return _in_words(self.problem, self.field, self.place, seen, self.is_unseen, is_level=self.is_level)


def _in_words(
    problem: Problem, field: str, place: FloatArray, seen: float, is_unseen: bool, *, is_level: bool = False
) -> str:
    names = (symbol.name for symbol in problem.domain.coordinates)
    where = ", ".join(f"{name}={value:.2g}" for name, value in zip(names, place, strict=True))
    change = f"a change of {field}, {'constant about' if is_level else 'largest near'} {where},"
    given = [s for s in problem.statements if not s.is_equation]
    bare = "" if problem.domain.boundary.empty else lacking(problem, given, 1)[0]
    remedy = f"{has(bare, 0).capitalize()}: give one there." if bare else ""
    if is_unseen:
        missing = f"a boundary part without one, an initial value or velocity, or a gauge such as Mean({field}, 0)"
        level = f"Give {field} a value there, or a mean."
        otherwise = (
            level if is_level else f"Add the missing condition: {missing}. If none is missing, it is a resonance."
        )
        return (
            f"The solution is not unique: {change} leaves every equation and condition unchanged (to {seen:.0e}). "
            f"{remedy or otherwise} If the data "
            "are incompatible, there is no solution at all."
        )
    backwards = "Data cannot determine it, as in a heat equation run backwards; give conditions at the other end."
    return (
        f"The solution is unstable: {change} of size one changes the equations and conditions by only {seen:.0e}, and "
        f"by less the finer it is. {remedy or backwards}"
    )


def sensitivity_of(problem: Problem, seed: int = 0, near: LinearFitter | None = None) -> Sensitivity:
    """Return the sensitivity of a linear problem on even trees; the solver of the same problem may be given."""
    d = len(problem.domain.coordinates)
    made = near.of_degree(degree_for(d, 0.0)).solver if near is not None else None
    solver = made or TreeSolver(Rows(Layout(problem, draw_reference(d, degree_for(d, 0.0), seed))))
    before = solver.flops
    # The finest first: it is the likeliest to have been solved before.
    found = [_probed(solver, root, seed) for root in reversed(_even_trees(solver))][::-1]
    known = _confirmed(problem, solver.layout, found, lambda root: _probed(solver, root, seed), None)
    return replace(known, operations=solver.flops - before)


def sensitivity_at(problem: Problem, network: Network, seed: int = 0) -> Sensitivity | None:
    """Return the sensitivity of a nonlinear problem, linearised at a state; None where a coarse tree has little.

    >>> from pibls import Dirichlet, Interval, coordinates, field, solve
    >>> x = coordinates("x")
    >>> u, line = field("u", x), Interval((x, 0, 1))
    >>> problem = Problem(u.diff(x, 2) - u**3, line, [Dirichlet(u, 1)])
    >>> sensitivity_at(problem, solve(problem, progress=False).network)
    """
    d = network.dimension
    layout, zero = Layout(problem, draw_reference(d, degree_for(d, 0.0), seed)), (0,) * d
    found, spent = [], [0.0]

    def probe(root: Cell) -> _Probe:
        weights = projected(layout, root, lambda _, X: network.evaluate(X, [zero])[zero])
        solver = TreeSolver(Rows(layout, TreeState(layout, weights)))
        made = _probed(solver, root, seed)
        spent.append(solver.flops)
        return made

    for root in _even_trees(TreeSolver(Rows(layout))):
        found.append(probe(root))
        if found[-1][1] < SENSITIVE:
            return None
    return replace(_confirmed(problem, layout, found, probe, network), operations=sum(spent))


def _even_trees(solver: TreeSolver) -> list[Cell]:
    """Return even trees from coarse to fine, each with all cells of the one before halved along every axis."""
    roots = [halved(split_at_planes(solver.layout.root), solver.rows.traces.periodic)]
    while len(roots) < _LEVELS[solver.layout.reference.dimension][0]:
        roots.append(halved(roots[-1]))
    return roots


_Probe = tuple[Fit, float, dict[CellPart, FloatArray]]


def _confirmed(
    problem: Problem, layout: Layout, found: list[_Probe], probe: Callable[[Cell], _Probe], state: Network | None
) -> Sensitivity:
    """Return a sensitivity at a state, if the problem is nonlinear, on finer trees too where it seems unstable.

    Near a resonance, much less is seen as soon as cells resolve the mode, and no less on finer ones; at a resonance,
    nothing is seen on finer ones either.
    """
    known = _sensitivity(problem, layout, found, state)
    while known.is_open and len(found) < _LEVELS[layout.reference.dimension][1]:
        found.append(probe(halved(found[-1][0].root)))
        known = _sensitivity(problem, layout, found, state)
    return known


def _probed(solver: TreeSolver, root: Cell, seed: int) -> _Probe:
    """Return a solution, its sensitivity, and the change that is seen least."""
    fit = solver.solve(root)
    # One draw may happen to have little of the change that is seen least.
    return (fit, *max((solver.weakest(seed + k) for k in range(SAMPLES)), key=lambda one: one[0]))


def _sensitivity(problem: Problem, layout: Layout, found: Sequence[_Probe], state: Network | None) -> Sensitivity:
    fit, _, weights = found[-1]
    X = layout.tree_domain.domain.sample(500, "kronecker", 1)
    change = network_of(layout, Fit(fit.root, fit.parts, weights))
    place, name = _largest(problem, X, change)
    sizes, zero = tuple(size for _, size, _ in found), (0,) * X.shape[1]
    own = change.evaluate(X, [zero])[zero][:, problem.field_names.index(name)]
    large = own[np.abs(own) > MOST * np.abs(own).max()]
    return Sensitivity(
        problem,
        sizes,
        place,
        name,
        is_spurious=_is_local(layout, weights) or _is_seen(problem, X, name, change, state),
        is_level=bool(np.ptp(large) <= PLAIN * np.abs(large).max()),
    )


def _is_seen(problem: Problem, X: FloatArray, name: str, change: Network, state: Network | None) -> bool:
    """Tell whether an equation, linearised at a state, plainly sees a change where its largest field is large.

    Its terms are compared with their own sizes there, and not with those that they have elsewhere.
    """
    zero, half = (0,) * X.shape[1], np.ptp(problem.domain.bounds, axis=1) / 2
    names = problem.field_names
    values = np.abs(change.evaluate(X, [zero])[zero])
    largest, own = values.max(axis=0), values[:, names.index(name)]
    X = X[own >= MOST * own.max()]
    for form in (form for form in problem.laws.forms if name in form.fields):
        terms = [(names.index(term.field), term.multi_index) for term in form.terms]
        indices = [index for _, index in terms]
        here = {} if state is None or form.is_linear else state.evaluate(X, indices)
        slots, every = [here[index][:, n] for n, index in terms if here], change.evaluate(X, indices)
        seen, sizes = np.zeros(len(X)), np.zeros(len(X))
        for (n, index), function in zip(terms, form.coefficient_functions, strict=True):
            factor, own = function(X, None, slots), every[index][:, n]
            seen += factor * own
            sizes += np.abs(factor) * np.maximum(np.abs(own), largest[n] / np.prod(half ** np.array(index)))
        if np.median(np.abs(seen) / np.where(sizes > 0.0, sizes, 1.0)) > NEGLIGIBLE:
            return True
    return False


def _is_local(layout: Layout, weights: dict[CellPart, FloatArray]) -> bool:
    """Tell whether nearly all of a function is in one part that the boundary cuts off."""
    squares = {
        part: part.volume * float(np.square(part_values(layout.reference, part, own, part.points[::4])).mean())
        for part, own in weights.items()
    }
    largest = max(squares, key=squares.__getitem__)
    return len(squares) > 2 and not largest.whole and squares[largest] > (1.0 - NEGLIGIBLE) * sum(squares.values())


def _largest(
    problem: Problem, X: FloatArray, network: Network, weights: FloatArray | None = None
) -> tuple[FloatArray, str]:
    """Return at which of some points a function is largest, and in which field."""
    zero = (0,) * X.shape[1]
    values = network.evaluate(X, [zero])[zero]
    values = values if weights is None else values @ weights.T
    row, column = np.unravel_index(int(np.argmax(np.abs(values))), values.shape)
    return X[row], problem.field_names[column]


@dataclass(frozen=True, eq=False)
class Ambiguity:
    """The function of a network that the equations and conditions see least."""

    visibility: float  # size of what the equations and conditions see of it, relative to its own size
    # network, weights: the function: a pilot network and its output weights, one row per field
    network: BroadNetwork
    weights: FloatArray

    @property
    def is_unseen(self) -> bool:
        """Whether nothing of it is seen: solutions are not unique."""
        return self.visibility < INVISIBLE


def ambiguity_of(fitting: Fitting, budget: Budget | None = None) -> str:
    """Say which change of a solution nothing sees, by two small networks; an empty string if there is none."""
    nodes = fitting.pilot_nodes * 2 // 3
    with blas_threads(most=1):
        narrow, wide = (
            find_ambiguity(fitting.problem, fitting.points(n), fitting.network([(n, (SCALE,) * fitting.axes)]))
            for n in (nodes, 2 * nodes)
        )
    if budget is not None:
        budget.spend(fitting.operations(nodes) + fitting.operations(2 * nodes))
    # For a well-posed problem the least visible function is a smooth one, which the narrower network had already.
    if not (wide.is_unseen or wide.visibility < min(PLAIN, MOST**2 * narrow.visibility)):
        return ""
    place, field = _largest(fitting.problem, fitting.compare_points, wide.network, wide.weights)
    return _in_words(fitting.problem, field, place, wide.visibility, wide.is_unseen)


def find_ambiguity(problem: Problem, points: Points, network: BroadNetwork) -> Ambiguity:
    """Return the least visible function of a network."""
    system = assemble(problem, points, network, Balanced())
    seen = np.concatenate([own for own in (system.matrix, system.constraints) if own is not None])
    values = network.combine(points.interior, [{(0,) * network.dimension: 1.0}])[0]
    values = values / np.sqrt(np.mean(np.sum(values**2, axis=1)))
    # An orthonormal basis of the functions themselves, so that sizes are those of functions and not of weights.
    _, sizes, right = linalg.svd(values / np.sqrt(len(values)), full_matrices=False)
    keep = sizes > SMALLEST * sizes[0]
    basis = right[keep].T / sizes[keep]
    fields = len(problem.fields)
    lifted = np.concatenate([seen[:, i * network.size : (i + 1) * network.size] @ basis for i in range(fields)], axis=1)
    _, visible, directions = linalg.svd(lifted / np.sqrt(len(seen)), full_matrices=False)
    weights = directions[-1].reshape(fields, -1) @ basis.T
    return Ambiguity(float(visible[-1]), network, weights)
