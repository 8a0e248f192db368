"""Values of a solution as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls.checks import FloatArray
    from pibls.problem.domain import Domain
    from pibls.solution import Solution

__all__ = ["grid", "grid_csv", "to_csv"]

_POINTS_PER_AXIS = {1: 201, 2: 61, 3: 21, 4: 11, 5: 7, 6: 5}
_SAMPLES = 5000


def grid_csv(solution: Solution) -> str:
    """Return the values on a grid over the domain: a column per coordinate, field and estimated error of a field."""
    import numpy as np

    X = grid(solution.problem.domain)
    columns: dict[str, Any] = dict(zip(solution.coordinate_names, X.T, strict=True))
    columns |= _per_field(solution, solution(X, outside="value"), "")
    if solution.richer is not None:
        columns |= _per_field(solution, solution.error_field(X, outside="value"), "_error")
    return to_csv(columns, np.stack(list(columns.values()), axis=1).tolist())


def _per_field(solution: Solution, values: Any, ending: str) -> Mapping[str, Any]:
    named = values if isinstance(values, dict) else {solution.problem.field_names[0]: values}
    return {f"{name}{ending}": column for name, column in named.items()}


def grid(domain: Domain) -> FloatArray:
    """Return a regular grid of a domain, its bounds included; the points of a cloud; samples in many dimensions.

    >>> import sympy as sp
    >>> from pibls.geometry import Interval
    >>> grid(Interval((sp.Symbol("x"), 0, 1)))[:3].ravel()
    array([0.   , 0.005, 0.01 ])
    """
    import numpy as np

    from pibls.geometry.points import interior_points

    count = _POINTS_PER_AXIS.get(len(domain.coordinates))
    if getattr(domain, "atoms", None) is not None or count is None:
        return interior_points(domain, _SAMPLES, "kronecker", 0)
    axes = [np.linspace(low, high, count) for low, high in domain.bounds]
    X = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    return np.asarray(X[np.asarray(domain.contains(X), dtype=bool)])


def to_csv(heading: Iterable[str], rows: Iterable[Sequence[Any]]) -> str:
    r"""Return rows as CSV; numbers keep all their digits.

    >>> to_csv(["x", "u"], [[0.1, 1 / 3]])
    'x,u\n0.1,0.3333333333333333\n'
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return stream.getvalue()
