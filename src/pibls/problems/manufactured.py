"""Tools to write problems with a known solution: the source follows from the operator and the solution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp

from pibls.checks import check_number
from pibls.geometry.base import Domain
from pibls.problem import Dirichlet, Field, Problem, field, normal
from pibls.problem.operators import resolve

__all__ = [
    "applied",
    "dirichlet_problem",
    "layer",
    "layer_width",
    "manufactured",
    "parameter",
    "plane_stress",
    "scalar",
]


def scalar(names: str) -> tuple[Any, ...]:
    """Return coordinates of these names, and one unknown function u of them.

    >>> x, t, u = scalar("x t")
    >>> u
    u(x, t)
    """
    symbols = tuple(sp.Symbol(name, real=True) for name in names.split())
    return (*symbols, field("u", *symbols))


def parameter(
    name: str,
    value: object,
    owner: str,
    *,
    minimum: float,
    maximum: float,
    exclusive: bool = False,
) -> sp.Expr:
    """Return a parameter of a problem as a SymPy number, whole numbers and SymPy constants exactly.

    >>> (
    ...     parameter("k", 10.0, "helmholtz", minimum=0, maximum=1000),
    ...     parameter("k", sp.pi, "helmholtz", minimum=0, maximum=9),
    ... )
    (10, pi)
    """
    remedy = f"Choose a value in that range, or write the problem yourself after the example of {owner}."
    number = check_number(name, value, owner, minimum=minimum, exclusive=exclusive, maximum=maximum, remedy=remedy)
    if isinstance(value, sp.Expr):
        return value
    return sp.Integer(int(number)) if number == int(number) else sp.Float(number)


def layer_width(value: object, owner: str) -> sp.Rational:
    """Return the ``eps`` parameter of a singularly perturbed problem as a fraction.

    >>> layer_width(1e-3, "convection_diffusion")
    1/1000
    """
    # A fraction, since SymPy would split exp((x - 1)/eps) with a float into factors that overflow and underflow.
    return sp.Rational(repr(float(parameter("eps", value, owner, minimum=1e-6, maximum=100))))


def layer(x: sp.Symbol, width: sp.Rational) -> sp.Expr:
    """Return (e^(x/ε) − 1) / (e^(1/ε) − 1), which rises from 0 to 1 within ε of x = 1; nothing in it overflows.

    >>> x = sp.Symbol("x", real=True)
    >>> [round(float(layer(x, sp.Rational(1, 1000)).subs(x, value)), 3) for value in (0, 0.999, 1)]
    [0.0, 0.368, 1.0]
    """
    return (sp.exp((x - 1) / width) - sp.exp(-1 / width)) / (1 - sp.exp(-1 / width))


def applied(expression: sp.Expr, exact: Mapping[Field, sp.Expr], domain: Domain) -> sp.Expr:
    """Return an expression of fields with known functions in their place.

    Normal components stay symbols, so the result can be the value of a Neumann condition on any boundary.

    >>> from pibls.geometry import Rectangle
    >>> from pibls.problem import coordinates, field, laplacian, normal_derivative
    >>> x, y = coordinates("x y")
    >>> u = field("u", x, y)
    >>> square = Rectangle((x, 0, 1), (y, 0, 1))
    >>> applied(laplacian(u), {u: x**3 * y}, square), applied(normal_derivative(u), {u: x * y}, square)
    (6*x*y, n_x*y + n_y*x)
    """
    return resolve(expression, domain.space).xreplace(dict(exact)).doit()


def manufactured(operator: sp.Expr, exact: Mapping[Field, sp.Expr], domain: Domain) -> sp.Eq:
    """Return the equation ``operator = source`` whose source is the operator applied to the exact solution.

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> manufactured(u.diff(x, 2) + u, {u: x**2}, Interval((x, 0, 1)))
    Eq(u(x) + Derivative(u(x), (x, 2)), x**2 + 2)
    """
    return sp.Eq(operator, applied(operator, exact, domain), evaluate=False)


def dirichlet_problem(operator: sp.Expr, u: Field, exact: sp.Expr, domain: Domain, boundary: object = None) -> Problem:
    """Return the problem ``operator = source`` with the exact solution given on the whole boundary.

    ``boundary`` is what the exact solution amounts to there, where that is simpler (zero, say).

    >>> from pibls.geometry import Interval
    >>> from pibls.problem import coordinates, field
    >>> x = coordinates("x")
    >>> u = field("u", x)
    >>> print(dirichlet_problem(-u.diff(x, 2), u, x**2, Interval((x, 0, 1))))
    Find u(x) with
      -u_xx = -2   in Interval((x, 0, 1))
      u = x**2     on the boundary
    """
    condition = Dirichlet(u, exact if boundary is None else boundary)
    return Problem((manufactured(operator, {u: exact}, domain),), domain, (condition,), exact={u.label: exact})


def plane_stress(u: Field, v: Field, poisson_ratio: sp.Expr) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    """Return the forces −∇·σ and the tractions σ·n of a sheet with Young's modulus 1 and displacement (u, v).

    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> forces, tractions = plane_stress(field("u", x, y), field("v", x, y), sp.S.Zero)
    >>> tractions[0]
    n_x*Derivative(u(x, y), x) + n_y*(Derivative(u(x, y), y)/2 + Derivative(v(x, y), x)/2)
    """
    x, y = u.args
    lame, shear = poisson_ratio / (1 - poisson_ratio**2), 1 / (2 * (1 + poisson_ratio))
    dilation, xy = u.diff(x) + v.diff(y), shear * (u.diff(y) + v.diff(x))
    xx, yy = lame * dilation + 2 * shear * u.diff(x), lame * dilation + 2 * shear * v.diff(y)
    n_x, n_y = normal(x, y)
    return (-xx.diff(x) - xy.diff(y), -xy.diff(x) - yy.diff(y)), (xx * n_x + xy * n_y, xy * n_x + yy * n_y)
