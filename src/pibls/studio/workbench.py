"""The tasks of a worker: it reads, solves, draws and measures one problem at a time, and keeps its solution."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pibls.errors import InputError, PiblsError
from pibls.problem import Eigenvalue, Problem
from pibls.problems import about, zoo
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.spectrum import Spectrum, eigen
from pibls.status import Status
from pibls.studio.cards import read, to_click, typeset_one
from pibls.studio.maps import picture
from pibls.studio.measuring import cut, probe, quantity
from pibls.studio.text_edits import with_value
from pibls.text import ProblemFile, read_text
from pibls.text.positions import suggestion
from pibls.tuning import solve
from pibls.tuning.alike import keeps_factors, keeps_trees
from pibls.tuning.between import Between
from pibls.tuning.prepared import Prepared, prepare
from pibls.tuning.progress import Progress

Record = dict[str, Any]
Report = Callable[[Record], None]
Ranges = dict[str, tuple[float, float, int]]


@dataclass
class Workbench:
    """A problem with its solution, its eigenfunctions if it has some, and the factors that are kept of it."""

    report: Report
    text: str = ""
    folder: str = ""
    file: ProblemFile | None = None
    solution: Solution | None = None
    spectrum: Spectrum | None = None
    prepared: Prepared | None = None
    busy: bool = False  # with something that an interrupt ends
    interrupted: bool = False
    ranges: Ranges = field(default_factory=dict)  # of the sliders, that moved last in front
    # solutions for values of a parameter, with the text in which its own value does not count; None if of no use
    families: dict[str, tuple[str, Between | None]] = field(default_factory=dict)
    moving: bool = False  # whether the solution at hand is one between kept ones
    hopeless: str = ""  # the text for which no factors can be kept
    tasks: dict[str, Callable[..., Record]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = {
            "read": read,
            "typeset": typeset_one,
            "library": library,
            "zoo": zoo_text,
            "solve": self.solve,
            "again": self.again,
            "mode": self.mode,
            "picture": self.picture,
            "probe": lambda place: probe(self.held, place),
            "cut": lambda ends, at, name: cut(self.held, ends, at, name),
            "quantity": lambda kind, formula, part, at: quantity(
                self.held, self.text, self.folder, kind, formula, part, at
            ),
            "write": self.write,
        }

    @property
    def held(self) -> Solution:
        """The solution at hand, or a refusal where there is none."""
        if self.solution is None:
            raise InputError("There is no solution yet. Press Solve first.")
        return self.solution

    def solve(self, text: str, folder: str, deadline: float, picture: Record, ranges: Ranges) -> Record:
        """Solve the problem of a text, whose sliders have ranges; the estimate is reported as it falls."""
        begun = time.perf_counter()
        self._put(text, folder)
        self.ranges = ranges
        assert self.file is not None
        problem, options = self.file.problem, self.file.solve
        tol = options.tol or 1e-4
        if any(isinstance(number, Eigenvalue) for number in problem.parameters):
            self.spectrum = eigen(problem, number=6, tol=tol)
            self.solution = self.spectrum.solutions[0]
        else:
            limit = deadline if options.deadline is None else min(deadline, options.deadline)
            names = ("seed", "budget", "memory", "time", "assume_well_posed", "relative")
            given = {name: getattr(options, name) for name in names}
            wishes = {name: value for name, value in given.items() if value is not None}
            self.solution = solve(problem, tol=tol, deadline=limit, progress=self._tell, **wishes)
        return self._answer(begun, picture)

    def _put(self, text: str, folder: str) -> None:
        self.solution = self.spectrum = self.prepared = None
        self.families, self.hopeless, self.moving = {}, "", False
        self.text, self.folder = text, folder
        self.file = read_text(text, folder)

    def _tell(self, now: Progress) -> None:
        estimate = None if now.estimate is None else float(now.estimate)
        self.report({"stage": str(now.stage), "seconds": now.seconds, "nodes": now.nodes, "estimate": estimate})

    def again(
        self, text: str, deadline: float, picture: Record, ranges: Ranges, moved: str = "", settled: bool = True
    ) -> Record:
        """Solve again after a parameter has changed: from kept factors where it stands on right-hand sides only.

        While a parameter that stands elsewhere is still moving, a solution between kept ones is shown if it is known
        to be accurate; once it has ``settled``, or where there is none, the problem is solved so that its factors are
        kept.
        """
        begun = time.perf_counter()
        self.ranges = ranges
        if self.file is None or not self._suits(self.file.problem):
            return self.solve(text, self.folder, deadline, picture, ranges)
        file = read_text(text, self.folder)
        found, way = self._restated(file.problem), "kept factors"
        if found is None and not settled:
            found, way = self._between(moved, text, file.problem), "between"
        if found is None and file.problem.is_linear and not file.problem.parameters:
            prepared, way = prepare(file.problem, tol=file.solve.tol or 1e-4), ""
            if self.interrupted:
                raise InputError("It was interrupted.")
            self.prepared, found = prepared, prepared.solution
        if found is None or (way != "between" and found.status != Status.CONVERGED):
            return self.solve(text, self.folder, deadline, picture, ranges)
        self.file, self.text, self.solution, self.moving = file, text, found, way == "between"
        return self._answer(begun, picture) | {"way": way}

    def _suits(self, problem: Problem) -> bool:
        """Tell whether factors and solutions that are kept of the problem at hand serve another one."""
        known = self.solution is not None and self.spectrum is None
        return known and isinstance(self.held.network, CellNetwork) and problem.is_linear and not problem.parameters

    def _restated(self, problem: Problem) -> Solution | None:
        """Return the solution from kept factors; None if there are none, or more than right-hand sides has changed."""
        if self.prepared is None or not keeps_factors(self.prepared.problem, [problem]):
            return None
        return self.prepared.solve_alike([problem])[0]

    def _between(self, name: str, text: str, problem: Problem) -> Solution | None:
        """Return the solution between kept ones for other values of a parameter; None if it is not known."""
        place = ("parameters", name)
        key, between = self.families.get(name, ("", None))
        if between is None or key != with_value(text, place, 0):
            return None
        return between.at(float(tomllib.loads(text)["parameters"][name]), problem)

    # Ahead of the next move ------------------------------------------------------------------------------------------

    def ahead(self) -> bool:
        """Make something that the next move of a slider may need; return whether there is more to make.

        It is called while nobody asks for anything, and may be interrupted at any time.
        """
        if self.moving or self.file is None or not self.ranges or not self._suits(self.file.problem):
            return False
        if self.prepared is None:
            return self._prepared() is not None
        known = tomllib.loads(self.text).get("parameters", {})
        families = (
            self._family(name, float(known[name])) for name in self.ranges if type(known.get(name)) in (int, float)
        )
        return any(own is not None and own.grow() for own in families)

    def _prepared(self) -> Prepared | None:
        """Return the problem at hand with its factors; None if they do not serve, or if it was interrupted."""
        assert self.file is not None
        if self.text == self.hopeless:
            return None
        if self.prepared is not None and self.prepared.problem is self.file.problem:
            return self.prepared
        made = prepare(self.file.problem, tol=self.file.solve.tol or 1e-4)
        if made.solution.status == Status.CONVERGED:
            self.prepared = made
            return made
        if not self.interrupted:
            self.hopeless = self.text
        return None

    def _family(self, name: str, value: float) -> Between | None:
        """Return the solutions that are kept for the values of a parameter; None where they are of no use."""
        assert self.file is not None
        place = ("parameters", name)
        key = with_value(self.text, place, 0)
        known, between = self.families.get(name, ("", None))
        if known == key and (between is None or between.reaches(value)):
            return between
        low, high, steps = self.ranges[name]

        def problem_at(value: float, text: str = self.text) -> Problem:
            return read_text(with_value(text, place, value), self.folder).problem

        made = None
        with suppress(PiblsError):  # of values that make no problem
            other = problem_at((3 * low + high) / 4 if low != value else high)
            if keeps_trees(self.file.problem, other) and not keeps_factors(self.file.problem, [other]):
                prepared = self._prepared()
                if prepared is None or self.interrupted:
                    return None
                made = Between(prepared, problem_at, value, np.linspace(low, high, int(steps) + 1))
        self.families[name] = key, made
        return made

    def mode(self, number: int, picture: Record) -> Record:
        """Show another eigenfunction."""
        if self.spectrum is None or not 0 <= number < len(self.spectrum):
            raise InputError("There is no such eigenfunction. Solve the problem again.")
        self.solution = self.spectrum.solutions[number]
        return {"picture": self.picture(**picture)}

    def picture(self, what: str, field: str | None, over: list[str], n: int) -> Record:
        """Draw the solution at hand."""
        known = self.held.problem.field_names
        return picture(self.held, what, field if field in known else None, over, n)

    def _answer(self, begun: float, wanted: Record) -> Record:
        solution = self.held
        d = solution.diagnostics
        status, message = str(solution.status), d.message
        if self.spectrum is not None:
            status, message = str(self.spectrum.status), self.spectrum.message
        found: Record = {"status": status, "message": to_click(message), "size": d.size, "method": d.method}
        estimate = solution.error_estimate if self.spectrum is None else None  # eigenvalues have their own
        known = solution.problem.exact is not None and not solution.problem.parameters
        found |= {"estimate": estimate, "tol": d.tolerance, "true_error": solution.true_error() if known else None}
        found["parameters"] = [
            f"{own.name} lies between {own.interval[0]:.5g} and {own.interval[1]:.5g} with 95 % probability."
            for own in (solution.parameters or {}).values()
            if np.isfinite(own.interval).all()
        ]
        found["parameters"] += list(solution.parameters.remarks) if solution.parameters is not None else []
        pairs = [] if self.spectrum is None else zip(self.spectrum.values, self.spectrum.errors, strict=True)
        found["eigenvalues"] = [f"{value:.8g} ± {error:.1g}" for value, error in pairs]
        found["seconds"] = time.perf_counter() - begun
        try:
            found["picture"] = self.picture(**wanted)
        except InputError:  # not every solution has an estimated error at points
            found["picture"] = self.picture(**{**wanted, "what": "solution"})
        return found

    def write(self, kind: str, path: str) -> Record:
        """Write a file of the solution at hand."""
        solution, place = self.held, Path(path)
        if kind == "png":
            solution.plot().savefig(place, dpi=150)
        elif kind == "gif":
            solution.animate(place, frames=30, n=80)
        else:
            {"vtu": solution.to_vtk, "csv": solution.to_csv, "pibls": solution.save}[kind](place)
        return {"path": path, "size": place.stat().st_size}


def library() -> dict[str, Any]:
    """Return the names of all problems of the zoo, with a line about each.

    >>> library()["zoo"][0]["name"]
    'advection'
    """
    return {"zoo": [{"name": name, "about": about(build)} for name, build in zoo().items()]}


def zoo_text(name: str) -> dict[str, str]:
    """Return a problem of the zoo as a problem file; an exact solution that no formula tells is left out.

    >>> "laplacian(u)" in zoo_text("poisson")["text"]
    True
    """
    known = zoo()
    if name not in known:
        raise InputError(f"The zoo has no problem {name[:60]!r}.{suggestion(name, known)}")
    problem, title = known[name](), name.replace("_", " ").capitalize()
    try:
        return {"text": problem.to_text(title=title)}
    except InputError:
        return {"text": replace(problem, exact=None).to_text(title=title)}
