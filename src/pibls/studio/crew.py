"""Worker processes as the page sees them: asked for something, waited for, interrupted, ended and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from pibls.errors import DeadlineError, InputError, ResourceError

Record = dict[str, Any]


@dataclass(frozen=True)
class Allowance:
    """How much a page may ask for."""

    room: int = 4 * 2**30  # bytes that one worker may take
    seconds: float = 120.0  # after which a solve ends with the best solution so far
    look: float = 20.0  # seconds that anything but a solve may take
    grace: float = 15.0  # seconds that a worker may go on after its deadline, to end its step and to draw
    pause: float = 0.25  # seconds without a key after which the whole file is read again
    steps: int = 200  # of a slider
    together: int = 2  # solves at one time
    waiting: int = 8  # solves that may wait for their turn
    desks: int = 3  # workers that read for all pages
    upload: int = 8 * 2**20  # bytes of one file


class WorkerProcess:
    """One worker process: it answers one question at a time."""

    def __init__(self, room: int) -> None:
        """Start a process; it can be asked at once, and answers when it has loaded the library."""
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(  # noqa: S603, our own module and a number
            [sys.executable, "-m", "pibls.studio.worker", str(room)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **alone},
        )
        self.turn = asyncio.Lock()
        self.ready = self.cancelled = False
        self.reader = ThreadPoolExecutor(1)

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self.process.poll() is None

    async def ask(
        self, task: str, given: Record, seconds: float, tell: Callable[[Record], None] | None = None
    ) -> Record:
        """Return the answer to a request; progress is told on the way, and refusals are raised in words."""
        async with self.turn:
            self.cancelled = False
            try:
                return await asyncio.wait_for(self._answer(task, given, tell), seconds)
            except TimeoutError:
                self.end()
                raise DeadlineError(
                    f"This took more than {seconds:.0f} seconds and was ended. Make the problem smaller, or ask for a "
                    "larger tolerance."
                ) from None
            except asyncio.CancelledError:
                self.end()
                raise

    async def _answer(self, task: str, given: Record, tell: Callable[[Record], None] | None) -> Record:
        line = json.dumps({"task": task, "given": given}).encode() + b"\n"
        await self._threaded(self._write, line)
        while line := await self._threaded(self._read):
            record: Record = json.loads(line)
            self.ready = True
            if "done" in record:
                found: Record = record["done"]
                return found
            if "refused" in record:
                raise InputError(record["refused"])
            if "progress" in record and tell is not None:
                tell(record["progress"])
        self.end()
        if self.cancelled:
            raise InputError("It was cancelled before there was a solution.")
        raise ResourceError(
            "The process of this solve ended before it had an answer, perhaps for want of memory. Ask for a larger "
            "tolerance, or make the problem smaller."
        )

    async def _threaded(self, work: Callable[..., Any], *given: Any) -> Any:
        """Wait for a pipe in a thread of the worker's own: not every system can wait for pipes otherwise."""
        return await asyncio.get_running_loop().run_in_executor(self.reader, work, *given)

    def _write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, which the answer tells
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def _read(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def interrupt(self) -> None:
        """Have a solve end with the best solution so far; asked twice, or before it began, at once."""
        gently = self.ready and not self.cancelled and os.name == "posix"
        self.cancelled = True
        if self.alive:
            self.process.send_signal(signal.SIGINT if gently else signal.SIGTERM)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.reader.shutdown(wait=True)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


@dataclass
class Crew:
    """The workers of all pages: some read for everyone, one is always ready, and only a few solve at one time."""

    allowance: Allowance = field(default_factory=Allowance)
    running: int = 0
    queued: int = 0
    _desks: list[WorkerProcess] = field(default_factory=list)
    _benches: list[WorkerProcess] = field(default_factory=list)
    _spare: WorkerProcess | None = None
    _free: asyncio.Semaphore | None = None

    def prepare(self) -> None:
        """Have a worker started before anyone asks for it."""
        if self._spare is None or not self._spare.alive:
            self._spare = WorkerProcess(self.allowance.room)

    def hire(self) -> WorkerProcess:
        """Return a worker that nobody else has, for the solves of one page."""
        self.prepare()
        worker, self._spare = self._spare, None
        assert worker is not None
        self._benches = [own for own in self._benches if own.alive] + [worker]
        return worker

    def desk(self) -> WorkerProcess:
        """Return a worker that reads for everyone: one that is free, or one more where all are busy."""
        self._desks = [own for own in self._desks if own.alive]
        free = [own for own in self._desks if not own.turn.locked()]
        if not free and len(self._desks) < self.allowance.desks:
            free = [self.hire()]
            self._desks += free
        return (free or self._desks)[0]

    async def look(self, task: str, given: Record) -> Record:
        """Ask a worker that reads."""
        found = await self.desk().ask(task, given, self.allowance.look)
        self.prepare()  # not before, as two that load at one time take twice as long
        return found

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn to solve; refuse where too many wait already."""
        if self._free is None:
            self._free = asyncio.Semaphore(self.allowance.together)
        if self.queued >= self.allowance.waiting:
            raise ResourceError(
                f"The studio solves {self.allowance.together} problems at a time, and {self.queued} wait already. Wait "
                "until some of them are done, or cancel them, and solve again."
            )
        self.queued += 1
        try:
            await self._free.acquire()
        finally:
            self.queued -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._free.release()

    def dismiss(self) -> None:
        """End all workers."""
        for worker in {*self._benches, *self._desks, *([self._spare] if self._spare else [])}:
            worker.end()
        self._benches, self._desks, self._spare = [], [], None
