"""The result of an inverse problem: values with their uncertainties and correlations."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.markup import facts, table
from pibls.solution.diagnostics import built, from_plain, to_plain


@dataclass(frozen=True)
class Parameter:
    """An unknown number that was found.

    Attributes
    ----------
    name
        Its name.
    value
        The most probable value; NaN where the data do not determine it.
    deviation
        Standard deviation: of noise, prior and discretisation together.
    interval
        Where it lies with a probability of 95 %.
    discretisation
        The share of ``deviation`` that cells, features and steps are to blame for.

    Examples
    --------
    >>> print(Parameter("k", 0.3001, 0.0012, (0.2977, 0.3025), 1e-9))
    k = 0.3001 ± 0.0012
    """

    name: str
    value: float
    deviation: float
    interval: tuple[float, float]
    discretisation: float = 0.0

    @property
    def is_determined(self) -> bool:
        """Whether the data determine it."""
        return math.isfinite(self.value)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if not self.is_determined:
            return f"{self.name} is not determined"
        value, deviation = rounded(self.value, self.deviation)
        return f"{self.name} = {value} ± {deviation}"

    def _repr_html_(self) -> str:
        low, high = self.interval
        return facts([("value", self), ("95 % interval", f"{low:.6g} to {high:.6g}")])


@dataclass(frozen=True, eq=False)
class Parameters(Mapping[str, Parameter]):
    """The unknown numbers of an inverse problem by name, shown as a table.

    Attributes
    ----------
    entries
        The numbers, in order.
    correlation
        Correlation of every two of them; NaN for those that are not determined.
    remarks
        What is known of those that are not determined, as sentences.
    directions
        How numbers may change together without any change of the data: directions of length one, in the logarithms of
        positive numbers.
    noise
        Standard deviation of every data set, as given or as found.

    Examples
    --------
    >>> found = Parameters((Parameter("k", 0.25, 0.01, (0.23, 0.27)),), np.eye(1))
    >>> found["k"].value, list(found)
    (0.25, ['k'])
    >>> print(found)
    name     value  deviation  95 % interval
    k        0.250      0.010  0.230 to 0.270
    """

    entries: tuple[Parameter, ...]
    correlation: FloatArray
    remarks: tuple[str, ...] = ()
    directions: tuple[Mapping[str, float], ...] = ()
    noise: Mapping[str, float] | None = None

    def __getitem__(self, name: str) -> Parameter:
        found = {entry.name: entry for entry in self.entries}
        return found[str(name)]

    def __iter__(self) -> Iterator[str]:
        return iter([entry.name for entry in self.entries])

    def __len__(self) -> int:
        return len(self.entries)

    def _table(self) -> list[tuple[str, str, str, str]]:
        rows = [("name", "value", "deviation", "95 % interval")]
        for entry in self.entries:
            if entry.is_determined:
                value, deviation = rounded(entry.value, entry.deviation)
                low, high = (rounded(end, entry.deviation)[0] for end in entry.interval)
                rows.append((entry.name, value, deviation, f"{low} to {high}"))
            else:
                rows.append((entry.name, "not determined", "", ""))
        return rows

    def __str__(self) -> str:
        rows = self._table()
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        head, value, deviation = max(widths[0], 4), max(widths[1], 9), widths[2]
        lines = [f"{a:<{head}} {b:>{value}}  {c:>{deviation}}  {d}".rstrip() for a, b, c, d in rows]
        return "\n".join([*lines, *self.remarks])

    def _repr_html_(self) -> str:
        head, *rows = self._table()
        return table(head, rows) + "".join(f"<p>{html.escape(remark)}</p>" for remark in self.remarks)

    def __repr__(self) -> str:
        return f"Parameters({', '.join(map(str, self.entries))})"

    def plot(self) -> Any:
        """Draw how every number is distributed, and ellipses that hold every two with 68 and 95 %."""
        from pibls.report.inverse_pictures import draw_corner

        return draw_corner(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings and lists, fit for JSON."""
        return dict(
            to_plain(
                {
                    "entries": [asdict(entry) for entry in self.entries],
                    "correlation": self.correlation.tolist(),
                    "remarks": list(self.remarks),
                    "directions": [dict(own) for own in self.directions],
                    "noise": dict(self.noise or {}),
                }
            )
        )

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Parameters:
        """Rebuild the parameters from :meth:`as_dict`."""
        plain = from_plain(values)
        entries = tuple(built(Parameter, {**entry, "interval": tuple(entry["interval"])}) for entry in plain["entries"])
        correlation = np.array(plain["correlation"], dtype=np.float64).reshape(len(entries), len(entries))
        words = {name: tuple(plain[name]) for name in ("remarks", "directions")}
        return built(cls, {"entries": entries, "noise": plain["noise"], "correlation": correlation, **words})


def rounded(value: float, deviation: float) -> tuple[str, str]:
    """Return a value to the digits that its deviation leaves, with two digits of that.

    >>> rounded(0.30012345, 0.00123), rounded(1234.5678, 0.0), rounded(1e-7, 2e-11)
    (('0.3001', '0.0012'), ('1234.57', '0'), ('1.00000e-07', '2.0e-11'))
    >>> rounded(float("inf"), 0.1)
    ('inf', '0.1')
    """
    if not math.isfinite(deviation) or deviation <= 0 or not math.isfinite(value):
        return f"{value:.6g}", f"{deviation:.2g}"
    digits = 1 - math.floor(math.log10(deviation))
    size = max(abs(value), deviation)
    if 1e-4 <= size < 1e6 and 0 <= digits <= 15:
        return f"{value:.{digits}f}", f"{deviation:.{digits}f}"
    places = max(0, math.floor(math.log10(size)) - math.floor(math.log10(deviation)) + 1)
    return f"{value:.{min(places, 15)}e}", f"{deviation:.1e}"
