"""The middle of the page: the domain with its handles and edges, shapes to add, and conditions to attach."""

from __future__ import annotations

import json
import math
import tomllib
from functools import partial
from typing import TYPE_CHECKING, Any

from pibls.checks import cut
from pibls.studio.card_panel import KINDS
from pibls.studio.condition_edits import NEEDS, ON_BOUNDARY, attached, flux_of, named_part, with_another, with_condition
from pibls.studio.panel import PagePanel, Record, offer, show
from pibls.studio.shape_edits import Handle, dragged, handles, leaves, with_shape, without_shape
from pibls.studio.text_edits import is_toml, with_table, without

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

_INSULATED: Record = {"kind": "neumann", "value": "0"}
_WAYS = {"union": "Add", "difference": "Cut out", "intersection": "Keep within"}


class BoardPanel(PagePanel):
    """The drawing of the domain, and everything that changes it."""

    def __init__(self, page: StudioPage) -> None:
        super().__init__(page)
        self.handles: list[Handle] = []
        self.held: tuple[str, Handle] | None = None  # the text and the handle as they were when a drag began
        self.chosen: Record | None = None
        self.condition: int | None = None
        self.drawn: Record = {}
        self.shown: Any = None  # by the buttons below the drawing
        self.offered: dict[int, Any] = {}  # buttons of conditions that there are

    def build(self) -> None:
        """Make the elements."""
        ui = self.ui
        with ui.element("div").classes("pane-head"):
            ui.html("<h2>Domain</h2>", sanitize=False)
            self.way = self.choice(_WAYS, "How to join", value="difference")
            self.adds = [
                self.chip(f"+ {kind.capitalize()}", partial(self._add, kind), f'aria-label="Add a {kind}"')
                for kind in ("disk", "rectangle", "polygon")
            ]
            self.chip("Import a shape", self.page.top.pick)
            self.turn = self.chip("Turn", partial(self.page.run, "document.querySelector('pibls-board').turn()"))
            self.shapes = ui.select([], label="Remove", on_change=self._remove)
            self.shapes.props("dense borderless options-dense").classes("hide").style("min-width: 90px")
        self.board = ui.element("pibls-board")
        self.board.on("moved", self._moved, js_handler="(e) => emit(e.detail)")
        self.board.on("edge", self._clicked, js_handler="(e) => emit(e.detail)")
        self.note = ui.label().classes("empty hide")
        self.panel = ui.element("div").classes("edge-panel").props("aria-live=polite")
        self._panel()

    def show(self, record: Record) -> None:
        """Show the domain that was read; one that cannot be read leaves the last one in place."""
        board = record["board"]
        if board is None:
            return
        text = self.page.text
        self.handles = handles(text) if board["dimension"] < 3 and is_toml(text) else []
        named = {tuple(path): shape for path, shape in self._leaves()}
        marks = [
            {"x": h.x, "y": h.y, "kind": h.kind, "label": h.label, "shape": self._title(named.get(h.path, {}))}
            for h in self.handles
        ]
        if self.chosen is not None and self.chosen["name"] not in self.page.edges:
            self.chosen = None
        self.drawn = {**board, "handles": marks, "step": self.step}
        self.board.props["data"] = self.drawn
        self.board.update()
        self._mark()
        show(self.turn, board["dimension"] == 3)
        for element in (self.way, *self.adds):
            show(element, board["dimension"] == 2)
        self.board.style("display: block" if board["drawable"] else "display: none")
        joined = (
            {".".join(map(str, path)): self._title(shape) for path, shape in named.items()} if len(named) > 1 else {}
        )
        offer(self.shapes, joined, None, bool(joined))
        self._panel()

    def _leaves(self) -> list[tuple[Any, Any]]:
        domain = tomllib.loads(self.page.text).get("domain") if is_toml(self.page.text) else None
        return list(leaves(domain)) if isinstance(domain, dict) else []

    @staticmethod
    def _title(shape: Any) -> str:
        return str(shape.get("name") or shape.get("shape") or "shape")

    @property
    def step(self) -> float:
        """The numbers that a drag rounds to, about a hundredth of the domain."""
        bounds = (self.page.record.get("board") or {}).get("bounds") or [[0, 1]]
        extent = max(high - low for low, high in bounds) or 1.0
        return float(10.0 ** math.floor(math.log10(extent / 60)))

    def _mark(self) -> None:
        """Show the chosen edge, and where a condition holds; the drawing itself stays."""
        marked = json.dumps([None if self.chosen is None else self.chosen["name"], self.condition])
        self.page.run(f"document.querySelector('pibls-board')?.mark(...{marked})")

    def highlight(self, condition: int | None) -> None:
        """Show where a condition holds."""
        if condition != self.condition and self.drawn:
            self.condition = condition
            self._mark()

    # Dragging --------------------------------------------------------------------------------------------------------

    def _moved(self, event: Any) -> None:
        number, x, y = int(event.args["number"]), float(event.args["x"]), float(event.args["y"])
        if self.held is None:
            if not 0 <= number < len(self.handles):
                return
            self.held = (self.page.text, self.handles[number])
        text, handle = self.held
        # Every step starts from the text before the drag, so that rounding does not add up.
        self.page.edit(lambda _: dragged(text, handle, x, y, self.step), mark=f"drag {number}")
        if event.args["done"]:
            self.held = None
            self.page.session.history = self.page.session.history.settled()

    def _add(self, kind: str) -> None:
        if board := self.page.record.get("board"):
            self.page.edit(with_shape, kind, self.way.value, board["bounds"])

    def _remove(self, event: Any) -> None:
        if event.value:
            path = tuple(int(key) if key.isdigit() else key for key in str(event.value).split("."))
            self.page.edit(without_shape, path)

    def import_shape(self, name: str) -> None:
        """Take the shape of a file for the domain; conditions on parts of the old one go."""

        def taken(text: str) -> str:
            conditions = tomllib.loads(text).get("conditions", [])
            for number in reversed(range(len(conditions))):
                if "on" in conditions[number]:
                    text = without(text, ("conditions", number))
            return with_table(text, ("domain",), {"shape": name})

        self.page.edit(taken)

    # Edges -----------------------------------------------------------------------------------------------------------

    def _clicked(self, event: Any) -> None:
        self.chosen = dict(event.args)
        self.page.solution.choose_part(self.chosen["name"])
        self._mark()
        self._panel()

    def _panel(self) -> None:
        """Show which conditions hold on the chosen edge, and others to attach."""
        bare = [e["name"] for e in self.drawn.get("edges", []) if any(c["bare"] for c in e["curves"])]
        kinds = [own["kind"] for own in self.page.record.get("conditions", [])]
        edges = {edge["name"]: edge["conditions"] for edge in self.drawn.get("edges", [])}
        name = None if self.chosen is None else self.chosen["name"]
        fields = self.page.problem.get("fields")
        shown = (bare, kinds, name, edges.get(name, []), self.drawn.get("dimension"), fields)
        if shown == self.shown:  # buttons that are made anew miss a click
            self._tell()
            return
        self.shown, self.offered = shown, {}
        self.panel.clear()
        with self.panel:
            self._no_edge(bare) if name is None else self._chosen_edge(name, kinds, edges.get(name, []))
            if bare:
                pieces = "faces" if self.drawn.get("dimension") == 3 else "edges"
                self.chip(f"No flux through all red {pieces}", partial(self._insulate, bare), "aria-pressed=false")

    def _no_edge(self, bare: list[str]) -> None:
        """Say that an edge is clicked to give it a condition."""
        words = f"Click {'a face' if self.drawn.get('dimension') == 3 else 'an edge'} to give it a condition."
        red = f" Red: no condition on {cut(', '.join(bare), 80)}." if bare else ""
        self.ui.label(words + red).classes("places")

    def _chosen_edge(self, name: str, kinds: list[str], own: list[int]) -> None:
        """Offer the conditions that there are, and new ones, to the chosen edge."""
        ui = self.ui
        ui.label(name).style("font-weight: 600")
        for number, kind in enumerate(kinds):
            if kind in ON_BOUNDARY:
                pressed = f"aria-pressed={str(number in own).lower()}"
                self.offered[number] = self.chip("", partial(self._attach, number), pressed)
        self._tell()
        ui.label("New:").classes("places")
        for words, field, entries in self._new():
            self.chip(words, partial(self._give, field, entries), "aria-pressed=false")

    def _tell(self) -> None:
        """Write the values of conditions on buttons, which tells them apart."""
        several = len(self.page.problem.get("fields", [])) > 1
        for number, chip in self.offered.items():
            own = self.page.record["conditions"][number]
            entries, kind = own["entries"], KINDS[own["kind"]]
            if several and "equation" not in entries:
                kind += f" of {entries.get('u', self._field())}"
            value = entries.get("value", entries.get("equation", ""))
            chip.words.set_text(cut(f"{number + 1}: {kind} {value}".rstrip(), 30))

    def _new(self) -> list[tuple[str, str, Record]]:
        """Return the new conditions to choose from: words, the field that they are about, and entries."""
        fields, flows = (self.page.problem.get(key) or [] for key in ("fields", "flows"))
        if len(fields) < 2:
            return [(KINDS[kind], self._field(), {"kind": kind, **NEEDS[kind]}) for kind in ON_BOUNDARY[:3]]
        given = [(f"Fixed {name}", name, {"kind": "dirichlet", "u": name, "value": "0"}) for name in fields]
        return given + [(f"Flux of {name}", name, flux_of(name)) for name in flows]

    def _field(self) -> str:
        return str((self.page.problem.get("fields") or ["u"])[0])

    def _attach(self, number: int) -> None:
        self._place(lambda text, name, edges: attached(text, number, name, edges, self._field()))

    def _give(self, field: str, own: Record) -> None:
        self._place(lambda text, name, edges: with_condition(text, own, name, edges, field))

    def _insulate(self, bare: list[str]) -> None:
        """Give all edges without a condition one that lets nothing through."""

        def insulated(text: str) -> str:
            given = [own.get("on", []) for own in tomllib.loads(text).get("conditions", [])]
            taken = {name for own in given for name in ([own] if isinstance(own, str) else own)}
            left = [name for name in bare if name not in taken]  # the drawing may be older than the text
            several = len(self.page.problem.get("fields") or []) > 1
            new = [flux_of(name) for name in self.page.problem["flows"]] if several else [_INSULATED]
            for entries in new if left else []:
                text = with_another(text, {**entries, "on": left})
            return text

        self.page.edit(insulated)

    def _place(self, change: Any) -> None:
        chosen = self.chosen
        assert chosen is not None

        def changed(text: str) -> str:
            named, name = named_part(text, tuple(chosen["path"]), chosen["part"], chosen["name"])
            edges = [name if edge["name"] == chosen["name"] else edge["name"] for edge in self.drawn["edges"]]
            chosen["name"] = name
            return str(change(named, name, edges))

        self.page.edit(changed)
