"""Finds which parts share unknowns: on faces, on coarse sides of several faces, and by links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from pibls.cells.layout import Layout
from pibls.cells.local import CoarseSide, Link, LocalSystems, Ties
from pibls.cells.parts import CellPart, Face
from pibls.cells.rows import Rows
from pibls.cells.tree import Cell, Contact, contacts, leaves
from pibls.quadrature.roots import CLOSE

__all__ = ["Sharing"]


@dataclass(eq=False)
class Sharing:
    """Finds the faces and links of all parts of one tree after another; known ones remain the same objects."""

    local: LocalSystems
    _coarse_sides: dict[Any, CoarseSide] = field(default_factory=dict)
    _sides: dict[Face, tuple[CellPart, int, bool] | None] = field(default_factory=dict)  # coarse sides of faces
    _links: dict[Any, Link] = field(default_factory=dict)
    _faces: dict[CellPart, list[Face]] = field(default_factory=dict)  # of the last tree

    def __post_init__(self) -> None:
        self.rows: Rows = self.local.rows
        self.layout: Layout = self.rows.layout

    def ties_of(self, root: Cell, within: Cell | None = None) -> dict[CellPart, Ties]:
        """Return the faces and links of every part; those of a subtree, with the parts beside it, if one is given."""
        # Links may join any parts.
        apart = within is not None and not self.rows.averages and not self.layout.tree_domain.corner_singularities
        every = contacts(root, self.rows.traces.periodic, within if apart else None)
        cells, every = _near(leaves(within), every) if within is not None and apart else (leaves(root), every)
        held: dict[CellPart, list[Face]] = {part: [] for part in self.layout.parts_of(cells)}
        self._faces = held
        if len(held) < 2 and not every:
            return {part: Ties(()) for part in held}  # a part alone shares nothing
        coarse_sides: dict[tuple[CellPart, int, bool], list[Face]] = {}
        for contact, faces in zip(every, self.layout.face_finder.faces_of(every), strict=True):
            for face in faces:
                held[face.below].append(face)
                held[face.above].append(face)
                if face not in self._sides:
                    self._sides[face] = _beside(contact, face)
                if (key := self._sides[face]) is not None:
                    coarse_sides.setdefault(key, []).append(face)
        self._join(coarse_sides)
        for leaf in cells:
            for face in self.layout.interface_faces(leaf):
                held[face.below].append(face)
                held[face.above].append(face)
        links = self._links_between(cells, tuple(held))
        return {part: Ties(tuple(faces), tuple(links.get(part, ()))) for part, faces in held.items()}

    def alike(self, face: Face) -> list[Face]:
        """Return the faces of the last tree that lie between the same two parts in the same way, in order."""
        kind = (face.above, face.axis, face.shift, face.normals is None)
        faces = self._faces[face.below]
        return [own for own in faces if (own.above, own.axis, own.shift, own.normals is None) == kind]

    def _join(self, coarse_sides: dict[tuple[CellPart, int, bool], list[Face]]) -> None:
        """Let the faces that make up a side of a part share the unknowns of that coarse side."""
        joined: dict[Face, CoarseSide] = {}
        for key, faces in coarse_sides.items():
            part, axis, _ = key
            whole = float(np.prod(np.delete(2 * part.half, axis)))
            complete = abs(sum(face.area for face in faces) - whole) < CLOSE * whole
            if complete and all(self.rows.flux.is_plain(face) for face in faces):
                joined |= dict.fromkeys(faces, self._coarse_sides.setdefault(key, CoarseSide(*key)))
        self.local.coarse_sides = joined

    def _links_between(self, cells: Sequence[Cell], parts: tuple[CellPart, ...]) -> dict[CellPart, list[Link]]:
        """Return the links of parts: consecutive ones for each average, and all around each corner singularity."""
        chains: list[tuple[Any, tuple[CellPart, ...]]] = []
        chains += [(statement, pair) for statement in self.rows.averages for pair in pairwise(parts)]
        for singularity in self.layout.tree_domain.corner_singularities:
            around = tuple(self.layout.parts_of(singularity.around(cells)[1]))
            self.local.around[singularity] = set(around)
            chains += [(singularity, around)] if len(around) > 1 else []
        found: dict[CellPart, list[Link]] = {}
        for of, linked in chains:
            link = self._links.setdefault((of, linked), Link(linked[0], linked[1], of))
            for part in linked:
                found.setdefault(part, []).append(link)
        return found


def _near(cells: Sequence[Cell], every: Sequence[Contact]) -> tuple[list[Cell], list[Contact]]:
    """Return the contacts of some cells, and those on the sides of others that they touch; and all of their cells."""
    mine = set(cells)
    sides = {(own.above, own.axis, False) for own in every if own.below in mine}
    sides |= {(own.below, own.axis, True) for own in every if own.above in mine}
    found = [
        own
        for own in every
        if own.below in mine
        or own.above in mine
        or (own.below, own.axis, True) in sides
        or (own.above, own.axis, False) in sides
    ]
    return list(dict.fromkeys([*cells, *(cell for own in found for cell in (own.below, own.above))])), found


def _beside(contact: Contact, face: Face) -> tuple[CellPart, int, bool] | None:
    """Return the larger one of two whole parts and its side, if the other part's side lies entirely within it."""
    if not face.whole or face.shift or len(face.below.half) == 1:
        return None
    others = [axis for axis in range(len(face.below.half)) if axis != face.axis]
    span = ((contact.high - contact.low) * (1 + CLOSE)).tolist()
    below, above = ((2 * part.half).tolist() for part in (face.below, face.above))
    whole_below, whole_above = (all(side[a] < span[a] for a in others) for side in (below, above))
    if whole_below == whole_above:
        return None
    return (face.above, face.axis, False) if whole_below else (face.below, face.axis, True)
