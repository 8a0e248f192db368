"""A domain known by points only, such as the nodes of someone else's mesh: heat in a leaf-shaped plate."""

from pathlib import Path

import numpy as np
import sympy as sp

import pibls as pb

# What a scanner or a mesh would give: points inside, points on the rim and their outward normals.
rng = np.random.default_rng(0)
angle = np.linspace(0, 2 * np.pi, 160, endpoint=False)
rim = np.stack([1.5 * np.cos(angle), np.sin(angle) + 0.3 * np.cos(angle) ** 2], axis=1)
tangent = np.stack([-1.5 * np.sin(angle), np.cos(angle) - 0.6 * np.cos(angle) * np.sin(angle)], axis=1)
normals = np.stack([tangent[:, 1], -tangent[:, 0]], axis=1) / np.linalg.norm(tangent, axis=1)[:, None]
tried = rng.uniform((-1.5, -1), (1.5, 1.3), size=(1500, 2))
inside = tried[(tried[:, 0] / 1.5) ** 2 + (tried[:, 1] - 0.3 * (tried[:, 0] / 1.5) ** 2) ** 2 < 0.99]

x, y = pb.coordinates("x y")
T = pb.field("T", x, y)
leaf = pb.PointCloud((x, y), inside, boundary=rim, normals=normals, parts={"stem": range(120, 160), "rim": range(120)})
exact = sp.exp(x / 2) * sp.cos(y / 2)
nx, ny = pb.normal(x, y)
problem = pb.Problem(
    sp.Eq(pb.laplacian(T), 0),
    leaf,
    [
        pb.Dirichlet(T, exact, on=leaf.stem),
        pb.Neumann(T, nx * exact.diff(x) + ny * exact.diff(y), on=leaf.rim),
    ],
    exact=exact,
)
solution = pb.solve(problem)
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}, true error {solution.true_error():.0e}")

Path("out").mkdir(exist_ok=True)
solution.plot().savefig("out/point_cloud.png")
