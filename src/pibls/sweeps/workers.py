"""Solves in other processes: each with one thread, and a process that ends costs its own problem alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    as_completed,
    wait,
)
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from pibls.checks import cut
from pibls.errors import InputError, PiblsError
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Solution
from pibls.tuning import solve

_ENDED = "The process ended before its solve did, perhaps for want of memory. Run it again with fewer processes."


@dataclass(frozen=True, eq=False)
class Job:
    """A problem to solve, and where its solution is kept, if anywhere."""

    index: tuple[int, ...]
    problem: Problem
    options: Mapping[str, Any]
    path: Path | None = None
    own: bool = False  # whether its problem has functions of the script that runs

    def run(self) -> Solution | str:
        """Solve, and keep the solution; return it, or the reason why there is none."""
        try:
            # One thread everywhere: the same bits, whatever the number of processes.
            with blas_threads(1), _interrupts() as seen:
                solution = solve(self.problem, progress=False, **self.options)
            if seen:
                raise KeyboardInterrupt
            if self.path is not None:
                solution.save(self.path)
            return solution
        except PiblsError as error:
            return str(error)
        except Exception as error:  # one that fails costs its own point and nothing else
            return f"{type(error).__name__}: {cut(str(error), 300)}"


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """Yield a list of the signals that come: a solve returns the best solution so far then, and that is not kept."""
    seen: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    ours = {number: old for number, old in before.items() if callable(old)}
    if threading.current_thread() is not threading.main_thread():
        ours = {}

    def note(number: int, frame: Any) -> None:
        seen.append(number)
        ours[signal.Signals(number)](number, frame)

    for number in ours:
        signal.signal(number, note)
    try:
        yield seen
    finally:
        for number, old in ours.items():
            signal.signal(number, old)


def needs_script(problem: Problem) -> bool:
    """Tell whether a problem has functions of the script that runs; refuse one that no other process can take."""
    try:
        return b"__main__" in bytes(ForkingPickler.dumps(problem))
    except Exception as error:  # whatever a function of the user says
        raise InputError(
            f"The problem cannot go to another process ({cut(str(error))}). Define its functions at the top of a "
            "module, or use executor=1."
        ) from error


def outcomes(jobs: Iterable[Job], executor: Executor | int) -> Iterator[tuple[Job, Solution | str]]:
    """Yield every job as it is finished, and its solution, or the reason why there is none."""
    if executor == 1:
        yield from ((job, job.run()) for job in jobs)
    elif isinstance(executor, int):
        yield from _in_processes(iter(jobs), executor)
    else:
        futures = {executor.submit(Job.run, job): job for job in jobs}
        try:
            for future in as_completed(futures):
                yield futures[future], _result(future)
        finally:
            for future in futures:
                future.cancel()


def _result(future: Future[Solution | str]) -> Solution | str:
    try:
        return future.result()
    except BrokenExecutor:
        return _ENDED
    except Exception as error:
        return f"{type(error).__name__}: {cut(str(error), 300)}"


def _in_processes(jobs: Iterator[Job], count: int) -> Iterator[tuple[Job, Solution | str]]:
    strangers = set(multiprocessing.active_children())
    pool, running = _pool(count), dict[Future[Any], Job]()
    try:
        while True:
            for job in islice(jobs, count - len(running)):
                running[_submitted(pool, job)] = job
            if not running:
                return
            done = wait(running, return_when=FIRST_COMPLETED).done
            lost = any(isinstance(future.exception(), BrokenExecutor) for future in done)
            for future in done if not lost else []:
                yield running.pop(future), _result(future)
            if lost:
                # All that were running are lost with one; each is tried once more, by itself.
                pool.shutdown(wait=True, cancel_futures=True)
                for job in running.values():
                    with _pool(1) as alone:
                        yield job, _result(_submitted(alone, job))
                pool, running = _pool(count), {}
    finally:
        # Nobody waits for solves that are not wanted any more.
        for child in set(multiprocessing.active_children()) - strangers:
            child.terminate()
        pool.shutdown(wait=True, cancel_futures=True)


def _pool(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn"), initializer=become_worker)


def _submitted(pool: ProcessPoolExecutor, job: Job) -> Future[Any]:
    try:
        with _without_main(job):
            return pool.submit(Job.run, job)
    except BrokenExecutor as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


@contextmanager
def _without_main(job: Job) -> Iterator[None]:
    """Have new processes not run the script again, unless its functions are needed there.

    A script needs no ``if __name__ == "__main__"`` then.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: main.__dict__[name] for name in ("__file__", "__spec__") if name in main.__dict__}
    if job.own:
        hidden = {}
    for name in hidden:
        main.__dict__[name] = None
    try:
        yield
    finally:
        main.__dict__.update(hidden)


def become_worker() -> None:
    """Leave Ctrl-C to the parent, and end with it even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: Any) -> None:
    wait_for_end([sentinel])
    os._exit(1)
