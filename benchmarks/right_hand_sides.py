"""Many right-hand sides of one problem: what a hundred of them cost, in solves.

    python -m benchmarks.right_hand_sides [--count 100]

−Δu = 1 with u = 0 on the boundary of a square, an annulus and an L-shape is prepared to 1e-6, and then solved for the
sources sin(x + k/10) y, k = 0, 1, …, one by one and all at once. Seconds are those of the processor, on one thread; the
preparation counts. A solve is ``pb.solve`` of the first problem, the median of three. ``anew`` counts the sources for
which the prepared cells were too coarse.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median

import sympy as sp

import pibls as pb
from pibls.geometry import Domain
from pibls.runtime import blas_threads
from pibls.tuning import prepared as preparing

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)


def domains() -> dict[str, Domain]:
    """Return the domains, new ones at every call."""
    return {
        "square": pb.Rectangle((x, 0, 1), (y, 0, 1)),
        "annulus": pb.Disk((x, y), (0, 0), 1) - pb.Disk((x, y), (0, 0), 0.4),
        "L-shape": pb.Polygon((x, y), [(-1, -1), (0, -1), (0, 0), (1, 0), (1, 1), (-1, 1)]),
    }


def stated(name: str) -> pb.Problem:
    """Return the problem that is prepared, as a new object."""
    return pb.Problem(sp.Eq(-pb.laplacian(u), 1), domains()[name], [pb.Dirichlet(u, 0)])


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of something that is done once."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def compared(name: str, sources: Sequence[sp.Expr]) -> tuple[float, float, float, int]:
    """Return the seconds of a solve, the solves that the sources cost one by one and at once, and how many anew."""
    pb.solve(stated(name), progress=False)
    solve = median(seconds(lambda: pb.solve(stated(name), progress=False)) for _ in range(3))
    anew, known = [], preparing.solve

    def counted(*args: object, **options: object) -> object:
        anew.append(1)
        return known(*args, **options)  # type: ignore[arg-type]

    preparing.solve = counted  # type: ignore[assignment]
    try:
        one = seconds(lambda: [prepared.solve(own) for prepared in [pb.prepare(stated(name))] for own in sources])
        count = len(anew)
        many = seconds(lambda: pb.prepare(stated(name)).solve_many(sources))
    finally:
        preparing.solve = known
    return solve, one / solve, many / solve, count


def main() -> None:
    """Print a line for every domain."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100, help="number of right-hand sides")
    parser.add_argument("--only", nargs="+", default=list(domains()), help="names of domains")
    given = parser.parse_args()
    sources = [sp.sin(x + sp.Rational(k, 10)) * y for k in range(given.count)]
    print(f"{'domain':8} {'a solve':>9} {'one by one':>14} {'at once':>8} {'anew':>5}")
    with blas_threads(most=1):
        for name in given.only:
            solve, one, many, anew = compared(name, sources)
            print(f"{name:8} {solve:7.2f} s {one:7.2f} solves {many:8.2f} {anew:5d}")


if __name__ == "__main__":
    main()
