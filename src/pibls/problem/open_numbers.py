"""The parameters of a problem: known numbers that are left open until it is solved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

import sympy as sp

from pibls.checks import check_number, shorten
from pibls.errors import InputError
from pibls.problem.unknown_numbers import Unknown, check_name

Own = TypeVar("Own")


class OpenNumber(Unknown):
    """A number of a problem that is given later, by ``problem.at(k=2)``; made by :func:`parameter`."""


def parameter(name: str) -> Any:
    """Return a known number that is left open: the same problem can then be solved for many values of it.

    A problem with open parameters is not solved; ``problem.at(k=2)`` is the problem with a number in their place, and
    :func:`~pibls.sweep` solves it for all values of a list.

    Parameters
    ----------
    name
        The name that it is given a value by.

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
