"""PINN at the length that the full study trains it, beside PI-BLS on the same points: errors and times in one run.

    python -m benchmarks.pinn [--seeds 3] [--problems advection poisson_star diffusion_reaction] [--csv FILE]

The settings of PI-BLS are those of the paper's search. Of a PINN only the scale of its first weights is chosen, by
cross-validation with short trainings (width 23, tanh, unit penalties); it is then trained as long as in the study.
Errors are relative root mean squares at the study's test points; every fit uses one thread.
"""

from __future__ import annotations

import argparse
import csv
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from pibls.runtime import blas_threads
from pibls.paper.grids import FINAL_TRAINING, grid
from pibls.paper.protocol import Fitted, Setting, fit_timed, select
from pibls.paper.published import published

SETTINGS = {"width": [23], "activation": ["tanh"]}
SHORT = {"adam_iterations": 50, "lbfgs_iterations": 100}
PROBLEMS = ("advection", "poisson_star", "diffusion_reaction")
HEADS = ("problem", "points", "seed", "pinn_error", "pinn_seconds", "pibls_error", "pibls_seconds", "ratio")


def fitted(name: str, method: str, setting: Setting, **changes: Any) -> Fitted:
    """Search, and fit the selected settings to all points; once before where that is cheap, to load what is loaded."""
    space = grid(name, method)
    if method == "PINN":
        one = {key: SETTINGS.get(key, [1.0]) for key in space.space}
        space = replace(space, space=one, fixed={**space.fixed, **SHORT})
    chosen: Any = select(space, setting, ("exact",))["exact"].method
    return fit_timed(replace(chosen, **changes), setting, warm=method != "PINN")


def compared(name: str, seed: int) -> dict[str, Any]:
    """Return the row of one problem and seed."""
    points = published().table_size(name)
    setting = Setting(name, points, seed)
    broad = fitted(name, "PI-BLS", setting)
    trained = fitted(name, "PINN", setting, **FINAL_TRAINING)
    errors = [fit.test["relative_rmse"] for fit in (trained, broad)]
    values = (name, points, seed, errors[0], trained.seconds, errors[1], broad.seconds, trained.seconds / broad.seconds)
    return dict(zip(HEADS, values, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", nargs="+", choices=(*PROBLEMS, "poisson_square"), default=PROBLEMS)
    parser.add_argument("--csv", type=Path, help="also write medians and extremes, as they are found")
    options = parser.parse_args()
    import torch  # noqa: F401  # before threads are capped, which reaches only libraries that are there

    console = Console()
    found: list[dict[str, Any]] = []
    with blas_threads(1):
        for name in options.problems:
            start = time.perf_counter()
            rows = []
            for seed in range(options.seeds):
                rows.append(compared(name, seed))
                console.print(" ".join(f"{k} {v:.2e}" if isinstance(v, float) else str(v) for k, v in rows[-1].items()))
            found.append(summary(rows))
            console.print(f"  {found[-1]}\n  {time.perf_counter() - start:.0f} s")
            if options.csv:
                write(options.csv, found)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians and worst of the seeds of one problem."""
    columns = {key: [row[key] for row in rows] for key in HEADS}
    middle = {key: float(np.median(columns[key])) for key in ("pinn_error", "pinn_seconds", "pibls_error")}
    worst = {f"{key}_worst": max(columns[key]) for key in ("pinn_error", "pibls_error")}
    ratios = {"ratio_least": min(columns["ratio"]), "ratio_most": max(columns["ratio"])}
    return {"problem": rows[0]["problem"], "points": rows[0]["points"], **middle, **worst, **ratios}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write all rows so far."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
