"""Run the missing tasks of a study on all cores; whenever it is stopped, finished ones are kept."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from pibls.checks import cut, shorten
from pibls.errors import InputError, MissingDependencyError, PiblsError
from pibls.methods.fit import found_device
from pibls.paper.cells import Store
from pibls.paper.made import made
from pibls.paper.tasks import Task, plan
from pibls.runtime import blas_threads
from pibls.sweeps.processes import become_worker
from pibls.sweeps.workers import executor_of
from pibls.tuning.progress import reporter

_ENDED = (
    "A process ended before its task did: for want of memory (run again, with fewer workers), or because a script "
    "calls run_study outside of: if __name__ == '__main__'."
)


@dataclass(frozen=True)
class StudyProgress:
    """How far a study is."""

    # done, total: tasks that are finished, and all of them; those of earlier runs count as finished
    done: int
    total: int
    seconds: float  # since the start of this run
    remaining: float | None  # estimated seconds until the end; None before anything is finished
    message: str  # what was finished last
    batch: str = ""  # the method and problem of which the last task of a kind was finished; empty in between

    def __str__(self) -> str:
        left = "" if self.remaining is None else f", {_clock(self.remaining)} left"
        return f"{self.done}/{self.total} after {_clock(self.seconds)}{left}: {self.message}"


def run_study(
    out: str | Path,
    profile: str = "quick",
    workers: int | None = None,
    progress: Callable[[StudyProgress], object] | bool | None = None,
    only: Sequence[str] | None = None,
    executor: Any = None,
) -> tuple[str, ...]:
    """Compute the missing cells of the study of the paper and store each as it is finished.

    Parameters
    ----------
    out
        Folder; the cells go to ``<out>/cells``.
    profile
        ``"quick"`` (minutes on two cores, without PINNs) or ``"full"`` (everything; PINNs need torch).
    workers
        Processes that work at once, each with one BLAS thread; the available cores if left out. 1: in this process.
    progress
        Called with a :class:`StudyProgress` after every task. ``True`` shows a line on the terminal, ``False`` nothing;
        left out, that line on a terminal and one per batch of tasks where the output goes elsewhere.
    only
        Names of problems, methods or kinds of cells, numbers of points as ``"N=30"`` and seeds as ``"seed=0"``, to run
        only those.
    executor
        A ``concurrent.futures.Executor`` or a ``Client`` of Dask that computes the tasks instead of ``workers``; all of
        its workers must see the same folder.

    Returns
    -------
    tuple of str
        What failed and why, task by task; nothing if all is well. What failed is tried again by the next run.
    """
    # The folder comes last: what is refused leaves nothing behind.
    if executor is not None and workers is not None:
        raise InputError("The 'executor' parameter of run_study stands for 'workers'. Leave one of them out.")
    name, given = ("workers", workers) if executor is None else ("executor", executor)
    crew = executor_of(given, name, "run_study")
    stages = _stages(profile, only)
    store = _store(out)
    shown = _line if progress is None and not sys.stderr.isatty() else progress
    with reporter(shown, "run_study", "StudyProgress") as report:
        # Long tasks first: a short one at the end leaves no core waiting for long.
        missing = [sorted((t for t in stage if t.missing(store)), key=lambda task: -task.cost) for stage in stages]
        course = _Tally(sum(map(len, stages)), list(chain(*missing)), report)
        failures: list[str] = []
        for task, failure in _outcomes(missing, store, crew, made(profile, only)):
            failures += [f"{task}: {failure}"] if failure else []
            course.finished(task)
    store.write_failures(failures)
    return tuple(failures)


def _stages(profile: str, only: Sequence[str] | None) -> list[list[Task]]:
    """Return the tasks by stage; trainings are refused where torch is missing."""
    stages = plan(profile, only)
    if find_spec("torch") is None and any(task.method == "PINN" for stage in stages for task in stage):
        raise MissingDependencyError(
            "The PINNs of the study need torch, which is not installed: pip install 'pibls[torch]', or name the other "
            "methods in 'only'."
        )
    return stages


def _store(out: object) -> Store:
    if not isinstance(out, str | Path):
        raise InputError(f"The 'out' parameter of run_study must be a path. Got {shorten(out)} instead.")
    store = Store(Path(out))
    try:
        store.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"The 'out' parameter of run_study must be a folder that can be written to. Got {shorten(str(out))} "
            f"instead ({error})."
        ) from error
    return store


class _Tally:
    """Counts finished tasks and their seconds."""

    def __init__(self, total: int, missing: Sequence[Task], report: Callable[[StudyProgress], None]):
        self.total, self.done = total, total - len(missing)
        self.left = sum(task.cost for task in missing)
        self.batches = Counter(task.batch for task in missing)
        self.spent, self.report, self.start = 0.0, report, time.perf_counter()
        report(StudyProgress(self.done, self.total, 0.0, None, "start"))

    def finished(self, task: Task) -> None:
        self.done += 1
        self.left -= task.cost
        self.spent += task.cost
        self.batches[task.batch] -= 1
        batch = "" if self.batches[task.batch] else task.batch
        seconds = time.perf_counter() - self.start
        remaining = seconds * self.left / self.spent
        self.report(StudyProgress(self.done, self.total, seconds, remaining, str(task), batch))


def _outcomes(
    stages: Sequence[Sequence[Task]], store: Store, crew: Executor | int, origin: Mapping[str, str]
) -> Iterator[tuple[Task, str]]:
    """Yield every task as it is finished, with its failure if any; a stage begins when the one before is finished."""
    count = min(crew, max(map(len, stages))) if isinstance(crew, int) else None
    if count is not None and count <= 1:
        for task in (task for stage in stages for task in stage):
            yield task, _compute(task, store, origin)
        return
    context = multiprocessing.get_context("spawn")
    strangers = set(multiprocessing.active_children())
    # A GPU is one more worker, for those tasks that it does best; they use nothing of the others.
    lanes: list[tuple[int | None, Callable[[Task], bool]]] = [(count, lambda _: True)]
    if count is not None and any(task.together for stage in stages for task in stage) and found_device():
        lanes = [(count, lambda task: not task.together), (1, lambda task: task.together)]
    own = [ProcessPoolExecutor(n, mp_context=context, initializer=become_worker) for n, _ in lanes if n is not None]
    pools = own if isinstance(crew, int) else [crew]
    waiting = [[list(filter(mine, stage)) for stage in stages] for _, mine in lanes]
    running: list[dict[Future[str], Task]] = [{} for _ in lanes]
    try:
        while True:
            for pool, later, now in zip(pools, waiting, running, strict=True):
                while later and not now:
                    now |= {pool.submit(_compute, task, store, origin): task for task in later.pop(0)}
            futures = {future: task for now in running for future, task in now.items()}
            if not futures:
                return
            for future in wait_for(futures, return_when=FIRST_COMPLETED).done:
                if not any(future in now for now in running):
                    continue
                lane = next(i for i, now in enumerate(running) if future in now)
                if not isinstance(future.exception(), BrokenExecutor):
                    yield running[lane].pop(future), future.result()
                else:
                    # Nor can what waits for these processes be computed.
                    yield from ((task, _ENDED) for task in (*running[lane].values(), *chain(*waiting[lane])))
                    running[lane], waiting[lane] = {}, []
    finally:
        # An interrupted study does not wait for trainings of minutes; what they were at is computed again.
        for child in set(multiprocessing.active_children()) - strangers:
            child.terminate()
        for future in (future for now in running for future in now):
            future.cancel()
        for pool in own:
            pool.shutdown(wait=True, cancel_futures=True)


def _compute(task: Task, store: Store, origin: Mapping[str, str]) -> str:
    """Compute the cells of a task; return its failure, if any."""
    try:
        if task.method == "PINN":
            # Loaded before threads are capped, which reaches only libraries that are there.
            import torch  # noqa: F401
        with blas_threads(1):
            task.run(store, origin)
    except PiblsError as error:
        return str(error)
    except Exception as error:  # one task that fails costs its own cells and nothing else
        return f"{type(error).__name__}: {cut(str(error), 300)}"
    return ""


def _line(state: StudyProgress) -> None:
    """Write one line per batch: a file or a log is no place for a line that changes, nor for one per task."""
    if state.batch:
        print(replace(state, message=state.batch), file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    """Return a duration as people write it.

    >>> _clock(75.2)
    '1:15'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
