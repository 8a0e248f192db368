"""Who does many tasks: this process, processes of its own, an executor of the user, or a cluster.

The work is a function of a task. It goes to every worker once; after that only tasks and results travel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

from pibls.checks import check_integer, cut, shorten
from pibls.errors import InputError, MissingDependencyError
from pibls.runtime import available_cores, blas_threads, is_dask
from pibls.sweeps.processes import in_processes, result_of

Work = Callable[[Any], Any]
Outcomes = Iterator[tuple[Any, Any]]


@dataclass(frozen=True)
class Workers:
    """Do tasks one after the other in this process; a task without a result has a sentence that says why."""

    def packed(self, work: Any) -> bytes:
        """Return a function, or an argument of one, as it goes to the workers: nothing goes anywhere."""
        del work
        return b""

    def takes(self, work: Any) -> str:
        """Return why a function, or an argument of one, cannot go to the workers; an empty text if it can."""
        try:
            self.packed(work)
        except Exception as error:  # whatever an object of the user says
            return cut(str(error)) or type(error).__name__
        return ""

    def outcomes(self, work: Work, tasks: Iterable[Any]) -> Outcomes:
        """Yield every task as it is finished, and its result."""
        return ((task, work(task)) for task in tasks)


@dataclass(frozen=True)
class Processes(Workers):
    """Processes that are started for these tasks, and end with them."""

    count: int

    def packed(self, work: Any) -> bytes:
        """Return a function as it goes to another process."""
        return bytes(ForkingPickler.dumps(work))

    def outcomes(self, work: Work, tasks: Iterable[Any]) -> Outcomes:
        """Yield every task as it is finished, and its result."""
        return in_processes(work, iter(tasks), self.count)


@dataclass(frozen=True, eq=False)
class Pool(Workers):
    """An executor of the user, which may have other processes."""

    executor: Executor

    def packed(self, work: Any) -> bytes:
        """Return a function as it goes to another process."""
        return bytes(ForkingPickler.dumps(work))

    def outcomes(self, work: Work, tasks: Iterable[Any]) -> Outcomes:
        """Yield every task as it is finished, and its result."""
        packed = b"" if self.takes(work) else self.packed(work)
        # Only the script itself knows its own functions; some executors send these along.
        own = not packed or b"__main__" in packed
        return _collected(self.executor, work if own else functools.partial(_unpacked, packed), tasks)


@dataclass(frozen=True, eq=False)
class Cluster(Workers):
    """The workers of a Dask client."""

    client: Any

    def packed(self, work: Any) -> bytes:
        """Return a function as it goes to a worker."""
        import cloudpickle  # comes with Dask, and takes functions of scripts along

        return bytes(cloudpickle.dumps(work))

    def outcomes(self, work: Work, tasks: Iterable[Any]) -> Outcomes:
        """Yield every task as it is finished, and its result."""
        everywhere = self.client.scatter(work, broadcast=True, hash=False)
        return _collected(self.client.get_executor(pure=False), everywhere, tasks)


def workers_of(executor: object, owner: str) -> Workers:
    """Return the workers that were asked for: a number of processes (one per core if left out), or an executor.

    >>> workers_of(1, "sweep"), workers_of(3, "sweep")
    (Workers(), Processes(count=3))
    """
    if is_dask(executor):
        return Cluster(executor)
    found = executor_of(executor, "executor", owner)
    if isinstance(found, Executor):
        return Pool(found)
    return Workers() if found == 1 else Processes(found)


def executor_of(given: object, name: str, owner: str) -> Executor | int:
    """Return an executor, that of a Dask client, or a number of processes: one per core if nothing is given.

    >>> executor_of(2, "executor", "sweep")
    2
    """
    if isinstance(given, Executor):
        return given
    if is_dask(given):
        executor: Executor = given.get_executor(pure=False)  # type: ignore[attr-defined]
        return executor
    remedy = "Or give an Executor of concurrent.futures, or a Client of Dask."
    return available_cores() if given is None else check_integer(name, given, owner, minimum=1, remedy=remedy)


def connected(address: str) -> Any:
    """Return a client of the Dask cluster at an address, which is that of its scheduler or the name of its file."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependencyError(
            "A cluster needs Dask, which is not installed. Install it with pip install 'pibls[dask]'."
        ) from None
    try:
        return Client(scheduler_file=address) if Path(address).is_file() else Client(address)
    except (OSError, ValueError) as error:
        raise InputError(
            f"There is no Dask scheduler at {shorten(address)} ({cut(str(error))}). Give an address such as "
            "tcp://host:8786, or the file that the scheduler was told to write."
        ) from None


def _unpacked(packed: bytes, task: Any) -> Any:
    """Do a task with a function that came as bytes, which every process opens once."""
    return _opened(packed)(task)


@functools.lru_cache(maxsize=1)
def _opened(packed: bytes) -> Work:
    work: Work = ForkingPickler.loads(packed)  # bytes that this program made
    return work


def _collected(executor: Executor, work: Any, tasks: Iterable[Any]) -> Outcomes:
    # Threads of an executor are to share the cores, too.
    with blas_threads(1):
        futures = {executor.submit(_call, work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], result_of(future)
        finally:
            for future in futures:
                future.cancel()


def _call(work: Work, task: Any) -> Any:
    return work(task)
