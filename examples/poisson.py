"""Poisson's equation on a square: write it, solve it, look at it."""

import time
from pathlib import Path

import sympy as sp

import pibls as pb

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
square = pb.Rectangle((x, 0, 1), (y, 0, 1))
exact = sp.sin(sp.pi * x) * sp.sin(sp.pi * y)
problem = pb.Problem(sp.Eq(-pb.laplacian(u), 2 * sp.pi**2 * exact), square, [pb.Dirichlet(u, 0)], exact=exact)
print(problem)

start = time.perf_counter()
solution = pb.solve(problem)
seconds = time.perf_counter() - start

print(f"\nstatus          {solution.status}")
print(f"error estimate  {solution.error_estimate:.1e}   (no exact solution used)")
print(f"true error      {solution.true_error():.1e}   (relative L2, at points the solve never saw)")
print(f"time            {seconds:.2f} s\n")
print(solution.diagnostics)

out = Path("out")
out.mkdir(exist_ok=True)
solution.plot().savefig(out / "poisson.png", dpi=120)
print(f"\npicture in {out / 'poisson.png'}, solution in {solution.save(out / 'poisson.pibls')}")
