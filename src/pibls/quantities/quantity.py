"""A number that a solution was asked for, with its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from pibls.checks import FloatArray
from pibls.markup import facts


@dataclass(frozen=True, eq=False)
class Quantity:
    """A number with its error, and with its place if it has one.

    Sums, products, quotients and powers of quantities and numbers are quantities, whose errors are the largest that
    theirs allow.

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
    >>> 2 * Quantity(2.5, 0.1) - 1, Quantity(2.0, 0.1) / Quantity(4.0, 0.2), Quantity(3.0, 0.01) ** 2
    (Quantity(4 ± 0.2), Quantity(0.5 ± 0.053), Quantity(9 ± 0.06))
    """

    value: float
    error: float
    place: FloatArray | None = None
    note: str = ""

    __array_ufunc__ = None  # numbers of NumPy leave arithmetic to the methods here

    def __float__(self) -> float:
        return self.value

    def __neg__(self) -> Quantity:
        return Quantity(-self.value, self.error, None, self.note)

    def __abs__(self) -> Quantity:
        return Quantity(abs(self.value), self.error, None, self.note)

    def __add__(self, other: Quantity | float) -> Quantity:
        if (two := _of(other)) is None:
            return NotImplemented
        return Quantity(self.value + two.value, self.error + two.error, None, _both(self, two))

    __radd__ = __add__

    def __sub__(self, other: Quantity | float) -> Quantity:
        return NotImplemented if (two := _of(other)) is None else self + -two

    def __rsub__(self, other: Quantity | float) -> Quantity:
        return -self + other

    def __mul__(self, other: Quantity | float) -> Quantity:
        if (two := _of(other)) is None:
            return NotImplemented
        error = abs(self.value) * two.error + (abs(two.value) + two.error) * self.error
        return Quantity(self.value * two.value, error, None, _both(self, two))

    __rmul__ = __mul__

    def __truediv__(self, other: Quantity | float) -> Quantity:
        return NotImplemented if (two := _of(other)) is None else self * two**-1

    def __rtruediv__(self, other: Quantity | float) -> Quantity:
        return self**-1 * other

    def __pow__(self, exponent: float) -> Quantity:
        value, ends = self.value**exponent, (self.value - self.error, self.value + self.error)
        if exponent != abs(int(exponent)) and not (ends[0] > 0.0 or ends[1] < 0.0):
            return Quantity(value, math.inf, None, self.note)
        return Quantity(value, max(abs(end**exponent - value) for end in ends), None, self.note)

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


def _of(number: object) -> Quantity | None:
    """Return a number as a quantity without an error; None if it is no number."""
    if isinstance(number, Quantity):
        return number
    return Quantity(float(number), 0.0) if isinstance(number, Real) else None


def _both(one: Quantity, two: Quantity) -> str:
    return " ".join(dict.fromkeys(own.note for own in (one, two) if own.note))


def _shown(value: float, error: float) -> str:
    """Return a value with as many digits as its error leaves, and one more."""
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0.0 or value == 0.0:
        return f"{value:.10g}"
    digits = math.floor(math.log10(abs(value))) - math.floor(math.log10(error)) + 1
    return f"{value:.{min(max(digits, 1), 15)}g}"
