"""The rows of a problem on one part: equations, conditions and averages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from pibls.cells.balances import Balances
from pibls.cells.evaluation import Evaluation, PlacedStatement, RowRequest, Term, mean_size, power
from pibls.cells.faces import TRACE_SHARE
from pibls.cells.flux import Fluxes, flows_evenly
from pibls.cells.part_rows import EquationKey, Equations, PartRows, PartStatements, turned
from pibls.cells.parts import CellPart, polynomials
from pibls.cells.row_scales import Scales, scales_of
from pibls.cells.surface import Rule
from pibls.cells.traces import Traces
from pibls.checks import FloatArray
from pibls.features.reference import on_grid
from pibls.problem import Statement
from pibls.quadrature.roots import CLOSE
from pibls.solvers.combined import Combined

__all__ = ["Rows"]

_EXACT_WEIGHT = 1e5
_MANY = 4  # distinct normals of a boundary of many flat pieces


@dataclass(eq=False)
class Rows(Evaluation):
    """Makes the rows of a linear problem, or of a nonlinear problem linearised at a state.

    The scales of a part's rows stay those of the first state, until :meth:`forget`.
    """

    _scales: dict[CellPart, Scales] = field(default_factory=dict)
    _magnitudes: dict[CellPart, list[list[Term]]] = field(default_factory=dict)
    _factors: dict[Any, float] = field(default_factory=dict)
    _weights: dict[Any, FloatArray] = field(default_factory=dict)
    _conditions_on: dict[Any, list[Statement]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        # the fluxes across faces, and the rows on faces
        self.flux, self.traces = Fluxes(self), Traces(self)

    def forget(self) -> None:
        """Discard all scales: rows are scaled at the next state. Balances stay, as only linear equations turn."""
        for own in (self._scales, self._magnitudes, self._factors, self._weights):
            own.clear()
        self.flux, self.traces = Fluxes(self), Traces(self)

    def assembled(self, parts: Sequence[CellPart]) -> list[PartRows]:
        """Return the rows of parts; statements and functions are evaluated at the points of all parts together."""
        stated = self._stated_in(parts)
        keys = [self._key(part, statements.equations) for part, statements in zip(parts, stated, strict=True)]
        equations, conditions = self._equations(parts, stated, keys), self._of_conditions(parts, stated)
        made = zip(parts, stated, keys, equations, conditions, strict=True)
        return [self._part_rows(*own) for own in made]

    def _part_rows(
        self,
        part: CellPart,
        statements: PartStatements,
        key: EquationKey | None,
        equations: Equations,
        conditions: list[list[FloatArray]],
    ) -> PartRows:
        """Return the rows of a part, given those of its equations, and of its conditions by the points they share."""
        factors, units = self.scales(part)
        sources = [one.source[:, None] for one in statements.equations]
        source = np.concatenate([-one.weighed(own) for one, own in zip(statements.equations, sources, strict=True)])
        value = [np.empty((0, 1)), *(-one.weighed(one.source[:, None]) for one in statements.conditions)]
        flows = self._flows(part, statements)
        return PartRows(
            units,
            equations.rows,
            turned(equations.factor, source),
            np.concatenate([np.empty((0, self.width)), *(block for blocks in conditions for block in blocks)]),
            np.concatenate(value),
            self.balances.summed(equations.tested * (part.extent / factors)[:, None]),
            self.balances.integrated(part, sources),
            flows,
            None if part.whole else self._besides(part, flows, statements, conditions),
            key,
            tuple(statements.equations),
            tuple(statements.conditions),
            self.balances,
            equations.factor,
        )

    def _equations(
        self, parts: Sequence[CellPart], stated: Sequence[PartStatements], keys: Sequence[EquationKey | None]
    ) -> list[Equations]:
        """Return the rows of the equations; parts with equal keys share them, also in later solves."""
        alone = [number for number, key in enumerate(keys) if key is None]
        whole = [number for number in alone if parts[number].whole]
        cut = [number for number in alone if not parts[number].whole]
        on_rule = self._on_rule([parts[n] for n in whole], [stated[n] for n in whole]) if whole else []
        rows = dict(zip(whole, on_rule, strict=True))
        wanted = [
            RowRequest(parts[n], None, [one.terms for one in stated[n].equations], self.scales(parts[n]).units)
            for n in cut
        ]
        for number, blocks in zip(cut, self.requested(wanted), strict=True):
            part, inside = parts[number], stated[number].equations
            equation = np.concatenate([one.weighed(block) for one, block in zip(inside, blocks, strict=True)])
            equation /= math.sqrt(part.extent)
            tested = [self._shares(part) @ block for block in np.split(equation, len(inside))]
            rows[number] = Equations(equation[None], np.stack(tested, 1))
        return [rows[n] if key is None else self._alike(key) for n, key in enumerate(keys)]

    def _shares(self, part: CellPart) -> FloatArray:
        """Return the weights of rows at the points of a part in the balances, shape (tests, points)."""
        return self.balances.tests(part, part.points) * part.integrals / np.sqrt(part.weights * part.extent)

    def _on_rule(self, parts: Sequence[CellPart], stated: Sequence[PartStatements]) -> list[Equations]:
        """Return the rows of whole parts as coefficients of derivatives at the points of the reference rule."""
        first = stated[0].equations
        places = [(e, number, index) for e, one in enumerate(first) for number, index, _ in one.terms]
        distinct, indices = list(dict.fromkeys(places)), list(dict.fromkeys(index for *_, index in places))
        coefficients = np.zeros((len(parts), len(distinct), len(self.layout.reference.rule[1])))
        units = np.array([self.scales(part).units / math.sqrt(part.extent) for part in parts])
        half = np.array([part.half for part in parts])
        for e in range(len(self.equations)):
            factors = np.array([statements.equations[e].factors for statements in stated])
            for k, (number, index, value) in enumerate(first[e].terms):
                varies = np.ndim(value) > 0
                values = np.array([statements.equations[e].terms[k][2] for statements in stated]) if varies else value
                scale = (units[:, number] / np.prod(half**index, axis=1))[:, None]
                coefficients[:, distinct.index((e, number, index))] += values * (factors * scale)
        terms = tuple((e, number, indices.index(index)) for e, number, index in distinct)
        counts = len(self.equations), len(self.problem.field_names)
        rows = Combined(self.layout.reference.tables(indices), terms, coefficients, counts)
        tested = rows.tested(np.stack([self._shares(part) for part in parts]))
        return [Equations(rows.taken(slice(k, k + 1)), own) for k, own in enumerate(tested)]

    def _alike(self, key: EquationKey) -> Equations:
        """Return the rows of constant equations on a whole part. They follow from the key alone."""
        reference = self.layout.reference
        if known := reference.equations.known(key):
            return Equations(**known)
        roots, size = np.sqrt(reference.rule[1]), reference.size
        values = reference.on_rule([index for terms in key.terms for _, index, _ in terms])
        equation = np.zeros((len(key.terms), len(roots), self.width))
        for block, terms in zip(equation, key.terms, strict=True):
            for number, index, value in terms:
                block[:, number * size : (number + 1) * size] += (roots * value)[:, None] * values[index]
        levers = [share * along for share, along in zip(key.proportions, reference.rule[0].T, strict=False)]
        shares = np.stack([np.ones(len(roots)), *levers]) * roots
        tested = np.stack([shares @ block for block in equation], axis=1)
        found = Equations.factored(equation.reshape(-1, self.width), tested)
        reference.equations.keep(key, {name: own for name, own in found._asdict().items() if own is not None})
        return found

    def _key(self, part: CellPart, inside: list[PlacedStatement]) -> EquationKey | None:
        """Return a key that whole parts share whose equations have the same rows at any size; else None."""
        if not part.whole or not self.is_constant:
            return None
        rows, units = self.scales(part)
        proportions = np.round(part.half / part.half.max(), 12).tolist() if self.balances.turns else ()
        terms = (self._scaled(own.terms, part.half, units, r) for r, own in zip(rows, inside, strict=True))
        return EquationKey(self.width, tuple(proportions), tuple(terms))

    def residual(self, part: CellPart) -> FloatArray:
        """Return the residuals of a part at the state, without those on its faces."""
        assert self.state is not None
        (statements,), residuals = self._stated_in([part]), [np.zeros(0)]
        for one in (*statements.equations, *statements.conditions):
            slots = self.state(part, one.points, [(term.field, term.multi_index) for term in one.statement.form.terms])
            terms = (value * slot for (_, _, value), slot in zip(one.terms, slots, strict=True))
            residuals.append(one.weighed(sum(terms, one.source)[:, None])[:, 0])
        return np.concatenate(residuals)

    def _stated_in(self, parts: Sequence[CellPart]) -> list[PartStatements]:
        """Return the statements that hold in parts, at their points."""
        inside = [self.lowered_at(e, [(part, part.points, None) for part in parts]) for e in self.equations]
        stated = []
        for part, lowered in zip(parts, zip(*inside, strict=True), strict=True):
            factors, roots = self.scales(part, [terms for terms, _ in lowered]).factors, np.sqrt(part.weights)
            equations = [
                PlacedStatement(equation, part.points, None, terms, source, factor * roots)
                for equation, (terms, source), factor in zip(self.equations, lowered, factors, strict=True)
            ]
            at_points = self._at_points(part) if self.at_points else []
            stated.append(PartStatements(equations, [(rule, []) for rule in part.boundary.values()], at_points))
        self._add_conditions(parts, stated)
        return stated

    @staticmethod
    def _scaled(terms: list[Term], half: FloatArray, units: FloatArray, factor: float) -> tuple[Any, ...]:
        """Return constant terms in units of a part: parts with equal ones have equal rows at any size."""
        return tuple(
            (n, index, float(f"{factor * value * units[n] / power(half, index):.14g}")) for n, index, value in terms
        )

    def _besides(
        self, part: CellPart, flows: FloatArray, statements: PartStatements, blocks: list[list[FloatArray]]
    ) -> FloatArray | None:
        """Return the rows of conditions without their fluxes, on a cut part in space whose fluxes are all given.

        The integrals over the volume and the surface of a thin part do not agree well. If the conditions give the
        fluxes, the integrals are not needed.
        """
        indices = [term.multi_index for equation in self.equations for term in equation.form.terms]
        plain = self.is_constant and all(sum(index) == max(index) == 2 for index in indices)
        if len(part.half) < 3 or not plain or not self.layout.tree_domain.is_covered:
            return None
        found, start = [], 0
        for (rule, conditions), rows in zip(statements.on_boundary, blocks, strict=False):
            stop = start + sum(map(len, rows))
            even = all(flows_evenly(condition.terms, rule) for condition in conditions)
            if not flows[:, start:stop].any(axis=1).all() or not even:
                return None
            for condition, block in zip(conditions, rows, strict=True):
                levels = [term for term in condition.terms if not any(term[1])]
                again = 0 < len(levels) < len(condition.terms)
                level = RowRequest(part, rule.points, [levels], self.scales(part).units)
                block = condition.weighed(self.requested([level])[0][0]) if again else block
                found.append(block if levels else np.zeros_like(block))
            start = stop
        return np.concatenate([*found, np.zeros((flows.shape[1] - start, self.width))])

    def scales(self, part: CellPart, coefficients: list[list[Term]] | None = None) -> Scales:
        """Return a factor per equation and a unit per field on a part."""
        if part not in self._scales:
            sizes = np.array([self.sizes(terms, part.half) for terms in self.magnitudes(part, coefficients)])
            self._scales[part] = scales_of(sizes, self.highest)
        return self._scales[part]

    def magnitudes(self, part: CellPart, coefficients: list[list[Term]] | None = None) -> list[list[Term]]:
        """Return the root mean square of every coefficient of every equation on a part."""
        if part not in self._magnitudes:
            found = coefficients or [self.only_terms(e, part, part.points, None) for e in self.equations]
            self._magnitudes[part] = [
                [(number, index, mean_size(value)) for number, index, value in own] for own in found
            ]
        return self._magnitudes[part]

    def weights(self, part: CellPart, half: FloatArray) -> FloatArray:
        """Return the weight of each equation's integrated residual over a box with given half sides.

        It is the L2 norm, over the box, of the change that a source of integral one causes, spread over the box.
        """
        key = (None if self.is_constant else part, half.tobytes())
        if key not in self._weights:
            sizes = np.array([self.sizes(own, half) for own in self.magnitudes(part)])
            self._weights[key] = scales_of(sizes, self.highest).factors / math.sqrt(math.prod((2 * half).tolist()))
        return self._weights[key]

    def emphasis(self, part: CellPart) -> float:
        """Return the weight of all rows of a part in least squares: the smaller its cell, the larger.

        Rows are in units of the solution. Far from a small cell, the residual of an equation of order m acts as in the
        energy norm, where derivatives of order m/2 count; half an order less, because jumps have no finite energy. In
        one dimension the balance sums contain all distant effects, so that all cells count equally.
        """
        if self.layout.reference.dimension == 1:
            return 1.0
        return float((self.layout.root.size / part.cell.size).max() ** (max(self.highest.max() - 1.0, 0.0) / 2))

    def _of_conditions(
        self, parts: Sequence[CellPart], stated: Sequence[PartStatements]
    ) -> list[list[list[FloatArray]]]:
        """Return the rows of conditions by part, and by the points where some of them hold."""
        together = [(number, here) for number, statements in enumerate(stated) for here in statements.by_points]
        wanted = []
        for number, conditions in together:
            part = parts[number]
            X = conditions[0].points if conditions else part.points[:0]
            wanted.append(RowRequest(part, X, [one.terms for one in conditions], self.scales(part).units))
        rows: list[list[list[FloatArray]]] = [[] for _ in parts]
        for (number, conditions), blocks in zip(together, self.requested(wanted), strict=True):
            rows[number].append([one.weighed(block) for one, block in zip(conditions, blocks, strict=True)])
        return rows

    def _flows(self, part: CellPart, statements: PartStatements) -> FloatArray:
        """Return how the balances depend on the rows of the conditions of a part."""
        flows, units = [np.empty((self.balances.count, 0))], self.scales(part).units
        for rule, conditions in statements.on_boundary:
            lowered = [(one.terms, self.factor(one.statement, part, one.terms, units)) for one in conditions]
            flow = self.flux.of_conditions(part, rule, lowered, part.depth(rule.normals))
            projection = conditions[0].projection if conditions else None
            flows.append(flow if projection is None else flow @ np.kron(np.eye(len(conditions)), projection))
        flows += [np.zeros((self.balances.count, len(one.points))) for one in statements.at_points]
        return np.hstack(flows)

    def conditions_on(self, place: Any) -> list[Statement]:
        """Return the conditions that hold on a part of the boundary."""
        if place not in self._conditions_on:
            self._conditions_on[place] = [s for s in self.problem.statements if s.place is place or s.place == place]
        return self._conditions_on[place]

    def boundary_key(self, part: CellPart, rows: PartRows) -> Any:
        """Return a key that whole parts with equal rows of conditions share; None where the rows are individual."""
        found, count = [], 0
        for place, rule in part.boundary.items():
            forms = [statement.form for statement in self.conditions_on(place)]
            if not all(form.is_linear and form.is_constant for form in forms):
                return None
            area, depth = rule.weights.sum(), part.depth(rule.normals)
            arrays = (
                on_grid(part.local(rule.points)),
                on_grid(rule.weights / area),
                on_grid(rule.normals),
            )
            terms = [self.terms(statement, rule.points, rule.normals, []) for statement in self.conditions_on(place)]
            scaled = tuple(
                self._scaled(own, part.half, rows.units, self.factor(statement, part, own, rows.units))
                for statement, own in zip(self.conditions_on(place), terms, strict=True)
            )
            found.append((float(f"{area * depth / part.extent:.12g}"), scaled, *(array.tobytes() for array in arrays)))
            count += len(forms) * len(rule.weights)
        return tuple(found) if count == len(rows.value) else None

    def factor(self, statement: Statement, part: CellPart, found: list[Term], units: FloatArray) -> float:
        """Return the factor of the rows of a condition on a part, without the roots of weights."""
        key = (part, id(statement))
        if key not in self._factors:
            size = float((self.sizes(found, part.half) * units).max())
            self._factors[key] = (
                statement.weight * (_EXACT_WEIGHT if statement.exact else 1.0) / (size if size > 0 else 1.0)
            )
        return self._factors[key]

    def _add_conditions(self, parts: Sequence[CellPart], stated: Sequence[PartStatements]) -> None:
        """Add the conditions on pieces of the boundary at their quadrature points."""
        pieces_at: dict[Any, list[tuple[CellPart, Rule, list[PlacedStatement]]]] = {}
        for part, statements in zip(parts, stated, strict=True):
            for place, (rule, conditions) in zip(part.boundary, statements.on_boundary, strict=True):
                pieces_at.setdefault(place, []).append((part, rule, conditions))
        for place, pieces in pieces_at.items():
            roots = [np.sqrt(rule.weights * part.depth(rule.normals)) for part, rule, _ in pieces]
            projections = [None if part.whole else self._projection(part, rule) for part, rule, _ in pieces]
            for statement in self.conditions_on(place):
                lowered = self.lowered_at(statement, [(part, rule.points, rule.normals) for part, rule, _ in pieces])
                for (part, rule, conditions), (terms, source), root, projection in zip(
                    pieces, lowered, roots, projections, strict=True
                ):
                    factors = self.factor(statement, part, terms, self.scales(part).units) * root
                    conditions.append(
                        PlacedStatement(statement, rule.points, rule.normals, terms, source, factors, projection)
                    )

    def _projection(self, part: CellPart, rule: Rule) -> FloatArray | None:
        """Return smooth functions on a boundary of many flat pieces in space, times roots of weights; else None.

        Cells do not end at blunt edges if there are many. The residuals of conditions alternate from piece to piece
        there and count only in projection on smooth functions; otherwise the solution would become flat.
        """
        if len(part.half) < 3:
            return None
        pieces = len(np.unique(np.round(rule.normals / CLOSE), axis=0))
        # A flat piece has as many points as a square; a curved one has a different normal at each point or line.
        if pieces < _MANY or 2 * len(rule.normals) < pieces * (self.layout.reference.degree + 1) ** 2:
            return None
        return polynomials(part.local(rule.points), rule.weights, round(TRACE_SHARE * self.layout.reference.degree))[0]

    def _at_points(self, part: CellPart) -> list[PlacedStatement]:
        """Return the conditions at single points, for those points that lie in a part."""
        found, units = [], self.scales(part).units
        for statement, points in self.at_points:
            mine = self.layout.owned(part, points)
            if not len(mine):
                continue
            X = points[mine]
            terms, source = self.lowered(statement, part, X, None)
            share = np.sqrt(self.layout.volume / len(points))
            factors = np.full(len(X), self.factor(statement, part, terms, units) * share)
            if statement.noise is not None:
                factors *= statement.noise.min() / statement.noise[mine]
            if statement.targets is not None:
                source = source - statement.targets[mine]
            found.append(PlacedStatement(statement, X, None, terms, source, factors))
        return found

    @cached_property
    def balances(self) -> Balances:
        """The functions that balances are tested with."""
        root = self.layout.root
        return Balances(
            len(self.equations), self.flux.mixed.turns, (root.low + root.high) / 2, float(root.size.max()) / 2
        )

    def average(self, part: CellPart, units: FloatArray, statement: Statement) -> tuple[FloatArray, PlacedStatement]:
        """Return a part's share of an average over the domain as a row, and the condition at its points."""
        X, weights = self.layout.quadrature(part)
        if not len(X):
            return np.zeros(self.width), PlacedStatement(statement, X, None, [], weights, weights)
        found, source = self.lowered(statement, part, X, None)
        factor = statement.weight * (_EXACT_WEIGHT if statement.exact else 1.0) / np.sqrt(self.layout.volume)
        wanted = RowRequest(part, None if X is part.points else X, [found], units, factor * weights[None])
        return self.requested([wanted])[0][0][0], PlacedStatement(statement, X, None, found, source, factor * weights)
