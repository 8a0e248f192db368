"""The Bayesian physics-informed extreme learning machine: output weights with a distribution."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer
from pibls.errors import ProblemError
from pibls.features import BroadNetwork, activation, draw_network
from pibls.geometry import Points
from pibls.methods.fit import Scale, check_fit, check_penalties, on_device, recorded, residual_record, row_scaling
from pibls.methods.marginal_likelihood import Group, Inference, Step, maximise
from pibls.problem import Problem
from pibls.runtime import blas_threads
from pibls.solution import Diagnostics, Posterior, Solution, Stage
from pibls.solvers.inputs import to_host
from pibls.status import Status
from pibls.system import Block, System, assemble

_FEWEST = 0.5  # determined weights below which the solution is zero rather than anything found
_ZERO = (
    "The evidence is highest for weights of zero: to these nodes the right-hand sides look like noise, and the "
    "standard deviation does not tell how wrong that is. Use another scale, more points or more nodes."
)


@dataclass(frozen=True)
class BayesianPIELM:
    """Bayesian physics-informed extreme learning machine: one layer of random nodes, weights with uncertainty.

    The weights have a Gaussian prior of precision α, and the rows of the system carry Gaussian noise of precision β;
    both are found by maximising the evidence, the probability of the right-hand sides. Equations and conditions
    share one β. Every :class:`Observation` has its own, since measurements are noisier than equations; where it
    states its noise, that is used. The solution then has ``standard_deviation`` and ``credible_band``, which tell how
    well the rows determine it: of the field itself, without the noise of a new measurement, and within what the
    nodes can represent.

    Parameters
    ----------
    nodes, activation, scale, lambda_b, lambda_i
        As for :class:`PIELM`.
    iterations
        At most so many steps of evidence maximisation. They share one decomposition; with observations each has its
        own.

    Examples
    --------
    >>> from pibls import Points, problems
    >>> problem = problems.advection()
    >>> method = BayesianPIELM(nodes=120, activation="sin", scale=8.0)
    >>> solution = method.fit(problem, Points.sample(problem, interior=200))
    >>> solution.true_error() < 1e-6
    True
    >>> low, high = solution.credible_band([0.5], level=0.95)
    """

    nodes: int = 500
    activation: str = "tanh"
    scale: Scale = 3.0
    lambda_b: float | None = None
    lambda_i: float | None = None
    iterations: int = 100

    def __post_init__(self) -> None:
        check_integer("nodes", self.nodes, "BayesianPIELM", minimum=1)
        check_integer("iterations", self.iterations, "BayesianPIELM", minimum=1)
        check_penalties(self.lambda_b, self.lambda_i, "BayesianPIELM")
        activation(self.activation)

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Draw the nodes, assemble the system at the points and infer the weights; see :meth:`PIBLS.fit`.

        With a ``device`` the system is assembled there; the inference runs on the CPU.
        """
        check_integer("seed", seed, "BayesianPIELM")
        check_fit(problem, points, self.nodes, "BayesianPIELM")
        if exact := [s.name for s in problem.statements if s.exact]:
            raise ProblemError(
                f"BayesianPIELM gives every row some noise, and {exact[0]} is to hold exactly. Leave out exact=True, "
                "and raise its weight instead."
            )
        network = self.draw(problem.domain.bounds, seed)
        start = time.perf_counter()
        with blas_threads():
            scaling = row_scaling(self.lambda_b, self.lambda_i)
            system = assemble(problem, points, on_device(network, device), scaling)
            matrix, rhs = to_host(system.matrix), to_host(system.rhs)
            assembled = time.perf_counter()
            groups, members = _groups(problem, system, matrix, rhs)
            found, course = maximise(groups, self.iterations)
        residual = rhs - matrix @ found.mean
        sigma = found.singular_values
        rising = len(course) == self.iterations > 1
        unfinished = (
            f"The evidence still rose after {self.iterations} iterations; allow more of them." if rising else ""
        )
        vanishing = bool(rhs.any()) and sum(found.determined) < _FEWEST
        diagnostics = Diagnostics(
            method="BayesianPIELM",
            settings=recorded(self),
            seed=seed,
            nodes=network.size,
            rows=system.shape[0],
            solver="svd",
            rank=int(np.count_nonzero(sigma > max(matrix.shape) * np.finfo(np.float64).eps * sigma[0])),
            condition=float(sigma[0] / sigma[-1]) if sigma[-1] > 0 else float("inf"),
            residuals=residual_record([(b, residual[b.rows]) for b in system.blocks]),
            seconds={"assembly": assembled - start, "inference": time.perf_counter() - assembled},
            message=_ZERO if vanishing else unfinished,
            stages=_stages(course, time.perf_counter() - assembled),
        )
        noise = _noise(system, members, found)
        posterior = Posterior(found.factor, found.precisions.alpha, noise, found.evidence)
        weights = found.mean.reshape(len(problem.fields), network.size)
        status = Status.STALLED if vanishing else Status.FITTED
        return Solution(problem, network, weights, status, diagnostics, posterior=posterior)

    def draw(self, bounds: FloatArray, seed: int) -> BroadNetwork:
        """Draw the nodes for a box."""
        return draw_network(np.random.default_rng(seed), bounds, [(self.activation, self.nodes, self.scale)])


def _groups(
    problem: Problem, system: System, matrix: FloatArray, rhs: FloatArray
) -> tuple[list[Group], list[list[Block]]]:
    """Return the rows by noise, each with the blocks it is made of: the physics first, then every observation."""
    physics: list[Block] = []
    members: list[list[Block]] = [physics]
    precisions: list[float | None] = [None]
    for statement, block in zip(problem.statements, system.blocks, strict=True):
        if statement.targets is None:
            physics.append(block)
        else:
            members.append([block])
            # Rows of known noise were divided by it, and then scaled.
            precisions.append(None if block.noise is None else block.scale**-2.0)
    groups = []
    for blocks, precision in zip(members, precisions, strict=True):
        rows = np.concatenate([np.arange(b.rows.start, b.rows.stop) for b in blocks])
        groups.append(Group(matrix[rows], rhs[rows], precision))
    return groups, members


def _noise(system: System, members: Sequence[Sequence[Block]], found: Inference) -> dict[str, float]:
    """Return the standard deviation of the residual of every block, in its own units."""
    result = {}
    for blocks, beta in zip(members, found.precisions.betas, strict=True):
        for block in blocks:
            unit = 1.0 if block.noise is None else float(np.sqrt(np.mean(block.noise**2)))
            name = block.name if block.name not in result else f"{block.name} [{system.blocks.index(block) + 1}]"
            result[name] = unit / (np.sqrt(beta) * block.scale)
    return result


def _stages(course: Sequence[Step], seconds: float) -> tuple[Stage, ...]:
    """Return the course of the evidence; time is spread evenly over the iterations, which cost the same."""
    times = (seconds * (i + 1) / len(course) for i in range(len(course)))
    return tuple(
        Stage(spent, iteration=i, evidence=evidence, alpha=found.alpha, beta=found.betas[0])
        for i, (spent, (found, evidence)) in enumerate(zip(times, course, strict=True))
    )
