"""The cost of cells: seconds and memory over the number of weights.

    python -m benchmarks.cells [--sides 8 16 32 64 98] [--csv out/cells.csv]

One problem is solved on even trees of so many cells along each side, up to a million weights: seconds of the processor,
on one thread, and memory of the whole process.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.scale import even
from benchmarks.sets.families import minus_laplacian
from benchmarks.sets.held_out import SQUARE, u, x, y
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.rows import Rows
from pibls.cells.solve import TreeSolver
from pibls.features.reference import draw_reference
from pibls.runtime import blas_threads

SIDES = [8, 16, 32, 64, 98]  # cells along each side, the last of them for a million weights


def cost(side: int) -> dict[str, float]:
    """Solve Helmholtz's equation with a varying coefficient, so that no two cells are alike, on an even tree."""
    exact = sp.sin(30 * x) * sp.sin(30 * y)
    operator = minus_laplacian(u) - 900 * (1 + x * y) * u
    problem = pb.Problem(sp.Eq(operator, operator.subs(u, exact).doit()), SQUARE, [pb.Dirichlet(u, exact)], exact=exact)
    solver = TreeSolver(Rows(Layout(problem, draw_reference(2, 13, 0))))
    root = even(solver.layout.root, (side, side))
    start, spent = time.perf_counter(), time.process_time()
    with blas_threads(most=1):
        fit = solver.solve(root)
    wall, seconds = time.perf_counter() - start, time.process_time() - spent
    true = solver.layout.problem.domain.sample(2000)
    found = network_of(solver.layout, fit).evaluate(true, [(0, 0)])[0, 0]
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
