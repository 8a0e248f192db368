"""Tasks in processes of this program's own: a process that ends costs its own task alone."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from multiprocessing.connection import wait as wait_for_end
from multiprocessing.context import BaseContext
from multiprocessing.reduction import ForkingPickler
from typing import Any

from pibls.checks import cut

ENDED = "The process ended before its task did, perhaps for want of memory. Run it again with fewer processes."
_work: list[Callable[[Any], Any]] = []  # the work of a process of a pool, sent when it starts


def in_processes(work: Callable[[Any], Any], tasks: Iterator[Any], count: int) -> Iterator[tuple[Any, Any]]:
    """Yield every task as it is finished, and its result."""
    strangers = set(multiprocessing.active_children())
    waiting = iter(tasks)
    pool, running = _Pool(work, count), dict[Future[Any], Any]()
    try:
        while True:
            # One task more per process, so that none waits for the next.
            for task in islice(waiting, 2 * count - len(running)):
                running[pool.submitted(task)] = task
            if not running:
                return
            done = wait(running, return_when=FIRST_COMPLETED).done
            broken = any(isinstance(future.exception(), BrokenExecutor) for future in done)
            for future in done:
                if not isinstance(future.exception(), BrokenExecutor):
                    yield running.pop(future), result_of(future)
            if broken:
                pool.end()
                # The oldest had begun, and one of them may have ended the process: each is tried again, by itself.
                begun, later = islice(running.values(), count), islice(running.values(), count, None)
                yield from _one_by_one(work, list(begun))
                waiting = chain(list(later), waiting)
                pool, running = _Pool(work, count), {}
    finally:
        # Nobody waits for tasks that are not wanted any more.
        for child in set(multiprocessing.active_children()) - strangers:
            child.terminate()
        pool.end()


def _one_by_one(work: Callable[[Any], Any], tasks: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield tasks and results; a task that ends its process has a sentence instead."""
    pool = _Pool(work, 1)
    for task in tasks:
        future = pool.submitted(task)
        if isinstance(future.exception(), BrokenExecutor):
            pool.end()
            pool = _Pool(work, 1)
        yield task, result_of(future)
    pool.end()


def result_of(future: Future[Any]) -> Any:
    """Return the result of a task, or a sentence that says why there is none."""
    try:
        return future.result()
    except BrokenExecutor:
        return ENDED
    except Exception as error:  # of work, or of results that cannot travel
        return f"{type(error).__name__}: {cut(str(error), 300)}"


class _Pool:
    """Processes that have the work; each starts when there is a task for it."""

    def __init__(self, work: Callable[[Any], Any], count: int) -> None:
        self.packed = bytes(ForkingPickler.dumps(work))
        self.executor = ProcessPoolExecutor(count, _context(), initializer=_begin, initargs=(self.packed,))

    def submitted(self, task: Any) -> Future[Any]:
        """Return the result of a task in the future."""
        own = b"__main__" in self.packed or b"__main__" in bytes(ForkingPickler.dumps(task))
        try:
            with nullcontext() if own else _without_main():
                return self.executor.submit(_do, task)
        except BrokenExecutor as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def end(self) -> None:
        """Wait until all processes have ended."""
        self.executor.shutdown(wait=True, cancel_futures=True)


def _context() -> BaseContext:
    """Return the way to start processes: from one that has imported all this, if the system allows it."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pibls.sweeps.solving"])
    return context


@contextmanager
def _without_main() -> Iterator[None]:
    """Have new processes not run the script again, whose functions are not needed there.

    A script needs no ``if __name__ == "__main__"`` then.
    """
    main = sys.modules["__main__"]
    hidden: dict[str, Any] = {name: main.__dict__[name] for name in ("__file__", "__spec__") if name in main.__dict__}
    for name in hidden:
        main.__dict__[name] = None
    try:
        yield
    finally:
        main.__dict__.update(hidden)


def _begin(packed: bytes) -> None:
    become_worker()
    _work[:] = [ForkingPickler.loads(packed)]  # bytes that the parent made


def _do(task: Any) -> Any:
    return _work[0](task)


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
