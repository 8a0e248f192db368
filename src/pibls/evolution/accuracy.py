"""All numbers that decide how an evolution is followed, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EvolutionSettings:
    """Numbers that decide how an evolution is followed in time; those of features are in ``design.py``."""

    cut: float = 1e-11  # combinations of features that are weaker are noise: a few digits above the precision of sums
    kept: float = 3e-7  # functions miss a constraint by less: more lets pressures act on them, less leaves too few
    tighter: float = 5.0  # times less tolerance for steps than for errors, and for each finer run once more
    stage_share: float = 0.03  # of a step's tolerance, for its stages; a Jacobian that converges as fast is kept
    rounds: int = 14  # runs, refinements and Newton steps at most
    growth: float = 3.0  # times as long that the next step may be
    keep: float = 1.4  # factor up to which a step stays as it is, so that factorisations last
    spans: int = 4  # decades of time to look ahead over, while a state is zero
    times: int = 80  # times at which solutions are compared, and most brief events
    matrices: int = 12  # matrices of points by features at once
    finer: tuple[float, ...] = (1.5, 1.3, 1.2)  # factors of fineness from run to run, by the dimension of space
    steep: float = 8.0  # slopes, by range and half width, that need nodes of their own
    steep_waves: float = 25.0  # the same beside waves that fit into a period
    waves: int = 3  # long waves that tell the velocity of a front
    boundary_points: float = 16.0  # points on the boundary, for each function along it
    eventful: float = 100.0  # radians from the first time to the last that are too many for a network over both


SETTINGS = EvolutionSettings()
