"""Numbers that mean the same wherever a part is held against the whole."""

from __future__ import annotations

PLAIN = 1e-3  # a miss from which on something does not hold, and the accuracy of what is looked at roughly
SLIGHT = 0.01  # hardly a part of something
NEGLIGIBLE = 0.1  # does not matter beside the rest
MOST = 0.5  # the larger part
FALLS = 0.8  # of an error, that the next stage may leave if errors are to fall at all
POINTS = 300  # points that sample a function all over a domain, or a boundary
