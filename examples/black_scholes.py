"""Price of a European call in units of the strike, over x = log(share price / strike) and the years to expiry.

At expiry the price has a kink, which smooth functions do not follow. The last week is therefore taken from the formula
of Black and Scholes (1973), and the year before it is solved for; the formula is also the exact solution.
"""

from pathlib import Path

import sympy as sp

import pibls as pb

volatility, interest, week = 0.25, 0.04, 0.02

x, t = pb.coordinates("x t")
V = pb.field("V", x, t)


def normal(z):
    """Return the probability that a normal variable is below z."""
    return (1 + sp.erf(z / sp.sqrt(2))) / 2


spread = volatility * sp.sqrt(t)
up = (x + (interest + volatility**2 / 2) * t) / spread
formula = sp.exp(x) * normal(up) - sp.exp(-interest * t) * normal(up - spread)

drift = interest - volatility**2 / 2
problem = pb.Problem(
    sp.Eq(V.diff(t), volatility**2 / 2 * V.diff(x, 2) + drift * V.diff(x) - interest * V),
    pb.Interval((x, -1, 1)) * pb.TimeInterval(t, week, 1),
    [pb.Dirichlet(V, formula), pb.Initial(V, formula.subs(t, week))],
    exact=formula,
)
# The price bends sharply near x = 0 at first and hardly later: features in space whose weights move in time suit that.
solution = pb.solve(problem, tol=1e-5, time="lines")

price, delta = (float(f(x=0.0, t=1.0)) for f in (solution, solution.derivative(V, x)))
print(f"{solution.status}: estimated error {solution.error_estimate:.0e}, true error {solution.true_error():.0e}")
print(f"a call at the money with a year to go costs {price:.4f} strikes, and moves by {delta:.4f} with the share")

Path("out").mkdir(exist_ok=True)
solution.plot().savefig("out/black_scholes.png")
