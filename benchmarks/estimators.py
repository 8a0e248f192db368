"""Which error estimate can be trusted: six constructions against the true error, over the zoo, seeds and widths.

    python -m benchmarks.estimators [--seeds 3] [--quick]

Every construction uses only what a user has: a network A of some width, its held-out residual, and one more solve.

- twin            distance to B, as wide, with other nodes on other points, over √2
- twin, shared    the same distance, divided between A and B in proportion to their held-out residuals
- wider           distance to an independent network 1.5 times as wide
- richer          distance to A with half as many nodes again, on other points (defect correction)
- jack-knife      distance to the nodes of A on other points, over √2
- residual        held-out residual of A over the smallest singular value of a pilot's operator (a stability constant)

The ratio of true error to estimate is 1 for a perfect estimate, above 1 where it promises too much. Cases at the
level of round-off (true error below 1e-13) or where nothing is solved yet (above 0.5) are left out of the table.
Writes ``out/estimators.csv`` and ``out/estimators.png``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pibls import problems
from pibls.runtime import blas_threads
from pibls.system import assemble
from pibls.tuning.laboratory import Block, Laboratory
from pibls.tuning.pilots import Pilots
from pibls.tuning.posedness import find_ambiguity
from pibls.tuning.scan import choose_scale

NAMES = ("twin", "twin, shared", "wider", "richer", "richer, same points", "extrapolated", "jack-knife", "residual")
WIDTHS = (1, 2, 4)
ROUND_OFF, UNSOLVED = 1e-13, 0.5
PILOT = {1: 40, 2: 120, 3: 200}


@dataclass(frozen=True)
class Case:
    """One network: its true error and what each construction says of it."""

    problem: str
    seed: int
    nodes: int
    error: float
    estimates: dict[str, float]


def stability(lab: Laboratory, nodes: int, scale: tuple[float, ...]) -> tuple[float, list[float]]:
    """Return the smallest visibility of a function of a pilot, and the row scales it refers to."""
    network = lab.network([Block(nodes, scale)])
    points = lab.points(nodes)
    system = assemble(lab.problem, points, network)
    return find_ambiguity(lab.problem, points, network).visibility, [block.scale for block in system.blocks]


def cases(name: str, seed: int, widths: tuple[int, ...] = WIDTHS) -> Iterator[Case]:
    """Fit networks of several widths to one problem, with every construction's extra solve."""
    problem = problems.catalogue()[name]()
    lab, other = Laboratory(problem, seed), Laboratory(problem, seed, twin=1)
    pilot = PILOT.get(lab.axes, 300)
    pilots = Pilots(lab, pilot)
    scale = choose_scale(pilots.score, lab.axes, 0.0, time_axis=lab.time_axis).scale
    visibility, row_scales = stability(lab, pilot, scale)
    for width in widths:
        nodes = width * pilot
        first, more = Block(nodes, scale), Block(nodes // 2, scale)
        a = lab.fit([first], lab.points(nodes))
        b = other.fit([first], other.points(nodes))
        wide = other.fit([Block(3 * nodes // 2, scale)], other.points(3 * nodes // 2))
        rich = lab.fit([first, more], other.points(3 * nodes // 2))
        appended = lab.fit([first, more], lab.points(nodes))
        before = lab.fit([Block(2 * nodes // 3, scale)], lab.points(2 * nodes // 3))
        jack = lab.fit([first], other.points(nodes))
        judge = lab.judge(nodes)
        ra, rb = judge(a).total, judge(b).total
        distance = lab.distance(a, b)
        size = float(
            np.sqrt(np.mean(a.evaluate(lab.compare_points, [(problem.field_names[0], (0,) * lab.axes)])[0] ** 2))
        )
        residual = _scaled_residual(a, judge, row_scales)
        estimates = {
            "twin": distance / np.sqrt(2),
            "twin, shared": distance * ra / np.hypot(ra, rb),
            "wider": lab.distance(a, wide),
            "richer": lab.distance(a, rich),
            "richer, same points": lab.distance(a, appended),
            "extrapolated": lab.distance(before, a) * ra / judge(before).total,
            "jack-knife": lab.distance(a, jack) / np.sqrt(2),
            "residual": residual / (visibility * size),
        }
        yield Case(name, seed, nodes, a.true_error(), {k: float(v) for k, v in estimates.items()})


def _scaled_residual(solution: Any, judge: Any, scales: list[float]) -> float:
    """Root mean square over all rows of the held-out residual, in the row scales of the pilot."""
    total, rows = 0.0, 0
    for (_, statement), factor in zip(judge.judged, scales, strict=False):
        values = factor * judge.residual(solution.evaluate, statement)
        total, rows = total + float(values @ values), rows + len(values)
    return float(np.sqrt(total / rows))


def share_within(ratios: np.ndarray, low: float, high: float) -> float:
    return float(np.mean((ratios >= low) & (ratios <= high)))


def summary(found: list[Case]) -> Table:
    """Return the table of calibration: how often the true error is within a factor of each estimate."""
    usable = [case for case in found if ROUND_OFF < case.error < UNSOLVED]
    table = Table(title=f"true error / estimate over {len(usable)} networks")
    for heading in ("construction", "median", "within [0.3, 3]", "within [0.1, 10]", "largest", "smallest"):
        table.add_column(heading, justify="left" if heading == "construction" else "right")
    for name in NAMES:
        ratios = np.array([case.error / max(case.estimates[name], 1e-300) for case in usable])
        cells = [
            f"{np.median(ratios):.2f}",
            f"{share_within(ratios, 0.3, 3):.1%}",
            f"{share_within(ratios, 0.1, 10):.1%}",
        ]
        table.add_row(name, *cells, f"{ratios.max():.1f}", f"{ratios.min():.1e}")
    return table


def draw(found: list[Case], path: Path) -> None:
    """Plot true error over estimate, a panel per construction."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, 4, figsize=(13, 6.5), sharex=True, sharey=True, constrained_layout=True)
    line = np.array([1e-16, 1e1])
    for panel, name in zip(panels.flat, NAMES, strict=True):
        panel.fill_between(line, line / 3, line * 3, color="0.9")
        panel.plot(line, line, color="0.6", lw=1)
        panel.loglog([c.estimates[name] for c in found], [c.error for c in found], ".", ms=4, color="tab:blue")
        panel.set(title=name, xlim=line, ylim=line)
    figure.supxlabel("estimated relative error")
    figure.supylabel("true relative error")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run the study, writing rows as they are found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="ten problems, one seed, two widths")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    console = Console(width=120)
    names = [n for n, build in problems.catalogue(linear=True).items() if len(build().domain.coordinates) <= 3]
    found: list[Case] = []
    with (options.out / "estimators.csv").open("w", newline="") as file, blas_threads(most=1):
        writer = csv.writer(file)
        writer.writerow(["problem", "seed", "nodes", "true error", *NAMES])
        for name in names[::4] if options.quick else names:
            for seed in range(1 if options.quick else options.seeds):
                for case in cases(name, seed, WIDTHS[:2] if options.quick else WIDTHS):
                    found.append(case)
                    writer.writerow([case.problem, case.seed, case.nodes, case.error, *case.estimates.values()])
                    file.flush()
            console.print(f"{name}: {len(found)} networks so far")
    console.print(summary(found))
    draw(found, options.out / "estimators.png")


if __name__ == "__main__":
    main()
