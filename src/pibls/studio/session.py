"""One page with its problem: its texts, its folder and its workers; it knows nothing of how it is shown."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pibls.errors import InputError
from pibls.studio.crew import Crew, WorkerProcess

Record = dict[str, Any]
_KINDS = (".toml", ".csv", ".stl", ".msh", ".geojson", ".json", ".svg", ".dxf", ".obj", ".ply", ".vtk", ".vtu", ".off")


@dataclass(frozen=True)
class History:
    """The text at hand, those before it and those after it.

    >>> later = History("a").with_text("b").with_text("c")
    >>> later.undone().text, later.undone().redone().text, History("a").undone().text
    ('b', 'c', 'a')
    """

    text: str
    past: tuple[str, ...] = ()
    future: tuple[str, ...] = ()
    mark: str = ""  # changes with one mark, such as the keys typed into one field, are one step

    def with_text(self, text: str, mark: str = "") -> History:
        """Return the history with a new text; a step with the mark of the last one replaces it.

        >>> History("").with_text("u", "field").with_text("u_", "field").undone().text
        ''
        """
        if text == self.text:
            return self
        if mark and mark == self.mark:
            return replace(self, text=text, future=())
        return History(text, (*self.past, self.text)[-200:], (), mark)

    def settled(self) -> History:
        """Return the history with its last step closed, so that the next change is a step of its own."""
        return replace(self, mark="")

    def undone(self) -> History:
        """Return the history one step back."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (self.text, *self.future))

    def redone(self) -> History:
        """Return the history one step forth."""
        if not self.future:
            return self
        return History(self.future[0], (*self.past, self.text), self.future[1:])


@dataclass(frozen=True)
class Move:
    """A move of the slider of a parameter, which may go on or have settled."""

    moved: str
    settled: bool


class Session:
    """A problem file that is being written, and the workers that read it and solve it."""

    def __init__(self, crew: Crew, text: str, beside: Path | None = None) -> None:
        self.crew = crew
        self.history = History(text)
        self.folder = tempfile.mkdtemp(prefix="pibls-studio-")
        self.bench: WorkerProcess | None = None
        self.solved = ""  # the text that the solution at hand belongs to
        self.solving = False
        self.ranges: dict[str, tuple[float, float, int]] = {}  # and steps of the sliders, that moved last in front
        self._queued: asyncio.Task[Any] | None = None
        if beside is not None:
            self._bring(text, beside)

    @property
    def text(self) -> str:
        """The problem file as it is now."""
        return self.history.text

    @property
    def waits(self) -> bool:
        """Whether a solve waits for its turn."""
        return self._queued is not None

    def _bring(self, text: str, beside: Path) -> None:
        """Copy the files that a problem file names from the folder beside it."""
        for name in set(re.findall(r"[\"']([\w. -]+\.\w+)[\"']", text)):
            source = beside / name
            small = source.is_file() and source.stat().st_size <= self.crew.allowance.upload
            if small and source.suffix.lower() in _KINDS:
                shutil.copyfile(source, Path(self.folder) / name)

    def store(self, name: str, content: bytes) -> str:
        """Keep an uploaded file for the problem; return the name that the problem file calls it by."""
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(name).name).lstrip(".") or "file"
        if Path(plain).suffix.lower() not in _KINDS:
            raise InputError(f"The studio reads {', '.join(_KINDS)}. Got {plain!r} instead.")
        if len(content) > self.crew.allowance.upload:
            raise InputError(f"The file has more than {self.crew.allowance.upload // 2**20} MiB. Make it smaller.")
        (Path(self.folder) / plain).write_bytes(content)
        return plain

    async def look(self, task: str, **given: Any) -> Record:
        """Ask a worker that reads."""
        return await self.crew.look(task, given)

    async def read(self) -> Record:
        """Return everything that a page shows of the problem file."""
        return await self.look("read", text=self.text, folder=self.folder)

    async def typeset(self, formula: str) -> Record:
        """Return a formula as MathML, or its error."""
        return await self.look("typeset", text=self.text, formula=formula)

    async def solve(self, picture: Record, tell: Callable[[Record], None], again: Move | None = None) -> Record:
        """Solve the problem in a worker of its own, and return its status and its picture.

        After a move of a slider it is solved ``again``, from what is kept of the last solution.
        """
        if self.solving:
            raise InputError("A solve is running already. Wait for it, or cancel it.")
        self.solving, self._queued = True, asyncio.current_task()
        try:
            async with self.crew.turn():
                self._queued = None
                return await self._solved(picture, tell, again)
        except asyncio.CancelledError:
            if self._queued is None:
                raise
            raise InputError("It was cancelled before its turn came.") from None
        finally:
            self.solving, self._queued = False, None

    async def _solved(self, picture: Record, tell: Callable[[Record], None], again: Move | None) -> Record:
        if self.bench is None or not self.bench.alive:
            self.bench, again = self.crew.hire(), None
        text, seconds = self.text, self.crew.allowance.seconds
        given: Record = {"text": text, "deadline": seconds, "picture": picture, "ranges": self.ranges}
        before, self.solved = self.solved, ""
        if again is not None and before:
            task, given = "again", given | asdict(again)
        else:
            task, given = "solve", given | {"folder": self.folder}
        try:
            found = await self.bench.ask(task, given, seconds + self.crew.allowance.grace, tell)
        except InputError:
            # A move that was not followed leaves the solution before it, if the worker still has it.
            self.solved = before if task == "again" else ""
            raise
        self.solved = text
        return found

    async def measure(self, task: str, **given: Any) -> Record:
        """Ask the worker that has the solution for a picture, a number or a file; it waits for a solve that runs."""
        if self.bench is None or not self.bench.alive or not (self.solved or self.solving):
            raise InputError("There is no solution yet. Press Solve first.")
        return await self.bench.ask(task, given, self.crew.allowance.seconds)

    async def write(self, kind: str) -> bytes:
        """Return a file of the solution."""
        place = Path(self.folder) / f"export.{kind}"
        await self.measure("write", kind=kind, path=str(place))
        try:
            return place.read_bytes()
        finally:
            place.unlink()

    def cancel(self) -> None:
        """End a solve with the best solution so far, or take it out of the queue."""
        if self._queued is not None:
            self._queued.cancel()
        elif self.bench is not None and self.solving:
            self.bench.interrupt()

    def close(self) -> None:
        """End the worker and remove the folder."""
        if self.bench is not None:
            self.bench.end()
        with contextlib.suppress(OSError):
            shutil.rmtree(self.folder)
