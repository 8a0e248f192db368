"""Columns of CSV files: points, measurements, and coefficients between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from pibls.checks import FloatArray, cut
from pibls.errors import TextError
from pibls.problem.columns import read_csv
from pibls.text.document import Table
from pibls.text.positions import suggestion


def local_name(table: Table, key: str) -> str:
    """Return the name of a file beside the problem file, or refuse it: no other folder may be named."""
    name = table.string(key)
    path = PurePosixPath(name)
    bad = not name or path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not name.isprintable()
    if bad:
        raise table.error(
            key, f"{key} must name a file in the folder of the problem file, or below it. Got {cut(repr(name))}."
        )
    return name


def read_columns(table: Table, key: str) -> Mapping[str, FloatArray]:
    """Return the columns of a CSV file by the names in its first line."""
    return read_csv(file_beside(table, key, "tables"), table.string(key))


def file_beside(table: Table, key: str, kind: str, folders: tuple[Path, ...] = ()) -> Path:
    """Return the path of a file in the folder of the problem file, or in others that may be named."""
    name, folder = table.string(key) if folders else local_name(table, key), table.document.folder
    if folder is None:
        message = f"A text that is no file has no folder to read {kind} from; use read_problem(path)."
        raise table.error(key, message)
    path = (folder / name).resolve()
    # A link could lead out of the folder.
    if not any(path.is_relative_to(Path(place).resolve()) for place in (folder, *folders)) or not path.is_file():
        raise table.error(key, f"There is no file {cut(name)} in the folder of the problem file.")
    table.document.files.append(path)
    return path


def column(table: Table, key: str, columns: Mapping[str, FloatArray], name: str) -> FloatArray:
    """Return one column of a table that was read."""
    if name not in columns:
        hint = suggestion(name, columns, f"Its columns are {', '.join(columns)}.")
        raise table.error(key, f"The table has no column {cut(repr(name))}.{cut(hint, 200)}")
    return columns[name]


@dataclass(frozen=True)
class Interpolant:
    """A function known at the rows of a table, between them by interpolation.

    Along one coordinate linear, with the outermost values beyond the ends; along several linear on triangles, and the
    nearest value outside of them, or the nearest value everywhere. Two are equal if they come from the same columns
    of the same file.
    """

    file: str
    columns: tuple[str, ...]
    value: str
    method: str
    points: FloatArray = field(compare=False, repr=False)
    values: FloatArray = field(compare=False, repr=False)

    @cached_property
    def _function(self) -> Callable[[FloatArray], FloatArray]:
        from scipy.interpolate import LinearNDInterpolator, NearestNDInterpolator
        from scipy.spatial import QhullError

        if len(self.columns) == 1 and self.method == "linear":
            order = np.argsort(self.points[:, 0], kind="stable")
            known, values = self.points[order, 0], self.values[order]
            return lambda X: np.interp(X[:, 0], known, values)
        nearest = NearestNDInterpolator(self.points, self.values)
        if self.method == "nearest":
            return lambda X: np.asarray(nearest(X))
        try:
            linear = LinearNDInterpolator(self.points, self.values)
        except (QhullError, ValueError) as error:
            message = f"The points lie on a line or are too few for linear interpolation ({type(error).__name__})."
            raise TextError(f'{message} Use method = "nearest".', path=self.file) from error

        def inside(X: FloatArray) -> FloatArray:
            values = np.asarray(linear(X))
            return np.where(np.isnan(values), nearest(X), values)

        return inside

    def prepared(self) -> Interpolant:
        """Return this after a first call, so that points that cannot be used are refused at once."""
        self._function(self.points[:1])
        return self

    def __call__(self, *coordinates: FloatArray) -> FloatArray:
        """Return the values at points."""
        return self._function(np.stack(coordinates, axis=1))
