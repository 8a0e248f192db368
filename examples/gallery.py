"""Pictures of three problems of the zoo: a star-shaped domain, flow past a cylinder, a diffusion in time."""

from pathlib import Path

import pibls as pb

# The default scales suit the first two; the third has waves that are eight times finer along x than along t.
methods = {
    "poisson_star": None,
    "annulus": None,
    "diffusion_reaction": pb.PIBLS(features=[("sin", 1000, (25, 2))], enhancement_groups=0),
}
out = Path("out")
out.mkdir(exist_ok=True)
for name, method in methods.items():
    problem = pb.problems.catalogue()[name]()
    solution = pb.solve(problem, method=method)
    solution.plot().savefig(out / f"{name}.png", dpi=100)
    print(f"{name:20s} true error {solution.true_error():.1e}   {solution}")
