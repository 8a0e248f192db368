"""Whether residuals are noise, or have a pattern that a wrong model leaves in them."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from pibls.checks import FloatArray
from pibls.inverse.thresholds import SETTINGS
from pibls.problem import AtPoints, Statement
from pibls.quadrature.roots import ROUNDING
from pibls.refinement.standards import POINTS


def chance_of(statement: Statement, scaled: FloatArray, leverage: FloatArray) -> float:
    """Return the probability with which noise makes residuals of neighbours as much alike as they are.

    Residuals e are in units of the noise, and their covariance is I − Q Qᵀ for the ``leverage`` Q. The measure of
    likeness is eᵀ W e / eᵀ e, where W falls exponentially with the distance of two measurements.

    >>> import numpy as np
    >>> place = np.linspace(0, 1, 20)[:, None]
    >>> measured = Statement("u", 0, None, AtPoints(place))
    >>> wave, nothing = np.sin(2 * np.pi * place[:, 0]), np.zeros((20, 0))
    >>> chance_of(measured, wave, nothing) < 1e-4 < 0.1 < chance_of(measured, wave[np.arange(20) * 7 % 20], nothing)
    True
    """
    if not isinstance(statement.place, AtPoints) or not scaled.any():
        return 1.0
    own = np.unique(np.linspace(0, len(scaled) - 1, min(len(scaled), POINTS)).round().astype(int))
    X, Q, e = statement.place.points[own], leverage[own], scaled[own]
    if statement.loss == "huber":
        e = np.clip(e, -SETTINGS.huber, SETTINGS.huber)
    extent = np.ptp(X, axis=0)
    X = X / np.where(extent > 0, extent, 1.0)
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    weights = np.exp(-distances / SETTINGS.related)
    squares, vectors = np.linalg.eigh(np.eye(len(own)) - Q @ Q.T)
    root = vectors * np.sqrt(np.maximum(squares, 0.0))
    likeness = float(e @ weights @ e / (e @ e))
    return _positive(np.linalg.eigvalsh(root.T @ weights @ root - likeness * root.T @ root))


def _positive(values: FloatArray) -> float:
    """Return the probability that a sum of squares of normal numbers, each times a value, is positive.

    This is the saddlepoint approximation of Lugannani and Rice; the second probability is 2/3.

    >>> round(_positive(np.array([1.0, -1.0])), 6), round(_positive(np.array([3.0, -1.0])), 2)
    (0.5, 0.66)
    """
    values = values[np.abs(values) > ROUNDING * np.abs(values).max(initial=0.0)]
    if (values >= 0).all() or (values <= 0).all():
        return float(values.sum() >= 0)
    from scipy.optimize import brentq

    def slope(t: float) -> float:
        return float((values / (1.0 - 2.0 * t * values)).sum())

    within = 1.0 - ROUNDING
    t = float(brentq(slope, within / (2.0 * values.min()), within / (2.0 * values.max())))
    rest = 1.0 - 2.0 * t * values
    w = float(np.sign(t) * np.sqrt(max(np.log(rest).sum(), 0.0)))
    v = t * float(np.sqrt(2.0 * np.square(values / rest).sum()))
    # Next to the middle both are the same but for rounding.
    return 0.5 if abs(w) < np.sqrt(ROUNDING) else float(ndtr(-w - np.log(v / w) / w))
