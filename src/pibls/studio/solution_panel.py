"""The right side of the page: the solution as a picture, with overlays, and numbers that are taken from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

Record = dict[str, Any]

_SUBJECTS = {"solution": "Solution", "estimate": "Estimated error", "residual": "Residual", "gradient": "Steepness"}
_OVERLAYS = {"cells": "Cells", "gradient": "Gradient", "streamlines": "Streamlines", "deformed": "Deformed"}
_KINDS = {"maximum": "Maximum", "minimum": "Minimum", "integral": "Integral", "mean": "Mean", "flow": "Flow"}


class SolutionPanel:
    """A picture and the numbers below it."""

    def __init__(self, page: StudioPage) -> None:
        self.page, self.ui = page, page.ui
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
            self.fields = ui.select([], on_change=self._chose_field).props(
                'dense borderless options-dense aria-label="Field"'
            )
            self.modes = ui.select({}, on_change=self._chose_mode).props(
                'dense borderless options-dense aria-label="Eigenvalue"'
            )
            for element in (self.fields, self.modes):
                element.classes("hide")
            for name, words in _SUBJECTS.items():
                self._chip(name, words, lambda n=name: self._chose(n))
            for name, words in _OVERLAYS.items():
                self._chip(f"over {name}", words, lambda n=name: self._toggled(n))
            self._chip("surface", "Surface", self._surface)
            self._chip("cut", "Cut", self._cut)
        with ui.element("div").classes("picture-box"):
            self.picture = ui.element("pibls-picture")
            self.note = ui.label("Press Solve (Ctrl+Enter) to see the solution here.").classes("empty")
        self.picture.on("probe", lambda e: self.page.start(self._probed(e.args)), js_handler="(e) => emit(e.detail)")
        self.picture.on("cut", lambda e: self.page.start(self._cut_along(e.args)), js_handler="(e) => emit(e.detail)")
        self.picture.on("frame", self._framed, js_handler="(e) => emit(e.detail)", throttle=0.2)
        with ui.element("div").classes("answers"):
            with ui.row().classes("items-center gap-2 no-wrap w-full"):
                self.kind = ui.select(_KINDS, value="maximum").props(
                    'dense borderless options-dense aria-label="Quantity"'
                )
                self.formula = ui.input(placeholder="of, such as u or u_x**2").props(
                    'dense outlined spellcheck=false aria-label="Expression"'
                )
                self.formula.classes("formula grow").on("keydown.enter", lambda: self.page.start(self._measure()))
                self.part = ui.select({"": "domain"}, value="").props(
                    'dense borderless options-dense aria-label="Over"'
                )
                ui.button("Measure", on_click=lambda: self.page.start(self._measure())).props("flat dense")
            self.graph = ui.element("pibls-picture").classes("hide").style("height: 170px; min-height: 170px")
            self.results = ui.element("div").props("aria-live=polite")
        self._press()

    def _chip(self, key: str, words: str, handler: Any) -> None:
        chip = self.ui.element("button").classes("chip").props("type=button").on("click", lambda: handler())
        with chip:
            self.ui.label(words)
        self.chips[key] = chip

    def _press(self) -> None:
        """Show which chips are pressed, and which make no sense here."""
        problem = self.page.record.get("problem") or {}
        plane = problem.get("space", 2) == 2
        deforms = plane and len(problem.get("fields", [])) >= 2
        for key, chip in self.chips.items():
            down = key == self.subject or (key.removeprefix("over ") in self.over and key.startswith("over "))
            down |= (key == "surface" and "surface" in self.over) or (key == "cut" and "cut" in self.over)
            chip.props(f"aria-pressed={str(bool(down)).lower()}")
            useless = key in ("over gradient", "over streamlines", "cut") and not plane
            useless |= (key == "over deformed" and not deforms) or (key == "surface" and problem.get("space", 2) < 2)
            (chip.classes(add="hide") if useless else chip.classes(remove="hide"))

    def show_problem(self, record: Record) -> None:
        """Offer the fields and the edges of the problem."""
        problem = record.get("problem")
        if problem is None:
            return
        edges = [edge["name"] for edge in (record["board"] or {"edges": []})["edges"]]
        self.part.options = {"": "domain", **{name: name for name in edges}}
        if self.part.value not in self.part.options:
            self.part.value = ""
        self.part.update()
        fields = problem["fields"]
        if self.field not in fields:
            self.field = fields[0]
            self.formula.value = fields[0]
        self.fields.options = fields
        self.fields.value = self.field
        self.fields.update()
        (self.fields.classes(remove="hide") if len(fields) > 1 else self.fields.classes(add="hide"))
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
        self.note.classes(add="hide")
        self._paint(found["picture"])
        values = dict(enumerate(found["eigenvalues"]))
        if values == self.modes.options:
            return
        self.modes.options = values
        self.modes.value = 0 if values else None
        self.modes.update()
        (self.modes.classes(remove="hide") if values else self.modes.classes(add="hide"))

    def clear(self) -> None:
        """Forget the solution."""
        self.answer, self.lines, self.frame = None, [], 0
        self.subject, self.over = "solution", self.over & {"surface"}
        self.note.classes(remove="hide")
        self.graph.classes(add="hide")
        self.picture.props["marks"] = []
        self._paint(None)
        self._list()

    def _paint(self, picture: Record | None) -> None:
        self.picture.props["data"] = picture
        self.picture.update()

    async def _again(self) -> None:
        """Draw the solution at hand anew."""
        self._press()
        if self.answer is not None:
            found = await self.page.session.measure("picture", **self.wanted())
            self._paint(found)

    def _chose(self, name: str) -> None:
        self.subject = name
        self.page.start(self._again())

    def _toggled(self, name: str) -> None:
        self.over ^= {name}
        self.page.start(self._again())

    def _surface(self) -> None:
        self.over ^= {"surface"}
        self.picture.props["surface"] = "surface" in self.over
        self.picture.update()
        self._press()

    def _cut(self) -> None:
        self.over ^= {"cut"}
        self.picture.props["cutting"] = "cut" in self.over
        self.picture.update()
        self._press()
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
        self._paint(found["picture"])

    # Numbers ---------------------------------------------------------------------------------------------------------

    def _framed(self, event: Any) -> None:
        self.frame = int(event.args["frame"])

    def _time(self) -> float | None:
        """Return the time, or the third coordinate, of the frame that is shown."""
        picture = (self.answer or {}).get("picture") or {}
        places = picture.get("frames") or [""]
        words = places[min(self.frame, len(places) - 1)].rpartition("= ")[2]
        problem = self.page.record.get("problem") or {}
        if not words or not (problem.get("time") or problem.get("space") == 3):
            return None
        low, high = problem["bounds"][-1]
        count = len(places) - 1
        return low + (high - low) * self.frame / count if problem.get("time") else float(words)

    def _point(self, spot: list[float]) -> list[float]:
        problem = self.page.record.get("problem") or {}
        missing = len(problem.get("coordinates", [])) - len(spot)
        time = self._time()
        return [*map(float, spot), *([time] if missing == 1 and time is not None else [])]

    async def _probed(self, given: Record) -> None:
        found = await self.page.session.measure("probe", place=self._point(given["to"]))
        self.picture.props["marks"] = [[given["to"]]] if len(given["to"]) == 2 else []
        self.picture.update()
        self._say(f"{'; '.join(found['lines'])}  at {found['where']}")

    async def _cut_along(self, given: Record) -> None:
        ends = [given["from"], given["to"]]
        problem = self.page.record.get("problem") or {}
        at = self._time() if problem.get("time") else None
        if problem.get("space") == 3:
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
        problem = self.page.record.get("problem") or {}
        at = self._time() if problem.get("time") and problem.get("space") else None
        found = await self.page.session.measure("quantity", **given, at=at)
        self._say(found["line"] + (f"  at {problem['time']} = {at:.4g}" if at is not None else ""))
        if found.get("place") and len(found["place"]) == 2:
            self.picture.props["marks"] = [[found["place"]]]
            self.picture.update()

    def _say(self, line: str) -> None:
        self.lines = [line, *self.lines][:6]
        self._list()

    def _list(self) -> None:
        self.results.clear()
        with self.results:
            for line in self.lines:
                self.ui.label(line).classes("line")
