"""The tasks of a study, each of which computes a few cells that belong together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.methods.fit import recorded
from pibls.paper.cells import Cell, Spec, Store
from pibls.paper.complexity import AXES, growth_cell
from pibls.paper.coverage import REPETITIONS, coverage_cell
from pibls.paper.grids import Grid, grid
from pibls.paper.profiles import PROFILES, Profile
from pibls.paper.protocol import checked, curves, error_as_searched, fit_all, rebuilt, solve_cell, time_all
from pibls.paper.published import METHODS, PAPER_NAMES, published
from pibls.paper.selecting import SCORES, Selection, select_all
from pibls.paper.setting import Setting

Where = tuple[int, int]
"""Number of points and seed."""
Entries = Iterable[tuple[Spec, Cell]]
"""The entries of cells, as they are computed."""

_STAGES = 5
CHECKED = ("PI-BLS", "PI-ELM")  # methods whose theorems are checked: the others do not take a solver
_FIGURE_N = {"advection": 30, "poisson_square": 100, "poisson_star": 100, "diffusion_reaction": 50}
# Seconds that tasks took on one quiet core at 100 points; only the remaining time is told by them.
_COSTS = {"PI-BLS": 8.0, "PI-ELM": 2.5, "BPI-ELM": 5.0, "PINN": 20.0, "solve": 1.0}


@dataclass(frozen=True)
class Task:
    """One piece of work and the cells that come of it, for one or several numbers of points and seeds."""

    kind: str
    problem: str
    method: str
    members: tuple[Where, ...]

    @property
    def n_train(self) -> int:
        """Number of points of its first member."""
        return self.members[0][0]

    @property
    def specs(self) -> tuple[Spec, ...]:
        """The cells that it computes; beside those of the paper's figures, the curves."""
        kind, result = _KINDS[self.kind], list[Spec]()
        for where in self.members:
            scores = self.scores if kind.searched else (None,)
            result += [self.spec(self.kind, where, by, variant=own) for by in scores for own in kind.variants]
            if self.kind == "accuracy" and where == (_FIGURE_N[self.problem], 0):
                result.append(self.spec("curve", where, "exact"))
        return tuple(result)

    @property
    def scores(self) -> Sequence[str]:
        """The scores that choose settings: for trained networks, which take longest, the paper's score alone."""
        return ("exact",) if self.together else SCORES

    @property
    def stage(self) -> int:
        """When it is run: later stages use stored results of earlier ones, and tables come before figures."""
        if self.kind in ("time", "theorems", "complexity"):
            return 1 if self.kind == "complexity" else 2
        others = self.together and self.n_train != published().table_size(self.problem)
        return 3 * others + (self.together and self.kind == "accuracy")

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

    def run(self, store: Store, made: Mapping[str, str]) -> None:
        """Compute its cells, and store each as it is finished, with where it comes from."""
        for spec, entries in _KINDS[self.kind].run(self, store):
            store.write(spec, spec.cell(**entries, made=made))

    def spec(self, kind: str, where: Where, score: str | None = None, **more: Any) -> Spec:
        """Return the specification of a cell of this task."""
        return Spec(kind, self.problem, self.method, *where, score=score, **more)

    def setting(self, where: Where) -> Setting:
        """Return the problem with the points of a member."""
        return Setting(self.problem, *where)

    @property
    def batch(self) -> str:
        """The key that it shares with the same task for other numbers of points and seeds."""
        return f"{self.kind}: {self.method}, {self.problem}"

    def __str__(self) -> str:
        sizes, seeds = (sorted(set(numbers)) for numbers in zip(*self.members, strict=True))
        words = "seeds" if len(seeds) > 1 else "seed"
        return f"{self.batch}, N = {_run(sizes)}, {words} {_run(seeds)}"


def _run(numbers: Sequence[int]) -> str:
    """Return numbers by their ends.

    >>> _run([3]), _run([0, 1, 2])
    ('3', '0 to 2')
    """
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


@dataclass(frozen=True)
class _Kind:
    """How tasks of one kind are computed; later stages use results that earlier ones have stored."""

    run: Callable[[Task, Store], Entries]
    cost: float = 1.0
    searched: bool = False  # whether there is a cell per score that settings are chosen by
    variants: Sequence[str] = ("",)


def plan(profile: str, only: Sequence[str] | None = None) -> list[list[Task]]:
    """Return the tasks of a profile by stage; ``only`` keeps those of given problems, methods, kinds, sizes or seeds.

    >>> [len(stage) for stage in plan("quick", ["advection", "PI-BLS", "accuracy", "time"])]
    [15, 0, 1, 0, 0]
    >>> print(*plan("quick", ["advection", "PI-BLS", "accuracy", "N=30", "seed=3"])[0])
    accuracy: PI-BLS, advection, N = 30, seed 3
    """
    if profile not in PROFILES:
        raise InputError(
            f"The 'profile' parameter of run_study must be one of {', '.join(map(repr, PROFILES))}. "
            f"Got {shorten(profile)} instead."
        )
    tasks = [task for name in PAPER_NAMES for task in _tasks(name, PROFILES[profile])]
    tasks += [
        Task("complexity", "poisson_square", method, ((published().table_size("poisson_square"), 0),))
        for method in PROFILES[profile].seeds
    ]
    tasks = _picked(tasks, only)
    return [[task for task in tasks if task.stage == stage] for stage in range(_STAGES)]


def _tasks(name: str, chosen: Profile) -> list[Task]:
    paper, tasks = published(), []
    table, *others = _sizes(name, chosen)
    for method in chosen.seeds:
        first = [(table, seed) for seed in range(chosen.count(name, chosen.seeds[method]))]
        rest = [(n, seed) for n in others for seed in range(chosen.others(method))]
        if method == "PINN":
            # Networks of all seeds are searched and trained together: those of the table, then all others.
            groups = [tuple(group) for group in (first, rest) if group]
            tasks += [Task(kind, name, method, group) for group in groups for kind in ("search", "accuracy")]
        else:
            tasks += [Task("accuracy", name, method, (where,)) for where in (*first, *rest)]
        tasks.append(Task("time", name, method, tuple((paper.time_size(name), seed) for _, seed in first)))
        tasks += [Task("theorems", name, method, tuple(first))] if method in CHECKED else []
    beyond, solves = (chosen.count(name, seeds) for seeds in (chosen.seeds["PI-BLS"], chosen.solves))
    tasks += [Task("beyond", name, "PI-BLS", ((table, seed),)) for seed in range(beyond)]
    tasks += [Task("solve", name, "solve", ((table, seed),)) for seed in range(solves)]
    tasks += [Task("coverage", name, "BPI-ELM", ((table, 0),))] if name in chosen.covered else []
    return tasks


def _sizes(name: str, chosen: Profile) -> list[int]:
    """Return the numbers of points at which methods are run, that of the table first."""
    table = published().table_size(name)
    others = [n for n in published().sizes(name) if n != table]
    return [table, *sorted({*chosen.sizes(name, others), _FIGURE_N[name]} - {table})]


def _picked(tasks: list[Task], only: Sequence[str] | None) -> list[Task]:
    """Keep the tasks that agree with every kind of word given: problems, methods, kinds, numbers of points, seeds."""
    if not only:
        return tasks
    # "solve" is a method too; as a kind it says the same.
    words = {"problem": set(PAPER_NAMES), "method": set(METHODS), "kind": set(_KINDS)}
    sizes, seeds = ({int(w.removeprefix(p)) for w in only if re.fullmatch(p + r"\d+", w)} for p in ("N=", "seed="))
    for word in only:
        if not (re.fullmatch(r"(N|seed)=\d+", word) or any(word in known for known in words.values())):
            raise InputError(
                "'only' takes problems, methods and kinds of cells: "
                f"{', '.join(sorted(set().union(*words.values())))}; or points and seeds as N=30 "
                f"and seed=0. Got {shorten(word)} instead."
            )
    for attribute, known in words.items():
        if wanted := known & set(only):
            tasks = [task for task in tasks if getattr(task, attribute) in wanted]
    narrowed = []
    for task in tasks:
        members = tuple((n, s) for n, s in task.members if n in (sizes or {n}) and s in (seeds or {s}))
        narrowed += [replace(task, members=members)] if members else []
    if not narrowed:
        raise InputError(
            f"'only' asks for {', '.join(only)} together, and the profile has no such "
            "cells. Leave one of them out, or take the other profile."
        )
    return narrowed


def _found(task: Task, store: Store) -> Entries:
    """Search for all members together; yield the choice of each score, to be fitted later."""
    members = [where for where in task.members if not store.has(task.spec("search", where, "exact"))]
    chosen = select_all(_grid(task), [task.setting(where) for where in members], task.scores, store)
    for where, own in zip(members, chosen, strict=True):
        for score, selection in own.items():
            entries = {"settings": recorded(selection.method), "extra": selection.extra, **selection.costs}
            yield task.spec("search", where, score), entries


def _chosen(task: Task, store: Store, members: Sequence[Where]) -> dict[Where, dict[str, Selection]]:
    """Return the choice of the search for every score; that of networks trained together has been stored."""
    if not task.together:
        settings = [task.setting(where) for where in members]
        return dict(zip(members, select_all(_grid(task), settings, task.scores), strict=True))
    for spec, entries in _found(replace(task, members=tuple(members)), store):
        store.write(spec, spec.cell(**entries))
    found = {}
    for where in members:
        cell: Any = store.read(task.spec("search", where, "exact"))
        method, costs = rebuilt(task.method, cell["settings"]), (cell["configurations"], cell["search_seconds"])
        found[where] = {"exact": Selection(method, cell["extra"]["cv_score"], *costs, cell["extra"].get("course", {}))}
    return found


def _searched(task: Task, store: Store) -> Entries:
    """Search, fit the selected settings to all points, and measure; a curve is of the first score's solution."""
    missing = [spec for spec in task.specs if not (task.together and store.has(spec))]
    settings = {where: task.setting(where) for where in dict.fromkeys((spec.n_train, spec.seed) for spec in missing)}
    chosen = _chosen(task, store, list(settings))
    # Scores mostly agree; what both chose is fitted once.
    once = {(w, repr(one.method)): (one.method, settings[w]) for w, by in chosen.items() for one in by.values()}
    fits = dict(zip(once, fit_all(list(once.values())), strict=True))
    for spec in missing:
        where = spec.n_train, spec.seed
        selection = chosen[where][str(spec.score)]
        solution, fitted = fits[where, repr(selection.method)]
        space = "beyond" if task.kind == "beyond" else "paper"
        extra = {"cv_score": selection.score, "space": space, **fitted["extra"], **selection.extra}
        if (spec.kind, spec.score, spec.n_train) == ("accuracy", "exact", published().table_size(task.problem)):
            extra |= error_as_searched(selection.method, _grid(task), settings[where])
        yield spec, {**fitted, "extra": curves(solution) if spec.kind == "curve" else extra, **selection.costs}


def _grid(task: Task) -> Grid:
    return grid(task.problem, task.method, beyond=task.kind == "beyond")


def _time(task: Task, store: Store) -> Entries:
    """Time the fit of the method that the paper's search chose, for every seed."""
    missing = [where for where in task.members if not store.has(task.spec("time", where))]
    found = _selected(task, store, missing)
    fits = time_all([(found[seed][0], task.setting((n, seed))) for n, seed in missing])
    for where, (_, entries) in zip(missing, fits, strict=True):
        yield task.spec("time", where), {**entries, "search_seconds": found[where[1]][1]}


def _selected(task: Task, store: Store, members: Sequence[Where]) -> dict[int, tuple[Any, float]]:
    """Return the choice of the paper's search for every seed, and its seconds, as stored or searched for now."""
    table = published().table_size(task.problem)
    known = {seed: store.read(task.spec("accuracy", (table, seed), "exact")) for _, seed in members}
    unknown = [(table, seed) for seed, cell in known.items() if cell is None]
    chosen = _chosen(task, store, unknown).items()
    found = {seed: (by["exact"].method, by["exact"].seconds) for (_, seed), by in chosen}
    for seed, cell in known.items():
        if cell is not None:
            found[seed] = rebuilt(task.method, cell["settings"]), cell["search_seconds"]
    return found


def _theorems(task: Task, store: Store) -> Entries:
    """Check the theorems on the method that the paper's search chose, for every seed."""
    found = _selected(task, store, task.members)
    for where in task.members:
        method = found[where[1]][0]
        entries = {"settings": recorded(method), "theorems": checked(method, task.setting(where))}
        yield task.spec("theorems", where), entries


def _each(entries: Callable[[Task, Spec], Cell]) -> Callable[[Task, Store], Entries]:
    """Return how cells are computed that need no stored ones."""
    return lambda task, _: ((spec, entries(task, spec)) for spec in task.specs)


_KINDS: Mapping[str, _Kind] = {
    "search": _Kind(_found, searched=True),
    "accuracy": _Kind(_searched, searched=True),
    "beyond": _Kind(_searched, searched=True),
    "solve": _Kind(_each(lambda task, spec: solve_cell(task.setting((spec.n_train, spec.seed))))),
    "coverage": _Kind(_each(lambda task, spec: coverage_cell(task.problem, spec.n_train, REPETITIONS)), 8.0),
    "theorems": _Kind(_theorems, 0.2),
    "time": _Kind(_time),
    "complexity": _Kind(_each(lambda task, spec: growth_cell(task.method, spec.variant)), variants=AXES),
}
