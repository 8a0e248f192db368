"""A steel plate with a hole, pulled from both sides: the stress at the hole is three times the pull (Kirsch, 1898).

Plane stress in the displacements (u, v); lengths in units of the radius of the hole, stresses in MPa, displacements in
units of the radius. One quarter is enough: the cuts through the middle are lines of symmetry, the hole is free of
forces, and at the outer edges the displacement of the infinite plate is given, so that Kirsch's solution is exact.
"""

from pathlib import Path

import sympy as sp

import pibls as pb

E, nu, pull = 210_000, sp.Rational(3, 10), 100  # Young's modulus, Poisson's ratio, tension far away: MPa
mu, lam = E / (2 * (1 + nu)), E * nu / (1 - nu**2)  # plane stress

x, y = pb.coordinates("x y")
u, v = pb.field("u", x, y), pb.field("v", x, y)
plate, hole = pb.Rectangle((x, 0, 3), (y, 0, 3)), pb.Disk((x, y), (0, 0), 1)

strain = (u.diff(x), v.diff(y), (u.diff(y) + v.diff(x)) / 2)
spread = lam * (strain[0] + strain[1])
sxx, syy, sxy = spread + 2 * mu * strain[0], spread + 2 * mu * strain[1], 2 * mu * strain[2]

r, angle, kappa = sp.sqrt(x**2 + y**2), sp.atan2(y, x), (3 - nu) / (1 + nu)
along = pull / (8 * mu) * (r * (kappa - 1) + 2 * r * sp.cos(2 * angle))
along += pull / (4 * mu * r) * (1 + (kappa + 1) * sp.cos(2 * angle) - sp.cos(2 * angle) / r**2)
across = pull / (4 * mu) * (-r - (kappa - 1) / r - 1 / r**3) * sp.sin(2 * angle)
exact = {
    u: along * sp.cos(angle) - across * sp.sin(angle),
    v: along * sp.sin(angle) + across * sp.cos(angle),
}

nx, ny = pb.normal(x, y)
problem = pb.Problem(
    [sp.Eq(sxx.diff(x) + sxy.diff(y), 0), sp.Eq(sxy.diff(x) + syy.diff(y), 0)],
    plate - hole,
    [
        pb.Dirichlet(u, 0, on=plate.left),
        pb.Condition(sp.Eq(sxy, 0), on=plate.left | plate.bottom),
        pb.Dirichlet(v, 0, on=plate.bottom),
        pb.Dirichlet(u, exact[u], on=plate.right | plate.top),
        pb.Dirichlet(v, exact[v], on=plate.right | plate.top),
        pb.Condition(sp.Eq(sxx * nx + sxy * ny, 0), on=hole.boundary),
        pb.Condition(sp.Eq(sxy * nx + syy * ny, 0), on=hole.boundary),
    ],
    exact=exact,
)
solution = pb.solve(problem, tol=1e-3, budget=30)

top = [[0.0, 1.0]]  # where the stress is largest
stretch, thinning = solution.derivative(u, x)(top), solution.derivative(v, y)(top)
peak = float(((lam + 2 * mu) * stretch + lam * thinning)[0])
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}, true error {solution.true_error():.0e}")
print(f"stress at the hole {peak:.1f} MPa, {peak / pull:.3f} times the pull")

Path("out").mkdir(exist_ok=True)
solution.plot().savefig("out/elastic_plate.png")
