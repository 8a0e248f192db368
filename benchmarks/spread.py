"""Tasks over all cores, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def spread(tasks: Sequence[Task], work: Callable[[Task], Result], processes: int) -> Iterator[tuple[Task, Result]]:
    """Do every task in a process of its own, so many at once, the first ones first; yield results as they come.

    A process that dies without a result is left out.
    """
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    waiting, running = list(reversed(tasks)), {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                task = waiting.pop()
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=_alone, args=(theirs, work, task), daemon=True)
                process.start()
                theirs.close()
                running[ours] = (task, process)
            for ready in wait(list(running)):
                task, process = running.pop(ready)
                try:
                    yield task, ready.recv()
                except EOFError:
                    print(f"{task}: the process ended without a result", file=sys.stderr, flush=True)
                process.join()
    finally:
        for _, process in running.values():
            process.terminate()


def _alone(pipe: Connection, work: Callable[[Any], Any], task: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pipe.send(work(task))
