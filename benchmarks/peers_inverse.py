"""Unknown numbers by ``pb.solve`` beside DeepXDE: relative errors and seconds on three problems without noise.

    DDE_BACKEND=pytorch python -m benchmarks.peers_inverse [--seeds 1] [--csv out/peers_inverse.csv]

Both get the same equations, conditions, data and starts. ``pb.solve(problem)`` is called with nothing else. DeepXDE is
set as in its own examples of these problems (networks, points, learning rate, iterations; the Brinkman flow with zeros
at the walls built in), in double precision, and L-BFGS polishes what Adam has found. Seconds are those of the processor
with one thread, so that what else runs on the machine has no share in them. Without DeepXDE only own rows are made; to
have it: ``pip install deepxde``.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import pibls as pb
from benchmarks.inverse_models import observations
from pibls.problems import inverse

ADAM_RATE = 1e-3
BFGS_STEPS = 15_000  # at most, its own default


@dataclass(frozen=True)
class Row:
    """One unknown of one run."""

    problem: str
    solver: str
    setting: str
    seed: int
    unknown: str
    truth: float
    value: float
    error: float
    seconds: float


@dataclass(frozen=True)
class Setting:
    """What DeepXDE's examples choose: width and depth of the network, points, and steps of Adam."""

    layers: tuple[int, ...]
    interior: int
    boundary: int
    initial: int
    steps: int


SETTINGS = {
    "heat_diffusivity": Setting((2, 32, 32, 32, 1), 40, 20, 10, 50_000),
    "brinkman_forchheimer": Setting((1, 20, 20, 20, 1), 100, 2, 0, 30_000),
    "klein_gordon_mass": Setting((2, 40, 40, 1), 1000, 200, 100, 15_000),
}


def own(name: str, seed: int) -> dict[str, float]:
    """Return what ``pb.solve`` finds."""
    found = pb.solve(inverse.catalogue()[name](), seed=seed, progress=False).parameters
    assert found is not None
    return {key: entry.value for key, entry in found.items()}


def deepxde(name: str, seed: int, steps: int) -> dict[str, float]:
    """Return what DeepXDE finds."""
    import deepxde as dde

    dde.config.set_default_float("float64")
    dde.config.set_random_seed(seed)
    setting, problem = SETTINGS[name], inverse.catalogue()[name]()
    (data,) = observations(problem)
    points = np.asarray(data.points, dtype=float).reshape(len(data.values), -1)
    variables = {k.name: dde.Variable(float(k.start if k.start is not None else 1.0)) for k in problem.parameters}
    geometry, residual, conditions = _posed(dde, name, variables)
    observed = dde.icbc.PointSetBC(points, data.values[:, None], component=0)
    sizes: dict[str, Any] = {"num_domain": setting.interior, "num_boundary": setting.boundary, "anchors": points}
    if setting.initial:
        made = dde.data.TimePDE(geometry, residual, [*conditions, observed], num_initial=setting.initial, **sizes)
    else:
        made = dde.data.PDE(geometry, residual, [*conditions, observed], **sizes)
    network = dde.nn.FNN(list(setting.layers), "tanh", "Glorot uniform")
    if name == "brinkman_forchheimer":
        network.apply_output_transform(lambda x, y: x * (1 - x) * y)
    model = dde.Model(made, network)
    trained = list(variables.values())
    model.compile("adam", lr=ADAM_RATE, external_trainable_variables=trained)
    model.train(iterations=steps, display_every=10**9, verbose=0)
    dde.optimizers.set_LBFGS_options(maxiter=BFGS_STEPS)
    model.compile("L-BFGS", external_trainable_variables=trained)
    model.train(display_every=10**9, verbose=0)
    return {key: float(value.detach()) for key, value in variables.items()}


def _posed(dde: Any, name: str, v: dict[str, Any]) -> tuple[Any, Callable[[Any, Any], Any], list[Any]]:
    """Return domain, residual and conditions as DeepXDE writes them."""
    import torch

    def second(y: Any, x: Any, axis: int) -> Any:
        return dde.grad.hessian(y, x, i=axis, j=axis)

    if name == "brinkman_forchheimer":
        line = dde.geometry.Interval(0, 1)
        return line, lambda x, y: -v["nu_e"] / 0.4 * second(y, x, 0) + 1e-3 * y / v["K"] - 1, []
    low, high, last = (-1, 1, 1) if name == "heat_diffusivity" else (0, np.pi, 2)
    domain = dde.geometry.GeometryXTime(dde.geometry.Interval(low, high), dde.geometry.TimeDomain(0, last))
    walls = dde.icbc.DirichletBC(domain, lambda _: 0.0, lambda _, on: on)
    if name == "heat_diffusivity":
        first = dde.icbc.IC(domain, lambda x: np.sin(np.pi * x[:, :1]), lambda _, on: on)

        def heat(x: Any, y: Any) -> Any:
            source = (np.pi**2 - 1) * torch.exp(-x[:, 1:]) * torch.sin(np.pi * x[:, :1])
            return dde.grad.jacobian(y, x, i=0, j=1) - v["k"] * second(y, x, 0) - source

        return domain, heat, [walls, first]
    first = dde.icbc.IC(domain, lambda x: np.sin(x[:, :1]) + np.sin(2 * x[:, :1]) / 2, lambda _, on: on)
    rest = dde.icbc.OperatorBC(domain, lambda x, y, _: dde.grad.jacobian(y, x, i=0, j=1), lambda x, _: x[1] < 1e-12)
    return domain, lambda x, y: second(y, x, 1) - second(y, x, 0) + v["m2"] * y, [walls, first, rest]


def rows(seeds: int, share: float) -> Iterator[Row]:
    """Measure everything, an unknown at a time."""
    own("brinkman_forchheimer", 0)  # what imports cost is nobody's
    peers = importlib.util.find_spec("deepxde") is not None
    for name, setting in SETTINGS.items():
        steps = max(int(share * setting.steps), 1)
        told = f"Adam {steps}, L-BFGS, {'×'.join(map(str, setting.layers))}"
        solvers: list[tuple[str, str, Callable[[int], dict[str, float]]]] = [
            ("pibls", "defaults", lambda seed, name=name: own(name, seed))  # type: ignore[misc]
        ]
        if peers:
            solvers.append(("DeepXDE", told, lambda seed, name=name, steps=steps: deepxde(name, seed, steps)))  # type: ignore[misc]
        for solver, words, solve in solvers:
            for seed in range(seeds):
                begun = time.process_time()
                found = solve(seed)
                seconds = time.process_time() - begun
                for key, true in dict(inverse.catalogue()[name]().truth or {}).items():
                    error = abs(found[key] / true - 1)
                    yield Row(name, solver, words, seed, key, true, found[key], error, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the steps of Adam in DeepXDE's examples")
    parser.add_argument("--csv", type=Path, default=Path("peers_inverse.csv"), help="file for the rows")
    options = parser.parse_args()
    os.environ.setdefault("DDE_BACKEND", "pytorch")
    options.csv.parent.mkdir(parents=True, exist_ok=True)
    with options.csv.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [entry.name for entry in fields(Row)])
        writer.writeheader()
        for row in rows(options.seeds, options.share):
            writer.writerow(asdict(row))
            file.flush()
            print(
                f"{row.problem:<22} {row.solver:<8} {row.unknown:<5} {row.value:<12.8g} relative error {row.error:.1e} "
                f"{row.seconds:7.1f} s  {row.setting}",
                flush=True,
            )


if __name__ == "__main__":
    main()
