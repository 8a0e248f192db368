"""Fields that measurements help to determine, where equations and conditions leave them open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pibls.cells.outcome import network_of
from pibls.cells.parts import CellPart
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, Glue
from pibls.cells.state import TreeState
from pibls.checks import FloatArray
from pibls.inverse.cell_forward import CellForward, CellResponse, Known, banding, gap_of, ordering
from pibls.inverse.response import of_fields
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Statement
from pibls.solution.celled import CellNetwork
from pibls.solution.posterior import Posterior


@dataclass(frozen=True, eq=False)
class OpenBoundary(CellForward):
    """Fields that measurements help to determine, on one tree."""

    first: Mapping[CellPart, FloatArray] = field(default_factory=dict)  # weights that a search starts from
    glues: list[Glue] = field(default_factory=list)  # the last elimination, for what it says beside the weights
    # what fields make of noise, draw by draw, once that is known
    noisy: Mapping[CellPart, FloatArray] = field(default_factory=dict)

    def respond(self, vector: FloatArray, near: CellResponse | None = None) -> CellResponse:
        """Return the fields that are nearest to equations and measurements, and their sensitivities."""
        layout = self.layout.restated(self.parametric.at(vector))
        state = self.first if near is None else near.moved(vector - near.vector)
        for _ in range(SETTINGS.rounds):
            fit = self._with_sensitivity(vector, layout, state)
            if gap_of(state, fit.weights) <= SETTINGS.foretold:
                break
            state = fit.weights
        return CellResponse(self, layout, fit, vector)

    def _eliminated(self, rows: Rows) -> Fit:
        self.glues[:] = [Glue(rows)]
        try:
            return self.glues[0].solve(self.root)
        finally:
            self.budget.spend(self.glues[0].flops)

    def drawn(
        self, response: CellResponse, noise: FloatArray, sets: Sequence[tuple[Statement, slice]]
    ) -> tuple[dict[CellPart, FloatArray], float]:
        """Return the response of fields to noise alone, draw by draw, and the degrees of freedom that it takes."""
        layout, state = response.layout, TreeState(response.layout, response.fit.weights)
        draws = np.random.default_rng(SETTINGS.probes).standard_normal((len(noise), SETTINGS.probes))
        measured = layout.problem.statements[-len(sets) :]
        places = {id(s): span for s, (_, span) in zip(measured, sets, strict=True)}

        def columns(statement: Statement, part: CellPart, X: FloatArray, _: FloatArray | None) -> FloatArray:
            if id(statement) not in places:
                return np.zeros((len(X), SETTINGS.probes))
            assert isinstance(statement.place, AtPoints)
            mine = places[id(statement)].start + layout.owned(part, statement.place.points)
            return np.asarray(-draws[mine] * noise[mine, None])

        fit = self._eliminated(Rows(layout, state, columns=columns, sides=1 + SETTINGS.probes))
        made = replace(response, fit=fit)
        taken = 0.0
        for statement, span in sets:
            assert isinstance(statement.place, AtPoints)
            _, follows = of_fields(self.parametric, statement, made, response.vector, statement.place.points)
            taken += float((draws[span] * follows / noise[span, None]).sum()) / SETTINGS.probes
        return fit.columns, taken

    def banded(self, response: CellResponse, factor: FloatArray, known: Known) -> tuple[CellNetwork, Posterior]:
        """Return a response as a network with nodes for its uncertainty: that of the unknowns, and that of the fields.

        What noise does to fields at given unknowns, and to these, has nothing to do with each other.
        """
        del known
        weights, count = {}, factor.shape[1] + SETTINGS.probes
        order = ordering(self.parametric, 1 + count)
        for part, own in response.fit.weights.items():
            sensitivity = np.tensordot(factor.T, response.fit.columns[part], axes=1)
            every = np.concatenate([own[None], sensitivity, self.noisy[part] / np.sqrt(SETTINGS.probes)])
            weights[part] = every.reshape(-1, own.shape[1])[order]
        fit = response.fit
        network = network_of(response.layout, Fit(fit.root, fit.parts, weights, {}, 0, 0))
        return network, banding(len(self.parametric.problem.fields), count)
