"""Worker processes as the page sees them: asked for something, waited for, interrupted, ended and replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from pibls.errors import DeadlineError, InputError, ResourceError

Record = dict[str, Any]


@dataclass(frozen=True)
class Allowance:
    """How much a page may ask for.

    Attributes
    ----------
    room
        Bytes that one worker may take.
    seconds
        After how long a solve ends with the best solution so far; a worker that goes on is ended a little later.
    look
        Seconds that anything but a solve may take.
    grace
        Seconds that a worker may go on after its deadline, to end its step and to draw.
    pause
        Seconds without a key after which the whole file is read again.
    together
        Solves at one time.
    waiting
        Solves that may wait for their turn.
    upload
        Bytes of one file.
    """

    room: int = 4 * 2**30
    seconds: float = 120.0
    look: float = 20.0
    grace: float = 15.0
    pause: float = 0.25
    together: int = 2
    waiting: int = 8
    upload: int = 8 * 2**20


class WorkerProcess:
    """One worker process: it answers one question at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.turn = asyncio.Lock()

    @classmethod
    async def start(cls, room: int) -> WorkerProcess:
        """Start a process; it can be asked at once, and answers when it has loaded the library."""
        alone = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "pibls.studio.worker", str(room)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=2**27,
            env={**os.environ, **alone},
        )
        return cls(process)

    @property
    def alive(self) -> bool:
        """Whether the process is still there."""
        return self.process.returncode is None

    async def ask(
        self, task: str, given: Record, seconds: float, tell: Callable[[Record], None] | None = None
    ) -> Record:
        """Return the answer to a request; progress is told on the way, and refusals are raised in words."""
        async with self.turn:
            try:
                return await asyncio.wait_for(self._answer(task, given, tell), seconds)
            except TimeoutError:
                await self.end()
                raise DeadlineError(
                    f"This took more than {seconds:.0f} seconds and was ended. Make the problem smaller, or ask for a "
                    "larger tolerance."
                ) from None
            except asyncio.CancelledError:
                await self.end()
                raise

    async def _answer(self, task: str, given: Record, tell: Callable[[Record], None] | None) -> Record:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(ConnectionError):
            self.process.stdin.write(json.dumps({"task": task, "given": given}).encode() + b"\n")
            await self.process.stdin.drain()
        while line := await self.process.stdout.readline():
            record: Record = json.loads(line)
            if "done" in record:
                found: Record = record["done"]
                return found
            if "refused" in record:
                raise InputError(record["refused"])
            if "progress" in record and tell is not None:
                tell(record["progress"])
        raise ResourceError(
            "The process of this solve ended before it had an answer, perhaps for want of memory. Ask for a larger "
            "tolerance, or make the problem smaller."
        )

    def interrupt(self) -> None:
        """Have a solve end with the best solution so far."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGINT)

    async def end(self) -> None:
        """End the process."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
        with contextlib.suppress(ProcessLookupError):
            await self.process.wait()


@dataclass
class Crew:
    """The workers of all pages: one is always ready, and only a few solve at one time."""

    allowance: Allowance = field(default_factory=Allowance)
    running: int = 0
    queued: int = 0
    _spare: asyncio.Task[WorkerProcess] | None = None
    _free: asyncio.Semaphore | None = None
    _hired: set[WorkerProcess] = field(default_factory=set)
    _idle: list[WorkerProcess] = field(default_factory=list)

    def prepare(self) -> None:
        """Have a worker started before anyone asks for it."""
        if self._spare is None:
            self._spare = asyncio.create_task(WorkerProcess.start(self.allowance.room))

    async def hire(self) -> WorkerProcess:
        """Return a worker that nobody else has."""
        while self._idle:
            if (idle := self._idle.pop()).alive:
                return idle
        self.prepare()
        assert self._spare is not None
        spare, self._spare = self._spare, None
        worker = await spare
        self._hired = {own for own in self._hired if own.alive} | {worker}
        return worker

    async def release(self, worker: WorkerProcess) -> None:
        """Take back a worker that keeps nothing of its page: it serves the next one, or ends."""
        if worker.alive and not worker.turn.locked() and not self._idle:
            self._idle.append(worker)
        else:
            await worker.end()

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

    async def dismiss(self) -> None:
        """End all workers."""
        if self._spare is not None:
            self._hired.add(await self._spare)
            self._spare = None
        for worker in self._hired:
            await worker.end()
        self._hired, self._idle = set(), []
