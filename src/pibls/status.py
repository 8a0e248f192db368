"""The status of a solution, in one word."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Status"]


class Status(StrEnum):
    """The outcome of a solve: a string to compare, print and store, with its meaning and a remedy.

    Examples
    --------
    >>> Status.STALLED, Status.STALLED == "stalled", Status("stalled") is Status.STALLED
    ('stalled', True, True)
    >>> Status.STALLED.meaning
    'The estimated error is above the tolerance, or not known; the message says what limits it.'
    >>> Status.STALLED.remedy
    'Follow the message, or accept the solution as it is with a larger tol.'
    """

    CONVERGED = "converged"
    STALLED = "stalled"
    ILL_POSED = "ill-posed"
    FITTED = "fitted"
    INTERRUPTED = "interrupted"

    @property
    def meaning(self) -> str:
        """The meaning of the word for a solution."""
        return _WORDS[self][0]

    @property
    def remedy(self) -> str:
        """The advice for a user whose solution ends so."""
        return _WORDS[self][1]

    def __repr__(self) -> str:
        # Shown like the string that it equals, in records and at the prompt.
        return repr(str(self))


_WORDS = {
    Status.CONVERGED: ("The estimated error is within the tolerance.", "Use the solution."),
    Status.STALLED: (
        "The estimated error is above the tolerance, or not known; the message says what limits it.",
        "Follow the message, or accept the solution as it is with a larger tol.",
    ),
    Status.ILL_POSED: (
        "The problem has no solution, more than one, or one that its data cannot determine.",
        "Check signs, values and conditions; if the problem is sound, solve it with assume_well_posed=True.",
    ),
    Status.FITTED: (
        "A method was fitted with its own settings; its error was not compared with a tolerance.",
        "Use pibls.solve with that method to have the error estimated.",
    ),
    Status.INTERRUPTED: (
        "Ctrl-C ended the training; these are the best weights so far.",
        "Run it again to the end, or with fewer iterations.",
    ),
}
