"""Corrections: the part of an error that the chart of a network hides, as a small network in all coordinates sees it.

Two networks with one chart may miss alike what it does not show. A pilot without a chart solves for the correction
whose equations and conditions have the residual of a solution as their right-hand sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.features import BroadNetwork
from pibls.geometry import Points
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.solution.sizes import field_scales
from pibls.solvers import Factorisation, LeastSquares
from pibls.system import Balanced, Block, assemble
from pibls.tuning.fitting import Fitting
from pibls.tuning.judge import Judge
from pibls.tuning.scale_search import natural_scale


@dataclass(frozen=True, eq=False)
class Correction:
    """A pilot in all coordinates for a linear problem, or a linearised one, factorised once."""

    fitting: Fitting

    @cached_property
    def _pilot(self) -> tuple[BroadNetwork, Factorisation, Sequence[Block]]:
        plain = replace(self.fitting, chart=None)
        network = plain.network([(plain.pilot_nodes, natural_scale(plain.axes))])
        system = assemble(plain.problem, self._points, network, Balanced())
        matrix: Any = np.concatenate([own for own in (system.matrix, system.constraints) if own is not None])
        return network, LeastSquares().factorise(matrix), (*system.blocks, *system.constraint_blocks)

    @property
    def _points(self) -> Points:
        # A residual is mostly noise, of which few points per node would make a correction.
        return self.fitting.points(2 * self.fitting.pilot_nodes)

    def size(self, solution: Solution) -> float:
        """Return the size of the correction of a solution, relative to that; with several fields, the largest."""
        with blas_threads():
            network, factor, blocks = self._pilot
            problem = solution.problem
            judge = Judge(problem, self._points)
            soft, hard = ([s for s in problem.statements if s.exact is exact] for exact in (False, True))
            rows = []
            for statement, block in zip((*soft, *hard), blocks, strict=True):
                missed = judge.residual(solution.evaluate, statement)
                missed = missed if statement.targets is None else missed - statement.targets
                rows.append(block.scale * missed / (1.0 if block.noise is None else block.noise))
            weights = factor.solve(np.concatenate(rows)).reshape(len(problem.fields), -1)
            X, zero = self.fitting.compare_points, (0,) * self.fitting.dimension
            found = network.contract(X, [zero], weights.T)[0]
        own = np.array(solution.evaluate(X, [(name, zero) for name in problem.field_names]))
        sizes = field_scales(problem, np.linalg.norm(own, axis=1))
        return float((np.linalg.norm(found, axis=0) / sizes).max())
