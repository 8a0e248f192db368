"""Conditions of mechanics and waves: tractions, symmetry planes and slip walls, boundaries that let waves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp

from pibls.checks import check_choice, shorten
from pibls.errors import ProblemError
from pibls.problem.conditions import Condition, as_value, short
from pibls.problem.operators import normal_derivative
from pibls.problem.symbols import Field, normal


class Stress(sp.ImmutableDenseMatrix):  # type: ignore[misc]
    """Stresses in a plane that know the one across it; whatever is made of them by arithmetic does not."""

    across: Any = None


def stress(
    displacement: Sequence[Any],
    *,
    young: Any,
    poisson: Any,
    plane: str = "strain",
    along: Sequence[Any] | None = None,
    expansion: Any = 0,
) -> Any:
    """Return the stresses of an elastic body as a matrix, from its displacements and constants.

    The equations are the divergences of its rows, ``[sp.Eq(div(row), -f) for row in stress(...).tolist()]``, and
    :func:`Traction` and :func:`Symmetry` take it as it is.

    Parameters
    ----------
    displacement
        Two or three fields.
    young, poisson
        Young's modulus and Poisson's ratio: numbers or expressions, such as :func:`~pibls.per_region` gives.
    plane
        In a plane, ``"strain"`` for a body that cannot move across it, ``"stress"`` for a thin sheet.
    along
        The coordinate that each displacement is along; needed where fields depend on time, too.
    expansion
        The strain of the body without stress, the same in all directions; for heat, ``alpha * (T - T0)``.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u, v, T = field("u", x, y), field("v", x, y), field("T", x, y)
    >>> stress([u, v], young=2, poisson=0)[0, 1]
    Derivative(u(x, y), y) + Derivative(v(x, y), x)
    >>> stress([u, v], young=2, poisson=0, expansion=T / 100)[0, 0]
    -T(x, y)/50 + 2*Derivative(u(x, y), x)
    """
    check_choice("plane", plane, "stress", ("strain", "stress"))
    fields, symbols = _vector(displacement, along, "stress")
    if len(fields) not in (2, 3):
        raise ProblemError(f"stress takes two or three displacements. Got {shorten(displacement)} instead.")
    modulus, ratio = as_value(young, "stress"), as_value(poisson, "stress")
    if ratio.is_number and not -1 < float(ratio) < 0.5:
        raise ProblemError(
            f"The 'poisson' parameter of stress must lie between -1 and 1/2. Got {shorten(poisson)}. A material that "
            "cannot be compressed needs its pressure as a further field, with div(u) = 0."
        )
    shear = modulus / (2 * (1 + ratio))
    thin = plane == "stress" and len(fields) == 2
    lame = modulus * ratio / (1 - ratio**2 if thin else (1 + ratio) * (1 - 2 * ratio))
    free = modulus * as_value(expansion, "stress") / (1 - ratio if thin else 1 - 2 * ratio)
    spread = lame * sum(w.diff(s) for w, s in zip(fields, symbols, strict=True)) - free
    pairs = list(zip(fields, symbols, strict=True))
    rows = [[(spread if s is r else sp.S.Zero) + shear * (w.diff(r) + v.diff(s)) for v, r in pairs] for w, s in pairs]
    found = Stress(rows)
    found.across = sp.S.Zero if thin else spread
    return found


def von_mises(stresses: Any) -> Any:
    """Return the equivalent stress of von Mises, of stresses in space or in a plane.

    Stresses of :func:`stress` include the one across the plane, which is not zero in ``plane="strain"``. In a matrix of
    two rows that is written out it counts as zero; write three rows otherwise.

    Examples
    --------
    >>> von_mises([[3, 0], [0, 0]]), von_mises([[0, 2], [2, 0]])
    (3, 2*sqrt(3))
    """
    matrix = sp.ImmutableDenseMatrix(_square(stresses, "von_mises"))
    if matrix.rows not in (2, 3):
        raise ProblemError(f"von_mises takes a matrix of two or three rows. Got {shorten(stresses)} instead.")
    across = getattr(stresses, "across", sp.S.Zero)
    if matrix.rows == 2 and across is None:
        raise ProblemError(
            "von_mises cannot tell the stress across the plane: arithmetic with stress(...) has lost it. Give heat "
            "and swelling as stress(..., expansion=alpha*(T - T0)), or write a matrix of three rows, with the stress "
            "across the plane in the last one."
        )
    full = sp.diag(matrix, across) if matrix.rows == 2 else matrix
    shears = full[0, 1] ** 2 + full[1, 2] ** 2 + full[0, 2] ** 2
    gaps = (full[0, 0] - full[1, 1]) ** 2 + (full[1, 1] - full[2, 2]) ** 2 + (full[2, 2] - full[0, 0]) ** 2
    return sp.sqrt(gaps / 2 + 3 * shears)


def _vector(fields: Any, along: Sequence[Any] | None, owner: str) -> tuple[tuple[Any, ...], tuple[sp.Symbol, ...]]:
    """Return the entries of a vector of fields, and the coordinate that each is along."""
    entries = tuple(fields) if isinstance(fields, Sequence | sp.MatrixBase) and not isinstance(fields, str) else ()
    if not entries or not all(isinstance(entry, Field) for entry in entries):
        raise ProblemError(f"{owner} takes the fields of a vector, such as [u, v]. Got {shorten(fields)} instead.")
    symbols = entries[0].args if along is None else tuple(along)
    if len(symbols) != len(entries) or not set(symbols) <= set(entries[0].args):
        raise ProblemError(
            f"{owner} needs one field per space coordinate. Got {len(entries)} fields and {shorten(symbols)}; say "
            "along=(x, y) which coordinates are space."
        )
    return entries, symbols


def _square(value: Any, owner: str) -> sp.MatrixBase:
    try:
        found = sp.ImmutableDenseMatrix(value)
    except (TypeError, ValueError):
        found = sp.ImmutableDenseMatrix(0, 0, [])
    if found.rows != found.cols or not found.rows:
        raise ProblemError(
            f"{owner} takes a square matrix of stresses, such as stress(...). Got {shorten(value)} instead."
        )
    return found


def _matrix(value: Any, owner: str) -> sp.MatrixBase:
    found = _square(value, owner)
    if not found.has(Field):
        raise ProblemError(f"{owner} takes stresses of unknown fields. Got {shorten(value)} instead.")
    return found


def _space(stresses: sp.MatrixBase, along: Sequence[Any] | None, owner: str) -> tuple[sp.Symbol, ...]:
    symbols = min(stresses.atoms(Field), key=str).args if along is None else tuple(along)
    if len(symbols) != stresses.rows:
        raise ProblemError(
            f"{owner} needs as many space coordinates as there are rows of stresses, {stresses.rows}. Got "
            f"{shorten(symbols)}; say along=(x, y) which are space."
        )
    return symbols


def Traction(  # noqa: N802
    stresses: Any, value: Any = 0, on: Any = None, *, along: Sequence[Any] | None = None, weight: float = 1.0
) -> tuple[Condition, ...]:
    """Return the conditions that the stresses times the outward normal are a given load, one per row.

    Parameters
    ----------
    stresses
        A matrix, from :func:`stress` or written out; of a fluid with its pressure, too.
    value
        The load per area: a vector; one number or expression, a tension along the normal; zero on a free surface.
    on
        A boundary part; the whole boundary if left out.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> sheet = stress([field("u", x, y), field("v", x, y)], young=2, poisson=0)
    >>> Traction(sheet, [0, -1])[1]
    Traction(n_x*(u_y + v_x) + 2*n_y*v_y = -1 on the boundary)
    """
    matrix = _matrix(stresses, "Traction")
    outward = sp.Matrix(normal(*_space(matrix, along, "Traction")))
    several = isinstance(value, Sequence | sp.MatrixBase) and not isinstance(value, str)
    loads = [as_value(entry, "Traction") for entry in value] if several else []
    if several and len(loads) != matrix.rows:
        raise ProblemError(f"Traction needs {matrix.rows} entries of the load. Got {shorten(value)} instead.")
    if not several:
        loads = list(as_value(value, "Traction") * outward)
    left = matrix * outward
    return tuple(short("Traction", a, b, on, weight) for a, b in zip(left, loads, strict=True))


def Symmetry(  # noqa: N802
    u: Any, stresses: Any = None, on: Any = None, *, along: Sequence[Any] | None = None, weight: float = 1.0
) -> tuple[Condition, ...]:
    """Return the conditions of a plane of symmetry, or of a wall along which a body or fluid slips freely.

    Of a scalar the slope across is zero. Of a vector its normal component is zero, and so is what acts along the wall.

    Parameters
    ----------
    u
        A field, or the fields of a vector.
    stresses
        The matrix of stresses; on flat walls of isotropic bodies and fluids it may be left out.
    on
        A boundary part; the whole boundary if left out.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, y = coordinates("x y")
    >>> u, v = field("u", x, y), field("v", x, y)
    >>> Symmetry(u)
    (Symmetry(dn(u) = 0 on the boundary),)
    >>> Symmetry([u, v])[0]
    Symmetry(n_x*u + n_y*v = 0 on the boundary)
    """
    if isinstance(u, Field):
        return (short("Symmetry", normal_derivative(u), sp.S.Zero, on, weight),)
    fields, symbols = _vector(u, along, "Symmetry")
    outward = sp.Matrix(normal(*symbols)) if len(symbols) > 1 else sp.Matrix([normal(*symbols)])
    if stresses is None:
        acts = sp.Matrix([normal_derivative(w) for w in fields])
    else:
        acts = _matrix(stresses, "Symmetry") * outward
    if len(fields) == 2:
        sideways = [outward[0] * acts[1] - outward[1] * acts[0]]
    else:
        sideways = list(outward.cross(acts)) if len(fields) == 3 else []
    lefts = [outward.dot(sp.Matrix(fields)), *sideways]
    return tuple(short("Symmetry", left, sp.S.Zero, on, weight) for left in lefts)


def Absorbing(  # noqa: N802
    u: Any, on: Any = None, *, time: Any = None, speed: Any = 1, wave_number: Any = None, weight: float = 1.0
) -> tuple[Condition, ...]:
    """Return the condition that lets waves out through the boundary: exact for those that meet it at a right angle.

    Parameters
    ----------
    u
        The field of a wave in time; or the pair of real and imaginary part of one of a fixed frequency, which goes
        like exp(−iωt).
    on
        A boundary part; the whole boundary if left out.
    time
        The time coordinate: ``∂u/∂t + speed ∂u/∂n = 0``.
    speed
        Speed of the waves.
    wave_number
        For the pair, k: ``∂u/∂n = i k u``, written out.

    Examples
    --------
    >>> from pibls.problem import coordinates, field
    >>> x, t = coordinates("x t")
    >>> u, p, q = field("u", x, t), field("p", x), field("q", x)
    >>> Absorbing(u, time=t, speed=3)
    (Absorbing(u_t + 3*dn(u) = 0 on the boundary),)
    >>> Absorbing([p, q], wave_number=5)
    (Absorbing(5*q + dn(p) = 0 on the boundary), Absorbing(-5*p + dn(q) = 0 on the boundary))
    """
    pair = tuple(u) if isinstance(u, Sequence) and not isinstance(u, str) else (u,)
    fields = all(isinstance(w, Field) for w in pair)
    if fields and len(pair) == 1 and time in pair[0].args and wave_number is None:
        lefts = [pair[0].diff(time) + as_value(speed, "Absorbing") * normal_derivative(pair[0])]
    elif fields and len(pair) == 2 and time is None and wave_number is not None:
        (real, imaginary), k = pair, as_value(wave_number, "Absorbing")
        lefts = [normal_derivative(real) + k * imaginary, normal_derivative(imaginary) - k * real]
    else:
        raise ProblemError(
            "Absorbing takes a field and its time coordinate, Absorbing(u, time=t, speed=c), or real and imaginary "
            f"part of a wave of one frequency, Absorbing([p, q], wave_number=k). Got {shorten(u)}."
        )
    return tuple(short("Absorbing", left, sp.S.Zero, on, weight) for left in lefts)
