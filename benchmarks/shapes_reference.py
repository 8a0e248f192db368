"""Shapes as files and solutions on them by finite elements, for `benchmarks/sets/bodies.py`; needs gmsh and scikit-fem.

    python benchmarks/shapes_reference.py [bracket] [coast] [plate] [--files] [--levels 3]

With `--files` the three shapes are drawn again and written to `examples/shapes/`: a bracket with a bolt hole of 24 flat
sides (STL), a coast with bays and a lake (GeoJSON), a plate around a hexagonal bar of another material (gmsh). Printed
are the integral of each solution and its values at a few points: quadratic elements on meshes of one shape, each with
half the size of the one before, and the difference of the last two. Meshes shrink towards edges and corners at which
solutions are not smooth.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import gmsh
import numpy as np
from skfem import Basis, BilinearForm, ElementTetP2, ElementTriP2, LinearForm, MeshTet, MeshTri, condense, solve
from skfem.helpers import dot, grad

FOLDER = Path(__file__).parent.parent / "examples" / "shapes"
POINTS = {
    "bracket": [[2.8, 1.0, 0.25], [1.2, 0.4, 0.25], [0.25, 1.0, 1.2]],
    "coast": [[0.0, 1.2], [-1.6, 0.3], [1.4, -0.8]],
    "plate": [[0.5, 0.5], [1.5, 0.5], [1.15, 0.8]],
}
CONDUCTIVITY = {"steel": 50.0, "copper": 400.0}


def coast() -> dict[str, object]:
    """Return a coastline of 120 vertices, rough at all scales, with a lake."""
    rng = np.random.default_rng(7)
    angle = 2 * np.pi * np.arange(120) / 120
    waves = np.arange(2, 25)
    sizes = 0.5 / waves**1.3
    radius = 2 + (sizes * np.cos(np.outer(angle, waves) + 2 * np.pi * rng.random(len(waves)))).sum(axis=1)
    shore = np.round(radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1), 3).tolist()
    lake = [[-0.5, -0.3], [-0.2, 0.25], [0.3, 0.2], [0.6, -0.1], [0.2, -0.5]]
    rings = [[*ring, ring[0]] for ring in (shore, lake[::-1])]
    feature = {"type": "Feature", "properties": {"name": "country"}}
    return {**feature, "geometry": {"type": "Polygon", "coordinates": rings}}


def draw(name: str, size: float) -> None:
    """Draw a shape in gmsh, with triangles or tetrahedra of about a size."""
    gmsh.clear()
    gmsh.option.setNumber("General.Terminal", 0)
    {"bracket": _draw_bracket, "coast": _draw_coast, "plate": _draw_plate}[name](size)


def _draw_bracket(size: float) -> None:
    occ = gmsh.model.occ
    body, _ = occ.fuse([(3, occ.addBox(0, 0, 0, 3, 2, 0.5))], [(3, occ.addBox(0, 0, 0, 0.5, 2, 2))])
    angle = 2 * np.pi * np.arange(24) / 24
    ring = [occ.addPoint(2 + 0.4 * np.cos(a), 1 + 0.4 * np.sin(a), -1) for a in angle]
    lines = [occ.addLine(ring[k - 1], ring[k]) for k in range(24)]
    bolt = occ.extrude([(2, occ.addPlaneSurface([occ.addCurveLoop(lines)]))], 0, 0, 3)
    occ.cut(body, [entry for entry in bolt if entry[0] == 3])
    occ.remove(occ.getEntities(2), recursive=True)
    occ.synchronize()
    # Tetrahedra shrink towards the inner edge, where the solution is like a root of the distance.
    _sizes(size, lambda p: abs(p[0] - 0.5) < 1e-9 and abs(p[2] - 0.5) < 1e-9)


def _draw_coast(size: float) -> None:
    geo, rings = gmsh.model.geo, coast()["geometry"]["coordinates"]  # type: ignore[index]
    loops = []
    for ring in rings:
        ends = [geo.addPoint(a, b, 0, size) for a, b in ring[:-1]]
        loops.append(geo.addCurveLoop([geo.addLine(ends[k - 1], ends[k]) for k in range(len(ends))]))
    geo.addPlaneSurface(loops)
    geo.synchronize()
    _sizes(size, lambda _: True)


def _draw_plate(size: float) -> None:
    occ = gmsh.model.occ
    corners = [(1.5 + 0.35 * np.cos(a), 0.5 + 0.35 * np.sin(a)) for a in 0.2 + np.pi / 3 * np.arange(6)]
    ends = [occ.addPoint(a, b, 0) for a, b in corners]
    lines = [occ.addLine(ends[k - 1], ends[k]) for k in range(6)]
    bar = occ.addPlaneSurface([occ.addCurveLoop(lines)])
    occ.fragment([(2, occ.addRectangle(0, 0, 0, 3, 1))], [(2, bar)])
    occ.synchronize()
    gmsh.option.setNumber("Mesh.MeshSizeMax", size)
    sides = {"inflow": (0, 0, 0, 0, 1, 0), "outflow": (3, 0, 0, 3, 1, 0)}
    for number, (name, box) in enumerate(sides.items(), 1):
        low, high = np.array(box[:3]) - 1e-6, np.array(box[3:]) + 1e-6
        found = gmsh.model.getEntitiesInBoundingBox(*low, *high, 1)
        gmsh.model.addPhysicalGroup(1, [tag for _, tag in found], number, name)
    inner = gmsh.model.getEntitiesInBoundingBox(1.1, 0.1, -1, 1.9, 0.9, 1, 2)
    outer = set(gmsh.model.getEntities(2)) - set(inner)
    gmsh.model.addPhysicalGroup(2, [tag for _, tag in inner], 3, "copper")
    gmsh.model.addPhysicalGroup(2, [tag for _, tag in outer], 4, "steel")


def _sizes(size: float, is_sharp: Callable[[np.ndarray], bool]) -> None:
    """Make elements a sixteenth as large at sharp vertices as far from them."""
    points = [tag for _, tag in gmsh.model.getEntities(0)]
    sharp = [tag for tag in points if is_sharp(gmsh.model.getValue(0, tag, []))]
    field = gmsh.model.mesh.field
    distance, rise = field.add("Distance"), field.add("Threshold")
    if gmsh.model.getDimension() == 3:
        lines = [c for _, c in gmsh.model.getEntities(1) if set(_ends(c)) <= set(sharp)]
        field.setNumbers(distance, "CurvesList", lines)
        field.setNumber(distance, "Sampling", 200)
    else:
        field.setNumbers(distance, "PointsList", sharp)
    settings = {"InField": distance, "SizeMin": size / 16, "SizeMax": size, "DistMin": 0, "DistMax": 3 * size}
    for key, value in settings.items():
        field.setNumber(rise, key, value)
    field.setAsBackgroundMesh(rise)
    for key in ("MeshSizeFromPoints", "MeshSizeExtendFromBoundary"):
        gmsh.option.setNumber(f"Mesh.{key}", 0)


def _ends(curve: int) -> list[int]:
    return [tag for _, tag in gmsh.model.getBoundary([(1, curve)], oriented=False)]


def write_files() -> None:
    """Write the three files."""
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "coast.geojson").write_text(json.dumps(coast()) + "\n")
    draw("bracket", 10.0)
    for _, curve in gmsh.model.getEntities(1):
        gmsh.model.mesh.setTransfiniteCurve(curve, 2)
    gmsh.model.mesh.generate(2)
    gmsh.option.setNumber("Mesh.Binary", 1)
    gmsh.write(str(FOLDER / "bracket.stl"))
    draw("plate", 0.15)
    gmsh.model.mesh.generate(2)
    gmsh.option.setNumber("Mesh.Binary", 0)
    gmsh.option.setNumber("Mesh.MshFileVersion", 2.2)
    gmsh.write(str(FOLDER / "plate.msh"))


def mesh_of(name: str, level: int) -> tuple[MeshTri | MeshTet, np.ndarray]:
    """Return a mesh and the conductivity of its cells; the plate is that of its file, each cell cut in four."""
    if name == "plate":
        mesh = MeshTri.load(str(FOLDER / "plate.msh"))
        k = np.empty(mesh.nelements)
        for part, value in CONDUCTIVITY.items():
            k[mesh.subdomains[part]] = value
        for _ in range(level + 1):
            mesh, k = mesh.refined(), np.concatenate([k] * 4)
        return mesh, k
    draw(name, {"bracket": 0.45, "coast": 0.4}[name] / 2**level)
    dimension = 3 if name == "bracket" else 2
    gmsh.model.mesh.generate(dimension)
    numbers, places, _ = gmsh.model.mesh.getNodes()
    found = np.zeros(int(numbers.max()) + 1, dtype=int)
    found[numbers] = np.arange(len(numbers))
    cells = gmsh.model.mesh.getElementsByType(4 if dimension == 3 else 2)[1].reshape(-1, dimension + 1)
    used, cells = np.unique(found[cells], return_inverse=True)
    points = places.reshape(-1, 3)[used][:, :dimension].T
    mesh = (MeshTet if dimension == 3 else MeshTri)(points, cells.reshape(-1, dimension + 1).T)
    return mesh, np.ones(mesh.nelements)


def values(name: str, level: int) -> np.ndarray:
    """Return the integral of the solution and its values at the points."""
    mesh, k = mesh_of(name, level)
    basis = Basis(mesh, ElementTetP2() if name == "bracket" else ElementTriP2())
    source = 0.0 if name == "plate" else 1.0
    conduct = BilinearForm(lambda u, v, w: w.k * dot(grad(u), grad(v))).assemble(basis, k=k[:, None])
    whole = LinearForm(lambda v, _: 1.0 * v).assemble(basis)
    places = basis.doflocs
    if name == "bracket":
        fixed = np.flatnonzero(places[2] > 2 - 1e-9)
    elif name == "coast":
        fixed = basis.get_dofs().all()
    else:
        fixed = np.flatnonzero((places[0] < 1e-9) | (places[0] > 3 - 1e-9))
    given = np.where(places[0] > 1.5, 0.0, 100.0) if name == "plate" else np.zeros(basis.N)
    u = solve(*condense(conduct, source * whole, x=given, D=fixed))
    print(f"  {name}: {mesh.nelements} cells, {basis.N} unknowns", flush=True)
    return np.array([whole @ u, *(basis.probes(np.array(POINTS[name]).T) @ u)])


def main() -> None:
    """Write files if asked to, and print references."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--levels", type=int, default=3)
    parser.add_argument("names", nargs="*", default=list(POINTS))
    options = parser.parse_args()
    gmsh.initialize()
    if options.files:
        write_files()
    for name in options.names:
        found = [values(name, level) for level in range(options.levels)]
        change = np.abs(found[-1] - found[-2]).max() / np.abs(found[-1][1:]).max()
        print(f"{name}: {found[-1].tolist()}, change {change:.1e}")
    gmsh.finalize()


if __name__ == "__main__":
    main()
