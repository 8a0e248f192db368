"""A free electron as a wave packet that runs and spreads: Schrödinger's equation i ψ_t = −ψ_xx / 2 in atomic units.

ψ = p + i q has a real and an imaginary part; the packet is Gaussian, and its closed form is the exact solution.
"""

from pathlib import Path

import sympy as sp

import pibls as pb

x, t = pb.coordinates("x t")
p, q = pb.field("p", x, t), pb.field("q", x, t)
speed, width = 2, 1

size = (1 + t**2 / width**4) ** sp.Rational(-1, 4)
decay = sp.exp(-((x - speed * t) ** 2) * width**2 / (2 * (width**4 + t**2)))
phase = speed * x - sp.Rational(speed**2, 2) * t + (x - speed * t) ** 2 * t / (2 * (width**4 + t**2))
phase -= sp.atan(t / width**2) / 2
exact = {p: size * decay * sp.cos(phase), q: size * decay * sp.sin(phase)}

problem = pb.Problem(
    [sp.Eq(p.diff(t), -q.diff(x, 2) / 2), sp.Eq(q.diff(t), p.diff(x, 2) / 2)],
    pb.Interval((x, -6, 8)) * pb.TimeInterval(t, 0, 1),
    [
        pb.Dirichlet(p, exact[p]),
        pb.Dirichlet(q, exact[q]),
        pb.Initial(p, exact[p].subs(t, 0)),
        pb.Initial(q, exact[q].subs(t, 0)),
    ],
    exact=exact,
)
solution = pb.solve(problem, tol=1e-4, time="lines")  # features in space, an ODE in time

grid = [-6 + 14 * i / 400 for i in range(401)]
last = solution(x=grid, t=1.0)
density = last["p"] ** 2 + last["q"] ** 2
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}, true error {solution.true_error():.0e}")
print(f"at t = 1 the packet is at x = {grid[int(density.argmax())]:.2f}; a particle of speed {speed} would be at 2")

Path("out").mkdir(exist_ok=True)
solution.plot(field=p).savefig("out/wave_packet.png")
