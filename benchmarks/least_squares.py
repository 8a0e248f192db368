"""Least squares with a million rows and ten thousand columns, which are made block by block.

    python -m benchmarks.least_squares --device cuda                 10⁶ rows × 10⁴ columns, never all in memory
    python -m benchmarks.least_squares --device cuda --keep          the same with all blocks kept on the device
    python -m benchmarks.least_squares --rows 20000 --columns 500    a small one on NumPy

The rows are those of −Δu = f in five coordinates for random sines, with values on the boundary below. Printed are the
seconds of factorisation and solution, the passes over all rows, and the distance to the weights and to the fit that
Householder QR gives, for a right-hand side that is met and for one that is not. With more rows than ``--compared`` QR
sees the first of them alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pibls.features import BroadNetwork, draw_network
from pibls.methods.fit import on_device
from pibls.runtime import blas_threads
from pibls.solvers import LeastSquares, RowBlocks, Sketched

AXES = 5
SCALE = 3.0


def maker(network: BroadNetwork) -> Callable[[slice], Any]:
    """Return a function that makes rows: every fifth is a value on the boundary, the others are equations."""
    laplacian = {tuple(2 * int(i == axis) for i in range(AXES)): -1.0 / (AXES * SCALE**2) for axis in range(AXES)}

    def make(own: slice) -> Any:
        X = np.random.default_rng(own.start).uniform(-1.0, 1.0, (own.stop - own.start, AXES))
        edge = np.arange(own.start, own.stop) % 5 == 0
        X[edge, 0] = np.sign(X[edge, 0])
        inside = np.where(edge, 0.0, 1.0)
        form: dict[Any, Any] = {alpha: factor * inside for alpha, factor in laplacian.items()}
        return network.combine(X, [{**form, (0,) * AXES: 1.0 - inside}])[0]

    return make


def timed(work: Callable[[], Any], device: str | None) -> tuple[Any, float]:
    """Return the result of some work and its seconds."""
    begun = time.perf_counter()
    result = work()
    if device is not None and device.startswith("cuda"):
        import torch

        torch.cuda.synchronize()
    return result, time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=10**4)
    parser.add_argument("--device", default=None)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--compared", type=int, default=50_000)
    options = parser.parse_args()
    drawn = draw_network(np.random.default_rng(0), [[-1.0, 1.0]] * AXES, [("sin", options.columns, SCALE)])
    network = on_device(drawn, options.device)
    for rows in dict.fromkeys((min(options.rows, options.compared), options.rows)):
        with blas_threads():
            measured(network, rows, options.device, keep=options.keep, compared=rows <= options.compared)


def measured(network: BroadNetwork, count: int, device: str | None, *, keep: bool, compared: bool) -> None:
    """Print one line for a matrix of so many rows."""
    passes, kept = [0], dict[int, Any]()
    make = maker(network)

    def counted(own: slice) -> Any:
        passes[0] += own.start == 0
        if not keep:
            return make(own)
        if own.start not in kept:
            kept[own.start] = make(own)
        return kept[own.start]

    rows = RowBlocks((count, network.size), counted)
    factor, factorised = timed(lambda: Sketched().factorise_rows(rows), device)
    like = factor._like
    noise = np.random.default_rng(1).standard_normal(count)
    weights = np.random.default_rng(2).standard_normal(network.size)
    place = on_device_array(like)
    met = rows.both(place(weights)[:, None], None)[0][:, 0]
    passes[0] = 0
    (found, left), solved = timed(lambda: factor.weights_and_residual(met + place(noise)), device)
    gradient = rows.both(found[:, None], (met + place(noise))[:, None])[1]
    optimal = float((factor.inner.gathered(gradient) ** 2).sum() ** 0.5) / float((left**2).sum() ** 0.5)
    print(f"{count} × {network.size}: factorised {factorised:.2f} s, solved {solved:.2f} s in {passes[0]} passes, rank")
    print(
        f"  {factor.rank}, condition {factor.condition:.1e}, preconditioned gradient / residual {optimal:.1e}",
        flush=True,
    )
    if compared:
        whole = make_whole(rows)
        for name, rhs in (("met", met), ("with noise", met + place(noise))):
            reference = LeastSquares().factorise(whole).solve(rhs)
            own = factor.solve(rhs)
            fits = [whole @ one for one in (own, reference)]
            apart = float(((fits[0] - fits[1]) ** 2).sum() ** 0.5) / float((fits[1] ** 2).sum() ** 0.5)
            distance = float(((own - reference) ** 2).sum() ** 0.5) / float((reference**2).sum() ** 0.5)
            print(f"  {name}: distance to QR of the fit {apart:.1e}, of the weights {distance:.1e}", flush=True)


def on_device_array(like: Any) -> Callable[[Any], Any]:
    """Return a function that brings arrays to the library and device of another."""
    from pibls.solvers.inputs import to_library

    return lambda array: to_library(array, like)


def make_whole(rows: RowBlocks) -> Any:
    """Return all rows as one matrix."""
    from pibls.solvers.dense import array_namespace

    blocks = [block for _, block in rows.blocks()]
    return array_namespace(blocks[0]).concat(blocks, axis=0)


if __name__ == "__main__":
    main()
