"""What the PINN half of the full study costs: a model of a GPU, and how it compares with trainings of a few steps.

    python -m benchmarks.pinn_cost [--measure] [--problems advection ...] [--sizes table]

The model adds, for every step of every batch, the products of layers (floating operations) and what is read and written
(bytes), and takes no step to be shorter than its kernels take to start. With --measure every batch is trained for a few
steps on the device of this machine, and the time of the whole is extrapolated from that.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from pibls.features.taylor import lower_set
from pibls.methods import PINN
from pibls.methods.pinn import BUSY, PinnFit, batches, fit_together
from pibls.paper.grids import grid, scales
from pibls.paper.profiles import PROFILES
from pibls.paper.protocol import FOLDS, Setting, training_device
from pibls.paper.published import PAPER_NAMES, published
from pibls.tuning.folds import split

FLOPS, BANDWIDTH, START = 2e13, 3.3e12, 1e-3  # of an H200 in double precision: what small products reach; seconds
PASSES = 45  # over the derivatives of all nodes, there and back
COPIES, MOMENTS = 45, 20  # arrays of weights that L-BFGS handles beside its memory, and that Adam does
STEPS = 60


def searched(name: str, n: int) -> list[PinnFit]:
    """Return all trainings of the search for one number of points, at one scale."""
    space = grid(name, "PINN")
    scale = scales(Setting(name, n, 0).problem, space.space_scales, space.time_scales)[0]
    smooth = [a for a in space.space["activation"] if a != "relu" or name == "advection"]
    fits = []
    for seed in range(PROFILES["full"].seeds["PINN"]):
        setting = Setting(name, n, seed)
        folds = split(setting.problem, setting.points, FOLDS, seed)
        for method in space.methods(dict.fromkeys(smooth, scale)):
            assert isinstance(method, PINN)
            fits += [PinnFit(method, setting.problem, fold.train, seed) for fold in folds]
    return fits


def final(name: str, sizes: Sequence[int], width: int = 103) -> list[PinnFit]:
    """Return the final trainings of some numbers of points: one per seed, of middling width."""
    method = PINN(width, scale=None, lambda_b=1.0, **grid(name, "PINN").final)
    settings = [Setting(name, n, seed) for n in sizes for seed in range(PROFILES["full"].seeds["PINN"])]
    return [PinnFit(method, s.problem, s.points, s.seed) for s in settings]


def modelled(batch: Sequence[PinnFit]) -> tuple[float, float]:
    """Return seconds and floating operations of training a batch."""
    first = max(batch, key=lambda fit: fit.method.width)
    method, problem = first.method, first.problem
    streams = {s.source: len(lower_set([t.multi_index for t in s.form.terms])) for s in problem.statements}
    rows = max(sum(c * len(fit.points.sets[source]) for source, c in streams.items()) for fit in batch)
    weights = len(batch) * method.parameters(len(problem.domain.coordinates))
    flops = 6.0 * len(batch) * rows * method.width**2 * (method.layers - 1)
    moved = 8.0 * len(batch) * rows * method.width * PASSES
    shared = flops / FLOPS + moved / BANDWIDTH
    adam = max(START, shared + 8.0 * weights * MOMENTS / BANDWIDTH)
    steps = method.adam_iterations, method.lbfgs_iterations
    history = min(max(10, steps[1] // 25), 50)
    lbfgs = max(START, shared + 8.0 * weights * (4 * history + COPIES) / BANDWIDTH)
    return steps[0] * adam + steps[1] * lbfgs, sum(steps) * flops


def measured(batch: Sequence[PinnFit]) -> float:
    """Return the seconds of training a batch, from a few steps of either kind."""
    full = batch[0].method

    def seconds(adam: int, lbfgs: int) -> float:
        short = {"adam_iterations": adam, "lbfgs_iterations": lbfgs}
        start = time.perf_counter()
        fit_together([replace(fit, method=replace(fit.method, **short)) for fit in batch], training_device())
        return time.perf_counter() - start

    base = seconds(STEPS, STEPS)
    adam, lbfgs = seconds(2 * STEPS, STEPS) - base, seconds(STEPS, 2 * STEPS) - base
    return base + (full.adam_iterations - STEPS) * adam / STEPS + (full.lbfgs_iterations - STEPS) * lbfgs / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="train a few steps of one batch in three")
    parser.add_argument("--problems", nargs="+", choices=tuple(PAPER_NAMES), default=tuple(PAPER_NAMES))
    parser.add_argument("--sizes", choices=("table", "all"), default="all")
    options = parser.parse_args()
    console = Console()
    total = 0.0
    for name in options.problems:
        table = published().table_size(name)
        sizes = [table] if options.sizes == "table" else published().sizes(name)
        others = [n for n in sizes if n != table]
        jobs = [(f"search, {n} points", searched(name, n)) for n in sizes]
        jobs += [(f"final, {some}", final(name, some)) for some in ([table], others) if some]
        for title, fits in jobs:
            parts = [[fits[number] for number in batch] for batch in batches(fits, BUSY, 2**36)]
            costs = [modelled(part) for part in parts]
            seconds, flops = (sum(values) for values in zip(*costs, strict=True))
            total += seconds
            line = f"{name}, {title}: {len(fits)} networks in {len(parts)} batches, {flops:.1e} flop, {seconds:.0f} s"
            if options.measure:
                chosen = range(0, len(parts), 3)
                ratio = sum(measured(parts[i]) for i in chosen) / sum(costs[i][0] for i in chosen)
                line += f"; measured {ratio:.2f} times that"
            console.print(line)
    console.print(f"in all {total / 60:.1f} minutes by the model")


if __name__ == "__main__":
    main()
