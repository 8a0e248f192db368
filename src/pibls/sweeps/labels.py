"""The results of a sweep with their labels: one dimension per parameter, and those of space and time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer, cut
from pibls.report.grid_values import axes_of, lattice, values_at
from pibls.solution import Solution

Axes = Mapping[str, FloatArray]


@dataclass(eq=False)
class Labelled:
    """Arrays over the points of a sweep, filled as results come in."""

    parameters: Mapping[str, Sequence[Any]]
    quantities: Mapping[str, Callable[[Solution], Any]]
    n: int | None = None
    grid: Axes | None = None  # common to all solutions
    fits: bool = True  # whether there is such a grid
    bounds: Any = None
    arrays: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.n is not None:
            check_integer("grid_points", self.n, "sweep", minimum=2)
        self.arrays["status"] = np.full(self.shape, "failed", dtype=object)
        self.arrays["message"] = np.full(self.shape, "", dtype=object)
        for name in ("error_estimate", *self.quantities):
            self.arrays[name] = np.full(self.shape, np.nan)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values every parameter has."""
        return tuple(map(len, self.parameters.values()))

    def put(self, index: tuple[int, ...], found: Solution | str) -> None:
        """Enter the solution at a point, or the reason why there is none."""
        if isinstance(found, str):
            self.arrays["message"][index] = found
            return
        estimate = found.error_estimate
        self.arrays["status"][index] = str(found.status)
        self.arrays["message"][index] = found.diagnostics.message
        self.arrays["error_estimate"][index] = np.nan if estimate is None else estimate
        self._put_fields(index, found)
        for name, function in self.quantities.items():
            self._put_quantity(index, name, function, found)

    def _put_fields(self, index: tuple[int, ...], found: Solution) -> None:
        domain = found.problem.domain
        bounds = [found.coordinate_names, domain.bounds.tolist()]
        if self.bounds is None:
            self.bounds, self.grid = bounds, axes_of(domain, self.n, {}, "sweep")
        self.fits = self.fits and self.grid is not None and self.bounds == bounds
        if not self.fits or self.grid is None:
            return
        shape = tuple(map(len, self.grid.values()))
        for name, values in values_at(found, lattice(self.grid), "nan").items():
            whole = self.arrays.setdefault(name, np.full((*self.shape, *shape), np.nan))
            whole[index] = values.reshape(shape)

    def _put_quantity(self, index: tuple[int, ...], name: str, function: Callable[[Any], Any], found: Solution) -> None:
        try:
            value = function(found)
            self.arrays[name][index] = float(value)
            if hasattr(value, "error"):
                errors = self.arrays.setdefault(f"{name}_error", np.full(self.shape, np.nan))
                errors[index] = float(value.error)
        except Exception as error:  # a function of the user, at one point
            words = f"The quantity {name!r} raised {type(error).__name__}: {cut(str(error), 200)}."
            self.arrays["message"][index] = f"{self.arrays['message'][index]} {words}".strip()

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
