"""A spill drifts down a river, spreads and decays: concentration over x in km and t in hours."""

from pathlib import Path

import sympy as sp

import pibls as pb

speed, dispersion, decay, width = 1.8, 0.05, 0.1, 0.5  # km/h, km²/h, 1/h, km

x, t = pb.coordinates("x t")
c = pb.field("c", x, t)
spread = width**2 + 4 * dispersion * t
cloud = width / sp.sqrt(spread) * sp.exp(-((x - speed * t) ** 2) / spread - decay * t)

problem = pb.Problem(
    sp.Eq(c.diff(t) + speed * c.diff(x), dispersion * c.diff(x, 2) - decay * c),
    pb.Interval((x, -2, 6)) * pb.TimeInterval(t, 0, 2),
    [pb.Dirichlet(c, cloud), pb.Initial(c, cloud.subs(t, 0))],
    exact=cloud,
)
solution = pb.solve(problem, tol=1e-5, time="lines")

village = 3.0  # km downstream: when does the worst pass by?
times = [2 * i / 400 for i in range(401)]
passing = solution(x=village, t=times)
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}, true error {solution.true_error():.0e}")
print(f"at the village the concentration peaks at {passing.max():.3f} after {times[int(passing.argmax())]:.2f} h")

Path("out").mkdir(exist_ok=True)
solution.plot().savefig("out/river_spill.png")
