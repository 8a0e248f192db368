"""Pictures of three problems of the zoo: a star-shaped domain, flow past a cylinder, a diffusion in time."""

from pathlib import Path

import pibls as pb

out = Path("out")
out.mkdir(exist_ok=True)
for name in ("poisson_star", "annulus", "diffusion_reaction"):
    problem = pb.problems.catalogue()[name]()
    solution = pb.solve(problem)
    solution.plot().savefig(out / f"{name}.png", dpi=100)
    print(f"{name:20s} true error {solution.true_error():.1e}   {solution}")
