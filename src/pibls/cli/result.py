"""Reports of a solution: as text for people, as a record for programs."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pibls.cli.console import CODES, OK, WRONG, shown
from pibls.interrupts import code as interrupted
from pibls.status import Status

if TYPE_CHECKING:
    from pibls.cli.sources import Source
    from pibls.quantities import Quantity
    from pibls.solution import Solution


_COLOURS = {
    Status.CONVERGED: typer.colors.GREEN,
    Status.STALLED: typer.colors.YELLOW,
    Status.ILL_POSED: typer.colors.RED,
}
_MOST_LINES = 12
_WIDTH = 100


@dataclass(frozen=True, eq=False)
class Result:
    """A solved problem with how it was asked for."""

    source: Source
    solution: Solution
    options: Mapping[str, Any]  # tolerance, seed, budget and other options of the solve
    true_error: float | None  # relative L2 error, where it is known
    seconds: float  # wall-clock time of the solve
    quantities: Mapping[str, Quantity] = field(default_factory=dict)  # numbers that the file asks for
    files: Mapping[str, Path] = field(default_factory=dict)  # what was written, by kind
    failed: Mapping[str, str] = field(default_factory=dict)  # what could not be written, by kind, and why

    @property
    def code(self) -> int:
        """Exit code."""
        return interrupted(WRONG if self.failed else CODES.get(self.solution.status, OK))

    def record(self) -> dict[str, Any]:
        """Return everything as plain numbers, strings, lists and dictionaries."""
        d = self.solution.diagnostics
        return {
            "pibls": version("pibls"),
            "source": self.source.name,
            "title": self.source.title,
            "problem": problem_record(self.source),
            "status": self.solution.status,
            "exit_code": self.code,
            "message": d.message,
            **{name: self.options[name] for name in ("tol", "seed", "budget")},
            "error_estimate": self.solution.error_estimate,
            "true_error": self.true_error,
            "parameters": None if (found := self.solution.parameters) is None else found.as_dict(),
            "quantities": {name: _quantity_record(found) for name, found in self.quantities.items()},
            "seconds": self.seconds,
            **{name: getattr(d, name) for name in ("method", "solver", "nodes", "rows", "rank", "condition")},
            "residuals": {name: asdict(residual) for name, residual in d.residuals.items()},
            "files": {kind: str(path) for kind, path in self.files.items()},
            "failed_files": dict(self.failed),
        }

    def __str__(self) -> str:
        d, status = self.solution.diagnostics, self.solution.status
        facts = {"status": typer.style(status, fg=_COLOURS.get(status), bold=True)}
        estimate = self.solution.error_estimate
        known = estimate is not None and math.isfinite(estimate)
        facts["estimated error"] = f"{f'{estimate:.1e}' if known else 'unknown'} (tolerance {self.options['tol']:g})"
        facts |= {} if self.true_error is None else {"true error": f"{self.true_error:.1e}"}
        facts |= {"size": d.size, "time": f"{self.seconds:.2f} s"}
        facts |= {name: str(found) for name, found in self.quantities.items()}
        facts |= {f"wrote {kind}": shown(path) for kind, path in self.files.items()}
        width = max(map(len, facts))
        stated = str(self.source.problem).splitlines()
        if (rest := len(stated) - _MOST_LINES) > 0:
            stated[_MOST_LINES:] = [f"  ... and {rest} more; see `pibls show`"]
        lines = [typer.style(self.source.title, bold=True), *stated, ""]
        lines += [f"{name:<{width}}  {value}" for name, value in facts.items()]
        lines += ["", *str(self.solution.parameters).splitlines()] if self.solution.parameters else []
        return "\n".join([*lines, *self._advice()])

    def _advice(self) -> list[str]:
        """Return the message of a solve that did not converge, with its remedies, in lines."""
        if self.solution.status == Status.CONVERGED:
            return []
        words, estimate = self.solution.diagnostics.message, self.solution.error_estimate
        if self.solution.status == Status.STALLED:
            advised = re.search(r"such as budget=([0-9.e+-]*[0-9])", words)
            longer = [f"--budget {advised[1]} for a longer search"] if advised else []
            looser = [f"--tol {_above(estimate)} to accept it as it is"] if estimate and estimate < 1 else []
            if longer or looser:
                words += f" On the command line: {', or '.join(longer + looser)}."
        return ["", *textwrap.wrap(words, _WIDTH, break_long_words=False, break_on_hyphens=False)]


def _above(value: float) -> str:
    """Return a round number above a value.

    >>> _above(3.2e-5), _above(9.7e-5)
    ('4e-05', '1e-04')
    """
    power = f"{value:.0e}"
    return power if float(power) > value else f"{value + 10 ** float(f'{value:.0e}'.split('e')[1]):.0e}"


def _quantity_record(found: Quantity) -> dict[str, Any]:
    """Return a quantity for JSON."""
    place = None if found.place is None else [float(number) for number in found.place]
    return {"value": found.value, "error": found.error, "place": place, "note": found.note}


def problem_record(source: Source) -> dict[str, Any]:
    """Return a problem for JSON."""
    problem = source.problem
    return {
        "text": str(problem),
        "fields": list(problem.field_names),
        "coordinates": [symbol.name for symbol in problem.domain.coordinates],
        "time": None if problem.domain.time is None else problem.domain.time.name,
        "linear": problem.is_linear,
        "equations": len(problem.equations),
        "conditions": len(problem.conditions),
        "domain": str(problem.domain),
        "has_exact": problem.exact is not None,
    }
