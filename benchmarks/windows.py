"""Windows of which nothing is known at the edges: unknown numbers from equations and measurements alone.

    python -m benchmarks.windows [--seeds 200] [--noise 0.01] [--wake] [--csv out/windows.csv]

Data are closed forms with noise; ``held`` is how often 95 % intervals hold the truth, ``spread`` the root mean square
of errors in standard deviations, which should be one. With ``--wake``, the two coefficients of the flow behind a
cylinder instead.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import pibls as pb
from pibls.checks import FloatArray
from pibls.problems import inverse
from pibls.problems.cole_hopf import cole_hopf

Made = tuple[pb.Problem, dict[str, float]]


@dataclass(frozen=True)
class Row:
    """One unknown of one window, over all seeds."""

    window: str
    noise: float
    unknown: str
    solves: int
    converged: int
    error: float
    held: float
    spread: float
    seconds: float


def _observed(u: Any, where: FloatArray, values: FloatArray, noise: float, seed: int) -> pb.Observation:
    rng = np.random.default_rng([seed, 3])
    size = noise * float(np.sqrt(np.mean(values**2)))
    return pb.Observation(u, where, values + size * rng.standard_normal(len(values)), size or None)


def decay(noise: float, seed: int) -> Made:
    """Return u′ = −k u from 30 places."""
    x = pb.coordinates("x")
    u, k = pb.field("u", x), pb.unknown("k", start=1)
    where = np.linspace(0.02, 0.98, 30)[:, None]
    data = _observed(u, where, np.exp(-2 * where[:, 0]), noise, seed)
    return pb.Problem(u.diff(x) + k * u, pb.Interval((x, 0, 1)), [data]), {"k": 2.0}


def oscillation(noise: float, seed: int) -> Made:
    """Return u″ = −k u from 60 places."""
    x = pb.coordinates("x")
    u, k = pb.field("u", x), pb.unknown("k", start=5)
    where = np.linspace(0.02, 1.98, 60)[:, None]
    data = _observed(u, where, np.sin(3 * where[:, 0]), noise, seed)
    return pb.Problem(u.diff(x, 2) + k * u, pb.Interval((x, 0, 2)), [data]), {"k": 9.0}


def heat(noise: float, seed: int) -> Made:
    """Return u_t = k u_xx from 500 points."""
    x, t = pb.coordinates("x t")
    u, k = pb.field("u", x, t), pb.unknown("k", start=1, bounds=(0, None))
    window = pb.Interval((x, 0.1, 0.9)) * pb.TimeInterval(t, 0.1, 1)
    where = window.sample(500, "kronecker")
    place, when = np.pi * where[:, 0], 0.3 * np.pi**2 * where[:, 1]
    values = np.exp(-when) * np.sin(place) + 0.5 * np.exp(-4 * when) * np.cos(2 * place)
    return pb.Problem(u.diff(t) - k * u.diff(x, 2), window, [_observed(u, where, values, noise, seed)]), {"k": 0.3}


def waves(noise: float, seed: int) -> Made:
    """Return Δu + k u = 0 from 400 points of a square."""
    x, y = pb.coordinates("x y")
    u, k = pb.field("u", x, y), pb.unknown("k", start=10)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    where = square.sample(400, "kronecker")
    values = np.sin(3 * where[:, 0] + 1) * np.cos(4 * where[:, 1])
    data = _observed(u, where, values, noise, seed)
    return pb.Problem(u.diff(x, 2) + u.diff(y, 2) + k * u, square, [data]), {"k": 25.0}


def burgers(noise: float, seed: int) -> Made:
    """Return u_t + a u u_x = ν u_xx from 800 points."""
    x, t = pb.coordinates("x t")
    u, a, nu = pb.field("u", x, t), pb.unknown("a", start=0.5), pb.unknown("nu", start=0.02, bounds=(0, None))
    window = pb.Interval((x, -0.8, 0.8)) * pb.TimeInterval(t, 0.05, 0.5)
    where = window.sample(800, "kronecker")
    data = _observed(u, where, cole_hopf(0.05)(*where.T), noise, seed)
    return pb.Problem(u.diff(t) + a * u * u.diff(x) - nu * u.diff(x, 2), window, [data]), {"a": 1.0, "nu": 0.05}


def wake(noise: float, seed: int) -> Made:
    """Return the flow behind a cylinder from 2000 points."""
    return inverse.cylinder_wake(noise, seed), {"a": 1.0, "nu": 0.01}


def rows(make: Callable[[float, int], Made], noise: float, seeds: int) -> Iterator[Row]:
    """Yield a row for every unknown of a window."""
    found, seconds, converged = [], [], 0
    for seed in range(seeds):
        problem, truth = make(noise, seed)
        begun = time.process_time()
        solution = pb.solve(problem)
        seconds.append(time.process_time() - begun)
        converged += solution.status == "converged"
        found.append(solution.parameters)
    for name, true in truth.items():
        own = [parameters[name] for parameters in found]
        errors = np.array([entry.value - true for entry in own])
        held = np.mean([entry.interval[0] <= true <= entry.interval[1] for entry in own])
        spread = np.sqrt(np.mean(np.square(errors / [entry.deviation for entry in own])))
        middle = float(np.median(np.abs(errors))) / true
        yield Row(
            make.__name__, noise, name, seeds, converged, middle, float(held), float(spread), float(np.median(seconds))
        )


def main() -> None:
    """Solve all windows and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--wake", action="store_true", help="the wake instead of the small windows")
    parser.add_argument("--csv", type=Path)
    chosen = parser.parse_args()
    made: list[Row] = []
    for make in [wake] if chosen.wake else [decay, oscillation, heat, waves, burgers]:
        for row in rows(make, chosen.noise, chosen.seeds):
            made.append(row)
            print(
                f"{row.window:12s} {row.unknown:3s} noise {row.noise:g}: {row.converged} of {row.solves} converged, "
                f"error {row.error:.1e}, held {row.held:.1%}, spread {row.spread:.2f}, {row.seconds:.2f} s",
                flush=True,
            )
    if chosen.csv:
        chosen.csv.parent.mkdir(parents=True, exist_ok=True)
        with chosen.csv.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, [f.name for f in fields(Row)])
            writer.writeheader()
            writer.writerows(asdict(row) for row in made)


if __name__ == "__main__":
    main()
