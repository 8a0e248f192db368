"""The findings of a study: the one model that tables, figures, files and sentences of the report are made from."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.features.activations import activation
from pibls.paper.cells import Store
from pibls.paper.complexity import exponent
from pibls.paper.ledger import MORE_IS_BETTER, PROBLEMS, Ledger, Record, Summary, summarise
from pibls.paper.published import METHODS, Published, published
from pibls.paper.setting import Setting
from pibls.paper.stored import completed, stored, twins
from pibls.paper.tasks import plan
from pibls.paper.theorems import CHECKS
from pibls.problems import catalogue
from pibls.report.metrics import METRICS

_TABLES = {"advection": "6", "poisson_star": "7a", "poisson_square": "7b", "diffusion_reaction": "8"}


@dataclass(frozen=True)
class Theorem:
    """One check of the theorems on the fitted models of one method."""

    name: str
    method: str
    found: tuple[Mapping[str, Any], ...]
    stored: int = 0  # how many of the models come with the library

    @property
    def held(self) -> int:
        """On how many models it holds."""
        return sum(bool(values["holds"]) for values in self.found)

    @property
    def used(self) -> Summary | None:
        """The measured value over its bound."""
        pairs = [(values["measured"], values["sharp_bound"]) for values in self.found]
        ratios = (value / bound if bound else math.inf if value else 0.0 for value, bound in pairs)
        return summarise(ratios, stored=self.stored)

    @property
    def excess(self) -> list[float]:
        """By how much those that do not hold exceed their bounds."""
        return [values["measured"] / values["sharp_bound"] for values in self.found if not values["holds"]]

    @property
    def printed(self) -> float | None:
        """The median of measured values over the printed bound, where there is one."""
        ratios = [v["measured"] / v["paper_bound"] for v in self.found if v["paper_bound"] and v["paper_bound"] > 0]
        summary = summarise(ratios)
        return summary.median if summary else None


@dataclass(frozen=True, eq=False)
class Findings:
    """The cells of one profile of a study beside the published numbers, and how many cells are missing."""

    book: Ledger
    paper: Published
    profile: str
    missing: int = 0
    failures: tuple[str, ...] = ()
    twins: tuple[int, int] = (0, 0)  # cells that are stored, too, and those of them whose errors agree
    own: Ledger | None = None  # cells that this study ran, where the book shows stored ones in their place

    @classmethod
    def of(cls, folder: Path, profile: str) -> Findings:
        """Read the findings that a study has stored in a folder.

        Both profiles may have left cells in one folder; what the smaller one does not run does not belong to it.
        """
        store = Store(folder)
        if not store.folder.is_dir():
            raise InputError(
                "The 'out' parameter of write_report must be the folder of a study. Got "
                f"{shorten(str(folder))} instead, which has no folder 'cells'. Run the study first: "
                "pibls reproduce --out ..."
            )
        every = (spec for stage in plan(profile) for task in stage for spec in task.specs)
        # What a search chose is told by the fits of it.
        specs = {spec.key: spec for spec in every if spec.kind != "search"}
        cells = [cell for spec in specs.values() if (cell := store.read(spec)) is not None]
        told = Ledger.of(completed(cells, stored()))
        both = twins(cells, stored())
        missing, failures = len(specs) - len(cells), tuple(store.failures)
        return cls(told, published(), profile, missing, failures, both, Ledger.of(cells))

    def number(
        self, kind: str, problem: str, method: str, quantity: str, part: str = "", n: int = 0, score: str | None = None
    ) -> Record:
        """Return a number with no published one beside it; at the table's number of points if none is given."""
        better = "high" if quantity in MORE_IS_BETTER else "low"
        cells = self.runs(problem, method, kind, n, score)
        found = cells.summary(*([part] if part else []), quantity, better=better)
        n = n or self.paper.table_size(problem)
        return Record("", problem, method, part, quantity, n, None, found, kind, score or "")

    def runs(
        self, problem: str, method: str, kind: str = "accuracy", n: int = 0, score: str | None = "exact"
    ) -> Ledger:
        """Return the runs that a number sums up; at the table's number of points if none is given."""
        n = n or self.paper.table_size(problem)
        return self.book.select(kind=kind, problem=problem, method=method, n_train=n, score=score)

    def error(self, kind: str, problem: str, method: str, n: int = 0, score: str | None = "exact") -> Record:
        """Return the relative RMSE at the test points."""
        return self.number(kind, problem, method, "relative_rmse", "test", n, score)

    def errors(self, kind: str, method: str, score: str | None = "exact") -> list[Record]:
        """Return the relative RMSE at the test points, problem by problem."""
        return [self.error(kind, problem, method, score=score) for problem in PROBLEMS]

    @cached_property
    def accuracy(self) -> list[Record]:
        """Errors of all methods on all problems at the tables' numbers of points."""
        return [
            self.number("accuracy", problem, method, metric, part, score="exact").beside(
                self.paper.accuracy(problem, method, part, metric), _TABLES[problem]
            )
            for problem in PROBLEMS
            for part in ("test", "train")
            for metric in METRICS
            for method in METHODS
        ]

    @cached_property
    def times(self) -> list[Record]:
        """Training times of all methods on all problems, in all and per collocation point."""
        return [record for problem in PROBLEMS for method in METHODS for record in self._times(problem, method)]

    def _times(self, problem: str, method: str) -> Iterator[Record]:
        n = self.paper.time_size(problem)
        whole = self.number("time", problem, method, "seconds", n=n)
        yield whole.beside(self.paper.seconds(problem, method), "9")
        cells = self.runs(problem, method, "time", n, None)
        share = summarise((value / n for value in cells.numbers("seconds")), stored=cells.stored)
        value = self.paper.seconds(problem, method, per_point=True)
        yield Record("9", problem, method, "", "seconds per point", n, value, share, "time")

    @property
    def timed(self) -> tuple[int, int]:
        """How many fits were timed, and how many of them with other settings than those behind the tables of errors."""
        tables = {problem: self.paper.table_size(problem) for problem in PROBLEMS}
        cells = self.book.select(kind="accuracy", score="exact").cells
        chosen = {(c["problem"], c["method"], c["seed"]): c for c in cells if c["n_train"] == tables[c["problem"]]}
        timed = self.book.select(kind="time").cells
        behind = (chosen.get((c["problem"], c["method"], c["seed"]), c) for c in timed)
        return len(timed), sum(a["settings"] != b["settings"] for a, b in zip(timed, behind, strict=True))

    @cached_property
    def times_here(self) -> list[Record]:
        """Times of this study's own fits, where those of all methods are of another machine."""
        own = self.book.select(kind="time here")
        sizes = {problem: self.paper.time_size(problem) for problem in PROBLEMS if len(own.select(problem=problem))}
        methods = [method for method in METHODS if len(own.select(method=method))]
        return [self.number("time here", p, m, "seconds", n=n) for p, n in sizes.items() for m in methods]

    @cached_property
    def parameters(self) -> list[Record]:
        """How many parameters the selected models have, and how many times fewer PI-BLS has than PINN."""
        return [r for problem in PROBLEMS for n in self.paper.sizes(problem) for r in self._parameters(problem, n)]

    def _parameters(self, problem: str, n: int) -> Iterator[Record]:
        counts = {m: self.number("accuracy", problem, m, "parameters", n=n, score="exact") for m in METHODS}
        for method, record in counts.items():
            yield record.beside(self.paper.parameters(problem, n, method), "10")
        large, small = (counts[method].measured for method in ("PINN", "PI-BLS"))
        shares = [small.median / large.median] if large and small else []
        savings = {"reduction": [100 * (1 - share) for share in shares], "factor": [1 / share for share in shares]}
        for column, values in savings.items():
            value = self.paper.parameters(problem, n, column)
            known = sum(summary.stored for summary in (large, small) if summary)
            yield Record("10", problem, "PI-BLS", "", column, n, value, summarise(values, stored=known), "savings")

    def ranking(self, problem: str, n: int = 0) -> list[Record]:
        """Return the errors of the methods that were run, the lowest first."""
        records = [self.error("accuracy", problem, method, n) for method in METHODS]
        found = [(record.measured.median, record) for record in records if record.measured]
        return [record for _, record in sorted(found, key=lambda pair: pair[0])]

    def defeats(self, problem: str) -> list[tuple[Record, list[Record]]]:
        """Return where PI-BLS has the largest error of several methods, or one above that of the zero function, 1."""
        found = [self.ranking(problem, n) for n in self.paper.sizes(problem)]
        own = [(record, ranking) for ranking in found for record in ranking if record.method == "PI-BLS"]
        worst = [ranking[-1] for ranking in found if len(ranking) > 1]
        return [(r, ranking) for r, ranking in own if r in worst or (r.measured and r.measured.median > 1)]

    @cached_property
    def choices(self) -> list[tuple[Record, Record, float | None]]:
        """Errors of models chosen by the exact solution, by the residual, and how many times larger these are.

        Networks that are trained are chosen as the paper does only.
        """
        found = []
        for problem in PROBLEMS:
            for method in (method for method in METHODS if method != "PINN"):
                exact, residual = (self.error("accuracy", problem, method, score=by) for by in ("exact", "residual"))
                a, b = exact.measured, residual.measured
                found.append((exact, residual, b.median / a.median if a and b and a.median else None))
        return found

    def growth(self, method: str, axis: str) -> tuple[float, float, list[int], bool] | None:
        """Return the exponents of the first and the last doubling of a size, the sizes, and whether that is stored."""
        for cell in self.book.select(kind="complexity", method=method, axis=axis).cells:
            sizes, seconds = cell["extra"]["sizes"], cell["extra"]["seconds"]
            slopes = (exponent(sizes[ends], seconds[ends]) for ends in (slice(2), slice(-2, None)))
            return *slopes, sizes, bool(cell.get("stored"))
        return None

    @cached_property
    def solvers(self) -> list[tuple[Record, Summary]]:
        """How many times larger errors are with the solver of the final fit than with that of the search, per seed."""
        found = []
        for problem in PROBLEMS:
            for method in METHODS:
                runs = self.runs(problem, method)
                pairs = zip(runs.numbers("test", "relative_rmse"), runs.numbers("extra", "as_searched"), strict=True)
                ratios = summarise((a / b for a, b in pairs if b > 0), stored=runs.stored)
                found += [(self.error("accuracy", problem, method), ratios)] if ratios else []
        return found

    @property
    def theorems(self) -> list[Theorem]:
        """The checks of the theorems on every selected model, by check and method."""
        result = []
        for name in CHECKS:
            for method in METHODS:
                cells = [c for c in self.book.select(kind="theorems", method=method).cells if name in c["theorems"]]
                found = tuple(cell["theorems"][name] for cell in cells)
                result += [Theorem(name, method, found, Ledger(tuple(cells)).stored)] if found else []
        return result

    @cached_property
    def speed(self) -> list[tuple[Record, ...]]:
        """Seconds of PINN alone and with the search, its evaluations, and seconds of PI-BLS, at the tables' points."""
        found: list[tuple[Record, ...]] = []
        for problem in PROBLEMS:
            slow, fast = (self._costs(problem, method) for method in ("PINN", "PI-BLS"))
            length = self.number("accuracy", problem, "PINN", "evaluations", "extra", score="exact")
            if slow[0].measured and fast[0].measured:
                found.append((*slow, length, *fast))
        return found

    def _costs(self, problem: str, method: str) -> tuple[Record, Record]:
        fit = self.number("accuracy", problem, method, "seconds", score="exact")
        runs = self.runs(problem, method)
        sums = [a + b for a, b in zip(runs.numbers("seconds"), runs.numbers("search_seconds"), strict=True)]
        return fit, replace(fit, quantity="seconds and search", measured=summarise(sums, stored=runs.stored))

    def hardware(self, problem: str, method: str) -> str:
        """Return the hardware that the fits of a method were computed on: a device, or one core of a machine."""
        cells = self.runs(problem, method).cells
        cores = [re.sub(r"^\d+ cores? of | and one .*$", "", c["made"].get("machine", "")) for c in cells]
        places = (c["extra"].get("device") or f"one core of {core}" for c, core in zip(cells, cores, strict=True))
        return ", ".join(sorted(set(places)))

    @cached_property
    def races(self) -> tuple[int, int, int, int]:
        """How many scales were chosen by races, how many the last length changed; how many settings; and searches."""
        cells = self.book.select(kind="accuracy", method="PINN").cells
        courses = [c["extra"]["course"] for c in cells if c["extra"].get("course")]
        pilots = [[a["settings"]["scale"] for a in own] for course in courses for own in course["pilots"].values()]
        chosen = [[a["settings"] for a in course["leaders"]] for course in courses]
        changed = (sum(own[-1] != own[-2] for own in every if len(own) > 1) for every in (pilots, chosen))
        return len(pilots), *changed, len(courses)

    @property
    def gaps(self) -> tuple[Summary, float, float] | None:
        """Longest stretch without a training point over the seeds, largest error of PI-BLS on advection, its stretch.

        None with fewer than two seeds.
        """
        runs = self.runs("advection", "PI-BLS")
        gaps = [_largest_gap(Setting("advection", cell["n_train"], cell["seed"])) for cell in runs.cells]
        lengths, errors = summarise(gaps), runs.numbers("test", "relative_rmse")
        if lengths is None or lengths.count < 2:
            return None
        return lengths, max(errors), gaps[errors.index(max(errors))]

    def seeds(self, problem: str) -> str:
        """Return how many seeds the points of a figure of errors stand for."""
        cells = self.book.select(kind="accuracy", problem=problem, score="exact").cells
        counts = Counter((cell["method"], cell["n_train"]) for cell in cells).values()
        return " to ".join(map(str, sorted({min(counts, default=0), max(counts, default=0)})))

    def wider(self, problem: str, **wanted: Any) -> str:
        """Return the settings chosen in the wider space: networks without enhancement nodes are no broad ones."""
        cells = self.book.select(kind="beyond", problem=problem, **wanted).cells
        flat = sum(cell["settings"].get("enhancement_nodes") == 0 for cell in cells)
        if not flat:
            return "PI-BLS, wider space"
        share = "all" if flat == len(cells) else f"{flat} of {len(cells)}"
        return f"wider space, {share} with feature nodes only"

    def settings(self, problem: str, method: str) -> tuple[int, int]:
        """Return how many settings a search space has, and how many cannot be fitted to the equation.

        >>> found = Findings(Ledger(()), published(), "quick")
        >>> found.settings("poisson_star", "PI-BLS"), found.settings("advection", "PI-BLS")
        ((729, 243), (243, 0))
        """
        space = self.paper.space(problem, method)
        count = math.prod(len(values) for values in space.values())
        order = max(statement.form.order for statement in catalogue()[problem]().statements)
        rough = sum(activation(name).smoothness < order for name in space["activation"])
        return count, count // len(space["activation"]) * rough


def _largest_gap(setting: Setting) -> float:
    return float(np.diff(np.sort(np.concatenate([[0.0], setting.points.interior[:, 0], [1.0]]))).max())
