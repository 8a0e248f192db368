"""Thresholds and sample counts that are used throughout the library."""

from __future__ import annotations

PLAIN = 1e-3  # relative defect above which a statement counts as violated, and relative accuracy of quick looks
SLIGHT = 0.01  # share below which a part hardly counts
NEGLIGIBLE = 0.1  # share below which a part is negligible
MOST = 0.5  # the larger part
FALLS = 0.8  # largest ratio of successive errors that still counts as convergence
POINTS = 300  # number of points that sample a function on a domain or a boundary
FIRST = 0.3  # share of the budget for a first tree or start: a comparison costs twice as much, and must remain possible
CANDIDATES = 2**15  # most scattered points among which a small piece of a domain is looked for
