"""Time and memory of assembly and solve, against the machine's own matrix product and LAPACK QR in the same run.

    python -m benchmarks.assembly [--quick] [--sizes 10000x2000 ...] [--csv out/assembly.csv]

The system is a 2-D Laplacian on the unit square with Dirichlet rows, half the nodes enhancement nodes. For every size
the machine's own figures are taken next to ours, so that their ratio does not depend on how busy the machine is.
Memory is the growth of the process's peak over what it held before, as a multiple of the matrix.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.linalg import lapack

from pibls import Points, problems
from pibls.features import draw_network
from pibls.runtime import available_cores, blas_threads
from pibls.solvers import LeastSquares
from pibls.system import assemble

REPEATS = 3
PRODUCTS = 4  # of N × M/2 by M/2 × M/2 that a Laplacian of enhancement nodes needs: y, y_x, y_y and Δy


@dataclass(frozen=True)
class Row:
    """One size, measured."""

    rows: int
    columns: int
    product: float
    qr: float
    assembly: float
    solve: float
    memory: float

    @property
    def ratio(self) -> float:
        """Our time over that of the bare products and one QR."""
        return (self.assembly + self.solve) / (self.product + self.qr)


class PeakMemory:
    """Largest resident memory of the process while the block runs, sampled from the kernel."""

    def __enter__(self) -> PeakMemory:
        self.start = self.peak = resident()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.002):
            self.peak = max(self.peak, resident())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.growth = self.peak - self.start


def resident() -> int:
    """Return the resident memory of the process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure(rows: int, columns: int) -> Row:
    """Measure one size, machine and library in turn, and keep the medians."""
    problem = problems.poisson()
    points = Points.sample(problem, interior=rows - rows // 10, boundary=rows // 10)
    half = columns // 2
    rng = np.random.default_rng(0)
    network = draw_network(rng, problem.domain.bounds, [("tanh", half, 2.0)], [("tanh", half, 1.0)])
    left, right = rng.standard_normal((rows, half)), rng.standard_normal((half, half))
    times: dict[str, list[float]] = {name: [] for name in ("product", "qr", "assembly", "solve")}
    memory = 0.0
    with blas_threads():
        for _ in range(REPEATS):
            times["product"].append(PRODUCTS * timed(lambda: left @ right))
            matrix = np.asfortranarray(rng.standard_normal((rows, columns)))
            times["qr"].append(timed(lambda m=matrix: lapack.dgeqrf(m, lwork=64 * columns, overwrite_a=True)))
            del matrix
            with PeakMemory() as peak:
                start = time.perf_counter()
                system = assemble(problem, points, network)
                times["assembly"].append(time.perf_counter() - start)
                start = time.perf_counter()
                LeastSquares().factorise(system.matrix, overwrite=True).solve(system.rhs)
                times["solve"].append(time.perf_counter() - start)
            memory = max(memory, peak.growth / (8 * rows * columns))
            del system
    medians = {name: statistics.median(values) for name, values in times.items()}
    return Row(rows, columns, **medians, memory=memory)


def growth(results: list[Row]) -> float:
    """Return the exponent of our time in the number of rows, over the sizes of the most columns."""
    widest = max(row.columns for row in results)
    points = [(np.log(r.rows), np.log(r.assembly + r.solve)) for r in results if r.columns == widest]
    return float(np.polyfit(*zip(*points, strict=True), 1)[0])


def main() -> None:
    """Measure all sizes and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    sizes = [(2500, 500), (5000, 500), (10000, 500), (5000, 1000), (10000, 1000)]
    parser.add_argument("--sizes", nargs="+", help="rows x columns, such as 10000x2000, instead of the usual ones")
    parser.add_argument("--csv", type=Path, default=None)
    options = parser.parse_args()
    if options.sizes:
        sizes = [(int(rows), int(columns)) for rows, columns in (size.split("x") for size in options.sizes)]
    elif not options.quick:
        sizes += [(5000, 2000), (10000, 2000), (20000, 2000), (40000, 2000)]
    table = Table(title=f"Assembly and solve, seconds, {available_cores()} cores, float64 (median of {REPEATS})")
    for heading in ("N", "M", "products", "LAPACK QR", "assembly", "solve", "ratio", "memory / matrix"):
        table.add_column(heading, justify="right")
    results = []
    for rows, columns in sizes:
        result = measure(rows, columns)
        results.append(result)
        times = (result.product, result.qr, result.assembly, result.solve)
        cells = [f"{rows}", f"{columns}", *(f"{value:.2f}" for value in times)]
        table.add_row(*cells, f"{result.ratio:.2f}", f"{result.memory:.2f}")
    console = Console()
    console.print(table)
    console.print("ratio: (assembly + solve) / (matrix products + QR).")
    if len(results) > 1:
        console.print(f"time grows as N^{growth(results):.2f} at the largest M.")
    if options.csv is not None:
        write(options.csv, results)


def write(path: Path, results: list[Row]) -> None:
    """Write every size, with its ratio."""
    rows = [{**asdict(result), "ratio": result.ratio} for result in results]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
