"""All numbers that decide how an evolution is followed, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SETTINGS", "EvolutionSettings"]


@dataclass(frozen=True)
class EvolutionSettings:
    """Numbers that decide how an evolution is followed in time.

    Attributes
    ----------
    rounding
        Shares below this are rounding: steps are no shorter, and tolerances no smaller.
    cut
        Combinations of features that are weaker are noise: three digits above the precision of their sums.
    exact
        Relative accuracy of linear algebra beside any tolerance; beyond it, sums that cancel carry what is found.
    kept
        Functions that keep a constraint miss it by less: more lets pressures act on them, less leaves too few.
    rough
        Tolerance of first runs, residual of features that resolve a solution, and size of conditions that are met.
    slight, negligible, most
        A hundredth, a tenth and a half of something.
    falls, unknown
        Shares of an error that the next run may leave, by distances, and as long as there are none.
    time_share, tighter
        The integrator's share of the tolerance, and how much less of it each finer run gets.
    stage_share
        Stages of a step are solved to this share of its tolerance; a Jacobian that converges as fast is kept.
    rounds, patient
        Runs, refinements and Newton steps at most; Newton steps where no shorter step can be taken instead.
    at_once
        Numbers in all stages of a step, that are solved for at once if need be.
    rounded
        Relative accuracy of sensitivities that rounding may leave in stiff equations.
    growth, keep
        Times as long that the next step may be; factors for which it stays, so that factorisations last.
    slow
        Rate of Newton steps above which a step is not made longer.
    runaway
        Times the size of everything that acts, beyond which a state has run away.
    spans, times, grid
        Spans in time to look ahead over, times at which two solutions are compared, and times to find brief events.
    glance, overtime
        Nominal seconds for what is not determined; times the budget that a run which began within it may take.
    matrices, work
        Matrices of points by features at once; power of the number of features that work grows with.
    finer, first
        Factors of fineness from run to run, by the dimension of space, and of first runs.
    steep, steep_waves
        Slopes, by range and half width, that nodes of their own resolve, beside waves that fit into a period or not.
    kink, most_kinked
        Factor by which lengths shrink at kinks, and features at most to resolve them.
    points, most_points, waves
        Points that sample a residual, those of a distance, and long waves that tell the velocity of a front.
    brief
        Range of an exponent from which on a pulse is narrower than steps.
    boundary_points, most_boundary_points
        Points on the boundary, by the root of the number of functions, and at most.
    strong
        Functions that features reach best, of which true pressures are made.
    penalty
        Strength of boundary penalties, by that of the equation on its finest functions.
    eventful
        Radians from the first time to the last, from which on a network over space and time would hold too much.
    """

    rounding: float = 1e-13
    cut: float = 1e-11
    exact: float = 1e-9
    kept: float = 3e-7
    rough: float = 1e-3
    slight: float = 0.01
    negligible: float = 0.1
    most: float = 0.5
    falls: float = 0.8
    unknown: float = 0.6
    time_share: float = 0.2
    tighter: float = 4.0
    stage_share: float = 0.03
    rounds: int = 14
    patient: int = 60
    at_once: int = 300
    rounded: float = 1e-5
    growth: float = 3.0
    keep: tuple[float, float] = (1.0, 1.4)
    slow: float = 0.3
    runaway: float = 1e12
    spans: int = 4
    times: int = 80
    grid: int = 513
    glance: float = 0.3
    overtime: float = 1.5
    matrices: int = 12
    work: float = 2.5
    finer: tuple[float, ...] = (1.5, 1.5, 1.3, 1.2)
    first: float = 1.25
    steep: float = 8.0
    steep_waves: float = 25.0
    kink: float = 2.5
    most_kinked: int = 500
    points: int = 300
    most_points: int = 1500
    waves: int = 3
    brief: float = 15.0
    boundary_points: float = 16.0
    most_boundary_points: int = 4000
    strong: int = 20
    penalty: float = 10.0
    eventful: float = 100.0


SETTINGS = EvolutionSettings()
