"""Temperature below ground where the conductivity is known from samples of a drill core: a coefficient from data.

Depth z in km, conductivity in W/m/K, temperature in degrees Celsius. The heat flux q = k T_z is a field of its own, so
that no derivative of the measured curve is needed.
"""

from pathlib import Path

import numpy as np
import sympy as sp
from scipy.interpolate import CubicSpline

import pibls as pb

depth = np.array([0.0, 0.6, 1.1, 1.9, 2.6, 3.2, 4.0])
sample = np.array([2.1, 2.3, 2.9, 3.4, 3.1, 2.7, 2.6])
curve = CubicSpline(depth, sample)

z = pb.coordinates("z")
T, q = pb.field("T", z), pb.field("q", z)
k = pb.data("k", curve, z)  # any function of arrays will do
ground = pb.Interval((z, 0, 4))
problem = pb.Problem(
    [sp.Eq(k * T.diff(z), q), sp.Eq(q.diff(z), -1.5)],  # rocks make 1.5 mW per m³ (1.5 W/m²/km over 1000)
    ground,
    [pb.Dirichlet(T, 8, on=ground.left), pb.Dirichlet(q, 60, on=ground.right)],  # 60 mW/m² from below
)
solution = pb.solve(problem)

# The same by quadrature: q is a straight line, and T its integral over k.
fine = np.linspace(0, 4, 20_001)
slope = (60 + 1.5 * (4 - fine)) / curve(fine)
bottom = 8 + float(np.sum((slope[1:] + slope[:-1]) / 2) * (fine[1] - fine[0]))
found = float(solution(z=4.0)["T"])
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}")
print(f"{found:.6f} degrees at 4 km; by quadrature {bottom:.6f}, error {abs(found / bottom - 1):.0e}")

Path("out").mkdir(exist_ok=True)
solution.plot(field=T).savefig("out/borehole.png")
