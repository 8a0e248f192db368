"""``pibls check``: is a problem file right, and does its problem determine a solution? Nothing is solved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pibls.cli.console import CODES, OK, WRONG, Debug, Json, emit, emit_json, error_record, in_words, shown, told
from pibls.cli.sources import complete, read_source
from pibls.errors import PiblsError, ProblemError
from pibls.status import Status

if TYPE_CHECKING:
    from pibls.problem import Problem, Statement


_POINTS = 200
_COARSE, _SECONDS = 1e-2, 2.0  # of a solve that only tells whether conditions fix unknown numbers
_MET = 1e-6
_CODES = {"error": WRONG, Status.ILL_POSED: CODES[Status.ILL_POSED], "ok": OK}  # the worst first


@dataclass(frozen=True)
class Finding:
    """The findings in one file."""

    file: str  # its name
    error: PiblsError | OSError | None = None  # what is wrong with it, or None
    ill_posed: str = ""  # why its problem has no solution or more than one; empty if nothing speaks against it
    warnings: tuple[str, ...] = ()  # what is odd

    @property
    def status(self) -> str:
        """The finding in a word."""
        return "error" if self.error is not None else Status.ILL_POSED if self.ill_posed else "ok"

    def record(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        return {
            "file": self.file,
            "status": self.status,
            "error": None if self.error is None else error_record(self.error),
            "message": self.ill_posed,
            "warnings": list(self.warnings),
        }


def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Problem files, -, or zoo:NAME.", autocompletion=complete),
    ],
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Check problem files without solving them.

    Formulas, domains and conditions must fit together, an exact solution must satisfy everything, every part of the
    boundary must have enough conditions, and a linear problem must determine its solution.
    """
    with told(debug, as_json="check" if as_json else ""):
        findings = []
        for file in files:
            findings.append(_finding(file))
            if not as_json:
                _say(findings[-1])
        seen = {finding.status for finding in findings}
        code = next(code for status, code in _CODES.items() if status in seen)
        if as_json:
            emit_json("check", {"exit_code": code, "files": [finding.record() for finding in findings]})
        raise typer.Exit(code)


def _finding(file: str) -> Finding:
    try:
        return Finding(file, None, *examine(read_source(file).problem))
    except (PiblsError, OSError) as error:
        return Finding(file, error)


def _say(finding: Finding) -> None:
    name = shown(finding.file)
    if finding.error is not None:
        words = in_words(finding.error)
        emit(f"Error: {words if name in words else f'{name}: {words}'}")
        return
    emit(f"{Status.ILL_POSED if finding.ill_posed else 'OK'}  {name}")
    for words in (finding.ill_posed, *finding.warnings):
        if words:
            emit(f"    {words}")


def examine(problem: Problem) -> tuple[str, tuple[str, ...]]:
    """Return why a problem is ill-posed, or nothing, and warnings.

    >>> from pibls import problems
    >>> examine(problems.poisson())
    ('', ())
    >>> examine(problems.ill_posed()["pure_neumann"].problem())[0][:27]
    'The solution is not unique:'
    """
    from pibls.budget import Budget
    from pibls.geometry import Points
    from pibls.inverse import is_fixed, solve_fixed, unmeasured
    from pibls.problem import Eigenvalue
    from pibls.spectrum.pencil import Pencil
    from pibls.tuning.first_word import first_word
    from pibls.tuning.fitting import Fitting
    from pibls.wellposed.sensitivity import ambiguity_of

    warnings = _exact_warnings(problem, Points.sample(problem, _POINTS))
    if any(isinstance(symbol, Eigenvalue) for symbol in problem.parameters):
        Pencil.of(problem)
        return "", warnings
    if is_fixed(problem):
        solve_fixed(problem, _COARSE, Budget(_SECONDS), 0, lambda *_: None)
        return "", warnings
    if problem.unknown_functions and all(s.targets is None for s in problem.statements):
        raise ProblemError(unmeasured(problem))
    return first_word(problem) or (ambiguity_of(Fitting(problem, 0)) if problem.is_linear else ""), warnings


def _exact_warnings(problem: Problem, points: Any) -> tuple[str, ...]:
    """Return a warning for every equation and condition that the exact solution does not satisfy."""
    from pibls.problem import AtPoints, Data, Interior, OnPart

    exact = problem.exact
    if not isinstance(exact, Mapping) or any(expression.has(Data) for expression in exact.values()):
        return ()
    found = []
    for statement in problem.statements:
        if isinstance(statement.place, Interior | OnPart | AtPoints) and statement.targets is None:
            try:
                size = _defect(exact, problem.truth or {}, statement, points.sets[statement.source])
            except PiblsError:  # singular at a point, say: nothing is known then
                continue
            if size > _MET:
                found.append(
                    f"warning: the exact solution does not satisfy {statement.name}: the sides differ by {size:.1g} of "
                    "their size. Check both."
                )
    return tuple(found)


def _defect(exact: Mapping[str, Any], truth: Mapping[str, Any], statement: Statement, place: Any) -> float:
    """Return the residual of the exact solution at the true unknowns, relative to the values that make it up."""
    import numpy as np

    from pibls.problem import Unknown
    from pibls.problem.evaluate import compile_function

    form = statement.form
    unknowns = (symbol for symbol in form.residual.free_symbols if isinstance(symbol, Unknown))
    known = {symbol: truth[symbol.name] for symbol in unknowns if symbol.name in truth}
    residual_function = compile_function(form.residual.xreplace(known), form.coordinates, form.slots)
    normals = place.normals if residual_function.needs_normals else None
    state = []
    for term in form.terms:
        expression = exact[term.field].diff(*zip(form.coordinates, term.multi_index, strict=True))
        state.append(compile_function(expression, form.coordinates)(place.points))
    residual = np.abs(residual_function(place.points, normals, state)).max()
    return float(residual) / max(1.0, *(float(np.abs(values).max()) for values in state))
