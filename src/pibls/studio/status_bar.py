"""The bottom of the page: the state of the problem and of its solution in words, and the estimate as it falls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pibls.status import Status
from pibls.studio.panel import PagePanel, Record

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

_TONES = {
    Status.CONVERGED: "good",
    Status.STALLED: "warn",
    Status.ILL_POSED: "bad",
    Status.INTERRUPTED: "warn",
}
_WAYS = {"kept factors": "from kept factors", "between": "between kept solutions"}


class StatusBar(PagePanel):
    """Words, figures and a small curve."""

    def __init__(self, page: StudioPage) -> None:
        super().__init__(page)
        self.course: list[float] = []
        self.tol = 1e-4
        self.begun = False

    def build(self) -> None:
        """Make the elements."""
        ui = self.ui
        self.words = ui.label("Reading the problem …").classes("status").props("role=status aria-live=polite")
        self.curve = ui.html("", sanitize=False).props("aria-hidden=true")
        self.figures = ui.label().classes("figures")

    def tell(self, words: str, tone: str = "") -> None:
        """Say something, in green, amber or red if it matters."""
        self.words.set_text(words)
        self.words.classes(remove="good warn bad", add=tone)

    def refuse(self, words: str) -> None:
        """Say why something was not done."""
        self.tell(words, "bad")

    def show_problem(self, record: Record) -> None:
        """Say whether the problem can be solved."""
        self.tol = record["tol"]
        answered = self.page.solution.answer is not None
        fresh = self.page.session.solved == self.page.text and not record["error"]
        if self.page.session.solving or (answered and fresh):
            return
        if record["error"]:
            line = f"Line {record['error']['line']}: " if record["error"]["line"] else ""
            self.refuse(line + record["error"]["message"])
        elif record["told"]:
            self.tell(record["told"], "warn")
        elif answered:
            self.tell("The problem has changed. Press Solve to see its solution.")
        else:
            self.tell("Ready to solve.")

    def clear(self) -> None:
        """Take away the figures and the curve of a solution."""
        self.course = []
        self.figures.set_text("")
        self.curve.content = ""

    def begin(self) -> None:
        """Say that a solve has begun."""
        crew = self.page.session.crew
        ahead = f"Waiting: {crew.running + crew.queued - 1} solves are ahead."
        self.tell(ahead if self.page.session.waits else "Solving …")
        self.clear()

    def progress(self, now: Record) -> None:
        """Show how far a solve has come."""
        if now["estimate"]:
            self.course.append(now["estimate"])
            self._draw()
        estimate = f", estimated error {now['estimate']:.0e} of {self.tol:.0e}" if now["estimate"] else ""
        doing = {"scan": "Choosing scales", "estimate": "Estimating the error"}.get(now["stage"], "Solving")
        self.tell(f"{doing}: {now['nodes']} weights{estimate}")
        self.figures.set_text(f"{now['seconds']:.1f} s")

    def show_answer(self, found: Record) -> None:
        """Say how accurate the solution is, and how to go on if it is not."""
        status = found["status"]
        moving = found.get("way") == "between"
        head = "" if moving or status == Status.CONVERGED else f"{status.capitalize()}. "
        lines = [head + found["message"], *found["parameters"]]
        if found["eigenvalues"]:
            lines.append("Eigenvalues: " + ";  ".join(found["eigenvalues"]))
        self.tell("  ".join(lines), "" if moving else _TONES.get(status, ""))
        facts = [f"estimate {found['estimate']:.1e}"] if found["estimate"] is not None else []
        facts += [f"true error {found['true_error']:.1e}"] if found["true_error"] is not None else []
        way = _WAYS.get(found.get("way", ""), "")
        self.figures.set_text("  ·  ".join([*facts, found["size"], f"{found['seconds']:.2f} s", *filter(None, [way])]))
        if found["estimate"] and not way:
            self.course.append(found["estimate"])
            self._draw()

    def _draw(self) -> None:
        """Draw the estimates so far on a scale of decades, and the tolerance as a dashed line."""
        heights = [math.log10(max(value, 1e-16)) for value in self.course]
        low, high = min([*heights, math.log10(self.tol)]) - 0.3, max([*heights, math.log10(self.tol)]) + 0.3
        step = 118 / max(1, len(heights) - 1)

        def y(value: float) -> float:
            return 32 - 30 * (value - low) / (high - low)

        spots = [(6 + step * i, y(value)) for i, value in enumerate(heights)]
        dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.4"/>' for a, b in spots)
        way = " ".join(f"{a:.1f},{b:.1f}" for a, b in spots)
        goal = f'<line x1="0" x2="130" y1="{y(math.log10(self.tol)):.1f}" y2="{y(math.log10(self.tol)):.1f}"/>'
        self.curve.content = f'<svg class="falling" viewBox="0 0 130 34">{goal}<polyline points="{way}"/>{dots}</svg>'
