"""A solved problem as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from scipy import linalg

from pibls.checks import HIGHEST_ORDER, FloatArray, check_integer, check_points, refusal, shorten
from pibls.errors import InputError, ProblemError
from pibls.features import BroadNetwork
from pibls.geometry.points import Points, interior_points
from pibls.markup import facts, table
from pibls.problem import Field, MultiIndex, Problem
from pibls.problem.complex_fields import complex_name, pairs_of
from pibls.runtime import blas_threads
from pibls.solution.celled import CellNetwork
from pibls.solution.diagnostics import Diagnostics
from pibls.solution.field_functions import ComplexFunction, FieldFunction, ResidualFunction, gather, statement_of
from pibls.solution.json_records import Network, RicherNetwork
from pibls.solution.measurable import Measurable
from pibls.solution.parameters import Parameters
from pibls.solution.posterior import CHUNK_ENTRIES, Posterior, credible_factor, deviations, draws, known_posterior
from pibls.solution.sizes import errors_by_field, reference_sizes, share_of_distance
from pibls.solution.ways_out import WaysOut
from pibls.status import Status


@dataclass(frozen=True, eq=False)
class Solution(Measurable, WaysOut):
    """The solution of a problem: callable, differentiable, and with a record of how it was found.

    Made by :func:`pibls.solve` and by the ``fit`` of a method.

    Attributes
    ----------
    problem
        What was solved.
    network
        The nodes.
    weights
        Output weights, one row per field.
    status
        A :class:`~pibls.Status`: ``"converged"``, ``"stalled"`` or ``"ill-posed"`` of a solve, ``"fitted"`` or
        ``"interrupted"`` of a method by itself.
    error_estimate
        Estimated relative L2 error, or None if none was estimated.
    diagnostics
        What was chosen, residuals, rank, times.
    posterior
        The distribution of the weights, for a Bayesian method.
    richer
        The network with more nodes that the error estimate is based on, as network and weights.
    points
        The points at which a grown solution was fitted, to grow further; they are not stored.
    parameters
        The unknown numbers of an inverse problem, with their uncertainty.

    Examples
    --------
    >>> from pibls import problems, solve
    >>> solution = solve(problems.advection())
    >>> bool(abs(solution([0.5]) - 1.0) < 1e-6)
    True
    """

    problem: Problem
    network: Network
    weights: FloatArray
    status: Status
    diagnostics: Diagnostics
    error_estimate: float | None = None
    posterior: Posterior | None = None
    richer: tuple[RicherNetwork, FloatArray] | None = None
    points: Points | None = None
    parameters: Parameters | None = None

    def __post_init__(self) -> None:
        # A method from elsewhere may say it as a plain string.
        if self.status not in tuple(Status):
            raise refusal("status", "Solution", f"be one of {', '.join(Status)}", self.status)
        object.__setattr__(self, "status", Status(self.status))

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates, in the order of the columns of a point array."""
        return tuple(symbol.name for symbol in self.problem.domain.coordinates)

    def __call__(self, X: Any = None, *more: Any, outside: str = "nan", **named: Any) -> Any:
        """Return the values at points.

        Parameters
        ----------
        X
            Array or list of points, one row each; or give one argument per coordinate, by place or by name, of shapes
            that broadcast.
        outside
            What to return for points outside the domain: ``"nan"``, the network's ``"value"`` there, or an
            ``"error"``.

        Returns
        -------
        array, or dict of arrays
            ``(n,)`` for one field, ``{name: (n,)}`` for several; complex for complex fields.
        """
        points, shaped = gather(self.coordinate_names, () if X is None else (X, *more), named, "solution")
        values: dict[str, Any] = {f.field: shaped(f(points, outside=outside)) for f in self.field_functions}
        for name, (real, imaginary) in pairs_of(values).items():
            values[name] = values.pop(real) + 1j * values.pop(imaginary)
        return values if len(values) > 1 else next(iter(values.values()))

    @cached_property
    def field_functions(self) -> tuple[FieldFunction, ...]:
        """The fields as functions, in order."""
        zero = (0,) * len(self.coordinate_names)
        return tuple(FieldFunction(self, name, zero) for name in self.problem.field_names)

    def evaluate(self, X: FloatArray, wanted: Sequence[tuple[str, MultiIndex]]) -> list[FloatArray]:
        """Return derivatives of fields at points, computing each derivative of the nodes once.

        Parameters
        ----------
        X
            Points of shape ``(n, d)``, inside the domain or not.
        wanted
            Pairs of field name and multi-index.
        """
        X = check_points("X", X, "evaluate", len(self.coordinate_names))
        indices = list(dict.fromkeys(index for _, index in wanted))
        names, result = self.problem.field_names, [np.empty(len(X)) for _ in wanted]
        step = max(1, CHUNK_ENTRIES // self.network.size)
        with blas_threads(), np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(X), step):
                found = self._functions(X[start : start + step], indices)
                for (name, index), values in zip(wanted, result, strict=True):
                    values[start : start + step] = found[index][:, names.index(name)]
        for (name, index), values in zip(wanted, result, strict=True):
            if not np.isfinite(values).all():
                place = X[int(np.flatnonzero(~np.isfinite(values))[0])].tolist()
                raise InputError(
                    f"The derivative {index} of {name} overflows at {place}. Ask for a lower order, or stay near the "
                    "domain."
                )
        return result

    def _functions(self, X: FloatArray, indices: Sequence[MultiIndex]) -> dict[MultiIndex, FloatArray]:
        """Return derivatives of all fields at points, with a column for each field."""
        if isinstance(self.network, BroadNetwork):
            return dict(zip(indices, self.network.contract(X, indices, self.weights.T), strict=True))
        return {index: nodes @ self.weights.T for index, nodes in self.network.evaluate(X, indices).items()}

    def standard_deviation(self, X: Any = None, *, outside: str = "nan", **named: Any) -> Any:
        """Return how uncertain the values at points are, by a Bayesian method or by unknowns; see :meth:`__call__`.

        Examples
        --------
        >>> from pibls import BayesianPIELM, Points, problems
        >>> problem = problems.advection()
        >>> solution = BayesianPIELM(nodes=60, activation="sin").fit(problem, Points.sample(problem, interior=60))
        >>> bool(solution.standard_deviation([0.5]) < 1e-3)
        True
        """
        return deviations(self, X, outside, named)

    def samples(self, X: Any = None, n: int = 100, *, seed: int = 0, outside: str = "nan", **named: Any) -> Any:
        """Return solutions at points that are as probable as their uncertainty says; see :meth:`__call__`.

        Parameters
        ----------
        X, outside
            As for the solution itself.
        n
            How many.
        seed
            Samples of the same seed belong together, at whatever points and in whatever field.

        Returns
        -------
        array, or dict of arrays
            As the values of the solution, with ``n`` in front of their shape.

        Examples
        --------
        >>> from pibls import Dirichlet, Interval, Problem, coordinates, field, solve, unknown
        >>> x = coordinates("x")
        >>> u, load = field("u", x), unknown("load", prior=(2.0, 0.3))
        >>> problem = Problem(-u.diff(x, 2) - load, Interval((x, 0, 1)), [Dirichlet(u, 0)])
        >>> samples = solve(problem, uncertainty=True).samples([[0.25], [0.5]], n=1000)
        >>> samples.shape, samples.mean(axis=0).round(2), samples.std(axis=0).round(2)
        ((1000, 2), array([0.19, 0.25]), array([0.03, 0.04]))
        """
        return draws(self, X, n, seed, outside, named)

    def credible_band(self, X: Any = None, level: float = 0.95, *, outside: str = "nan", **named: Any) -> Any:
        """Return the lower and upper end of the band that holds each value with probability ``level``.

        Returns
        -------
        (low, high)
            Each as :meth:`__call__` returns values.
        """
        factor = credible_factor(level, known_posterior(self).degrees)
        deviation = self.standard_deviation(X, outside=outside, **named)
        value = self(X, outside=outside, **named)
        low, high = (_by_field(lambda v, d, by=by: v + by * d, value, deviation) for by in (-factor, factor))
        return low, high

    def derivative(self, field: Any, *coordinates: Any) -> FieldFunction | ComplexFunction:
        """Return a derivative of a field as a function, such as ``derivative(u, x, x)`` for ∂²u/∂x².

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.advection(), tol=1e-9)
        >>> u, x = solution.problem.fields[0], solution.problem.domain.coordinates[0]
        >>> bool(abs(solution.derivative(u, x)([0.0]) - 2 * np.pi) < 1e-6)
        True
        """
        counts = dict.fromkeys(self.problem.domain.coordinates, 0)
        for item in coordinates:
            symbol, times = item if isinstance(item, tuple | sp.Tuple) and len(item) == 2 else (item, 1)
            if not isinstance(symbol, sp.Symbol) or symbol not in counts:
                raise InputError(
                    f"derivative takes symbols of the coordinates {', '.join(self.coordinate_names)}, as in "
                    f"derivative(u, x, x). Got {shorten(item)} instead."
                )
            order = int(times) if isinstance(times, sp.Integer) else times
            counts[symbol] += check_integer("order", order, "derivative", maximum=HIGHEST_ORDER)
        index = tuple(counts.values())
        if (parts := pairs_of(self.problem.field_names).get(complex_name(field))) is not None:
            return ComplexFunction(*(FieldFunction(self, name, index) for name in parts))
        return FieldFunction(self, self._field_name(field), index)

    def _field_name(self, field: Any) -> str:
        name = field.label if isinstance(field, Field) else field
        if not isinstance(name, str) or name not in self.problem.field_names:
            raise InputError(
                f"The fields of this solution are {self.problem.field_names}. Got {shorten(field)} instead."
            )
        return name

    def residual(self, condition: Any = 0) -> ResidualFunction:
        """Return the residual of an equation or condition, of this problem or any other, as a function of points.

        Parameters
        ----------
        condition
            A condition, an equation, or the position of an equation of the problem. Of a periodic condition, the
            residual is the jump of the values.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.advection(), tol=1e-9)
        >>> bool(np.abs(solution.residual()([0.2, 0.7])).max() < 1e-6)
        True
        """
        return ResidualFunction(self, statement_of(self.problem, condition))

    def error_field(self, *points: Any, outside: str = "nan", **named: Any) -> Any:
        """Return the estimated absolute error at points, from the distance to the other network of the error estimate.

        Over the domain it is as large as the true error; at a single point, where both may cross, it can be smaller.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solution = solve(problems.helmholtz())
        >>> X = solution.problem.domain.sample(500)
        >>> exact = solution.problem.exact_values(X)["u"]
        >>> true, estimated = abs(solution(X) - exact), solution.error_field(X)
        >>> bool(0.5 < estimated.max() / true.max() < 2)
        True
        """
        if self.richer is None:
            raise InputError(
                f"This solution by {self.diagnostics.method} has no error field, which rests on a second, richer "
                "network. Use pibls.solve, which makes one."
            )
        here, there = (solution(*points, outside=outside, **named) for solution in (self, self.richer_solution))
        share = min(1.0, self.distance_share)
        return _by_field(lambda own, other: share * np.abs(own - other), here, there)

    @property
    def richer_solution(self) -> Solution:
        """The solution by the richer network of the error estimate, which must be there."""
        assert self.richer is not None
        network, weights = self.richer
        return replace(self, network=network, weights=weights, richer=None, points=None)

    @cached_property
    def distance_share(self) -> float:
        """The estimated error over the distance to the other solution of the estimate."""
        return share_of_distance(self)

    @cached_property
    def error_estimates(self) -> Mapping[str, float]:
        """The estimated error of each field, by its own size; the largest is ``error_estimate``."""
        return {} if self.error_estimate is None else errors_by_field(self, *self.spread(2000, 0))

    def grow(self, nodes: int = 0, points: int = 0) -> Solution:
        """Return the solution with more nodes and more points.

        A solution by cells gets a finer tree: cells are split where the solution is rough or misses the equations most,
        until there are at least as many more weights and inner points. The error is estimated anew.

        For a network, nodes and points are added to those there are, and all weights are solved for anew. New points
        go where the residual is large, new nodes where the solution is steep.

        Parameters
        ----------
        nodes
            How many feature nodes to add; of a solution by cells, how many weights at least.
        points
            How many points to add, conditions get their share; of a solution by cells, how many inside at least.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> coarse = solve(problems.helmholtz(), tol=1e-3)
        >>> fine = coarse.grow(nodes=200, points=400)
        >>> fine.diagnostics.nodes - coarse.diagnostics.nodes >= 200, fine.true_error() < 0.1 * coarse.true_error()
        (True, True)
        """
        from pibls.tuning.grow import grow

        return grow(self, nodes, points)

    def true_error(self, n: int = 2000, seed: int = 12345) -> float:
        """Return the relative L2 error against the problem's exact solution, at points the solve never saw.

        There are about ``n`` of them, more where there are more cells, so that errors in a corner count. A
        point cloud has no others: there it is measured at its own points. With several fields, the largest error
        counts, each relative to the size of its field, or of the vector that it is a component of; a field that is
        zero, or nearly, is measured by what the others suggest for it.

        Examples
        --------
        >>> from pibls import problems, solve
        >>> solve(problems.advection()).true_error() < 1e-6
        True
        """
        X, roots = self.spread(check_integer("n", n, "Solution.true_error", minimum=1), seed)
        exact = self.problem.exact_values(X)
        values = self.evaluate(X, [(f.field, f.multi_index) for f in self.field_functions])
        own = {f.field: float(linalg.norm(roots * exact[f.field])) for f in self.field_functions}
        sizes = reference_sizes(self.problem, own)
        if 0.0 in sizes.values():
            raise ProblemError(
                "An exact solution that is zero has no relative error; use pibls.metrics, which has absolute ones too."
            )
        pairs = zip(self.field_functions, values, strict=True)
        return float(max(linalg.norm(roots * (v - exact[f.field])) / sizes[f.field] for f, v in pairs))

    def spread(self, n: int, seed: int) -> tuple[FloatArray, FloatArray]:
        """Return points of the domain, more where there are more cells, and the roots of their weights."""
        domain = self.problem.domain
        if not isinstance(self.network, CellNetwork):
            X = interior_points(domain, n, "uniform", seed)
            return X, np.ones(len(X))
        X, volumes = self.network.spread(domain.bounds, n, seed)
        inside = domain.contains(X)
        return X[inside], np.sqrt(volumes[inside])

    def summary(self) -> Mapping[str, str]:
        """Return the facts of the solve in words, for display."""
        d = self.diagnostics
        return {
            "fields": ", ".join(map(str, self.problem.fields)),
            "domain": str(self.problem.domain),
            "status": self.status,
            "error estimate": "not estimated" if self.error_estimate is None else f"{self.error_estimate:.1e}",
            "size": d.size + ("" if d.rank is None else f", rank {d.rank}"),
            "residual": f"{d.residual:.1e}",
            "seconds": f"{sum(d.seconds.values()):.2f}",
        }

    def __repr__(self) -> str:
        facts = self.summary()
        estimate = f"error estimate {facts['error estimate']}"
        numbers = f"{facts['size']}, residual {facts['residual']}, {facts['seconds']} s"
        return f"Solution({facts['fields']}: {facts['status']}, {estimate}, {numbers})"

    def _repr_html_(self) -> str:
        told = facts(self.summary().items())
        residuals = [(k, f"{r.rms:.1e}", f"{r.max:.1e}") for k, r in self.diagnostics.residuals.items()]
        return told + table(["residual of", "rms", "max"], residuals) if residuals else told


def _by_field(function: Callable[..., Any], *values: Any) -> Any:
    """Return a function of the values of the only field, or of those of each by name."""
    if isinstance(values[0], dict):
        return {name: function(*(own[name] for own in values)) for name in values[0]}
    return function(*values)
