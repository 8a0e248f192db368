"""FastLSQ: random sines, one least-squares solve, in torch.

Everything goes through ``fastlsq.solve_linear`` with problems written as its own are (its own classes where it has
the problem: Helmholtz, wave, 5-D Poisson), rows of conditions weighted by 100 as there, points and their numbers as
it draws them. Two sizes: three blocks of 500 features, its default, and one smaller network per problem with points
in the same proportion (3 N inside, a fifth of that on the boundary).

FastLSQ needs a scale, which its own tuner finds by comparing with the exact solution. Here it gets the best one for
free: scales, and axis ratios where the axes differ in kind, are tried against the exact solution at the points the
error is measured at. So are, at the best scales, both of its back-ends fit for such matrices: ``qr``, mostly faster
and more accurate, and ``svd``, which ``auto`` ends in. None of that is counted.

The L-shapes are left out: sines know nothing of the corner.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import fastlsq
import torch
from fastlsq.geometry import SDFDomain
from fastlsq.problems.linear import Helmholtz2D, PoissonND, Wave1D

from benchmarks.peers_common import Predict, Probe, timed

WEIGHT = 100.0  # of condition rows, in all of FastLSQ's own linear problems
BLOCKS, FEATURES = 3, 500  # its defaults
SCALES = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 50.0)  # its tuner's, and some beyond
FINALISTS = 3  # scales at which the second back-end is tried too
MODES = (1, 2, 3, 4, 8)


def stacked(A: Any, b: Any, *conditions: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the rows of the equation with the weighted rows of the conditions below."""
    blocks = [(A, b), *((WEIGHT * rows, WEIGHT * values) for rows, values in conditions)]
    return torch.cat([rows for rows, _ in blocks]), torch.cat([values for _, values in blocks])


class _Collocated:
    """A problem as FastLSQ wants it: points, rows, and the exact solution that its tuner asks for."""

    dim = 2

    def get_test_points(self, n: int) -> Any:
        return torch.rand(n, self.dim)

    def operator(self, basis: Any, x: Any) -> Any:
        raise NotImplementedError

    def build(self, solver: Any, x: Any, conditions: Any, source: Any) -> tuple[Any, Any]:
        basis = solver.basis
        known = ((basis.evaluate(points), values) for points, values in conditions)
        return stacked(self.operator(basis, x), source, *known)


class _Advection(_Collocated):
    """The equation u' = R on (0, 1); one row says u(0) = 1."""

    dim = 1

    def exact(self, x: Any) -> Any:
        return torch.sin(2 * torch.pi * x) * torch.cos(4 * torch.pi * x) + 1

    def exact_grad(self, x: Any) -> Any:
        # sin 2z cos 4z is half of sin 6z - sin 2z
        return torch.pi * (3 * torch.cos(6 * torch.pi * x) - torch.cos(2 * torch.pi * x))

    def get_train_data(self, n_pde: int, n_bc: int) -> tuple[Any, Any, Any]:
        x, start = torch.rand(n_pde, 1), torch.zeros(min(n_bc, 1), 1)
        return x, [(start, self.exact(start))], self.exact_grad(x)

    def operator(self, basis: Any, x: Any) -> Any:
        return basis.derivative(x, (1,))


class _PoissonGaussian(_Collocated):
    """The equation −Δu = R on the unit square, values given on the boundary."""

    def exact(self, x: Any) -> Any:
        return torch.exp(-2 * x[:, :1] ** 2 - 4 * x[:, 1:] ** 2) + 0.5

    def exact_grad(self, x: Any) -> Any:
        return (self.exact(x) - 0.5) * x * torch.tensor([-4.0, -8.0])

    def get_train_data(self, n_pde: int, n_bc: int) -> tuple[Any, Any, Any]:
        x, edge = torch.rand(n_pde, 2), torch.rand(n_bc, 2)
        sides = torch.arange(n_bc) % 4
        edge[torch.arange(n_bc), sides // 2] = (sides % 2).to(edge.dtype)
        source = (self.exact(x) - 0.5) * (12 - 16 * x[:, :1] ** 2 - 64 * x[:, 1:] ** 2)
        return x, [(edge, self.exact(edge))], source

    def operator(self, basis: Any, x: Any) -> Any:
        return -basis.laplacian(x)


class _DiffusionReaction(_Collocated):
    """The equation u_t = u_xx + R on (−π, π) × (0, 1): five modes, zero at both ends, given at the start."""

    def modes(self, x: Any, amplitude: Callable[[int], float], wave: Callable[[Any], Any] = torch.sin) -> Any:
        return torch.exp(-x[:, 1:]) * sum(amplitude(k) * wave(k * x[:, :1]) for k in MODES)

    def exact(self, x: Any) -> Any:
        return self.modes(x, lambda k: 1 / k)

    def exact_grad(self, x: Any) -> Any:
        return torch.cat([self.modes(x, lambda _: 1.0, torch.cos), -self.exact(x)], dim=1)

    def get_test_points(self, n: int) -> Any:
        return (torch.rand(n, 2) - torch.tensor([0.5, 0.0])) * torch.tensor([2 * torch.pi, 1.0])

    def get_train_data(self, n_pde: int, n_bc: int) -> tuple[Any, Any, Any]:
        x, start, ends = (self.get_test_points(n) for n in (n_pde, n_bc, n_bc))
        start[:, 1] = 0.0
        ends[:, 0] = torch.pi * (2.0 * (torch.arange(n_bc) % 2) - 1.0)
        known = [(start, self.exact(start)), (ends, torch.zeros(n_bc, 1))]
        return x, known, self.modes(x, lambda k: (k * k - 1) / k)

    def operator(self, basis: Any, x: Any) -> Any:
        cache = basis.cache(x)
        return basis.derivative(x, (0, 1), cache=cache) - basis.derivative(x, (2, 0), cache=cache)


class _Annulus(_Collocated):
    """Potential flow past a cylinder of radius 1/2: values on the outer circle, no flow through the inner one."""

    domain = SDFDomain.annulus(0.5, 1.0)

    def exact(self, x: Any) -> Any:
        return x[:, :1] * (1 + 0.25 / (x**2).sum(1, keepdim=True))

    def exact_grad(self, x: Any) -> Any:
        square = (x**2).sum(1, keepdim=True)
        along = 1 + 0.25 / square - 0.5 * x[:, :1] ** 2 / square**2
        return torch.cat([along, -0.5 * x[:, :1] * x[:, 1:] / square**2], dim=1)

    def get_test_points(self, n: int) -> Any:
        return self.domain.sample(n)

    def get_train_data(self, n_pde: int, n_bc: int) -> tuple[Any, Any, Any]:
        edge = self.domain.sample_boundary(n_bc)
        is_outer = (edge**2).sum(1) > 0.5
        return self.domain.sample(n_pde), (edge[is_outer], edge[~is_outer]), torch.zeros(n_pde, 1)

    def build(self, solver: Any, x: Any, conditions: Any, source: Any) -> tuple[Any, Any]:
        basis, (outer, inner) = solver.basis, conditions
        given = (basis.evaluate(outer), self.exact(outer))
        no_flow = (self.domain.neumann_rows(basis, inner), torch.zeros(len(inner), 1))
        return stacked(basis.laplacian(x), source, given, no_flow)


@dataclass(frozen=True)
class Case:
    """A problem, the size of the smaller network, and the axis ratios worth trying."""

    problem: Callable[[], Any]
    small: int
    ratios: tuple[tuple[float, ...] | None, ...] = (None,)


CASES = {
    "advection": Case(_Advection, 100),
    "poisson_gaussian": Case(_PoissonGaussian, 400),
    "diffusion_reaction": Case(_DiffusionReaction, 800, (None, (1.0, 0.3))),
    "helmholtz": Case(Helmholtz2D, 800),
    "wave": Case(Wave1D, 800, (None, (1.0, 2.0))),
    "poisson_nd": Case(PoissonND, 800),
    "annulus": Case(_Annulus, 400),
}


@dataclass(frozen=True)
class Setting:
    """What FastLSQ is to be told."""

    blocks: int
    features: int
    scale: float = 1.0
    ratio: tuple[float, ...] | None = None
    back_end: str = "qr"

    @property
    def inside(self) -> int:
        """Number of points inside: three for every feature, FastLSQ's proportion."""
        return 3 * self.blocks * self.features

    @property
    def boundary(self) -> int:
        """Number of points per condition, FastLSQ's proportion."""
        return self.inside // 5

    def __str__(self) -> str:
        ratio = "" if self.ratio is None else " × (" + ", ".join(f"{r:g}" for r in self.ratio) + ")"
        return f"N = {self.blocks * self.features}, scale {self.scale:g}{ratio}, {self.back_end}"

    def solve(self, case: Case, seed: int) -> Predict:
        """Solve once with FastLSQ's one-line interface, without the metrics it would compute on top."""
        torch.manual_seed(seed)
        problem = case.problem()
        if self.ratio is not None:
            problem.scale_multipliers = list(self.ratio)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # qr says that the matrix has no full rank; all have not
            result = fastlsq.solve_linear(
                problem,
                scale=self.scale,
                n_blocks=self.blocks,
                hidden_size=self.features,
                n_pde=self.inside,
                n_bc=self.boundary,
                method=self.back_end,
                return_metrics=False,
                verbose=False,
            )
        return lambda X: result["u_fn"](torch.as_tensor(X)).numpy()


def best(case: Case, probe: Probe, size: Setting) -> Setting:
    """Return the setting with the smallest true error: the help of an oracle."""

    def true_error(setting: Setting) -> float:
        try:
            return probe.error(setting.solve(case, seed=0))
        except torch.linalg.LinAlgError:
            return math.inf

    errors = {s: true_error(s) for s in (replace(size, scale=s, ratio=r) for s in SCALES for r in case.ratios)}
    finalists = sorted(errors, key=errors.__getitem__)[:FINALISTS]
    errors |= {s: true_error(s) for s in (replace(f, back_end="svd") for f in finalists)}
    return min(errors, key=errors.__getitem__)


def cheapest(probe: Probe, tol: float, repeats: int) -> tuple[float, float]:
    """Return CPU seconds and error of the cheaper size that meets a tolerance, or of the more accurate one."""
    case = CASES.get(probe.name)
    if case is None:
        return math.nan, math.nan
    torch.set_num_threads(1)
    found = []
    for size in (Setting(BLOCKS, FEATURES), Setting(1, case.small)):
        seconds, predict = timed(partial(best(case, probe, size).solve, case, 0), repeats)
        found.append((seconds, probe.error(predict)))
    met = [own for own in found if own[1] <= tol]
    return min(met) if met else min(found, key=lambda own: own[1])
