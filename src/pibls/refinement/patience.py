"""The stagnation rules of all refinements, side by side.

A window of stages pays if it reduces the estimate to a factor, mostly one half. Each rule compares the latest estimates
with earlier ones: the last two where every stage is much finer than the one before, the last four where trees of cells
grow slowly.
"""

from __future__ import annotations

import sys

from pibls.refinement.standards import FALLS
from pibls.refinement.stopping import SMALLEST, Patience

# One tree may agree with the next by chance, so the rule compares means over four trees. Estimates above 0.1, where no
# digit is known, never count as stagnation.
_TREES = "smaller cells no longer reduce the error. Smooth the data where solution.error_field is large"
TREES = Patience(
    _TREES,
    window=4,
    pays=0.5,
    rounding=SMALLEST,
    unresolved=0.1,
    least=sys.maxsize,
    means=True,
    falls=0.2,
)

# Features that resolve nothing may agree by chance: the rule waits for six runs.
RUNS = Patience(
    "the solution may have jumps, or depend chaotically on its start. Shorten the time, or add a little diffusion",
    window=2,
    pays=0.5,
    rounding=SMALLEST,
    unresolved=0.0,
    least=6,
)

# Held-out residuals make reliable estimates once one digit is known.
NETWORKS = Patience(
    "the solution may have a layer, a corner or a jump that random nodes do not follow. Give a method with scales by "
    "hand, or split the domain",
    window=2,
    pays=0.5,
    rounding=1e-12,
    unresolved=0.1,
    least=6,
)

# The open boundary of a joint search: noise in the measurements slows the fall of the estimates.
WINDOWS = Patience(_TREES, window=4, pays=FALLS)
