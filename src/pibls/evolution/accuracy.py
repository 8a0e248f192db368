"""All numbers that decide how an evolution is followed, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "EvolutionSettings"]


@dataclass(frozen=True)
class EvolutionSettings:
    """Numbers that decide how an evolution is followed in time; those of features are in ``design.py``."""

    rounding: float = 1e-13  # shares below are rounding: steps are no shorter, and tolerances no smaller
    cut: float = 1e-11  # combinations of features that are weaker are noise: a few digits above the precision of sums
    exact: float = 1e-9  # accuracy of linear algebra; sums that cancel carry the rest, and half of the digits do
    kept: float = 3e-7  # functions miss a constraint by less: more lets pressures act on them, less leaves too few
    rough: float = 1e-3  # tolerance in time of first runs, and miss of conditions that hold
    slight: float = 0.01  # residual of features that resolve a solution, and work that pressures may do on flows
    negligible: float = 0.1  # share that does not matter beside the rest
    most: float = 0.5  # share from which on it is the larger part
    falls: float = 0.8  # share of an error that the next run may leave, by distances
    unknown: float = 0.6  # the same as long as there is one distance
    time_share: float = 0.2  # the integrator's share of the tolerance
    tighter: float = 4.0  # times less of it for each finer run: two runs with the same steps have the same error
    stage_share: float = 0.03  # of a step's tolerance, for its stages; a Jacobian that converges as fast is kept
    rounds: int = 14  # runs, refinements and Newton steps at most
    patient: int = 60  # Newton steps where no shorter step can be taken instead
    at_once: int = 300  # numbers in all stages of a step, that are solved for at once if need be
    growth: float = 3.0  # times as long that the next step may be
    keep: tuple[float, float] = (1.0, 1.4)  # factors for which a step stays as it is, so that factorisations last
    runaway: float = 1e12  # times the size of everything that acts, beyond which a state has run away
    spans: int = 4  # decades of time to look ahead over, while a state is zero
    times: int = 80  # times at which solutions are compared, and most brief events
    glance: float = 0.3  # nominal seconds for something that is not determined
    matrices: int = 12  # matrices of points by features at once
    work: float = 2.5  # power of the number of features that work grows with
    finer: tuple[float, ...] = (1.5, 1.3, 1.2)  # factors of fineness from run to run, by the dimension of space
    first: float = 1.25  # fineness of first runs
    steep: float = 8.0  # slopes, by range and half width, that need nodes of their own
    steep_waves: float = 25.0  # the same beside waves that fit into a period
    most_kinked: int = 500  # features at most to resolve them
    points: int = 300  # points that sample a residual, and times among which brief events are looked for
    most_points: int = 1500  # points in space at which solutions are compared, and on its boundary
    waves: int = 3  # long waves that tell the velocity of a front
    brief: float = 15.0  # range of an exponent from which on a pulse is narrower than steps
    boundary_points: float = 16.0  # points on the boundary, for each function along it
    strong: int = 20  # functions that features reach best, of which true pressures are made
    penalty: float = 10.0  # strength of boundary penalties, by that of the equation on its finest functions
    eventful: float = 100.0  # radians from the first time to the last that are too many for a network over both


SETTINGS = EvolutionSettings()
