"""Inverse problems as a user writes them: models that a meter reads, with the answer that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

import numpy as np

import pibls as pb
from pibls.checks import FloatArray

__all__ = ["MODES", "Inverse", "Meter", "collected"]

Mode = Literal["stated", "unstated", "exact"]
MODES: tuple[Mode, ...] = ("stated", "unstated", "exact")


@dataclass(frozen=True)
class Meter:
    """Makes observations from true values: noisy with the noise stated or not, or exact."""

    rng: np.random.Generator
    mode: Mode

    def __call__(self, what: Any, where: Any, values: Any, noise: float) -> pb.Observation:
        """Return the observation of values that are true, with noise of a standard deviation."""
        true = np.asarray(values, dtype=float)
        if self.mode == "exact":
            return pb.Observation(what, where, true)
        noisy = true + noise * self.rng.standard_normal(len(true))
        return pb.Observation(what, where, noisy, noise=noise if self.mode == "stated" else None)


@dataclass(frozen=True)
class Inverse:
    """A problem that is made for a meter, the status of the right answer, and a word that its message has.

    A model that its data contradict should be ``"stalled"``. ``function`` is the truth of an unknown function of the
    first coordinate, and ``accuracy`` the relative error that it may have.
    """

    name: str
    make: Callable[[Meter], pb.Problem]
    expected: str
    told: str
    modes: tuple[Mode, ...]
    function: Callable[[FloatArray], FloatArray] | None
    accuracy: float

    def problem(self, mode: Mode, seed: int) -> pb.Problem:
        """Return the problem with the noise of a seed.

        >>> from benchmarks.sets.inverse_open import inverse_open
        >>> inverse_open["cooling_cup"].problem("stated", 0).truth
        {'h': 0.08, 'room': 21}
        """
        return self.make(Meter(np.random.default_rng([seed, crc32(self.name.encode())]), mode))


def collected() -> tuple[Callable[..., Any], dict[str, Inverse]]:
    """Return a decorator that lists functions which make problems, and the list."""
    cases: dict[str, Inverse] = {}

    def case(
        expected: str = "converged",
        told: str = "",
        modes: tuple[Mode, ...] = MODES,
        function: Callable[[FloatArray], FloatArray] | None = None,
        accuracy: float = 0.05,
    ) -> Callable[..., Any]:
        def listed(make: Callable[[Meter], pb.Problem]) -> Callable[[Meter], pb.Problem]:
            cases[make.__name__] = Inverse(make.__name__, make, expected, told, modes, function, accuracy)
            return make

        return listed

    return case, cases
