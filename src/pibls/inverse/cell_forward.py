"""Sensitivities of a solution by cells: all from one elimination along the tree, as further right-hand sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.budget import Budget
from pibls.cells import solve_cells, solve_cells_nonlinear
from pibls.cells.evaluation import PlacedStatement, Sources
from pibls.cells.iterate import NewtonFitter
from pibls.cells.layout import Layout
from pibls.cells.loop import Loop
from pibls.cells.outcome import Comparison, network_of
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.state import TreeState, projected
from pibls.cells.tree import Cell, leaves
from pibls.checks import FloatArray
from pibls.inverse.parametric import Parametric
from pibls.inverse.response import Forward, finer, of_fields
from pibls.inverse.thresholds import SETTINGS, STEP
from pibls.problem import AtPoints, MultiIndex, Statement
from pibls.problem.analysis import analysis_of
from pibls.refinement import SMALLEST, VISIBLE
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.solution.posterior import Posterior

Known = Callable[[FloatArray], FloatArray]
"""Unknown functions at points as they were found, and then, side by side, how uncertain they are: as columns."""


@dataclass(frozen=True, eq=False)
class CellResponse:
    """Weights of the fields on every part of a tree, and those of their sensitivities."""

    forward: CellForward
    layout: Layout
    fit: Fit
    vector: FloatArray

    is_aged = False

    def evaluate(self, X: FloatArray, indices: Iterable[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives at points, shape (n, 1 + unknowns, fields): the fields first, then their sensitivities."""
        wanted = list(indices)
        sides, fields = 1 + len(next(iter(self.fit.columns.values()))), len(self.layout.problem.field_names)
        found = {index: np.empty((len(X), sides, fields)) for index in wanted}
        for part, rows in self.forward.located(X):
            nodes = self.layout.functions_at(part, X[rows], wanted)
            weights = np.concatenate([self.fit.weights[part][None], self.fit.columns[part]])
            for index in wanted:
                scale = float(np.prod(part.half ** np.array(index)))
                found[index][rows] = np.einsum("nm,sfm->nsf", nodes[index], weights / scale, optimize=True)
        return found

    def moved(self, step: FloatArray) -> dict[CellPart, FloatArray]:
        """Return the weights that are expected after a step of the unknowns."""
        return {
            part: own + np.tensordot(step, self.fit.columns[part], axes=1) for part, own in self.fit.weights.items()
        }


@dataclass(frozen=True, eq=False)
class CellForward(Forward):
    """Solves on the tree that the solution at some values of the unknowns was found on."""

    layout: Layout
    root: Cell
    _located: dict[Any, list[tuple[CellPart, Any]]] = field(default_factory=dict)
    # what fields make of noise, draw by draw, where measurements help to determine them, once that is known
    noisy: Mapping[CellPart, FloatArray] = field(default_factory=dict)

    @classmethod
    def around(
        cls,
        parametric: Parametric,
        vector: FloatArray,
        tol: float,
        budget: Budget,
        seed: int,
        near: Solution | None,
        share: float = 1.0,
    ) -> CellForward:
        """Solve at some values of the unknowns, with a share of the remaining budget; keep the tree."""
        problem, found = parametric.at(vector), list[Comparison]()

        def keep(_: Solution, loop: Loop) -> tuple[str, str]:
            assert loop.reported is not None
            found.append(loop.reported)
            return "", ""

        common: Any = {"budget": budget.part(share), "seed": seed, "report": lambda *_: None, "diagnose": keep}
        if problem.is_linear:
            solution = solve_cells(problem, tol, **common)
        else:
            solution = solve_cells_nonlinear(problem, tol, start=near, **common)
        return cls(parametric, solution, vector, tol, budget, found[-1].fit_layout, found[-1].fit.root)

    finest = SMALLEST

    def located(self, X: FloatArray) -> list[tuple[CellPart, Any]]:
        """Return the parts that points are in, and which are in each."""
        key = (X.shape, X.tobytes())
        if key not in self._located:
            network = self.solution.network
            assert isinstance(network, CellNetwork)
            numbers = network.locate(X)
            # All parts in the order of the network.
            parts = [part for leaf in leaves(self.root) for part in self.layout.parts(leaf)]
            self._located[key] = [(parts[n], np.flatnonzero(numbers == n)) for n in np.unique(numbers).tolist()]
        return self._located[key]

    def respond(self, vector: FloatArray, near: Any = None) -> CellResponse:
        """Return the solution and its sensitivities, from a response nearby if its weights belong to this tree."""
        moved = None
        if isinstance(near, CellResponse) and near.forward is self:
            moved = near.moved(vector - near.vector)
            if self.parametric.is_affine:
                return replace(near, fit=replace(near.fit, weights=moved), vector=vector)
        layout = self.layout.restated(self.parametric.at(vector))
        state = None if layout.problem.is_linear else self._solved(layout, moved)
        return CellResponse(self, layout, self._with_sensitivity(vector, layout, state), vector)

    def _with_sensitivity(self, vector: FloatArray, layout: Layout, state: Mapping[CellPart, FloatArray] | None) -> Fit:
        """Return fields and sensitivities from one elimination; those of a nonlinear problem are those at a state."""
        rows = Rows(layout, None if state is None else TreeState(layout, state))
        if self._has_hidden_fluxes or any(analysis_of(layout.problem).carried.values()):
            return self._differences(vector, layout, self._eliminated(rows).weights)
        return self._eliminated(rows, lambda fit: self._columns(vector, layout, state or fit.weights))

    def _eliminated(self, rows: Rows, sources: Callable[[Fit], Sources] | None = None) -> Fit:
        """Return fields, and those for further sources, from one elimination."""
        solver = self._noted(TreeSolver(rows))
        try:
            fit = solver.solve(self.root)
            return fit if sources is None else replace(fit, columns=solver.solve_for(sources(fit)).columns)
        finally:
            self.budget.spend(solver.flops)

    @cached_property
    def _has_hidden_fluxes(self) -> bool:
        """Whether fluxes through jumps depend on unknowns, but are not written down as divergences."""
        analysis = analysis_of(self.parametric.problem)
        return analysis.jumps and None in analysis.fluxes and not self.parametric.is_separable

    def _differences(self, vector: FloatArray, layout: Layout, state: Mapping[CellPart, FloatArray]) -> Fit:
        """Return sensitivities by differences: a flux through a jump, or a jump, depends on the unknowns by itself."""
        columns: dict[CellPart, list[FloatArray]] = {part: [] for part in state}
        for number in range(self.parametric.size):
            step = np.zeros(len(vector))
            step[number] = STEP * (abs(vector[number]) or 1.0)
            ends = [vector - step, vector + step]
            below, above = (self._solved(layout.restated(self.parametric.at(end)), state) for end in ends)
            for part, own in columns.items():
                own.append((above[part] - below[part]) / (ends[1] - ends[0])[number])
        sensitivity = {part: np.array(own) for part, own in columns.items()}
        return Fit(self.root, tuple(state), dict(state), columns=sensitivity)

    def _noted(self, solver: TreeSolver) -> TreeSolver:
        return solver

    def _solved(self, layout: Layout, state: Mapping[CellPart, FloatArray] | None) -> Mapping[CellPart, FloatArray]:
        """Return the weights of the fields alone."""
        if layout.problem.is_linear:
            return self._eliminated(Rows(layout)).weights
        newton = NewtonFitter(layout, self.tol, self.budget)
        if state is None:
            network = self.solution.network
            zero = (0,) * network.dimension
            return newton.settle(self.root, lambda _, X: network.evaluate(X, [zero])[zero]).fit.weights
        return newton.descend(self.root, state).fit.weights

    def _columns(self, vector: FloatArray, layout: Layout, weights: Mapping[CellPart, FloatArray]) -> Sources:
        """Return the derivatives of residuals and fluxes by the unknowns as further sources."""
        stated = self.parametric.problem
        pairs = list(zip(layout.problem.statements, self.parametric.stated, strict=True))
        known = {id(own): form for made, s in pairs for own, form in zip(made.forms, s.forms, strict=True)}
        if analysis_of(stated).switching is not None:
            fluxes = zip(analysis_of(layout.problem).fluxes, analysis_of(stated).fluxes, strict=True)
            known |= {id(own): form for own, form in fluxes if form is not None}
        state = TreeState(layout, weights)

        def columns(own: PlacedStatement, part: CellPart) -> FloatArray:
            X, dependence = own.points, self.parametric.dependence(known[id(own.statement.form)])
            values = dependence.values(X, state(part, X, dependence.wanted), vector)
            return dependence.slopes(X, own.normals, values)

        return columns

    def banded(self, response: CellResponse, factor: FloatArray, known: Known) -> tuple[CellNetwork, Posterior]:
        """Return a response as a network with nodes for its uncertainty, from a factor of the covariance.

        What noise does to fields at given unknowns, and to these, has nothing to do with each other.
        """
        fit, layout = response.fit, response.layout
        wrong = {} if self.noisy else projected(layout, self.root, lambda _, X: self._gaps(X))
        functions = projected(layout, self.root, lambda _, X: known(X)) if self.parametric.bases else {}
        count = factor.shape[1] + (SETTINGS.probes if self.noisy else 0)
        order = ordering(self.parametric, 1 + count)
        weights = {}
        for part, own in fit.weights.items():
            sides = [own[None], np.tensordot(factor.T, fit.columns[part], axes=1)]
            if self.noisy:
                sides.append(self.noisy[part] / np.sqrt(SETTINGS.probes))
            else:
                sides[1][0] += wrong[part]
            fields = np.concatenate(sides).reshape(-1, own.shape[1])
            weights[part] = np.concatenate([fields, functions[part]] if functions else [fields])[order]
        network = network_of(layout, Fit(fit.root, fit.parts, weights))
        return network, banding(len(self.parametric.problem.fields), count)

    def _gaps(self, X: FloatArray) -> FloatArray:
        """Return by how much fields are wrong for want of finer cells, as columns."""
        wanted: list[tuple[str, MultiIndex]] = [(name, (0,) * X.shape[1]) for name in self.parametric.names]
        one, two = (np.stack(own.evaluate(X, wanted), axis=1) for own in (self.solution, finer(self.solution)))
        return np.where(np.isfinite(one - two), one - two, 0.0)


def gap_of(one: Mapping[CellPart, FloatArray], two: Mapping[CellPart, FloatArray]) -> float:
    """Return by how much weights differ from others, as a share of these."""
    gap = sum(float(np.square(one[part] - own).sum()) for part, own in two.items())
    return float(np.sqrt(gap / max(sum(float(np.square(own).sum()) for own in two.values()), 1e-300)))


def ordering(parametric: Parametric, sides: int) -> list[int]:
    """Return the numbers of nodes in the order of the problem's fields, side by side.

    They come as fields that are solved for, side by side, and then functions, likewise.
    """
    names, functions = parametric.names, tuple(basis.name for basis in parametric.bases)
    after = sides * len(names)
    return [
        side * len(names) + names.index(name)
        if name in names
        else after + side * len(functions) + functions.index(name)
        for side in range(sides)
        for name in parametric.problem.field_names
    ]


def banding(fields: int, columns: int) -> Posterior:
    """Return the distribution of the weights of a network whose nodes are fields and then, side by side, their changes.

    >>> banding(1, 2).deviations(np.array([[7.0, 3.0, 4.0]]), 0)
    array([5.])
    """
    size = fields * (1 + columns)
    factor = np.zeros((fields, size, columns))
    for number in range(fields):
        factor[number, fields + number :: fields, :][:columns, :] = np.eye(columns)
    return Posterior(factor.reshape(fields * size, columns), 0.0, {}, 0.0)


@dataclass(frozen=True, eq=False)
class OpenBoundary(CellForward):
    """Fields that measurements help to determine, on one tree."""

    first: Mapping[CellPart, FloatArray] = field(default_factory=dict)  # weights that a search starts from
    solvers: list[TreeSolver] = field(default_factory=list)  # the last elimination, for what it says beside the weights

    def respond(self, vector: FloatArray, near: Any = None) -> CellResponse:
        """Return the fields that are nearest to equations and measurements, and their sensitivities."""
        layout = self.layout.restated(self.parametric.at(vector))
        state = self.first if near is None else near.moved(vector - near.vector)
        for _ in range(SETTINGS.rounds):
            fit = self._with_sensitivity(vector, layout, state)
            if gap_of(state, fit.weights) <= VISIBLE:
                break
            state = fit.weights
        return CellResponse(self, layout, fit, vector)

    def _noted(self, solver: TreeSolver) -> TreeSolver:
        self.solvers[:] = [solver]
        return solver

    def drawn(
        self, response: CellResponse, noise: FloatArray, sets: Sequence[tuple[Statement, slice]]
    ) -> tuple[dict[CellPart, FloatArray], float]:
        """Return the response of fields to noise alone, draw by draw, and the degrees of freedom that it takes."""
        layout, state = response.layout, TreeState(response.layout, response.fit.weights)
        draws = np.random.default_rng(SETTINGS.probes).standard_normal((len(noise), SETTINGS.probes))
        measured = layout.problem.statements[-len(sets) :]
        places = {id(s): span for s, (_, span) in zip(measured, sets, strict=True)}

        def columns(own: PlacedStatement, part: CellPart) -> FloatArray:
            if id(own.statement) not in places:
                return np.zeros((len(own.points), SETTINGS.probes))
            assert isinstance(own.statement.place, AtPoints)
            mine = places[id(own.statement)].start + layout.owned(part, own.statement.place.points)
            return np.asarray(-draws[mine] * noise[mine, None])

        fit = self._eliminated(Rows(layout, state), lambda _: columns)
        made = replace(response, fit=fit)
        taken = 0.0
        for statement, span in sets:
            assert isinstance(statement.place, AtPoints)
            _, follows = of_fields(self.parametric, statement, made, response.vector, statement.place.points)
            taken += float((draws[span] * follows / noise[span, None]).sum()) / SETTINGS.probes
        return fit.columns, taken
