"""What a study consists of: tasks, each of which computes a few cells that belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.methods.settings import recorded
from pibls.studies.cells import Cell, Spec, Store
from pibls.studies.complexity import AXES, growth_cell
from pibls.studies.coverage import REPETITIONS, coverage_cell
from pibls.studies.grids import Grid, grid
from pibls.studies.profiles import PROFILES, Profile
from pibls.studies.protocol import (
    SCORES,
    Selection,
    Setting,
    curves,
    error_as_searched,
    fit_all,
    fit_timed,
    rebuilt,
    select,
    select_all,
    solve_cell,
)
from pibls.studies.published import METHODS, PAPER_NAMES, published
from pibls.tuning.automatic import Method

__all__ = ["Task", "plan"]

_Where = tuple[int, int]  # number of points and seed
_STAGES = 5
_FIGURE_N = {"advection": 30, "poisson_square": 100, "poisson_star": 100, "diffusion_reaction": 50}
# Seconds that tasks took on one quiet core at 100 points; only the remaining time is told by them.
_COSTS = {"PI-BLS": 8.0, "PI-ELM": 2.5, "BPI-ELM": 5.0, "PINN": 20.0, "solve": 1.0}


@dataclass(frozen=True)
class Task:
    """One piece of work and the cells that come of it."""

    kind: str
    problem: str
    method: str
    n_train: int
    seed: int
    profile: str

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The cells that it computes."""
        return _KINDS[self.kind].specs(self)

    @property
    def stage(self) -> int:
        """When it is run: later stages use what earlier ones have stored, and tables come before figures."""
        if self.method == "PINN" and self.kind in ("search", "accuracy"):
            return 2 * (self.n_train != published().table_size(self.problem)) + (self.kind == "accuracy")
        return _STAGES - 1 if self.kind == "time" else 1 if self.kind == "complexity" else 0

    @property
    def together(self) -> bool:
        """Whether it trains many networks at once, which a GPU does best, one such task at a time."""
        return self.method == "PINN" and self.kind != "complexity"

    @property
    def cost(self) -> float:
        """Rough seconds of work, to tell the remaining time by."""
        return 0.2 + _COSTS[self.method] * min(1.0, self.n_train / 100.0) * _KINDS[self.kind].cost

    def missing(self, store: Store) -> bool:
        """Whether one of its cells is not there yet."""
        return not all(store.has(spec) for spec in self.specs)

    def run(self, store: Store) -> None:
        """Compute its cells, and store each as it is finished."""
        for spec, cell in _KINDS[self.kind].run(self, store):
            store.write(spec, cell)

    def spec(self, kind: str, score: str | None = None, **changes: Any) -> Spec:
        """Return the specification of a cell of this task."""
        return Spec(
            kind, self.problem, self.method, score=score, **{"n_train": self.n_train, "seed": self.seed, **changes}
        )

    @property
    def batch(self) -> str:
        """What it has in common with the same task for other numbers of points and seeds."""
        return f"{self.kind}: {self.method}, {self.problem}"

    def __str__(self) -> str:
        return f"{self.batch}, N = {self.n_train}, seed {self.seed}"


@dataclass(frozen=True)
class _Kind:
    """How tasks of one kind are computed; later stages use what earlier ones have stored."""

    specs: Callable[[Task], tuple[Spec, ...]]
    run: Callable[[Task, Store], Iterable[tuple[Spec, Cell]]]
    cost: float


def plan(profile: str, only: Sequence[str] | None = None) -> list[list[Task]]:
    """Return the tasks of a profile by stage; ``only`` keeps those of given problems, methods or kinds.

    Examples
    --------
    >>> [len(stage) for stage in plan("quick", ["advection", "PI-BLS", "accuracy", "time"])]
    [15, 0, 0, 0, 1]
    """
    if profile not in PROFILES:
        raise InputError(
            f"The 'profile' parameter of run_study must be one of {', '.join(map(repr, PROFILES))}. "
            f"Got {shorten(profile)} instead."
        )
    tasks = [task for name in PAPER_NAMES for task in _tasks(name, profile)]
    tasks += [
        Task("complexity", "poisson_square", method, published().table_size("poisson_square"), 0, profile)
        for method in PROFILES[profile].seeds
    ]
    tasks = _picked(tasks, only)
    return [[task for task in tasks if task.stage == stage] for stage in range(_STAGES)]


def _tasks(name: str, profile: str) -> list[Task]:
    chosen, paper = PROFILES[profile], published()
    table = paper.table_size(name)
    tasks = []
    sizes = _sizes(name, chosen)
    for method in chosen.seeds:
        if method == "PINN":
            # Networks of all seeds are searched together, and trained together those of the table, then the others.
            tasks += [Task("search", name, method, n, 0, profile) for n in sizes]
            tasks += [Task("accuracy", name, method, n, 0, profile) for n in sizes[:2]]
        else:
            settings = _settings(name, method, chosen, sizes)
            tasks += [Task("accuracy", name, method, n, seed, profile) for n, seed in settings]
        tasks.append(Task("time", name, method, paper.time_size(name), 0, profile))
    beyond, solves = (chosen.count(name, seeds) for seeds in (chosen.seeds["PI-BLS"], chosen.solves))
    tasks += [Task("beyond", name, "PI-BLS", table, seed, profile) for seed in range(beyond)]
    tasks += [Task("solve", name, "solve", table, seed, profile) for seed in range(solves)]
    tasks += [Task("coverage", name, "BPI-ELM", table, 0, profile)] if name in chosen.covered else []
    return tasks


def _sizes(name: str, chosen: Profile) -> list[int]:
    """Return the numbers of points at which methods are run, that of the table first."""
    table = published().table_size(name)
    others = [n for n in published().sizes(name) if n != table]
    return [table, *sorted({*chosen.sizes(name, others), _FIGURE_N[name]} - {table})]


def _settings(name: str, method: str, chosen: Profile, sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return numbers of points and seeds with which a method is run."""
    table = published().table_size(name)
    seeds = chosen.count(name, chosen.seeds[method])
    return [(n, seed) for n in sizes for seed in range(seeds if n == table else chosen.other_seeds)]


def _picked(tasks: list[Task], only: Sequence[str] | None) -> list[Task]:
    """Keep the tasks that agree with every kind of word given: problems, methods, kinds."""
    if not only:
        return tasks
    # "solve" is a method too; as a kind it says the same.
    words = {"problem": set(PAPER_NAMES), "method": set(METHODS), "kind": set(_KINDS)}
    for word in only:
        if not any(word in known for known in words.values()):
            raise InputError(
                f"The 'only' parameter of run_study names problems, methods or kinds of cells: "
                f"{', '.join(sorted(set().union(*words.values())))}. Got {shorten(word)} instead."
            )
    for attribute, known in words.items():
        if wanted := known & set(only):
            tasks = [task for task in tasks if getattr(task, attribute) in wanted]
    if not tasks:
        raise InputError(
            f"The 'only' parameter of run_study asks for {', '.join(only)} together, and the profile has no such "
            "cells. Leave one of them out, or take the other profile."
        )
    return tasks


def _accuracy_specs(task: Task) -> tuple[Spec, ...]:
    result: list[Spec] = []
    for n, seed in _members(task):
        result += [task.spec("accuracy", score, n_train=n, seed=seed) for score in _scores(task)]
        if seed == 0 and n == _FIGURE_N[task.problem]:
            result.append(task.spec("curve", "exact", n_train=n, seed=seed))
    return tuple(result)


def _search_specs(task: Task) -> tuple[Spec, ...]:
    return tuple(task.spec("search", score, n_train=n, seed=s) for n, s in _members(task) for score in _scores(task))


def _scores(task: Task) -> Sequence[str]:
    """Return what settings are chosen by: networks that are trained, which takes longest, as the paper does alone."""
    return ("exact",) if task.together else SCORES


def _members(task: Task) -> list[tuple[int, int]]:
    """Return the numbers of points and seeds that a task is about: many where networks are trained together."""
    if not task.together:
        return [(task.n_train, task.seed)]
    chosen, table = PROFILES[task.profile], published().table_size(task.problem)
    sizes = [task.n_train]
    if task.kind == "accuracy" and task.n_train != table:
        sizes = _sizes(task.problem, chosen)[1:]
    return _settings(task.problem, task.method, chosen, sizes)


def _found(task: Task, _: Store) -> Iterator[tuple[Spec, Cell]]:
    """Search for all seeds of a number of points together; yield what each score chose, to be fitted later."""
    settings = [Setting(task.problem, n, seed) for n, seed in _members(task)]
    for setting, chosen in zip(settings, select_all(_grid(task), settings, _scores(task)), strict=True):
        for score, selection in chosen.items():
            entries = {"settings": recorded(selection.method), "extra": {"cv_score": selection.score}}
            spec = task.spec("search", score, n_train=setting.n_train, seed=setting.seed)
            costs = {"search_seconds": selection.seconds, "configurations": selection.configurations}
            yield spec, spec.cell(**entries, **costs)


def _chosen(task: Task, store: Store, settings: Mapping[_Where, Setting]) -> dict[_Where, dict[str, Selection]]:
    """Return what the search chooses for every score; of networks that are trained together, it has been stored."""
    if not task.together:
        return {where: select(_grid(task), setting) for where, setting in settings.items()}
    found = {}
    for n, seed in settings:
        spec = task.spec("search", "exact", n_train=n, seed=seed)
        if not store.has(spec):
            for one, new in _found(replace(task, kind="search", n_train=n), store):
                store.write(one, new)
        cell: Any = store.read(spec)
        method, costs = rebuilt(task.method, cell["settings"]), (cell["configurations"], cell["search_seconds"])
        found[n, seed] = {"exact": Selection(method, cell["extra"]["cv_score"], *costs)}
    return found


def _searched(task: Task, store: Store) -> Iterator[tuple[Spec, Cell]]:
    """Search, fit the selected settings to all points, and measure; a curve is of the first score's solution."""
    missing = [spec for spec in task.specs if not (task.together and store.has(spec))]
    settings = {(spec.n_train, spec.seed): Setting(task.problem, spec.n_train, spec.seed) for spec in missing}
    chosen = _chosen(task, store, settings)
    # Scores mostly agree; what both chose is fitted once.
    once = {(w, repr(one.method)): (one.method, settings[w]) for w, by in chosen.items() for one in by.values()}
    fits = dict(zip(once, fit_all(list(once.values())), strict=True))
    for spec in missing:
        where = spec.n_train, spec.seed
        selection = chosen[where][str(spec.score)]
        fitted = fits[where, repr(selection.method)]
        extra = {"cv_score": selection.score, "space": "beyond" if task.kind == "beyond" else "paper"}
        if (spec.kind, spec.score, spec.n_train) == ("accuracy", "exact", published().table_size(task.problem)):
            extra |= error_as_searched(selection.method, _grid(task), settings[where])
        extra = curves(fitted.solution) if spec.kind == "curve" else extra
        costs = {"search_seconds": selection.seconds, "configurations": selection.configurations}
        yield spec, spec.cell(**fitted.entries, **costs, extra=extra)


def _grid(task: Task) -> Grid:
    return grid(task.problem, task.method, beyond=task.kind == "beyond")


def _selected(task: Task, store: Store) -> Method:
    """Return the method that the paper's search chose, stored or searched for now."""
    table = published().table_size(task.problem)
    cell = store.read(task.spec("accuracy", "exact", n_train=table, seed=0))
    if cell is not None:
        return rebuilt(task.method, cell["settings"])
    return select(_grid(task), Setting(task.problem, table, 0), ("exact",))["exact"].method


def _time_specs(task: Task) -> tuple[Spec, ...]:
    return tuple(task.spec("time", seed=run) for run in range(PROFILES[task.profile].runs))


def _time(task: Task, store: Store) -> Iterator[tuple[Spec, Cell]]:
    method = _selected(task, store)
    missing = [spec for spec in task.specs if not store.has(spec)]
    for spec in missing:
        setting = Setting(task.problem, task.n_train, spec.seed)
        yield spec, spec.cell(**fit_timed(method, setting, warm=spec == missing[0]).entries)


def _solve(task: Task, _: Store) -> Iterator[tuple[Spec, Cell]]:
    yield task.specs[0], task.specs[0].cell(**solve_cell(Setting(task.problem, task.n_train, task.seed)))


def _coverage(task: Task, _: Store) -> Iterator[tuple[Spec, Cell]]:
    yield task.specs[0], task.specs[0].cell(**coverage_cell(task.problem, task.n_train, REPETITIONS))


def _complexity(task: Task, _: Store) -> Iterator[tuple[Spec, Cell]]:
    for spec in task.specs:
        yield spec, spec.cell(**growth_cell(task.method, spec.variant))


_KINDS: Mapping[str, _Kind] = {
    "search": _Kind(_search_specs, _found, 1.0),
    "accuracy": _Kind(_accuracy_specs, _searched, 1.0),
    "beyond": _Kind(lambda task: tuple(task.spec("beyond", score) for score in SCORES), _searched, 1.0),
    "solve": _Kind(lambda task: (task.spec("solve"),), _solve, 1.0),
    "coverage": _Kind(lambda task: (task.spec("coverage"),), _coverage, 8.0),
    "time": _Kind(_time_specs, _time, 1.0),
    "complexity": _Kind(lambda task: tuple(task.spec("complexity", variant=axis) for axis in AXES), _complexity, 1.0),
}
