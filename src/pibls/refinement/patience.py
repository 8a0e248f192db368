"""How long every refinement waits for stages that bring nothing, side by side.

A stage pays if it halves the estimate. The last estimates are held against those before: two of them where a stage is
much finer than the last one, four where trees of cells grow by a little.
"""

from __future__ import annotations

import sys

from pibls.refinement.standards import FALLS
from pibls.refinement.stopping import ROUNDING, Patience

# A tree that happens to agree with the next says little: means over four trees are compared. A solution of which no
# digit is known (0.1) may seem to stay as it is for a while.
TREES = Patience(
    "the error does not come from the size of cells",
    window=4,
    pays=0.5,
    rounding=ROUNDING,
    unresolved=0.1,
    least=sys.maxsize,
    means=True,
    falls=0.2,
)

# Features that resolve nothing yet may agree by chance: six runs are waited for.
RUNS = Patience(
    "the solution may have jumps, or depend chaotically on its start",
    window=2,
    pays=0.5,
    rounding=ROUNDING,
    unresolved=0.0,
    least=6,
)

# Estimates by residuals at points of their own are reliable once a digit is known.
NETWORKS = Patience(
    "the solution may have a layer, a corner or a jump that random nodes do not follow. Give a method with scales by "
    "hand, or split the domain",
    window=2,
    pays=0.5,
    rounding=1e-12,
    unresolved=0.1,
    least=6,
)

# Measurements with noise let estimates fall slowly.
WINDOWS = Patience("the error does not come from the size of cells", window=4, pays=FALLS)
