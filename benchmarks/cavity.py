"""Lid-driven cavities solved with default arguments: centre-line velocities against two references, over seeds.

    python -m benchmarks.cavity [--reynolds 100 400] [--seeds 3] [--budget 10] [--regularised]

`elements` are values by `benchmarks/cavity_reference.py`. Those of order 5 on another mesh differ from them by 6e-5 for
Re 100 and by 5e-4 for Re 400 next to the lid, by 1e-5 and 8e-5 below y = 0.8; the smallest u for Re 100 agrees with
Botella & Peyret (1998) to 1e-7. `Ghia et al.` is the tabulated u of Ghia, Ghia & Shin (1982), which is off by 5e-3
itself; that difference is printed first.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from rich.console import Console
from rich.table import Table

import pibls as pb


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(), dtype=np.float64)


HEIGHTS = _numbers(
    "0.0547 0.0625 0.0703 0.1016 0.1719 0.2813 0.4531 0.5 0.6172 0.7344 0.8516 0.9531 0.9609 0.9688 0.9766"
)
GHIA = {
    100: _numbers(
        "-0.03717 -0.04192 -0.04775 -0.06434 -0.10150 -0.15662 -0.21090 -0.20581"
        " -0.13641 0.00332 0.23151 0.68717 0.73722 0.78871 0.84123"
    ),
    400: _numbers(
        "-0.08186 -0.09266 -0.10338 -0.14612 -0.24299 -0.32726 -0.17119 -0.11477"
        " 0.02135 0.16256 0.29093 0.55892 0.61756 0.68439 0.75837"
    ),
}
ELEMENTS_U = {
    100: _numbers(
        "-0.0372276 -0.0419750 -0.0466198 -0.0644314 -0.1017420 -0.1576734 -0.2139773 -0.2091492"
        " -0.1387976 0.0041877 0.2365518 0.6910368 0.7404710 0.7919308 0.8437204"
    ),
    400: _numbers(
        "-0.0818162 -0.0925926 -0.1032947 -0.1461890 -0.2437744 -0.3287213 -0.1714847 -0.1150546"
        " 0.0210322 0.1625603 0.2920309 0.5616851 0.6198670 0.6869765 0.7604086"
    ),
}
ELEMENTS_V = {
    100: _numbers(
        "0.0853971 0.0948077 0.1035854 0.1328896 0.1702630 0.1758830 0.0973433 0.0575366"
        " -0.0741573 -0.2142391 -0.2396470 -0.0933897 -0.0779769 -0.0621914 -0.0465286"
    ),
    400: _numbers(
        "0.1697993 0.1851281 0.1987875 0.2404954 0.2914209 0.2889934 0.1109197 0.0520570"
        " -0.0912736 -0.2538404 -0.4509649 -0.1982199 -0.1615393 -0.1250607 -0.0904331"
    ),
}
# The lid 4x(1 − x) at Re 100, order 6 and 9 levels.
STRETCHING_U = _numbers(
    "-0.0332551 -0.0374645 -0.0415732 -0.0572210 -0.0892981 -0.1355410 -0.1817238 -0.1787528"
    " -0.1245131 -0.0070881 0.1867844 0.6194129 0.6748336 0.7346705 0.7971740"
)


def furthest(values: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest difference."""
    return float(np.abs(values - reference).max())


def main() -> None:
    """Solve and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reynolds", type=int, nargs="*", default=[100, 400], choices=[100, 400])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--regularised", action="store_true", help="the lid 4x(1 − x) at Re 100 too")
    options = parser.parse_args()
    console = Console(width=120)
    for reynolds in options.reynolds:
        own = furthest(GHIA[reynolds], ELEMENTS_U[reynolds])
        console.print(f"Re {reynolds}: u of Ghia et al. differs from finite elements by {own:.1e}")
    table = Table(title=f"Lid-driven cavity, default tolerance, budget {options.budget:g} s")
    for heading in (
        "Re",
        "seed",
        "status",
        "estimate",
        "u: elements",
        "v: elements",
        "u: Ghia et al.",
        "nodes",
        "work",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    vertical, horizontal = np.c_[0.5 + 0 * HEIGHTS, HEIGHTS], np.c_[HEIGHTS, 0.5 + 0 * HEIGHTS]
    cases = [(reynolds, False) for reynolds in options.reynolds] + [(100, True)] * options.regularised
    for reynolds, stretching in cases:
        build = pb.problems.regularised_cavity if stretching else pb.problems.cavity
        for seed in range(options.seeds):
            begun = time.process_time()
            solution = pb.solve(build(reynolds), seed=seed, budget=options.budget)
            work = time.process_time() - begun
            u, v = solution(vertical)["u"], solution(horizontal)["v"]
            elements = STRETCHING_U if stretching else ELEMENTS_U[reynolds]
            rest = ["", ""] if stretching else [furthest(v, ELEMENTS_V[reynolds]), furthest(u, GHIA[reynolds])]
            cells = [f"{cell:.1e}" if isinstance(cell, float) else cell for cell in (furthest(u, elements), *rest)]
            facts = [solution.status, f"{solution.error_estimate or np.inf:.1e}", *cells]
            label = f"{reynolds}, 4x(1−x)" if stretching else str(reynolds)
            table.add_row(label, str(seed), *facts, str(solution.diagnostics.nodes), f"{work:.1f}")
    console.print(table)


if __name__ == "__main__":
    main()
