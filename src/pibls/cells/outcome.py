"""Comparisons of two fits, and fits as networks and solutions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.measure import shares_of, stacked
from pibls.cells.parts import CellPart
from pibls.cells.solve import Fit
from pibls.cells.tree import Cell, contacts
from pibls.checks import FloatArray
from pibls.features.reference import SINES
from pibls.limits import keep
from pibls.problem import MultiIndex
from pibls.problem.analysis import analysis_of
from pibls.refinement import SMALLEST, VISIBLE, extrapolated
from pibls.refinement.patience import TREES
from pibls.refinement.standards import FALLS, PLAIN, SLIGHT
from pibls.solution import Diagnostics, Solution, Stage
from pibls.solution.celled import CellNetwork
from pibls.solution.residuals import ResidualTable, lasting_miss
from pibls.solution.sizes import field_scales
from pibls.status import Status

__all__ = ["Comparison", "amplified", "field_sizes", "network_of", "solution_of", "unmet"]


def field_sizes(layout: Layout, fit: Fit) -> FloatArray:
    """Return the L2 size of each field, to which its error is relative."""
    halves, weights = stacked(fit)
    squares = np.prod(halves, axis=1)[:, None] * np.square(weights).sum(axis=2)
    return field_scales(layout.problem, np.sqrt((shares_of(layout, fit) ** 2 * squares).sum(axis=0)))


@dataclass(frozen=True, eq=False)
class Comparison:
    """A solution and a better one, and the estimated error of the first.

    Attributes
    ----------
    fit, fit_layout, better, better_layout
        Both solutions, and their layouts.
    estimate, sensitivity
        The estimated error of the first solution, and the sensitivity of the better one.
    split
        Share of the squared roughness of all selected cells in those that the tree of the better solution splits.
    apart, fall_of_distance
        The distance of both solutions if all selected cells were split; and from tree to tree its ratio to that of the
        comparison before, None if there is none.
    peak
        The largest distance at a point, relative to the size of the field.
    is_smooth
        Whether the first solution is smooth on all parts.
    unsolved
        A sentence why one of both may not be a solution, or an empty string.
    """

    fit: Fit
    fit_layout: Layout
    better: Fit
    better_layout: Layout
    estimate: float
    sensitivity: float
    split: float = 1.0
    apart: float = 0.0
    fall_of_distance: float | None = None
    peak: float = 0.0
    is_smooth: bool = False
    unsolved: str = ""

    @property
    def swapped(self) -> Comparison:
        """The same comparison with both solutions exchanged."""
        found = replace(self, fit=self.better, better=self.fit)
        return replace(found, fit_layout=self.better_layout, better_layout=self.fit_layout)

    @property
    def solved(self) -> tuple[tuple[Fit, Layout], tuple[Fit, Layout]]:
        """Both solutions with their layouts, the better one first."""
        return (self.better, self.better_layout), (self.fit, self.fit_layout)

    @property
    def latest(self) -> Fit:
        """The solution from which refinement goes on: the better one, unless its cells are richer."""
        return self.fit if self.is_on_one_tree else self.better

    @property
    def is_on_one_tree(self) -> bool:
        """Whether the better solution has richer cells, and not more of them."""
        return self.better_layout.reference is not self.fit_layout.reference

    @property
    def fall_of_residual(self) -> float:
        """By how much the better solution reduces the residual: on one tree, errors fall as residuals do."""
        return self.better.residual / self.fit.residual if self.fit.residual > 0.0 else 1.0

    def error_at(self, distance: float) -> float:
        """Return the error of the first solution from the distance of both: further solutions would be beyond.

        From tree to tree errors are assumed to go on to fall as distances did; selected cells that were not split
        contribute, too. On one tree, richer cells that hardly reduce the residual share most of the error, so that the
        distance does not show it; nor does that to more cells which reduce it not at all.
        """
        paid = TREES.pays if self.is_on_one_tree else FALLS
        seen = self.is_on_one_tree or self.better.residual > SMALLEST * self.size
        stays = self.fall_of_residual if seen and self.fall_of_residual > paid else 0.0
        fall = max(self.fall_of_distance or 0.0, stays)
        return extrapolated(distance / math.sqrt(self.split), fall, FALLS)

    def measured(self, gaps: Iterable[FloatArray], before: Comparison | None = None) -> Comparison:
        """Return the comparison with its estimate, given the distances of both solutions and the comparison before."""
        apart, size, peak = gaps
        scale = field_scales(self.fit_layout.problem, size)
        distance = float((apart / scale).max())
        whole, fall = distance / math.sqrt(self.split), self.fall_of_distance
        if before is not None and before.apart > 0.0 and not (self.is_on_one_tree or before.is_on_one_tree):
            fall = whole / before.apart
        made = replace(self, apart=whole, fall_of_distance=fall, peak=float((peak * size / scale).max()))
        return replace(made, estimate=made.error_at(distance))

    @cached_property
    def missed(self) -> float:
        """How far the first solution is from initial values of waves that last."""
        problem, network = self.fit_layout.problem, network_of(self.fit_layout, self.fit)

        def evaluate(X: FloatArray, slots: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
            found = network.evaluate(X, {index for _, index in slots})
            return [found[index][:, problem.field_names.index(name)] for name, index in slots]

        return lasting_miss(problem, evaluate)

    @cached_property
    def size(self) -> float:
        """The size of the largest field, to which errors are relative."""
        return float(self.sizes.max())

    @cached_property
    def sizes(self) -> FloatArray:
        """The L2 size of each field of the first solution."""
        return field_sizes(self.fit_layout, self.fit)


def amplified(comparisons: Sequence[Comparison]) -> float:
    """Return the error that the last residual allows where waves last, amplified as any comparison showed; else zero.

    Waves that are too short for both of two solutions show in neither, but are missed from then on: they leave a
    residual, of which rows in units of smaller cells see less. A residual of rounding errors hides none.
    """
    last = comparisons[-1]
    is_rounding = last.fit.residual <= SMALLEST * last.size
    if is_rounding or not analysis_of(last.fit_layout.problem).keeps_waves:
        return 0.0
    left = [own.fit.residual * own.fit.unknowns / own.size for own in comparisons]
    pairs = zip(comparisons, left, strict=True)
    return left[-1] * max((own.estimate / one for own, one in pairs if one > 0.0), default=0.0)


def unmet(comparison: Comparison, tol: float) -> str:
    """Return a sentence if the residual is large and does not fall from a solution to a better one."""
    fit, other = sorted((comparison.fit, comparison.better), key=lambda one: one.unknowns)
    much = other.residual > min(max(tol / SLIGHT, PLAIN), VISIBLE) * comparison.size
    stays = much and other.residual > TREES.pays * fit.residual
    # In one dimension there are no corners: contradictory conditions show in the residual density of some cell.
    if comparison.fit_layout.reference.dimension == 1 and not stays:
        whole = comparison.fit_layout.volume, comparison.size
        before, after = (
            max(own * math.sqrt(whole[0] / part.volume) for part, own in one.residuals.items()) / whole[1]
            for one in (fit, other)
        )
        stays = after > max(tol, SMALLEST) and after > FALLS * before
    words = f"The residual does not fall under refinement ({fit.residual:.1e}, then {other.residual:.1e})"
    doubt = f"{words}: equations and conditions may contradict each other."
    return doubt if stays and math.isfinite(comparison.estimate) else ""


def solution_of(
    found: Comparison,
    estimate: float,
    status: Status,
    message: str,
    seed: int,
    stages: tuple[Stage, ...] = (),
    seconds: float = 0.0,
) -> Solution:
    """Return a fit as a solution, with its record."""
    fit, reference = found.fit, found.fit_layout.reference
    network, richer = network_of(found.fit_layout, fit), network_of(found.better_layout, found.better)
    settings: dict[str, Any] = {"cells": len(fit.parts), "degree": reference.degree, "functions": reference.size}
    if (nodes := reference.nodes) != SINES:
        settings |= asdict(nodes) | {"device": None if nodes.device is None else str(nodes.device)}
    diagnostics = Diagnostics(
        "Cells",
        settings,
        seed,
        fit.unknowns,
        0,
        "elimination along the tree",
        None,
        stages[-1].answer if stages else None,
        {},
        seconds={"total": seconds},
        message=message,
        stages=stages,
    )
    eye = np.eye(network.size)
    made = Solution(found.fit_layout.problem, network, eye, status, diagnostics, estimate, richer=(richer, eye))
    keep(made.problem, lambda _: made)
    return replace(made, diagnostics=replace(diagnostics, residuals=ResidualTable(made)))


def replaced(layout: Layout, fit: Fit) -> dict[CellPart, CellPart]:
    """Return the very thin parts, each with the neighbour whose functions replace its own.

    The error of a derivative is the error of the value over the width, so that derivatives in a sliver mean nothing.
    The functions of the neighbour are accurate there if they grow less beyond its box than the sliver is thinner.
    """
    degree, widths = layout.reference.degree, np.geomspace(1e-6, 1.0, 100)
    widest = float(widths[np.cosh(degree * np.sqrt(2 * widths)) * widths <= 1.0].max())
    thin = {part.cell for part in fit.parts if not part.whole and (part.half <= widest * part.cell.size).any()}
    near = [contact for contact in contacts(fit.root) if thin & {contact.below, contact.above}] if thin else []
    found: dict[CellPart, tuple[float, CellPart]] = {}
    for face in (face for faces in layout.face_finder.faces_of(near) for face in faces if not face.conditions):
        for own, other in ((face.below, face.above), (face.above, face.below)):
            ends = (np.abs(own.center - other.center) + own.half) / other.half
            beyond = float(ends.max()) - 1.0
            if (
                own.cell in thin
                and own.material == other.material
                and beyond <= min(widest, found.get(own, (widest,))[0])
            ):
                found[own] = beyond, other
    return {own: other for own, (_, other) in found.items()}


def network_of(layout: Layout, fit: Fit) -> CellNetwork:
    """Return a fit as a network."""
    if fit.root not in layout.networks:
        if len(layout.networks) > 1:
            del layout.networks[next(iter(layout.networks))]
        layout.networks[fit.root] = _network(layout, fit)
    network, parts = layout.networks[fit.root]
    return replace(network, weights=np.array([fit.weights[part] for part in parts]) @ layout.reference.transform.T)


def _network(layout: Layout, fit: Fit) -> tuple[CellNetwork, list[CellPart]]:
    """Return a network without weights for the tree of a fit, and the parts whose functions it has."""
    tree: list[list[int]] = []
    cuts: list[float] = []
    parts: list[CellPart] = []
    materials: list[int] = []
    samples, owners = [np.empty((0, len(fit.root.low)))], [np.empty(0, dtype=np.int64)]

    def walk(cell: Cell) -> int:
        number = len(tree)
        tree.append([-1, len(parts), len(parts)])
        cuts.append(0.0)
        if cell.halves:
            first, second = (walk(half) for half in cell.halves)
            tree[number] = [cell.axis, first, second]
            cuts[number] = cell.at
            return number
        own = layout.parts(cell)
        for part in own:
            if len(own) > 1:
                samples.append(part.points)
                owners.append(np.full(len(part.points), len(parts)))
            parts.append(part)
            materials.append(part.material)
        tree[number][2] = len(parts)
        return number

    walk(fit.root)
    thin = {} if all(part.whole for part in parts) else replaced(layout, fit)
    while any(part in thin for part in parts):
        parts = [thin.get(part, part) for part in parts]
    network = CellNetwork(
        layout.reference.network,
        np.array(tree, dtype=np.int64),
        np.array(cuts),
        np.array([part.center for part in parts]),
        np.array([part.half for part in parts]),
        np.empty((0, 0, 0)),
        np.concatenate(samples),
        np.concatenate(owners),
        np.array(materials, dtype=np.int64),
        layout.tree_domain.material_function if layout.tree_domain.interfaces else None,
    )
    return network, parts
