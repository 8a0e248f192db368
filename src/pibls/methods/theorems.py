"""The four theorems on physics-informed broad learning, measured on a solve: what holds, and with how much to spare.

They concern the minimiser w of J(w) = ‖H w − z‖² + λ‖w‖². The printed constant ‖H‖/λ of stability and sensitivity, with
the spectral norm, is true but loose; the largest σ/(σ² + λ) over all σ up to ‖H‖ is never above 1/(2√λ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from pibls.checks import FloatArray
from pibls.system import Block

__all__ = ["TheoremReport", "check_theorems", "gain_bound", "physics_consistency", "spectral_norm"]

_LARGEST = 1e150
# Room for the rounding of the norms that are compared.
_SLACK = 1e-9


@dataclass(frozen=True)
class TheoremReport:
    """One theorem, measured.

    Attributes
    ----------
    theorem
        Its name.
    measured
        The quantity it bounds.
    paper_bound, sharp_bound
        The bound as printed, and the best one known from the given data.
    """

    theorem: str
    measured: float
    paper_bound: float
    sharp_bound: float

    @property
    def holds(self) -> bool:
        """Whether the measured quantity respects both bounds, up to rounding."""
        return self.measured <= min(self.paper_bound, self.sharp_bound) * (1 + _SLACK)

    @property
    def record(self) -> dict[str, Any]:
        """All of it but the name, to be stored."""
        numbers = {name: float(getattr(self, name)) for name in ("measured", "paper_bound", "sharp_bound")}
        return {**numbers, "holds": bool(self.holds)}


def check_theorems(
    blocks: Sequence[Block],
    matrix_norm: float,
    ridge: float,
    rhs: FloatArray,
    weights: FloatArray,
    residual: FloatArray,
    changes: tuple[FloatArray, FloatArray],
) -> Mapping[str, Any]:
    """Return stability, residual, sensitivity and consistency of a solve as measured value and bounds.

    Stability and sensitivity need a ridge, and are left out without one. The residual theorem, J(w*) ≤ J(w) for every
    w, is checked at w = 0, where J is ‖z‖².

    Parameters
    ----------
    blocks, matrix_norm, ridge, rhs
        The scaled system and its spectral norm, which is asked for with a ridge only.
    weights, residual
        The minimiser, and the residual of the rows.
    changes
        A small random change of the right-hand side, and the change of the weights under it.
    """
    # Nodes that nearly vanish at all points have weights whose squares overflow.
    with np.errstate(over="ignore"):
        norm = min(float(np.linalg.norm(weights)), _LARGEST)
    objective = float(np.linalg.norm(residual)) ** 2 + ridge * norm**2
    size = float(np.linalg.norm(rhs))
    reports = [
        TheoremReport("residual", math.sqrt(objective), size, size),
        physics_consistency([residual[block.rows] for block in blocks], ridge, norm),
    ]
    if ridge > 0:
        change, weights_change = (float(np.linalg.norm(array)) for array in changes)
        reports.append(gain_bound("stability", matrix_norm, ridge, size, norm))
        reports.append(gain_bound("sensitivity", matrix_norm, ridge, change, weights_change))
    return {report.theorem: report.record for report in reports}


def spectral_norm(matrix: Any, steps: int = 100) -> float:
    """Return the largest singular value of a matrix of any array library, by repeated products; never too large.

    >>> round(spectral_norm(np.array([[3.0, 0.0], [4.0, 0.1]])), 4)
    5.0006
    """
    xp = array_namespace(matrix)
    found, vector = 0.0, xp.sum(matrix, axis=0)
    for _ in range(steps):
        size = float(xp.linalg.vector_norm(vector))
        image = matrix @ (vector / size) if size > 0 else matrix[:, 0]
        larger = float(xp.linalg.vector_norm(image))
        if larger <= found * (1 + _SLACK):
            return max(found, larger)
        found, vector = larger, matrix.T @ image
    return found


def gain_bound(theorem: str, matrix_norm: float, ridge: float, size: float, measured: float) -> TheoremReport:
    """Bound ‖w‖ by ‖H‖/λ·‖z‖ (printed) and by max σ/(σ² + λ)·‖z‖ (sharp); or their changes, in the same way.

    >>> gain_bound("stability", 10.0, 0.25, 1.0, measured=0.7)
    TheoremReport(theorem='stability', measured=0.7, paper_bound=40.0, sharp_bound=1.0)
    """
    # σ/(σ² + λ) rises up to σ = √λ and falls beyond it.
    sigma = min(matrix_norm, math.sqrt(ridge))
    return TheoremReport(theorem, measured, matrix_norm / ridge * size, sigma / (sigma**2 + ridge) * size)


def physics_consistency(residuals: Sequence[FloatArray], ridge: float, weights_norm: float) -> TheoremReport:
    """Bound the largest residual at any collocation point by the objective J = Σ mean(rₖ²) + λ‖w‖².

    The theorem as printed says that J = 0 with λ = 0 leaves no residual anywhere. Quantified, no residual of part k
    exceeds √(Nₖ J).

    >>> physics_consistency([np.array([3.0, 4.0]), np.array([0.0])], 0.0, 1.0).sharp_bound  # J = 12.5
    5.0
    """
    total = sum(float(np.mean(part**2)) for part in residuals) + ridge * weights_norm**2
    return TheoremReport(
        "physics consistency",
        measured=max(float(np.max(np.abs(part))) for part in residuals),
        paper_bound=0.0 if total == 0 and ridge == 0 else math.inf,
        sharp_bound=max(math.sqrt(part.size * total) for part in residuals),
    )
