"""The results of a sweep with their labels: one dimension per parameter, and those of space and time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer, cut
from pibls.report.grid_values import axes_of, lattice, values_at
from pibls.solution import Solution

Axes = Mapping[str, FloatArray]


@dataclass(frozen=True, eq=False)
class Taken:
    """The numbers of one solution."""

    status: str
    message: str
    numbers: Mapping[str, float]  # error estimate and quantities
    bounds: Any  # of the domain, with the names of its coordinates
    grid: Axes | None
    fields: Mapping[str, FloatArray]  # on the grid


@dataclass(frozen=True, eq=False)
class Taking:
    """Takes quantities of a solution, and its fields on a grid with ``n`` points along each coordinate."""

    quantities: Mapping[str, Callable[[Solution], Any]]
    n: int | None = None

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("grid_points", self.n, "sweep", minimum=2)

    def __call__(self, solution: Solution) -> Taken:
        """Return the numbers of a solution; a quantity that fails is told of in the message."""
        domain, estimate = solution.problem.domain, solution.error_estimate
        numbers, words = {"error_estimate": np.nan if estimate is None else estimate}, [solution.diagnostics.message]
        for name, function in self.quantities.items():
            try:
                value = function(solution)
                numbers[name] = float(value)
                if hasattr(value, "error"):
                    numbers[f"{name}_error"] = float(value.error)
            except Exception as error:  # a function of the user, at one point
                words.append(f"The quantity {name!r} raised {type(error).__name__}: {cut(str(error), 200)}.")
        grid, fields = axes_of(domain, self.n, {}, "sweep"), {}
        if grid is not None:
            shape = tuple(map(len, grid.values()))
            fields = {name: own.reshape(shape) for name, own in values_at(solution, lattice(grid), "nan").items()}
        bounds = [solution.coordinate_names, domain.bounds.tolist()]
        return Taken(str(solution.status), " ".join(filter(None, words)), numbers, bounds, grid, fields)


@dataclass(eq=False)
class Labelled:
    """Arrays over the points of a sweep, filled as results come in."""

    parameters: Mapping[str, Sequence[Any]]
    quantities: Iterable[str]  # by name
    grid: Axes | None = None  # common to all solutions
    fits: bool = True  # whether there is such a grid
    bounds: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.arrays["status"] = np.full(self.shape, "failed", dtype=object)
        self.arrays["message"] = np.full(self.shape, "", dtype=object)
        for name in ("error_estimate", *self.quantities):
            self.arrays[name] = np.full(self.shape, np.nan)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values every parameter has."""
        return tuple(map(len, self.parameters.values()))

    def put(self, index: tuple[int, ...], found: Taken | str) -> None:
        """Enter the numbers at a point, or the reason why there are none."""
        if isinstance(found, str):
            self.arrays["message"][index] = found
            return
        self.arrays["status"][index], self.arrays["message"][index] = found.status, found.message
        for name, number in found.numbers.items():
            self.arrays.setdefault(name, np.full(self.shape, np.nan))[index] = number
        if self.bounds is None:
            self.bounds, self.grid = found.bounds, found.grid
        self.fits = self.fits and self.grid is not None and self.bounds == found.bounds
        for name, values in found.fields.items() if self.fits else ():
            whole = self.arrays.setdefault(name, np.full((*self.shape, *values.shape), np.nan))
            whole[index] = values

    def dataset(self, xarray: Any, facts: Mapping[str, Any]) -> Any:
        """Return everything as a Dataset."""
        places = {name: np.asarray(values) for name, values in self.parameters.items()} | dict(self.grid or {})
        variables = {}
        for name, array in self.arrays.items():
            whole = array.ndim > len(self.shape)
            if whole and not self.fits:
                continue
            dims = (*self.parameters, *(self.grid or {})) if whole else tuple(self.parameters)
            variables[name] = (dims, array.astype(str) if array.dtype == object else array)
        used = {dim for dims, _ in variables.values() for dim in dims}
        failed = int((self.arrays["status"] == "failed").sum())
        facts = {**facts, "failed": failed, "source": f"pibls {version('pibls')}"}
        return xarray.Dataset(variables, {name: own for name, own in places.items() if name in used}, facts)
