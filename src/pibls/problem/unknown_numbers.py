"""Numbers that a problem does not know: unknown ones, with bounds, starts and priors, and those left open."""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import sympy as sp

from pibls.checks import check_number, refusal, shorten
from pibls.errors import InputError, ProblemError

Pair = tuple[float | None, float | None]
Own = TypeVar("Own")


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
        Its name.
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


class OpenNumber(Unknown):
    """A number of a problem that is given later, by ``problem.at(k=2)``; made by :func:`parameter`."""


def parameter(name: str) -> Any:
    """Return the symbol of a known number that is given later, to solve the same problem for many values.

    ``solve`` refuses open parameters; ``problem.at(k=2)`` is the problem with a number in their place, and
    :func:`~pibls.sweep` solves it for all values of a list.

    Parameters
    ----------
    name
        Its name, as in ``problem.at(k=2)``.

    Examples
    --------
    >>> from pibls import Dirichlet, Interval, Problem, coordinates, field, solve
    >>> x, k = coordinates("x"), parameter("k")
    >>> u = field("u", x)
    >>> problem = Problem(sp.Eq(-k * u.diff(x, 2), 1), Interval((x, 0, 1)), [Dirichlet(u, 0)])
    >>> problem.parameters
    (k,)
    >>> print(problem.at(k=2))
    Find u(x) with
      -2*u_xx = 1   in Interval((x, 0, 1))
      u = 0         on the boundary
    >>> solve(problem.at(k=2))([0.5]).round(9).tolist()
    [0.0625]
    """
    return OpenNumber(check_name(name, "parameter"), real=True)


def open_in(numbers: Iterable[Unknown]) -> tuple[OpenNumber, ...]:
    """Return those of the numbers of a problem that are left open."""
    return tuple(number for number in numbers if isinstance(number, OpenNumber))


def refuse_open(numbers: Iterable[Unknown], owner: str) -> None:
    """Refuse a problem with open parameters."""
    if names := [number.name for number in open_in(numbers)]:
        values = ", ".join(f"{name}=…" for name in names)
        raise InputError(
            f"{owner} needs a problem without open parameters, and {', '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} open in this one. Give them values: problem.at({values}); or use "
            f"pibls.sweep(problem, {values.replace('…', '[…]')}) for many."
        )


def numbers_for(numbers: Iterable[Unknown], given: Mapping[str, Any]) -> dict[OpenNumber, sp.Expr]:
    """Return the numbers that take the place of parameters, or refuse names and values.

    >>> numbers_for([parameter("k")], {"k": 2})
    {k: 2}
    """
    known = {symbol.name: symbol for symbol in open_in(numbers)}
    if strange := sorted(set(given) - set(known)):
        has = f"its open parameters are {', '.join(known)}" if known else "it has no open parameters"
        raise InputError(
            f"The problem has no open parameter {shorten(strange[0])}; {has}. They are made with pibls.parameter."
        )
    return {known[name]: _number(name, value) for name, value in given.items()}


def _number(name: str, value: Any) -> sp.Expr:
    if isinstance(value, sp.Expr) and value.is_number and value.is_real and value.is_finite:
        return value
    number = check_number(name, value, "Problem.at")
    return sp.Integer(value) if isinstance(value, int) else sp.Float(number)


def put_into(thing: Own, values: Mapping[sp.Symbol, sp.Expr]) -> Own:
    """Return an expression, a sequence of them, or a condition, with numbers in the place of symbols."""
    if isinstance(thing, sp.Basic):
        return thing.xreplace(values)  # type: ignore[no-any-return]
    if isinstance(thing, tuple | list):
        return type(thing)(put_into(entry, values) for entry in thing)
    return thing


def condition_with(condition: Any, values: Mapping[sp.Symbol, sp.Expr]) -> Any:
    """Return a condition with numbers in the place of symbols."""
    given = {own.name: getattr(condition, own.name) for own in fields(condition) if own.init}
    changed = {
        name: put_into(value, values) for name, value in given.items() if isinstance(value, sp.Basic | tuple | list)
    }
    return replace(condition, **changed)
