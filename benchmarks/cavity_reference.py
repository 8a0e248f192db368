"""Centre-line velocities of the lid-driven cavity by finite elements, for `benchmarks/sets/bodies.py`; needs NGSolve.

    python benchmarks/cavity_reference.py [--reynolds 100] [--order 6] [--levels 8] [--size 0.16]

Taylor–Hood elements of high order on triangles that shrink geometrically towards the two upper corners, where the lid
meets the walls; the velocity of the lid falls to zero linearly over the last edge. Newton's method in two or more steps
of the Reynolds number. Printed are u(½, y) and v(y, ½) at the heights that Ghia, Ghia & Shin (1982) tabulate, and the
smallest u on the vertical line: for Re 100 it is −0.2140424 (Botella & Peyret 1998).
"""

from __future__ import annotations

import argparse

import numpy as np
from netgen.geom2d import SplineGeometry
from ngsolve import CF, H1, BilinearForm, Grad, GridFunction, InnerProduct, Mesh, NumberSpace, VectorH1, div, dx

HEIGHTS = (0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5)
HEIGHTS += (0.6172, 0.7344, 0.8516, 0.9531, 0.9609, 0.9688, 0.9766)
WALLS = "bottom|right|top|left"


def mesh_of(size: float, levels: int) -> Mesh:
    """Return triangles of the unit square, halved towards the upper corners so many times."""
    geometry = SplineGeometry()
    ends = [geometry.AppendPoint(*point) for point in ((0, 0), (1, 0), (1, 1), (0, 1))]
    for i, name in enumerate(WALLS.split("|")):
        geometry.Append(["line", ends[i], ends[(i + 1) % 4]], bc=name)
    mesh = Mesh(geometry.GenerateMesh(maxh=size))
    for _ in range(levels):
        for element in mesh.Elements():
            mesh.SetRefinementFlag(element, any(at_corner(mesh[vertex].point) for vertex in element.vertices))
        mesh.Refine()
    return mesh


def at_corner(point: tuple[float, ...]) -> bool:
    """Tell whether a point is one of the two upper corners."""
    return abs(point[1] - 1) < 1e-13 and min(point[0], 1 - point[0]) < 1e-13


def solve(mesh: Mesh, reynolds: float, order: int) -> GridFunction:
    """Return velocity and pressure."""
    velocity = VectorH1(mesh, order=order, dirichlet=WALLS)
    space = velocity * H1(mesh, order=order - 1) * NumberSpace(mesh)
    (u, p, mean), (v, q, test) = space.TnT()
    flow = GridFunction(space)
    flow.components[0].Set(CF((1, 0)), definedon=mesh.Boundaries("top"))
    along = flow.components[0].components[0]
    for vertex in mesh.vertices:
        if at_corner(vertex.point):
            for number in along.space.GetDofNrs(vertex):
                along.vec[number] = 0.0
    residual, step = flow.vec.CreateVector(), flow.vec.CreateVector()
    for share in (0.0, 1.0) if reynolds <= 100 else (0.0, 0.2, 0.5, 1.0):
        form = BilinearForm(space)
        form += (InnerProduct(Grad(u), Grad(v)) / reynolds - p * div(v) - q * div(u) + mean * q + test * p) * dx
        form += share * InnerProduct(Grad(u) * u, v) * dx
        for _ in range(15):
            form.Apply(flow.vec, residual)
            form.AssembleLinearization(flow.vec)
            step.data = form.mat.Inverse(space.FreeDofs(), inverse="umfpack") * residual
            flow.vec.data -= step
            if InnerProduct(step, step) < 1e-22:
                break
    return flow


def main() -> None:
    """Solve and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reynolds", type=float, default=100.0)
    parser.add_argument("--order", type=int, default=6)
    parser.add_argument("--levels", type=int, default=8)
    parser.add_argument("--size", type=float, default=0.16)
    options = parser.parse_args()
    mesh = mesh_of(options.size, options.levels)
    velocity = solve(mesh, options.reynolds, options.order).components[0]
    print("u", [round(velocity(mesh(0.5, h))[0], 7) for h in HEIGHTS])
    print("v", [round(velocity(mesh(h, 0.5))[1], 7) for h in HEIGHTS])
    print("smallest u", min(velocity(mesh(0.5, h))[0] for h in np.linspace(0.1, 0.6, 5001)))


if __name__ == "__main__":
    main()
