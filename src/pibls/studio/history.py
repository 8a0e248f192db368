"""The texts of a problem as they were typed, one after the other, to go back and forth in."""

from __future__ import annotations

from dataclasses import dataclass, replace


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
