"""Which constants matter: each one that decides is halved and doubled, one at a time, on a sample of the golden table.

    python -m benchmarks.settings [--out out/settings.csv] [--processes N] [--only cells/loop.py:_GROWTH ...]
        [--part 1/2] [--seconds 4] [--keep]

A solve with a changed constant is held against the one without: another status, an estimate that differs by more than
10 %, work that differs by more than 5 %. A constant is tried on the problems whose solves run a function that reads it,
as many as take so many seconds. The constant is changed in the source as it is imported, in a process of its own, so
that everything made of it changes as well. Every trial is a line of the file, written as it ends; those that are there
are not tried again. At the end a line per constant is printed; ``--keep`` writes them to ``benchmarks/results``. A
constant that changes nothing on any problem is a candidate for deletion.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

# All of these take long to import, and are the same in every process.
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special  # noqa: F401
import sympy  # noqa: F401

from benchmarks.house import DECIDING, SOURCE, constants, package, trees
from benchmarks.records import added, load, save
from benchmarks.spread import spread
from benchmarks.tables import FOLDER, provenance

# Sets that no choice may rest on are left out.
TRIED = ("linear", "nonlinear", "evolution", "everyday", "ill_posed", "inverse", "families")
FACTORS = (0.5, 2.0)
_ESTIMATE, _WORK = 0.1, 0.05  # changes that count
_DEAREST = 2.0  # seconds of a problem, beyond which it is left out
_PATIENCE = 4.0  # times the usual seconds, after which a solve is given up
Key = tuple[str, str, float, int]


@dataclass(frozen=True)
class Constant:
    """A constant: the file it is in, and its name there."""

    place: str
    name: str

    def __str__(self) -> str:
        return f"{self.place}:{self.name}"


@dataclass(frozen=True)
class Trial:
    """One solve with one constant changed by a factor; the one without is named by no constant and a factor of 1."""

    constant: str
    factor: float
    set: str
    problem: str
    tol: float
    seed: int
    status: str
    estimate: float
    work: float
    seconds: float

    @property
    def key(self) -> Key:
        """The problem that was solved."""
        return self.set, self.problem, self.tol, self.seed

    def differs(self, usual: Trial) -> set[str]:
        """Return what is not as it is without the change."""
        found = {"status"} if self.status != usual.status else set()
        if _apart(self.estimate, usual.estimate) > _ESTIMATE:
            found.add("estimate")
        return found | ({"work"} if _apart(self.work, usual.work) > _WORK else set())


def _apart(one: float, two: float) -> float:
    """Return the relative difference of two numbers; none where neither is known."""
    if one == two or (np.isnan(one) and np.isnan(two)):
        return 0.0
    ratio = abs(one / two) if two else np.inf
    return float(max(ratio, 1 / ratio) - 1) if np.isfinite(ratio) and ratio > 0 else np.inf


def every_constant() -> list[Constant]:
    """Return all constants that decide."""
    found = trees().items()
    return [Constant(str(p.relative_to(SOURCE)), n) for p, t in found if package(p) in DECIDING for n in constants(t)]


# A constant that is changed -------------------------------------------------------------------------------------------


def scaled(value: Any, factor: float) -> Any:
    """Return a number, or all numbers of a collection, times a factor; whole ones stay whole, and change at least by 1.

    >>> scaled(0.3, 2), scaled(1, 0.5), scaled({2: (3, True)}, 2), scaled("a", 2)
    (0.6, 0, {2: (6, True)}, 'a')
    """
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        other = round(value * factor)
        return other if other != value or value == 0 else value + (1 if factor > 1 else -1)
    if isinstance(value, float | np.ndarray):
        return value * factor
    if isinstance(value, dict):
        return type(value)((key, scaled(own, factor)) for key, own in value.items())
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(scaled(own, factor) for own in value)
    return value


class Changed(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Imports one module with one of its constants changed, and leaves the others to those that come after."""

    def __init__(self, constant: Constant, factor: float) -> None:
        path = SOURCE / constant.place
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        super().__init__(".".join(parts[:-1] if parts[-1] == "__init__" else parts), str(path))
        self._constant, self._factor = constant, factor

    def find_spec(self, fullname: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return where the module is, if it is the one."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """Compile the module with a line after the constant that changes it."""
        tree = ast.parse(Path(self.path).read_text(encoding="utf-8"))
        owner, _, name = self._constant.name.rpartition(".")
        body = tree.body if not owner else next(n.body for n in tree.body if getattr(n, "name", "") == owner)
        at = max(number for number, node in enumerate(body) if name in _assigned(node))
        line = f"{name} = __import__('benchmarks.settings', fromlist=['a']).scaled({name}, {self._factor})"
        body.insert(at + 1, ast.parse(line).body[0])
        return compile(ast.fix_missing_locations(tree), self.path, "exec")


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]


# Solves ---------------------------------------------------------------------------------------------------------------


def attempt(task: tuple[Constant | None, float, tuple[tuple[Key, float], ...]]) -> list[Trial]:
    """Solve some problems, each with a limit of seconds, with a constant changed."""
    constant, factor, problems = task
    if constant is not None:
        sys.meta_path.insert(0, Changed(constant, factor))
    made = partial(Trial, str(constant or ""), factor)
    try:
        from benchmarks.runner import solved

        rows = [solved(key, longest=limit) for key, limit in problems]
    except Exception as met:  # the library itself cannot be imported
        return [made(*key, type(met).__name__, np.nan, np.nan, 0.0) for key, _ in problems]
    return [made(*row.key, row.status, row.estimate, row.work, row.seconds) for row in rows]


def walked(key: Key) -> tuple[Trial, set[tuple[str, str]]]:
    """Solve a problem as it is; return that, and the files it ran in with the names that were read there."""
    from benchmarks.runner import solved

    solved(key)  # so that nothing is left to import
    usual, seen = solved(key), set[CodeType]()
    made = Trial("", 1.0, *key, usual.status, usual.estimate, usual.work, usual.seconds)
    if usual.seconds > _DEAREST:
        return made, set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            seen.add(frame.f_code)

    sys.setprofile(look)
    solved(key)
    sys.setprofile(None)
    read = {(str(Path(c.co_filename).relative_to(SOURCE)), name) for c in seen for name in ("", *c.co_names)}
    return made, read


def readers(all_constants: Iterable[Constant]) -> dict[Constant, set[tuple[str, str]]]:
    """Return, by constant, the files in which it has a name, and that name; none where all that runs there reads it.

    A constant is read under the name it is imported by; defaults of functions and other constants are made of it when
    the module is imported, and then every function of the module may read it.
    """
    parsed = {str(path.relative_to(SOURCE)): tree for path, tree in trees().items()}
    found: dict[Constant, set[tuple[str, str]]] = {}
    imports: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for place, tree in parsed.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pibls."):
                source = "/".join((node.module or "").split(".")[1:])
                for one in node.names:
                    for path in (f"{source}.py", f"{source}/__init__.py"):
                        imports.setdefault((path, one.name), set()).add((place, one.asname or one.name))
    for constant in all_constants:
        own = constant.name.partition(".")[0]
        places = {(constant.place, own)} | imports.get((constant.place, own), set())
        found[constant] = places | {(place, "") for place, name in places if _at_import(parsed[place], name)}
    return found


def _at_import(tree: ast.Module, name: str) -> bool:
    """Tell whether a name is read while a module is imported: in a default, in a class or in another constant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            outer: list[ast.AST] = [*node.args.defaults, *(d for d in node.args.kw_defaults if d)]
        elif isinstance(node, ast.ClassDef | ast.Module):
            outer = [own for own in node.body if isinstance(own, ast.Assign | ast.AnnAssign | ast.Expr)]
        else:
            continue
        for part in (part for top in outer for part in ast.walk(top)):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                return True
    return False


def tasks(
    chosen: Sequence[Constant], usual: dict[Key, Trial], read: dict[Key, set[tuple[str, str]]], seconds: float
) -> Iterator[tuple[Constant, float, tuple[tuple[Key, float], ...]]]:
    """Yield the trials of each constant: the cheapest problems that read it, one set after the other."""
    names = readers(every_constant())
    for constant in chosen:
        found = [key for key in usual if names[constant] & read[key]]
        order = sorted(found, key=lambda key: (_turn(key, found, usual), usual[key].seconds))
        total, problems = 0.0, []
        for key in order:
            total += usual[key].seconds
            if problems and total > seconds:
                break
            problems.append((key, max(2.0, _PATIENCE * usual[key].seconds)))
        yield from ((constant, factor, tuple(problems)) for factor in FACTORS)


def _turn(key: Key, found: Sequence[Key], usual: dict[Key, Trial]) -> int:
    """Return how many problems of the same set are cheaper, so that every set has its turn."""
    return sum(other[0] == key[0] and usual[other].seconds < usual[key].seconds for other in found)


# The file and the summary ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What two changes of a constant did: on how many problems it was tried, and on how many each thing changed."""

    constant: str
    problems: int
    status: int
    estimate: int
    work: int
    failed: int
    matters: str


def summary(trials: Iterable[Trial], usual: dict[Key, Trial], chosen: Sequence[Constant]) -> list[Summary]:
    """Return a line per constant."""
    groups: dict[str, list[Trial]] = {str(constant): [] for constant in chosen}
    for trial in trials:
        if trial.constant in groups and trial.key in usual:
            groups[trial.constant].append(trial)
    lines = []
    for name, own in groups.items():
        changed = {(t.key, word) for t in own for word in t.differs(usual[t.key])}
        counts = [sum(word == of for _, word in changed) for of in ("status", "estimate", "work")]
        failed = len({t.key for t in own if t.status not in ("converged", "stalled", "ill-posed")})
        matters = "untried" if not own else "yes" if changed else "no"
        lines.append(Summary(name, len({t.key for t in own}), *counts, failed, matters))
    return lines


def main() -> None:
    """Find out what problems read, try what is missing, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/settings.csv"))
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", nargs="+", metavar="PLACE:NAME")
    parser.add_argument("--set", nargs="+", choices=TRIED, default=TRIED)
    parser.add_argument("--part", metavar="I/N", help="every N-th constant, from the I-th on")
    parser.add_argument("--seconds", type=float, default=4.0, help="of solves for each change of a constant")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    chosen = [c for c in every_constant() if not options.only or str(c) in options.only]
    if options.part:
        own, parts = (int(word) for word in options.part.split("/"))
        chosen = chosen[own - 1 :: parts]
    usual, read = reading(options.set, options.processes)
    trials = load(Trial, options.out)
    done = {(trial.constant, trial.factor) for trial in trials}
    missing = [t for t in tasks(chosen, usual, read, options.seconds) if t[2] and (str(t[0]), t[1]) not in done]
    missing.sort(key=lambda task: -sum(usual[key].seconds for key, _ in task[2]))
    print(f"{len(chosen)} constants, {len(usual)} problems, {len(missing)} trials", flush=True)
    with added(Trial, options.out) as add:
        for number, (task, found) in enumerate(spread(missing, attempt, options.processes), start=1):
            trials += found
            add(found)
            changes = [word for trial in found for word in sorted(trial.differs(usual[trial.key]))]
            print(f"{number}/{len(missing)} {task[0]} times {task[1]:g}: {', '.join(changes) or 'nothing'}", flush=True)
    lines = summary(trials, usual, chosen)
    for line in lines:
        print(", ".join(f"{key} {value}" for key, value in vars(line).items()))
    print(", ".join(f"{word}: {sum(line.matters == word for line in lines)}" for word in ("yes", "no", "untried")))
    if options.keep:
        save(Summary, FOLDER / "settings.csv", lines, head=f"# {json.dumps(provenance('settings'))}\n")


def reading(sets: Sequence[str], processes: int) -> tuple[dict[Key, Trial], dict[Key, set[tuple[str, str]]]]:
    """Solve every problem of the sample as it is; return these solves, and which names each reads in which file."""
    wanted = next(found for _, found in spread([sets], _sampled, 1))
    usual, read = {}, {}
    for key, (trial, names) in spread(wanted, walked, processes):
        if trial.seconds <= _DEAREST and trial.status != "exception":
            usual[key], read[key] = trial, names
    return usual, read


def _sampled(sets: Sequence[str]) -> list[Key]:
    """Return the problems of the sample; in a process of its own, as this one must not import the library."""
    from benchmarks.golden import sampled
    from benchmarks.runner import keys

    return sampled(keys(sets))


if __name__ == "__main__":
    main()
