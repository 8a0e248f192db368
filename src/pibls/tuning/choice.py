"""The choice of the feature scale of a problem: with narrow pilots, with wider ones if need be, then at full width."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pibls.runtime import blas_threads
from pibls.tuning.laboratory import Block, Laboratory, Scale
from pibls.tuning.pilots import Pilots
from pibls.tuning.scan import Scan, choose_scale, raise_scale, refine_scale, widened

__all__ = ["SOLVES_NOTHING", "Choice"]

SOLVES_NOTHING = 0.3
_HARDLY_SOLVED = 0.1
_LEVELS = (1, 2, 4)
_LEADING = 10
_MARGIN = 30.0
_ROUND_OFF = 1e-11
_EASY = 1e-8  # a pilot that does so well leaves a network of twice its width next to round-off
_FEW_AXES = 3  # with more, there are too many to be tried one by one at full width


@dataclass(eq=False)
class Choice:
    """The scale of a problem's features.

    Parameters
    ----------
    lab
        Where pilots are fitted.
    tol
        Tolerance of the solve: the search stops when a pilot meets it.
    report
        Called with the width of every pilot before it is fitted.
    hurry
        Asked whether there is no time for wider pilots.
    hopeless
        Asked, where no pilot solves anything, whether none ever will.
    known
        Scales that suit already: only they and their neighbours are tried.

    Examples
    --------
    >>> from pibls.problems import helmholtz
    >>> choice = Choice(Laboratory(helmholtz(), 0), 1e-3)
    >>> choice.begin()
    240
    >>> all(3 < value < 8 for value in choice.scale)
    True
    """

    lab: Laboratory
    tol: float
    report: Callable[[int], None] = lambda _: None
    hurry: Callable[[], bool] = lambda: False
    hopeless: Callable[[], bool] = lambda: False
    known: Sequence[Scale] = ()
    scale: Scale = ()
    width: int = 0
    pilot: tuple[int, float] = (0, np.inf)
    impossible: bool = field(default=False, init=False)
    pilots: Pilots | None = field(default=None, init=False)

    def begin(self) -> int:
        """Choose with pilots, and with wider ones as long as none solves anything; return the width to start at."""
        known = self.known
        for level in _LEVELS:
            nodes = level * self.lab.pilot_nodes
            scan = self._scan(nodes, known)
            if scan.score < _HARDLY_SOLVED or self.hurry():
                break
            self.impossible = level == 1 and self.hopeless()
            if self.impossible:
                break
            # Where hardly anything is solved, scores say little: wider pilots decide between the better ones.
            known = scan.leading(_LEADING) if scan.score < SOLVES_NOTHING else self.known
        self.pilot = (nodes, scan.score)
        # A margin: what a pilot just meets, twice its width meets with digits to spare.
        ratio = 2 if nodes == self.lab.pilot_nodes else 1
        self.scale, self.width = widened(scan.scale, ratio), ratio * nodes
        enough = _ROUND_OFF if ratio == 1 else _EASY
        if scan.score > enough and self.lab.axes <= _FEW_AXES and not self.known:
            self.refine(together=True)
        elif self.lab.axes == 1 and scan.score < _ROUND_OFF:
            with blas_threads(most=1):
                self.scale = raise_scale(self._full(), self.scale)
        return self.width

    def refine(self, *, together: bool = False) -> None:
        """Choose again at the width to start at: pilots are narrower, and what suits them may not suit it."""
        with blas_threads(most=1):
            together = together or self.lab.axes > _FEW_AXES or bool(self.known)
            self.scale = refine_scale(self._full(), self.scale, together=together)

    def wider(self, width: int) -> list[Block]:
        """Return the nodes of a wider network, where the scale is worth choosing again."""
        if self.lab.axes == 1:
            # What is not resolved on a line is a layer, and the scale that suits it grows with the network.
            self.scale, self.width = self.blocks(width)[0].scale, width
        self.refine()
        return self.blocks(width)

    def _full(self) -> Callable[[Scale], float]:
        """Return the score of pilots of the width to start at; what they have shown is not computed again."""
        if self.pilots is None or self.pilots.nodes != self.width:
            self.pilots = Pilots(self.lab, self.width)
        return self._scored(self.pilots)

    def blocks(self, width: int) -> list[Block]:
        """Return the nodes of a network of any width."""
        return self.lab.blocks(width, widened(self.scale, width / self.width))

    def more(self, blocks: Sequence[Block], nodes: int | None = None) -> list[Block]:
        """Return blocks to add to others: half as many nodes as there are, or so many, at somewhat finer scales."""
        width = sum(block.nodes for block in blocks)
        count = width // 2 if nodes is None else nodes
        return self.lab.blocks(count, widened(blocks[-1].scale, 1.0 + count / width))

    def _scored(self, pilots: Pilots) -> Callable[[Scale], float]:
        def score(scale: Scale) -> float:
            self.report(pilots.nodes)
            return pilots.score(scale)

        return score

    def _scan(self, nodes: int, known: Sequence[Scale]) -> Scan:
        pilots = Pilots(self.lab, nodes)

        def accept(scale: Scale) -> bool:
            blocks = self.lab.blocks(nodes, scale)
            pilot = self.lab.fit(blocks, pilots.points)
            richer = self.lab.fit([*blocks, *self.more(blocks)], pilots.points)
            return self.lab.distance(pilot, richer) < self.tol

        with blas_threads(most=1):
            return choose_scale(
                self._scored(pilots),
                self.lab.axes,
                self.tol / _MARGIN,
                time_axis=self.lab.time_axis,
                accept=accept,
                known=known,
            )
