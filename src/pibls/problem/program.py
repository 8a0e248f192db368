"""Programs: expressions as lists of array operations, each from a fixed table.

This is the only way in which the library evaluates an expression. A program is data. Running it looks operations up in
a table of NumPy and SciPy functions, so no text becomes code, and a name in a file reaches nothing but that table.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import sympy as sp
from scipy import special
from sympy.core.numbers import NumberSymbol

Operation = Callable[..., Any]


def _piecewise(*pairs: Any) -> Any:
    """Return the value of the first condition that holds: values and conditions alternate."""
    result: Any = np.nan
    for value, condition in zip(pairs[-2::-2], pairs[::-2], strict=True):
        result = np.where(condition, value, result)
    return result


def _power(base: Any, exponent: Any) -> Any:
    """Return a power; of whole numbers in floating point, as their digits may be without end."""
    return (float(base) if isinstance(base, int) and isinstance(exponent, int) else base) ** exponent


def _all_of(operation: Operation) -> Operation:
    return lambda *arguments: reduce(operation, arguments)


# The tables hold, by class of SymPy, how it is evaluated; a class that is missing is refused.
_ARITHMETIC: Mapping[type, Operation] = {
    sp.Add: _all_of(operator.add), sp.Piecewise: _piecewise, sp.Min: _all_of(np.minimum), sp.Max: _all_of(np.maximum),
    sp.Eq: np.equal, sp.Ne: np.not_equal, sp.Lt: np.less, sp.Le: np.less_equal, sp.Gt: np.greater,
    sp.Ge: np.greater_equal, sp.And: _all_of(np.logical_and), sp.Or: _all_of(np.logical_or), sp.Not: np.logical_not,
    sp.Xor: _all_of(np.logical_xor), sp.ITE: np.where, sp.Abs: np.abs, sp.sign: np.sign, sp.floor: np.floor,
    sp.ceiling: np.ceil, sp.Mod: np.mod, sp.Heaviside: np.heaviside, sp.re: np.real, sp.im: np.imag,
    sp.conjugate: np.conjugate, sp.arg: np.angle, sp.UnevaluatedExpr: lambda x: x, sp.frac: lambda x: x - np.floor(x),
}  # fmt: skip
_ELEMENTARY: Mapping[type, Operation] = {
    sp.exp: np.exp, sp.log: np.log, sp.sin: np.sin, sp.cos: np.cos, sp.tan: np.tan, sp.asin: np.arcsin,
    sp.acos: np.arccos, sp.atan: np.arctan, sp.atan2: np.arctan2, sp.sinh: np.sinh, sp.cosh: np.cosh,
    sp.tanh: np.tanh, sp.asinh: np.arcsinh, sp.acosh: np.arccosh, sp.atanh: np.arctanh,
    sp.sinc: lambda x: np.sinc(x / np.pi), sp.cot: lambda x: 1 / np.tan(x), sp.sec: lambda x: 1 / np.cos(x),
    sp.csc: lambda x: 1 / np.sin(x), sp.coth: lambda x: 1 / np.tanh(x), sp.sech: lambda x: 1 / np.cosh(x),
    sp.csch: lambda x: 1 / np.sinh(x), sp.acot: lambda x: np.arctan(1 / x), sp.asec: lambda x: np.arccos(1 / x),
    sp.acsc: lambda x: np.arcsin(1 / x), sp.acoth: lambda x: np.arctanh(1 / x), sp.asech: lambda x: np.arccosh(1 / x),
    sp.acsch: lambda x: np.arcsinh(1 / x),
}  # fmt: skip
_SPECIAL: Mapping[type, Operation] = {
    sp.erf: special.erf, sp.erfc: special.erfc, sp.erfi: special.erfi, sp.erfinv: special.erfinv,
    sp.erfcinv: special.erfcinv, sp.erf2: lambda a, b: special.erf(b) - special.erf(a), sp.gamma: special.gamma,
    sp.loggamma: special.gammaln, sp.factorial: lambda n: special.gamma(n + 1.0), sp.binomial: special.binom,
    sp.RisingFactorial: special.poch, sp.FallingFactorial: lambda x, n: special.poch(x - n + 1.0, n),
    sp.beta: special.beta, sp.polygamma: special.polygamma, sp.LambertW: special.lambertw,
    sp.lowergamma: lambda a, x: special.gamma(a) * special.gammainc(a, x),
    sp.uppergamma: lambda a, x: special.gamma(a) * special.gammaincc(a, x), sp.zeta: special.zeta,
    sp.Ei: special.expi, sp.expint: special.expn, sp.li: lambda x: special.expi(np.log(x)),
    sp.Si: lambda x: special.sici(x)[0], sp.Ci: lambda x: special.sici(x)[1], sp.Shi: lambda x: special.shichi(x)[0],
    sp.Chi: lambda x: special.shichi(x)[1], sp.fresnels: lambda x: special.fresnel(x)[0],
    sp.fresnelc: lambda x: special.fresnel(x)[1], sp.besselj: special.jv, sp.bessely: special.yv,
    sp.besseli: special.iv, sp.besselk: special.kv, sp.jn: lambda n, x: special.spherical_jn(int(n), x),
    sp.yn: lambda n, x: special.spherical_yn(int(n), x), sp.airyai: lambda x: special.airy(x)[0],
    sp.airyaiprime: lambda x: special.airy(x)[1], sp.airybi: lambda x: special.airy(x)[2],
    sp.airybiprime: lambda x: special.airy(x)[3], sp.elliptic_k: special.ellipk, sp.elliptic_f: special.ellipkinc,
    sp.elliptic_e: lambda *a: special.ellipe(*a) if len(a) == 1 else special.ellipeinc(*a),
    sp.legendre: special.eval_legendre, sp.hermite: special.eval_hermite, sp.laguerre: special.eval_laguerre,
    sp.assoc_laguerre: special.eval_genlaguerre, sp.assoc_legendre: lambda n, m, x: special.lpmv(m, n, x),
    sp.chebyshevt: special.eval_chebyt, sp.chebyshevu: special.eval_chebyu, sp.jacobi: special.eval_jacobi,
    sp.gegenbauer: special.eval_gegenbauer,
}  # fmt: skip
_BY_CLASS = {**_ARITHMETIC, **_ELEMENTARY, **_SPECIAL}
_OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {cls.__name__: operation for cls, operation in _BY_CLASS.items()}
    | {"Mul": _all_of(operator.mul), "divide": operator.truediv, "Pow": _power, "sqrt": np.sqrt}
)
_NUMBERS = {sp.nan: np.nan, sp.zoo: np.nan, sp.oo: np.inf, -sp.oo: -np.inf, sp.I: 1j, sp.true: True, sp.false: False}
_EXACT = 2**53
_FARTHEST = -float(np.log(np.finfo(np.float64).tiny))  # logarithm of numbers that double precision cannot hold
_NUMBER = "number"


@dataclass(frozen=True)
class Program:
    """Expressions of some symbols as operations on numbered values: the arguments come first, then one per step.

    Examples
    --------
    >>> x, y = sp.symbols("x y")
    >>> program = Program.of([x * sp.cos(y), 1 / y], (x, y))
    >>> program(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    [array([ 1.08060461, -1.24844051]), array([1. , 0.5])]
    """

    inputs: int  # how many arguments it takes
    # names of operations with the numbers of the values that each takes, or "number" with a constant
    steps: tuple[tuple[str, tuple[Any, ...]], ...]
    outputs: tuple[int, ...]  # which values are returned

    @classmethod
    def of(cls, expressions: Sequence[sp.Basic], symbols: Sequence[sp.Basic]) -> Program:
        """Translate expressions of symbols, or of other expressions whose values will be given; refuse all else."""
        writer = _Writer(len(symbols), {symbol: number for number, symbol in enumerate(symbols)})
        outputs = tuple(writer.place(expression) for expression in expressions)
        return cls(len(symbols), tuple(writer.steps), outputs)

    @cached_property
    def _last(self) -> tuple[tuple[int, ...], ...]:
        """The values that no step after each one needs."""
        seen, last = set(self.outputs), list[tuple[int, ...]]()
        for name, places in reversed(self.steps):
            own = set() if name == _NUMBER else set(places)
            last.append(tuple(own - seen))
            seen |= own
        return tuple(reversed(last))

    def __call__(self, *columns: Any, operations: Mapping[str, Operation] = _OPERATIONS) -> list[Any]:
        """Return the values of the expressions for arrays, one per symbol; others than NumPy's by their operations."""
        values = list(columns)
        for (name, places), over in zip(self.steps, self._last, strict=True):
            if name == _NUMBER:
                values += places
                continue
            values.append(operations[name](*[values[place] for place in places]))
            for place in over:
                values[place] = None
        return [values[place] for place in self.outputs]


@dataclass(frozen=True)
class _Writer:
    """Numbers the values of a program; an expression that occurs twice is computed once."""

    inputs: int
    known: dict[sp.Basic, int]
    steps: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)

    def place(self, node: sp.Basic) -> int:
        """Return the number of the value of an expression."""
        if node not in self.known:
            self.known[node] = self._made(node)
        return self.known[node]

    def _made(self, node: sp.Basic) -> int:
        if node in _NUMBERS:
            return self._step(_NUMBER, _NUMBERS[node])
        if isinstance(node, sp.Number | NumberSymbol):
            small = isinstance(node, sp.Integer) and abs(node.p) < _EXACT
            return self._step(_NUMBER, int(node) if small else float(node))
        if isinstance(node, sp.Mul):
            return self._product(node)
        if isinstance(node, sp.Pow):
            return self._power(node)
        if type(node) not in _BY_CLASS:
            raise LookupError(f"{type(node).__name__} is not one of its functions")
        parts = [part for pair in node.args for part in pair.args] if isinstance(node, sp.Piecewise) else node.args
        return self._step(type(node).__name__, *[self.place(part) for part in parts])

    def _step(self, name: str, *places: Any) -> int:
        """Add a step; one that needs only constants is taken at once."""
        if name != _NUMBER:
            made = [self.steps[place - self.inputs] for place in places if place >= self.inputs]
            if len(made) == len(places) and all(kind == _NUMBER for kind, _ in made):
                name, places = _NUMBER, (_folded(name, [value for _, (value,) in made]),)
        self.steps.append((name, places))
        return self.inputs + len(self.steps) - 1

    def _product(self, node: sp.Mul) -> int:
        """Multiply factors. SymPy writes exp(1000.0 x - 1000.0) as 5e-435 exp(1000.0 x): such numbers are exponents."""
        factors = list(node.args)
        scale, power = factors[0], next((factor for factor in factors if isinstance(factor, sp.exp)), None)
        if isinstance(scale, sp.Float) and power is not None and abs(shift := float(sp.log(abs(scale)))) > _FARTHEST:
            factors = [sp.sign(scale), *(factor for factor in factors[1:] if factor is not power)]
            shifted = self._step("Add", self.place(power.args[0]), self._step(_NUMBER, shift))
            return self._times([self._product_of(factors), self._step("exp", shifted)])
        return self._product_of(factors)

    def _product_of(self, factors: list[sp.Basic]) -> int:
        above = [self.place(factor) for factor in factors if not _is_below(factor)]
        below = [self.place(factor.base ** (-factor.exp)) for factor in factors if _is_below(factor)]
        product = self._times(above or [self.place(sp.S.One)])
        return self._step("divide", product, self._times(below)) if below else product

    def _times(self, places: list[int]) -> int:
        return self._step("Mul", *places) if len(places) > 1 else places[0]

    def _power(self, node: sp.Pow) -> int:
        if _is_below(node):
            return self._step("divide", self.place(sp.S.One), self.place(node.base ** (-node.exp)))
        if node.exp is sp.S.Half:
            return self._step("sqrt", self.place(node.base))
        return self._step("Pow", self.place(node.base), self.place(node.exp))


def _is_below(factor: sp.Basic) -> bool:
    """Tell whether a factor belongs below the line of a fraction."""
    return isinstance(factor, sp.Pow) and bool(factor.exp.is_Rational) and bool(factor.exp.is_negative)


def _folded(name: str, constants: list[Any]) -> Any:
    """Return the value of an operation on constants."""
    try:
        with np.errstate(all="ignore"):
            return _OPERATIONS[name](*constants)
    except ArithmeticError:
        return np.nan


def value_of(name: str, numbers: Sequence[float]) -> float | None:
    """Return the value of an operation on numbers; None where double precision has no finite real one.

    >>> value_of("Pow", [2.0, 10.0]), value_of("gamma", [1000.0]), value_of("log", [-1.0])
    (1024.0, None, None)
    """
    value = complex(_folded(name, list(numbers)))
    return value.real if value.imag == 0.0 and np.isfinite(value.real) else None
