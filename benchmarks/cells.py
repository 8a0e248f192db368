"""Members of well-known families of problems for adaptive methods, and what cells cost.

    python -m benchmarks.cells [--sides 8 16 32 64 98] [--csv out/cells.csv]

The families (peaks, layers, fronts, oscillations towards a point, singular lines, kinks, corners) are solved by
``python -m benchmarks.held_out --set families``. Here one problem is solved on even trees of so many cells along each
side, up to a million weights: seconds of the processor, on one thread, and memory of the whole process.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import sympy as sp

import pibls as pb
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.rows import Rows
from pibls.cells.solve import Glue
from pibls.cells.tree import Cell
from pibls.features.reference import draw_reference
from pibls.runtime import blas_threads

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
WIDE = pb.Rectangle((x, -1, 1), (y, -1, 1))
R = sp.Rational
SIDES = [8, 16, 32, 64, 98]  # cells along each side, the last of them for a million weights


def _minus_laplacian(w: sp.Expr) -> sp.Expr:
    return -w.diff(x, 2) - w.diff(y, 2)


def _made(exact: sp.Expr, domain: object, operator: Callable[[sp.Expr], sp.Expr] = _minus_laplacian) -> pb.Problem:
    return pb.Problem(sp.Eq(operator(u), operator(exact)), domain, [pb.Dirichlet(u, exact)], exact=exact)


def peak(steepness: int, cx: sp.Expr, cy: sp.Expr) -> pb.Problem:
    """Return Poisson's equation for a Gaussian."""
    return _made(sp.exp(-steepness * ((x - cx) ** 2 + (y - cy) ** 2)), SQUARE)


def layer(width: sp.Expr) -> pb.Problem:
    """Return convection with little diffusion, and layers at two sides."""
    exact = (1 - sp.exp(-(1 - x) / width)) * (1 - sp.exp(-(1 - y) / width)) * sp.cos(sp.pi * (x + y))
    return _made(exact, WIDE, lambda w: width * _minus_laplacian(w) + 2 * w.diff(x) + w.diff(y))


def front(steepness: int, cx: sp.Expr, cy: sp.Expr, radius: sp.Expr) -> pb.Problem:
    """Return Poisson's equation for a circular front."""
    return _made(sp.atan(steepness * (sp.sqrt((x - cx) ** 2 + (y - cy) ** 2) - radius)), SQUARE)


def oscillation(offset: sp.Expr) -> pb.Problem:
    """Return a wave equation whose solution oscillates faster and faster towards a corner."""
    r = sp.sqrt(x**2 + y**2)
    return _made(sp.sin(1 / (offset + r)), SQUARE, lambda w: _minus_laplacian(w) - w / (offset + r) ** 4)


def corner(turns: sp.Expr, beside: sp.Expr = sp.S.Zero) -> pb.Problem:
    """Return Poisson's equation on a square less a wedge: singular at the re-entrant corner, and what is beside it."""
    angle = turns * sp.pi
    power, polar = sp.pi / angle, sp.atan2(y, x)
    turn = sp.Piecewise((polar, polar >= 0), (polar + 2 * sp.pi, True))
    exact = (x**2 + y**2) ** (power / 2) * sp.sin(power * turn) + beside
    directions = [0.0, *np.arange(np.pi / 4, float(angle) - 1e-9, np.pi / 4), float(angle)]
    points = [(0.0, 0.0)]
    for a in directions:
        reach = max(abs(np.cos(a)), abs(np.sin(a)))
        points.append((float(np.cos(a) / reach), float(np.sin(a) / reach)))
    wedge = pb.Polygon((x, y), points)
    equation = sp.Eq(-pb.laplacian(u), _minus_laplacian(beside))
    return pb.Problem(equation, wedge, [pb.Dirichlet(u, exact)], exact=exact)


def kink(slope: sp.Expr, power: sp.Expr) -> pb.Problem:
    """Return a solution that is rough along a slanted line."""
    edge, smooth = slope * (y + 1), sp.cos(sp.pi * y / 2)
    return _made(sp.Piecewise((smooth, x <= edge), (smooth + (x - edge) ** power, True)), WIDE)


PEAK = sp.exp(-1000 * ((x + R(1, 2)) ** 2 + (y - R(2, 5)) ** 2))
FRONT = sp.atan(20 * (sp.sqrt((x - R(3, 2)) ** 2 + (y - R(3, 2)) ** 2) - R(3, 2)))

FAMILIES: dict[str, Callable[[], pb.Problem]] = {
    "peak 1e3": lambda: peak(1000, R(37, 100), R(61, 100)),
    "peak 1e5": lambda: peak(100000, R(51, 100), R(117, 1000)),
    "layer 1e-1": lambda: layer(R(1, 10)),
    "layer 1e-2": lambda: layer(R(1, 100)),
    "layer 1e-3": lambda: layer(R(1, 1000)),
    "front 20": lambda: front(20, R(-1, 20), R(-1, 20), R(7, 10)),
    "front 50": lambda: front(50, R(1, 2), R(1, 2), R(1, 4)),
    "front 200": lambda: front(200, R(-1, 20), R(-1, 20), R(7, 10)),
    "front 1000": lambda: front(1000, R(-1, 20), R(-1, 20), R(7, 10)),
    "oscillation 1/10π": lambda: oscillation(1 / (10 * sp.pi)),
    "oscillation 1/50π": lambda: oscillation(1 / (50 * sp.pi)),
    "x^0.6": lambda: _made(x ** R(3, 5), SQUARE),
    "kink": lambda: kink(R(3, 5), R(5, 2)),
    "corner 5/4 π": lambda: corner(R(5, 4)),
    "corner 3/2 π": lambda: corner(R(3, 2)),
    "corner 7/4 π": lambda: corner(R(7, 4)),
    "corner 2π": lambda: corner(R(199, 100)),
    "corner 5/4 π, peak, front": lambda: corner(R(5, 4), PEAK + FRONT),
    "corner 3/2 π, peak, front": lambda: corner(R(3, 2), PEAK + FRONT),
    "corner 7/4 π, peak, front": lambda: corner(R(7, 4), PEAK + FRONT),
}


def even(cell: Cell, counts: tuple[int, int]) -> Cell:
    """Return a tree of so many equal cells along each axis."""
    axis = int(np.argmax(counts))
    if counts[axis] == 1:
        return cell
    first = counts[axis] // 2
    halved = cell.halved(axis, float(cell.low[axis] + cell.size[axis] * first / counts[axis]))
    shares = [tuple(own if a == axis else c for a, c in enumerate(counts)) for own in (first, counts[axis] - first)]
    return replace(halved, halves=tuple(even(half, own) for half, own in zip(halved.halves, shares, strict=True)))


def cost(side: int) -> dict[str, float]:
    """Solve Helmholtz's equation with a varying coefficient, so that no two cells are alike, on an even tree."""
    exact = sp.sin(30 * x) * sp.sin(30 * y)
    operator = _minus_laplacian(u) - 900 * (1 + x * y) * u
    problem = pb.Problem(sp.Eq(operator, operator.subs(u, exact).doit()), SQUARE, [pb.Dirichlet(u, exact)], exact=exact)
    glue = Glue(Rows(Layout(problem, draw_reference(2, 13, 0))))
    root = even(glue.layout.root, (side, side))
    start, spent = time.perf_counter(), time.process_time()
    with blas_threads(most=1):
        fit = glue.solve(root)
    wall, seconds = time.perf_counter() - start, time.process_time() - spent
    true = glue.layout.problem.domain.sample(2000)
    found = network_of(glue.layout, fit).evaluate(true, [(0, 0)])[0, 0]
    known = np.sin(30 * true[:, 0]) * np.sin(30 * true[:, 1])
    error = float(np.linalg.norm(found.sum(axis=1) - known) / np.linalg.norm(known))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "cells": len(fit.parts),
        "weights": fit.unknowns,
        "seconds": seconds,
        "wall": wall,
        "gib": memory,
        "error": error,
    }


def main() -> None:
    """Solve on one tree after another, each in a process of its own, as memory is that of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", type=int, nargs="+", default=SIDES)
    parser.add_argument("--csv", type=Path, default=None)
    options = parser.parse_args()
    rows = []
    for side in options.sides:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            rows.append(row := pool.submit(cost, side).result())
        print(
            f"{row['cells']:6d} cells {row['weights']:8d} weights {row['seconds']:8.2f} s {row['gib']:6.2f} GiB "
            f"error {row['error']:.1e}",
            flush=True,
        )
    if options.csv is not None:
        options.csv.parent.mkdir(parents=True, exist_ok=True)
        with options.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
