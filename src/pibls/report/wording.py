"""Names as they stand in pictures: Greek letters as letters, values with their unit, a solution with its status."""

from __future__ import annotations

import re

from sympy.printing.pretty.pretty_symbology import greek_letters, pretty_symbol

from pibls.solution import Solution
from pibls.status import Status

_GREEK = {word for letter in (*greek_letters, "lambda") for word in (letter, letter.capitalize())}
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_WORD = re.compile(r"[A-Za-z]+")


def lettered(name: str) -> str:
    """Return a name, or an expression as text, as a person would write it: with Greek letters, roots and powers.

    >>> lettered("phi"), lettered("lambda_"), lettered("sigma_xx + 2*Omega1"), lettered("phase")
    ('φ', 'λ', 'σ_xx + 2·Ω1', 'phase')
    >>> lettered("sqrt(u_x**2 + u_y**10)")
    '√(u_x² + u_y¹⁰)'
    """
    spelled = re.sub(r"\b([A-Za-z]+)_\b", r"\1", name)
    spelled = re.sub(r"\*\*(\d+)", lambda found: found[1].translate(_RAISED), spelled)
    spelled = re.sub(r"\bsqrt\(", "√(", spelled.replace("*", "·").replace("··", "**"))
    return _WORD.sub(lambda found: str(pretty_symbol(found[0])) if found[0] in _GREEK else found[0], spelled)


def with_unit(name: str, unit: str) -> str:
    """Return a name for an axis or a colour bar.

    >>> with_unit("T", "K"), with_unit("T", "")
    ('T  [K]', 'T')
    """
    return f"{name}  [{unit}]" if unit else name


def said(solution: Solution) -> str:
    """Return the status and the estimated error of a solution in words."""
    estimate = solution.error_estimate
    known = "no error estimate" if estimate is None else f"estimated error {estimate:.0e}"
    return f"{solution.status}, {known}"


def is_certain(solution: Solution) -> bool:
    """Tell whether nothing speaks against a solution."""
    return solution.status in (Status.CONVERGED, Status.FITTED)
