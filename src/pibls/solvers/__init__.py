"""Linear least squares for matrices of random features, which are close to singular by nature.

One algorithm per module, all with one interface: a solver factorises a matrix H once, and the factorisation solves
min ‖H w − z‖² + λ‖w‖² for any number of right-hand sides z.

>>> import numpy as np
>>> x = np.linspace(-1, 1, 200)
>>> H = np.sin(np.outer(x, np.linspace(0.5, 6, 80)) + np.arange(80))  # 80 features, far fewer directions
>>> factor = solver("lstsq").factorise(H)
>>> factor.rank < 40, factor.condition > 1e14
(True, True)
>>> z = np.exp(x)
>>> weights = factor.solve(z)
>>> bool(np.abs(H @ weights - z).max() < 1e-12)
True

Conditions that must hold exactly go to :func:`constrained`:

>>> exact = constrained(LeastSquares(), H, H[[0, -1]])
>>> weights = exact.solve(z, z[[0, -1]])
>>> bool(np.abs(H[[0, -1]] @ weights - z[[0, -1]]).max() < 1e-13)
True

=================  ==================================================================================================
:class:`LeastSquares`     ``"lstsq"``, the default: finds the numerical rank at nearly the cost of one QR
:class:`QR`               ``"qr"``: for matrices known to have full rank
:class:`SVD`              ``"svd"``: truncated singular values
:class:`NormalEquations`  ``"normal"``: the closed forms of broad learning; squares the condition number
:class:`Sketched`         ``"sketch"``: for many more rows than columns, in memory or made block by block
=================  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.solvers.constrained import ConstrainedFactorisation, constrained
from pibls.solvers.lstsq import LeastSquares
from pibls.solvers.normal import NormalEquations
from pibls.solvers.qr import QR
from pibls.solvers.sketched import RowBlocks, Sketched
from pibls.solvers.solver import Factorisation, Solver
from pibls.solvers.svd import SVD

__all__ = [
    "ConstrainedFactorisation",
    "Factorisation",
    "LeastSquares",
    "NormalEquations",
    "QR",
    "RowBlocks",
    "SVD",
    "SOLVERS",
    "Sketched",
    "Solver",
    "constrained",
    "solver",
]

SOLVERS: Mapping[str, Callable[[], Solver]] = MappingProxyType(
    {"lstsq": LeastSquares, "qr": QR, "svd": SVD, "normal": NormalEquations, "sketch": Sketched}
)


def solver(name: str | Solver) -> Solver:
    """Return the solver of a name, with its defaults; a solver is passed through.

    >>> solver("svd")
    SVD(cutoff=None)
    >>> solver("magic")
    Traceback (most recent call last):
    ...
    pibls.errors.InputError: The 'solver' parameter must be one of 'lstsq', 'qr', 'svd', 'normal', 'sketch' or ...
    """
    if isinstance(name, str) and name in SOLVERS:
        return SOLVERS[name]()
    if isinstance(name, Solver) and not isinstance(name, type):
        return name
    raise InputError(
        f"The 'solver' parameter must be one of {', '.join(map(repr, SOLVERS))} or an object with a name and a "
        f"factorise method. Got {shorten(name)} instead."
    )
