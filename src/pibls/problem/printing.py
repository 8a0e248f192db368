r"""Print expressions as people write them: ``u_xx``, ``laplacian(u)`` in text, ``u_{xx}``, ``\Delta u`` in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from pibls.problem.symbols import Data, Field

_LATEX_OPERATORS = {"laplacian": r"\Delta", "div": r"\nabla\cdot", "dn": r"\partial_n"}


def _subscript(derivative: sp.Derivative) -> str:
    return "".join(str(symbol) * int(count) for symbol, count in derivative.variable_count)


def _is_short(derivative: sp.Derivative) -> bool:
    plain = isinstance(derivative.expr, Field | Data) and all(
        count.is_Integer for _, count in derivative.variable_count
    )
    return plain and all(len(str(symbol)) == 1 for symbol, _ in derivative.variable_count)


class _TextPrinter(StrPrinter):  # type: ignore[misc]
    def _print_AppliedUndef(self, expr: Any) -> str:  # noqa: N802
        return str(expr.func.__name__)

    def _print_Derivative(self, expr: sp.Derivative) -> str:  # noqa: N802
        if _is_short(expr):
            return f"{expr.expr.label}_{_subscript(expr)}"
        return str(super()._print_Derivative(expr))

    def _print_Dummy(self, expr: sp.Dummy) -> str:  # noqa: N802
        return str(expr.name)  # the value of a field or derivative, which is named like it

    def _print_Relational(self, expr: Any) -> str:  # noqa: N802
        if isinstance(expr, sp.Eq):
            return f"{self._print(expr.lhs)} = {self._print(expr.rhs)}"
        return str(super()._print_Relational(expr))


class _LatexPrinter(LatexPrinter):  # type: ignore[misc]
    def _print_AppliedUndef(self, expr: Any, exp: str | None = None) -> str:  # noqa: N802
        name = self._deal_with_super_sub(expr.func.__name__)
        return f"{name}^{{{exp}}}" if exp else name

    def _print_Derivative(self, expr: sp.Derivative) -> str:  # noqa: N802
        if _is_short(expr):
            return f"{self._deal_with_super_sub(expr.expr.label)}_{{{_subscript(expr)}}}"
        return str(super()._print_Derivative(expr))

    def _print_Laplacian(self, expr: Any) -> str:  # noqa: N802
        return f"{_LATEX_OPERATORS[expr.word]} {self._wrap(expr.args[0])}"

    _print_NormalDerivative = _print_Laplacian  # noqa: N815

    def _print_Divergence(self, expr: Any) -> str:  # noqa: N802
        if expr.flux is not None:
            factor, inner = expr.flux
            signs = {1: "", -1: "-"}
            shown = (
                signs[factor] if factor in signs else f"{self.parenthesize(factor, PRECEDENCE['Mul'], strict=True)} "
            )
            return rf"{_LATEX_OPERATORS[expr.word]} \left({shown}\nabla {self._wrap(inner)}\right)"
        inner = ", ".join(self._print(arg) for arg in expr.args)
        return rf"{_LATEX_OPERATORS[expr.word]} \left({inner}\right)"

    def _print_SpaceDerivative(self, expr: Any) -> str:  # noqa: N802
        return rf"\partial_{{{self._print(expr.args[1])}}} {self._wrap(expr.args[0])}"

    def _wrap(self, expr: Any) -> str:
        inner = str(self._print(expr))
        return inner if isinstance(expr, Field | sp.Symbol) else rf"\left({inner}\right)"


def text(expression: sp.Basic) -> str:
    """Return an expression as one line of text.

    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> u = field("u", x, t)
    >>> text(sp.Eq(u.diff(t), u.diff(x, 2) + sp.sin(u)))
    'u_t = sin(u) + u_xx'
    """
    try:
        return str(_TextPrinter({"full_prec": False}).doprint(expression))
    except (RecursionError, ValueError):
        # Nesting beyond Python's limit, or an integer of more digits than Python writes.
        return f"<{type(expression).__name__} too large to print>"


def abbreviated(lines: list[str], expressions: Iterable[sp.Basic]) -> tuple[list[str], list[tuple[str, str]]]:
    """Return lines with names for the materials that they repeat, and the names with their meanings.

    >>> x, y = sp.symbols("x y")
    >>> k = sp.Piecewise((5, x < 1), (2, True))
    >>> abbreviated([text(k * y), text(k + y)], [k])
    (['y*case1', 'y + case1'], [('case1', '5 where x < 1, otherwise 2')])
    """
    meanings: list[tuple[str, str]] = []
    cases = {text(case): case for own in expressions for case in own.atoms(sp.Piecewise)}
    for written in sorted(cases, key=len, reverse=True):
        if sum(line.count(written) for line in lines) > 1:
            name = f"case{len(meanings) + 1}"
            lines = [line.replace(written, name) for line in lines]
            parts = [(text(value), text(place)) for value, place in cases[written].args]
            told = (f"otherwise {value}" if place == "True" else f"{value} where {place}" for value, place in parts)
            meanings.append((name, ", ".join(told)))
    return lines, meanings


def latex(expression: sp.Basic) -> str:
    r"""Return an expression as LaTeX.

    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> latex(field("u", x, t).diff(x, 2))
    'u_{xx}'
    """
    return str(_LatexPrinter().doprint(expression))
