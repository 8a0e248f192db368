"""The main modes of a solution over time, whose coefficients tell its error in space, and which cells it needs when."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pibls.cells.coarsening import coarsened, divided
from pibls.cells.error_marking import ErrorMarking, Option, Splits
from pibls.cells.layout import Layout
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, refined
from pibls.checks import BoolArray, FloatArray
from pibls.evolution.cell_run import CellRun, Leg
from pibls.refinement import VISIBLE
from pibls.refinement.standards import MOST, NEGLIGIBLE, PLAIN, SLIGHT
from pibls.solution.sizes import field_scales


class LegModes(NamedTuple):
    """The main modes of a solution over some equal steps.

    Attributes
    ----------
    leg
        The steps.
    fit, sizes
        The modes side by side, and the size of the field of each.
    marker
        Selects cells to split.
    expected
        The error in space.
    smooth
        On which parts all modes are smooth.
    share
        The share of the whole time that errors last, as it counts in a mean square.
    errors
        What each part adds to the error.
    """

    leg: Leg
    fit: Fit
    sizes: FloatArray
    marker: ErrorMarking
    expected: float
    smooth: BoolArray
    share: float
    errors: FloatArray

    @classmethod
    def of(cls, leg: Leg, found: Sampled, means: FloatArray, scales: FloatArray, told: BoolArray) -> LegModes:
        """Return the modes of some steps.

        At a time when a field is almost zero, its coefficients are rounding, which is never smooth. A field that is
        always almost zero consists of the errors of other fields.
        """
        whole, kept = leg.fit(found.times), []
        every = np.stack([whole.weights[part] for part in whole.parts])
        roots = np.sqrt(found.spans / found.spans.sum())
        for number in np.flatnonzero(told).tolist():
            own = every[:, number :: len(means)] * roots[:, None]
            unit = own / (means[number] or 1.0)
            turn, strength, _ = np.linalg.svd(np.einsum("ptm,psm->ts", unit, unit))
            turn = turn[:, np.sqrt(strength) >= PLAIN * np.sqrt(strength[0])]
            kept.append(np.einsum("ptm,tk->pkm", own, turn))
        weights = dict(zip(whole.parts, np.concatenate(kept, axis=1), strict=True))
        fit, sizes = replace(whole, weights=weights), np.repeat(scales[told], [own.shape[1] for own in kept])
        (first, last), marker = leg.stages.resolvent.limits, ErrorMarking(leg.stages.layout)
        lasting = max(float(leg.lasting.max()), float(np.ptp(leg.breaks)))
        share = math.sqrt(min(lasting / (last - first), 1.0))
        smooth = marker.decay(fit).smooth
        errors = marker.errors(fit, sizes)[0]
        return cls(leg, fit, sizes, marker, marker.expected(fit, sizes), smooth, share, errors)

    def allowed(self, goal: float, whole: float) -> float:
        """Return the error that the better cells may leave, if all steps have one of a whole.

        Of parts that are not smooth, no more than the size of the error is known, and half of the error always goes, so
        that the better solution tells of the error of this one.
        """
        unsure = min(float(np.linalg.norm(self.errors[~self.smooth])), VISIBLE)
        return min(max(goal / self.share, NEGLIGIBLE * unsure), MOST * whole / self.share)

    def held(self, root: Cell) -> float:
        """Return the square of the error in cells that a tree divides."""
        boxes = divided(root)
        return float(sum(e**2 for e, part in zip(self.errors, self.fit.parts, strict=True) if part.cell in boxes))

    def finer(self, layout: Layout, splits: Splits, most: float, fall: float, needed: Collection[Cell]) -> Cell:
        """Return a tree with some cells split, and with cells united that need not be apart."""
        rough = [part.volume for part, own in zip(self.fit.parts, self.smooth, strict=True) if not own]
        root = self.fit.root
        if sum(rough) > MOST * layout.volume:
            # Cells that are too large for a solution tell nothing of its singularities.
            root = layout.trimmed(refined(root, splits))
        elif splits:
            root = self.marker.refined(self.fit, self.sizes, fall, given=splits)[0]
        return coarsened(self.leg.stages.layout, self.fit, self.sizes, root, NEGLIGIBLE * most, needed)


class Sampled(NamedTuple):
    """Some times of a few equal steps, the time that each stands for, and the sizes of all fields there."""

    times: FloatArray
    spans: FloatArray
    sizes: FloatArray

    @classmethod
    def of(cls, leg: Leg, times: FloatArray, spans: FloatArray) -> Sampled:
        """Return times of some steps."""
        own = (times > leg.breaks[0]) & (times <= leg.breaks[-1])
        if not own.any():
            times, spans, own = leg.breaks[-1:], np.diff(leg.breaks[[0, -1]]), np.array([True])
        fit = leg.fit(times[own])
        every = np.stack([fit.weights[part] for part in fit.parts])
        return cls(times[own], spans[own], leg.stages.sizes(every).reshape(int(own.sum()), -1))


class RunModes(NamedTuple):
    """The main modes of a solution.

    Attributes
    ----------
    legs
        Those of each group of equal steps.
    expected
        The error in space.
    told
        Which fields have modes.
    rest
        The largest relative size of the other fields.
    """

    legs: list[LegModes]
    expected: float
    told: BoolArray
    rest: float

    @classmethod
    def of(cls, run: CellRun) -> RunModes:
        """Return the modes of a solution."""
        times, shares = run.sample()
        groups = [group for leg in run.legs for group in leg.groups]
        found = [Sampled.of(group, times, shares) for group in groups]
        spans = np.concatenate([own.spans for own in found])
        means = np.sqrt(spans @ np.square(np.concatenate([own.sizes for own in found])) / spans.sum())
        scales = field_scales(run.legs[0].stages.resolvent.problem, means)
        told = (means >= SLIGHT * scales) | (means.max() == 0.0)
        rest = float((means / scales)[~told].max(initial=0.0))
        legs = [LegModes.of(group, own, means, scales, told) for group, own in zip(groups, found, strict=True)]
        expected = math.sqrt(sum((own.share * own.expected) ** 2 for own in legs))
        return cls(legs, expected, told, rest)

    def finer(self, goal: float, share: float, fall: float, needed: Collection[Cell]) -> Finer:
        """Return the cells that are expected to meet an error with the least work, for each group of equal steps.

        Factors had a ``share`` of the work so far. Boxes that are ``needed`` stay divided.
        """
        count = math.sqrt(len(self.legs))
        whole = math.sqrt(sum(own.share**2 * float(own.errors @ own.errors) for own in self.legs))
        allowed = [own.allowed(goal / count, whole / count) for own in self.legs]
        every = [own.marker.options(own.fit, own.sizes, most) for own, most in zip(self.legs, allowed, strict=True)]
        more = cheapest(every, [len(own.leg.pieces) for own in self.legs], share) or 0
        layouts: dict[int, Layout] = {}
        plan, held = [], 0.0
        for own, options, most in zip(self.legs, every, allowed, strict=True):
            layout = own.leg.stages.layout
            if id(layout) not in layouts:
                layouts[id(layout)] = layout.enriched(more) if more else layout
            splits = options[more].splits or ({} if whole > 0.0 else own.marker.splits(own.fit, own.sizes)[0])
            root = own.finer(layouts[id(layout)], splits, most, fall, needed)
            plan.append((layouts[id(layout)], root, own.leg.breaks))
            held += own.share**2 * own.held(root)
        return Finer(plan, bool(more), 1.0 if more or not whole > 0.0 else math.sqrt(held) / whole)


class Finer(NamedTuple):
    """Better cells for each group of equal steps.

    Attributes
    ----------
    plan
        The functions of cells, the tree, and the steps.
    richer
        Whether cells have more functions.
    share
        The share of the error in cells that are better.
    """

    plan: list[tuple[Layout, Cell, FloatArray]]
    richer: bool
    share: float


def cheapest(every: Sequence[Mapping[int, Option]], steps: Sequence[int], share: float) -> int | None:
    """Return by how many degrees cells become richer with the least work, from the options of groups of equal steps.

    The work of a step grows with the square of the functions of a cell, and that of factors, of which equal steps share
    one, with the third power; these had a share of the work so far. None if no option changes anything.
    """
    works, total = {}, sum(steps)
    for more in every[0]:
        own = [options[more] for options in every]
        if more or any(option.splits for option in own):
            shares = ((1.0 - share) * count / total for count in steps)
            works[more] = sum(
                option.cells * option.growth**2 * (of_steps + share * option.growth / len(every))
                for option, of_steps in zip(own, shares, strict=True)
            )
    return min(works, key=works.__getitem__, default=None)
