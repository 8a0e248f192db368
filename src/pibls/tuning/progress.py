"""The progress of a solve, as it is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        Width of the network at hand; the weights of all cells of a solve by cells.
    residual
        Relative residual at held-out points of the best solution so far.
    estimate
        Its estimated relative error.
    """

    stage: str
    seconds: float
    nodes: int = 0
    residual: float | None = None
    estimate: float | None = None

    def __str__(self) -> str:
        facts = [f"{self.stage:8s} {self.seconds:5.1f} s"]
        if self.nodes:
            facts.append(f"{self.nodes} nodes")
        if self.residual is not None:
            facts.append(f"residual {self.residual:.0e}")
        if self.estimate is not None:
            facts.append(f"error {self.estimate:.0e}")
        return "  ".join(facts)


@contextmanager
def reporter(progress: Any, owner: str = "solve", state: str = "Progress") -> Iterator[Callable[[Any], None]]:
    """Yield the function to call at every step: the user's, one that writes a line on the terminal, or none.

    ``None`` shows a line on a terminal and nothing anywhere else (files, pipes, notebooks); ``True`` shows it always,
    ``False`` never. Messages name the function that it is a parameter of, and what it is called with.
    """
    if progress is False or (progress is None and (sys.stderr is None or not sys.stderr.isatty())):
        yield lambda _: None
    elif progress is None or progress is True:
        from rich.console import Console

        with Console(stderr=True).status("start") as status:
            yield lambda now: status.update(str(now))
    elif callable(progress):
        yield lambda now: _call(progress, now, owner, state)
    else:
        raise InputError(
            f"The 'progress' parameter of {owner} must be callable, True, False or None. "
            f"Got {shorten(progress)} instead."
        )


def _call(progress: Callable[[Any], object], now: object, owner: str, state: str) -> None:
    try:
        progress(now)
    except Exception as error:
        raise InputError(
            f"The 'progress' parameter of {owner} raised {type(error).__name__}: {cut(str(error), 200)}. It is "
            f"called with one {state}."
        ) from error
