"""Made-up cells of a study, in the form in which a study stores them."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from internals import PAPER_NAMES, Spec, Store, error_metrics, published
from pibls.checks import FloatArray
from pibls.problem import Problem
from pibls.problems import catalogue

PAPER = published()
LEVELS = {"PI-BLS": 1e-5, "PINN": 1e-2, "PI-ELM": 1e-4, "BPI-ELM": 2e-4}
VERSIONS = {"pibls": "0.1.0", "numpy": "2.0.0"}
MADE = {"command": "a command", "commit": "abc1234", "machine": "a machine", "date": "2026-01-02"}


def cell(kind: str, problem: str, method: str, n_train: int, seed: int, **rest: Any) -> dict[str, Any]:
    """Return a cell with every entry of the schema, those not given empty."""
    empty: dict[str, Any] = {
        "score": None,
        "settings": {},
        "train": {},
        "test": {},
        "theorems": {},
        "extra": {},
        "made": MADE,
    }
    costs = {"seconds": 0.01, "search_seconds": 0.0, "configurations": 1, "parameters": 235, "versions": VERSIONS}
    where = {"kind": kind, "problem": problem, "method": method, "n_train": n_train, "seed": seed}
    return {**where, **empty, **costs, **rest}


def spec(entries: dict[str, Any]) -> Spec:
    """Return what a cell of a study is filed under."""
    names = ("kind", "problem", "method", "n_train", "seed", "score")
    return Spec(*(entries[name] for name in names), entries.get("axis", ""))


def store_cells(out: Path, cells: list[dict[str, Any]]) -> None:
    """Write cells where a study keeps them."""
    for entries in cells:
        Store(out).write(spec(entries), entries)


def made_up_cells(grid: int = 11) -> list[dict[str, Any]]:
    """Return most of a study as made-up numbers: three seeds for the tables, one elsewhere."""
    rng = np.random.default_rng(0)
    cells = _growth()
    for problem in PAPER_NAMES:
        cells += _accuracy(problem, rng)
        cells += _wider(problem, rng)
        cells += _times(problem, rng)
        cells += _theorems(problem)
        cells += _solves(problem, rng)
        cells += _curves(problem, grid)
    return [*cells, *_covered()]


@cache
def statement(problem: str) -> Problem:
    """Return a problem of the paper."""
    return catalogue()[problem]()


@cache
def _exact(problem: str) -> FloatArray:
    return statement(problem).exact_values(statement(problem).domain.sample(40, "uniform", 1))["u"]


def _errors(problem: str, size: float, rng: np.random.Generator) -> dict[str, float]:
    exact = _exact(problem)
    return error_metrics(exact + size * rng.normal(size=exact.size), exact)


def _theorems(problem: str) -> list[dict[str, Any]]:
    check = {"measured": 0.1, "sharp_bound": 2.0, "paper_bound": math.nan, "holds": True}
    attained = {"measured": 2.0, "sharp_bound": 2.0, "paper_bound": 8.0, "holds": True}
    always = {"optimality": check, "no descent": {**check, "measured": 3.0, "holds": False}}
    ridge = {"ridge path": check, "stability": attained, "sensitivity": attained}
    return [
        cell("theorems", problem, method, PAPER.table_size(problem), seed, theorems={**always, **more})
        for method, more in (("PI-BLS", ridge), ("PI-ELM", {}))
        for seed in range(2)
    ]


def _accuracy(problem: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    cells = []
    table = PAPER.table_size(problem)
    for n in PAPER.sizes(problem):
        for method, level in LEVELS.items():
            seeds = {"PINN": 2 if n == table else 0}.get(method, 3 if n == table else 1)
            for seed in range(seeds):
                for score, factor in (("exact", 1.0), ("residual", 1.5)):
                    size = factor * level * (table / n) ** 3 * 10 ** rng.normal(0, 0.3)
                    cells.append(
                        cell(
                            "accuracy",
                            problem,
                            method,
                            n,
                            seed,
                            score=score,
                            settings={"activation": "tanh", "lambda_b": 1.0},
                            train=_errors(problem, 0.7 * size, rng),
                            test=_errors(problem, size, rng),
                            parameters=34222 if method == "PINN" else 235,
                            search_seconds=2.0 + seed,
                            extra=_trained(seed) if method == "PINN" else {"as_searched": 1.5 * size},
                        )
                    )
    return cells


def _trained(seed: int) -> dict[str, Any]:
    leaders = [{"settings": {"width": width, "scale": 2.0}, "score": 0.1} for width in (3, 23, 23 + 20 * seed)]
    course = {"leaders": leaders, "pilots": {"tanh": leaders[:2]}}
    return {"evaluations": 30_000 - seed, "device": "a GPU", "course": course}


def _wider(problem: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    sizes, settings = {"exact": 1e-7, "residual": 3e-7}, {"activation": "sin", "enhancement_nodes": 65}
    n = PAPER.table_size(problem)
    return [
        cell("beyond", problem, "PI-BLS", n, seed, score=score, settings=settings, test=_errors(problem, size, rng))
        for score, size in sizes.items()
        for seed in range(2)
    ]


def _growth() -> list[dict[str, Any]]:
    sizes, seconds = [100, 200, 400], {"points": [1.0, 2.0, 8.0], "width": [1.0, 4.0, 32.0]}
    return [
        cell(
            "complexity",
            "poisson_square",
            method,
            100,
            0,
            axis=axis,
            exponent=2.0 + (axis == "width"),
            extra={"axis": axis, "sizes": sizes, "seconds": seconds[axis], "fixed": 50},
        )
        for method in LEVELS
        for axis in ("points", "width")
    ]


def _times(problem: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    return [
        cell(
            "time",
            problem,
            method,
            PAPER.time_size(problem),
            seed,
            seconds=(8.0 if method == "PINN" else 0.02) + seed / 1000,
            test=_errors(problem, level, rng),
        )
        for method, level in LEVELS.items()
        for seed in range(2)
    ]


def _solves(problem: str, rng: np.random.Generator) -> list[dict[str, Any]]:
    found = {"estimate": 2e-12, "status": "converged", "rows": 400}
    n = PAPER.table_size(problem)
    return [
        cell("solve", problem, "solve", n, seed, test=_errors(problem, 1e-12, rng), extra=found) for seed in range(2)
    ]


def _covered() -> list[dict[str, Any]]:
    x = np.linspace(0, 1, 5).tolist()
    line = dict.fromkeys(("x", "exact", "predicted", "low", "high", "where"), x)
    line["values"] = [1.5 * value for value in x]
    shares = [0.5, 0.7, 0.8, 0.9, 0.9625, 0.99]
    found = {"levels": [0.5, 0.68, 0.8, 0.9, 0.95, 0.99], "coverage": shares, "measurements": 77}
    found |= {"inside": [0.925, 1.0], "errors": [0.0125, 0.0135], "noise": [0.75, 1.0]}
    scales = {"advection": 6.0, "poisson_star": [3.0, 2.0]}
    return [
        cell("coverage", name, "BPI-ELM", PAPER.table_size(name), 0, settings={"scale": scale}, extra={**found, **more})
        for (name, scale), more in zip(scales.items(), ({"curve": line}, {"curve": {}}), strict=True)
    ]


def _curves(problem: str, grid: int) -> list[dict[str, Any]]:
    domain = statement(problem).domain
    axes = [np.linspace(low, high, grid) for low, high in domain.bounds]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    inside = domain.contains(points)
    exact = np.full(len(points), np.nan)
    exact[inside] = statement(problem).exact_values(points[inside])["u"]
    cells = []
    for method in list(LEVELS)[: 4 if len(axes) == 1 else 2]:
        level = LEVELS[method]
        wave = level * np.sin(7 * points.sum(axis=1))
        pictures = {
            "exact": exact,
            "predicted": exact + wave,
            "source_exact": exact + 1,
            "source_predicted": exact + 1 + wave,
            "residual": np.abs(exact * wave),
        }
        shaped = {name: values.reshape([grid] * len(axes)).tolist() for name, values in pictures.items()}
        extra = {"x": axes[0].tolist(), **shaped}
        n = 50 if problem == "diffusion_reaction" else PAPER.table_size(problem)
        cells.append(cell("curve", problem, method, n, 0, score="exact", extra=extra))
    return cells
