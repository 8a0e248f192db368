"""A process that does the tasks of one page: requests come in as lines of JSON, and answers go out as such.

Run as ``python -m pibls.studio.worker BYTES``. It takes no more memory than that, answers one request after the other,
and ends with the process that started it. A SIGINT ends a solve with the best solution so far.
"""

from __future__ import annotations

import _thread
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import TextIO

from pibls.checks import cut
from pibls.errors import PiblsError
from pibls.limits import RESOURCE
from pibls.runtime import format_bytes
from pibls.studio.workbench import Record, Workbench
from pibls.writing import finite

_FOREIGN = "The problem could not be handled ({}). Change it, or report it with the problem file."


def limit_memory(room: int) -> None:
    """Let the process allocate so many bytes more than it has now, where the system has such limits."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:  # noqa: PTH123
            taken = int(stream.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        RESOURCE.setrlimit(RESOURCE.RLIMIT_AS, (taken + room, taken + room))
        RESOURCE.setrlimit(RESOURCE.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError, AttributeError):
        return


def _end() -> None:
    os._exit(0)


class Inbox:
    """Requests in the order that they came in; work done while there is none ends as soon as one comes.

    When the stream of requests ends, they are ``lost``: so does the process, whatever it is doing.
    """

    def __init__(self, stream: TextIO, lost: Callable[[], object] = _end, rest: float = 0.25) -> None:
        self.rest, self.came = rest, threading.Event()  # seconds without a request before other work begins
        self.requests: queue.Queue[Record] = queue.Queue()
        self.turn, self.aside = threading.Lock(), False
        threading.Thread(target=self._read, args=(stream, lost), daemon=True).start()

    def _read(self, stream: TextIO, lost: Callable[[], object]) -> None:
        for line in stream:
            with self.turn:
                self.requests.put(json.loads(line))
                self.came.set()
                if self.aside:
                    self.aside = False
                    _thread.interrupt_main()
        lost()

    def next(self) -> Record:
        """Return the next request, once there is one."""
        record = self.requests.get()
        with self.turn:
            if self.requests.empty():
                self.came.clear()
        return record

    def meanwhile(self, work: Callable[[], bool]) -> None:
        """Work step by step until there is a request, or nothing more to do."""
        with suppress(KeyboardInterrupt):
            more = self.requests.empty() and not self.came.wait(self.rest)
            while more:
                with self.turn:
                    self.aside = self.requests.empty()
                if not self.aside:
                    return
                more = work()
                with self.turn:
                    self.aside = False


def serve(inbox: Inbox, out: TextIO, room: int) -> None:
    """Answer requests for ever."""

    def send(record: Record) -> None:
        out.write(json.dumps(finite(record), allow_nan=False) + "\n")
        out.flush()

    bench = Workbench(lambda progress: send({"progress": progress}))

    def interrupt(number: int, frame: FrameType | None) -> None:
        bench.interrupted = True
        if bench.busy:  # nothing else is to be interrupted
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    send({"ready": True})
    while True:
        inbox.meanwhile(partial(step_ahead, bench))
        send(answer(bench, inbox.next(), room))


def step_ahead(bench: Workbench) -> bool:
    """Have a step done that nobody asked for; if it fails, none is done until something is asked."""
    bench.busy, bench.interrupted = True, False
    try:
        return bench.ahead()
    except Exception:  # of whatever library, and memory that runs out: what is asked for will be told
        return False
    finally:
        bench.busy = False


def answer(bench: Workbench, request: Record, room: int) -> Record:
    """Return the answer to a request; whatever goes wrong is told in words."""
    bench.busy, bench.interrupted = True, False
    try:
        found: Record = {"done": bench.tasks[request["task"]](**request["given"])}
    except PiblsError as error:
        found = {"refused": str(error)}
    except KeyboardInterrupt:
        found = {"refused": "It was cancelled before there was a solution."}
    except MemoryError:
        words = f"This needs more memory than the {format_bytes(room)} that a solve may take"
        found = {"refused": f"{words}. Ask for a larger tolerance, or a smaller problem."}
    except Exception as error:  # whatever a library does with a strange problem
        found = {"refused": _FOREIGN.format(f"{type(error).__name__}: {cut(str(error), 200)}")}
    bench.busy = False
    return found


def main() -> None:
    """Serve standard input and output; anything that prints goes to standard error."""
    room = int(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    limit_memory(room)
    serve(Inbox(sys.stdin), out, room)


if __name__ == "__main__":
    main()
