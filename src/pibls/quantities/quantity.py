"""A number that a solution was asked for, with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pibls.checks import FloatArray
from pibls.markup import facts


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number with its error, and with its place if it has one.

    Attributes
    ----------
    value
        The number.
    error
        Estimated absolute error; infinite if the number is unbounded, NaN if nothing is known about it.
    place
        The coordinates at which a maximum or minimum was found.
    note
        Why the error is infinite or unknown, or an empty text.

    Examples
    --------
    >>> print(Quantity(324.82383, 2.1e-3, (0.0, 5.0)))
    324.824 ± 0.0021 at (0, 5)
    >>> float(Quantity(2.5, 0.0))
    2.5
    """

    value: float
    error: float
    place: FloatArray | None = None
    note: str = ""

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        shown = _shown(self.value, self.error)
        if math.isfinite(self.value):
            shown += f" ± {self.error:.2g}"
        if self.place is not None:
            shown += f" at ({', '.join(f'{x:.6g}' for x in self.place)})"
        return f"{shown}: {self.note}" if self.note else shown

    def __repr__(self) -> str:
        return f"Quantity({self})"

    def _repr_html_(self) -> str:
        entries = [("value", _shown(self.value, self.error)), ("estimated error", f"{self.error:.2g}")]
        if self.place is not None:
            entries.append(("place", ", ".join(f"{x:.6g}" for x in self.place)))
        return facts([*entries, *([("note", self.note)] if self.note else [])])


def _shown(value: float, error: float) -> str:
    """Return a value with as many digits as its error leaves, and one more."""
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0.0 or value == 0.0:
        return f"{value:.10g}"
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 1
    return f"{value:.{min(max(digits, 1), 15)}g}"
