"""What a study consists of: tasks, each of which computes a few cells that belong together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pibls.checks import shorten
from pibls.errors import InputError
from pibls.studies.cells import Cell, Spec, Store
from pibls.studies.complexity import AXES, growth_cell
from pibls.studies.coverage import REPETITIONS, coverage_cell
from pibls.studies.grids import grid
from pibls.studies.profiles import PROFILES
from pibls.studies.protocol import SCORES, Setting, curves, fit_timed, rebuilt, select, solve_cell
from pibls.studies.published import METHODS, PAPER_NAMES, published
from pibls.tuning.automatic import Method

__all__ = ["Task", "plan"]

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
    def cost(self) -> float:
        """Rough seconds of work, to tell the remaining time by."""
        return 0.2 + _COSTS[self.method] * min(1.0, self.n_train / 100.0) * _KINDS[self.kind].cost

    @property
    def variant(self) -> str:
        """What tells its cells from those of the other profile: only a PINN is trained differently."""
        return self.profile if self.method == "PINN" else ""

    def missing(self, store: Store) -> bool:
        """Whether one of its cells is not there yet."""
        return not all(store.has(spec) for spec in self.specs)

    def run(self, store: Store) -> None:
        """Compute and store its cells."""
        for spec, cell in zip(self.specs, _KINDS[self.kind].run(self, store), strict=True):
            store.write(spec, cell)

    def spec(self, kind: str, score: str | None = None, **changes: Any) -> Spec:
        """Return the specification of a cell of this task."""
        values = {"n_train": self.n_train, "seed": self.seed, "variant": self.variant, **changes}
        return Spec(kind, self.problem, self.method, score=score, **values)

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
    run: Callable[[Task, Store], Sequence[Cell]]
    stage: int
    cost: float


def plan(profile: str, only: Sequence[str] | None = None) -> list[list[Task]]:
    """Return the tasks of a profile by stage; ``only`` keeps those of given problems, methods or kinds.

    Examples
    --------
    >>> first, second = plan("quick", ["advection", "PI-BLS", "accuracy"])
    >>> len(first), len(second)
    (15, 0)
    """
    if profile not in PROFILES:
        raise InputError(
            f"The 'profile' parameter of run_study must be one of {', '.join(map(repr, PROFILES))}. "
            f"Got {shorten(profile)} instead."
        )
    tasks = [task for name in PAPER_NAMES for task in _tasks(name, profile)]
    tasks += [
        Task("complexity", "poisson_square", method, published().table_size("poisson_square"), 0, profile)
        for method in METHODS
    ]
    tasks = _picked(tasks, only)
    return [[task for task in tasks if _KINDS[task.kind].stage == stage] for stage in (0, 1)]


def _tasks(name: str, profile: str) -> list[Task]:
    chosen, paper = PROFILES[profile], published()
    table = paper.table_size(name)
    others = [n for n in paper.sizes(name) if n != table]
    tasks = []
    for method in METHODS:
        seeds = chosen.count(name, chosen.seeds[method])
        tasks += [Task("accuracy", name, method, table, seed, profile) for seed in range(seeds)]
        for n in sorted({*chosen.sizes(name, method, others), _FIGURE_N[name]} - {table}):
            tasks += [Task("accuracy", name, method, n, seed, profile) for seed in range(chosen.other_seeds[method])]
        tasks.append(Task("time", name, method, paper.time_size(name), 0, profile))
    beyond, solves = (chosen.count(name, seeds) for seeds in (chosen.seeds["PI-BLS"], chosen.solves))
    tasks += [Task("beyond", name, "PI-BLS", table, seed, profile) for seed in range(beyond)]
    tasks += [Task("solve", name, "solve", table, seed, profile) for seed in range(solves)]
    tasks += [Task("coverage", name, "BPI-ELM", table, 0, profile)] if name in chosen.covered else []
    return tasks


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
    drawn = task.seed == 0 and task.n_train == _FIGURE_N[task.problem]
    return (*(task.spec("accuracy", score) for score in SCORES), *([task.spec("curve", "exact")] if drawn else []))


def _searched(task: Task, _: Store) -> list[Cell]:
    """Search, fit the selected settings to all points, and measure; a curve is of the first score's solution."""
    beyond = task.kind == "beyond"
    setting = Setting(task.problem, task.n_train, task.seed)
    chosen = select(grid(task.problem, task.method, task.profile, beyond=beyond), setting)
    # Scores mostly agree; what both chose is fitted once.
    once = {repr(selection.method): selection.method for selection in chosen.values()}
    fits = {name: fit_timed(method, setting) for name, method in once.items()}
    cells = []
    for spec in task.specs:
        selection = chosen[str(spec.score)]
        fitted = fits[repr(selection.method)]
        told = {"cv_score": selection.score, "space": "beyond" if beyond else "paper"}
        extra = curves(fitted.solution) if spec.kind == "curve" else told
        costs = {"search_seconds": selection.seconds, "configurations": selection.configurations}
        cells.append(spec.cell(**fitted.entries, **costs, extra=extra))
    return cells


def _selected(task: Task, store: Store) -> Method:
    """Return the method that the paper's search chose, stored or searched for now."""
    table = published().table_size(task.problem)
    cell = store.read(task.spec("accuracy", "exact", n_train=table, seed=0))
    if cell is not None:
        return rebuilt(task.method, cell["settings"])
    space = grid(task.problem, task.method, task.profile)
    return select(space, Setting(task.problem, table, 0), ("exact",))["exact"].method


def _time_specs(task: Task) -> tuple[Spec, ...]:
    return tuple(task.spec("time", seed=run) for run in range(PROFILES[task.profile].runs[task.method]))


def _time(task: Task, store: Store) -> list[Cell]:
    method = _selected(task, store)
    cells = []
    for spec in task.specs:
        setting = Setting(task.problem, task.n_train, spec.seed)
        fitted = fit_timed(method, setting, warm=spec.seed == 0 and task.method != "PINN")
        cells.append(spec.cell(**fitted.entries))
    return cells


def _solve(task: Task, _: Store) -> list[Cell]:
    return [task.specs[0].cell(**solve_cell(Setting(task.problem, task.n_train, task.seed)))]


def _coverage(task: Task, _: Store) -> list[Cell]:
    return [task.specs[0].cell(**coverage_cell(task.problem, task.n_train, REPETITIONS))]


def _complexity(task: Task, _: Store) -> list[Cell]:
    return [spec.cell(**growth_cell(task.method, spec.variant)) for spec in task.specs]


_KINDS: Mapping[str, _Kind] = {
    "accuracy": _Kind(_accuracy_specs, _searched, 0, 1.0),
    "beyond": _Kind(lambda task: tuple(task.spec("beyond", score) for score in SCORES), _searched, 0, 1.0),
    "solve": _Kind(lambda task: (task.spec("solve"),), _solve, 0, 1.0),
    "coverage": _Kind(lambda task: (task.spec("coverage"),), _coverage, 0, 8.0),
    "time": _Kind(_time_specs, _time, 1, 1.0),
    "complexity": _Kind(
        lambda task: tuple(task.spec("complexity", variant=axis) for axis in AXES), _complexity, 1, 1.0
    ),
}
