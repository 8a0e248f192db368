"""Plain ``pb.solve`` on every linear problem of the zoo, over seeds and tolerances: errors, estimates, time.

    python -m benchmarks.linear [--seeds 5] [--tol 1e-6 ...] [--problems NAME ...] [--workers 1]

Default arguments everywhere: nothing is told to the solver but the problem, the tolerance and the seed, and all its
choices are part of the time. True errors are relative L2 against the exact solution at 2000 uniformly random points
that no solve has seen. Every run is written to ``out/linear.csv`` as it ends; what is there already is not run again.
At the end comes a table per tolerance, the calibration of the error estimates over all runs, and ``out/linear.png``.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import pibls as pb
from pibls.runtime import blas_threads

FIELDS = ("problem", "tol", "seed", "status", "error", "estimate", "seconds", "nodes", "rows", "scan")
ROUND_OFF = 1e-13
Row = dict[str, Any]


def run(name: str, tol: float, seed: int, threads: int | None = None) -> Row:
    """Solve one problem once."""
    problem = pb.problems.catalogue()[name]()
    with blas_threads(threads):
        start = time.perf_counter()
        solution = pb.solve(problem, tol=tol, seed=seed)
        seconds = time.perf_counter() - start
    facts = solution.diagnostics
    values = (name, tol, seed, solution.status, solution.true_error(), solution.error_estimate, seconds)
    return dict(zip(FIELDS, (*values, facts.nodes, facts.rows, facts.seconds.get("scan", 0.0)), strict=True))


def linear_names() -> list[str]:
    return list(pb.problems.catalogue(linear=True))


def read(path: Path) -> list[Row]:
    """Return the rows of an earlier run."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for row in rows:
        row.update({key: float(row[key]) for key in FIELDS if key not in ("problem", "status")})
        row.update({key: int(row[key]) for key in ("seed", "nodes", "rows")})
    return rows


def fresh_rows(wanted: Iterable[tuple[str, float, int]], workers: int) -> Iterable[Row]:
    """Run what is wanted, here or in worker processes of one thread each."""
    if workers == 1:
        yield from (run(*key) for key in wanted)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, *key, 1) for key in wanted]):
            yield future.result()


def table(rows: list[Row], tol: float) -> Table:
    """Return the errors and times at one tolerance, a line per problem."""
    result = Table(title=f"pb.solve(problem, tol={tol:g}), medians over seeds")
    for heading in ("problem", "true error", "worst", "estimate", "status", "seconds", "nodes", "rows"):
        result.add_column(heading, justify="left" if heading in ("problem", "status") else "right", no_wrap=True)
    for name in sorted({row["problem"] for row in rows}):
        mine = [row for row in rows if row["problem"] == name and row["tol"] == tol]
        if not mine:
            continue
        states = [row["status"] for row in mine]
        status = states[0] if len(set(states)) == 1 else ", ".join(f"{states.count(s)} {s}" for s in sorted({*states}))

        def median(key: str, mine: list[Row] = mine) -> float:
            return float(np.median([row[key] for row in mine]))

        worst = max(row["error"] for row in mine)
        numbers = [f"{median('error'):.1e}", f"{worst:.1e}", f"{median('estimate'):.1e}", status]
        result.add_row(name, *numbers, f"{median('seconds'):.2f}", f"{median('nodes'):.0f}", f"{median('rows'):.0f}")
    return result


def calibration(rows: list[Row]) -> list[str]:
    """Say how often the estimate is right, over all runs above round-off."""
    usable = [row for row in rows if row["error"] > ROUND_OFF and np.isfinite(row["estimate"]) and row["estimate"] > 0]
    if not usable:
        return []
    ratios = np.array([row["error"] / row["estimate"] for row in usable])
    inside = [f"{np.mean((ratios >= 1 / k) & (ratios <= k)):.1%} within a factor of {k}" for k in (3, 10)]
    wrong = [row for row in rows if row["status"] == "converged" and row["error"] > 10 * row["tol"]]
    spread = []
    for key in sorted({(row["problem"], row["tol"]) for row in rows}):
        errors = [r["error"] for r in rows if (r["problem"], r["tol"]) == key and r["status"] == "converged"]
        if len(errors) >= 5 and max(errors) > ROUND_OFF:
            spread.append((max(errors) / float(np.median(errors)), *key))
    lines = [
        f"{len(rows)} runs. True error over estimate in {len(usable)} of them above round-off: {', '.join(inside)}; "
        f"smallest {ratios.min():.2g}, median {np.median(ratios):.2f}, largest {ratios.max():.2g}.",
        f"Converged with a true error above 10 tol: {len(wrong)}.",
        f"Seconds over all runs: median {np.median([row['seconds'] for row in rows]):.2f}, "
        f"largest {max(row['seconds'] for row in rows):.1f}.",
    ]
    if spread:
        worst = sorted(spread, reverse=True)[:3]
        lines.append(
            "Worst over median error of converged runs, largest: "
            + ", ".join(f"{ratio:.0f} ({name}, tol {tol:g})" for ratio, name, tol in worst)
            + f"; above 10 in {sum(s[0] > 10 for s in spread)} of {len(spread)}."
        )
    return lines


def draw(rows: list[Row], path: Path) -> None:
    """Plot true error over estimate, and true error over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), constrained_layout=True)
    line = np.array([1e-16, 1e1])
    left.fill_between(line, line / 3, line * 3, color="0.9", label="within a factor of 3")
    left.plot(line, line, color="0.6", lw=1)
    for status, colour in (("converged", "tab:blue"), ("stalled", "tab:orange"), ("ill-posed", "tab:red")):
        mine = [row for row in rows if row["status"] == status]
        if mine:
            left.loglog([r["estimate"] for r in mine], [r["error"] for r in mine], ".", color=colour, label=status)
            right.loglog([r["seconds"] for r in mine], [r["error"] for r in mine], ".", color=colour, label=status)
    left.set(xlabel="estimated relative error", ylabel="true relative error", xlim=line, ylim=line)
    right.set(xlabel="seconds, all choices included", ylabel="true relative error", ylim=line)
    left.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tol", type=float, nargs="+", default=[1e-6])
    parser.add_argument("--problems", nargs="+", default=None)
    parser.add_argument("--workers", type=int, default=1, help="processes; times are then those of one busy core")
    parser.add_argument("--out", type=Path, default=Path("out/linear.csv"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    names = options.problems or linear_names()
    wanted = [(name, tol, seed) for tol in options.tol for name in names for seed in range(options.seeds)]
    rows = read(options.out)
    done = {(row["problem"], row["tol"], row["seed"]) for row in rows}
    missing = [key for key in wanted if key not in done]
    console = Console(width=130)
    run("advection", 1e-3, 0)  # imports are not timed
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        for number, row in enumerate(fresh_rows(missing, options.workers), start=1):
            rows.append(row)
            writer.writerow(row)
            file.flush()
            console.print(
                f"{number}/{len(missing)} {row['problem']} tol {row['tol']:g} seed {row['seed']}: {row['status']}, "
                f"error {row['error']:.1e}, estimate {row['estimate']:.1e}, {row['seconds']:.2f} s",
                highlight=False,
            )
    chosen = [row for row in rows if (row["problem"], row["tol"], row["seed"]) in set(wanted)]
    for tol in options.tol:
        console.print(table(chosen, tol))
    for line in calibration(chosen):
        console.print(line, highlight=False)
    draw(chosen, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()
