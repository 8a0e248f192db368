"""A map as a domain: the water table of an island with a pond, its outline read from GeoJSON."""

import json
from pathlib import Path

import sympy as sp

import pibls as pb

Path("out").mkdir(exist_ok=True)

# What a map server or a drawing program would give: an outer ring and a hole, in kilometres, the first point repeated.
coast = [[0, 0], [3, -0.5], [5, 0.5], [5.5, 2], [4, 3.5], [2.5, 3], [1, 3.5], [-0.5, 2], [0, 0]]
pond = [[2, 1], [2, 1.5], [3, 2], [3.5, 1.2], [2, 1]]
feature = {"type": "Feature", "properties": {"name": "island"}}
geometry = {"type": "Polygon", "coordinates": [coast, pond]}
Path("out/island.geojson").write_text(json.dumps({**feature, "geometry": geometry}))

x, y = pb.coordinates("x y")
h = pb.field("h", x, y)
island = pb.read_shape("out/island.geojson", (x, y))
print(island, f"has {island.measure:.3f} km² and the parts {', '.join(island.parts)}")

# Rain seeps to the sea, at level 0, and to a pond 0.4 m above it: -div(k grad h) = recharge, in metres and kilometres.
recharge, conductivity = 0.3, 1.0
problem = pb.Problem(
    sp.Eq(-conductivity * pb.laplacian(h), recharge),
    island,
    [pb.Dirichlet(h, 0, on=island.outer), pb.Dirichlet(h, 0.4, on=island.hole0)],
)
solution = pb.solve(problem, tol=1e-3)
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}")

# What rains on the island leaves it through its shores; the pond may take or give.
rates = {}
for part in (island.outer, island.hole0):
    points, normals, lengths = part.quadrature(4000)
    slopes = [solution.derivative(h, symbol)(points) for symbol in (x, y)]
    rates[part.name] = -conductivity * float((slopes[0] * normals[:, 0] + slopes[1] * normals[:, 1]) @ lengths)
    print(f"through {part.name}: {rates[part.name]:.3f}")
balance = sum(rates.values()) / (recharge * island.measure) - 1
print(f"balance: {balance:.1e}")

solution.plot().savefig("out/island.png")
