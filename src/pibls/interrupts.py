"""Signals that ask the command line to end: Ctrl-C, and SIGTERM of batch systems and containers, are treated alike."""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["INTERRUPTED", "code", "listen"]

INTERRUPTED = 128 + signal.SIGINT
_received: list[int] = []  # of this process, which ends soon


def listen() -> None:
    """Have both signals interrupt the program as Ctrl-C does, and note which it was."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)


def _interrupt(number: int, _: FrameType | None) -> None:
    _received.append(number)
    raise KeyboardInterrupt


def code(otherwise: int = INTERRUPTED) -> int:
    """Return the exit code of a program that was asked to end, 130 or 143; the other one if it was not.

    >>> code(3)
    3
    """
    return 128 + _received[0] if _received else otherwise
