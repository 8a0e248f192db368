"""The left side of the page: equations, conditions and parameters as cards, and the problem file as text."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pibls.errors import PiblsError
from pibls.studio.condition_edits import NEEDS, ON_BOUNDARY, with_another
from pibls.studio.panel import PagePanel, Record, show
from pibls.studio.text_edits import with_item, with_value, without
from pibls.studio.unknown_edits import with_unknowns

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

KINDS: Mapping[str, str] = {
    "dirichlet": "Fixed value",
    "neumann": "Flux",
    "convection": "Convection",
    "robin": "Robin",
    "condition": "Equation",
    "initial": "Initial value",
    "periodic": "Periodic",
    "mean": "Mean value",
    "observation": "Measurement",
    "interface": "Interface",
}
_TOLERANCES = ("1e-2", "1e-3", "1e-4", "1e-5", "1e-6", "1e-8")


class CardPanel(PagePanel):
    """Cards that follow the text, and change it as they are typed into."""

    def __init__(self, page: StudioPage) -> None:
        super().__init__(page)
        self.shape: Any = None  # of the cards that are there; others are made when it changes
        self.fields: dict[Any, Any] = {}
        self.showing = False

    def build(self) -> None:
        """Make the containers of the cards."""
        ui = self.ui
        with ui.tabs().props("dense align=justify no-caps").classes("w-full") as tabs:
            cards, text = ui.tab("Problem"), ui.tab("File")
        with ui.tab_panels(tabs, value=cards, animated=False).classes("w-full bg-transparent"):
            with ui.tab_panel(cards).classes("p-0 pt-3"):
                self.box = ui.element("div").classes("w-full")
            with ui.tab_panel(text).classes("p-0 pt-3"):
                self.raw = ui.textarea(on_change=self._typed_raw).props(
                    'outlined autogrow spellcheck=false aria-label="Problem file"'
                )
                self.raw.classes("raw w-full")
                self.raw_caret, self.raw_words = self._error_lines()

    def _typed_raw(self, event: Any) -> None:
        if not self.showing:
            self.page.change(str(event.value or ""), "text", typed=True)

    def _error_lines(self) -> tuple[Any, Any]:
        caret = self.ui.label().classes("caret hide").props("aria-hidden=true")
        return caret, self.ui.label().classes("words hide").props("role=alert")

    def _missing(self) -> Any:
        """Make a button that gives a name its meaning, where a formula has one that stands for nothing."""
        made: Any = self.chip("", lambda: self.page.edit(with_value, ("parameters", made.missing), 1))
        return made.classes("hide")

    # Showing ---------------------------------------------------------------------------------------------------------

    def show(self, record: Record) -> None:
        """Show a problem file: new cards where there are others than before, new words in them otherwise."""
        self.showing = True
        try:
            shape = (
                len(record["equations"]),
                [(own["kind"], sorted(own["entries"]), own["on"]) for own in record["conditions"]],
                [own["name"] for own in record["parameters"]],
                self.page.edges,
            )
            if record["equations"] or record["board"] or self.shape is None:
                if shape != self.shape:
                    self.shape = shape
                    self._make(record)
                self._fill(record)
            self._set(self.raw, self.page.text)
            self._tell(self.raw_caret, self.raw_words, record["error"], whole=True)
        finally:
            self.showing = False

    def _make(self, record: Record) -> None:
        ui = self.ui
        self.fields = {}
        self.box.clear()
        with self.box:
            title = ui.input(placeholder="Title", on_change=lambda e: self._put(("title",), e.value, "title"))
            self.fields["title"] = title.props('borderless dense aria-label="Title"').classes("title-field w-full")
            unknowns = self._formula("Unknowns", label="unknowns, such as u or T, p").props("stack-label")
            unknowns.on_value_change(lambda e: self._name_unknowns(str(e.value or "")))
            self.fields["unknowns"] = unknowns.classes("w-full")
            self._heading("Equations", "Add an equation", self._add_equation)
            for number in range(len(record["equations"])):
                self._equation(number, len(record["equations"]))
            self._heading("Conditions", "Add a condition", self._add_condition)
            for number, condition in enumerate(record["conditions"]):
                self._condition(number, condition)
            self._heading("Parameters", "Add a parameter", self._add_parameter)
            for parameter in record["parameters"]:
                self._parameter(parameter)
            ui.html("<h2>Accuracy</h2>", sanitize=False)
            tol = ui.select(
                {float(own): own for own in _TOLERANCES}, label="Relative error to reach", on_change=self._chose_tol
            )
            self.fields["tol"] = tol.props("dense outlined").classes("w-full")

    def _heading(self, words: str, action: str, handler: Any) -> None:
        with self.ui.element("h2"):
            self.ui.label(words)
            add = self.ui.button(icon="add", on_click=lambda: handler())
            add.props(f'flat dense round size=sm aria-label="{action}"').tooltip(action)

    def _equation(self, number: int, count: int) -> None:
        ui = self.ui
        with ui.element("div").classes("card") as card:
            with ui.element("div").classes("row"):
                field = self._formula(f"Equation {number + 1}").classes("grow")
                field.on_value_change(lambda e: self._typed(("equation", number), ("equations", number), e.value))
                if count > 1:
                    self._remove("equation", lambda: self.page.edit(without, ("equations", number)))
            math = ui.html("", sanitize=False).classes("math")
            self.fields["equation", number] = (card, field, math, *self._error_lines(), self._missing())

    def _formula(self, name: str, **given: Any) -> Any:
        """Make a field to type a formula into, whose name is told but not shown."""
        field = self.ui.input(**given).props(f'dense borderless spellcheck=false aria-label="{name}"')
        return field.classes("formula")

    def _remove(self, thing: str, handler: Any) -> None:
        button = self.ui.button(icon="close", on_click=lambda: handler())
        button.props(f'flat dense round size=sm color=grey aria-label="Remove this {thing}"')

    def _condition(self, number: int, condition: Record) -> None:
        ui = self.ui
        with ui.element("div").classes("card") as card:
            card.on("focusin", lambda: self.page.board.highlight(number))
            card.on("focusout", lambda: self.page.board.highlight(None))
            card.on("mouseenter", lambda: self.page.board.highlight(number))
            card.on("mouseleave", lambda: self.page.board.highlight(None))
            with ui.element("div").classes("row"):
                known = condition["kind"] if condition["kind"] in KINDS else None
                kind = self.choice(dict(KINDS), f"Kind of condition {number + 1}", value=known).classes("grow")
                kind.on_value_change(lambda e: self._chose_kind(number, str(e.value)))
                self._remove("condition", lambda: self.page.edit(without, ("conditions", number)))
            entries = dict(NEEDS.get(condition["kind"], {})) | condition["entries"]
            if "equation" in condition["entries"]:
                entries = condition["entries"]
            with ui.element("div").classes("entries"):
                for key, value in entries.items():
                    if isinstance(value, str | int | float) and not isinstance(value, bool):
                        self._entry(number, key)
            math = ui.html("", sanitize=False).classes("math")
            if condition["kind"] in ON_BOUNDARY and not {"at", "where"} & set(entries):
                given = [str(own) for own in condition["on"]]
                edges = list(dict.fromkeys([*self.page.edges, *given]))
                label = "holds on" if given else "holds on the whole boundary"
                place = f"Place of condition {number + 1}"
                on = self.choice(edges, place, multiple=True, value=given, label=label)
                on.props("use-chips stack-label").classes("w-full places")
                on.on_value_change(lambda e: self._chose_places(number, e.value))
            self.fields["condition", number] = (card, None, math, *self._error_lines(), self._missing())

    def _entry(self, number: int, key: str) -> None:
        path = ("conditions", number, key)
        field = self._formula(f"{key} of condition {number + 1}", label="unknown" if key == "u" else key).props(
            "stack-label"
        )
        field.on_value_change(lambda e: self._typed(("condition", number), path, e.value))
        self.fields["entry", number, key] = field

    def _parameter(self, parameter: Record) -> None:
        ui, name = self.ui, parameter["name"]
        with ui.element("div").classes("slider-row"):
            ui.label(name)
            if not parameter["slides"]:
                field = self._formula(f"Parameter {name}").style("grid-column: 2 / 4")
                field.on_value_change(lambda e: self._put(("parameters", name), e.value, f"parameter {name}"))
                self.fields["parameter", name] = (None, field)
            else:
                slider = ui.element("input").props(f'type=range aria-label="Slider of {name}"')
                slider.on("input", lambda e: self._slid(name, e.args), js_handler="(e) => emit(e.target.valueAsNumber)")
                self._put_slider(slider, name, float(parameter["value"]))
                number = ui.number(value=parameter["value"]).props(f'dense borderless aria-label="Value of {name}"')
                number.on_value_change(lambda e: self._numbered(name, e.value))
                self.fields["parameter", name] = (slider, number)
            self._remove("parameter", lambda: self.page.edit(without, ("parameters", name)))

    def _put_slider(self, slider: Any, name: str, value: float) -> None:
        low, high, steps = self._range(name, value)
        slider.props["min"], slider.props["max"], slider.props["step"] = low, high, (high - low) / steps
        slider.props["value"] = value
        slider.update()

    def _range(self, name: str, value: float) -> tuple[float, float, int]:
        ranges, steps = self.page.session.ranges, self.page.session.crew.allowance.steps
        low, high, _ = ranges.get(name, (0.0, 0.0, steps))
        if not low <= value <= high or low == high:
            reach = 2.0 * abs(value) or 1.0
            low, high = (min(0.0, 1.5 * value), max(reach, 1.0) if value < 0 else reach) if value else (-1.0, 1.0)
        ranges[name] = (low, high, steps)
        return ranges[name]

    def _fill(self, record: Record) -> None:
        self._set(self.fields["title"], record["title"])
        if set(_words(self.fields["unknowns"].value)) != set(_words(record["unknowns"][1])):
            self.fields["unknowns"].value = record["unknowns"][1]
        for number, own in enumerate(record["equations"]):
            _, field, *_ = self.fields["equation", number]
            self._set(field, own["text"])
            self._typeset(("equation", number), own)
        for number, own in enumerate(record["conditions"]):
            for key, value in {**NEEDS.get(own["kind"], {}), **own["entries"]}.items():
                if ("entry", number, key) in self.fields:
                    self._set(self.fields["entry", number, key], str(value))
            self._typeset(("condition", number), own)
        for own in record["parameters"]:
            slider, field = self.fields["parameter", own["name"]]
            self._set(field, own["value"] if own["slides"] else str(own["value"]))
            if slider is not None and slider.props["value"] != own["value"]:
                self._put_slider(slider, own["name"], float(own["value"]))
        tol = self.fields["tol"]
        if record["tol"] not in tol.options:
            tol.options = {**tol.options, record["tol"]: f"{record['tol']:g}"}
        self._set(tol, record["tol"])

    @staticmethod
    def _set(field: Any, value: Any) -> None:
        if field.value != value:
            field.value = value

    def _typeset(self, key: tuple[Any, ...], own: Record) -> None:
        card, _, math, caret, words, add = self.fields[key]
        if own["mathml"] or own["error"]:
            math.content = own["mathml"]
        card.classes(add="wrong") if own["error"] else card.classes(remove="wrong")
        self._tell(caret, words, own["error"])
        add.missing = (own["error"] or {}).get("missing", "")
        add.words.set_text(f"Add the parameter {add.missing}")
        show(add, bool(add.missing))

    @staticmethod
    def _tell(caret: Any, words: Any, error: Record | None, whole: bool = False) -> None:
        """Show an error with the line that it is on and a caret below it, or nothing."""
        for label, text in ((caret, error["excerpt"] if error else ""), (words, error["message"] if error else "")):
            line = f"Line {error['line']}: {text}" if whole and error and error["line"] and label is words else text
            label.set_text("\n".join(row.removeprefix("    ") for row in line.splitlines()))
            show(label, bool(text))

    # Typing ----------------------------------------------------------------------------------------------------------

    def _edit(self, change: Any, *given: Any, **how: Any) -> None:
        """Change the text, unless it is the text that changes a field."""
        if not self.showing:
            self.page.edit(change, *given, **how)

    def _put(self, path: tuple[Any, ...], value: Any, mark: str) -> None:
        self._edit(with_value, path, value, mark=mark, typed=True)

    def _typed(self, key: tuple[Any, ...], path: tuple[Any, ...], value: Any) -> None:
        if self.showing:
            return
        words = str(value or "")
        if path[0] == "equations" and len(self.page.record["equations"]) == 1:
            path = self._equation_path()
        self.page.edit(with_value, path, _number_or_text(words), mark=str(path), typed=True)
        if key[0] == "equation":
            self.page.start(self._typeset_soon(key, words))

    def _equation_path(self) -> tuple[Any, ...]:
        """Return where the only equation stands, which may be a list of one or a text by itself."""
        return ("equations",) if isinstance(tomllib.loads(self.page.text).get("equations"), str) else ("equations", 0)

    async def _typeset_soon(self, key: tuple[Any, ...], words: str) -> None:
        _, field, *_ = self.fields[key]
        try:
            own = await self.page.session.typeset(words)
        except (PiblsError, asyncio.CancelledError):
            return
        if field.value == words and key in self.fields:
            self._typeset(key, own)

    def _slid(self, name: str, value: Any) -> None:
        if self.showing or value is None:
            return
        short = float(f"{float(value):.6g}")
        slider, number = self.fields["parameter", name]
        slider.props["value"] = short  # as it is on the page already
        self.showing = True
        self._set(number, short)
        self.showing = False
        self.page.slide(name, short)

    def _numbered(self, name: str, value: Any) -> None:
        if not self.showing and value is not None:
            self.page.slide(name, float(value))

    def _chose_tol(self, event: Any) -> None:
        if event.value is not None:
            self._edit(with_value, ("solve", "tol"), float(event.value))

    def _chose_kind(self, number: int, kind: str) -> None:
        if self.showing:
            return
        own = self.page.record["conditions"][number]
        kept = {key: value for key, value in own["entries"].items() if key in ("u", "where", "at", "weight")}
        place = {"on": own["on"][0] if len(own["on"]) == 1 else own["on"]} if own["on"] and kind in NEEDS else {}
        needs = {key: own["entries"].get(key, value) for key, value in NEEDS.get(kind, {}).items()}
        fresh = {"kind": kind, **kept, **needs, **(place if kind != "initial" else {})}
        self.page.edit(_exchanged, number, fresh)

    def _chose_places(self, number: int, names: Any) -> None:
        listed, path = list(names or []), ("conditions", number, "on")
        if listed:
            self._edit(with_value, path, listed[0] if len(listed) == 1 else listed)
        else:
            self._edit(without, path)

    def _name_unknowns(self, words: str) -> None:
        if names := _words(words):  # before another one is typed there may be none
            self._edit(with_unknowns, self.page.record["unknowns"][0], names, mark="unknowns", typed=True)

    def _add_equation(self) -> None:
        name = next(iter(_words(self.page.record["unknowns"][1])), "u")
        self.page.edit(with_item, ("equations",), f"{name} = 0")

    def _add_condition(self) -> None:
        self.page.edit(with_another, {"kind": "dirichlet", **self.page.first_field, "value": 0})

    def _add_parameter(self) -> None:
        taken = {own["name"] for own in self.page.record.get("parameters", [])}
        name = next(
            letter for letter in "abcdfghkmpqrs" if letter not in taken and letter not in self.page.text.split()
        )
        self.page.edit(with_value, ("parameters", name), 1)


def _words(text: Any) -> list[str]:
    """Return names that commas or spaces part.

    >>> _words("u, v")
    ['u', 'v']
    """
    return str(text or "").replace(",", " ").split()


def _exchanged(text: str, number: int, entries: Record) -> str:
    """Return the text with another condition in place of one."""
    for key in list(entries):
        text = without(text, ("conditions", number, key)) if key != "kind" else text
    for key in tomllib.loads(text)["conditions"][number]:
        if key not in entries:
            text = without(text, ("conditions", number, key))
    for key, value in entries.items():
        text = with_value(text, ("conditions", number, key), value)
    return text


def _number_or_text(words: str) -> Any:
    """Return a number where a field holds one, as files write it without quotes.

    >>> _number_or_text("2.5"), _number_or_text("2*x")
    (2.5, '2*x')
    """
    try:
        value = float(words)
    except ValueError:
        return words
    return value if abs(value) < float("inf") and words.strip()[-1:].isdigit() else words
