"""The unknown numbers of an inverse problem, with bounds, starts and priors."""

from __future__ import annotations

import keyword
import math
from dataclasses import dataclass
from typing import Any

import sympy as sp

from pibls.checks import check_number, refusal, shorten
from pibls.errors import ProblemError

Pair = tuple[float | None, float | None]


@dataclass(frozen=True)
class Smooth:
    """The prior of an unknown function: it is smooth.

    Parameters
    ----------
    size
        Standard deviation of its values about ``start``; found from the data if left out.
    length
        Distance over which it varies, in units of the coordinates; found from the data if left out.

    Examples
    --------
    >>> Smooth(length=0.3)
    Smooth(length=0.3)
    """

    size: float | None = None
    length: float | None = None

    def __post_init__(self) -> None:
        for name, value in (("size", self.size), ("length", self.length)):
            if value is not None:
                number = check_number(name, value, "Smooth", minimum=0, exclusive=True)
                object.__setattr__(self, name, number)

    def __repr__(self) -> str:
        given = ((name, value) for name, value in (("size", self.size), ("length", self.length)) if value is not None)
        return f"Smooth({', '.join(f'{name}={value:g}' for name, value in given)})"


class Unknown(sp.Symbol):  # type: ignore[misc]
    """An unknown number of an inverse problem; made by :func:`unknown`.

    Attributes
    ----------
    start
        Where the search starts, or None.
    bounds
        Smallest and largest value, each None where there is none; or None.
    prior
        Mean and standard deviation of what is known before the data, or None.
    """

    start: float | None
    bounds: Pair | None
    prior: tuple[float, float] | None

    def __new__(
        cls,
        name: str,
        start: float | None = None,
        bounds: Pair | None = None,
        prior: tuple[float, float] | None = None,
        **assumptions: bool,
    ) -> Unknown:
        """Make the symbol anew: a copy that SymPy kept would have the settings of an earlier one."""
        symbol: Unknown = sp.Symbol.__xnew__(cls, name, **assumptions)
        symbol.start, symbol.bounds, symbol.prior = start, bounds, prior
        return symbol

    @property
    def settings(self) -> tuple[float | None, Pair | None, tuple[float, float] | None]:
        """Start, bounds and prior."""
        return self.start, self.bounds, self.prior

    @property
    def positive(self) -> bool:
        """Whether its bounds leave no room for negative numbers."""
        return self.bounds is not None and self.bounds[0] is not None and self.bounds[0] >= 0

    @property
    def first_guess(self) -> float:
        """The start if it is given, the middle of prior or bounds, or one."""
        if self.start is not None:
            return float(self.start)
        if self.prior is not None:
            return float(self.prior[0])
        low, high = self.bounds or (None, None)
        if low is not None and high is not None:
            return math.sqrt(low * high) if low > 0 else (low + high) / 2
        if low is not None:
            return max(1.0, 2.0 * low)
        if high is not None:
            return min(1.0, high - abs(high))
        return 1.0

    # Symbols of one name and different settings are different: SymPy keeps expressions, and finds them by equality.
    def _hashable_content(self) -> tuple[Any, ...]:
        content: tuple[Any, ...] = super()._hashable_content()
        return (*content, repr(self.settings))

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, bool]]:
        return (self.name, *self.settings), self._assumptions_orig


class Eigenvalue(Unknown):
    """A number for which a homogeneous problem has a solution that is not zero; made by :func:`eigenvalue`."""


def eigenvalue(name: str) -> Any:
    """Return the symbol of an eigenvalue, for problems that :func:`~pibls.eigen` solves.

    >>> eigenvalue("lam")
    lam
    """
    return Eigenvalue(check_name(name, "eigenvalue"), real=True)


def check_name(name: object, owner: str) -> str:
    """Return a name that is a plain identifier, or refuse it."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ProblemError(
            f"{owner} needs a name that is a plain identifier such as 'u' or 'x1'. Got {shorten(name)} instead."
        )
    return name


def unknown(name: str, start: Any = None, bounds: Any = None, prior: Any = None) -> Any:
    """Return an unknown number, to be found from observations together with the fields.

    Parameters
    ----------
    name
        What it is called.
    start
        Where the search for it starts; chosen if left out.
    bounds
        Smallest and largest value, None for no limit: ``(0, None)`` is a positive number.
    prior
        Mean and standard deviation of what is known about it before the data.

    Examples
    --------
    >>> k = unknown("k", start=1, bounds=(0, None))
    >>> k, k.bounds, k.positive
    (k, (0.0, None), True)
    """
    label = check_name(name, "unknown")
    owner = f"unknown {label!r}"
    number = None if start is None else check_number("start", start, owner)
    limits, belief = _bounds(bounds, owner), _belief(prior, owner)
    for what, value in (("start", number), ("mean of the prior", None if belief is None else belief[0])):
        ends = zip(limits or (None, None), (-math.inf, math.inf), strict=True)
        low, high = (end if known is None else known for known, end in ends)
        if value is not None and not low <= value <= high:
            shown = f"({low:g}, {high:g})".replace("inf", "∞")
            raise ProblemError(
                f"The {what} of {owner}, {value:g}, is outside its bounds {shown}. Choose one within them, or widen "
                "the bounds."
            )
    return Unknown(label, number, limits, belief, real=True)


def _bounds(value: object, owner: str) -> Pair | None:
    if value is None:
        return None
    rule = f"The 'bounds' parameter of {owner} must be two numbers, the smaller first; None where there is no limit"
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ProblemError(f"{rule}. Got {shorten(value)} instead.")
    low, high = (
        None if end is None or (isinstance(end, float) and end == limit) else check_number("bounds", end, owner)
        for end, limit in zip(value, (-math.inf, math.inf), strict=True)
    )
    if low is not None and high is not None and low >= high:
        raise ProblemError(f"{rule}. Got {shorten(value)}, which leaves no room; a number that is known is no unknown.")
    return None if low is None and high is None else (low, high)


def _belief(value: object, owner: str) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise refusal(
            "prior", owner, "be a mean and a standard deviation, such as (1.0, 0.5)", value, error=ProblemError
        )
    mean = check_number("prior", value[0], owner)
    remedy = "That is the standard deviation; a number that is known exactly is no unknown."
    options: dict[str, Any] = {"minimum": 0, "exclusive": True, "remedy": remedy}
    return mean, check_number("prior", value[1], owner, **options)
