"""Compile SymPy expressions of coordinates, normals and data functions to functions of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.relational import Relational

from pibls.checks import FloatArray, cut
from pibls.errors import ProblemError
from pibls.problem.printing import text
from pibls.problem.program import Program
from pibls.problem.symbols import Data, Normal
from pibls.problem.unknown_numbers import refuse_open


class Within(sp.Expr):  # type: ignore[misc]
    """A material on the boundary: its value just inside, whatever it is on the line itself.

    The arguments are the material, how far inside, and the outward normal.
    """

    is_commutative = True
    is_real = True

    def _eval_derivative(self, symbol: sp.Symbol) -> sp.Expr:
        return sp.S.Zero if symbol not in self.free_symbols else sp.Derivative(self, symbol)

    def _sympystr(self, printer: Any) -> str:
        return str(printer.doprint(self.args[0]))


@dataclass(frozen=True)
class Function:
    """A compiled expression; ``constant`` is its value when it depends on no coordinate."""

    expression: sp.Expr
    coordinates: tuple[sp.Symbol, ...]
    extra: tuple[sp.Symbol, ...]
    constant: float | None
    needs_normals: bool
    _call: Callable[..., Sequence[Any]]
    _data: tuple[tuple[Data, tuple[Function, ...]], ...]
    _within: tuple[tuple[float, Function], ...] = ()

    def __call__(
        self, X: FloatArray, normals: FloatArray | None = None, values: Sequence[FloatArray] = ()
    ) -> FloatArray:
        """Evaluate at the rows of ``X``, with the normals there and the values of the extra symbols if it has any."""
        if self.constant is not None:
            return np.full(X.shape[0], self.constant)
        return self._checked(self._values(X, normals, values), X)

    def where_real(
        self, X: FloatArray, normals: FloatArray | None = None, values: Sequence[FloatArray] = ()
    ) -> FloatArray:
        """Evaluate at the rows of ``X``; values that are not real and finite are told as NaN and infinity.

        >>> x = sp.Symbol("x", real=True)
        >>> compile_function(sp.sqrt(x), (x,)).where_real(np.array([[4.0], [-1.0]]))
        array([ 2., nan])
        """
        if self.constant is not None:
            return np.full(X.shape[0], self.constant)
        found = self._values(X, normals, values)
        if found.dtype.kind == "c":
            found = np.where(found.imag == 0.0, found.real, np.nan)
        return np.array(np.broadcast_to(found.astype(np.float64), (X.shape[0],)))

    def _values(self, X: FloatArray, normals: FloatArray | None = None, values: Sequence[FloatArray] = ()) -> Any:
        columns = list(X.T)
        if self.needs_normals:
            if normals is None:
                raise ProblemError(
                    f"{text(self.expression)} needs outward normals, and these points have none; "
                    "use it on a boundary part."
                )
            columns += list(normals.T)
        columns += values
        columns += [_call_data(node, arguments, X) for node, arguments in self._data]
        if normals is not None:
            columns += [inner(X, None, list((X - aside * normals).T)) for aside, inner in self._within]
        try:
            with np.errstate(all="ignore"):
                return np.asarray(self._call(*columns)[0])
        except ProblemError:
            raise
        except Exception as error:
            raise _not_numerical(self.expression, error) from error

    @classmethod
    def computed(
        cls, like: Function, function: Callable[[FloatArray, FloatArray | None], FloatArray], *, constant: float | None
    ) -> Function:
        """Return a function of points and normals in place of another, with its name and its needs.

        >>> x = sp.Symbol("x", real=True)
        >>> like = compile_function(sp.sqrt(x), (x,))
        >>> Function.computed(like, lambda X, normals: 3 * X[:, 0], constant=None)(np.array([[1.0], [2.0]]))
        array([3., 6.])
        """
        axes = len(like.coordinates)

        def call(*columns: FloatArray) -> list[FloatArray]:
            normals = np.stack(columns[axes:], axis=1) if like.needs_normals else None
            return [function(np.stack(columns[:axes], axis=1), normals)]

        return cls(like.expression, like.coordinates, (), constant, like.needs_normals, call, ())

    def _checked(self, values: Any, X: FloatArray) -> FloatArray:
        if values.dtype.kind == "c" and np.abs(values.imag).max(initial=0.0) == 0.0:
            values = values.real
        if values.dtype.kind not in "iufb":
            raise ProblemError(
                f"{text(self.expression)} is not real at some points; write complex problems as a system of the real "
                "and imaginary parts."
            )
        result: FloatArray = values.astype(np.float64, copy=False).view()
        if result.shape != (X.shape[0],):
            result = np.broadcast_to(result, (X.shape[0],))
        result.flags.writeable = False  # it may be a coordinate itself
        if not np.isfinite(result).all():
            bad = np.flatnonzero(~np.isfinite(result))
            place = ", ".join(f"{s}={v:.6g}" for s, v in zip(self.coordinates, X[bad[0]], strict=True))
            raise ProblemError(
                f"{cut(text(self.expression), 120)} is not finite at {bad.size} of {X.shape[0]} points, first at "
                f"{place}. Restrict the domain or rewrite the expression so that it is finite there."
            )
        return result


def _call_data(node: Data, arguments: tuple[Function, ...], X: FloatArray) -> FloatArray:
    columns = [np.array(argument(X)) for argument in arguments]
    try:
        returned = node.func.function(*columns)
        values = np.asarray(returned)
    except Exception as error:
        raise ProblemError(
            f"The data function {node.label!r} raised {type(error).__name__}: {cut(str(error), 200)}. It is called "
            f"with {len(columns)} arrays of shape ({X.shape[0]},), one per coordinate."
        ) from error
    if values.dtype.kind not in "iufb" or values.shape not in {(), (X.shape[0],)}:
        raise ProblemError(
            f"The data function {node.label!r} must return {X.shape[0]} real numbers for {X.shape[0]} points. It "
            f"returned an array of shape {values.shape} and type {values.dtype}."
        )
    if np.ma.is_masked(returned):
        raise ProblemError(f"The data function {node.label!r} returned masked entries; fill them with numbers.")
    # Long doubles past the range become infinite, and are refused by their place with the whole expression.
    with np.errstate(over="ignore"):
        return np.broadcast_to(values.astype(np.float64), (X.shape[0],))


def compile_function(
    expression: sp.Expr, coordinates: tuple[sp.Symbol, ...], extra: tuple[sp.Symbol, ...] = ()
) -> Function:
    """Compile an expression of the coordinates, of normal components and of extra symbols.

    >>> x, y = sp.symbols("x y", real=True)
    >>> compile_function(x * sp.cos(y), (x, y))(np.array([[2.0, 0.0], [3.0, np.pi]]))
    array([ 2., -3.])
    """
    nodes = sorted(expression.atoms(Data), key=sp.default_sort_key)
    normals = tuple(Normal(f"n_{symbol.name}", real=True) for symbol in coordinates)
    needs_normals = bool(expression.free_symbols & set(normals))
    if not nodes and not expression.free_symbols:
        return Function(expression, coordinates, extra, _constant(expression), False, Program(0, (), ()), ())
    materials = sorted(expression.atoms(Within), key=sp.default_sort_key)
    nodes = [node for node in nodes if expression.xreplace(dict.fromkeys(materials, sp.S.Zero)).has(node)]
    stand_ins = {node: sp.Symbol(f"value {i}", real=True) for i, node in enumerate((*nodes, *materials))}
    symbols = (*coordinates, *(normals if needs_normals else ()), *extra, *stand_ins.values())
    try:
        call = _remembered(expression.xreplace(stand_ins) if stand_ins else expression, symbols)
    except Exception as error:
        raise _not_numerical(expression, error) from error
    data = tuple((node, tuple(compile_function(arg, coordinates) for arg in node.args)) for node in nodes)
    within = tuple((float(node.args[1]), _branching(node.args[0], coordinates)) for node in materials)
    return Function(expression, coordinates, extra, None, needs_normals, call, data, within)


def differentiated(expression: sp.Expr, coordinates: Sequence[sp.Symbol], index: Sequence[int]) -> sp.Expr:
    """Return a derivative of an expression almost everywhere: coordinates are real, and a jump has no spike.

    >>> x = sp.Symbol("x")
    >>> differentiated(sp.Max(0, 1 - sp.Abs(x)), [x], [2])
    0
    """
    orders = [(symbol, count) for symbol, count in zip(coordinates, index, strict=False) if count]
    if not orders:
        return expression
    real = {symbol: sp.Dummy(symbol.name, real=True) for symbol, _ in orders}
    found = expression.xreplace(real).diff(*((real[symbol], count) for symbol, count in orders))
    found = found.xreplace(dict.fromkeys(found.atoms(sp.DiracDelta), sp.S.Zero))
    return found.xreplace({own: symbol for symbol, own in real.items()})


def _branching(material: sp.Expr, coordinates: tuple[sp.Symbol, ...]) -> Function:
    beside = tuple(sp.Dummy(symbol.name, real=True) for symbol in coordinates)
    return compile_function(switched_at(material, dict(zip(coordinates, beside, strict=True))), coordinates, beside)


def switched_at(expression: sp.Expr, beside: Mapping[sp.Symbol, sp.Symbol]) -> sp.Expr:
    """Return an expression whose branches are those at other coordinates, with its values at its own.

    >>> x, z = sp.symbols("x z", real=True)
    >>> switched_at(sp.Piecewise((x, x > 0), (2 * x, True)), {x: z})
    Piecewise((x, z > 0), (2*x, True))
    """
    places = {own for own in expression.atoms(Relational) if own.free_symbols <= set(beside)}
    return expression.xreplace({own: own.xreplace(dict(beside)) for own in places})


@lru_cache(maxsize=1024)
def _remembered(expression: sp.Expr, symbols: tuple[sp.Symbol, ...]) -> Program:
    return Program.of([expression], symbols)


def _not_numerical(expression: sp.Expr, error: Exception) -> ProblemError:
    refuse_open(sorted(expression.free_symbols, key=str), f"The value of {cut(text(expression), 120)}")
    if spikes := sorted(expression.atoms(sp.DiracDelta), key=str):
        return ProblemError(
            f"{cut(text(spikes[0]), 120)} is no function and cannot be evaluated. A source on a line or a surface is "
            "Interface(u, flux=..., on=...); one at a point is a narrow peak, such as "
            "exp(-((x - a)/w)**2)/(w*sqrt(pi))."
        )
    return ProblemError(
        f"{cut(text(expression), 120)} cannot be evaluated with NumPy and SciPy ({type(error).__name__}: "
        f"{cut(' '.join(str(error).split()), 120)}). Rewrite it with functions they have, or wrap it as "
        "pibls.data('f', function, *coordinates)."
    )


def _constant(expression: sp.Expr) -> float:
    try:
        value = float(expression)
    except (TypeError, ValueError, OverflowError):
        value = float("nan")
    # The tail of a function, as of exp(-1000), is zero here as at points.
    vanishes = value == 0.0 and expression.is_zero is False and not expression.atoms(sp.Function)
    if vanishes or not np.isfinite(value):
        raise ProblemError(
            f"{cut(text(expression), 120)} is not a finite real number that double precision can hold. "
            "Use other units, or check where it comes from."
        )
    return value
