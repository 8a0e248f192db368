"""Temperature of a plate of which one edge is not known: 25 noisy sensors inside replace the missing condition.

The equation holds everywhere and three edges are known; the readings say the rest. A Bayesian method tells how sure it
is, and is least so at the edge that nobody measured.
"""

from pathlib import Path

import numpy as np
import sympy as sp

import pibls as pb

x, y = pb.coordinates("x y")
T = pb.field("T", x, y)
plate = pb.Rectangle((x, 0, 1), (y, 0, 1))
exact = sp.exp(-y) * sp.cos(x) + 1  # used to make the readings, and to see how far off the answer is

noise = 0.01
rng = np.random.default_rng(1)
places = 0.1 + 0.8 * rng.random((25, 2))
readings = np.exp(-places[:, 1]) * np.cos(places[:, 0]) + 1 + noise * rng.standard_normal(25)

problem = pb.Problem(
    sp.Eq(pb.laplacian(T), 0),
    plate,
    [
        pb.Dirichlet(T, exact, on=plate.left | plate.right | plate.top),
        pb.Observation(T, places, readings, noise=noise),
    ],
    exact=exact,
)
points = pb.Points.sample(problem, interior=400, boundary=120)
solution = pb.BayesianPIELM(nodes=150, activation="sin", scale=1.5).fit(problem, points)

near, far = (float(solution.standard_deviation([place])[0]) for place in ([0.5, 0.5], [0.5, 0.0]))
error = solution.true_error()
print(f"true error {error:.0e}; standard deviation {near:.0e} in the middle, {far:.0e} at the unknown edge")

Path("out").mkdir(exist_ok=True)
solution.plot().savefig("out/sensors.png")
