"""A rational approximation of the exponential with one real pole: a step is a few solves with one and the same matrix.

With S = (1 − γhL)⁻¹, the solution of u' = Lu at the time θh after u is p(θ, S)u up to the order s, where p is a
polynomial of degree s in S; its coefficients are made of Laguerre polynomials of θ/γ. At θ = 1 it tends to zero for
large L if 1/γ is a root of the Laguerre polynomial of degree s, and with the right root it is stable for all L whose
spectrum is on the left. Methods with several poles, such as those of Radau, would combine the solutions of different
least-squares problems, whose differences grow from step to step; this one combines powers of one S.

Data that depend on time are part of the state: their generator is d/dt, and so they are evaluated as S^k acts on them.
"""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from numpy.polynomial import laguerre, legendre

from pibls.checks import FloatArray

ORDER = 8  # the highest for which there is a stable pole


@cache
def pole() -> float:
    """Return γ.

    >>> round(pole(), 6)
    0.234373
    """
    return float(1.0 / np.sort(laguerre.lagroots([0] * ORDER + [1]))[3])


def _polynomial(theta: float, order: int = ORDER) -> FloatArray:
    """Return the coefficients of p in powers of S, or of the approximation of a lower order with the same pole."""
    found, top = np.zeros(ORDER + 1), [0] * order + [1]
    for j in range(order + 1):
        # (γhL)^j S^s = S^(s − j) (S − 1)^j
        power = np.array([comb(j, i) * (-1.0) ** (j - i) for i in range(j + 1)])
        factor = laguerre.lagval(theta / pole(), laguerre.lagder(top, order - j))
        found[order - j : order + 1] += (-1) ** order * factor * power
    return found


@cache
def term_weights() -> FloatArray:
    """Return the weights of the powers of S in the terms that the last four orders add at the end of a step.

    >>> bool(np.allclose(term_weights().sum(axis=1), 0.0))
    True
    """
    return np.array([_polynomial(1.0, ORDER - j) - _polynomial(1.0, ORDER - j - 1) for j in (3, 2, 1, 0)])


@cache
def step_weights() -> tuple[FloatArray, FloatArray]:
    """Return the weights of the powers of S at the end of a step, and in Legendre coefficients over the step.

    >>> end, series = step_weights()
    >>> powers = 1 / (1 + pole()) ** np.arange(ORDER + 1)
    >>> bool(abs(end @ powers - np.exp(-1)) < 1e-6), bool(abs(series.sum(axis=0) @ powers - np.exp(-1)) < 1e-6)
    (True, True)
    """
    nodes, weights = legendre.leggauss(ORDER + 1)
    values = np.array([_polynomial((1.0 + node) / 2.0) for node in nodes])
    table = legendre.legvander(nodes, ORDER) * (np.arange(ORDER + 1) + 0.5)
    return _polynomial(1.0), np.asarray((table * weights[:, None]).T @ values)


@cache
def node_weights() -> FloatArray:
    """Return the weights of the powers of S at the times at which data are evaluated.

    >>> powers = 1 / (1 + pole()) ** np.arange(ORDER + 1)
    >>> bool(np.abs(node_weights() @ powers - np.exp(-data_nodes())).max() < 1e-6)
    True
    """
    return np.array([_polynomial(node) for node in data_nodes()])


@cache
def longest(tol: float) -> float:
    """Return the angle by which an oscillation may turn in a step whose error is within a tolerance.

    >>> round(longest(1e-7), 2)
    0.71
    """
    powers = (1.0 / (1.0 - 1j * pole())) ** np.arange(ORDER + 1)
    return float((tol / abs(_polynomial(1.0) @ powers - np.exp(1j))) ** (1.0 / (ORDER + 1)))


@cache
def data_nodes() -> FloatArray:
    """Return the times of a step at which data are evaluated, as shares of it."""
    return np.asarray((1.0 + legendre.leggauss(ORDER)[0]) / 2.0)


@cache
def _moments() -> FloatArray:
    """Return (1 − γ d/dθ)^(−k) of Legendre polynomials at θ = 0, one row for each k from 1."""
    found = np.empty((ORDER, ORDER))
    for degree in range(ORDER):
        top = [0] * degree + [1]
        slopes = [legendre.legval(-1.0, legendre.legder(top, j)) * 2.0**j for j in range(degree + 1)]
        for k in range(1, ORDER + 1):
            found[k - 1, degree] = sum(comb(k + j - 1, j) * pole() ** j * own for j, own in enumerate(slopes))
    return found


@cache
def data_weights() -> FloatArray:
    """Return the matrix from data at the nodes to the data of S^k, one row for each k from 1.

    >>> bool(np.allclose(data_weights().sum(axis=1), 1.0))
    True
    """
    return np.asarray(_moments() @ np.linalg.inv(legendre.legvander(2.0 * data_nodes() - 1.0, ORDER - 1)))


@cache
def still_weights() -> FloatArray:
    """Return the matrix from the solutions of all S^k to Legendre coefficients of a field without a time derivative."""
    return np.asarray(np.linalg.inv(_moments()))
