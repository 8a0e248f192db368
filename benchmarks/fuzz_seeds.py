"""Whole files that :mod:`benchmarks.fuzz_files` changes: solutions, problem files, a table and shapes."""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path

import sympy as sp

import pibls as pb

__all__ = ["PROBLEMS", "SHAPES", "TABLE", "solutions"]

_POINTS = [(x / 4, y / 4) for x in range(5) for y in range(5)]
TABLE = "x,y,kappa\n" + "".join(f"{x},{y},{x * x + y * y - 0.5}\n" for x, y in _POINTS)
_SQUARE = [[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]
_HOLE = [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
_NODES = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
_FACES = [(0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2)]


def _lines(rows: list[tuple[object, ...]]) -> str:
    return "".join(" ".join(map(str, row)) + "\n" for row in rows)


def _numbered(rows: list[tuple[int, ...]]) -> str:
    return _lines([(k + 1, *row) for k, row in enumerate(rows)])


_STL = "solid a\n" + "".join(
    "facet normal 0 0 0\nouter loop\n"
    + "".join("vertex {} {} {}\n".format(*_NODES[k]) for k in face)
    + "endloop\nendfacet\n"
    for face in _FACES
)
_VTK = "# vtk DataFile Version 4.2\nmade\nASCII\nDATASET "
_MSH_41 = """$MeshFormat
4.1 0 8
$EndMeshFormat
$Entities
0 0 1 0
1 0 0 0 1 1 0 1 1 0
$EndEntities
$Nodes
1 4 1 4
2 1 0 4
1
2
3
4
0 0 0
1 0 0
1 1 0
0 1 0
$EndNodes
$Elements
1 2 1 2
2 1 2 2
1 1 2 3
2 1 3 4
$EndElements
"""
_VTU = (
    '<VTKFile type="UnstructuredGrid" version="0.1" byte_order="LittleEndian"><UnstructuredGrid>'
    '<Piece NumberOfPoints="4" NumberOfCells="1"><Points>'
    '<DataArray type="Float64" Name="Points" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 0 1 0 0 0 1</DataArray>'
    '</Points><Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2 3</DataArray>'
    '<DataArray type="Int64" Name="offsets" format="ascii">4</DataArray>'
    '<DataArray type="UInt8" Name="types" format="ascii">10</DataArray></Cells></Piece></UnstructuredGrid></VTKFile>'
)
SHAPES: dict[str, bytes] = {
    name: text.encode()
    for name, text in {
        "a.geojson": json.dumps(
            {
                "type": "FeatureCollection",
                "features": [
                    {
                        "type": "Feature",
                        "properties": {"name": "plate"},
                        "geometry": {"type": "Polygon", "coordinates": [_SQUARE, _HOLE]},
                    }
                ],
            }
        ),
        "a.svg": '<svg height="9"><path d="M0 0 C 0 4 4 4 4 0 A 2 1 0 0 1 0 0 Z"/><g transform="translate(1 2)">'
        '<rect x="6" width="2" height="3"/><circle cx="20" cy="5" r="2"/></g></svg>',
        "a.stl": f"{_STL}endsolid a\n",
        "a.obj": _lines([("v", *node) for node in _NODES]) + _lines([("f", *(k + 1 for k in f)) for f in _FACES]),
        "a.ply": "ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n"
        f"element face 4\nproperty list uchar int vertex_indices\nend_header\n{_lines(_NODES)}"
        + _lines([(3, *face) for face in _FACES]),
        "old.msh": f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n{_numbered(_NODES)}$EndNodes\n$Elements\n1\n"
        "1 4 2 0 1 1 2 3 4\n$EndElements\n",
        "new.msh": _MSH_41,
        "a.vtk": f"{_VTK}UNSTRUCTURED_GRID\nPOINTS 4 double\n{_lines(_NODES)}CELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n10\n",
        "grid.vtk": f"{_VTK}STRUCTURED_POINTS\nDIMENSIONS 3 3 1\nORIGIN 0 0 0\nSPACING 1 1 1\n",
        "a.vtu": _VTU,
        "a.mesh": f"MeshVersionFormatted 2\nDimension 3\nVertices\n4\n{_lines([(*p, 0) for p in _NODES])}"
        "Tetrahedra\n1\n1 2 3 4 0\nEnd\n",
        "a.su2": f"NDIME= 3\nNELEM= 1\n10 0 1 2 3\nNPOIN= 4\n{_lines(_NODES)}",
        "a.inp": "*NODE\n1, 0, 0\n2, 1, 0\n3, 0, 1\n*ELEMENT, TYPE=CPS3\n1, 1, 2, 3\n",
    }.items()
}

_TAIL = """
[[conditions]]
kind = "dirichlet"
value = "kappa"
"""
PROBLEMS = (
    f"""
equations = ["div(kappa*grad(u)) = 1"]
[data.kappa]
file = "table.csv"
[domain]
shape = "rectangle"
x = [0, 1]
y = [0, 1]
{_TAIL}""",
    f"""
equations = ["laplacian(u) = kappa"]
[data.kappa]
file = "table.csv"
coordinates = ["x", "y"]
method = "nearest"
[domain]
shape = "implicit"
function = "kappa"
x = [-2, 2]
y = [-2, 2]
{_TAIL}""",
    f"""
equations = ["laplacian(u) = 1"]
[data.kappa]
file = "table.csv"
[domain]
shape = "file"
file = "shape.geojson"
{_TAIL}""",
    """
equations = ["laplacian(u) = 1"]
[parameters]
kappa = "1/3"
[domain]
shape = "star"
radius = "1 + kappa*cos(3*theta)/4"
[[conditions]]
kind = "dirichlet"
value = "kappa"
[[conditions]]
kind = "observation"
file = "table.csv"
""",
)


def solutions() -> dict[str, dict[str, bytes]]:
    """Return the members of some saved solutions, by name."""
    x, y, t = pb.coordinates("x y t")
    u, w = pb.field("u", x, y), pb.field("w", x, t)
    star = pb.Star((x, y), 1 + sp.cos(3 * sp.Symbol("theta")) / 10)
    disk = pb.Implicit((x, y), x**2 + y**2 - 1, [(-2, 2), (-2, 2)], 16)
    k = pb.data("k", lambda a, b: 1 + a * b, x, y)
    step = sp.Piecewise((1, x < y), (2, True))
    hole = pb.Rectangle((x, -1, 1), (y, -1, 1)) - pb.Disk((x, y), (0, 0), 0.3)
    line = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 1)
    made = {
        "star": pb.Problem(pb.laplacian(u), star, [pb.Dirichlet(u, x)], exact=x),
        "disk": pb.Problem(k * pb.laplacian(u), disk, [pb.Dirichlet(u, x * y), pb.Mean(u, 0)]),
        "hole": pb.Problem(
            sp.Eq(pb.laplacian(u), step),
            hole,
            [pb.Neumann(u, pb.normal(x)), pb.Observation(u, [[0.5, 0.5]], [1.0], noise=0.1)],
        ),
        "heat": pb.Problem(w.diff(t) - w.diff(x, 2), line, [pb.Dirichlet(w, 0), pb.Initial(w, sp.sin(sp.pi * x))]),
    }
    small = pb.PIBLS(feature_groups=2, feature_nodes=4, enhancement_nodes=3, activation=["sin", "tanh"], scale=2.0)
    found = {name: small.fit(problem, pb.Points.sample(problem, 40)) for name, problem in made.items()}
    found["cells"] = pb.solve(pb.problems.advection(), tol=1e-3)
    found["lines"] = pb.solve(pb.problems.damped_oscillator(), tol=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: solution.save(Path(folder) / f"{name}.pibls") for name, solution in found.items()}
        return {name: _members(path) for name, path in paths.items()}


def _members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
