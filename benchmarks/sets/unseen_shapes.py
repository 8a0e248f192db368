"""Conditions that change on a side, corners of odd angles, slits, and small holes; nothing here is of unit size."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp
from scipy.special import iv, jv, k0, y0

import pibls as pb
from benchmarks.sets.case import collected
from benchmarks.sets.held_out import LAPLACE, R, around, dirichlet, u, x, y
from pibls.problems.manufactured import applied

case, shapes = collected()
r = sp.sqrt(x**2 + y**2)


def _away(a: Any, b: Any) -> sp.Expr:
    return sp.sqrt((x - a) ** 2 + (y - b) ** 2)


def _disk(a: Any, b: Any, radius: Any) -> pb.Disk:
    return pb.Disk((x, y), (a, b), radius)


def _flux(exact: sp.Expr, domain: Any) -> sp.Expr:
    return applied(pb.normal_derivative(u), {u: exact}, domain)


# Conditions that change on a side -------------------------------------------------------------------------------------


@case("mixed")
def microelectrode() -> pb.Problem:
    """Pose a strip of metal on glass, two micrometres wide: u = Re arcosh(z/a)."""
    cell = pb.Rectangle((x, -3e-6, 5e-6), (y, 0, 4e-6))
    exact = pb.data("microelectrode", lambda X, Y: 1000 * np.arccosh((X + 1j * Y) / 1e-6).real, x, y)
    conditions = [
        pb.Dirichlet(u, 0, on=cell.bottom.where(lambda X: abs(X[:, 0]) < 1e-6)),
        pb.Neumann(u, 0, on=cell.bottom.where(lambda X: abs(X[:, 0]) >= 1e-6)),
        pb.Dirichlet(u, exact, on=cell.left | cell.right | cell.top),
    ]
    return pb.Problem(LAPLACE, cell, conditions, exact=exact)


@case("mixed")
def gap_between_plates() -> pb.Problem:
    """Pose two plates, hot and cold, with an insulated gap between them: u = Re arcsin(z/a)."""
    block = pb.Rectangle((x, -1, R(3, 2)), (y, 0, 1))
    exact = pb.data("gap", lambda X, Y: 320 + 40 * np.arcsin((X + 1j * Y) / 0.05).real, x, y)
    plates = sp.Piecewise((320 - 20 * sp.pi, x < 0), (320 + 20 * sp.pi, True))
    conditions = [
        pb.Dirichlet(u, plates, on=block.bottom.where(lambda X: abs(X[:, 0]) > 0.05)),
        pb.Neumann(u, 0, on=block.bottom.where(lambda X: abs(X[:, 0]) <= 0.05)),
        pb.Dirichlet(u, exact, on=block.left | block.right | block.top),
    ]
    return pb.Problem(LAPLACE, block, conditions, exact=exact)


def _comb(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    return np.asarray(np.arcsin(np.sin(X + 1j * Y) / np.sin(0.4)).real)


@case("mixed")
def comb_of_electrodes() -> pb.Problem:
    """Pose half a period of a comb of electrodes: u = Re arcsin(sin z/sin a)."""
    half = pb.Rectangle((x, 0, sp.pi / 2), (y, 0, 1))
    exact = pb.data("comb", _comb, x, y)
    conditions = [
        pb.Dirichlet(u, 0, on=half.left),
        pb.Dirichlet(u, sp.pi / 2, on=half.right),
        pb.Neumann(u, 0, on=half.bottom.where(lambda X: X[:, 0] < 0.4)),
        pb.Dirichlet(u, sp.pi / 2, on=half.bottom.where(lambda X: X[:, 0] >= 0.4)),
        pb.Dirichlet(u, exact, on=half.top),
    ]
    return pb.Problem(LAPLACE, half, conditions, exact=exact)


@case("mixed")
def cooled_beyond_the_clamp() -> pb.Problem:
    """Pose a side that is clamped at a temperature, and cooled by air beyond: u is like the root of the distance."""
    plate, X = pb.Rectangle((x, 1000, 1001), (y, 0, 1)), x - R(10003, 10)
    distance = sp.sqrt(X**2 + y**2)
    exact = 400 * sp.sqrt(distance) * sp.sin(sp.atan2(y, X) / 2)
    conditions = [
        pb.Dirichlet(u, 0, on=plate.bottom.where(lambda X: X[:, 0] > 1000.3)),
        pb.Robin(u, 2000, 45, 2000 * 400 * sp.sqrt(distance), on=plate.bottom.where(lambda X: X[:, 0] <= 1000.3)),
        pb.Dirichlet(u, exact, on=plate.left | plate.right | plate.top),
    ]
    return pb.Problem(sp.Eq(pb.div(45 * pb.grad(u)), 0), plate, conditions, exact=exact)


@case("mixed")
def gasket_of_three_parts() -> pb.Problem:
    """Hold, insulate and cool thirds of a side, where the solution knows nothing of it."""
    gasket = pb.Rectangle((x, 10, 13), (y, -2, -1))
    exact = 50000 + 100 * sp.cosh(x - 11) * sp.cos(y)
    flux = _flux(exact, gasket)
    first, last = (gasket.bottom.where(lambda X: X[:, 0] < 11), gasket.bottom.where(lambda X: X[:, 0] >= 12))
    middle = gasket.bottom.where(lambda X: (X[:, 0] >= 11) & (X[:, 0] < 12))
    conditions = [
        pb.Dirichlet(u, exact, on=first),
        pb.Neumann(u, flux, on=middle),
        pb.Robin(u, 3, 7, 3 * exact + 7 * flux, on=last),
        pb.Neumann(u, flux, on=gasket.left | gasket.right | gasket.top),
    ]
    return pb.Problem(LAPLACE, gasket, conditions, exact=exact)


def _sleeve(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    along = np.arctan2(Y, X) - 1.2 + 1j * np.log(np.hypot(X, Y))
    return np.asarray(np.arcsin(along / 0.3).real)


@case("mixed")
def gap_on_a_pipe() -> pb.Problem:
    """Pose an insulated gap on the inner side of half a ring: the gap between plates, mapped by the logarithm."""
    outer, inner, half = _disk(0, 0, 2), _disk(0, 0, 1), pb.Rectangle((x, -3, 3), (y, 0, 3))
    exact = pb.data("sleeve", _sleeve, x, y)

    def turned(X: np.ndarray) -> np.ndarray:
        return np.asarray(np.arctan2(X[:, 1], X[:, 0]) - 1.2)

    conditions = [
        pb.Dirichlet(u, -sp.pi / 2, on=inner.boundary.where(lambda X: turned(X) <= -0.3)),
        pb.Dirichlet(u, sp.pi / 2, on=inner.boundary.where(lambda X: turned(X) >= 0.3)),
        pb.Neumann(u, 0, on=inner.boundary.where(lambda X: abs(turned(X)) < 0.3)),
        pb.Dirichlet(u, exact, on=outer.boundary),
        pb.Dirichlet(u, exact, on=half.bottom),
    ]
    return pb.Problem(LAPLACE, (outer - inner) & half, conditions, exact=exact)


# Corners --------------------------------------------------------------------------------------------------------------


@case("corner")
def held_and_free_at_120_degrees() -> pb.Problem:
    height = 10 * sp.sqrt(3)
    field = pb.Polygon((x, y), [(100, -50), (120, -50), (120, height - 50), (90, height - 50)])
    X, Y = x - 100, y + 50
    exact = 100000 * (X**2 + Y**2) ** R(3, 8) * sp.sin(R(3, 4) * sp.atan2(Y, X))
    conditions = [
        pb.Dirichlet(u, 0, on=field.edge0),
        pb.Neumann(u, 0, on=field.edge3),
        pb.Dirichlet(u, exact, on=field.edge1 | field.edge2),
    ]
    return pb.Problem(LAPLACE, field, conditions, exact=exact)


@case("corner")
def blunt_inward_corner() -> pb.Problem:
    """Take r^0.9 cos(0.9 φ) exp(−4 r²) in a corner of 200 degrees."""
    domain = pb.Polygon((x, y), [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -sp.tan(sp.pi / 9))])
    exact = r ** R(9, 10) * sp.cos(R(9, 10) * around(5 * sp.pi / 9)) * sp.exp(-4 * r**2)
    return dirichlet(sp.Eq(-pb.laplacian(u), exact * (R(152, 5) - 64 * r**2)), domain, exact)


@case("corner")
def sheared_crack() -> pb.Problem:
    """Shear a round bar of 2 cm with a crack of one degree, in N and m; no point of it is held, only its mean."""
    slope = sp.tan(sp.pi / 360)
    bar, slit = (
        _disk(0, 0, R(1, 50)),
        pb.Polygon((x, y), [(0, 0), (R(3, 100), -R(3, 100) * slope), (R(3, 100), R(3, 100) * slope)]),
    )
    power, modulus = sp.pi / (2 * sp.pi - sp.pi / 180), 80 * 10**9
    exact = (50 * r) ** power * sp.sin(power * around(sp.pi)) / 10**6
    domain = bar - slit
    pull = modulus * pb.normal_derivative(u)
    conditions = [
        pb.Condition(sp.Eq(pull, 0), on=slit.boundary),
        pb.Condition(sp.Eq(pull, modulus * _flux(exact, domain)), on=bar.boundary),
        pb.Mean(u, 0),
    ]
    return pb.Problem(sp.Eq(pb.div(modulus * pb.grad(u)), 0), domain, conditions, exact=exact)


def _screened(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    Z = (X + 1j * Y) * np.exp(-1j * (3 * np.pi / 4 + np.pi / 9))
    return np.asarray(iv(2 / 3, 100 * abs(Z)) * np.cos(2 / 3 * np.angle(Z)) / iv(2 / 3, 10))


@case("corner")
def screened_corner() -> pb.Problem:
    """Pose Δu = κ²u on an L-shape of 20 cm, turned by 20 degrees, with a screening length of 1 cm."""
    a, b = sp.cos(sp.pi / 9), sp.sin(sp.pi / 9)
    corners = [(0, 0), (1, 0), (1, 1), (-1, 1), (-1, -1), (0, -1)]
    domain = pb.Polygon((x, y), [((a * p - b * q) / 10, (b * p + a * q) / 10) for p, q in corners])
    exact = pb.data("screened", _screened, x, y)
    conditions = [pb.Dirichlet(u, 0, on=domain.edge0 | domain.edge5)]
    conditions += [pb.Dirichlet(u, exact, on=domain.edge1 | domain.edge2 | domain.edge3 | domain.edge4)]
    return pb.Problem(sp.Eq(pb.laplacian(u), 10000 * u), domain, conditions, exact=exact)


def _sounding(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    Z = -(X + 1j * Y)
    return np.asarray(jv(3 / 4, 15 * abs(Z)) * np.cos(3 / 4 * np.angle(Z)))


@case("corner")
def sound_around_a_wedge() -> pb.Problem:
    """Pose Δu + 225 u = 0 around a wedge of 120 degrees: u is like r^0.75, and oscillates."""
    across = 1 / sp.sqrt(3)
    domain = pb.Polygon((x, y), [(0, 0), (across, 1), (-1, 1), (-1, -1), (across, -1)])
    exact = pb.data("sounding", _sounding, x, y)
    return dirichlet(sp.Eq(pb.laplacian(u) + 225 * u, 0), domain, exact)


@case("corner")
def two_spikes() -> pb.Problem:
    """Pose a field over a floor with two spikes of 60 degrees."""
    tips = [(sp.Integer(1), R(3, 10) * sp.sqrt(3)), (sp.Integer(3), R(2, 5) * sp.sqrt(3))]
    floor = [(0, 0), (R(7, 10), 0), tips[0], (R(13, 10), 0), (R(13, 5), 0), tips[1], (R(17, 5), 0), (5, 0)]
    domain = pb.Polygon((x, y), [*floor, (5, 3), (0, 3)])

    def around_tip(a: sp.Expr, b: sp.Expr) -> sp.Expr:
        turned = around(sp.pi / 2).subs({x: x - a, y: y - b}, simultaneous=True)
        return _away(a, b) ** R(3, 5) * sp.cos(R(3, 5) * turned)

    return dirichlet(LAPLACE, domain, around_tip(*tips[0]) - 3 * around_tip(*tips[1]))


# Small holes ----------------------------------------------------------------------------------------------------------


@case("small hole")
def cable_of_three_wires() -> pb.Problem:
    """Pose wires of 1 mm, 0.1 mm and 0.01 mm in a cable of 1 cm."""
    wires = [(R(496, 1000), R(1, 2), R(1, 1000)), (R(503, 1000), R(504, 1000), R(1, 10000))]
    wires += [(R(504, 1000), R(496, 1000), R(1, 100000))]
    domain: Any = _disk(R(1, 2), R(1, 2), R(1, 100))
    for wire in wires:
        domain = domain - _disk(*wire)
    exact = 1000 * sum(k * sp.log(100 * _away(a, b)) for (a, b, _), k in zip(wires, (1, -2, 3), strict=True))
    return dirichlet(LAPLACE, domain, exact)


@case("small hole")
def wire_over_ground() -> pb.Problem:
    """Pose a wire of 2 cm, 1 m above the ground, at 400 kV, by its image."""
    size = R(1, 100)
    focus = sp.sqrt(1 - size**2)
    field, wire = pb.Rectangle((x, -4, 6), (y, 0, 5)), _disk(0, 1, size)
    ratio = (x**2 + (y + focus) ** 2) / (x**2 + (y - focus) ** 2)
    exact = 400000 * sp.log(ratio) / (2 * sp.acosh(1 / size))
    conditions = [
        pb.Dirichlet(u, 400000, on=wire.boundary),
        pb.Dirichlet(u, 0, on=field.bottom),
        pb.Dirichlet(u, exact, on=field.left | field.right | field.top),
    ]
    return pb.Problem(LAPLACE, field - wire, conditions, exact=exact)


@case("small hole")
def stream_past_three_rods() -> pb.Problem:
    """Give what flows through three rods of different size, one of them a source."""
    sheet = pb.Rectangle((x, 0, 200), (y, 0, 100))
    rods = [(50, 40, 10), (120, 65, 2), (165, 30, R(1, 2))]
    exact = 3 * x + 40 * sp.log(_away(120, 65))
    exact += sum(3 * k**2 * (x - a) / _away(a, b) ** 2 for a, b, k in rods)
    domain: Any = sheet
    for rod in rods:
        domain = domain - _disk(*rod)
    flux = _flux(exact, domain)
    conditions = [pb.Neumann(u, flux, on=_disk(*rod).boundary) for rod in rods]
    conditions += [
        pb.Neumann(u, flux, on=sheet.bottom | sheet.top),
        pb.Dirichlet(u, exact, on=sheet.left | sheet.right),
    ]
    return pb.Problem(LAPLACE, domain, conditions, exact=exact)


@case("small hole")
def two_charged_rods() -> pb.Problem:
    """Pose Δu = u/λ² with λ = 10 nm between rods of 1 nm and 6 nm in a box of 100 nm."""

    def potential(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        one, two = np.hypot(X - 3e-8, Y - 4e-8), np.hypot(X - 7e-8, Y - 5.5e-8)
        return np.asarray(0.025 * k0(one / 1e-8) - 0.1 * k0(two / 1e-8))

    box, exact = pb.Rectangle((x, 0, 1e-7), (y, 0, 1e-7)), pb.data("potential", potential, x, y)
    domain = box - _disk(3e-8, 4e-8, 1e-9) - _disk(7e-8, 5.5e-8, 6e-9)
    return dirichlet(sp.Eq(pb.laplacian(u), 10**16 * u), domain, exact)


@case("small hole")
def ringing_wire() -> pb.Problem:
    """Pose Δu + 144 u = 0 around a small hole off the centre: u = Y₀(12 r)."""
    domain = _disk(0, 0, 1) - _disk(R(1, 2), -R(1, 5), R(1, 50))
    exact = pb.data("ringing", lambda X, Y: y0(12 * np.hypot(X - 0.5, Y + 0.2)), x, y)
    return dirichlet(sp.Eq(pb.laplacian(u) + 144 * u, 0), domain, exact)


def _past_plate(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Map the outside of an ellipse of half axes 0.5 and 0.05 to that of a disk."""
    Z, rho, square, turn = X + 1j * Y, 0.275, 0.275 * 0.225, np.exp(1j * np.pi / 6)
    root = np.sqrt(Z - 2 * np.sqrt(square)) * np.sqrt(Z + 2 * np.sqrt(square))
    outside = (Z + root) / 2
    return np.asarray((outside / turn + rho**2 * turn / outside).real)


@case("small hole")
def plate_in_a_stream() -> pb.Problem:
    """Pose the flow at 30 degrees past an ellipse ten times as long as thick."""
    tunnel = pb.Rectangle((x, -1, 2), (y, -1, 1))
    plate = pb.Implicit((x, y), 4 * x**2 + 400 * y**2 - 1, [(-R(3, 5), R(3, 5)), (-R(1, 10), R(1, 10))])
    exact = pb.data("stream", _past_plate, x, y)
    conditions = [pb.Neumann(u, 0, on=plate.boundary), pb.Dirichlet(u, exact, on=tunnel.boundary)]
    return pb.Problem(LAPLACE, tunnel - plate, conditions, exact=exact)
