"""How the time of a fit grows with the number of points and with the width of the network."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pibls import problems
from pibls.geometry import Points
from pibls.methods import PIBLS, PIELM, BayesianPIELM
from pibls.paper.pinn import PINN
from pibls.tuning.automatic import Method

AXES = ("points", "width")
_REPEATS, _LONG = 3, 1.0  # seconds; what takes longer is not repeated
# A doubling of sizes near the paper's, and one where arithmetic decides; the other axis stays at the size given last.
_LINEAR_SIZES: Mapping[str, tuple[Sequence[int], int]] = {
    "points": ((1000, 2000, 16_000, 32_000), 400),
    "width": ((100, 200, 1600, 3200), 4000),
}
_TRAINED_SIZES: Mapping[str, tuple[Sequence[int], int]] = {
    "points": ((1000, 2000, 16_000, 32_000), 50),
    "width": ((50, 100, 800, 1600), 1000),
}
# A training is so many equal iterations; a few tell its growth.
_ITERATIONS = 5


def _broad(width: int) -> Method:
    return PIBLS(feature_groups=5, feature_nodes=width // 10, enhancement_nodes=width - 5 * (width // 10))


_MAKE: Mapping[str, Callable[[int], Method]] = {
    "PI-BLS": _broad,
    "PI-ELM": lambda width: PIELM(nodes=width),
    "BPI-ELM": lambda width: BayesianPIELM(nodes=width, iterations=10),
    "PINN": lambda width: PINN(width=width, adam_iterations=_ITERATIONS, lbfgs_iterations=0),
}


def growth_cell(method: str, axis: str) -> dict[str, Any]:
    """Return the entries of a cell: sizes, the shortest of a few times at each, and the exponent of their growth.

    Times are those that the processor worked: what else it does meanwhile does not count.
    """
    sizes, fixed = (_TRAINED_SIZES if method == "PINN" else _LINEAR_SIZES)[axis]
    problem = problems.poisson_square()
    seconds = []
    for size in sizes:
        count, width = (size, fixed) if axis == "points" else (fixed, size)
        points = Points.sample(problem, count, method="kronecker")
        seconds.append(_shortest(_MAKE[method](width), problem, points))
    return {
        "axis": axis,
        "exponent": exponent(sizes, seconds),
        "seconds": sum(seconds),
        "extra": {"axis": axis, "sizes": list(sizes), "seconds": seconds, "fixed": fixed},
    }


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the power of the size that times grow with: the slope of a line through their logarithms.

    >>> round(exponent([1, 2, 4], [3.0, 12.0, 48.0]), 12)
    2.0
    """
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _shortest(method: Method, problem: Any, points: Points) -> float:
    times: list[float] = []
    while len(times) < _REPEATS and sum(times) < _LONG:
        start = time.process_time()
        method.fit(problem, points, seed=0)
        times.append(time.process_time() - start)
    return min(times)
