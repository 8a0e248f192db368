"""A problem file as a page shows it: its equations and conditions typeset, its parameters, its domain, its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

import sympy as sp

from pibls.errors import PiblsError, TextError
from pibls.problem import Eigenvalue, Problem
from pibls.problem.measured import Measured
from pibls.problem.printing import latex
from pibls.report.wording import lettered
from pibls.studio.board_data import board
from pibls.text import read_text
from pibls.text.document import parse_document
from pibls.text.domains import read_domain
from pibls.text.expressions import read_equation, read_expression
from pibls.text.positions import Text
from pibls.text.problem_files import read_names
from pibls.text.vocabulary import Names
from pibls.tuning.first_word import first_word

Record = dict[str, Any]

_ROBIN = "({alpha})*({u}) + ({beta})*dn({u}) = {value}"
_FORMULAS = {
    "dirichlet": "{u} = {value}",
    "initial": "{u} = {value}",
    "neumann": "dn({u}) = {value}",
    "robin": _ROBIN,
    "convection": "flux({u}) = ({h})*(({ambient}) - ({u}))",
    "condition": "{equation}",
}


def read(text: str, folder: str) -> Record:
    """Return everything that a page shows of a problem file before it is solved."""
    found: Record = {"error": None, "equations": [], "conditions": [], "parameters": [], "board": None}
    found |= {"title": "", "tol": 1e-4, "told": "", "problem": None, "unknowns": ("unknowns", "u")}
    try:
        _, table = parse_document(text, None, FilePath(folder))
    except TextError as error:
        return found | {"error": told(error)}
    data = dict(table.data)
    found |= {"title": str(data.get("title", "")), "tol": _number(data.get("solve", {}).get("tol", 1e-4))}
    key = "fields" if "fields" in data or isinstance(data.get("unknowns"), dict) else "unknowns"
    found["unknowns"] = (key, ", ".join(_listed(data.get(key, "u"))))
    names = problem = None
    try:
        names = read_names(table)
        place = read_domain(table, names)
        try:
            problem = read_text(text, folder).problem
        except PiblsError as error:  # the domain is shown all the same
            found["error"] = told(error)
        found["board"] = board(place, data, problem)
    except PiblsError as error:
        found["error"] = told(error)
    found["equations"] = [typeset(own, names) for own in _listed(data.get("equations", []))]
    found["conditions"] = [_condition(own, names) for own in _tables(data.get("conditions"))]
    given = data.get("parameters")
    found["parameters"] = [
        {"name": name, "value": value, "slides": type(value) in (int, float)}
        for name, value in (given.items() if isinstance(given, dict) else ())
    ]
    if problem is not None:
        found |= {"told": to_click(first_word(problem)), "problem": _traits(problem)}
    return found


def typeset_one(text: str, formula: str) -> Record:
    """Return a formula that is being typed, with the names of a problem file; nothing else of it is read."""
    try:
        return typeset(formula, read_names(parse_document(text)[1]))
    except PiblsError:
        return typeset(formula, None)


def told(error: PiblsError) -> Record:
    """Return an error in words, and where in the text it is."""
    if not isinstance(error, TextError):
        return {"message": str(error), "line": None, "column": None, "excerpt": ""}
    words = error.message.replace("in the folder of the problem file.", "here yet. Open it, or drop it on the page.")
    missing = re.match(r"There is no '(\w+)' here\. Declare it", words)
    found = {"message": words, "line": error.line, "column": error.column, "excerpt": error.excerpt or ""}
    return found | {"missing": missing.group(1)} if missing else found


def to_click(words: str) -> str:
    """Return words on missing conditions as a page would say them, without Python."""
    words = re.sub(
        r"Add what is missing, such as .*", "Click what is red to give it a condition.", words, flags=re.DOTALL
    )
    words = re.sub(r"such as budget=([0-9.e+-]*[0-9])", r"such as budget = \1 below [solve] in the file", words)
    call = r"\w+\((?:[^()]|\([^()]*\))*\)"
    return re.sub(rf"(?:, such as| with) {call}(?:(?:, | and ){call})*", "", words)


def _traits(problem: Problem) -> Record:
    """Return facts of a problem that decide which controls a page shows."""
    domain = problem.domain
    return {
        "linear": problem.is_linear,
        "eigenvalue": any(isinstance(number, Eigenvalue) for number in problem.parameters),
        "unknowns": [str(number) for number in problem.parameters],
        "fields": list(problem.field_names),
        "flows": [name for name in problem.field_names if _flows(problem, name)],
        "coordinates": [symbol.name for symbol in domain.coordinates],
        "space": len(domain.space),
        "time": None if domain.time is None else domain.time.name,
        "bounds": domain.bounds.tolist(),
    }


def _flows(problem: Problem, name: str) -> bool:
    """Tell whether a field has a flux: second derivatives of it balance."""
    return any(term.field == name and term.order == 2 for form in problem.laws.forms for term in form.terms)


def _lettered(names: Names) -> Names:
    """Return names in which parameters stand for themselves, so that formulas show letters and no numbers."""
    known = (name for name, own in names.values.items() if own.number is not None or own.expression.is_Symbol)
    letters = {name: Measured(sp.Symbol(_upright(name), real=True)) for name in known}
    return replace(names, values={**names.values, **letters})


def _upright(name: str) -> str:
    """Return a name of several letters as one word, which would be read as a product otherwise."""
    is_word = len(name) > 1 and name.isalpha() and lettered(name) == name
    return rf"\text{{{name}}}\," if is_word else name


def typeset(formula: str, names: Names | None) -> Record:
    """Return a formula as MathML, or its error with the place of it."""
    record: Record = {"text": formula, "mathml": "", "error": None}
    if names is None:
        return record
    try:
        read_equation(Text.plain(formula), names)
        expression = read_equation(Text.plain(formula), _lettered(names))
    except PiblsError as error:
        return record | {"error": told(error)}
    return record | {"mathml": mathml(expression)}


def mathml(expression: sp.Basic) -> str:
    """Return an expression as MathML, which browsers show by themselves.

    >>> x = sp.Symbol("x")
    >>> mathml(x**2)[:5], "<msup>" in mathml(x**2)
    ('<math', True)
    """
    from latex2mathml.converter import convert

    return str(convert(latex(expression), display="block"))


def _condition(table: Mapping[str, Any], names: Names | None) -> Record:
    """Return a condition as a card: its kind, its entries, its place, and its formula."""
    kind = str(table.get("kind", ""))
    on = table.get("on", [])
    entries = {key: value for key, value in table.items() if key not in ("kind", "on")}
    record: Record = {"kind": kind, "on": [on] if isinstance(on, str) else on, "entries": entries}
    fields = list(names.fields) if names is not None else ["u"]
    words = {"u": fields[0] if fields else "u", "value": 0, "alpha": 1, "beta": 1, "h": 1, "ambient": 0} | entries
    pattern = "{equation}" if "equation" in table else _FORMULAS.get(kind, "")
    if "equation" in pattern and "equation" not in table:
        pattern = ""
    formula = typeset(pattern.format(**words), names) if pattern else {"mathml": "", "error": None}
    return record | {"mathml": formula["mathml"], "error": _own_error(formula, entries, names)}


def _own_error(formula: Record, entries: Mapping[str, Any], names: Names | None) -> Record | None:
    """Return the error of the entry that a formula fails by, with its place in that entry."""
    if formula["error"] is None or names is None:
        return None
    for key in ("u", "value", "alpha", "beta", "h", "ambient", "equation"):
        if key in entries:
            try:
                (read_equation if key == "equation" else read_expression)(Text.plain(str(entries[key])), names)
            except PiblsError as error:
                return told(error) | {"key": key}
    return dict(formula["error"])


def _listed(value: Any) -> list[str]:
    return [str(own) for own in (value if isinstance(value, list) else [value])]


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [own for own in value if isinstance(own, dict)] if isinstance(value, list) else []


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 1e-4
