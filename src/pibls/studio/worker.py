"""A process that does the tasks of one page: requests come in as lines of JSON, and answers go out as such.

Run as ``python -m pibls.studio.worker BYTES``. It takes no more memory than that, answers one request after the other,
and ends with the process that started it. A SIGINT ends a solve with the best solution so far.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from types import FrameType
from typing import Any, TextIO

from pibls.checks import cut
from pibls.errors import PiblsError
from pibls.limits import RESOURCE
from pibls.runtime import format_bytes
from pibls.studio.workbench import Workbench
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


def listen(stream: TextIO) -> queue.Queue[dict[str, Any]]:
    """Return a queue of the requests on a stream; when it ends, so does the process, whatever it is doing."""
    requests: queue.Queue[dict[str, Any]] = queue.Queue()

    def read() -> None:
        for line in stream:
            requests.put(json.loads(line))
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    return requests


def serve(requests: queue.Queue[dict[str, Any]], out: TextIO, room: int) -> None:
    """Answer requests for ever."""

    def send(record: dict[str, Any]) -> None:
        out.write(json.dumps(finite(record), allow_nan=False) + "\n")
        out.flush()

    bench = Workbench(lambda progress: send({"progress": progress}))

    def interrupt(number: int, frame: FrameType | None) -> None:
        if bench.busy:  # nothing else is to be interrupted
            signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    send({"ready": True})
    while True:
        send(answer(bench, requests.get(), room))


def answer(bench: Workbench, request: dict[str, Any], room: int) -> dict[str, Any]:
    """Return the answer to a request; whatever goes wrong is told in words."""
    bench.busy = True
    try:
        found: dict[str, Any] = {"done": bench.tasks[request["task"]](**request["given"])}
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
    serve(listen(sys.stdin), out, room)


if __name__ == "__main__":
    main()
