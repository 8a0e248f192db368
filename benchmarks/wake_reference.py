"""The wake of a cylinder at Reynolds number 100, for ``problems.inverse.cylinder_wake``.

    python -m benchmarks.wake_reference [--nodes 128] [--waves 64] [--out wake.npz]

Vorticity and stream function in ξ = log 2r and θ: Fourier series in θ, Chebyshev polynomials in ξ, and time steps of
second order, implicit in diffusion and explicit in what is carried along (SBDF2). Wall and far conditions hold in the
same linear solve, one per wave, whose inverse is kept. A sponge takes up the vortices beyond twelve diameters. Once the
vortices shed regularly, velocities are sampled at scattered points of a window behind the cylinder.

With --compare FILE it prints how far the samples are from those of another run, of other resolution. The library's were
made with --nodes 180 --waves 110, from the state that 128 nodes and 64 waves reach.
"""

from __future__ import annotations

import argparse
from collections.abc import Container
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from pibls.checks import FloatArray
from pibls.problems.inverse.data import chebyshev

VISCOSITY = 0.01
WINDOW = ((1.0, 3.0), (-1.0, 1.0), (0.0, 1.5))
POINTS = 2000
_FAR = 25.0
_SPONGE = 12.0
_SPIN_UP, _KICK = 70.0, 4.0


@dataclass(frozen=True, eq=False)
class Flow:
    """Matrices of one resolution; a state is the vorticity and the stream function of the waves 0 to ``waves``."""

    nodes: int
    waves: int
    step: float

    @cached_property
    def grid(self) -> tuple[FloatArray, FloatArray]:
        """The nodes in ξ, and the matrix of the derivative."""
        return chebyshev(self.nodes, 0.0, float(np.log(2 * _FAR)))

    @cached_property
    def square(self) -> FloatArray:
        """The square of the radius."""
        return np.asarray(np.exp(2 * self.grid[0]) / 4)

    @cached_property
    def inverse(self) -> FloatArray:
        """What :meth:`solve` multiplies with, per wave."""
        return np.stack([self._inverse(m) for m in range(self.waves + 1)])

    def _inverse(self, wave: int) -> FloatArray:
        """Return what takes the right side of the vorticity, and the far value, to vorticity and stream function."""
        n, slope = self.nodes + 1, self.grid[1]
        second = slope @ slope - wave**2 * np.eye(n)
        matrix = np.zeros((2 * n, 2 * n))
        sponge = 2.0 * np.clip((np.sqrt(self.square) - _SPONGE) / (_FAR - _SPONGE), 0.0, None) ** 2
        rate = (1.5 / self.step + sponge) * self.square
        matrix[:n, :n] = np.diag(rate) - VISCOSITY * second
        matrix[n:, n:] = second
        matrix[n:, :n] = np.diag(self.square)
        # ψ = ψ′ = 0 at the wall, ω = 0 far away; ψ is given there, but for the mean: the pressure is periodic.
        matrix[[0, n - 1, n, 2 * n - 1]] = 0.0
        matrix[n, n] = 1.0
        matrix[0, n:] = slope[0]
        matrix[n - 1, n - 1] = 1.0
        if wave:
            matrix[2 * n - 1, 2 * n - 1] = 1.0
        else:
            matrix[2 * n - 1, :n] = slope[0]
        inverse = np.linalg.inv(matrix)
        return np.ascontiguousarray(np.delete(inverse, [n, *range(n + 1, 2 * n - 1)], axis=1))

    def carried(self, state: Any, size: int) -> Any:
        """Return ψ_ξ ω_θ − ψ_θ ω_ξ, with products on a grid fine enough that nothing folds back."""
        vorticity, stream = state
        waves = 1j * np.arange(self.waves + 1)[:, None]
        slope = self.grid[1].T
        parts = (stream @ slope, waves * vorticity, waves * stream, vorticity @ slope)
        a, b, c, d = (np.fft.irfft(part, size, axis=0) * size for part in parts)
        return np.fft.rfft(a * b - c * d, axis=0)[: self.waves + 1] / size

    def solve(self, right: Any) -> Any:
        """Return vorticity and stream function for the right side of the vorticity's equation."""
        ends = right.copy()
        ends[:, [0, -1]] = 0.0
        far = np.zeros(self.waves + 1, dtype=complex)
        far[1] = _FAR / 2j  # ψ = r sin θ
        known = np.concatenate([ends, far[:, None]], axis=1)
        both = np.einsum("mij,mj->mi", self.inverse, known.real) + 1j * np.einsum(
            "mij,mj->mi",
            self.inverse,
            known.imag,
        )
        return both[:, : self.nodes + 1], both[:, self.nodes + 1 :]

    def run(self, state: Any, steps: int, kick: bool = False, kept: Container[int] = ()) -> tuple[Any, list[Any]]:
        """Return the state after some steps, and the stream functions after those of some numbers."""
        size = 3 * self.waves + (self.waves % 2)
        before, carried_before, found = state, self.carried(state, size), []
        for number in range(steps):
            carried = self.carried(state, size)
            rate = self.square / self.step
            right = rate * (2.0 * state[0] - 0.5 * before[0]) + 2.0 * carried - carried_before
            if kick and number * self.step < _KICK:
                # A push to one side, so that shedding sets in soon.
                right[2] += 0.2 * np.exp(-((self.grid[0] - 0.7) ** 2) / 0.1) * self.square
            before, carried_before, state = state, carried, self.solve(right)
            if number in kept:
                found.append(state[1])
        return state, found


def velocities(flow: Flow, stream: Any, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the velocity at points from one stream function."""
    r, angle = np.hypot(x, y), np.arctan2(y, x)
    nodes, slope = flow.grid
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] /= 2
    terms = weights / (np.log(2 * r)[:, None] - nodes)
    across = terms / terms.sum(axis=1, keepdims=True)
    waves = np.exp(1j * np.outer(angle, np.arange(flow.waves + 1)))
    waves[:, 1:] *= 2
    values = across @ stream.T
    slopes = across @ (stream @ slope.T).T
    out = np.real((waves * values * 1j * np.arange(flow.waves + 1)).sum(axis=1)) / r
    around = -np.real((waves * slopes).sum(axis=1)) / r
    return out * np.cos(angle) - around * np.sin(angle), out * np.sin(angle) + around * np.cos(angle)


def resampled(values: Any, nodes: int, waves: int) -> Any:
    """Return coefficients of another resolution: polynomials at other nodes, and more or fewer waves."""
    old, new = (
        np.polynomial.chebyshev.chebvander(chebyshev(n, -1.0, 1.0)[0], values.shape[1] - 1)
        for n in (values.shape[1] - 1, nodes)
    )
    result = np.zeros((waves + 1, nodes + 1), dtype=complex)
    count = min(waves + 1, len(values))
    result[:count] = (values @ np.linalg.solve(old, np.eye(len(old))).T @ new.T)[:count]
    return result


def sampled(flow: Flow, kept: list[Any], interval: float) -> FloatArray:
    """Return columns x, y, t, u, v at scattered points; polynomials of degree five in time between the states."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(*limits, POINTS) for limits in WINDOW])
    result = np.empty((POINTS, 2))
    first = np.clip(np.floor(X[:, 2] / interval).astype(int) - 2, 0, len(kept) - 6)
    for start in np.unique(first):
        rows = np.flatnonzero(first == start)
        place = X[rows, 2] / interval - start
        knots = np.arange(6.0)
        total = np.zeros((len(rows), 2))
        for j, stream in enumerate(kept[start : start + 6]):
            others = np.delete(knots, j)
            share = np.prod((place[:, None] - others) / (j - others), axis=1)
            total += share[:, None] * np.stack(velocities(flow, stream, X[rows, 0], X[rows, 1]), axis=1)
        result[rows] = total
    return np.column_stack([X, result])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=128)
    parser.add_argument("--waves", type=int, default=64)
    parser.add_argument("--step", type=float, default=0.005, help="time step of the first phase; a fifth of it later")
    parser.add_argument("--start", type=Path, help="state to start the last phase from, as --state wrote it")
    parser.add_argument("--state", type=Path, default=Path("wake_state.npz"))
    parser.add_argument("--out", type=Path, default=Path("wake.npz"))
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    if options.start is None:
        flow = Flow(options.nodes, options.waves, options.step)
        zero = np.zeros((options.waves + 1, options.nodes + 1), dtype=complex)
        state, _ = flow.run(flow.solve(zero), round(_SPIN_UP / options.step), kick=True)
        np.savez_compressed(options.state, vorticity=state[0], stream=state[1])
    else:
        with np.load(options.start) as stored:
            state = tuple(resampled(stored[name], options.nodes, options.waves) for name in ("vorticity", "stream"))
    fine = Flow(options.nodes, options.waves, options.step / 5)
    # What the first steps of a scheme of two steps stir up has died by then.
    first, every = round(0.5 / fine.step), round(0.05 / fine.step)
    last = first + 40 * every
    _, kept = fine.run(state, last + 1, kept=range(first, last + 1, every))
    table = sampled(fine, kept, every * fine.step)
    np.savez_compressed(options.out, table=table.astype(np.float32))
    u, v = table[:, 3:].T
    print(f"u from {u.min():.3f} to {u.max():.3f}, v from {v.min():.3f} to {v.max():.3f}")
    if options.compare is not None:
        with np.load(options.compare) as other:
            print(f"largest difference {np.abs(other['table'] - table).max():.1e}")


if __name__ == "__main__":
    main()
