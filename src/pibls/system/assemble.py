"""The least-squares system: coefficients times derivatives of the nodes, a row block per statement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device, is_numpy_namespace

from pibls.checks import FloatArray
from pibls.errors import InputError, ProblemError, SolveError
from pibls.features import BroadNetwork
from pibls.geometry import Points, PointSet
from pibls.problem import MultiIndex, Problem, Statement
from pibls.runtime import available_cores, require_memory
from pibls.system.scaling import Balanced, RowScaling

_WORKSPACE = 2.0  # the factorisation needs about as much again as the matrix
_BEYOND_MEMORY = 2**200  # larger than any memory, and still a float
_LARGEST = 1e100  # squares and products of larger entries would overflow
_SMALLEST_SQUARE = 1e-280
_WORTH_THREADS = 200_000  # entries below which starting threads takes longer than they save


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of the system that belong to one statement."""

    name: str  # name of the statement
    rows: slice  # where they stand
    is_equation: bool  # whether they state a differential equation rather than a condition
    scale: float = 1.0  # what the rows were multiplied with; divide a residual by it to get physical units back
    norm: float = 0.0  # root mean square of the row norms before that
    noise: FloatArray | None = None  # what each row was divided by before that, for measurements of known noise

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.rows.stop - self.rows.start)


@dataclass(frozen=True, eq=False)
class System:
    """``min ‖matrix · w − rhs‖`` subject to ``constraints · w = constraint_rhs``.

    The columns are the nodes of the network, once per field.
    """

    matrix: Any
    rhs: Any
    blocks: tuple[Block, ...]
    constraints: Any = None
    constraint_rhs: Any = None
    constraint_blocks: tuple[Block, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns, constraints not counted."""
        return int(self.matrix.shape[0]), int(self.matrix.shape[1])


def system_bytes(problem: Problem, points: Points, nodes: int) -> int:
    """Predict the memory, in bytes, that assembling and solving with so many nodes takes."""
    return min(_BEYOND_MEMORY, int(_WORKSPACE * 8) * _rows(problem, points) * nodes * len(problem.fields))


def _rows(problem: Problem, points: Points) -> int:
    return sum(points.sets[s.source].rows for s in problem.statements)


def assemble(problem: Problem, points: Points, network: BroadNetwork, scaling: RowScaling | None = None) -> System:
    """Return the scaled least-squares system of a linear problem.

    Examples
    --------
    >>> from pibls.features import draw_network
    >>> from pibls.problems import advection
    >>> problem = advection()
    >>> points = Points.sample(problem, interior=20)
    >>> network = draw_network(np.random.default_rng(0), problem.domain.bounds, [("tanh", 8, 2.0)])
    >>> assemble(problem, points, network).shape
    (21, 8)
    """
    check_linear(problem)
    check_points_match(problem, points)
    dimension = len(problem.domain.coordinates)
    if network.dimension != dimension or points.interior.shape[1] != dimension:
        raise InputError(
            f"The problem has {dimension} coordinates, the network {network.dimension} and the points "
            f"{points.interior.shape[1]}; make both for this problem."
        )
    columns = network.size * len(problem.fields)
    require_memory(
        system_bytes(problem, points, network.size),
        f"a system of {_rows(problem, points)} rows and {columns} columns",
        "Use fewer points or fewer nodes.",
    )
    soft = _Target.of([s for s in problem.statements if not s.exact], points, columns, network)
    hard = _Target.of([s for s in problem.statements if s.exact], points, columns, network)
    # What overflows is found by value, and refused with the name of its rows.
    groups: dict[int, list[Statement]] = {}
    for statement in problem.statements:
        groups.setdefault(id(points.sets[statement.source]), []).append(statement)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for group in groups.values():
            _fill_rows(group, problem, points.sets[group[0].source], network, soft, hard)
    blocks = _scale_rows(soft, scaling or Balanced())
    if not hard.statements:
        return System(soft.matrix, soft.rhs, blocks)
    # A constraint has no weight; unit rows keep its tolerance meaningful.
    return System(soft.matrix, soft.rhs, blocks, hard.matrix, hard.rhs, _scale_rows(hard, Balanced()))


def check_points_match(problem: Problem, points: Points) -> None:
    """Refuse points that were sampled for another problem."""
    if len(points) != len(problem.equations) + len(problem.conditions):
        raise InputError(
            f"The points have {len(points)} sets, and the problem has {len(problem.equations)} equations and "
            f"{len(problem.conditions)} conditions; sample them with Points.sample(problem, ...)."
        )


def check_squares(problem: Problem) -> None:
    """Refuse data with outliers, which a fit by least squares would follow without a word."""
    for statement in problem.statements:
        if statement.loss != "squares":
            raise ProblemError(
                f"{statement.name} has loss={statement.loss!r}, and fields without unknown numbers or functions are "
                "fitted by least squares. Remove the outliers, and leave out 'loss'."
            )


def check_linear(problem: Problem) -> None:
    """Refuse a problem that one linear solve cannot solve, and name the function that can."""
    if not problem.is_linear:
        what, remedy = "is nonlinear", "Use pibls.solve or the fit of PIBLS, which iterate."
        if problem.parameters:
            what, remedy = "has unknown parameters", "Replace unknown parameters by numbers."
        raise ProblemError(f"This problem {what}, and only linear problems can be solved here. {remedy}")


@dataclass(frozen=True, eq=False)
class _Target:
    """A matrix under construction and where each statement's rows go."""

    statements: tuple[Statement, ...]
    blocks: tuple[Block, ...]
    matrix: Any
    rhs: Any
    xp: Any

    @classmethod
    def of(cls, statements: Sequence[Statement], points: Points, columns: int, network: BroadNetwork) -> _Target:
        blocks, start = list[Block](), 0
        for s in statements:
            stop = start + points.sets[s.source].rows
            blocks.append(Block(s.name, slice(start, stop), s.is_equation, noise=s.noise))
            start = stop
        xp = array_namespace(network.center)
        if is_numpy_namespace(xp):
            matrix, rhs = np.zeros((start, columns), order="F"), np.zeros(start)
        else:
            like = {"dtype": network.center.dtype, "device": network.center.device}
            # Stored by columns, as LAPACK and cuSOLVER want it.
            matrix, rhs = xp.zeros((columns, start), **like).T, xp.zeros((start,), **like)
        return cls(tuple(statements), tuple(blocks), matrix, rhs, xp)

    def rows(self, statement: Statement) -> slice:
        return self.blocks[self.statements.index(statement)].rows


def _fill_rows(
    group: list[Statement], problem: Problem, where: PointSet, network: BroadNetwork, soft: _Target, hard: _Target
) -> None:
    """Fill the rows of all statements on one point set; each derivative of the nodes is computed once."""

    def place(array: FloatArray) -> Any:
        like = network.center
        if isinstance(like, np.ndarray):
            return np.ascontiguousarray(array)
        return soft.xp.asarray(np.array(array), dtype=like.dtype, device=like.device)

    forms, outs = [], []
    for statement in group:
        target = hard if statement.exact else soft
        rows = target.rows(statement)
        source = statement.form.source_function(where.points, where.normals)
        source = source if where.weights is None else np.array(where.averaged(source))
        target.rhs[rows] = place(-source if statement.targets is None else statement.targets - source)
        by_field: dict[str, dict[MultiIndex, Any]] = {}
        for term, function in zip(statement.form.terms, statement.form.coefficient_functions, strict=True):
            value = function.constant if function.constant is not None else place(function(where.points, where.normals))
            by_field.setdefault(term.field, {})[term.multi_index] = value
        for name, form in by_field.items():
            first = problem.field_names.index(name) * network.size
            forms.append(form)
            outs.append(target.matrix[rows, first : first + network.size])
    X = place(where.points)
    if where.weights is not None:
        weights = place(where.weights)
        for out, value in zip(outs, network.combine(X, forms), strict=True):
            for number, row in enumerate(where.averaged(value, weights)):
                out[number, :] = row
        return
    many = isinstance(X, np.ndarray) and len(X) * network.size > _WORTH_THREADS
    network.combine(X, forms, out=outs, workers=available_cores() if many else 1)
    if where.partner is not None:
        for out, value in zip(outs, network.combine(place(where.partner), forms), strict=True):
            out -= value


def _scale_rows(target: _Target, scaling: RowScaling) -> tuple[Block, ...]:
    """Scale the rows in place and return the blocks with their factors."""
    norms = []
    for block in target.blocks:
        if block.noise is not None:
            deviations = target.xp.asarray(np.array(block.noise), device=device(target.matrix))
            target.matrix[block.rows, :] /= deviations[:, None]
            target.rhs[block.rows] /= deviations
        norms.append(_root_mean_square(target.matrix[block.rows, :], target.xp))
    found = []
    for block, factor, norm in zip(target.blocks, scaling.scales(target.statements, norms), norms, strict=True):
        _check_range(block.name, factor, norm, float(target.xp.max(target.xp.abs(target.rhs[block.rows]))))
        target.matrix[block.rows, :] *= factor
        target.rhs[block.rows] *= factor
        found.append(replace(block, scale=factor, norm=norm))
    return tuple(found)


def _check_range(name: str, factor: float, norm: float, largest: float) -> None:
    """Refuse rows that say 0 = 1, and those that a least-squares problem in double precision cannot hold."""
    if norm == 0.0 and largest > 0.0:
        raise SolveError(
            f"At its points, {name} has coefficients of zero and a right-hand side that reaches {largest:.1e}: nothing "
            "can fulfil it. Check the coefficients there, or where it holds."
        )
    if not (np.isfinite(factor) and norm * factor <= _LARGEST and largest * factor <= _LARGEST):
        raise SolveError(
            f"The rows of {name} leave the range of double precision: their norm is {norm:.1e}, and the right-hand "
            f"side reaches {largest:.1e}. Use other units for the coordinates or the equation, lower derivatives, or a "
            "smaller feature scale."
        )


def _root_mean_square(rows: Any, xp: Any) -> float:
    """Root mean square of the row norms, without a copy of the rows."""

    def total(unit: float) -> float:
        if isinstance(rows, np.ndarray) and unit == 1.0:
            return float(np.einsum("ij,ij->", rows, rows))
        columns = (rows[:, j] / unit if unit != 1.0 else rows[:, j] for j in range(rows.shape[1]))
        return sum(float(xp.vecdot(column, column)) for column in columns)

    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        unit, squares = 1.0, total(1.0)
        if not _SMALLEST_SQUARE < squares < np.inf:
            unit = max(float(xp.max(rows)), -float(xp.min(rows)))
            squares = total(unit) if 0.0 < unit < np.inf else 1.0
    return unit * float(np.sqrt(squares / max(1, rows.shape[0])))
