"""Solves on a tree of cells that adapts to the problem; every cell has the same few functions.

>>> from pibls.problems import helmholtz
>>> solution = solve_cells(helmholtz(), 1e-8, 10.0, 0, lambda *_: None)
>>> solution.status, solution.true_error() < 1e-8
('converged', True)
"""

from pibls.cells.linear import solve_cells, suits_cells
from pibls.cells.newton import solve_cells_nonlinear

__all__ = [
    "solve_cells",
    "solve_cells_nonlinear",
    "suits_cells",
]
