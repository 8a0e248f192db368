"""Least squares under equality constraints that hold to machine precision: min ‖H w − z‖² + λ‖w‖² with C w = d."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from pibls.errors import InputError, SolveError
from pibls.solvers.dense import EPS, Array, Householder, array_namespace, column_major, is_torch, pad
from pibls.solvers.inputs import check_matrix, check_rhs, check_system, column_norms
from pibls.solvers.solver import Factorisation, Solver, computing, require_workspace
from pibls.solvers.svd import decompose

_OWNER = "constrained"
_CORRECTIONS = 3
# Directions that C sees this faintly are left to the least-squares rows, which know them better than rounding does.
_FAINT = 1e-9
_HELD = 2e-13
_TOLERANCE = 1e-8  # relative miss of the range of C beyond which values d are refused
_WEIGHT = 100.0


def constrained(
    solver: Solver, matrix: Array, constraints: Array, *, ridge: float | Array = 0.0
) -> ConstrainedFactorisation:
    """Factorise min ‖H w − z‖² + λ‖w‖² under C w = d: split the weights by C, and factorise H on its null space.

    Columns of H and C are scaled alike and rows of C to unit norm, and the rank of C is decided by its singular
    values: constraints may be redundant, and more than there are columns. The ridge λ ≥ 0 is one number, or one per
    column.
    """
    matrix, root, rows, columns = check_system(matrix, ridge, _OWNER)
    constraints = check_matrix(constraints, _OWNER, name="constraints")
    if constraints.shape[1] != matrix.shape[1] or is_torch(constraints) != is_torch(matrix):
        raise InputError(
            f"The 'constraints' parameter of {_OWNER} must have the columns of 'matrix' ({matrix.shape[1]}), in the "
            f"same array library. Got shape {tuple(constraints.shape)} of {type(constraints).__name__} instead."
        )
    require_workspace(rows, columns, 4.0 * (rows + columns) * columns + 4.0 * constraints.shape[0] * columns, _OWNER)
    with computing():
        scale = _common_scale(matrix, constraints)
        space = NullSpace.of(constraints, scale)
        rotated = space.rotate(column_major(matrix, root))
        free = None if space.rank == columns else solver.factorise(rotated[:, space.rank :], overwrite=True)
        heavy = _WEIGHT * space.row_scale[:, None] * constraints
        together = array_namespace(matrix).concat([heavy, column_major(matrix, root)])
        soft = solver.factorise(column_major(together), overwrite=True)
    return ConstrainedFactorisation(
        name=f"constrained {solver.name}",
        shape=(rows, columns),
        space=space,
        bound=column_major(rotated[:, : space.rank]),
        free=free,
        soft=soft,
    )


@final
@dataclass(frozen=True, eq=False)
class NullSpace:
    """C split by its singular values: R C D = U Σ V₁ᵀ with row scaling R and column scaling D.

    ``basis`` holds the orthogonal Q = [±V₁ N] whose trailing columns N span the null space, and what C sees so faintly
    that rounding would decide it; ``faint`` are those directions (U₂, Σ₂, V₂ᵀ), for corrections only.
    """

    constraints: Array
    scale: Array
    row_scale: Array
    left: Array
    sigma: Array
    basis: Householder | None
    faint: tuple[Array, Array, Array]

    @classmethod
    def of(cls, constraints: Array, scale: Array) -> NullSpace:
        """Decide the rank of the constraints; rows of zeros are kept, and bind nothing."""
        xp = array_namespace(constraints)
        scaled = constraints * scale
        norms = column_norms(scaled.T, _OWNER, name="constraints")
        row_scale = xp.where(norms > 0, 1.0 / xp.where(norms > 0, norms, xp.ones_like(norms)), xp.ones_like(norms))
        u, sigma, vt = decompose(scaled * row_scale[:, None], _OWNER)
        floor = max(constraints.shape) * EPS
        visible = sum(value > floor * float(sigma[0]) for value in sigma.tolist())
        rank = sum(value > _FAINT * float(sigma[0]) for value in sigma.tolist())
        basis = Householder.of(column_major(vt[:rank, :].T)) if rank else None
        faint = (u[:, rank:visible], sigma[rank:visible], vt[rank:visible, :])
        return cls(constraints, scale, row_scale, u[:, :rank], sigma[:rank], basis, faint)

    @property
    def rank(self) -> int:
        """How many constraints are independent."""
        return int(self.sigma.shape[0])

    def rotate(self, matrix: Array) -> Array:
        """Return matrix·D·Q: leading columns for directions that constraints bind, trailing ones for free ones."""
        scaled = matrix * self.scale
        return scaled if self.basis is None else self.basis.apply(scaled, right=True)

    def coordinates(self, values: Array) -> Array:
        """Return the leading coordinates that the constraints' values fix."""
        if self.basis is None:
            return values[:0, :]
        bound = (self.left.T @ (values * self.row_scale[:, None])) / self.sigma[:, None]
        # Orthonormal V₁ has a triangle of signs only: V₁ = Q[:, :r]·diag(±1).
        return array_namespace(bound).linalg.diagonal(self.basis.triangle)[:, None] * bound

    def faint_correction(self, missed: Array, held: float) -> Array:
        """Return the correction of weights that meets faint constraints, where their residual is more than ``held``."""
        xp = array_namespace(missed)
        left, sigma, right = self.faint
        parts = left.T @ (missed * self.row_scale[:, None])
        wanted = xp.where(xp.abs(parts) > held, parts, xp.zeros_like(parts))
        return self.scale[:, None] * (right.T @ (wanted / sigma[:, None]))

    def weights(self, coordinates: Array) -> Array:
        """Return the weights D·Q·coordinates."""
        rotated = coordinates if self.basis is None else self.basis.apply(coordinates)
        return self.scale[:, None] * rotated


@final
@dataclass(frozen=True, eq=False)
class ConstrainedFactorisation:
    """H factorised on the null space of C, ready for pairs (z, d)."""

    # name, shape: the solver, and rows and columns of H
    name: str
    shape: tuple[int, int]
    space: NullSpace  # the constraints, split; space.rank of them are independent
    bound: Array  # H on the bound directions
    free: Factorisation | None  # H on the free directions, factorised; None where the constraints leave none
    # H and heavily weighted constraints in one, factorised: where its weights meet the constraints to round-off
    # already, they keep digits that the constraints, close to singular themselves, would cost
    soft: Factorisation

    @property
    def rank(self) -> int:
        """Bound directions plus the numerical rank on the free ones."""
        return self.space.rank + (0 if self.free is None else self.free.rank)

    @property
    def condition(self) -> float:
        """Estimate of the condition number on the free directions."""
        return 1.0 if self.free is None else self.free.condition

    def solve(self, rhs: Array, values: Array) -> Array:
        """Return weights (M,) or (M, k) for right-hand sides z (N,) or (N, k) and values d (p,) or (p, k)."""
        z = check_rhs(rhs, self.shape[0], self.bound, _OWNER)
        d = check_rhs(values, self.space.constraints.shape[0], self.bound, _OWNER, name="values")
        if z.ndim != d.ndim or z.shape[1:] != d.shape[1:]:
            raise InputError(
                f"The 'values' parameter of {_OWNER} must have as many columns as 'rhs' ({tuple(z.shape)}). "
                f"Got shape {tuple(d.shape)} instead."
            )
        with computing():
            weights = self._solve(z[:, None], d[:, None]) if z.ndim == 1 else self._solve(z, d)
        return weights[:, 0] if z.ndim == 1 else weights

    def _solve(self, rhs: Array, values: Array) -> Array:
        xp, columns = array_namespace(rhs), self.shape[1]
        row_scale = self.space.row_scale[:, None]
        weighted = xp.concat([_WEIGHT * row_scale * values, pad(rhs, self.bound.shape[0])])
        weights = self.soft.solve(weighted)
        missed = xp.abs(values - self.space.constraints @ weights)
        rounding = 4 * EPS * (xp.abs(self.space.constraints) @ xp.abs(weights))
        if bool(xp.all(missed <= xp.maximum(rounding, 0.5 * _HELD * xp.abs(values)))):
            return weights
        bound = self.space.coordinates(values)
        self._require_consistent(values, self.space.weights(pad(bound, columns)))
        if self.free is None:
            coordinates = bound
        else:
            remaining = pad(rhs, self.bound.shape[0]) - self.bound @ bound
            coordinates = xp.concat([bound, self.free.solve(remaining)])
        weights = self.space.weights(coordinates)
        for _ in range(_CORRECTIONS):
            missed = values - self.space.constraints @ weights
            weights = weights + self.space.weights(pad(self.space.coordinates(missed), columns))
            missed = values - self.space.constraints @ weights
            held = _HELD * float(xp.max(xp.abs(values * row_scale)))
            weights = weights + self.space.faint_correction(missed, held)
        return weights

    def _require_consistent(self, values: Array, weights: Array) -> None:
        """Refuse values outside the range of C, whatever the weights."""
        xp = array_namespace(values)
        miss = xp.abs(values - self.space.constraints @ weights)
        worst, size = xp.max(miss, axis=0), xp.max(xp.abs(values), axis=0)
        column = int(xp.argmax(worst - _TOLERANCE * size))
        if not float(worst[column]) <= _TOLERANCE * float(size[column]):
            row = int(xp.argmax(miss[:, column]))
            raise SolveError(
                f"The constraints contradict each other: row {row} is off by {float(worst[column]):.2e} at best "
                f"(values up to {float(size[column]):.2e}, tolerance {_TOLERANCE:.0e}). Remove the contradiction, "
                "use more features, or impose the condition in the least-squares sense."
            )


def _common_scale(matrix: Array, constraints: Array) -> Array:
    """Return one factor per column that makes it of order one in H and C together; 0 for columns zero in both."""
    xp = array_namespace(matrix)
    norms = column_norms(matrix, _OWNER)
    others = column_norms(constraints, _OWNER, name="constraints")
    largest, largest_other = float(xp.max(norms)) or 1.0, float(xp.max(others)) or 1.0
    combined = xp.hypot(norms / largest, others / largest_other)
    return xp.where(combined > 0, 1.0 / xp.where(combined > 0, combined, xp.ones_like(combined)), combined)
