"""Checks of arguments, shared by every layer: each failure names the argument, the rule, the value and a remedy."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from pibls.errors import InputError, PiblsError

__all__ = ["HIGHEST_ORDER", "WAYS", "as_reals", "check_bytes", "check_choice", "check_integer", "check_number"]
__all__ += ["check_points", "check_seed", "cut", "refusal", "shorten"]

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]

# Derivatives of nodes of higher order leave the range of double precision, and SymPy counts them out one by one.
HIGHEST_ORDER = 100
WAYS = ("space-time", "lines")
"""How to go through time, as :func:`~pibls.solve` takes it."""


def counted(number: int, what: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "row"), counted(2, "row")
    ('1 row', '2 rows')
    """
    return f"{number} {what}{'' if number == 1 else 's'}"


def shorten(value: object, limit: int = 80) -> str:
    """Return a one-line ``repr`` of a value, cut to ``limit`` characters, that never raises.

    >>> shorten("a" * 100, limit=12)
    "'aaaaaaaa..."
    """
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"<{type(value).__name__}>"
    return cut(text, limit)


def cut(text: str, limit: int = 80) -> str:
    """Return a text cut to ``limit`` characters.

    >>> cut("a long explanation", 10)
    'a long ...'
    """
    return text if len(text) <= limit else text[: limit - 3] + "..."


def refusal(
    name: str, owner: str, rule: str, value: object, remedy: str = "", error: type[PiblsError] = InputError
) -> PiblsError:
    """Return the error about an argument that breaks a rule.

    >>> refusal("n", "sample", "be an integer", 1.5)
    InputError("The 'n' parameter of sample must be an integer. Got 1.5 instead.")
    """
    tail = f" {remedy}" if remedy else ""
    return error(f"The '{name}' parameter of {owner} must {rule}. Got {shorten(value)} instead.{tail}")


def check_integer(
    name: str,
    value: object,
    owner: str,
    *,
    minimum: int = 0,
    maximum: int | None = None,
    remedy: str = "",
    error: type[PiblsError] = InputError,
) -> int:
    """Return ``value`` as an int, or refuse it.

    >>> check_integer("n", 3, "sample", minimum=1)
    3
    """
    rule = f"be an integer of at least {minimum}" + ("" if maximum is None else f" and at most {maximum}")
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        raise refusal(name, owner, rule, value, remedy, error)
    number = int(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise refusal(name, owner, rule, value, remedy, error)
    return number


def check_number(
    name: str,
    value: object,
    owner: str,
    *,
    minimum: float = -math.inf,
    exclusive: bool = False,
    maximum: float = math.inf,
    remedy: str = "",
    error: type[PiblsError] = InputError,
) -> float:
    """Return ``value`` as a finite float within the limits, or refuse it (SymPy numbers are accepted).

    >>> check_number("radius", 2, "Disk", minimum=0, exclusive=True)
    2.0
    """
    rule = "be a finite real number"
    if minimum > -math.inf:
        rule += f" {'above' if exclusive else 'of at least'} {minimum:g}"
    if maximum < math.inf:
        rule += f"{' and' if minimum > -math.inf else ''} at most {maximum:g}"
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray | memoryview | complex | np.ma.MaskedArray):
        raise refusal(name, owner, rule, value, remedy, error)
    try:
        number = float(_to_host(value))
    except Exception:  # whatever the object of a stranger does
        raise refusal(name, owner, rule, value, remedy, error) from None
    too_small = number <= minimum if exclusive else number < minimum
    if not math.isfinite(number) or too_small or number > maximum:
        raise refusal(name, owner, rule, value, remedy, error)
    return number


_UNITS = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
}


def check_bytes(name: str, value: object, owner: str) -> float:
    """Return an amount of memory in bytes: a number of them, or a text such as "1.5 GB", or refuse it.

    >>> check_bytes("memory", "1.5 GB", "solve"), check_bytes("memory", 2**20, "solve")
    (1500000000.0, 1048576.0)
    """
    remedy = "Give a number of bytes, or a text such as '2 GB'."
    if not isinstance(value, str):
        return check_number(name, value, owner, minimum=0, exclusive=True, remedy=remedy)
    found = re.fullmatch(r"\s*([\d.]+(?:[eE]\d+)?)\s*([kmgtiKMGTI]{0,2}[bB])?\s*", value, re.ASCII)
    unit = _UNITS.get((found[2] or "b").lower()) if found else None
    if found is None or unit is None or found[1].count(".") > 1:
        raise refusal(name, owner, "be an amount of memory", value, remedy)
    return check_number(name, float(found[1]) * unit, owner, minimum=0, exclusive=True, remedy=remedy)


def check_choice(
    name: str, value: object, owner: str, choices: tuple[str, ...], *, error: type[PiblsError] = InputError
) -> str:
    """Return ``value`` if it is one of ``choices``, or refuse it.

    >>> check_choice("method", "sobol", "sample", ("sobol", "grid"))
    'sobol'
    """
    if not isinstance(value, str) or value not in choices:
        raise refusal(name, owner, "be one of " + ", ".join(map(repr, choices)), value, error=error)
    return value


def check_seed(value: object, owner: str) -> np.random.Generator:
    """Return a generator for an integer seed; a generator is passed through.

    >>> int(check_seed(0, "sample").integers(10)) == int(check_seed(0, "sample").integers(10))
    True
    """
    if isinstance(value, np.random.Generator):
        return value
    return np.random.default_rng(check_integer("seed", value, owner, minimum=0))


def check_points(
    name: str, value: object, owner: str, dimension: int, *, error: type[PiblsError] = InputError
) -> FloatArray:
    """Return ``value`` as a finite float array of shape ``(n, dimension)``, or refuse it.

    A flat sequence of n numbers is n points in one dimension, and one point when it has ``dimension`` numbers.

    >>> check_points("X", [[0, 1], [2, 3]], "u", 2).shape
    (2, 2)
    """
    rule = f"be an array of finite real numbers of shape (n, {dimension})"
    try:
        array = np.asarray(_to_host(value))
    except Exception:
        raise refusal(name, owner, rule, value, "Give one row per point, one column per coordinate.", error) from None
    if array.dtype.kind not in "iuf":
        raise refusal(name, owner, rule + f" (the entries are {array.dtype})", value, error=error)
    if np.ma.is_masked(value):
        raise refusal(name, owner, rule, value, "Remove the masked entries, or fill them.", error)
    # Long doubles past the range become infinite here, and are refused below like any other.
    with np.errstate(over="ignore"):
        array = array.astype(np.float64, copy=False)
    if array.ndim == 0 and dimension == 1:
        array = array.reshape(1, 1)
    elif array.ndim == 1:
        array = array[:, None] if dimension == 1 else array[None, :]
    if array.ndim != 2 or array.shape[1] != dimension:
        remedy = f"It has shape {array.shape}; give one row per point, one column per coordinate."
        raise refusal(name, owner, rule, value, remedy, error)
    if not np.isfinite(array).all():
        row = int(np.flatnonzero(~np.isfinite(array).all(axis=1))[0])
        raise refusal(name, owner, rule, array[row].tolist(), f"That is row {row}; remove such points.", error)
    return array


def as_reals(value: object) -> FloatArray | None:
    """Return numbers as a float array of the shape they have, or None for text, dates, complex and masked entries.

    SymPy numbers, fractions and decimals are numbers too; NaN and infinity are left to the caller.

    >>> as_reals(["1", "2"]) is None, as_reals([1, 2])
    (True, array([1., 2.]))
    """
    try:
        array = np.asarray(_to_host(value))
        if array.dtype == np.object_:
            flat = [check_number("entry", entry, "the array") for entry in array.ravel()]
            array = np.array(flat, dtype=np.float64).reshape(array.shape)
        if array.dtype.kind not in "iuf" or np.ma.is_masked(value):
            return None
        with np.errstate(over="ignore"):
            return array.astype(np.float64)
    except Exception:  # whatever the object of a stranger does
        return None


def _to_host(value: Any) -> Any:
    """Bring a torch tensor to NumPy; leave everything else alone."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") and hasattr(value, "cpu") else value
