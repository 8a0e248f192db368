"""The design of features: where a solution on a line is steep, found by rough runs that become sharper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from pibls.evolution.accuracy import SETTINGS
from pibls.evolution.design import STEEPEST, Design
from pibls.evolution.run import Run, misfit, monitored, wave_velocity

if TYPE_CHECKING:
    from pibls.evolution.refinement_in_time import RefinementInTime

__all__ = ["kinked", "scanned", "sharper"]


def scanned(lines: RefinementInTime) -> tuple[Design, float]:
    """Return a design that resolves where the solution is steep, and a fineness to begin with."""
    design = Design.of(lines.evolution)
    if design.dimension != 1:
        return design, 1.0 if design.dimension < 3 else design.of_dimension(SETTINGS.finer)
    fineness, ended = 1.0, 0
    for _ in range(SETTINGS.rounds):
        run = lines.rough = lines.follow(design, SETTINGS.first * fineness, SETTINGS.rough, "scan")
        if travelling := _travelling(lines, run):
            # What was seen from a coordinate at rest is no solution in one that moves.
            design, fineness, lines.rough = travelling, 1.0, None
            continue
        better = sharper(design, run)
        ended += run.ended is not None
        if ended > 1 or lines.has_scanned_enough:
            break
        if better is not design:
            design, fineness = better, 1.0
        elif run.ended or (design.monitor is None and lines.residual(run) > SETTINGS.slight):
            fineness *= design.of_dimension(SETTINGS.finer) ** 2
        else:
            break
    fineness = fineness if design.monitor is None else 1.0
    return design, fineness


def _travelling(lines: RefinementInTime, run: Run) -> Design | None:
    """Move with a front that travels round a periodic interval, if fewer features then do; return their design."""
    if run.ended or not lines.evolution.can_move:
        return None
    velocity = wave_velocity(run)
    moving = monitored(run, velocity)
    if moving.peak < SETTINGS.steep_waves or moving.total > SETTINGS.falls * monitored(run).total:
        return None
    lines.evolution = lines.evolution.moving(velocity)
    return replace(run.design, monitor=moving)


def kinked(lines: RefinementInTime, design: Design, fineness: float, tol: float) -> Design:
    """Make the features finer where they miss a kink of the initial values, or a clash with the boundary data."""
    last = np.inf
    for _ in range(SETTINGS.rounds if design.monitor is not None else 0):
        places, share = misfit(lines.system(design, fineness))
        # Smooth values that are not resolved yet are missed everywhere; that is for finer features to mend.
        order = np.argsort(share)[::-1]
        missed = order[: int(np.searchsorted(np.cumsum(share[order]), (1.0 - SETTINGS.negligible) * share.sum())) + 1]
        met = share.sum() <= (1.0 / SETTINGS.negligible * tol) ** 2 or share.sum() > SETTINGS.falls * last
        last = float(share.sum())
        if met or len(missed) > SETTINGS.negligible * len(share) or design.nodes(fineness) > SETTINGS.most_kinked:
            break
        assert design.monitor is not None
        normal = ((places[missed] - design.center) / design.half)[:, 0]
        design = replace(design, monitor=design.monitor.sharpened(normal, SETTINGS.finer[0] ** 2))
    return design


def sharper(design: Design, run: Run) -> Design:
    """Return a design for a solution that turned out to be steeper than it was made for, or the same."""
    if design.dimension != 1 or run.ended:
        return design
    monitor = monitored(run)
    if design.monitor is None:
        is_sharper = monitor.peak > (SETTINGS.steep_waves if all(design.periodic) else SETTINGS.steep)
    else:
        is_sharper = design.monitor.peak < STEEPEST and design.excess(monitor) > 1.0 + SETTINGS.negligible
    return replace(design, monitor=monitor) if is_sharper else design
