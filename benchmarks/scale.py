"""How a solve on cells scales: weights, cells, seconds, bytes, and its share of the machine's own matrix product.

    python -m benchmarks.scale [--device cuda] [--processes 16] [--threads 2] [--seconds 120] [--csv out/scale.csv]
    python -m benchmarks.scale --draw docs/images/scale.png     # the kept runs

Helmholtz's equation with a varying coefficient is solved on even trees of a square, on rich cells of a square and in a
cube, each size in its turn until the next one would not fit into the seconds or into the memory. Every run is appended
to the file as soon as it is known, so that runs on several machines and devices stand in one file. With ``--processes``
the workers of a local Dask cluster solve it. One thread is timed by the processor's clock, all else by the wall's.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.scale_model import Leaf, exponent, total
from pibls.cells.cluster import ClusterSolver
from pibls.cells.layout import Layout
from pibls.cells.outcome import network_of
from pibls.cells.rows import Rows
from pibls.cells.solve import Fit, TreeSolver
from pibls.cells.tree import Cell
from pibls.errors import SolveError
from pibls.features.reference import SINES, Cells, draw_reference
from pibls.problem import Problem
from pibls.runtime import blas_threads

KINDS = {"square": (2, 13), "rich square": (2, 32), "cube": (3, 8)}  # dimension, and degree of the functions
SIDES = {
    "square": [8, 12, 16, 24, 32, 48, 64, 98, 128, 192, 256, 308],
    "rich square": [8, 16, 32, 64, 96, 134],
    "cube": [3, 4, 6, 8, 10, 12, 16],
}
WAVES = {"square": 30.0, "rich square": 200.0, "cube": 6.0}
STYLES = {"square": "-", "rich square": ":", "cube": "--"}  # of lines
Clock = Callable[[], float]
PRODUCT = {False: 2000, True: 8192}  # size of the matrix product, on a processor and on a GPU


@dataclass(eq=False)
class Counting:
    """A client that counts the bytes that come from its workers."""

    client: Any
    moved: float = 0.0

    def gather(self, futures: Any, **options: Any) -> Any:
        """Return results of workers."""
        found = self.client.gather(futures, **options)
        self.moved += sum(map(_bytes, found))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


def _bytes(found: Any) -> float:
    if isinstance(found, np.ndarray):
        return float(found.nbytes)
    if isinstance(found, list | tuple):
        return sum(map(_bytes, found))
    return sum(_bytes(getattr(found, own.name)) for own in fields(found)) if is_dataclass(found) else 8.0


def problem_of(kind: str) -> Problem:
    """Return Helmholtz's equation with a coefficient that varies, so that no two cells are alike."""
    coordinates = pb.coordinates("x y z" if kind == "cube" else "x y")
    u, product = pb.field("u", *coordinates), sp.prod(coordinates)
    waves = WAVES[kind]
    exact = sp.prod([sp.sin(waves * x) for x in coordinates])
    box = (
        pb.Box(*((x, 0, 1) for x in coordinates)) if kind == "cube" else pb.Rectangle(*((x, 0, 1) for x in coordinates))
    )
    operator = -pb.laplacian(u) - waves**2 * (1 + product) * u
    return pb.Problem(sp.Eq(operator, operator.subs(u, exact).doit()), box, [pb.Dirichlet(u, exact)], exact=exact)


def even(cell: Cell, counts: tuple[int, ...]) -> Cell:
    """Return a tree of so many equal cells along each axis."""
    axis = int(np.argmax(counts))
    if counts[axis] == 1:
        return cell
    first = counts[axis] // 2
    halved = cell.halved(axis, float(cell.low[axis] + cell.size[axis] * first / counts[axis]))
    shares = [tuple(own if a == axis else c for a, c in enumerate(counts)) for own in (first, counts[axis] - first)]
    return replace(halved, halves=tuple(even(half, own) for half, own in zip(halved.halves, shares, strict=True)))


def product_rate(device: str | None, clock: Clock = time.perf_counter) -> float:
    """Return the operations a second of a matrix product, best of three, on the device or on the threads at hand."""
    size, seconds = PRODUCT[device not in (None, "cpu")], []
    if device is None:
        A: Any = np.random.default_rng(0).standard_normal((size, size))
    else:
        import torch

        A = torch.ones((size, size), dtype=torch.float64, device=device)
    for _ in range(3):
        start = clock()
        (A @ A)[0, 0].item()  # waits for a device
        seconds.append(clock() - start)
    return 2 * size**3 / min(seconds)


def rate_of_workers(client: Any) -> float:
    """Return the operations a second of matrix products on all workers at once."""
    return float(sum(client.run(_one_thread).values()))


def _one_thread() -> float:
    with blas_threads(1):
        return product_rate(None)


def leaf_of(solver: TreeSolver, kind: str) -> Leaf:
    """Return the sizes of the system of a cell inside."""
    dimension = KINDS[kind][0]
    branches = solver.branches.of_tree(even(solver.layout.root, (3,) * dimension))
    inner = max((own for own in branches if not own.halves), key=lambda own: own.width)
    assert inner.system is not None
    (count, own), (more, _), (heavy, _) = inner.system.rows.shape
    return Leaf(count, more + heavy, own, inner.width // (2 * dimension), dimension)


def error_of(solver: TreeSolver, fit: Fit, waves: float) -> float:
    """Return the relative error at random points."""
    X = solver.layout.problem.domain.sample(2000)
    found = network_of(solver.layout, fit).evaluate(X, [(0,) * X.shape[1]])[(0,) * X.shape[1]].sum(axis=1)
    known = np.sin(waves * X).prod(axis=1)
    return float(np.linalg.norm(found - known) / np.linalg.norm(known))


@contextmanager
def clients(processes: int | None) -> Iterator[Any]:
    """Yield the client of a local cluster, or None."""
    if processes is None:
        yield None
        return
    from distributed import Client, LocalCluster

    options = {"n_workers": processes, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        yield client


def solved(kind: str, side: int, nodes: Cells, client: Any, clock: Clock) -> tuple[TreeSolver, Fit, float, float]:
    """Solve on an even tree: the solver, the solution, seconds, and bytes that came from workers."""
    dimension, degree = KINDS[kind]
    rows = Rows(Layout(problem_of(kind), draw_reference(dimension, degree, 0, nodes)))
    counting = Counting(client)
    solver = TreeSolver(rows) if client is None else ClusterSolver(rows, client=counting)
    root = even(solver.layout.root, (side,) * dimension)
    start = clock()
    fit = solver.solve(root)
    return solver, fit, clock() - start, counting.moved


def runs(options: argparse.Namespace, client: Any) -> Iterator[dict[str, Any]]:
    """Solve on one tree after another, while the next one is expected to fit into the seconds."""
    alone = options.device is None and client is None and options.threads == 1
    clock = time.process_time if alone else time.perf_counter
    crew = f"{options.processes} Dask workers" if client is not None else f"{options.threads} cores"
    on = options.name or options.device or crew
    for kind in options.kinds:
        dimension, degree = KINDS[kind]
        nodes = replace(SINES, device=options.device)
        rate = product_rate(options.device, clock) if client is None else rate_of_workers(client)
        leaf = leaf_of(TreeSolver(Rows(Layout(problem_of(kind), draw_reference(dimension, degree, 0)))), kind)
        # Trees that are too small for a cluster are solved here, and tell nothing of it.
        sides = [side for side in SIDES[kind] if side**dimension >= 16 * (options.processes or 0)]
        solved(kind, sides[0], nodes, client, clock)  # once without a clock, as workers and devices have much to load
        begun, before = time.perf_counter(), None
        for side in sides:
            counts = total(leaf, side, 4 * (options.processes or 1))
            if before and time.perf_counter() - begun + before[0] * counts.flops / before[1] > options.seconds:
                break
            solver = fit = None  # their memory is free for the next tree
            try:
                solver, fit, seconds, moved = solved(kind, side, nodes, client, clock)
            except SolveError as error:
                print(f"{kind}, {side} cells along each side: {error}")
                break
            before = seconds, counts.flops
            yield {
                "on": on,
                "kind": kind,
                "side": side,
                "cells": len(fit.parts),
                "weights": fit.unknowns,
                "seconds": seconds,
                "gib": solver.memory / 2**30,
                "moved_mib": moved / 2**20,
                "gflop": counts.flops / 1e9,
                "share": counts.flops / seconds / rate,
                "product": rate / 1e9,
                "error": error_of(solver, fit, WAVES[kind]),
                "equations": leaf.equations,
                "rows": leaf.rows,
                "own": leaf.own,
                "face": leaf.face,
            }


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Plot seconds over weights, a line for each machine and kind."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 6), constrained_layout=True)
    machines = list(dict.fromkeys(row["on"] for row in rows))
    for key in dict.fromkeys((row["on"], row["kind"]) for row in rows):
        mine = [row for row in rows if (row["on"], row["kind"]) == key]
        weights, seconds = ([float(row[name]) for row in mine] for name in ("weights", "seconds"))
        power = f", power {exponent(weights, seconds):.2f}" if len(mine) > 2 else ""
        style, color = STYLES[key[1]], f"C{machines.index(key[0])}"
        axes.loglog(weights, seconds, marker="o", ms=4, ls=style, color=color, label=f"{key[1]}, {key[0]}{power}")
    axes.set_xlabel("weights")
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Run, or draw the kept runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=None, help="a torch device, such as cuda")
    parser.add_argument("--processes", type=int, default=None, help="workers of a local Dask cluster")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="cores to use, without processes")
    parser.add_argument("--seconds", type=float, default=120.0, help="for each kind")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--name", default=None, help="of the machine, in tables and plots")
    parser.add_argument("--csv", type=Path, default=Path("out/scale.csv"))
    parser.add_argument("--draw", type=Path, default=None, metavar="PNG", help="plot the kept runs instead")
    options = parser.parse_args()
    if options.draw is not None:
        from benchmarks.tables import results

        draw(results("scale").rows, options.draw)
        return
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    if not options.processes and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    limit = nullcontext() if options.processes else blas_threads(options.threads)
    with clients(options.processes) as client, limit:
        for row in runs(options, client):
            new = not options.csv.exists()
            with options.csv.open("a", newline="") as file:
                writer = csv.DictWriter(file, list(row))
                if new:
                    writer.writeheader()
                writer.writerow(row)
            print(
                f"{row['kind']:11s} {row['cells']:6d} cells {row['weights']:8d} weights {row['seconds']:8.2f} s "
                f"{row['gib']:6.2f} GiB {row['share']:6.1%} of the product, error {row['error']:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
