"""Measurements: values of expressions at points, or averaged over regions and parts of the boundary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import FloatArray, as_reals, check_choice, cut, refusal, shorten
from pibls.errors import InputError, ProblemError
from pibls.problem.columns import read_csv
from pibls.problem.conditions import check_expression, check_settings
from pibls.problem.domain import is_domain, is_part
from pibls.problem.printing import text
from pibls.problem.symbols import Field

_NOISE = (1e-100, 1e100)
_LOSSES = ("squares", "huber")


@dataclass(frozen=True, eq=False)
class Observation:
    """Measured values of an expression, at points or averaged over regions.

    Several values at one point count as several measurements.

    Parameters
    ----------
    u
        A field or an expression of fields and derivatives.
    points
        Array of shape ``(n, d)``, columns in the order of the domain's coordinates; or a mapping from coordinates to
        columns, in which one number stands for all points: ``{x: places, t: 1.0}``.
    values
        The ``n`` measured values.
    noise
        Standard deviation of the measurements, one number or ``n``; rows are divided by it. If left out, an inverse
        problem finds one for the data set from the data.
    loss
        ``"squares"``, or ``"huber"`` for data with outliers, in problems with unknown numbers or functions.
    regions, times
        What :meth:`average` was given, instead of points.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> u = field("u", x, t)
    >>> Observation(u, [[0.1, 0.0], [0.2, 0.5]], [1.0, 2.0])
    Observation(u at 2 points)
    >>> Observation(u.diff(x), {x: [0.1, 0.2, 0.3], t: 1.0}, [1.0, 2.0, 40.0], noise=0.1, loss="huber")
    Observation(u_x at 3 points, noise 0.1, huber)
    """

    u: Any
    points: Any
    values: Any
    noise: Any = None
    weight: float = field(default=1.0, kw_only=True)
    exact: bool = field(default=False, kw_only=True)
    loss: str = field(default="squares", kw_only=True)
    regions: tuple[Any, ...] | None = field(default=None, kw_only=True)
    times: Any = field(default=None, kw_only=True)
    columns: tuple[str, ...] | None = field(default=None, kw_only=True)
    label = "Observation"

    def __post_init__(self) -> None:
        check_expression(self.u, "Observation")
        check_settings("Observation", self.weight, self.exact)
        check_choice("loss", self.loss, "Observation", _LOSSES)
        if self.exact and self.loss != "squares":
            raise ProblemError(
                "Observation got exact=True and loss='huber': values that hold to round-off have no outliers. Leave "
                "one of them out."
            )
        self._set("values", _reals("values", self.values))
        if (most := float(np.abs(self.values).max())) > _NOISE[1]:
            raise ProblemError(
                f"The 'values' parameter of Observation must be below {_NOISE[1]:g} in size. Got {most:g} instead. Use "
                "other units."
            )
        if self.regions is None:
            self._place_points()
        else:
            self._place_regions()
        if self.noise is not None:
            self._set("noise", _noise(self.noise, len(self.values)))

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _place_points(self) -> None:
        if self.times is not None:
            raise ProblemError("Observation takes 'times' only for averages; at points, time is one of the columns.")
        if isinstance(self.points, Mapping):
            names, points = _stacked(self.points, len(self.values))
            self._set("columns", names)
        else:
            points = _points(self.points)
        if points.ndim == 2 and len(points) != len(self.values):
            raise ProblemError(
                f"Observation needs one value per point. Got points of shape {points.shape} and "
                f"{len(self.values)} values."
            )
        points.setflags(write=False)
        self._set("points", points)
        if self.exact:
            _refuse_contradiction(points, self.values)

    def _place_regions(self) -> None:
        if self.points is not None:
            raise ProblemError("Observation takes either points or regions. Got both; make two observations.")
        count = len(self.values)
        given = self.regions if isinstance(self.regions, list | tuple) else (self.regions,)
        for region in given:
            if not (is_domain(region) or is_part(region)) or not hasattr(region, "quadrature"):
                raise ProblemError(
                    "The 'regions' parameter of Observation.average must be shapes or parts of a boundary, such as "
                    f"Disk((x, y), (0, 0), 0.1) or square.left. Got {shorten(region)} instead."
                )
        self._set("regions", _one_each(given, count, "region"))
        if self.times is not None:
            times = _reals("times", self.times)
            self._set("times", np.array(_one_each(tuple(times.tolist()), count, "time")))

    @classmethod
    def average(
        cls, u: Any, regions: Any, values: Any, noise: Any = None, *, times: Any = None, **settings: Any
    ) -> Observation:
        """Return measured averages of an expression over shapes or parts of the boundary, one per value.

        Over parts the expression may hold :func:`~pibls.normal_derivative`: a measured flux. Integrals are exact to
        round-off over intervals, rectangles, boxes, disks, balls and pieces of curves; over other shapes to about 1e-3.

        Parameters
        ----------
        u
            A field or an expression of fields and derivatives.
        regions
            One shape or part per value, or one for all. In a problem with time, a shape in space is taken at the times
            given, and a product with a time interval is averaged over that too.
        values, noise
            As for the observation of points.
        times
            One time per value, or one for all.
        **settings
            ``weight``, ``exact`` and ``loss``.

        Examples
        --------
        >>> import pibls as pb
        >>> x, y = pb.coordinates("x y")
        >>> u, probe = pb.field("u", x, y), pb.Disk((x, y), (0.5, 0.5), 0.1)
        >>> pb.Observation.average(u, probe, 0.3, noise=0.01)
        Observation(average of u over 1 region, noise 0.01)
        """
        return cls(u, None, values, noise, regions=regions, times=times, **settings)

    @classmethod
    def from_csv(
        cls, path: str | os.PathLike[str], u: Any, values: str | None = None, noise: Any = None, **settings: Any
    ) -> Observation:
        r"""Return measurements at points from the columns of a CSV file.

        Parameters
        ----------
        path
            The file; its first line names the columns, among them the coordinates of the field.
        u
            A field or an expression of fields and derivatives.
        values
            The column with the values; the one called like the field if left out.
        noise
            A number, or the column with a standard deviation per row.
        **settings
            ``weight``, ``exact`` and ``loss``.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from pibls.problem import coordinates, field
        >>> x, t = coordinates("x t")
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "rod.csv"
        ...     _ = path.write_text("t,x,u\n0.0,0.5,1.25\n0.1,0.5,1.5\n")
        ...     Observation.from_csv(path, field("u", x, t), noise=0.1)
        Observation(u at 2 points, noise 0.1)
        """
        check_expression(u, "Observation.from_csv")
        if not isinstance(path, str | os.PathLike):
            raise InputError(f"The 'path' of Observation.from_csv must be a path. Got {shorten(path)} instead.")
        columns = read_csv(Path(path), cut(str(path)))

        def column(name: Any) -> FloatArray:
            if name not in columns:
                raise InputError(
                    f"The file {cut(str(path))} has no column {shorten(name)}. Its columns are "
                    f"{cut(', '.join(columns), 200)}; the coordinates and the values must be among them."
                )
            return columns[name]

        named = values if values is not None else getattr(u, "label", "value")
        symbols = (symbol for call in sorted(u.atoms(Field), key=str) for symbol in call.args)
        points = {str(symbol): column(str(symbol)) for symbol in symbols}
        spread = column(noise) if isinstance(noise, str) else noise
        return cls(u, points, column(named), spread, **settings)

    def __repr__(self) -> str:
        count = len(self.values)
        several = "s" if count != 1 else ""
        what = f"{text(self.u)} at {count} point{several}"
        if self.regions is not None:
            distinct = len(set(self.regions))
            what = f"average of {text(self.u)} over {distinct} region{'s' if distinct != 1 else ''}"
            if self.times is not None:
                what += f", {count} value{several}"
        if self.noise is not None:
            low, high = self.noise.min(), self.noise.max()
            what += f", noise {low:g}" + (f" to {high:g}" if high > low else "")
        return f"Observation({what}{', huber' if self.loss == 'huber' else ''})"


def _points(value: object) -> FloatArray:
    points = as_reals(value)
    if points is None or points.size == 0 or points.ndim > 2:
        raise ProblemError(
            "The 'points' parameter of Observation must be an array of points, one row each and one column per "
            f"coordinate, or a mapping from coordinates to columns. Got {shorten(value)} instead."
        )
    return _finite("points", points)


def _finite(name: str, array: FloatArray) -> FloatArray:
    bad = np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1))
    if bad.size:
        raise ProblemError(
            f"The '{name}' parameter of Observation must hold finite real numbers only: {bad.size} of {len(array)} "
            f"rows do not, first row {bad[0]}, {array[bad[0]].tolist()}. Remove such rows."
        )
    return array


def _stacked(given: Mapping[Any, Any], count: int) -> tuple[tuple[str, ...], FloatArray]:
    names = tuple(str(key) for key in given)
    if not names or len(set(names)) < len(names):
        raise ProblemError(f"The points of Observation must name each coordinate once. Got {shorten(names)} instead.")
    columns = []
    for name, value in zip(names, given.values(), strict=True):
        column = as_reals(value)
        if column is None or column.shape not in {(), (1,), (count,)}:
            raise ProblemError(
                f"The points of Observation need one number for {name}, or one per value, {count} in all. Got "
                f"{shorten(value)} instead."
            )
        columns.append(np.broadcast_to(column, (count,)))
    return names, _finite("points", np.stack(columns, axis=1))


def _reals(name: str, values: object) -> FloatArray:
    numbers = as_reals(values)
    array = np.empty(0) if numbers is None else np.atleast_1d(numbers)
    if array.ndim != 1 or array.size == 0:
        raise refusal(
            name, "Observation", "be a sequence of finite real numbers, at least one", values, error=ProblemError
        )
    _finite(name, array).setflags(write=False)
    return array


def _noise(given: object, count: int) -> FloatArray:
    noise = _reals("noise", given)
    if len(noise) not in {1, count} or not ((noise > _NOISE[0]) & (noise < _NOISE[1])).all():
        raise ProblemError(
            "The 'noise' parameter of Observation must be one positive number, or one per value, between "
            f"{_NOISE[0]:g} and {_NOISE[1]:g}. Got {shorten(given)} instead. For values without noise use exact=True."
        )
    return np.broadcast_to(noise, (count,))


def _one_each(given: Sequence[Any], count: int, what: str) -> tuple[Any, ...]:
    if len(given) not in {1, count}:
        raise ProblemError(
            f"Observation.average needs one {what} per value, or one for all. Got {len(given)} {what}s and {count} "
            "values."
        )
    return tuple(given) * (count if len(given) == 1 else 1)


def _refuse_contradiction(points: FloatArray, values: FloatArray) -> None:
    seen: dict[Any, float] = {}
    rows = points.reshape(len(values), -1).tolist()
    for row, value in zip(map(tuple, rows), values.tolist(), strict=True):
        if seen.setdefault(row, value) != value:
            raise ProblemError(
                f"Observation asks for two values at {list(row)}, {seen[row]:g} and {value:g}, and exact=True lets "
                "neither of them give way. Leave out exact=True, or one of the values."
            )
