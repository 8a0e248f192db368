"""Integrals and means of expressions, each with its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.problem.field_expressions import Expression
from pibls.quadrature.roots import ROUNDING
from pibls.quantities.boxwise import BOXED, EDGE, Patchwork, RulePoints, is_box
from pibls.quantities.pair import SolutionPair
from pibls.quantities.partwise import Parts
from pibls.quantities.quantity import Quantity
from pibls.quantities.where import Where
from pibls.refinement.standards import NEGLIGIBLE
from pibls.solution.celled import CellNetwork

_ROUNDS, _MOST = 6, 400_000  # halvings of boxes in which two rules disagree, and points in all
_SCATTERED = 2**14  # points in more coordinates than boxes are for


@dataclass(frozen=True, eq=False)
class Integrals:
    """Integrals over one place of a solution."""

    pair: SolutionPair
    place: Where

    def of(self, expression: Expression, *, mean: bool = False) -> Quantity:
        """Return the integral of an expression, or its mean."""
        if (expression.needs_normals or expression.sides) and self.place.part is None:
            raise InputError(
                f"An expression with the outward normal, or with inside and outside, has no integral over "
                f"{self.place.name}. Give a part of the boundary or an interface as 'over'."
            )
        if self.place.part is not None and self.place.domain.atoms is not None and not mean:
            raise InputError(
                "The boundary of a point cloud has no area, so there are no integrals over it. Ask for a mean."
            )
        table = self._summed(expression)
        own, _, size, gap, measure, edge = table.sum(axis=1).tolist()
        error = self._apart(table) + gap + edge + ROUNDING * size
        share = measure if mean else 1.0
        if not np.isfinite(own):
            return Quantity(own, np.nan, None, "the expression is not a finite real number everywhere")
        return self.pair.quantity(own / share, error / share)

    def rule(self, expression: Expression) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return points, weights and normals by which an expression has the mean that it has here."""
        rules: list[RulePoints] = []
        self._summed(expression, rules)
        weights = np.concatenate([own.weights for own in rules])
        normals = [own.normals for own in rules if own.normals is not None]
        found = np.concatenate([own.points for own in rules]), weights / weights.sum()
        return *found, np.concatenate(normals) if normals else None

    def _summed(self, expression: Expression, rules: list[RulePoints] | None = None) -> FloatArray:
        """Return a table of integrals over boxes; the rules that are used are added to a list."""
        many = len(self.place.domain.coordinates) > BOXED or self.place.domain.atoms is not None
        used = [] if rules is None else rules
        table = self._scattered(expression, used) if many else self._by_boxes(expression, used)
        if table[4].sum() == 0.0:
            raise InputError(f"There is nothing of {self.place.name} in the domain. Give another 'over'.")
        return table

    def _apart(self, table: FloatArray) -> float:
        """Return the error by the richer solution: not less than if boxes added to it at random."""
        gaps = table[1] - table[0]
        return float(self.pair.error(max(abs(float(gaps.sum())), float(np.linalg.norm(gaps))), table[2].sum()))

    def _by_boxes(self, expression: Expression, used: list[RulePoints]) -> FloatArray:
        """Integrate box by box, and halve boxes in which two rules disagree."""
        order = self.pair.degree // 2 + 2
        work = self._divided()
        done, spent = np.empty((6, 0)), 0
        for _ in range(_ROUNDS):
            fine, coarse = work.rules(order)
            table = self._table(expression, fine, coarse, work.count)
            table[5] = table[5] * work.edges
            every, spent = np.hstack([done, table]), spent + len(fine.weights)
            allowed = max(EDGE * every[2].sum(), NEGLIGIBLE * self._apart(every))
            poor = table[3] > allowed / max(1, every.shape[1])
            if every[3].sum() <= allowed or not poor.any() or spent > _MOST:
                used.append(fine)
                break
            used.append(fine.where(~poor[fine.box]))
            done, work = np.hstack([done, table[:, ~poor]]), work.split(np.flatnonzero(poor).tolist())
        else:
            used.append(fine.where(poor[fine.box]))
        return every

    def _divided(self) -> Patchwork | Parts:
        """Return the place divided into boxes, or a curved domain in space into parts of cells."""
        place, network, region = self.place, self.pair.finest, self.place.region
        curved = region is not None and not (is_box(place.domain) and is_box(region))
        solid = len(place.domain.space) == BOXED == len(place.domain.coordinates)
        if region is not None and curved and solid and isinstance(network, CellNetwork):
            return Parts.of(self.pair.solution, network, self.pair.degree, region)
        return Patchwork.over(place, network, self.pair.solution.problem.domain.bounds, self.pair.line_quadratures)

    def _scattered(self, expression: Expression, used: list[RulePoints]) -> FloatArray:
        """Integrate with points all over the place."""
        place = self.place.region or self.place.part
        assert place is not None
        rules = []
        for count in (_SCATTERED, _SCATTERED // 2):
            points, *normals, weights = place.quadrature(count)
            box = np.zeros(len(weights), dtype=np.int64)
            rules.append(RulePoints(points, weights, box, normals[0] if normals else None))
        used.append(rules[0])
        table = self._table(expression, rules[0], rules[1], 1)
        table[5] = 0.0
        return table

    def _table(self, expression: Expression, fine: RulePoints, coarse: RulePoints, count: int) -> FloatArray:
        """Return for each box: integral, that of the richer solution, size, gap of rules, measure, edge."""
        both = self.pair.compared(expression, *self._placed(fine))
        rough = self.pair.values(self.pair.solution, expression, *self._placed(coarse))
        own, other = (np.bincount(fine.box, fine.weights * values, count) for values in both)
        size = np.bincount(fine.box, np.abs(fine.weights * both[0]), count)
        gap = np.abs(own - np.bincount(coarse.box, coarse.weights * rough, count))
        measure, less = (np.bincount(rule.box, rule.weights, count) for rule in (fine, coarse))
        # Rules that agree by chance on an expression differ in the size of the place.
        missed = size * np.abs(measure - less) / np.where(measure > 0.0, measure, 1.0)
        return np.stack([own, other, size, np.maximum(gap, missed), measure, size])

    def _placed(self, nodes: RulePoints) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
        """Return points, normals and the ways inwards."""
        normals = None if nodes.normals is None else self.place.along(nodes.normals)
        return self.place.lifted(nodes.points), normals, None if normals is None else -normals
