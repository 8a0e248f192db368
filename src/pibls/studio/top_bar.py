"""The top of the page: open, examples, undo, share, export, light and dark, solve and cancel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pibls.errors import PiblsError
from pibls.studio.condition_edits import with_another
from pibls.studio.panel import PagePanel, show
from pibls.studio.text_edits import names_file

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

_EMPTY = """title = ""
unknowns = ["u"]
equations = ["-laplacian(u) = 1"]

[domain]
shape = "rectangle"
x = [0, 2]
y = [0, 1]
"""
_KEYS = {
    "Ctrl+Enter": "solve",
    "Esc": "cancel the solve",
    "Ctrl+S": "save the problem file",
    "Ctrl+O": "open a file",
    "Ctrl+Z, Ctrl+Shift+Z": "undo, redo",
    "Tab, Enter": "go to an edge or a handle of the drawing, choose it",
    "arrows": "move the handle that has the focus; with Shift ten times as far",
}


class TopBar(PagePanel):
    """Buttons for the whole problem."""

    def __init__(self, page: StudioPage) -> None:
        super().__init__(page)
        self.zoo: list[dict[str, str]] = []
        self.help: Any = None

    def build(self) -> None:
        """Make the elements."""
        ui, page = self.ui, self.page
        ui.html("pibls <span>studio</span>", sanitize=False).classes("brand")
        self._button("note_add", "New", self._begin)
        self._button("folder_open", "Open", self.pick)
        self._button("auto_stories", "Examples", lambda: page.start(self._library()))
        self._button("save", "Save", page.save)
        with self._button("ios_share", "Export", lambda: None), ui.menu():
            for kind, words in page.downloads.kinds.items():
                ui.menu_item(words, lambda k=kind: page.downloads.start(k)).props("role=menuitem")
        self._button("link", "Share", self._share)
        ui.element("div").classes("space")
        self.back = self._button("undo", "", page.undo, "Undo")
        self.forth = self._button("redo", "", page.redo, "Redo")
        self._button("contrast", "", self._turn, "Light or dark")
        self._button("help_outline", "", lambda: self.help.open(), "Help on keys")
        self.cancel = (
            ui.button("Cancel", on_click=page.session.cancel).props("outline dense").classes("action hide px-3")
        )
        self.solve = ui.button("Solve", on_click=page.solve).props("unelevated dense").classes("action px-4")
        limit = page.session.crew.allowance.upload
        self.upload = ui.upload(
            on_upload=self._uploaded, on_rejected=self._rejected, auto_upload=True, max_file_size=limit
        )
        self.upload.props('accept=".toml,.csv,.stl,.msh,.geojson,.svg,.dxf,.obj,.ply"').classes("hide")
        self.dialog = ui.dialog()
        self.help = ui.dialog()
        with self.help, ui.card():
            ui.label("Keys").style("font-weight: 600")
            for keys, words in _KEYS.items():
                ui.label(f"{keys}: {words}").style("font-size: 13px")
        self.show_steps()

    def _button(self, icon: str, words: str, handler: Any, label: str = "") -> Any:
        button = self.ui.button(words, icon=icon, on_click=lambda: handler()).props("flat dense no-caps color=none")
        return button.props(f'aria-label="{label or words}" size=md').classes("px-2")

    def pick(self) -> None:
        """Ask for a file to open."""
        self.upload.run_method("pickFiles")

    async def _uploaded(self, event: Any) -> None:
        page = self.page
        try:
            content = await event.file.read()
            name = page.session.store(event.file.name, content)
            self.upload.reset()
            self.take(name, content)
        except PiblsError as error:
            page.status.refuse(str(error))

    def take(self, name: str, content: bytes) -> None:
        """Take a file for a problem, for measurements, or for a shape, by its ending."""
        page, ending = self.page, Path(name).suffix.lower()
        if ending == ".toml":
            try:
                page.open(content.decode("utf-8-sig").replace("\r\n", "\n"))
            except UnicodeDecodeError:
                page.status.refuse(f"The file {name} is not UTF-8 text; save it as UTF-8.")
                return
            page.path = None
        elif names_file(page.text, name):  # the problem names it already, and it has come now
            page.changed()
        elif ending == ".csv":
            page.edit(with_another, {"kind": "observation", "file": name})
            page.status.tell(f"{name} is a measurement now. Name unknown numbers in the file, and solve to fit them.")
        else:
            page.status.tell(f"Reading {name} …")
            page.board.import_shape(name)

    def _rejected(self) -> None:
        most = self.page.session.crew.allowance.upload // 2**20
        self.page.status.refuse(f"The studio takes files of up to {most} MiB, of the kinds that it can read.")

    async def _library(self) -> None:
        """Show all ready problems, each to be opened by a click."""
        ui = self.ui
        if not self.zoo:
            self.zoo = (await self.page.session.look("library"))["zoo"]
        self.dialog.clear()
        with self.dialog, ui.card().style("width: 900px; max-width: 94vw"):
            search = ui.input(placeholder="Search the examples").props('dense outlined autofocus aria-label="Search"')
            search.classes("w-full")
            shelf = ui.element("div").classes("library").style("max-height: 66vh; overflow: auto")
        search.on_value_change(lambda e: self._shelve(shelf, str(e.value or "")))
        self._shelve(shelf, "")
        self.dialog.open()

    def _shelve(self, shelf: Any, words: str) -> None:
        ui = self.ui
        starters = self.page.starters.items()
        found = [(f"start {name}", name.capitalize(), text.partition("\n")[0].lstrip("# ")) for name, text in starters]
        found = [*found, *((own["name"], own["name"].replace("_", " "), own["about"]) for own in self.zoo)]
        wanted = words.lower().split()
        found = [own for own in found if all(word in f"{own[1]} {own[2]}".lower() for word in wanted)]
        shelf.clear()
        with shelf:
            if not found:
                ui.label("No example has these words.")
            for key, title, about in found:
                made = ui.element("button").props("type=button")
                with made.on("click", lambda k=key: self.page.start(self._take(k))):
                    ui.label(title)
                    with ui.element("small"):
                        ui.label(about)

    async def _take(self, key: str) -> None:
        self.dialog.close()
        starter = key.removeprefix("start ")
        if key.startswith("start ") and starter in self.page.starters:
            text = self.page.starters[starter]
        else:
            text = (await self.page.session.look("zoo", name=key))["text"]
        self.page.path = None
        self.page.open(text)

    def _begin(self) -> None:
        """Begin with a plate that has no conditions yet."""
        self.page.path = None
        self.page.open(_EMPTY)

    def _share(self) -> None:
        self.page.run("navigator.clipboard?.writeText(location.href)")
        self.page.status.tell("The address of this page holds the problem; it was copied.")

    def _turn(self) -> None:
        self.page.run("setDark(!document.body.classList.contains('body--dark'))")

    def show_steps(self) -> None:
        """Show whether there is something to undo or to redo."""
        history = self.page.session.history
        self.back.set_enabled(bool(history.past))
        self.forth.set_enabled(bool(history.future))

    def show_solving(self, solving: bool) -> None:
        """Offer to cancel while a solve runs."""
        show(self.cancel, solving)
        self.solve.set_enabled(not solving)
