"""Limits of real time and memory: a guard that watches a solve from outside and interrupts it as Ctrl-C does.

Where time goes cannot be foreseen: into SymPy, into shapes, into functions of the user. So nothing on the way looks at
a clock. A thread looks at clock and memory instead, and has :class:`Stopped` raised in the thread that solves, wherever
it is. Loops that keep their best solution so far return it, as they do after Ctrl-C; where there is none, an error says
so. Only a single call of LAPACK cannot be interrupted: :meth:`Guard.require_time` is asked before a long one.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pibls.errors import DeadlineError, ResourceError

__all__ = ["LONG", "STOPS", "Guard", "Stopped", "guarded", "in_words", "keep", "require_time", "room"]

# Imported beforehand, not by the thread that looks: loading a library waits for one that goes through all of them, as
# threadpoolctl does, which waits for the interpreter: neither would ever end. Windows has none.
RESOURCE: Any = importlib.import_module("resource") if importlib.util.find_spec("resource") else None
_STEP = 0.05  # seconds between two looks, less where memory grows fast
_AGAIN = 0.25  # seconds after which a stop that nothing has noticed is raised again
_GRACE, _SHARE = 0.7, 0.09  # seconds, and share of the deadline, for what follows a stop: the best solution so far
_RESERVE = 64 * 2**20  # bytes that a machine keeps: below that it ends programs at will
LONG = 1e8  # operations: less takes no time worth asking about
_TRIAL = 384  # size of the matrices that tell how fast a machine is
_EFFICIENCY = 0.5  # of a factorisation, beside a product of matrices
_SIGNAL = getattr(signal, "SIGURG", None)  # ignored by default, so that a late one does no harm

_CURRENT: ContextVar[Guard | None] = ContextVar("guard", default=None)


class Stopped(KeyboardInterrupt):
    """A limit of time or memory was reached; like Ctrl-C, it ends the search and keeps the best solution so far."""


STOPS = (KeyboardInterrupt, MemoryError)
"""What ends a search that has something to return: Ctrl-C, a limit, or memory that ran out."""


def resident() -> int:
    """Return how many bytes of memory this process holds now."""
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return _largest()


def _largest() -> int:
    """Return the most memory that this process ever held, where its present use is unknown."""
    if RESOURCE is None:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(RESOURCE.getrusage(RESOURCE.RUSAGE_SELF).ru_maxrss) * unit


@dataclass(eq=False)
class Guard:
    """Limits of one solve, and whether they were reached.

    >>> now = [0.0]
    >>> guard = Guard(10.0, clock=lambda: now[0])
    >>> guard.look()
    ''
    >>> now[0] = 12.5
    >>> guard.look()
    'The deadline ended the solve: 10 s have passed.'
    """

    deadline: float | None = None  # real seconds from now
    memory: float | None = None  # bytes that it may add to what the process holds; without it what is free decides
    clock: Callable[[], float] = field(default=time.monotonic)  # seconds
    holds: Callable[[], int] = resident  # bytes that this process holds
    free: Callable[[], int] | None = None  # bytes that it can still have
    words: str = ""  # why it was stopped
    noticed: bool = False  # whether a search has ended since
    over: bool = False
    swept: bool = False  # whether a stop that was on its way has been raised
    owner: object = None  # the problem that is solved
    kept: Callable[[str], Any] | None = None  # makes the best solution so far, given why it is the last
    ended: threading.Event = field(default_factory=threading.Event)
    begun: float = field(init=False)
    held: int = field(init=False)

    def __post_init__(self) -> None:
        self.begun, self.held = self.clock(), 0 if self.memory is None else self.holds()

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.begun

    @property
    def room(self) -> float:
        """Bytes that the solve may still take."""
        return np.inf if self.memory is None else max(0.0, self.memory - (self.holds() - self.held))

    def look(self) -> str:
        """Say which limit is reached, if any; steps after a stop that was noticed have a little more."""
        more = _GRACE + _SHARE * (self.deadline or 0.0) if self.noticed else 0.0
        if self.deadline is not None and self.elapsed >= self.deadline + more:
            return f"The deadline ended the solve: {self.deadline:g} s have passed."
        if self.memory is not None and self.holds() - self.held >= self.memory * (1.0 + 0.1 * self.noticed):
            return f"The memory limits the solve: it may take {self.memory / 2**20:.0f} MiB."
        if self.memory is None and self.free is not None and self.free() < _RESERVE and not self.noticed:
            return f"The memory limits the solve: less than {_RESERVE // 2**20} MiB are free."
        return ""

    def require_time(self, operations: float) -> None:
        """Stop before a call of LAPACK that would end long after the deadline."""
        if self.deadline is None or operations < LONG:
            return
        left = self.deadline + _GRACE + _SHARE * self.deadline - self.elapsed
        if operations / (_EFFICIENCY * self.rate) > left:
            self.words = (
                "The deadline limits the solve: the next step takes about "
                f"{operations / (_EFFICIENCY * self.rate):.2g} s of the {self.deadline:g} s."
            )
            raise Stopped

    @cached_property
    def rate(self) -> float:
        """Operations per second of this machine in products of matrices."""
        matrix = np.ones((_TRIAL, _TRIAL))
        took = []
        for _ in range(3):
            begun = time.perf_counter()
            matrix @ matrix
            took.append(time.perf_counter() - begun)
        return float(2.0 * _TRIAL**3 / min(took))

    def reached(self, outer: Guard, deadline: float | None, memory: float | None) -> bool:
        """Tell whether a limit of the solve around this one stopped it, and none of its own."""
        if (self.memory != memory) if "memory" in self.words else (self.deadline != deadline):
            outer.words = outer.words or outer.look() or self.words
            return True
        return False

    def error(self) -> DeadlineError | ResourceError:
        """Return the error of a solve that has nothing to return."""
        remedy = "There is no solution yet. "
        if "memory" in self.words:
            return ResourceError(f"{self.words} {remedy}Give more memory, ask for less accuracy, or use fewer points.")
        return DeadlineError(f"{self.words} {remedy}Give more time, or ask for less accuracy.")


def in_words(stop: BaseException) -> str:
    """Say why a search ended, and give the next steps their time.

    >>> in_words(KeyboardInterrupt())
    'It was interrupted. Run it again to continue.'
    """
    guard = _CURRENT.get()
    if isinstance(stop, Stopped) and guard is not None:
        guard.noticed = True
        return guard.words
    if isinstance(stop, ResourceError):
        return str(stop)
    return "The memory ran out." if isinstance(stop, MemoryError) else "It was interrupted. Run it again to continue."


def keep(problem: object, make: Callable[[str], Any]) -> None:
    """Keep an approximation of the problem that is solved, made from the words of a stop if nothing better comes."""
    guard = _CURRENT.get()
    if guard is not None and guard.owner is problem:
        guard.kept = make


def room() -> float:
    """Return how many bytes the solve at hand may still take; infinity without a limit."""
    guard = _CURRENT.get()
    return np.inf if guard is None else guard.room


def require_time(operations: float) -> None:
    """Stop the solve at hand before a long call of LAPACK if there is no time for it; nothing without a deadline."""
    guard = _CURRENT.get()
    if guard is not None and guard.deadline is not None:
        guard.require_time(operations)


@contextmanager
def guarded(guard: Guard) -> Iterator[Guard]:
    """Watch a block; it is stopped when a limit is reached, and an error says so where nothing catches that."""
    outer = _CURRENT.get()  # a solve within another has the limits that are left to that
    own = guard.deadline, guard.memory
    if outer is not None and outer.deadline is not None:
        guard.deadline = min(guard.deadline or np.inf, outer.deadline - outer.elapsed)
    if outer is not None and outer.memory is not None:
        guard.memory = min(guard.memory or np.inf, outer.room)
    token = _CURRENT.set(guard)
    try:
        with _messenger() as send:
            watcher = threading.Thread(target=_watch, args=(guard, send), daemon=True)
            try:
                watcher.start()
                yield guard
            finally:
                # No call comes before this, so that no stop does; one that is on its way arrives below.
                guard.over = True
                while True:
                    try:
                        _end(guard, watcher)
                        break
                    except Stopped:
                        continue
    except Stopped:
        if outer is not None and guard.reached(outer, *own):
            raise  # what called this solve is over as well
        raise guard.error() from None
    except MemoryError as error:
        if isinstance(error, ResourceError):
            raise
        words = "The memory ran out before there was a solution. Ask for less accuracy, or use fewer points."
        raise ResourceError(words) from error
    finally:
        _CURRENT.reset(token)


def _watch(guard: Guard, send: Callable[[], object]) -> None:
    """Look at the limits until the solve is over, and stop it when one is reached."""
    last, again = False, 0.0
    # A short solve ends before the first look, which takes longer than some of them.
    step = longest = _STEP if guard.deadline is None else min(_STEP, guard.deadline)
    left = guard.memory or np.inf
    while not guard.ended.wait(step) and not guard.over:
        if words := guard.look():
            guard.words = guard.words or words
            if guard.noticed != last or time.monotonic() >= again:
                last, again = guard.noticed, time.monotonic() + _AGAIN
                send()
        if guard.memory is not None:
            # Memory that grows on as fast reaches its limit at the next look, and does not pass it before.
            before, left = left, guard.room
            step = min(longest, step * left / (before - left)) if before > left else longest


def _end(guard: Guard, watcher: threading.Thread) -> None:
    """End the watch, and take back a stop that has not been raised yet."""
    guard.ended.set()
    if watcher.ident is not None:
        watcher.join()
    if guard.words and not guard.swept and not _uses_signal():
        # A pending stop is raised here, where it is caught: taken back, it would leave the interpreter waiting for it.
        guard.swept = True
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(threading.get_ident()), ctypes.py_object(Stopped))


@contextmanager
def _messenger() -> Iterator[Callable[[], object]]:
    """Yield a function that has a stop raised in this thread.

    A signal reaches the main thread also while it sleeps or waits; any other thread gets it at its next step in Python.
    """
    own = threading.get_ident()
    if not _uses_signal():
        yield lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(own), ctypes.py_object(Stopped))
        return
    before = signal.signal(_SIGNAL, _stop)  # type: ignore[arg-type]
    try:
        yield lambda: signal.pthread_kill(own, _SIGNAL)  # type: ignore[arg-type]
    finally:
        signal.signal(_SIGNAL, before)  # type: ignore[arg-type]


def _uses_signal() -> bool:
    if _SIGNAL is None or threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(_SIGNAL) in (signal.SIG_DFL, signal.SIG_IGN, _stop)


def _stop(*_: Any) -> None:
    """Stop the solve that is running; a signal that comes late, from elsewhere, or once more, does nothing."""
    guard = _CURRENT.get()
    if guard is not None and guard.words and not guard.over and guard.look():
        raise Stopped
