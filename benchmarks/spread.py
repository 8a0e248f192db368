"""Tasks over all cores, each in a process of its own, and files of their rows that a later run goes on from."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.records import added, load

Row = TypeVar("Row")
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


def resumed(
    kind: type[Row],
    out: Path,
    tasks: Mapping[Any, Task],
    work: Callable[[Task], Row | list[Row]],
    processes: int,
    *,
    key: Callable[[Row], Hashable],
    told: Callable[[Row], str],
    begin: Callable[[], object] = lambda: None,
) -> list[Row]:
    """Do the tasks whose keys a file has no rows of, add their rows as they come, and return the rows of all tasks.

    Every row is told of in a line, unless there is nothing to tell. ``begin`` is called before the first task.
    """
    rows = load(kind, out)
    done = set(map(key, rows))
    missing = [task for own, task in tasks.items() if own not in done]
    if missing:
        begin()
    with added(kind, out) as add:
        for number, (_, made) in enumerate(spread(missing, work, processes), start=1):
            found = made if isinstance(made, list) else [made]
            rows += found
            add(found)
            for words in filter(None, map(told, found)):
                print(f"{number}/{len(missing)} {words}", flush=True)
    return [row for row in rows if key(row) in tasks]


def _alone(pipe: Connection, work: Callable[[Any], Any], task: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    pipe.send(work(task))
