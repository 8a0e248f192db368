"""A solution as a mesh for ParaView: its own cells, cut off where the domain or a material ends."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import BoolArray, FloatArray, IntArray, as_reals, check_integer, refusal
from pibls.errors import InputError
from pibls.geometry.across import BESIDE
from pibls.problem.analysis import analysis_of
from pibls.quadrature.roots import CLOSE, narrowed
from pibls.report.grid_values import installed, values_at
from pibls.solution import Solution
from pibls.solution.celled import CellNetwork
from pibls.solution.evolved_cells import EvolvedCells, EvolvedLegs
from pibls.solution.storage import write_file

_ENDINGS = (".vtu", ".vtk", ".pvd")
# Simplices and boxes by the number of their axes.
_SIMPLEX = ("vertex", "line", "triangle", "tetra")
_BOX = ("vertex", "line", "quad", "hexahedron")


def to_vtk(solution: Solution, path: str | Path, times: Any = None, n: int | None = None) -> Path:
    """Write a solution as a mesh, with fields and estimated errors as data of its points; see :meth:`Solution.to_vtk`.

    A series of times is one ``.pvd`` file that names a ``.vtu`` file for each of them.
    """
    meshio = installed("meshio", "to_vtk")
    target = Path(path)
    if target.suffix.lower() not in _ENDINGS:
        raise InputError(f"to_vtk writes {', '.join(_ENDINGS)} files. Got {str(path)!r} instead.")
    pieces = None if n is None else check_integer("n", n, "to_vtk", minimum=1)
    series = target.suffix.lower() == ".pvd"
    chosen = _times(solution, times, series)
    if not series:
        return write_file(target, CellMesh(solution, next(iter(chosen), None), pieces).to_meshio(meshio).write)
    names = [target.with_name(f"{target.stem}_{number:04d}.vtu") for number in range(len(chosen))]
    for name, time in zip(names, chosen, strict=True):
        write_file(name, CellMesh(solution, time, pieces).to_meshio(meshio).write)
    # The list comes last: whoever opens it finds all that it names.
    text = _collection(names, chosen, " ".join(solution.problem.field_names))
    return write_file(target, lambda place: place.write_text(text, encoding="utf-8"))


def _times(solution: Solution, times: Any, series: bool) -> list[float]:
    """Return the times to write; none for a mesh of all coordinates."""
    domain = solution.problem.domain
    if domain.time is None:
        if times is not None or series:
            raise InputError(
                "The 'times' parameter of to_vtk and files that end with .pvd are for problems in time. This domain, "
                f"{domain}, has none. Write a .vtu file."
            )
        return []
    low, high = domain.bounds[-1].tolist()
    if times is None and series:
        return [float(time) for time in np.linspace(low, high, 21)]
    if times is None:
        if len(domain.coordinates) >= len(_BOX):
            raise InputError(
                f"to_vtk cannot draw {len(domain.coordinates)} coordinates at once. Choose times=[...] and a .pvd file."
            )
        return []
    found = as_reals(times)
    if found is None or found.ndim > 1 or found.size == 0 or not ((found >= low) & (found <= high)).all():
        raise refusal("times", "to_vtk", f"be times from {low:g} to {high:g}", times)
    if found.size > 1 and not series:
        raise refusal("times", "to_vtk", "be one time for one file", times, "Name a .pvd file for several.")
    return [float(time) for time in np.atleast_1d(found)]


def _collection(names: Sequence[Path], times: Sequence[float], fields: str) -> str:
    """Return the text that lists the files of a series."""
    from xml.sax.saxutils import quoteattr

    lines = [
        f"<DataSet timestep={quoteattr(repr(time))} file={quoteattr(name.name)}/>"
        for name, time in zip(names, times, strict=True)
    ]
    head, tail = '<VTKFile type="Collection" version="0.1"><Collection>', "</Collection></VTKFile>"
    return "\n".join(['<?xml version="1.0"?>', head, *lines, tail, f"<!-- {fields} -->", ""])


@dataclass(frozen=True, eq=False)
class CellMesh:
    """The cells of a solution, each cut into pieces along every axis and cut off where the domain ends.

    Where a material ends within a cell, its pieces end there, too. Every cell has points of its own, and values that
    belong to it: a jump across an interface stays a jump.
    """

    solution: Solution
    time: float | None = None  # where to cut through time, None for a mesh of all coordinates
    pieces: int | None = None  # along each axis of a cell; as many as a smooth picture takes if left out

    @property
    def axes(self) -> int:
        """Number of the coordinates of the mesh."""
        return len(self.solution.coordinate_names) - (self.time is not None)

    @cached_property
    def boxes(self) -> FloatArray:
        """The bounds of all cells, shape (cells, axes, 2)."""
        network, bounds = self.solution.network, np.asarray(self.solution.problem.domain.bounds, dtype=np.float64)
        if not 0 < self.axes < len(_BOX):
            raise InputError(f"to_vtk takes one to three coordinates of space. Got {self.axes} of them.")
        if self.solution.problem.domain.atoms is not None:
            raise InputError("to_vtk needs a domain with an inside, and a point cloud has none. Use to_csv.")
        if isinstance(network, EvolvedCells | EvolvedLegs):
            return network.space_at(self.time).cell_boxes(bounds[:-1])
        if not isinstance(network, CellNetwork):
            return bounds[None, : self.axes]
        boxes = network.cell_boxes(bounds)
        if self.time is not None:
            low, high = boxes[:, -1].T
            # A time on a wall belongs to the cells below it, as in the network.
            boxes = boxes[((low < self.time) | (low == bounds[-1, 0])) & (self.time <= high)]
        return np.asarray(boxes[:, : self.axes])

    @cached_property
    def _count(self) -> int:
        smooth = {1: 400, 2: 80, 3: 20}[self.axes] / len(self.boxes) ** (1 / self.axes)
        return max(4, int(np.ceil(smooth))) if self.pieces is None else self.pieces

    @cached_property
    def _lattice(self) -> FloatArray:
        """The corners of all pieces, shape (cells, corners of pieces, axes)."""
        along = self.boxes[..., :1] + (self.boxes[..., 1:] - self.boxes[..., :1]) * np.linspace(0, 1, self._count + 1)
        grids = [np.stack(np.meshgrid(*own, indexing="ij"), axis=-1).reshape(-1, self.axes) for own in along]
        return np.stack(grids)

    def _lifted(self, X: FloatArray) -> FloatArray:
        return X if self.time is None else np.column_stack([X, np.full(len(X), self.time)])

    def _drawn_in(self, X: FloatArray, cells: IntArray) -> FloatArray:
        """Return points moved into their cells by next to nothing, so that they belong to them."""
        return np.asarray(X + BESIDE * (self.boxes[cells].mean(axis=2) - X))

    @cached_property
    def _pieces(self) -> tuple[FloatArray, IntArray, Mapping[str, IntArray]]:
        """Points, the cell of each, and corners of the pieces by their shape."""
        m, size = self.axes, len(self._lattice[0])
        points, owners = [self._lattice.reshape(-1, m)], [np.repeat(np.arange(len(self.boxes)), size)]
        strides = (self._count + 1) ** np.arange(m)[::-1]
        first = np.stack(np.meshgrid(*[np.arange(self._count)] * m, indexing="ij"), axis=-1).reshape(-1, m) @ strides
        starts = (first + size * np.arange(len(self.boxes))[:, None]).ravel()
        corners = starts[:, None] + _corners(m) @ strides
        found: dict[str, list[IntArray]] = {}
        for holds in self._kinds():
            inside = holds(points[0], owners[0])
            whole = inside[corners].all(axis=1)
            if m == len(_BOX) - 1:
                # The side of a box is no side of two tetrahedra: a cell in space has one kind of pieces.
                whole &= np.repeat(whole.reshape(len(self.boxes), -1).all(axis=1), len(first))
            found.setdefault(_BOX[m], []).append(corners[whole])
            mixed = starts[inside[corners].any(axis=1) & ~whole]
            simplices = np.concatenate([mixed[:, None] + path for path in _paths(strides)])
            offset = sum(map(len, points))
            clipped, added, cells_of = _clipped(simplices, inside, points[0], owners[0], holds, offset)
            points.append(added)
            owners.append(cells_of)
            found.setdefault(_SIMPLEX[m], []).append(clipped)
        cells = {shape: np.concatenate(many) for shape, many in found.items()}
        return np.concatenate(points), np.concatenate(owners), cells

    def _kinds(self) -> Iterator[Callable[[FloatArray, IntArray], BoolArray]]:
        """Yield for every kind of material how to tell which points of cells are of it and in the domain."""
        network, contains = self.solution.network, self.solution.problem.domain.contains
        branch = network.branch if isinstance(network, CellNetwork) else None
        for kind in [0] if branch is None else np.unique(network.kinds).tolist():  # type: ignore[union-attr]

            def holds(X: FloatArray, cells: IntArray, kind: int = kind) -> BoolArray:
                places = self._lifted(self._drawn_in(X, cells))
                inside = np.asarray(contains(places), dtype=np.bool_)
                return inside if branch is None else inside & (branch(places).astype(np.int64) == kind)

            yield holds

    def to_meshio(self, meshio: Any) -> Any:
        """Return the mesh with its data."""
        points, owners, cells = self._pieces
        cells = {shape: own for shape, own in cells.items() if len(own)}
        used, numbers = np.unique(np.concatenate([own.ravel() for own in cells.values()]), return_inverse=True)
        ends = np.cumsum([own.size for own in cells.values()])[:-1]
        blocks = [
            (shape, own.reshape(cells[shape].shape)) for shape, own in zip(cells, np.split(numbers, ends), strict=True)
        ]
        X = points[used]
        values = values_at(self.solution, self._lifted(self._drawn_in(X, owners[used])))
        data: dict[str, list[Any]] = {"cell": [owners[own[:, 0]] for own in cells.values()]}
        # Cells may end where materials do, and then have one each.
        switching = analysis_of(self.solution.problem).switching
        if switching is not None and switching.jumps:
            middles = (self._lifted(points[own].mean(axis=1)) for own in cells.values())
            data["material"] = [switching.branch(X).astype(np.int64) for X in middles]
        padded = np.column_stack([X, np.zeros((len(X), len(_BOX) - 1 - self.axes))])
        return meshio.Mesh(padded, blocks, point_data=values, cell_data=data)


def _corners(m: int) -> IntArray:
    """Return the corners of a box with sides of one, in the order of VTK: around the bottom, then around the top."""
    around = [[0], [1]] if m == 1 else [[0, 0], [1, 0], [1, 1], [0, 1]]
    return np.array(around if m < 3 else [[*corner, height] for height in (0, 1) for corner in around])


def _paths(strides: IntArray) -> Iterator[IntArray]:
    """Yield the simplices of a box, as strides from its first corner: those of neighbours fit together."""
    for order in itertools.permutations(range(len(strides))):
        yield np.concatenate([[0], np.cumsum(strides[list(order)])])


def _clipped(
    simplices: IntArray,
    inside: BoolArray,
    points: FloatArray,
    owners: IntArray,
    holds: Callable[[FloatArray, IntArray], BoolArray],
    offset: int,
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return the part of simplices in which something holds as simplices, and points made for them with their cells.

    New points are numbered from an offset.
    """
    m = simplices.shape[1] - 1
    # Inner corners first, each kind by number: neighbours cut their common face alike.
    order = np.lexsort((simplices, ~inside[simplices]), axis=1)
    simplices = np.take_along_axis(simplices, order, axis=1)
    counts = inside[simplices].sum(axis=1)
    simplices, counts = simplices[counts > 0], counts[counts > 0]
    ends = [
        np.sort(simplices[counts == k][:, [i, j]], axis=1)
        for k in range(1, m + 1)
        for i in range(k)
        for j in range(k, m + 1)
    ]
    edges = np.unique(np.concatenate([np.empty((0, 2), dtype=np.int64), *ends]), axis=0)
    swap = ~inside[edges[:, 0]]
    inner, outer = np.where(swap, edges[:, 1], edges[:, 0]), np.where(swap, edges[:, 0], edges[:, 1])
    start, way, cells = points[inner], points[outer] - points[inner], owners[inner]

    def kept(shares: FloatArray) -> BoolArray:
        places = (start[:, None] + shares[..., None] * way[:, None]).reshape(-1, start.shape[1])
        return holds(places, np.repeat(cells, shares.shape[1])).reshape(shares.shape)

    share, _ = narrowed(kept, np.zeros(len(edges)), np.ones(len(edges)), CLOSE)

    def cut(group: IntArray, i: int, j: int) -> IntArray:
        pairs = np.sort(group[:, [i, j]], axis=1)
        keys = edges[:, 0] * len(points) + edges[:, 1]
        return np.asarray(offset + np.searchsorted(keys, pairs[:, 0] * len(points) + pairs[:, 1]))

    made = [simplices[counts == m + 1]]
    for k in range(1, m + 1):
        group = simplices[counts == k]
        if len(group):
            made += _prism([[group[:, i], *(cut(group, i, j) for j in range(k, m + 1))] for i in range(k)])
    new = start + share[:, None] * way
    every = np.concatenate([points, np.empty((offset - len(points), m)), new])
    return _upright(np.concatenate(made), every), new, cells


def _upright(simplices: IntArray, points: FloatArray) -> IntArray:
    """Return simplices with a positive volume: some turned round, those that are flat left out."""
    sides = points[simplices[:, 1:]] - points[simplices[:, :1]]
    volumes, lengths = np.linalg.det(sides), np.prod(np.linalg.norm(sides, axis=2), axis=1)
    turned = simplices.copy()
    turned[:, -2:] = np.where(volumes[:, None] < 0, simplices[:, :-3:-1], simplices[:, -2:])
    return np.asarray(turned[np.abs(volumes) > BESIDE * lengths])


def _prism(columns: list[list[IntArray]]) -> list[IntArray]:
    """Return the simplices of a product of two simplices, given by its corners: one for every staircase."""
    rows, width = len(columns), len(columns[0])
    found = []
    for ups in itertools.combinations(range(rows + width - 2), rows - 1):
        i = j = 0
        path = [columns[0][0]]
        for step in range(rows + width - 2):
            i, j = (i + 1, j) if step in ups else (i, j + 1)
            path.append(columns[i][j])
        found.append(np.stack(path, axis=1))
    return found
