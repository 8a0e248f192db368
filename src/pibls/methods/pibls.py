"""The physics-informed broad learning system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pibls.checks import FloatArray, check_integer, check_number, shorten
from pibls.errors import FeatureError, InputError
from pibls.features import BroadNetwork, activation, draw_network
from pibls.geometry import Points
from pibls.methods.fit import Recipe, Scale, check_fit, check_penalties, fit, on_device, recorded, row_scaling
from pibls.methods.nonlinear_fit import fit_nonlinear
from pibls.problem import Problem
from pibls.solution import Solution
from pibls.solvers import Solver, solver

Group = tuple[str, int, Scale]

_MOST_GROUPS = 10_000


@dataclass(frozen=True)
class PIBLS:
    r"""Physics-informed broad learning system: random feature and enhancement nodes, one least-squares solve.

    The solution is :math:`u ≈ [F\;E]\,w`, with feature groups :math:`F_i = ψ(XW_i + b_i)` and enhancement groups
    :math:`E_j = φ(FW^e_j + b^e_j)` that are drawn at random and never trained; the letters of the paper stand in
    parentheses below.

    Parameters
    ----------
    feature_groups
        Number of feature groups (N_c).
    feature_nodes
        Nodes per feature group (p).
    enhancement_groups
        Number of enhancement groups (N_e), each fed by all feature nodes.
    enhancement_nodes
        Nodes per enhancement group (q).
    activation
        Activation of the features (ψ), and of the enhancement nodes (φ) unless given: ``"tanh"``, ``"sigmoid"``,
        ``"sin"``, ``"gaussian"``, ``"relu"``, ``"softplus"``, ``"swish"``, ``"arctan"``; or one name per group.
    scale
        Spread of the random weights in coordinates normalised to [−1, 1]: one number, or one per axis.
    enhancement_activation
        Activation of the enhancement nodes (φ); that of the first feature group if left out.
    enhancement_scale
        Spread of the input of the enhancement nodes.
    features
        Feature groups one by one as ``(activation, nodes, scale)``, instead of the settings above.
    lambda_b, lambda_i
        Penalties on boundary and initial conditions (λ_b, λ_I). Left out, rows are balanced automatically; if either
        is given, rows are scaled exactly as in the paper and the other defaults to 1.
    lambda_reg
        Ridge on the output weights (λ_reg); enters as extra rows.
    solver
        ``"lstsq"`` (rank-safe), ``"qr"``, ``"svd"``, ``"normal"`` (the paper's closed forms), ``"sketch"`` (for many
        points) or a solver object.

    Examples
    --------
    >>> from pibls import Points, problems
    >>> problem = problems.advection()
    >>> method = PIBLS(feature_groups=5, feature_nodes=20, enhancement_nodes=20, activation="sin", scale=8.0)
    >>> solution = method.fit(problem, Points.sample(problem, interior=200), seed=0)
    >>> solution.true_error() < 1e-8
    True
    """

    feature_groups: int = 10
    feature_nodes: int = 40
    enhancement_groups: int = 1
    enhancement_nodes: int = 100
    activation: str | Sequence[str] = "tanh"
    scale: Scale = 3.0
    enhancement_activation: str | None = None
    enhancement_scale: float = 1.0
    features: Sequence[Group] | None = None
    lambda_b: float | None = None
    lambda_i: float | None = None
    lambda_reg: float = 0.0
    solver: str | Solver = "lstsq"

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_integer("feature_groups", self.feature_groups, owner, minimum=1, maximum=_MOST_GROUPS)
        check_integer("feature_nodes", self.feature_nodes, owner, minimum=1)
        check_integer("enhancement_groups", self.enhancement_groups, owner, minimum=0, maximum=_MOST_GROUPS)
        check_integer("enhancement_nodes", self.enhancement_nodes, owner, minimum=0)
        _check_settings(self)
        solver(self.solver)
        for name, nodes, _ in self._feature_specs():
            activation(name)
            check_integer("nodes", nodes, owner, minimum=1)
        activation(self._enhancement_activation())

    def _feature_specs(self) -> list[Group]:
        if self.features is not None:
            try:
                groups = [(name, nodes, scale) for name, nodes, scale in self.features]
            except (TypeError, ValueError):
                groups = []
            if not groups:
                raise FeatureError(
                    "The 'features' parameter of PIBLS must be a list of (activation, nodes, scale), such as "
                    f"[('sin', 200, 3.0), ('tanh', 100, 5.0)]. Got {shorten(self.features)} instead."
                )
            return groups
        several = isinstance(self.activation, Sequence) and not isinstance(self.activation, str)
        names: list[Any] = list(self.activation) if several else [self.activation] * self.feature_groups
        if len(names) != self.feature_groups:
            raise InputError(
                f"The 'activation' parameter of PIBLS must be one name, or one for each of the {self.feature_groups} "
                f"feature groups. Got {len(names)} names instead."
            )
        return [(name, self.feature_nodes, self.scale) for name in names]

    def _enhancement_activation(self) -> str:
        chosen = self.enhancement_activation
        return self._feature_specs()[0][0] if chosen is None else chosen

    @property
    def nodes(self) -> int:
        """Number of nodes, which is the number of trained weights per field."""
        return sum(n for _, n, _ in self._feature_specs()) + self.enhancement_groups * self.enhancement_nodes

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Draw the nodes, assemble the system at the points and solve it.

        Parameters
        ----------
        problem
            A problem; one that is nonlinear is solved by Gauss–Newton steps from zero.
        points
            Its points, from :meth:`Points.sample`.
        seed
            Seed of the random nodes.
        device
            A torch device such as ``"cuda"`` to assemble and solve on; NumPy if left out.
        """
        return _fitted(self, problem, points, seed, device)

    def draw(self, bounds: FloatArray, seed: int) -> BroadNetwork:
        """Draw the nodes for a box."""
        enhancement = [(self._enhancement_activation(), self.enhancement_nodes, self.enhancement_scale)]
        groups = enhancement * self.enhancement_groups if self.enhancement_nodes else []
        return draw_network(np.random.default_rng(seed), bounds, self._feature_specs(), groups)


@dataclass(frozen=True)
class PIELM:
    """Physics-informed extreme learning machine: one layer of random nodes, one least-squares solve.

    Parameters
    ----------
    nodes
        Number of random nodes (N_h).
    activation, scale, lambda_b, lambda_i, lambda_reg, solver
        As for :class:`PIBLS`.

    Examples
    --------
    >>> from pibls import Points, problems
    >>> problem = problems.advection()
    >>> solution = PIELM(nodes=120, activation="sin", scale=8.0).fit(problem, Points.sample(problem, interior=200))
    >>> solution.true_error() < 1e-8
    True
    """

    nodes: int = 500
    activation: str = "tanh"
    scale: Scale = 3.0
    lambda_b: float | None = None
    lambda_i: float | None = None
    lambda_reg: float = 0.0
    solver: str | Solver = "lstsq"

    def __post_init__(self) -> None:
        check_integer("nodes", self.nodes, "PIELM", minimum=1)
        _check_settings(self)
        solver(self.solver)
        activation(self.activation)

    def fit(self, problem: Problem, points: Points, *, seed: int = 0, device: Any = None) -> Solution:
        """Draw the nodes, assemble the system at the points and solve it; see :meth:`PIBLS.fit`."""
        return _fitted(self, problem, points, seed, device)

    def draw(self, bounds: FloatArray, seed: int) -> BroadNetwork:
        """Draw the nodes for a box."""
        return draw_network(np.random.default_rng(seed), bounds, [(self.activation, self.nodes, self.scale)])


def _fitted(method: PIBLS | PIELM, problem: Problem, points: Points, seed: int, device: Any) -> Solution:
    owner = type(method).__name__
    check_integer("seed", seed, owner)
    check_fit(problem, points, method.nodes, owner)
    network = on_device(method.draw(problem.domain.bounds, seed), device)
    scaling = row_scaling(method.lambda_b, method.lambda_i)
    recipe = Recipe(owner, recorded(method), seed, scaling, method.lambda_reg, solver(method.solver))
    return (fit if problem.is_linear else fit_nonlinear)(problem, points, network, recipe)


def _check_settings(method: PIBLS | PIELM) -> None:
    owner = type(method).__name__
    check_penalties(method.lambda_b, method.lambda_i, owner)
    check_number("lambda_reg", method.lambda_reg, owner, minimum=0)
