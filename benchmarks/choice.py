"""What the automatic solver chooses, against what it could choose: nodes of other kinds, and other scales.

    python -m benchmarks.choice [--seeds 2] [--quick] [--study mix|scale]

Mix: networks of the same width made of sin, tanh or Gaussian nodes, of halves of two kinds, of two scales, or with a
quarter of enhancement nodes. Each gets the scale with the smallest held-out residual out of the same list, as ``solve``
would choose it, and is judged by its true error relative to that of the default (sin) on the same problem.

Scale: the scale that ``solve`` takes when the first width does not meet the tolerance (pilots, then again at that
width, always by held-out residual) against the best true error over a fine scan at the same width: that scale times
0.35 to 2.8 on all axes and on each axis alone, and fifteen equal scales from 0.5 to 60. The best of some forty errors
at the level of round-off is luck, so that errors below 1e-13 count as 1e-13.

Writes ``out/choice_mix.csv`` and ``out/choice_scale.csv``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from pibls import problems
from pibls.features import BroadNetwork, FeatureGroup, draw_network
from pibls.runtime import blas_threads
from pibls.tuning.choice import Choice
from pibls.tuning.laboratory import Laboratory

SCALES = (0.7, 1.0, 1.5, 2.2, 3.3, 5.0, 7.5, 11.0, 17.0, 25.0, 60.0)
FACTORS = (0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 2.8)
ROUND_OFF = 1e-13
Draw = Callable[[np.random.Generator, Any, int, float], BroadNetwork]


def _groups(*parts: tuple[str, float, float], enhancement: float = 0.0) -> Draw:
    """Return a way to draw a network of parts (activation, share of the nodes, factor of the scale)."""

    def draw(rng: np.random.Generator, bounds: Any, nodes: int, scale: float) -> BroadNetwork:
        top = int(enhancement * nodes)
        features = [(kind, int(share * (nodes - top)), factor * scale) for kind, share, factor in parts]
        return draw_network(rng, bounds, features, [("tanh", top, 1.0)] if top else [])

    return draw


def _independent(rng: np.random.Generator, bounds: Any, nodes: int, scale: float) -> BroadNetwork:
    """Sin nodes with independent normal weights, as random features are usually drawn."""
    half = np.ptp(bounds, axis=1) / 2
    weights = scale * rng.standard_normal((len(half), nodes)) / half[:, None]
    return BroadNetwork(bounds.mean(axis=1), (FeatureGroup("sin", weights, rng.uniform(0, 2 * np.pi, nodes)),))


MIXES: dict[str, Draw] = {
    "sin (default)": _groups(("sin", 1, 1)),
    "sin, independent normal weights": _independent,
    "tanh": _groups(("tanh", 1, 1)),
    "gaussian": _groups(("gaussian", 1, 1)),
    "half sin, half tanh": _groups(("sin", 0.5, 1), ("tanh", 0.5, 1)),
    "half sin, half gaussian": _groups(("sin", 0.5, 1), ("gaussian", 0.5, 1)),
    "sin at two scales": _groups(("sin", 0.5, 1), ("sin", 0.5, 2.5)),
    "sin, a quarter enhancement": _groups(("sin", 1, 1), enhancement=0.25),
    "tanh, a quarter enhancement": _groups(("tanh", 1, 1), enhancement=0.25),
    "tanh, half enhancement": _groups(("tanh", 1, 1), enhancement=0.5),
}


def mix_errors(name: str, seed: int) -> dict[str, float]:
    """Return the true error of every mix at the scale its held-out residual chooses."""
    problem = problems.catalogue()[name]()
    lab = Laboratory(problem, seed)
    nodes = 2 * lab.pilot_nodes
    points, judge = lab.points(nodes), lab.judge(nodes)
    result = {}
    for label, draw in MIXES.items():
        best, error = np.inf, np.inf
        for scale in SCALES:
            network = draw(np.random.default_rng(seed), problem.domain.bounds, nodes, scale)
            solution = lab.fit_network(network, points)
            residual = judge(solution).total
            if residual < best:
                best, error = residual, solution.true_error()
        result[label] = error
    return result


def scale_errors(name: str, seed: int) -> tuple[float, float]:
    """Return the error at the chosen scale and the best one of a fine scan."""
    lab = Laboratory(problems.catalogue()[name](), seed)
    choice = Choice(lab, 0.0)
    width = choice.begin()
    choice.refine()
    points = lab.points(width)

    def error(scale: tuple[float, ...]) -> float:
        return lab.fit(lab.blocks(width, scale), points).true_error()

    return error(choice.scale), min(error(scale) for scale in fine_scan(choice.scale))


def fine_scan(chosen: tuple[float, ...]) -> Iterator[tuple[float, ...]]:
    for factor in FACTORS:
        yield tuple(factor * value for value in chosen)
        if len(chosen) > 1:
            for axis in range(len(chosen)):
                yield tuple(value * factor if i == axis else value for i, value in enumerate(chosen))
    yield from ((float(value),) * len(chosen) for value in np.geomspace(0.5, 60.0, 15))


def mix_table(found: list[dict[str, float]]) -> Table:
    """Return how each mix compares with the default, over all problems and seeds."""
    table = Table(title=f"true error relative to the default mix, {len(found)} cases")
    for heading in ("mix", "median", "better by 3×", "worse by 3×"):
        table.add_column(heading, justify="left" if heading == "mix" else "right")
    reference = np.array([max(errors["sin (default)"], ROUND_OFF) for errors in found])
    for label in MIXES:
        ratio = np.array([max(errors[label], ROUND_OFF) for errors in found]) / reference
        table.add_row(label, f"{np.median(ratio):.2g}", f"{np.mean(ratio < 1 / 3):.0%}", f"{np.mean(ratio > 3):.0%}")
    return table


def rows(names: list[str], seeds: int, path: Path, header: list[str], case: Callable[[str, int], Any]) -> list[Any]:
    """Run a study over problems and seeds, writing every result as it comes."""
    found = []
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "seed", *header])
        for name in names:
            for seed in range(seeds):
                found.append(case(name, seed))
                writer.writerow([name, seed, *(found[-1].values() if isinstance(found[-1], dict) else found[-1])])
                file.flush()
    return found


def main() -> None:
    """Run one of the studies, or both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="every fourth problem, one seed")
    parser.add_argument("--study", choices=("mix", "scale"), help="run only this one")
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True)
    console = Console(width=120)
    catalogue = problems.catalogue(linear=True)
    names = [name for name in catalogue if len(catalogue[name]().domain.coordinates) <= 3]
    seeds = 1 if options.quick else options.seeds
    names = names[::4] if options.quick else names
    with blas_threads(most=1):
        if options.study != "mix":
            scales = rows(names, seeds, options.out / "choice_scale.csv", ["chosen", "best"], scale_errors)
            ratios = np.array([max(chosen, ROUND_OFF) / max(best, ROUND_OFF) for chosen, best in scales])
            console.print(
                "Scale chosen by held-out residual against the best of a fine scan: "
                f"within 3× in {np.mean(ratios <= 3):.0%}, within 10× in {np.mean(ratios <= 10):.0%} "
                f"of {len(ratios)} cases; median {np.median(ratios):.2f}."
            )
        if options.study != "scale":
            console.print(mix_table(rows(names, seeds, options.out / "choice_mix.csv", list(MIXES), mix_errors)))


if __name__ == "__main__":
    main()
