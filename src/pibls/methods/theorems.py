"""The four proven properties of the method, checked on a solve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.solvers import TheoremReport, physics_consistency, sensitivity_bound, stability_bound
from pibls.system import Block

__all__ = ["Evidence", "check_theorems"]


_LARGEST = 1e150


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a solve leaves behind for the theorems.

    Attributes
    ----------
    matrix_norm
        Frobenius norm of the scaled system, an upper bound of its spectral norm.
    rhs_norm
        Norm of its right-hand side.
    weights, residual
        The minimiser and the residual of the rows.
    weights_change, rhs_change
        Norms of the change of the weights under a small random change of the right-hand side, and of that change.
    """

    matrix_norm: float
    rhs_norm: float
    weights: FloatArray
    residual: FloatArray
    weights_change: float
    rhs_change: float


def check_theorems(evidence: Evidence, blocks: tuple[Block, ...], ridge: float) -> Mapping[str, Any]:
    """Return stability, residual, sensitivity and consistency of a solve as measured value and bounds.

    Stability and sensitivity need a ridge, and are left out without one. The residual theorem, J(w*) ≤ J(w) for every
    w, is checked at w = 0, where J is ‖z‖².
    """
    # Nodes that nearly vanish at all points have weights whose squares overflow.
    with np.errstate(over="ignore"):
        norm = min(float(np.linalg.norm(evidence.weights)), _LARGEST)
    objective = float(np.linalg.norm(evidence.residual)) ** 2 + ridge * norm**2
    parts = {f"{i} {block.name}": evidence.residual[block.rows] for i, block in enumerate(blocks)}
    reports = [
        TheoremReport("residual", np.sqrt(objective), evidence.rhs_norm, evidence.rhs_norm),
        physics_consistency(parts, ridge=ridge, weights_norm=norm),
    ]
    if ridge > 0:
        reports += [
            stability_bound(evidence.matrix_norm, ridge, evidence.rhs_norm, measured=norm),
            sensitivity_bound(evidence.matrix_norm, ridge, evidence.rhs_change, measured=evidence.weights_change),
        ]
    return {r.theorem: _plain(r) for r in reports}


def _plain(report: TheoremReport) -> dict[str, Any]:
    numbers = {name: float(getattr(report, name)) for name in ("measured", "paper_bound", "sharp_bound")}
    return {**numbers, "holds": bool(report.holds)}
