"""Tools to write problems with a known solution: the source follows from the operator and the solution."""

from __future__ import annotations

from collections.abc import Mapping

import sympy as sp

from pibls.checks import check_number
from pibls.geometry import Interval, Polygon, Rectangle, TimeInterval
from pibls.geometry.base import Domain
from pibls.problem import Dirichlet, Field, Problem, coordinates, normal
from pibls.problem.operators import resolve

x, y, z, t = coordinates("x y z t")
UNIT, SQUARE = Interval((x, 0, 1)), Rectangle((x, 0, 1), (y, 0, 1))
SPACE_TIME = UNIT * TimeInterval(t, 0, 1)
L_SHAPE = Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)])


def parameter(
    name: str, value: object, owner: str, *, minimum: float, maximum: float, exclusive: bool = False
) -> sp.Expr:
    """Return a parameter of a problem as a SymPy number, whole numbers and SymPy constants exactly.

    >>> [parameter("k", value, "helmholtz", minimum=0, maximum=1000) for value in (10.0, sp.pi)]
    [10, pi]
    """
    remedy = f"Choose a value in that range, or write the problem yourself after the example of {owner}."
    number = check_number(name, value, owner, minimum=minimum, exclusive=exclusive, maximum=maximum, remedy=remedy)
    if isinstance(value, sp.Expr):
        return value
    return sp.Integer(int(number)) if number == int(number) else sp.Float(number)


def thickness(value: object, owner: str) -> sp.Rational:
    """Return the ``eps`` parameter of a singularly perturbed problem as a fraction.

    >>> thickness(1e-3, "convection_diffusion")
    1/1000
    """
    # A fraction, since SymPy would split exp((x - 1)/eps) with a float into factors that overflow and underflow.
    return sp.Rational(repr(float(parameter("eps", value, owner, minimum=1e-6, maximum=100))))


def layer(x: sp.Symbol, width: sp.Rational) -> sp.Expr:
    """Return (e^(x/ε) − 1) / (e^(1/ε) − 1), which rises from 0 to 1 within ε of x = 1; nothing in it overflows.

    >>> [round(float(layer(x, sp.Rational(1, 1000)).subs(x, value)), 3) for value in (0, 0.999, 1)]
    [0.0, 0.368, 1.0]
    """
    return (sp.exp((x - 1) / width) - sp.exp(-1 / width)) / (1 - sp.exp(-1 / width))


def applied(expression: sp.Expr, exact: Mapping[Field, sp.Expr], domain: Domain) -> sp.Expr:
    """Return an expression of fields with known functions in their place.

    Normal components stay symbols, so the result can be the value of a Neumann condition on any boundary.

    >>> from pibls.problem import field, laplacian, normal_derivative
    >>> u = field("u", x, y)
    >>> applied(laplacian(u), {u: x**3 * y}, SQUARE), applied(normal_derivative(u), {u: x * y}, SQUARE)
    (6*x*y, n_x*y + n_y*x)
    """
    return resolve(expression, domain.space).xreplace(dict(exact)).doit()


def manufactured(operator: sp.Expr, exact: Mapping[Field, sp.Expr], domain: Domain) -> sp.Eq:
    """Return the equation ``operator = source`` whose source is the operator applied to the exact solution.

    >>> from pibls.problem import field
    >>> u = field("u", x)
    >>> manufactured(u.diff(x, 2) + u, {u: x**2}, UNIT)
    Eq(u(x) + Derivative(u(x), (x, 2)), x**2 + 2)
    """
    return sp.Eq(operator, applied(operator, exact, domain), evaluate=False)


def dirichlet(operator: sp.Expr, u: Field, exact: sp.Expr, domain: Domain, boundary: object = None) -> Problem:
    """Return the problem ``operator = source`` with the exact solution given on the whole boundary.

    ``boundary`` equals the exact solution there, where that is simpler (zero, say).

    >>> from pibls.problem import field
    >>> u = field("u", x)
    >>> print(dirichlet(-u.diff(x, 2), u, x**2, UNIT))
    Find u(x) with
      -u_xx = -2   in Interval((x, 0, 1))
      u = x**2     on the boundary
    """
    condition = Dirichlet(u, exact if boundary is None else boundary)
    return Problem((manufactured(operator, {u: exact}, domain),), domain, (condition,), exact={u.label: exact})


def plane_stress(
    u: Field, v: Field, poisson_ratio: sp.Expr, *, thin: bool = True
) -> tuple[tuple[sp.Expr, ...], tuple[sp.Expr, ...]]:
    """Return the forces −∇·σ and the tractions σ·n for Young's modulus 1 and displacement (u, v), thin or thick.

    >>> from pibls.problem import field
    >>> forces, tractions = plane_stress(field("u", x, y), field("v", x, y), sp.S.Zero)
    >>> tractions[0]
    n_x*Derivative(u(x, y), x) + n_y*(Derivative(u(x, y), y)/2 + Derivative(v(x, y), x)/2)
    """
    x, y = u.args
    lame = poisson_ratio / (1 - poisson_ratio**2 if thin else (1 + poisson_ratio) * (1 - 2 * poisson_ratio))
    shear = 1 / (2 * (1 + poisson_ratio))
    dilation, xy = u.diff(x) + v.diff(y), shear * (u.diff(y) + v.diff(x))
    xx, yy = lame * dilation + 2 * shear * u.diff(x), lame * dilation + 2 * shear * v.diff(y)
    n_x, n_y = normal(x, y)
    return (-xx.diff(x) - xy.diff(y), -xy.diff(x) - yy.diff(y)), (xx * n_x + xy * n_y, xy * n_x + yy * n_y)
