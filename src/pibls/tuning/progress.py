"""The progress of a solve, as it is shown."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pibls.checks import cut, shorten
from pibls.errors import InputError


@dataclass(frozen=True)
class Progress:
    """A moment of a solve.

    Attributes
    ----------
    stage
        ``"scan"`` (choice of scales of a network), ``"solve"`` or ``"estimate"``.
    seconds
        Since the start.
    nodes
        Number of weights: nodes of one network, or weights of all cells.
    residual
        Relative residual at held-out points of the best solution so far.
    estimate
        Its estimated relative error.
    tolerance
        The relative error that is to be reached.

    Examples
    --------
    >>> print(Progress("solve", 1.0, 100, 1e-3, 1e-4, 1e-6))
    solving                1.0 s  100 weights  residual 1e-03  estimated error 1e-04 (tolerance 1e-06)
    """

    stage: str
    seconds: float
    nodes: int = 0
    residual: float | None = None
    estimate: float | None = None
    tolerance: float | None = None

    def __str__(self) -> str:
        facts = [f"{_DOING.get(self.stage, self.stage):20s} {self.seconds:5.1f} s"]
        if self.nodes:
            facts.append(f"{self.nodes} weights")
        if self.residual is not None:
            facts.append(f"residual {self.residual:.0e}")
        wanted = "" if self.tolerance is None else f"tolerance {self.tolerance:.0e}"
        if self.estimate is not None:
            facts.append(f"estimated error {self.estimate:.0e}" + (f" ({wanted})" if wanted else ""))
        elif wanted:
            facts.append(wanted)
        return "  ".join(facts)


_DOING = {"scan": "choosing scales", "solve": "solving", "estimate": "estimating the error"}


class _Line:
    """A line of text on a stream that is written again and again, so that its clock goes on between two steps."""

    def __init__(self, stream: Any, width: int) -> None:
        self.stream, self.width = stream, width
        self.now: Any = None
        self.since = 0.0
        self.ended = threading.Event()
        self.clock = threading.Thread(target=self._tick, name="pibls progress", daemon=True)

    def __enter__(self) -> _Line:
        self.clock.start()
        return self

    def tell(self, now: Any) -> None:
        """Take note of a step, which is shown from now on."""
        self.now, self.since = now, time.perf_counter()
        self._write(str(now))

    def _tick(self) -> None:
        while not self.ended.wait(0.5):
            if hasattr(self.now, "seconds"):
                passed = time.perf_counter() - self.since
                self._write(str(replace(self.now, seconds=self.now.seconds + passed)))

    def _write(self, text: str) -> None:
        self.stream.write(f"\r{cut(text, self.width):<{self.width}}")
        self.stream.flush()

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.clock.join()
        self.stream.write(f"\r{'':<{self.width}}\r")
        self.stream.flush()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


@contextmanager
def reporter(
    progress: Any, owner: str = "solve", state: str = "Progress", tolerance: float | None = None
) -> Iterator[Callable[[Any], None]]:
    """Yield the function to call at every step: the user's, one that writes a line, or none.

    ``None`` shows a line on a terminal and in a notebook, and nothing anywhere else (files, pipes); ``True`` shows it
    always, ``False`` never. Messages name the function that it is a parameter of, and the class that it is called with.
    """
    if progress is False:
        yield lambda _: None
        return
    notebook = _in_notebook()
    stream = sys.stdout if notebook else sys.stderr
    if progress in (None, True) and (stream is None or not (progress or notebook or stream.isatty())):
        yield lambda _: None
    elif progress is None or progress is True:
        width = shutil.get_terminal_size().columns - 1 if stream.isatty() else 110
        with _Line(stream, width) as line:
            yield lambda now: line.tell(_aimed(now, tolerance))
    elif callable(progress):
        yield lambda now: _call(progress, _aimed(now, tolerance), owner, state)
    else:
        raise InputError(
            f"The 'progress' parameter of {owner} must be callable, True, False or None. "
            f"Got {shorten(progress)} instead."
        )


def _aimed(now: Any, tolerance: float | None) -> Any:
    return now if tolerance is None else replace(now, tolerance=tolerance)


def _call(progress: Callable[[Any], object], now: object, owner: str, state: str) -> None:
    try:
        progress(now)
    except Exception as error:
        raise InputError(
            f"The 'progress' parameter of {owner} raised {type(error).__name__}: {cut(str(error), 200)}. It is "
            f"called with one {state}."
        ) from error
