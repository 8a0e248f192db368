"""Formulas as text, read without running anything: Python's parser, and a fixed list of nodes of its tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sympy as sp

from pibls.errors import PiblsError, TextError
from pibls.problem.measured import Measured
from pibls.text import arithmetic
from pibls.text.arithmetic import RefusedError
from pibls.text.positions import Text, suggestion
from pibls.text.scan import scan
from pibls.text.vocabulary import FUNCTIONS, OPERATORS, Names

_DEEPEST = 40
_MOST_BRANCHES = 20
_ARITHMETIC: dict[type[ast.operator], Callable[[Measured, Measured], Measured]]
_ARITHMETIC = {ast.Mult: arithmetic.multiply, ast.Div: arithmetic.divide, ast.Pow: arithmetic.power}
_COMPARISONS = {ast.Lt: sp.Lt, ast.LtE: sp.Le, ast.Gt: sp.Gt, ast.GtE: sp.Ge, ast.Eq: sp.Eq, ast.NotEq: sp.Ne}
_ALIASES = {
    "ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "fabs": "abs",
    "ceiling": "ceil", "minimum": "min", "maximum": "max", "pow": "**", "lap": "laplacian", "normal_derivative": "dn",
}  # fmt: skip


def read_equation(piece: Text, names: Names) -> sp.Eq | sp.Expr:
    """Return the equation, or the expression that shall be zero, that a text says."""
    sides = [_read(piece, span, names, "number") for span in scan(piece)]
    if len(sides) == 1:
        return sides[0].expression
    return sp.Eq(*(side.expression for side in sides), evaluate=False)


def read_expression(piece: Text, names: Names) -> Measured:
    """Return the expression that a text says, which is a number or depends on points."""
    return _read(piece, _whole(piece), names, "number")


def read_condition(piece: Text, names: Names) -> sp.Basic:
    """Return the comparison that a text says."""
    return _read(piece, _whole(piece), names, "condition").expression


def _whole(piece: Text) -> tuple[int, int]:
    spans = scan(piece)
    if len(spans) > 1:
        raise piece.error("An equation sign does not belong here; give an expression.", spans[0][1])
    return spans[0]


def _read(piece: Text, span: tuple[int, int], names: Names, kind: str) -> Measured:
    start, stop = span
    # Blanks in place of what is not read keep lines and columns as they are; brackets allow line breaks.
    code = "(" + re.sub(r"[^\n]", " ", piece.text[:start]) + piece.text[start:stop] + "\n)"
    lines = [0, *(found.end() for found in re.finditer("\n", piece.text))]
    reader = _FormulaReader(piece, names, tuple(lines))
    try:
        tree = ast.parse(code, mode="eval").body
        result = reader.read(tree, 0)
    except TextError:
        raise
    except SyntaxError as error:
        index = reader.index(error.lineno or 1, (error.offset or 1) - 1)
        message = "This cannot be read: an operator is missing or superfluous here, or a bracket or comma is misplaced."
        raise piece.error(message, max(start, min(index, stop - 1))) from None
    except (RecursionError, MemoryError):
        raise piece.error("The formula is nested too deeply; split it up.", start) from None
    if result.kind != kind:
        remedy = {"condition": "Write a single = between the sides of an equation.", "number": "Compare it: x < 0.5."}
        message = f"This is a {result.kind}, and a {kind} is needed. {remedy.get(result.kind, 'Use dot, div or [x].')}"
        raise reader.error(tree, message)
    return result


@dataclass(frozen=True)
class _FormulaReader:
    """Walks the tree that Python's parser made of a formula."""

    piece: Text
    names: Names
    lines: tuple[int, ...]

    def index(self, line: int, column: int) -> int:
        """Return the place in the text of a place in the code, which has a bracket in front."""
        if line > len(self.lines):
            return len(self.piece.text)
        return max(0, self.lines[line - 1] + column - (line == 1))

    def error(self, node: ast.expr, message: str) -> TextError:
        """Return an error that points at a node."""
        start = self.index(node.lineno, node.col_offset)
        return self.piece.error(message, start, self.index(node.end_lineno or 1, node.end_col_offset or 0))

    def read(self, node: ast.expr, depth: int) -> Measured:
        """Read one node."""
        if depth > _DEEPEST:
            raise self.error(node, f"The formula is nested more than {_DEEPEST} deep; split it up.")
        method = _METHODS.get(type(node))
        if method is None:
            comma = " Write decimals with a point, as in 0.1." if isinstance(node, ast.Tuple) else ""
            raise self.error(node, f"This ({type(node).__name__}) cannot stand in a formula.{comma}")
        try:
            return method(self, node, depth + 1)
        except TextError:
            raise
        except (RefusedError, PiblsError) as error:
            raise self.error(node, str(error)) from None
        except RecursionError:
            raise self.error(node, "The formula is nested too deeply; split it up.") from None
        except Exception as error:  # whatever SymPy does with an expression it cannot handle
            message = f"SymPy cannot work with this ({type(error).__name__}); rewrite it."
            raise self.error(node, message) from None

    def read_number(self, node: ast.Constant, depth: int) -> Measured:
        """Read a number: whole numbers exactly, others in double precision."""
        del depth
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RefusedError("Formulas contain numbers only, no texts.")
        if not abs(value) < 1e300:
            raise RefusedError("This number is too large.")
        return Measured(sp.Integer(value) if isinstance(value, int) else sp.Float(value), float(value))

    def read_name(self, node: ast.Name, depth: int) -> Measured:
        """Read a name: something declared, a constant, or a derivative by subscript."""
        del depth
        found = self.names.known.get(node.id)
        if found is not None:
            return found
        ways = self.names.derivatives(node.id)
        if len(ways) > 1:
            raise RefusedError(f"{node.id!r} can be read in two ways; write diff(u, x, 2).")
        if ways:
            label, orders = ways[0]
            pairs = [pair for pair in zip(self.names.coordinates, orders, strict=True) if pair[1]]
            return arithmetic.differentiate(Measured(self.names.fields[label]), pairs)
        raise RefusedError(f"There is no {node.id[:60]!r} here.{self._hint(node.id)}")

    def _hint(self, name: str) -> str:
        if name in FUNCTIONS or name in OPERATORS:
            return f" Write its argument in brackets: {name}(x)."
        if name[:1] == "d" and name[1:] in self.names.fields:
            return f" Write derivatives with a subscript: {name[1:]}_{self.names.coordinates[-1].name}."
        stem, _, subscript = name.partition("_")
        if subscript and stem in self.names.fields:
            coordinates = ", ".join(symbol.name for symbol in self.names.coordinates)
            return f" Derivatives are by the coordinates {coordinates}; others come from [domain] and [time] of a file."
        return suggestion(name, self.names.known, "Declare it as a coordinate, unknown or parameter.")

    def read_operation(self, node: ast.BinOp, depth: int) -> Measured:
        """Read a chain of sums, or one of products, quotients and powers."""
        sums, first, steps = isinstance(node.op, ast.Add | ast.Sub), node.left, [node]
        while isinstance(first, ast.BinOp) and isinstance(first.op, ast.Add | ast.Sub) == sums:
            steps, first = [first, *steps], first.left
        if sums:
            terms = [self.read(term, depth) for term in (first, *(step.right for step in steps))]
            return arithmetic.add(terms, [1, *(1 if isinstance(step.op, ast.Add) else -1 for step in steps)])
        for step in reversed(steps):
            if type(step.op) not in _ARITHMETIC:
                raise self.error(step, "There is no division with remainder; write / for a quotient.")
        result = self.read(first, depth)
        for step in steps:
            result = _ARITHMETIC[type(step.op)](result, self.read(step.right, depth))
        return result

    def read_sign(self, node: ast.UnaryOp, depth: int) -> Measured:
        """Read a sign before an operand, or a negation."""
        operand = self.read(node.operand, depth)
        if isinstance(node.op, ast.Not):
            self._expect(node.operand, operand, "condition")
            return Measured(sp.Not(operand.expression), size=operand.size + 1)
        if isinstance(node.op, ast.UAdd):
            return operand
        return arithmetic.multiply(Measured(sp.S.NegativeOne, -1.0), operand)

    def _expect(self, node: ast.expr, value: Measured, kind: str) -> Measured:
        if value.kind != kind:
            raise self.error(node, f"This is a {value.kind}, and a {kind} is needed.")
        return value

    def read_comparison(self, node: ast.Compare, depth: int) -> Measured:
        """Read a comparison, or a chain of them."""
        operands = [self._expect(item, self.read(item, depth), "number") for item in (node.left, *node.comparators)]
        if any(operand.order for operand in operands) and any(isinstance(op, ast.Eq) for op in node.ops):
            raise RefusedError("Write a single = between the sides of an equation.")
        arithmetic.check_size(operands, "a comparison")
        links = zip(node.ops, operands, operands[1:], strict=False)
        # Numbers are compared at once; whether functions always compare one way, SymPy could ponder for minutes.
        tests = [
            _COMPARISONS[type(op)](
                left.expression, right.expression, evaluate=left.number is not None and right.number is not None
            )
            for op, left, right in links
        ]
        return Measured(sp.And(*tests), size=sum(operand.size for operand in operands) + len(tests))

    def read_logic(self, node: ast.BoolOp, depth: int) -> Measured:
        """Read conditions joined by ``and`` or ``or``."""
        operands = [self._expect(item, self.read(item, depth), "condition") for item in node.values]
        arithmetic.check_size(operands, "a condition")
        join = sp.And if isinstance(node.op, ast.And) else sp.Or
        return Measured(join(*(o.expression for o in operands)), size=sum(o.size for o in operands) + 1)

    def read_vector(self, node: ast.List, depth: int) -> Measured:
        """Read a vector."""
        entries = [self._expect(item, self.read(item, depth), "number") for item in node.elts]
        if not entries:
            raise RefusedError("A vector needs entries.")
        return Measured(
            sp.ImmutableDenseMatrix([entry.expression for entry in entries]),
            size=sum(entry.size for entry in entries) + 1,
            order=max(entry.order for entry in entries),
        )

    def read_entry(self, node: ast.Subscript, depth: int) -> Measured:
        """Read an entry of a vector, by coordinate or by number."""
        vector = self._expect(node.value, self.read(node.value, depth), "vector")
        known = [symbol.name for symbol in self.names.coordinates]
        place: Any = node.slice
        if isinstance(place, ast.Name) and place.id in known:
            index = known.index(place.id)
        elif isinstance(place, ast.Constant) and isinstance(place.value, int):
            index = place.value
        else:
            raise self.error(place, f"An entry of a vector is given by a coordinate ({', '.join(known)}) or a number.")
        if not 0 <= index < len(vector.expression):
            raise self.error(place, f"The vector has {len(vector.expression)} entries, numbered from 0.")
        return Measured(vector.expression[index], None, vector.size, vector.order)

    def read_call(self, node: ast.Call, depth: int) -> Measured:
        """Read a function or an operator with its arguments."""
        if not isinstance(node.func, ast.Name):
            raise self.error(node.func, "Something that is no function stands before brackets; write * for a product.")
        name = node.func.id
        if node.keywords or any(isinstance(item, ast.Starred) for item in node.args):
            raise RefusedError(f"{name[:60]} takes expressions separated by commas.")
        if name in FUNCTIONS:
            return arithmetic.apply(FUNCTIONS[name], name, [self.read(item, depth) for item in node.args])
        if name in OPERATORS:
            return self._operator(name, node, depth)
        if name in self.names.known:
            message = f"{name!r} is not a function of formulas; write it without brackets, or * for a product."
        elif name in _ALIASES:
            message = f"There is no function {name!r}. Did you mean {_ALIASES[name]!r}?"
        else:
            message = f"There is no function {name[:60]!r}.{suggestion(name, (*FUNCTIONS, *OPERATORS))}"
        raise self.error(node.func, message)

    def _operator(self, name: str, node: ast.Call, depth: int) -> Measured:
        if name == "piecewise":
            return self._branches([self._branch(item, depth) for item in node.args])
        if name == "diff":
            return self._diff(node, depth)
        operands = [self.read(item, depth) for item in node.args]
        if name == "product":
            return arithmetic.product(operands)
        wanted = {"where": 3, "dot": 2}.get(name, 1)
        if len(operands) != wanted:
            raise RefusedError(f"{name} takes {wanted} argument{'s' if wanted > 1 else ''}, not {len(operands)}.")
        if name == "where":
            condition = self._expect(node.args[0], operands[0], "condition")
            return self._branches([(operands[1], condition), (operands[2], None)])
        return arithmetic.dot(*operands) if name == "dot" else arithmetic.operate(name, operands[0])

    def _branch(self, node: ast.expr, depth: int) -> tuple[Measured, Measured | None]:
        if not isinstance(node, ast.List):
            return self.read(node, depth), None
        if len(node.elts) != 2:
            raise self.error(node, "A branch of piecewise is [value, condition].")
        value, test = (self.read(item, depth) for item in node.elts)
        return value, self._expect(node.elts[1], test, "condition")

    def _branches(self, branches: list[tuple[Measured, Measured | None]]) -> Measured:
        if not 1 <= len(branches) <= _MOST_BRANCHES or any(test is None for _, test in branches[:-1]):
            raise RefusedError(
                f"piecewise takes up to {_MOST_BRANCHES} branches [value, condition], and what holds otherwise last."
            )
        return arithmetic.piecewise([(value, test or Measured(sp.true)) for value, test in branches])

    def _diff(self, node: ast.Call, depth: int) -> Measured:
        if len(node.args) < 2:
            raise RefusedError("diff takes an expression, then coordinates, each perhaps with an order: diff(u, x, 2).")
        operand = self.read(node.args[0], depth)
        known = {symbol.name: symbol for symbol in self.names.coordinates}
        orders: list[tuple[sp.Symbol, int]] = []
        for item in node.args[1:]:
            if isinstance(item, ast.Name) and item.id in known:
                orders.append((known[item.id], 1))
            elif isinstance(item, ast.Constant) and isinstance(item.value, int) and orders and item.value > 0:
                orders[-1] = (orders[-1][0], item.value)
            else:
                raise self.error(item, f"diff takes coordinates ({', '.join(known)}) and orders above 0 here.")
        return arithmetic.differentiate(operand, orders)


_METHODS: dict[type[ast.expr], Callable[[_FormulaReader, Any, int], Measured]] = {
    ast.Constant: _FormulaReader.read_number,
    ast.Name: _FormulaReader.read_name,
    ast.BinOp: _FormulaReader.read_operation,
    ast.UnaryOp: _FormulaReader.read_sign,
    ast.Compare: _FormulaReader.read_comparison,
    ast.BoolOp: _FormulaReader.read_logic,
    ast.List: _FormulaReader.read_vector,
    ast.Subscript: _FormulaReader.read_entry,
    ast.Call: _FormulaReader.read_call,
}
