"""Values of the everyday problems that have no closed form, by methods of their own; writes `everyday_values.json`.

    python benchmarks/everyday_references.py [--only NAME ...] [--out src/pibls/problems/everyday_values.json]

Needs scikit-fem (`pip install scikit-fem`), which the library itself does not. Finite elements are of degree 4
(velocities; pressures 3) on triangles halved towards every singular corner; the same with coarser triangles and fewer
levels is the other solution whose relative distance is the accuracy stated. Everything else is a
series, a fit by particular solutions or an integration in time, with as many and fewer terms.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import skfem as fe
from scipy.integrate import solve_ivp
from scipy.linalg import eig
from scipy.optimize import brentq
from skfem.helpers import ddot, div, dot, grad, mul, sym_grad, trace

Values = dict[str, np.ndarray]
OUT = Path(__file__).parents[1] / "src/pibls/problems/everyday_values.json"


def blocks(*boxes: tuple[float, float, float, float], size: float) -> fe.MeshTri:
    """Return triangles of a union of rectangles (x0, x1, y0, y1) with corners on a grid of the given size."""
    mesh = None
    for x0, x1, y0, y1 in boxes:
        own = fe.MeshTri.init_tensor(
            np.linspace(x0, x1, round((x1 - x0) / size) + 1), np.linspace(y0, y1, round((y1 - y0) / size) + 1)
        )
        mesh = own if mesh is None else mesh + own
    return mesh


def graded(mesh: fe.MeshTri, corners: list[tuple[float, float]], levels: int) -> fe.MeshTri:
    """Return a mesh whose triangles at the corners are halved so many times."""
    for level in range(levels):
        near = np.zeros(mesh.t.shape[1], dtype=bool)
        for corner in corners:
            distance = np.hypot(mesh.p[0] - corner[0], mesh.p[1] - corner[1])
            near |= (distance[mesh.t] < 1.01 * 0.5 ** (level + 2)).any(axis=0)
        mesh = mesh.refined(np.flatnonzero(near))
    return mesh


def probe(basis: fe.Basis, values: np.ndarray, points: np.ndarray) -> np.ndarray:
    return np.asarray(basis.probes(points.T) @ values)


# Finite elements ------------------------------------------------------------------------------------------------------


def cooling_fin(points: np.ndarray, fine: bool) -> Values:
    mesh = blocks((0, 3, 0, 1), (1, 2, 1, 4), size=0.125 if fine else 0.25)
    mesh = graded(mesh, [(1, 1), (2, 1), (0, 1), (3, 1), (1, 4), (2, 4)], 18 if fine else 14)
    basis = fe.Basis(mesh, fe.ElementTriP4())
    air = mesh.facets_satisfying(
        lambda X: (X[1] > 1 + 1e-9) | ((abs(X[1] - 1) < 1e-9) & ((X[0] < 1) | (X[0] > 2))), boundaries_only=True
    )
    stiffness = fe.BilinearForm(lambda u, v, _: dot(grad(u), grad(v))).assemble(basis)
    stiffness += fe.BilinearForm(lambda u, v, _: 0.5 * u * v).assemble(fe.FacetBasis(mesh, basis.elem, facets=air))
    held = basis.get_dofs(lambda X: X[1] < 1e-9)
    u = basis.zeros()
    u[held] = 1
    return {"u": probe(basis, fe.solve(*fe.condense(stiffness, basis.zeros(), x=u, D=held)), points)}


def _elastic(mesh: fe.MeshTri, clamped: Callable[..., Any], loaded: Callable[..., Any], points: np.ndarray) -> Values:
    """Plane stress, Young's modulus 1, Poisson's ratio 0.3, a traction of −0.01 upwards."""
    scalar = fe.ElementTriP4()
    basis = fe.Basis(mesh, fe.ElementVector(scalar))
    lame, shear = 0.3 / (1 - 0.09), 1 / 2.6

    @fe.BilinearForm
    def work(u: Any, v: Any, _: Any) -> Any:
        return lame * trace(sym_grad(u)) * trace(sym_grad(v)) + 2 * shear * ddot(sym_grad(u), sym_grad(v))

    facets = mesh.facets_satisfying(loaded, boundaries_only=True)
    load = fe.LinearForm(lambda v, _: -0.01 * v[1]).assemble(fe.FacetBasis(mesh, basis.elem, facets=facets))
    held = basis.get_dofs(clamped)
    found = fe.solve(*fe.condense(work.assemble(basis), load, D=held))
    at = (basis.probes(points.T) @ found).reshape(2, -1)
    return {"u": at[0], "v": at[1]}


def cantilever(points: np.ndarray, fine: bool) -> Values:
    mesh = blocks((0, 5, 0, 1), size=0.125 if fine else 0.25)
    mesh = graded(mesh, [(0, 0), (0, 1), (5, 0), (5, 1)], 20 if fine else 16)
    return _elastic(mesh, lambda X: X[0] < 1e-9, lambda X: X[0] > 5 - 1e-9, points)


def slender_beam(points: np.ndarray, fine: bool) -> Values:
    mesh = blocks((0, 30, 0, 1), size=0.125 if fine else 0.25)
    mesh = graded(mesh, [(0, 0), (0, 1), (30, 0), (30, 1)], 20 if fine else 16)
    return _elastic(mesh, lambda X: X[0] < 1e-9, lambda X: X[0] > 30 - 1e-9, points)


def cooled_spot(points: np.ndarray, fine: bool) -> Values:
    count = 9 if fine else 5
    along = np.unique(np.concatenate([np.linspace(0, 0.3137, count), np.linspace(0.3137, 1, 2 * count)]))
    mesh = graded(fe.MeshTri.init_tensor(along, np.linspace(0, 1, 2 * count)), [(0.3137, 0)], 14 if fine else 12)
    basis = fe.Basis(mesh, fe.ElementTriP4())
    below = fe.FacetBasis(mesh, basis.elem, facets=mesh.facets_satisfying(lambda X: X[1] < 1e-9), intorder=20)
    stiffness = fe.BilinearForm(lambda u, v, _: dot(grad(u), grad(v))).assemble(basis)
    stiffness += fe.BilinearForm(lambda u, v, w: 1e4 * np.exp(-((1e3 * (w.x[0] - 0.3137)) ** 2)) * u * v).assemble(
        below
    )
    held = basis.get_dofs(lambda X: X[1] > 1 - 1e-9)
    u = basis.zeros()
    u[held] = 1
    return {"u": probe(basis, fe.solve(*fe.condense(stiffness, basis.zeros(), x=u, D=held)), points)}


def bracket(points: np.ndarray, fine: bool) -> Values:
    mesh = blocks((0, 3, 0, 1), (0, 1, 1, 3), size=0.125 if fine else 0.25)
    mesh = graded(mesh, [(1, 1), (0, 3), (1, 3), (3, 0), (3, 1)], 24 if fine else 18)
    return _elastic(mesh, lambda X: X[1] > 3 - 1e-9, lambda X: X[0] > 3 - 1e-9, points)


def _flow(mesh: fe.MeshTri, reynolds: float, sides: list[Any], points: np.ndarray, closed: bool = False) -> Values:
    """Taylor–Hood elements and Newton's method; sides are (where, component, velocity), later ones count."""
    velocity = fe.Basis(mesh, fe.ElementVector(fe.ElementTriP4()), intorder=11)
    pressure = velocity.with_element(fe.ElementTriP3())
    viscous = fe.BilinearForm(lambda u, v, _: ddot(grad(u), grad(v))).assemble(velocity)
    mass = fe.BilinearForm(lambda u, q, _: -div(u) * q).assemble(velocity, pressure)
    carry = fe.BilinearForm(lambda u, v, w: reynolds * dot(mul(grad(u), w.f) + mul(grad(w.f), u), v))
    carried = fe.LinearForm(lambda v, w: reynolds * dot(mul(grad(w.f), w.f), v))
    state, n = np.zeros(velocity.N + pressure.N), velocity.N
    held = [n] if closed else []
    for where, component, value in sides:
        facets = mesh.facets_satisfying(where, boundaries_only=True)
        rows = velocity.get_dofs(facets).all(f"u^{component}")
        state[rows] = value(velocity.doflocs[:, rows])
        held = np.union1d(held, rows).astype(int)
    for _ in range(12 if reynolds else 1):
        flow = velocity.interpolate(state[:n])
        top = viscous + carry.assemble(velocity, f=flow) if reynolds else viscous
        matrix = fe.bmat([[top, mass.T], [mass, None]], "csc")
        residual = fe.bmat([[viscous, mass.T], [mass, None]], "csc") @ state
        if reynolds:
            residual[:n] += carried.assemble(velocity, f=flow)
        change = fe.solve(*fe.condense(matrix, -residual, D=held))
        state += change
        if np.abs(change[:n]).max() < 1e-11:
            break
    at = (velocity.probes(points.T) @ state[:n]).reshape(2, -1)
    return {"u": at[0], "v": at[1], "p": probe(pressure, state[n:], points)}


def step_creeping(points: np.ndarray, fine: bool, reynolds: float = 0.0) -> Values:
    mesh = blocks((-2, 0, 0, 1), (0, 6, -1, 0), (0, 6, 0, 1), size=0.125 if fine else 0.25)
    mesh = graded(mesh, [(0, 0), (0, -1), (6, -1), (6, 1), (-2, 0), (-2, 1)], 18 if fine else 14)
    rest = [(lambda X: X[0] < 6 - 1e-9, component, lambda X: 0 * X[0]) for component in (1, 2)]
    inlet = (lambda X: X[0] < -2 + 1e-9, 1, lambda X: 6 * X[1] * (1 - X[1]))
    outlet = (lambda X: X[0] > 6 - 1e-9, 2, lambda X: 0 * X[0])
    return _flow(mesh, reynolds, [*rest, inlet, outlet], points)


def step_flow(points: np.ndarray, fine: bool) -> Values:
    return step_creeping(points, fine, 20.0)


def cavity(points: np.ndarray, fine: bool) -> Values:
    mesh = blocks((0, 1, 0, 1), size=0.0625 if fine else 0.125)
    mesh = graded(mesh, [(0, 1), (1, 1), (0, 0), (1, 0)], 18 if fine else 14)
    walls = [(lambda X: X[0] > -1, component, lambda X: 0 * X[0]) for component in (1, 2)]
    lid = (lambda X: X[1] > 1 - 1e-9, 1, lambda X: ((X[0] > 0) & (X[0] < 1)).astype(float))
    found = _flow(mesh, 100.0, [*walls, lid], points, closed=True)
    return {"u": found["u"], "v": found["v"]}  # the pressure is free up to a constant


# Series and particular solutions --------------------------------------------------------------------------------------


def motz(points: np.ndarray, fine: bool) -> Values:
    """Fit Σ dₖ r^(k + 1/2) cos((k + 1/2) θ) to the far sides; returns the d, too."""
    powers = np.arange(42 if fine else 34) + 0.5
    s = 0.5 * (1 - np.cos(np.pi * (np.arange(400) + 0.5) / 400))
    right, top, left = 1 + 1j * s, 2 * s - 1 + 1j, -1 + 1j * s
    rows = [
        right[:, None] ** powers,
        1j * powers * top[:, None] ** (powers - 1),
        powers * left[:, None] ** (powers - 1),
    ]
    A = np.concatenate(rows).real
    b = np.concatenate([np.full(400, 500.0), np.zeros(800)])
    size = np.abs(A).max(axis=0)
    d = np.linalg.lstsq(A / size, b, rcond=None)[0] / size
    return {"u": ((points @ [1, 1j])[:, None] ** powers).real @ d, "coefficients": d[:34]}


def well(points: np.ndarray, fine: bool) -> Values:
    """Logarithms at the images of the well, a Laurent series in it and polynomials, fitted to the boundary."""
    centre, radius = 0.4 + 0.6j, 0.02
    degree, order = (70, 6) if fine else (56, 5)

    def basis(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Functions and their complex derivatives."""
        value, slope = np.zeros(z.shape, dtype=complex), np.zeros(z.shape, dtype=complex)
        for m in range(-2, 3):
            for flip_x in (1, -1):
                for flip_y in (1, -1):
                    for n in range(-2, 3):
                        image = (2 * m + flip_x * centre.real) + 1j * (2 * n + flip_y * centre.imag)
                        value += flip_x * np.log(abs(z - image))
                        slope += flip_x / (z - image)
        k, c, r = np.arange(degree), z[:, None] - (0.5 + 0.5j), radius / (z[:, None] - centre)
        c, scale = c / 0.75, 1 / 0.75
        j = np.arange(1, order)
        polynomials, slopes = c**k, scale * k * c ** np.maximum(k - 1, 0)
        laurent, tilts = r**j, -j * r ** (j + 1) / radius
        values = [value[:, None].real, polynomials.real, polynomials.imag, laurent.real, laurent.imag]
        derivatives = [slope[:, None], slopes, -1j * slopes, tilts, -1j * tilts]
        return np.hstack(values), np.hstack(derivatives)

    s = 0.5 * (1 - np.cos(np.pi * (np.arange(300) + 0.5) / 300))
    rim = centre + radius * np.exp(2j * np.pi * np.arange(60) / 60)
    sides, ends = np.concatenate([1j * s, 1 + 1j * s]), np.concatenate([s + 0j, s + 1j])
    A = np.vstack([basis(sides)[0], -basis(ends)[1].imag, basis(rim)[0]])
    b = np.concatenate([np.ones(600), np.zeros(660)])
    c = np.linalg.lstsq(A, b, rcond=1e-15)[0]
    print(f"  well: boundary residual {np.abs(A @ c - b).max():.1e}")
    return {"u": basis(points @ [1, 1j])[0] @ c}


def plume(points: np.ndarray, fine: bool) -> Values:
    """Sum cosines across the channel; each one's equation along it by its Green's function, the source in (10, 30)."""
    nodes, weights = np.polynomial.legendre.leggauss(200 if fine else 140)
    result = np.zeros(len(points))
    for n in range(80 if fine else 60):
        wave = n * np.pi / 20
        y = 7 + 9 * nodes
        share = (9 * weights * np.exp(-((y - 7) ** 2) / 2) * np.cos(wave * y)).sum() * (1 if n == 0 else 2) / 20
        root = np.sqrt(1 + wave**2)
        up, down = 1 + root, 1 - root  # of −r²/2 + r + wave²/2 = 0

        def particular(x: float, slope: int, up: float = up, down: float = down) -> float:
            total = 0.0
            for low, high, rate in ((10.0, min(max(x, 10.0), 30.0), down), (min(max(x, 10.0), 30.0), 30.0, up)):
                if low == high:
                    continue
                s = low + (high - low) * (nodes + 1) / 2
                values = np.exp(rate * (x - s) - (s - 20) ** 2 / 2) * rate**slope
                total += (high - low) / 2 * (weights @ values)
            return total / (0.5 * (up - down))

        a, b = -particular(0.0, 0), -particular(200.0, 1) / up
        for i, (x, y0) in enumerate(points):
            along = particular(x, 0) + a * np.exp(down * x) + b * np.exp(up * (x - 200))
            result[i] += share * along * np.cos(wave * y0)
    return {"u": result}


def cooling_pin(points: np.ndarray, fine: bool) -> Values:
    """Sum a double series of cosines across, with λ tan(λ/2) = ½."""
    count = 60 if fine else 40
    lam = np.array(
        [
            brentq(lambda s: s * np.sin(s / 2) - 0.5 * np.cos(s / 2), 2 * np.pi * k + 1e-9, 2 * np.pi * k + np.pi)
            for k in range(count)
        ]
    )
    norm = 0.5 + np.sin(lam) / (2 * lam)
    c = 2 * np.sin(lam / 2) / lam / norm
    x, y, z = points.T
    k = np.hypot(lam[:, None], lam)[..., None]
    fade = np.exp(-k * x) * (1 + (k - 0.5) / (k + 0.5) * np.exp(-2 * k * (2 - x)))
    fade /= 1 + (k - 0.5) / (k + 0.5) * np.exp(-4 * k)
    across = [c[:, None] * np.cos(lam[:, None] * (s - 0.5)) for s in (y, z)]
    return {"a": np.einsum("ip,jp,ijp->p", *across, fade)}


def graetz(points: np.ndarray, fine: bool) -> Values:
    """Eigenfunctions φ'' + λ (1 − y²) φ = 0 by Chebyshev collocation with even polynomials."""
    n = 160 if fine else 120
    y = np.cos(np.pi * (np.arange(n) + 0.5) / (2 * n))
    k = 2 * np.arange(n)
    T = np.cos(k * np.arccos(y)[:, None])
    second = (-(k**2) * T + k * y[:, None] * np.sin(k * np.arccos(y)[:, None]) / np.sqrt(1 - y[:, None] ** 2)) / (
        1 - y[:, None] ** 2
    )
    # φ = (1 − y²) Σ c T keeps the wall at zero.
    slope = k * np.sin(k * np.arccos(y)[:, None]) / np.sqrt(1 - y[:, None] ** 2)
    q = 1 - y[:, None] ** 2
    lam, modes = eig(-(q * second - 4 * y[:, None] * slope - 2 * T), q * q * T)
    good = np.flatnonzero(np.isfinite(lam) & (abs(lam.imag) < 1e-6 * abs(lam)) & (lam.real > 0))
    good = good[np.argsort(lam[good].real)][: n // 3]
    nodes, weights = np.polynomial.legendre.leggauss(600)
    s, weights = (nodes + 1) / 2, weights / 2

    def phi(at: np.ndarray) -> np.ndarray:
        return (1 - at[:, None] ** 2) * (np.cos(k * np.arccos(at)[:, None]) @ modes[:, good].real)

    P, weight = phi(s), weights * (1 - s**2)
    c = (weight @ P) / (weight @ P**2)
    return {"u": (phi(points[:, 1]) * np.exp(-np.outer(points[:, 0], lam[good].real))) @ c}


def robertson(points: np.ndarray, fine: bool) -> Values:
    def rates(_: float, s: np.ndarray) -> list[float]:
        slow, fast, rapid = 0.04 * s[0], 1e4 * s[1] * s[2], 3e7 * s[1] ** 2
        return [fast - slow, slow - fast - rapid, rapid]

    rtol, atol = (1e-12, 1e-17) if fine else (1e-10, 1e-15)
    found = solve_ivp(rates, (0, 40), [1, 0, 0], "Radau", t_eval=points[:, 0], rtol=rtol, atol=atol).y
    return dict(zip("abc", found, strict=True))


def _grid(*axes: tuple[float, ...]) -> np.ndarray:
    return np.stack([a.ravel() for a in np.meshgrid(*axes)], axis=1)


POINTS = {
    "well": _grid((0.11, 0.29, 0.53, 0.86), (0.08, 0.37, 0.55, 0.91)),
    "plume": _grid((18.0, 25.0, 60.0, 120.0, 190.0), (2.0, 6.5, 9.0, 17.0)),
    "cooling_fin": np.vstack([_grid((0.3, 1.2, 1.7, 2.6), (0.3, 0.8)), _grid((1.3, 1.8), (1.4, 2.5, 3.7))]),
    "cooling_pin": _grid((0.3, 0.9, 1.7), (0.2, 0.6), (0.3, 0.9)),
    "slender_beam": _grid((3.0, 11.0, 19.0, 29.0), (0.15, 0.6, 0.9)),
    "cooled_spot": _grid((0.12, 0.36, 0.61, 0.88), (0.1, 0.33, 0.52, 0.87)),
    "cantilever": _grid((0.4, 1.5, 3.1, 4.8), (0.15, 0.6, 0.9)),
    "bracket": np.vstack([_grid((0.2, 0.8), (0.3, 1.3, 2.2, 2.8)), _grid((1.5, 2.2, 2.9), (0.2, 0.7))]),
    "step_creeping": np.vstack([_grid((-1.5, -0.4), (0.3, 0.8)), _grid((0.3, 1.1, 2.6, 4.9), (-0.7, -0.2, 0.3, 0.8))]),
    "graetz": _grid((0.05, 0.2, 0.5, 0.9), (0.1, 0.4, 0.7, 0.9)),
    "cavity": _grid((0.1, 0.3, 0.5, 0.8), (0.1719, 0.4531, 0.7344, 0.8516, 0.93)),
    "robertson": np.array([[0.1], [0.4], [2.0], [8.0], [20.0], [32.0], [40.0]]),
    "motz": np.array([[0.25, 0.0], [-0.5, 0.5], [0.7, 0.7]]),
}
POINTS["step_flow"] = POINTS["step_creeping"]


def main() -> None:
    """Compute everything twice and write the finer one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=sorted(POINTS))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    tables = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.only:
        points = POINTS[name]
        best, other = (globals()[name](points, fine) for fine in (True, False))
        apart = {f: float(np.linalg.norm(best[f] - other[f]) / np.linalg.norm(best[f])) for f in best}
        print(name, {f: f"{value:.1e}" for f, value in apart.items()}, flush=True)
        accuracy = float(f"{max(max(apart.values()), 1e-12):.0e}")
        values = {f: [float(f"{v:.11g}") for v in column] for f, column in best.items()}
        tables[name] = {"accuracy": accuracy, "points": points.tolist(), "values": values}
        if "coefficients" in values:
            tables[name] = {"accuracy": accuracy, "coefficients": values["coefficients"]}
        lines = [f'"{key}": {json.dumps(table)}' for key, table in sorted(tables.items())]
        options.out.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
