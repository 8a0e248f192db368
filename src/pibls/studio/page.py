"""The page: it joins a session with its panels, and turns clicks and keys into changes of the problem file."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from pibls.errors import PiblsError
from pibls.studio.board_panel import BoardPanel
from pibls.studio.card_panel import CardPanel
from pibls.studio.downloads import Downloads, of_fragment, to_fragment
from pibls.studio.panel import Record
from pibls.studio.session import Move, Session
from pibls.studio.solution_panel import SolutionPanel
from pibls.studio.status_bar import StatusBar
from pibls.studio.text_edits import is_toml, with_value
from pibls.studio.top_bar import TopBar
from pibls.writing import replaced


class StudioPage:
    """One page in one browser window."""

    def __init__(self, ui: Any, session: Session, starters: Mapping[str, str], path: Path | None) -> None:
        self.ui, self.session, self.starters, self.path = ui, session, starters, path
        self.record: Record = {}
        self.cards, self.board, self.solution = CardPanel(self), BoardPanel(self), SolutionPanel(self)
        self.status, self.top, self.downloads = StatusBar(self), TopBar(self), Downloads(self)
        self._reading = self._wanted = False
        self._waiting: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._moved = ""  # the parameter that has another value since the last solve
        self._settling: asyncio.Task[None] | None = None
        self._settles = False
        self.root: Any = None

    def build(self) -> None:
        """Make all elements."""
        ui = self.ui
        with ui.element("div").classes("studio") as self.root:
            with ui.element("header").classes("top"):
                self.top.build()
            with ui.element("nav").classes("left").props('aria-label="Problem"'):
                self.cards.build()
            with ui.element("section").classes("mid").props('aria-label="Domain"'):
                self.board.build()
            with ui.element("section").classes("right").props('aria-label="Solution"'):
                self.solution.build()
            with ui.element("footer").classes("foot"):
                self.status.build()
        ui.on("studio_key", lambda event: self.press(str(event.args)))
        ui.on("studio_fragment", lambda event: self.open_fragment(str(event.args)))

    @property
    def text(self) -> str:
        """The problem file as it is now."""
        return self.session.text

    @property
    def problem(self) -> Record:
        """Facts of the problem, none where the text cannot be read as one."""
        return self.record.get("problem") or {}

    @property
    def edges(self) -> list[str]:
        """The names of the pieces of the boundary."""
        return [edge["name"] for edge in (self.record.get("board") or {"edges": []})["edges"]]

    @property
    def first_field(self) -> Record:
        """The entry of a condition that names the first field, where there are several."""
        fields = self.problem.get("fields", [])
        return {"u": fields[0]} if len(fields) > 1 else {}

    def start(self, work: Awaitable[Any]) -> None:
        """Have something done while the page goes on; a refusal is told in words."""

        async def told() -> None:
            try:
                await work
            except PiblsError as error:
                self.status.refuse(str(error))

        task = asyncio.ensure_future(told())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Changes of the text ---------------------------------------------------------------------------------------------

    def change(self, text: str, mark: str = "", *, typed: bool = False) -> None:
        """Put another text in place; steps with one mark are undone together."""
        if text == self.text:
            return
        self.session.history = self.session.history.with_text(text, mark)
        self.changed(typed=typed)

    def changed(self, *, typed: bool = False) -> None:
        """Show the text that there is now: at once, or when no key has come for a while."""
        self.top.show_steps()
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        if typed:
            self._waiting = asyncio.ensure_future(self._later())
        else:
            self.start(self.refresh())

    async def _later(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(self.session.crew.allowance.pause)
            self.start(self.refresh())

    async def refresh(self) -> None:
        """Read the text and show it; of several changes at once only the last one is read."""
        self._wanted = True
        if self._reading:
            return
        self._reading = True
        try:
            while self._wanted:
                self._wanted = False
                text = self.text
                try:
                    record = await self.session.read()
                except PiblsError as error:
                    self.status.refuse(str(error))
                    continue
                if text == self.text:
                    self.show(record)
        finally:
            self._reading = False

    def show(self, record: Record) -> None:
        """Show everything that was read of the problem file."""
        self.record = record
        self.cards.show(record)
        self.board.show(record)
        self.solution.show_problem(record)
        self.status.show_problem(record)
        self.run(f"studioShare({to_fragment(self.text)!r})")

    def run(self, script: str) -> None:
        """Run a script of ours on the page."""
        if self.root is not None and self.root.client.has_socket_connection:
            self.root.client.run_javascript(script)

    def edit(self, change: Callable[..., str], *given: Any, mark: str = "", typed: bool = False) -> None:
        """Change a place of the text, if it can be read as a file at all."""
        if not is_toml(self.text):
            self.status.refuse("The text of the problem file has an error. Correct it there first.")
            return
        try:
            self.change(change(self.text, *given), mark, typed=typed)
        except (PiblsError, KeyError, IndexError, TypeError, ValueError) as error:
            self.status.refuse(f"This cannot be changed here: {error}. Change it in the text of the problem file.")

    def undo(self) -> None:
        """Go one step back."""
        self.session.history = self.session.history.undone()
        self.changed()

    def redo(self) -> None:
        """Go one step forth."""
        self.session.history = self.session.history.redone()
        self.changed()

    def open(self, text: str) -> None:
        """Open another problem."""
        self.session.solved = ""
        self.solution.clear()
        self.board.chosen = None
        self.change(text)

    def open_fragment(self, fragment: str) -> None:
        """Open the problem of an address."""
        if not fragment or fragment == to_fragment(self.text):
            return
        try:
            self.open(of_fragment(fragment))
            self.path = None
        except PiblsError as error:
            self.status.refuse(str(error))

    def save(self) -> None:
        """Write the problem file where it came from, or hand it to the browser."""
        if self.path is None:
            self.downloads.start("toml")
            return
        text = self.text
        try:
            replaced(self.path, lambda place: place.write_text(text, encoding="utf-8", newline=""))
        except OSError as error:
            self.status.refuse(f"The file {self.path.name} cannot be written: {error.strerror}.")
        else:
            self.status.tell(f"Saved {self.path.name}.")

    # Solving ---------------------------------------------------------------------------------------------------------

    def solve(self) -> None:
        """Solve the problem from the start."""
        self.session.history = self.session.history.settled()
        self.start(self._solve())

    async def _solve(self, again: Move | None = None) -> None:
        if self.session.solving:
            return
        # A slider is followed at once as a rule; where it takes longer, the page says that it is at work.
        pause = self.session.crew.allowance.pause if again else 0.0
        self.status.course = []
        begun = asyncio.get_running_loop().call_later(pause, self._begin)
        quick = again is not None and not again.settled
        try:
            found = await self.session.solve(self.solution.wanted(quick=quick), self.status.progress, again)
        except PiblsError as error:
            if not self._moved:  # otherwise the next move follows
                self.status.refuse(str(error))
            return
        finally:
            begun.cancel()
            self.top.show_solving(False)
        self.solution.show(found)
        self.status.show_answer(found)
        if again is None:  # on a phone it is below
            self.run("document.querySelector('pibls-picture').scrollIntoView({block: 'nearest', behavior: 'smooth'})")
        if self.session.solved != self.text and not self._moved:
            self.status.tell("The problem has changed since this solve began. Press Solve to see its solution.", "warn")
        elif self._moved and again is None:
            self.start(self._follow())

    def _begin(self) -> None:
        self.status.begin()
        self.top.show_solving(True)

    def slide(self, name: str, value: float) -> None:
        """Take another value for a parameter, and solve again if there was a solution."""
        self.edit(with_value, ("parameters", name), value, mark=f"parameter {name}", typed=True)
        if self.solution.answer is not None:
            ranges = self.session.ranges
            self._moved, self.session.ranges = name, {own: ranges[own] for own in sorted(ranges, key=name.__ne__)}
            self._settle(None)
            self.start(self._follow())

    async def _follow(self) -> None:
        """Solve again for the last of the values that have come since."""
        while self._moved and not self.session.solving:
            name, self._moved = self._moved, ""
            await self._solve(Move(name, settled=False))
            if not self._moved and (self.solution.answer or {}).get("way") == "between":
                self._settle(asyncio.ensure_future(self._settled(name)))

    def _settle(self, task: asyncio.Task[None] | None) -> None:
        """Have a move settle later, instead of one that was to settle before, or is settling."""
        if self._settles:
            self._settles = False
            self.session.cancel()
        elif self._settling is not None:
            self._settling.cancel()
        self._settling = task

    async def _settled(self, name: str) -> None:
        """Solve the problem itself once a slider rests."""
        await asyncio.sleep(self.session.crew.allowance.pause)
        self._settles = True
        try:
            await self._solve(Move(name, settled=True))
        finally:
            self._settles = False
        self.start(self._follow())

    def press(self, name: str) -> None:
        """Do as a key of the keyboard says."""
        keys: dict[str, Callable[[], None]] = {"solve": self.solve, "save": self.save, "undo": self.undo}
        keys |= {"redo": self.redo, "cancel": self.session.cancel, "open": self.top.pick, "help": self.top.help.open}
        if name in keys:
            with self.root:
                keys[name]()
