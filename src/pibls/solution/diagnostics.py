"""The record of a solve: its stages, its choices, the residual of each condition, the conditioning of the system."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pibls.checks import counted, shorten
from pibls.markup import facts
from pibls.writing import finite


@dataclass(frozen=True)
class Stage:
    """A tree of cells, a width, a fineness or an iteration; figures that a way of solving lacks are None.

    Attributes
    ----------
    seconds
        Since the start.
    nodes, rows
        Width of the network and rows of its system; of cells, the weights of all of them.
    cells
        How many cells there were.
    steps
        Steps in time.
    iteration
        Of a training, or of the search for the evidence.
    residual
        Relative residual: at held-out points for one network; of all rows for cells.
    estimate
        Estimated relative error.
    answer
        Of cells, how strongly the solution answers to changes of what it must meet.
    loss
        Of a training.
    evidence, alpha, beta
        Log evidence, and the precisions of weights and rows.

    Examples
    --------
    >>> print(Stage(0.1, nodes=220, rows=500, cells=4, residual=2e-7, estimate=3e-7, answer=1.5))
    4 cells, 220 weights: residual 2.0e-07, estimated error 3.0e-07, after 0.10 s
    >>> print(Stage(0.1, nodes=2, steps=31, residual=1e-9))
    2 coefficients, 31 steps: residual 1.0e-09, after 0.10 s
    """

    seconds: float
    nodes: int | None = None
    rows: int | None = None
    cells: int | None = None
    steps: int | None = None
    iteration: int | None = None
    residual: float | None = None
    estimate: float | None = None
    answer: float | None = None
    loss: float | None = None
    evidence: float | None = None
    alpha: float | None = None
    beta: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the figures that there are, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def __str__(self) -> str:
        names = {"loss": "loss", "evidence": "log evidence", "residual": "residual", "estimate": "estimated error"}
        if self.cells is None and self.steps is None:
            names["residual"] = "held-out residual"  # cells use all of their rows
        facts = [f"{name} {value:.1e}" for key, name in names.items() if (value := getattr(self, key)) is not None]
        size = f"iteration {self.iteration}" if self.iteration is not None else self.size
        return ", ".join([f"{size}: {', '.join(facts)}" if facts else size, f"after {self.seconds:.2f} s"])

    @property
    def size(self) -> str:
        """How large it was, in words."""
        return size_in_words(self.nodes or 0, self.rows, self.cells, self.steps)


def size_in_words(nodes: int, rows: int | None, cells: int | None, steps: int | None) -> str:
    """Return a size in words: of cells, of lines with so many steps in time, or of one network.

    >>> size_in_words(50, None, None, None), size_in_words(55, None, 1, None), size_in_words(60, 200, None, 9)
    ('50 nodes', '1 cell, 55 weights', '60 nodes in space, 9 steps')
    """
    if cells is not None:
        return f"{counted(cells, 'cell')}, {counted(nodes, 'weight')}"
    if steps is not None:
        # Without a space there are no nodes, only the unknowns and their derivatives.
        unknowns = f"{counted(nodes, 'node')} in space" if rows else counted(nodes, "coefficient")
        return f"{unknowns}, {counted(steps, 'step')}"
    return counted(nodes, "node")


def in_words(stages: Sequence[Stage]) -> list[str]:
    """Return a line per stage; the many of a training are told by the first and the last.

    >>> in_words([Stage(0.1, iteration=0, loss=3.0), Stage(1.5, iteration=25, loss=0.01)])
    ['loss 3 → 0.01 in 25 iterations, 1.50 s']
    """
    if not stages or stages[0].iteration is None:
        return [str(stage) for stage in stages]
    first, last = stages[0], stages[-1]
    name, ends = ("loss", (first.loss, last.loss))
    if first.loss is None:
        name, ends = ("log evidence", (first.evidence, last.evidence))
    course = " → ".join(f"{value:.4g}" for value in ends if value is not None)
    return [f"{name} {course} in {last.iteration} iterations, {last.seconds:.2f} s"]


_MOST_TOLD = 10_000  # residuals and stages: a solve has dozens


@dataclass(frozen=True)
class Residual:
    """Size of a residual over its points, in the units of its equation."""

    rms: float
    max: float
    rows: int

    def __str__(self) -> str:
        return f"{self.rms:.1e} rms, {self.max:.1e} max over {counted(self.rows, 'row')}"


@dataclass(frozen=True)
class Diagnostics:
    """Record of a solve.

    Attributes
    ----------
    method
        Name of the method.
    settings
        Every setting that was used, also those chosen by the library.
    seed
        Seed of the random nodes.
    nodes, rows
        Size of the network (of a solve by cells: the weights of all of them), and rows of the system.
    solver, rank, condition
        The linear solver, the numerical rank it found, and an estimate of the condition number of the scaled matrix;
        a method that trains has an optimiser instead, and neither of the two numbers.
    residuals
        Residual at the points of the solve, per equation and condition.
    seconds
        Wall-clock time per stage.
    message
        What came of an automatic solve or of a training, and what to do about it.
    stages
        A :class:`Stage` for every tree of cells, width or fineness that was tried, or for iterations of a training.
    iterations
        Steps of the Gauss–Newton iteration that found the weights of a nonlinear problem: norm of the scaled residual
        after the step, the part of it that the linear model could remove, length and damping of the step.
    operations
        Work of an automatic solve, counted in operations: the same on every machine.
    tolerance
        The relative error that an automatic solve was to reach.
    """

    method: str
    settings: Mapping[str, Any]
    seed: int
    nodes: int
    rows: int
    solver: str
    rank: int | None
    condition: float | None
    residuals: Mapping[str, Residual]
    seconds: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
    stages: Sequence[Stage] = ()
    iterations: Sequence[Mapping[str, float]] = ()
    operations: float = 0.0
    tolerance: float | None = None

    @property
    def size(self) -> str:
        """Size of the network and rows of the system, in words.

        >>> Diagnostics("PIELM", {}, 0, 50, 120, "lstsq", None, None, {}).size
        '50 nodes, 120 rows'
        >>> Diagnostics("Cells", {"cells": 1}, 0, 55, 0, "elimination", None, None, {}).size
        '1 cell, 55 weights'
        >>> Diagnostics("Lines", {"steps": 12}, 0, 2, 0, "Radau", None, None, {}).size
        '2 coefficients, 12 steps'
        """
        cells, steps = (self.settings.get(name) for name in ("cells", "steps"))
        size = size_in_words(self.nodes, self.rows, cells, steps)
        # Cells that are eliminated one after the other never have all their rows together.
        return f"{size}, {counted(self.rows, 'row')}" if self.rows and steps is None else size

    @property
    def residual(self) -> float:
        """The largest of all residuals, or that of the last stage where they were not told apart."""
        if not self.residuals and self.stages:
            return self.stages[-1].residual or 0.0
        return max((residual.rms for residual in self.residuals.values()), default=0.0)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and dictionaries, fit for JSON."""
        stages = [stage.as_dict() for stage in self.stages]
        return dict(to_plain({**asdict(replace(self, residuals=dict(self.residuals), stages=())), "stages": stages}))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Diagnostics:
        """Rebuild the record from :meth:`as_dict`."""
        # Earlier versions kept checks of theorems, which are the study's now.
        lists = [values.get(name) or () for name in ("residuals", "stages", "iterations")]
        if sum(map(len, lists)) > _MOST_TOLD:
            raise ValueError(f"it tells of more than {_MOST_TOLD} residuals and stages")
        plain = {name: value for name, value in from_plain(values).items() if name != "theorems"}
        residuals = {name: built(Residual, entry) for name, entry in plain["residuals"].items()}
        stages = tuple(built(Stage, entry) for entry in plain.get("stages", ()))
        iterations = tuple(plain.get("iterations", ()))
        return built(cls, {**plain, "residuals": residuals, "stages": stages, "iterations": iterations})

    def _facts(self) -> list[tuple[str, str]]:
        known = self.rank is not None and self.condition is not None
        numbers = f": rank {self.rank}, condition {self.condition:.1e}" if known else ""
        norms = " → ".join(f"{step['residual']:.1e}" for step in self.iterations)
        settings = ", ".join(f"{k}={v}" for k, v in self.settings.items() if v is not None)
        return [
            ("method", f"{self.method} ({settings})"),
            ("size", f"{self.size}, seed {self.seed}"),
            ("solver", f"{self.solver}{numbers}"),
            *(("residual", f"{name}: {residual}") for name, residual in self.residuals.items()),
            *(("stage", line) for line in in_words(self.stages)),
            *([("iteration", f"residual {norms}")] if norms else []),
            ("seconds", ", ".join(f"{stage} {value:.3f}" for stage, value in self.seconds.items())),
            *([("message", self.message)] if self.message else []),
        ]

    def __str__(self) -> str:
        return "\n".join(f"{name:<11} {value}" for name, value in self._facts())

    def _repr_html_(self) -> str:
        return facts(self._facts())


def to_plain(value: Any) -> Any:
    """Return a record fit for JSON, which has no infinities: they are written as words.

    >>> to_plain({"condition": float("inf")})
    {'condition': {'float': 'inf'}}
    """
    return finite(value, lambda number: {"float": str(number)})


def from_plain(value: Any) -> Any:
    """Return the record that :func:`to_plain` wrote.

    >>> from_plain({"condition": {"float": "inf"}})
    {'condition': inf}
    """
    if isinstance(value, Mapping):
        if set(value) == {"float"}:
            return float(value["float"])
        return {key: from_plain(item) for key, item in value.items()}
    return [from_plain(item) for item in value] if isinstance(value, list) else value


T = TypeVar("T")


def built(cls: type[T], values: Mapping[str, Any]) -> T:
    """Return a dataclass made of a record, whose entries must have the types of its fields.

    >>> built(Residual, {"rms": 1.0, "max": 2, "rows": 3})
    Residual(rms=1.0, max=2, rows=3)
    >>> built(Residual, {"rms": [], "max": 2, "rows": 3})
    Traceback (most recent call last):
    ...
    ValueError: rms of a Residual cannot be []
    """
    hints = _hints(cls)  # type: ignore[arg-type]
    for name, value in values.items():
        if not _fits(value, hints.get(name, Any)):
            raise ValueError(f"{name} of a {cls.__name__} cannot be {shorten(value)}")
    return cls(**values)


@cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _fits(value: Any, hint: Any) -> bool:
    """Tell whether a value of a record has a type, which is one of plain values, or of lists and mappings of them."""
    arguments, origin = get_args(hint), get_origin(hint)
    if hint is Any:
        return True
    if origin is types.UnionType:
        return any(_fits(value, one) for one in arguments)
    if origin in (Mapping, dict):
        return isinstance(value, dict) and all(_fits(entry, arguments[1]) for entry in value.values())
    if origin in (Sequence, tuple):
        inner = arguments[:1] * len(value) if isinstance(value, list | tuple) else ()
        return isinstance(value, list | tuple) and all(map(_fits, value, inner))
    if hint in (float, int):
        return not isinstance(value, bool) and isinstance(value, (int, float) if hint is float else int)
    return isinstance(value, origin or hint)
