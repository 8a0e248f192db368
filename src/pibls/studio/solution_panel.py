"""The right side of the page: the solution as a picture, with overlays, and numbers that are taken from it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pibls.status import Status
from pibls.studio.panel import PagePanel, Record, offer, show

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

_EMPTY = "Press Solve (Ctrl+Enter) to see the solution here."
_DOUBT = "This is no solution: the problem does not have exactly one. The words below say why."
_SUBJECTS = {"solution": "Solution", "estimate": "Estimated error", "residual": "Residual", "gradient": "Steepness"}
_OVERLAYS = {"cells": "Cells", "gradient": "Gradient", "streamlines": "Streamlines", "deformed": "Deformed"}
_KINDS = {"maximum": "Maximum", "minimum": "Minimum", "integral": "Integral", "mean": "Mean", "flow": "Flow"}


class SolutionPanel(PagePanel):
    """A picture and the numbers below it."""

    def __init__(self, page: StudioPage) -> None:
        super().__init__(page)
        self.answer: Record | None = None
        self.subject, self.field = "solution", ""
        self.over: set[str] = set()
        self.frame = 0
        self.chips: dict[str, Any] = {}
        self.lines: list[str] = []

    def build(self) -> None:
        """Make the elements."""
        ui = self.ui
        with ui.element("div").classes("pane-head").props('role=toolbar aria-label="Picture"'):
            ui.html("<h2>Solution</h2>", sanitize=False)
            self.fields = self.choice([], "Field", on_change=self._chose_field).classes("hide")
            self.modes = self.choice({}, "Eigenvalue", on_change=self._chose_mode).classes("hide")
            for name, words in _SUBJECTS.items():
                self.chips[name] = self.chip(words, partial(self._chose, name))
            for name, words in _OVERLAYS.items():
                self.chips[f"over {name}"] = self.chip(words, partial(self._toggled, name))
            self.chips["over surface"] = self.chip("Surface", partial(self._switched, "surface", "surface"))
            self.chips["over cut"] = self.chip("Cut", self._cut)
        with ui.element("div").classes("picture-box") as self.box:
            self.picture = ui.element("pibls-picture")
            self.note = ui.label(_EMPTY).classes("empty")
        self.picture.on("probe", lambda e: self.page.start(self._probed(e.args)), js_handler="(e) => emit(e.detail)")
        self.picture.on("cut", lambda e: self.page.start(self._cut_along(e.args)), js_handler="(e) => emit(e.detail)")
        self.picture.on("frame", self._framed, js_handler="(e) => emit(e.detail)", throttle=0.2)
        with ui.element("div").classes("answers"):
            with ui.row().classes("items-center gap-2 no-wrap w-full"):
                self.kind = self.choice(_KINDS, "Quantity", value="maximum")
                self.formula = ui.input(placeholder="of, such as u or u_x**2").props(
                    'dense outlined spellcheck=false aria-label="Expression"'
                )
                self.formula.classes("formula grow").on("keydown.enter", lambda: self.page.start(self._measure()))
                self.part = self.choice({"": "domain"}, "Over", value="")
                ui.button("Measure", on_click=lambda: self.page.start(self._measure())).props("flat dense")
            self.graph = ui.element("pibls-picture").classes("hide").style("height: 170px; min-height: 170px")
            self.results = ui.element("div").props("aria-live=polite")
        self._press()

    def _press(self) -> None:
        """Show which chips are pressed, and which make no sense here."""
        space, fields = self.page.problem.get("space", 2), self.page.problem.get("fields", [])
        sense = dict.fromkeys(("over gradient", "over streamlines", "over cut"), space == 2)
        sense |= {"over deformed": space == 2 and len(fields) >= 2, "over surface": space >= 2}
        pressed = {self.subject, *(f"over {name}" for name in self.over)}
        for key, chip in self.chips.items():
            chip.props(f"aria-pressed={str(key in pressed).lower()}")
            show(chip, sense.get(key, True))

    def show_problem(self, record: Record) -> None:
        """Offer the fields and the edges of the problem."""
        problem = record.get("problem")
        if problem is None:
            return
        parts = {"": "domain", **{name: name for name in self.page.edges}}
        offer(self.part, parts, self.part.value if self.part.value in parts else "", True)
        fields = problem["fields"]
        if self.field not in fields:
            self.field = fields[0]
            self.formula.value = fields[0]
        offer(self.fields, fields, self.field, len(fields) > 1)
        self._press()

    def choose_part(self, name: str) -> None:
        """Take a part of the boundary for the next quantity."""
        if name in self.part.options:
            self.part.value = name
            self.kind.value = "flow"

    def wanted(self, *, quick: bool = False) -> Record:
        """Return the picture that is asked for."""
        over = sorted(self.over - {"surface", "cut"})
        return {"what": self.subject, "field": self.field or None, "over": over, "n": 72 if quick else 110}

    def show(self, found: Record) -> None:
        """Show a solution that was found."""
        self.answer = found
        self._note(_DOUBT if found["status"] == Status.ILL_POSED else "")
        self._forget()
        self._paint(data=found["picture"], marks=[])
        values = dict(enumerate(found["eigenvalues"]))
        if values != self.modes.options:
            offer(self.modes, values, 0 if values else None, bool(values))

    def clear(self) -> None:
        """Forget the solution."""
        self.answer, self.frame = None, 0
        self.subject, self.over = "solution", self.over & {"surface"}
        self._note(_EMPTY)
        offer(self.modes, {}, None, False)
        self.page.status.clear()
        self._forget()
        self._paint(data=None, marks=[])

    def _note(self, words: str) -> None:
        """Write words in place of a picture, or over one that is not to be trusted."""
        self.note.set_text(words)
        show(self.note, bool(words))
        self.box.classes(add="doubt") if words == _DOUBT else self.box.classes(remove="doubt")

    def _forget(self) -> None:
        """Take away numbers that were measured on another solution."""
        if self.lines:
            self.lines = []
            show(self.graph, False)
            self._list()

    def _paint(self, **props: Any) -> None:
        """Give the picture other data, marks or ways to be looked at."""
        for name, value in props.items():
            self.picture.props[name] = value
        self.picture.update()

    async def _again(self) -> None:
        """Draw the solution at hand anew."""
        self._press()
        if self.answer is not None:
            self._paint(data=await self.page.session.measure("picture", **self.wanted()))

    def _chose(self, name: str) -> None:
        self.subject = name
        self.page.start(self._again())

    def _toggled(self, name: str) -> None:
        self.over ^= {name}
        self.page.start(self._again())

    def _switched(self, name: str, prop: str) -> None:
        """Switch a way to look at the picture on or off, which the page does by itself."""
        self.over ^= {name}
        self._paint(**{prop: name in self.over})
        self._press()

    def _cut(self) -> None:
        self._switched("cut", "cutting")
        if "cut" in self.over:
            self.page.status.tell("Draw a line over the picture to see the solution along it.")

    def _chose_field(self, event: Any) -> None:
        if event.value and event.value != self.field:
            self.field = str(event.value)
            self.formula.value = self.field
            self.page.start(self._again())

    def _chose_mode(self, event: Any) -> None:
        if event.value is not None and self.answer is not None:
            self.page.start(self._mode(int(event.value)))

    async def _mode(self, number: int) -> None:
        found = await self.page.session.measure("mode", number=number, picture=self.wanted())
        self._paint(data=found["picture"])

    # Numbers ---------------------------------------------------------------------------------------------------------

    def _framed(self, event: Any) -> None:
        self.frame = int(event.args["frame"])

    def _time(self) -> float | None:
        """Return the time, or the third coordinate, of the frame that is shown."""
        picture = (self.answer or {}).get("picture") or {}
        places = picture.get("frames") or [""]
        words = places[min(self.frame, len(places) - 1)].rpartition("= ")[2]
        problem = self.page.problem
        if not words or not (problem.get("time") or problem.get("space") == 3):
            return None
        low, high = problem["bounds"][-1]
        count = len(places) - 1
        return low + (high - low) * self.frame / count if problem.get("time") else float(words)

    def _point(self, spot: list[float]) -> list[float]:
        missing = len(self.page.problem.get("coordinates", [])) - len(spot)
        time = self._time()
        return [*map(float, spot), *([time] if missing == 1 and time is not None else [])]

    async def _probed(self, given: Record) -> None:
        found = await self.page.session.measure("probe", place=self._point(given["to"]))
        self._paint(marks=[[given["to"]]] if len(given["to"]) == 2 else [])
        self._say(f"{'; '.join(found['lines'])}  at {found['where']}")

    async def _cut_along(self, given: Record) -> None:
        ends = [given["from"], given["to"]]
        at = self._time() if self.page.problem.get("time") else None
        if self.page.problem.get("space") == 3:
            ends = [self._point(end) for end in ends]
        found = await self.page.session.measure("cut", ends=ends, at=at, name=self.field)
        values = [value for value in found["values"] if value is not None]
        errors = [value for value in found["errors"] if value is not None]
        curve = {"kind": "curve", "x": found["x"], "lines": [found["values"]], "frames": [""], "names": ["distance"]}
        curve |= {"low": min(values), "high": max(values), "symbol": found["symbol"], "title": "Cut", "log": False}
        self.graph.props["data"] = curve
        self.graph.classes(remove="hide")
        self.graph.update()
        worst = f", error at most {max(errors):.1e}" if errors else ""
        start, stop = (", ".join(f"{v:.3g}" for v in end) for end in ends)
        self._say(f"{found['symbol']} from ({start}) to ({stop}): {min(values):.5g} to {max(values):.5g}{worst}")

    async def _measure(self) -> None:
        given = {
            "kind": self.kind.value,
            "formula": str(self.formula.value or self.field),
            "part": self.part.value or None,
        }
        problem = self.page.problem
        at = self._time() if problem.get("time") and problem.get("space") else None
        found = await self.page.session.measure("quantity", **given, at=at)
        self._say(found["line"] + (f"  at {problem['time']} = {at:.4g}" if at is not None else ""))
        if found.get("place") and len(found["place"]) == 2:
            self._paint(marks=[[found["place"]]])

    def _say(self, line: str) -> None:
        self.lines = [line, *self.lines][:6]
        self._list()

    def _list(self) -> None:
        self.results.clear()
        with self.results:
            for line in self.lines:
                self.ui.label(line).classes("line")
