"""Solves on a tree of cells that adapts to the problem; every cell has the same few functions.

What all files here take for granted:

- Cells, parts, faces and branches are known by identity. Trees share unchanged subtrees: findings on a cell or a branch
  of one tree serve the next one.
- A system has the weights of a part first, then its balance sums, then the unknowns it shares with others.
- Rows and weights are in units of the part, balance sums in units of the tree; a branch knows how to convert them.
- Gram matrices are tried first. Where their refinement does not contract, rotations are used from there on.
- One domain serves cells of every degree; layouts, rows and solvers are made for one degree each.
- Rows of a nonlinear problem are those at a state, which iterations set.

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
