"""The values of a solution on a grid: as columns, as comma-separated values, as a DataFrame, as an xarray Dataset."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import FloatArray, as_reals, check_integer, refusal
from pibls.errors import InputError, MissingDependencyError
from pibls.geometry.points import interior_points
from pibls.problem.domain import DomainLike
from pibls.runtime import require_memory
from pibls.solution import Solution
from pibls.solution.storage import write_file

_POINTS_PER_AXIS = {1: 201, 2: 61, 3: 21, 4: 11, 5: 7, 6: 5}
_SAMPLES = 5000


def installed(package: str, owner: str) -> Any:
    """Return an optional package for files, or say how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise MissingDependencyError(
            f"{owner} needs the package {package}, which is not installed. Install it with pip install 'pibls[files]'."
        ) from None


def axes_of(domain: DomainLike, n: int | None, given: Mapping[str, Any], owner: str) -> Mapping[str, FloatArray] | None:
    """Return the values along each coordinate of a grid; None for a point cloud and where a grid would be too large.

    Coordinates that are not ``given`` have ``n`` values from one bound to the other, those at the ends included.
    """
    names = [symbol.name for symbol in domain.coordinates]
    if strange := sorted(set(given) - set(names)):
        raise InputError(f"{owner} takes values for the coordinates {', '.join(names)}. Got {strange[0]!r} instead.")
    count = _POINTS_PER_AXIS.get(len(names)) if n is None else check_integer("n", n, owner, minimum=2)
    if domain.atoms is not None and (given or n is not None):
        raise InputError(f"{owner} gives the values at the points of a cloud, which has no grid. Leave out n and axes.")
    if domain.atoms is not None or (count is None and set(given) != set(names)):
        return None
    axes = {}
    for name, (low, high) in zip(names, domain.bounds, strict=True):
        axes[name] = _axis(name, given[name], owner) if name in given else np.linspace(low, high, count or 0)
    entries = float(np.prod([float(len(axis)) for axis in axes.values()])) * len(names)
    require_memory(8.0 * 4.0 * entries, f"A grid of {entries / len(names):.3g} points", "Use fewer along each axis.")
    return axes


def _axis(name: str, value: object, owner: str) -> FloatArray:
    found = as_reals(value)
    if found is None or found.ndim > 1 or found.size == 0 or not np.isfinite(found).all():
        raise refusal(name, owner, "be a number or a list of numbers", value)
    return np.atleast_1d(found)


def grid_points(
    domain: DomainLike, n: int | None = None, given: Mapping[str, Any] | None = None, owner: str = "grid"
) -> FloatArray:
    """Return the points of a grid that are in a domain; the points of a cloud; samples in many dimensions.

    >>> import sympy as sp
    >>> from pibls.geometry import Interval
    >>> grid_points(Interval((sp.Symbol("x"), 0, 1)))[:3].ravel()
    array([0.   , 0.005, 0.01 ])
    """
    axes = axes_of(domain, n, given or {}, owner)
    if axes is None:
        return interior_points(domain, _SAMPLES, "kronecker", 0)
    X = lattice(axes)
    return np.asarray(X[np.asarray(domain.contains(X), dtype=bool)])


def lattice(axes: Mapping[str, FloatArray]) -> FloatArray:
    """Return the points of a grid, the last coordinate changing fastest."""
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes.values(), indexing="ij")], axis=1)


def error_names(names: Sequence[str]) -> dict[str, str]:
    """Return the names of estimated errors by field; a field may have such a name already.

    >>> error_names(["u"]), error_names(["u", "u_error"])
    ({'u': 'u_error'}, {'u': 'u_error_', 'u_error': 'u_error_error_'})
    """
    ending = "_error"
    while {f"{name}{ending}" for name in names} & set(names):
        ending += "_"
    return {name: f"{name}{ending}" for name in names}


def values_at(solution: Solution, X: FloatArray, outside: str = "value") -> dict[str, FloatArray]:
    """Return the fields at points by name, and their estimated errors if there are any: ``u`` and ``u_error``.

    A complex field is two, as no file format has complex numbers: ``psi_re`` and ``psi_im``.
    """
    both = [solution] if solution.richer is None else [solution, solution.richer_solution]
    found, *richer = ({f.field: f(X, outside=outside) for f in made.field_functions} for made in both)
    errors, share = error_names(list(found)) if richer else {}, min(1.0, solution.distance_share)
    return found | {own: share * np.abs(found[name] - richer[0][name]) for name, own in errors.items()}


def columns(solution: Solution, n: int | None, given: Mapping[str, Any], owner: str) -> dict[str, FloatArray]:
    """Return coordinates, fields and estimated errors on the part of a grid that is in the domain."""
    X = grid_points(solution.problem.domain, n, given, owner)
    return dict(zip(solution.coordinate_names, X.T, strict=True)) | values_at(solution, X)


def csv_text(heading: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return rows as CSV; numbers keep all their digits.

    >>> csv_text(["x", "u"], [[0.1, 1 / 3]])
    'x,u\n0.1,0.3333333333333333\n'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return stream.getvalue()


def grid_csv(solution: Solution, n: int | None = None, given: Mapping[str, Any] | None = None) -> str:
    """Return the table as CSV."""
    table = columns(solution, n, given or {}, "to_csv")
    return csv_text(table, np.stack(list(table.values()), axis=1).tolist())


def to_csv(solution: Solution, path: str | Path, n: int | None, given: Mapping[str, Any]) -> Path:
    """Write the table as CSV, as a whole or not at all."""
    text = grid_csv(solution, n, given)
    return write_file(path, lambda place: place.write_text(text, encoding="utf-8", newline=""))


def attributes(solution: Solution) -> dict[str, Any]:
    """Return the facts that files tell of a solution: status, error estimate, tolerance, and the problem as text."""
    d, estimate = solution.diagnostics, solution.error_estimate
    facts = {"status": str(solution.status), "error_estimate": np.nan if estimate is None else float(estimate)}
    facts |= {} if d.tolerance is None else {"tolerance": d.tolerance}
    return facts | {
        "equation": str(solution.problem),
        "message": d.message,
        "method": d.method,
        "seed": d.seed,
        "source": f"pibls {version('pibls')}",
    }


def to_xarray(solution: Solution, n: int | None, given: Mapping[str, Any], owner: str = "to_xarray") -> Any:
    """Return the values on a whole grid as a Dataset, NaN outside the domain; a cloud has one dimension, its points."""
    xarray = installed("xarray", owner)
    domain = solution.problem.domain
    axes = axes_of(domain, n, given, owner)
    X = interior_points(domain, _SAMPLES, "kronecker", 0) if axes is None else lattice(axes)
    found = values_at(solution, X, "nan")
    dims = ("point",) if axes is None else tuple(axes)
    shape = tuple(map(len, (X,) if axes is None else axes.values()))
    along = zip(solution.coordinate_names, X.T, strict=True) if axes is None else axes.items()
    places = {name: (dims if axes is None else (name,), column) for name, column in along}
    errors = error_names(solution.problem.field_names)
    about = {own: f"estimated absolute error of {name}" for name, own in errors.items()}
    variables = {name: (dims, own.reshape(shape), {"long_name": about.get(name, name)}) for name, own in found.items()}
    return xarray.Dataset(variables, places, attributes(solution))


def spelled(name: str) -> str:
    """Return a name in letters that every file format has.

    >>> spelled("φ_error"), spelled("Δp"), spelled("u")
    ('phi_error', 'Deltap', 'u')
    """
    words = [letter if letter.isascii() else unicodedata.name(letter, "other").split()[-1] for letter in name]
    pairs = zip(words, name, strict=True)
    return "".join(
        word if letter.isascii() else word.title() if letter.isupper() else word.lower() for word, letter in pairs
    )


def write_netcdf(dataset: Any, path: str | Path) -> Path:
    """Write a Dataset as netCDF, as a whole or not at all; Greek letters of names are spelled out."""
    dataset = dataset.rename({str(name): spelled(str(name)) for name in dataset.variables})
    return write_file(path, lambda place: dataset.to_netcdf(place, engine="scipy"))
