"""Rows that are sums of derivatives of the same functions at the same points, each with coefficients of its own.

Cells of one shape have the same functions at the same points of a reference cell. What tells their equations apart is
a coefficient for each derivative and point. Rows in this form take a hundredth of the memory, products with them are
one matrix product for all cells, and a device receives coefficients instead of rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pibls.solvers.dense import Array
from pibls.solvers.stacks import library, placed, zeros

__all__ = ["Combined", "Term", "written"]

Term = tuple[int, int, int]
"""Numbers of an equation, of a field and of a derivative."""


@dataclass(frozen=True, eq=False)
class Combined:
    """Rows of the equations of many cells at the points of each, over the weights of all fields.

    Attributes
    ----------
    tables
        Derivatives of the functions at the points, shape (derivatives, points, functions).
    terms
        The terms of the equations; no two of them are equal.
    coefficients
        Their coefficients, shape (cells, terms, points).
    counts
        Numbers of equations and of fields.

    Examples
    --------
    Two functions at three points, and the equation u″ + c u of two cells:

    >>> import numpy as np
    >>> tables = np.arange(12.0).reshape(2, 3, 2)
    >>> c = np.ones((2, 2, 3)) * np.array([[[2.0], [1.0]], [[0.5], [1.0]]])
    >>> rows = Combined(tables, ((0, 0, 0), (0, 0, 1)), c, (1, 1))
    >>> rows.shape, rows.written[1].tolist()
    ((2, 3, 2), [[6.0, 7.5], [9.0, 10.5], [12.0, 13.5]])
    >>> unknowns, loads = np.ones((2, 2, 1)), np.ones((2, 3, 1))
    >>> bool(np.allclose(rows.times(unknowns), rows.written @ unknowns))
    True
    >>> bool(np.allclose(rows.back(loads), rows.written.transpose(0, 2, 1) @ loads))
    True
    """

    tables: Array
    terms: tuple[Term, ...]
    coefficients: Array
    counts: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of cells, rows and weights."""
        _, points, functions = self.tables.shape
        return len(self.coefficients), self.counts[0] * points, self.counts[1] * functions

    @property
    def size(self) -> int:
        """How many numbers it holds, beside the tables that all cells share."""
        return math.prod(self.coefficients.shape)

    @property
    def kind(self) -> Any:
        """Rows of one kind can be stacked."""
        return id(self.tables), self.terms

    @property
    def written(self) -> Array:
        """The rows, written out."""
        (equations, fields), (_, points, functions), c = self.counts, self.tables.shape, self.coefficients
        found: dict[tuple[int, int], Array] = {}
        for k, (equation, field, derivative) in enumerate(self.terms):
            block = c[:, k, :, None] * self.tables[derivative]
            if (equation, field) in found:
                found[equation, field] += block
            else:
                found[equation, field] = block
        if self.counts == (1, 1) and found:
            return found[0, 0]
        every = zeros((len(c), equations, points, fields, functions), c)
        for (equation, field), block in found.items():
            every[:, equation, :, field] = block
        return every.reshape(len(c), equations * points, fields * functions)

    def times(self, unknowns: Array) -> Array:
        """Return the products of the rows with unknowns of cells, shape (cells, weights, sides)."""
        (equations, fields), (_, points, functions) = self.counts, self.tables.shape
        count, _, sides = unknowns.shape
        own = unknowns.reshape(count, fields, functions, sides)
        values = {
            (field, derivative): _applied(self.tables[derivative], own[:, field])
            for field, derivative in self._derivatives
        }
        found = zeros((count, equations, points, sides), unknowns)
        for k, (equation, *place) in enumerate(self.terms):
            found[:, equation] += self.coefficients[:, k, :, None] * values[place[0], place[1]]
        return found.reshape(count, equations * points, sides)

    def back(self, loads: Array) -> Array:
        """Return the products of the transposed rows with loads of cells, shape (cells, rows, sides)."""
        (equations, fields), (_, points, functions) = self.counts, self.tables.shape
        count, _, sides = loads.shape
        own = loads.reshape(count, equations, points, sides)
        found = zeros((count, fields, functions, sides), loads)
        for field, derivative in self._derivatives:
            mine = [(k, e) for k, (e, *place) in enumerate(self.terms) if place == [field, derivative]]
            given = sum(self.coefficients[:, k, :, None] * own[:, equation] for k, equation in mine)
            found[:, field] += _applied(self.tables[derivative].T, given)
        return found.reshape(count, fields * functions, sides)

    def tested(self, tests: Array) -> Array:
        """Return sums of the rows of each equation with weights of their points, shape (cells, tests, points).

        The sums have the shape (cells, tests, equations, weights).
        """
        (equations, fields), functions = self.counts, self.tables.shape[2]
        count, many, points = tests.shape
        found = zeros((count, many, equations, fields, functions), tests)
        for k, (equation, field, derivative) in enumerate(self.terms):
            given = (tests * self.coefficients[:, None, k]).reshape(count * many, points)
            found[:, :, equation, field] += (given @ self.tables[derivative]).reshape(count, many, functions)
        return found.reshape(count, many, equations, fields * functions)

    @cached_property
    def _derivatives(self) -> list[tuple[int, int]]:
        """The derivatives of fields that occur."""
        return list(dict.fromkeys((field, derivative) for _, field, derivative in self.terms))

    def taken(self, which: Any) -> Combined:
        """Return the rows of some cells."""
        return replace(self, coefficients=self.coefficients[which])

    def placed(self, device: Any) -> Combined:
        """Return the rows on a device of torch, or in NumPy if there is none."""
        return replace(self, tables=placed(self.tables, device), coefficients=placed(self.coefficients, device))

    @classmethod
    def stacked(cls, members: Sequence[Combined]) -> Combined:
        """Return the rows of many cells as one stack."""
        every = library(members[0].coefficients).concat([own.coefficients for own in members])
        return replace(members[0], coefficients=every)


def written(rows: Array | Combined) -> Array:
    """Return rows as arrays, in whichever form they are."""
    return rows.written if isinstance(rows, Combined) else rows


def _applied(table: Array, vectors: Array) -> Array:
    """Return the products of one matrix with the vectors of a stack, as one product."""
    xp, (count, size, sides) = library(vectors), vectors.shape
    together = table @ xp.permute_dims(vectors, (1, 0, 2)).reshape(size, count * sides)
    return xp.permute_dims(together.reshape(-1, count, sides), (1, 0, 2))
