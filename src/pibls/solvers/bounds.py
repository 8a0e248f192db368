"""The four theorems on physics-informed broad learning, as measurements: what holds, and with how much to spare.

They concern the minimiser w of J(w) = ‖H w − z‖² + λ‖w‖². The printed constants ‖H‖/λ of stability and
sensitivity are true but loose; max σ/(σ² + λ) over the singular values σ of H is exact, and never above 1/(2√λ).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pibls.checks import check_number
from pibls.errors import InputError
from pibls.solvers.inputs import check_matrix, check_rhs, to_host

__all__ = [
    "TheoremReport",
    "objective",
    "physics_consistency",
    "residual_bound",
    "sensitivity_bound",
    "stability_bound",
]

# Room for the rounding of the norms that are compared.
_SLACK = 1e-9
_FloatArray = npt.NDArray[np.float64]


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
    rounding
        What the measured quantity may exceed the bounds by because it was computed in floating point.
    """

    theorem: str
    measured: float
    paper_bound: float
    sharp_bound: float
    rounding: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the measured quantity respects both bounds, up to rounding."""
        return self.measured <= min(self.paper_bound, self.sharp_bound) * (1 + _SLACK) + self.rounding


def stability_bound(
    matrix_norm: float,
    ridge: float,
    rhs_norm: float,
    *,
    measured: float,
    singular_values: npt.ArrayLike | None = None,
) -> TheoremReport:
    """Bound ‖w‖ by ‖H‖/λ·‖z‖ (printed) and by max σ/(σ² + λ)·‖z‖ (sharp).

    Parameters
    ----------
    matrix_norm, ridge, rhs_norm
        ‖H‖₂, λ > 0 and ‖z‖₂.
    measured
        ‖w‖₂ of the weights found.
    singular_values
        Those of H, for the exact maximum; without them it is taken over all σ up to ‖H‖, at most 1/(2√λ).

    >>> stability_bound(10.0, 0.25, 1.0, measured=0.7).sharp_bound
    1.0
    """
    return _gain_report("stability", matrix_norm, ridge, rhs_norm, measured, singular_values)


def sensitivity_bound(
    matrix_norm: float,
    ridge: float,
    change_norm: float,
    *,
    measured: float,
    singular_values: npt.ArrayLike | None = None,
) -> TheoremReport:
    """Bound the change ‖Δw‖ of the weights by the constants of :func:`stability_bound` times the change ‖Δz‖.

    >>> sensitivity_bound(1.0, 0.01, 1e-3, measured=6e-3).holds  # the printed bound is 0.1, the sharp one 5e-3
    False
    """
    return _gain_report("sensitivity", matrix_norm, ridge, change_norm, measured, singular_values)


def objective(matrix: object, weights: object, rhs: object, ridge: float = 0.0) -> float:
    """Return J(w) = ‖H w − z‖² + λ‖w‖².

    >>> objective([[1.0], [1.0]], [2.0], [2.0, 1.0], ridge=0.25)
    2.0
    """
    h, w, z = _system(matrix, weights, rhs, "objective")
    ridge = check_number("ridge", ridge, "objective", minimum=0.0)
    return float(np.sum((h @ w - z) ** 2) + ridge * np.sum(w**2))


def residual_bound(matrix: object, weights: object, rhs: object, ridge: float, exact_weights: object) -> TheoremReport:
    """Bound ‖H(w − wᵉ)‖ for exact weights wᵉ, H wᵉ = z, by √J(w) (printed) and by ½√λ‖wᵉ‖ (sharp).

    The sharp bound follows from w − wᵉ = −λ(HᵀH + λI)⁻¹wᵉ and λσ/(σ² + λ) ≤ ½√λ; it needs the minimiser w.

    >>> residual_bound([[1.0]], [0.5], [1.0], 1.0, [1.0])
    TheoremReport(theorem='residual', measured=0.5, paper_bound=0.7071067811865476, sharp_bound=0.5, rounding=...)
    """
    h, w, z = _system(matrix, weights, rhs, "residual_bound")
    exact = _system(matrix, exact_weights, rhs, "residual_bound")[1]
    ridge = check_number("ridge", ridge, "residual_bound", minimum=0.0)
    size = float(np.linalg.norm(h)) * float(np.linalg.norm(w) + np.linalg.norm(exact)) + float(np.linalg.norm(z))
    rounding = _SLACK * size
    if float(np.linalg.norm(h @ exact - z)) > rounding:
        raise InputError(
            "The 'exact_weights' parameter of residual_bound must solve H w = z. Got a residual of "
            f"{float(np.linalg.norm(h @ exact - z)):.2e} instead. The theorem says nothing about other weights."
        )
    return TheoremReport(
        "residual",
        measured=float(np.linalg.norm(h @ (w - exact))),
        paper_bound=math.sqrt(objective(h, w, z, ridge)),
        sharp_bound=0.5 * math.sqrt(ridge) * float(np.linalg.norm(exact)),
        rounding=max(h.shape) * float(np.finfo(np.float64).eps) * size,
    )


def physics_consistency(
    residuals: Mapping[str, npt.ArrayLike],
    penalties: Mapping[str, float] | None = None,
    *,
    ridge: float = 0.0,
    weights_norm: float = 0.0,
) -> TheoremReport:
    """Bound the largest residual at any collocation point by the objective J = Σ λₖ·mean(rₖ²) + λ‖w‖².

    The theorem as printed says that J = 0 with λ = 0 leaves no residual anywhere. Quantified, no residual of part k
    exceeds √(Nₖ J/λₖ); a part whose penalty is 0 is not bound at all, and then the printed claim can fail.

    >>> physics_consistency({"equation": [3.0, 4.0], "boundary": [0.0]}).sharp_bound  # J = 12.5
    5.0
    """
    penalties = {} if penalties is None else penalties
    unknown = sorted(set(penalties) - set(residuals))
    if not residuals or unknown:
        raise InputError(
            "The 'residuals' parameter of physics_consistency must hold at least one part, and every part that "
            f"'penalties' names. Got parts {sorted(residuals)}, and penalties without a part: {unknown}."
        )
    owner = "physics_consistency"
    parts = {name: _flat(name, values, owner) for name, values in residuals.items()}
    factors = {name: check_number(name, penalties.get(name, 1.0), owner, minimum=0.0) for name in parts}
    ridge = check_number("ridge", ridge, owner, minimum=0.0)
    shrinkage = ridge * check_number("weights_norm", weights_norm, owner, minimum=0.0) ** 2
    total = sum(factors[name] * float(np.mean(part**2)) for name, part in parts.items()) + shrinkage
    limits = [
        math.sqrt(part.size * total / factors[name]) if factors[name] > 0 else math.inf for name, part in parts.items()
    ]
    return TheoremReport(
        "physics consistency",
        measured=max(float(np.max(np.abs(part))) for part in parts.values()),
        paper_bound=0.0 if total == 0 and ridge == 0 else math.inf,
        sharp_bound=max(limits),
    )


def _gain_report(
    theorem: str, matrix_norm: float, ridge: float, size: float, measured: float, values: npt.ArrayLike | None
) -> TheoremReport:
    owner = f"{theorem}_bound"
    norm = check_number("matrix_norm", matrix_norm, owner, minimum=0.0)
    remedy = "Without a ridge the theorem does not apply."
    ridge = check_number("ridge", ridge, owner, minimum=0.0, exclusive=True, remedy=remedy)
    size = check_number("rhs_norm" if theorem == "stability" else "change_norm", size, owner, minimum=0.0)
    root = math.sqrt(ridge)
    # σ/(σ² + λ) rises up to σ = √λ and falls beyond it.
    sigma = np.array([min(norm, root)]) if values is None else _flat("singular_values", values, owner)
    gain = float(np.max(sigma / (sigma**2 + ridge)))
    return TheoremReport(
        theorem,
        measured=check_number("measured", measured, owner, minimum=0.0),
        paper_bound=norm / ridge * size,
        sharp_bound=gain * size,
    )


def _flat(name: str, values: object, owner: str) -> _FloatArray:
    """Return a non-empty list of finite numbers of any shape as a vector."""
    array = np.asarray(to_host(check_matrix(np.reshape(to_host(values), (-1, 1)), owner, name=name)))
    return np.asarray(check_rhs(array, len(array), array, owner, name=name)[:, 0])


def _system(matrix: object, weights: object, rhs: object, owner: str) -> tuple[_FloatArray, _FloatArray, _FloatArray]:
    h = np.asarray(to_host(check_matrix(matrix, owner)))
    w = check_rhs(weights, h.shape[1], h, owner, name="weights")
    return h, np.asarray(w), np.asarray(check_rhs(rhs, h.shape[0], h, owner))
