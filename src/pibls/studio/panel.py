"""The elements that all panels of a page are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pibls.studio.page import StudioPage

Record = dict[str, Any]


class PagePanel:
    """A part of a page that makes its elements once and shows records in them."""

    def __init__(self, page: StudioPage) -> None:
        self.page, self.ui = page, page.ui

    def chip(self, words: str, handler: Any, props: str = "") -> Any:
        """Make a small button."""
        made = self.ui.element("button").classes("chip").props(f"type=button {props}")
        with made.on("click", lambda: handler()):
            made.words = self.ui.label(words)
        return made

    def choice(self, options: Any, name: str, **given: Any) -> Any:
        """Make a list to choose from, whose name is told but not shown."""
        return self.ui.select(options, **given).props(f'dense borderless options-dense aria-label="{name}"')


def show(element: Any, wanted: bool) -> None:
    """Show an element, or hide it."""
    element.classes(remove="hide") if wanted else element.classes(add="hide")


def offer(choice: Any, options: Any, value: Any, wanted: bool) -> None:
    """Offer options to choose from, if there is a choice."""
    choice.options, choice.value = options, value
    choice.update()
    show(choice, wanted)
