"""Elliptic problems on rectangles: Poisson, Helmholtz, biharmonic, variable coefficients, a layer, two scales."""

from __future__ import annotations

import numpy as np
import sympy as sp

from pibls.checks import FloatArray
from pibls.errors import InputError
from pibls.geometry import Rectangle
from pibls.problem import Dirichlet, Mean, Neumann, Problem, data, div, field, grad, laplacian, normal_derivative
from pibls.problems.manufactured import SQUARE, applied, dirichlet, layer, manufactured, parameter, thickness, x, y

__all__ = ["anisotropic_mixed", "biharmonic", "helmholtz", "helmholtz_high", "layer_2d", "multiscale", "neumann_gauge"]
__all__ += ["poisson", "poisson_gaussian", "variable_coefficient", "variable_coefficient_data"]

u = field("u", x, y)


def poisson() -> Problem:
    """Return −Δu = 2π² sin πx sin πy on the unit square, zero on the boundary, u = sin πx sin πy.

    The first problem of every introduction, this library's included.

    Examples
    --------
    >>> print(poisson())
    Find u(x, y) with
      -laplacian(u) = 2*pi**2*sin(pi*x)*sin(pi*y)   in Rectangle((x, 0, 1), (y, 0, 1))
      u = 0                                         on the boundary
    """
    return dirichlet(-laplacian(u), u, sp.sin(sp.pi * x) * sp.sin(sp.pi * y), SQUARE, boundary=0)


def poisson_gaussian() -> Problem:
    """Return −Δu = f on the unit square, u = 1/2 + exp(−2x² − 4y²), given on the boundary.

    The solution of Berg & Nyström (2018) on a plain square: smooth, with boundary values that are not zero.
    :func:`~pibls.problems.poisson_star` poses it on a star.

    Examples
    --------
    >>> poisson_gaussian().exact["u"]
    exp(-2*x**2 - 4*y**2) + 1/2
    """
    return dirichlet(-laplacian(u), u, sp.exp(-2 * x**2 - 4 * y**2) + sp.S.Half, SQUARE)


def multiscale() -> Problem:
    """Return −Δu = f on the unit square, zero on the boundary, u = sin πx sin πy + sin 10πx sin 10πy / 10.

    A tenth of the solution oscillates ten times as fast, and makes ten times as much of the source: features of one
    scale fit either the one part or the other.

    Examples
    --------
    >>> multiscale().exact["u"]
    sin(pi*x)*sin(pi*y) + sin(10*pi*x)*sin(10*pi*y)/10
    """
    low, high = (sp.sin(k * sp.pi * x) * sp.sin(k * sp.pi * y) for k in (1, 10))
    return dirichlet(-laplacian(u), u, low + high / 10, SQUARE, boundary=0)


def helmholtz(k: float = 10) -> Problem:
    """Return Δu + k²u = R on the unit square, u = sin kx sin ky, given on the boundary.

    Waves of wave number k: indefinite, and the harder the larger k is. Where k² is an eigenvalue π²(m² + n²) of the
    square the solution is not unique, and such k are refused; 10² is near 10π², so the default is sensitive too.

    Parameters
    ----------
    k
        Wave number, from 0.1 to 1000.

    Examples
    --------
    >>> print(helmholtz())
    Find u(x, y) with
      100*u + laplacian(u) = -100*sin(10*x)*sin(10*y)   in Rectangle((x, 0, 1), (y, 0, 1))
      u = sin(10*x)*sin(10*y)                           on the boundary
    """
    wave_number = parameter("k", k, "helmholtz", minimum=0.1, maximum=1000)
    ratio = (float(wave_number) / np.pi) ** 2
    level = round(ratio)
    squares = np.arange(1, int(np.sqrt(level)) + 1) ** 2
    if abs(ratio - level) < 1e-9 * ratio and np.isin(level - squares, squares).any():
        raise InputError(
            "The 'k' parameter of helmholtz must be such that k² is no eigenvalue π²(m² + n²) of the square. "
            f"Got {float(wave_number):.9g}, whose square is {level} π². Change k a little: the solution is unique then."
        )
    exact = sp.sin(wave_number * x) * sp.sin(wave_number * y)
    return dirichlet(laplacian(u) + wave_number**2 * u, u, exact, SQUARE)


def helmholtz_high() -> Problem:
    """Return :func:`helmholtz` with k = 40: more than six waves along each side.

    The nearest eigenvalue of the square, 162π², is 1.1 away from k² = 1600, so what the solution is off by on the
    boundary is amplified inside.

    Examples
    --------
    >>> helmholtz_high().exact["u"]
    sin(40*x)*sin(40*y)
    """
    return helmholtz(40)


def biharmonic() -> Problem:
    """Return Δ²u = f on the unit square with u and ∂u/∂n given, u = eˣ sin πy + x² y³.

    The bent plate: fourth order, two conditions on the whole boundary, none of them zero. Meshes need elements with
    continuous derivatives for it; smooth features have them.

    Examples
    --------
    >>> problem = biharmonic()
    >>> problem.statements[0].form.order, [c.label for c in problem.conditions]
    (4, ['Dirichlet', 'Neumann'])
    """
    exact = sp.exp(x) * sp.sin(sp.pi * y) + x**2 * y**3
    slope = applied(normal_derivative(u), {u: exact}, SQUARE)
    equation = manufactured(laplacian(laplacian(u)), {u: exact}, SQUARE)
    return Problem(equation, SQUARE, (Dirichlet(u, exact), Neumann(u, slope)), exact=exact)


def variable_coefficient() -> Problem:
    """Return −∇·(k ∇u) = f on the unit square, k = 1 + x² + xy/2, u = eʸ cos πx, given on the boundary.

    Diffusion in a medium that conducts better on one side. The equation is written in divergence form; that the
    gradient of k enters is left to SymPy.

    Examples
    --------
    >>> [str(term.coefficient) for term in variable_coefficient().statements[0].form.terms if term.order == 2]
    ['-x**2 - x*y/2 - 1', '-x**2 - x*y/2 - 1']
    """
    k = 1 + x**2 + x * y / 2
    return dirichlet(-div(k * grad(u)), u, sp.exp(y) * sp.cos(sp.pi * x), SQUARE)


def _conductivity(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(2 + np.sin(3 * X) * np.cos(2 * Y))


def _conductivity_x(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(3 * np.cos(3 * X) * np.cos(2 * Y))


def _conductivity_y(X: FloatArray, Y: FloatArray) -> FloatArray:
    return np.asarray(-2 * np.sin(3 * X) * np.sin(2 * Y))


def variable_coefficient_data() -> Problem:
    """Return −(k Δu + k_x u_x + k_y u_y) = f on the unit square, with k and its derivatives as Python callables.

    What :func:`variable_coefficient` looks like when the coefficient comes from a table or another program: it cannot
    be differentiated symbolically, so the equation is written out and the derivatives are given as well. Here
    k = 2 + sin 3x cos 2y and u = eʸ cos πx.

    Examples
    --------
    >>> sorted(variable_coefficient_data().data)
    ['k', 'k_x', 'k_y']
    """
    exact = sp.exp(y) * sp.cos(sp.pi * x)
    source = applied(-div((2 + sp.sin(3 * x) * sp.cos(2 * y)) * grad(u)), {u: exact}, SQUARE)
    k = data("k", _conductivity, x, y)
    k_x = data("k_x", _conductivity_x, x, y)
    k_y = data("k_y", _conductivity_y, x, y)
    equation = sp.Eq(-(k * laplacian(u) + k_x * u.diff(x) + k_y * u.diff(y)), source)
    return Problem(equation, SQUARE, (Dirichlet(u, exact),), exact=exact)


def anisotropic_mixed(correlation: float = 0.5) -> Problem:
    """Return −(u_xx + 2ρ u_xy + u_yy) = f on (−1, 1) × (0, 1), u = sin(2x + y) + x y², given on the boundary.

    Diffusion along tilted axes: a mixed derivative, elliptic for |ρ| < 1 and nearly degenerate close to 1.

    Parameters
    ----------
    correlation
        The number ρ, from −0.99 to 0.99.

    Examples
    --------
    >>> form = anisotropic_mixed().statements[0].form
    >>> {term.multi_index: float(term.coefficient) for term in form.terms}
    {(2, 0): -1.0, (0, 2): -1.0, (1, 1): -1.0}
    """
    rho = parameter("correlation", correlation, "anisotropic_mixed", minimum=-0.99, maximum=0.99)
    operator = -(u.diff(x, 2) + 2 * rho * u.diff(x, y) + u.diff(y, 2))
    return dirichlet(operator, u, sp.sin(2 * x + y) + x * y**2, Rectangle((x, -1, 1), (y, 0, 1)))


def layer_2d(eps: float = 1e-3) -> Problem:
    """Return −ε Δu + u_x = f on the unit square, zero on the boundary: a layer of width ε along the outflow side.

    With the layer e(x) = (e^(x/ε) − 1) / (e^(1/ε) − 1) of :func:`~pibls.problems.convection_diffusion` the solution is
    u = (x − e(x)) sin πy and the source (1 + επ² (x − e(x))) sin πy. It grows along the flow and drops to zero within
    a few ε of x = 1.

    Parameters
    ----------
    eps
        Diffusivity, from 10⁻⁶ to 100.

    Examples
    --------
    >>> import numpy as np
    >>> layer_2d().exact_values(np.array([[0.5, 0.5], [0.99, 0.5], [0.999, 0.5], [1.0, 0.5]]))["u"].round(3)
    array([0.5  , 0.99 , 0.631, 0.   ])
    """
    width = thickness(eps, "layer_2d")
    profile, across = x - layer(x, width), sp.sin(sp.pi * y)
    # Written out, since terms of size 1/eps cancel in the derivatives of the solution.
    source = (1 + width * sp.pi**2 * profile) * across
    equation = sp.Eq(-width * laplacian(u) + u.diff(x), source)
    return Problem(equation, SQUARE, (Dirichlet(u, 0),), exact=profile * across)


def neumann_gauge() -> Problem:
    """Return −Δu = f on the unit square with ∂u/∂n given everywhere and mean 1/6, u = cos πx cos 2πy + x² y.

    The flux alone fixes the solution only up to a constant, and only if it balances the source; the mean value fixes
    the constant. A solver that does not notice the null space returns any of them.

    Examples
    --------
    >>> neumann_gauge().conditions[1]
    Mean(u = 0.166667 on average)
    """
    exact = sp.cos(sp.pi * x) * sp.cos(2 * sp.pi * y) + x**2 * y
    flux = Neumann(u, applied(normal_derivative(u), {u: exact}, SQUARE))
    equation = manufactured(-laplacian(u), {u: exact}, SQUARE)
    return Problem(equation, SQUARE, (flux, Mean(u, sp.Rational(1, 6))), exact=exact)
