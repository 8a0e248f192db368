"""Functions and their zero sets: values, gradients, and smooth pieces of a curve or surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sp

from pibls.checks import BoolArray, FloatArray, as_reals, shorten
from pibls.errors import GeometryError
from pibls.geometry.patch import FieldState, Located, Patch, SurfaceRule
from pibls.geometry.sampling import picked
from pibls.problem.evaluate import Function, compile_function
from pibls.problem.symbols import Data
from pibls.quadrature.roots import onto_zeros
from pibls.quadrature.rules import gauss, side, tensor

_NEWTON = 8


@dataclass(frozen=True)
class LevelField(FieldState):
    """A function of points and its gradient."""

    function: sp.Expr | Callable[[FloatArray], object]
    coordinates: tuple[sp.Symbol, ...]
    step: float

    @cached_property
    def _compiled(self) -> Function:
        assert isinstance(self.function, sp.Expr)
        return compile_function(self.function, self.coordinates)

    @cached_property
    def _slopes(self) -> list[Function]:
        assert isinstance(self.function, sp.Expr)
        return [compile_function(self.function.diff(symbol), self.coordinates) for symbol in self.coordinates]

    def __call__(self, X: FloatArray) -> FloatArray:
        """Return the values at points, or refuse those of a user's function."""
        if isinstance(self.function, sp.Expr):
            return self._compiled.where_real(X)
        try:
            values = as_reals(self.function(X.copy()))
        except Exception as cause:
            raise GeometryError(
                f"The function of Implicit gets an (n, {X.shape[1]}) array; it raised {type(cause).__name__}: "
                f"{shorten(str(cause))}. Write it with NumPy on columns: lambda X: np.hypot(*X.T) - 1."
            ) from cause
        if values is None or values.shape != (len(X),) or not np.isfinite(values).all():
            raise GeometryError(
                f"The function of Implicit gets an (n, {X.shape[1]}) array and must return n finite numbers, negative "
                f"inside. Got {shorten(values)} for {len(X)} points."
            )
        return values

    def gradient(self, X: FloatArray) -> FloatArray:
        """Return the gradients: of expressions exactly, of functions and data by differences."""
        if isinstance(self.function, sp.Expr) and not self.function.has(Data):
            return np.stack([slope.where_real(X) for slope in self._slopes], axis=1)
        steps = self.step * np.eye(X.shape[1])
        return np.stack([(self(X + step) - self(X - step)) / (2 * self.step) for step in steps], axis=1)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return unit vectors along the gradients."""
        slopes = self.gradient(X)
        sizes = np.linalg.norm(slopes, axis=1, keepdims=True)
        return np.asarray(slopes / np.where(sizes > 0.0, sizes, 1.0))

    def distance(self, X: FloatArray) -> FloatArray:
        """Return the distance from the zero set to first order, negative inside; functions are taken at their word."""
        values = self(X)
        if not isinstance(self.function, sp.Expr):
            return values
        size = np.linalg.norm(self.gradient(X), axis=1)
        return np.asarray(values / np.where(size > 0.0, size, 1.0))

    def projected(self, X: FloatArray) -> FloatArray:
        """Return points of the zero set near points close to it, by Newton's method along the gradient."""
        return onto_zeros(self, self.gradient, X, _NEWTON)


@dataclass(frozen=True, eq=False)
class ImplicitPatch(Patch):
    """Some simplices near a zero set, projected onto it."""

    field: LevelField
    corners: FloatArray  # (n, d, d): vertices of edges in the plane, of triangles in space

    @property
    def parameters(self) -> int:
        """One on a curve, two on a surface."""
        return int(self.corners.shape[2]) - 1

    @cached_property
    def _sizes(self) -> FloatArray:
        """The length or area of each simplex, projected."""
        nodes, weights = tensor(*[gauss(3)] * self.parameters)
        local = np.tile(nodes, (len(self.corners), 1))
        item = np.repeat(np.arange(len(self.corners)), len(nodes))
        return np.asarray(self._stretch(local, item).reshape(-1, len(nodes)) @ weights)

    @property
    def measure(self) -> float:
        """The length or area."""
        return float(self._sizes.sum())

    def _placed(self, local: FloatArray, item: npt.NDArray[np.int64]) -> FloatArray:
        """Return points of simplices: along an edge; or at a share of the way from a corner, and a direction."""
        a, b = self.corners[item, 0], self.corners[item, 1]
        if self.parameters == 1:
            return np.asarray(a + local * (b - a))
        s, t = local[:, :1], local[:, 1:]
        return np.asarray(a + s * ((1 - t) * (b - a) + t * (self.corners[item, 2] - a)))

    def _stretch(self, local: FloatArray, item: npt.NDArray[np.int64]) -> FloatArray:
        """Return how much larger the projected image is than the cube, by differences."""
        step = 1e-4
        inner = np.clip(local, step, 1 - step)
        shifts = step * np.eye(self.parameters)
        slopes = [
            (
                self.field.projected(self._placed(inner + shift, item))
                - self.field.projected(self._placed(inner - shift, item))
            )
            / (2 * step)
            for shift in shifts
        ]
        if self.parameters == 1:
            return np.asarray(np.linalg.norm(slopes[0], axis=1))
        return np.asarray(np.linalg.norm(np.cross(slopes[0], slopes[1]), axis=1))

    def at(self, U: FloatArray) -> Located:
        """Return points at nearly uniform density."""
        item, rest = picked(self._sizes, U[:, 0])
        along = rest if self.parameters == 1 else np.sqrt(rest)
        points = self.field.projected(self._placed(np.column_stack([along, U[:, 1:]]), item))
        return points, self.field.normals(points), None

    def contains(self, X: FloatArray, tolerance: float) -> BoolArray:
        """Tell which points are on the zero set, near these simplices."""
        flat = self.corners.reshape(-1, self.corners.shape[2])
        margin = float(np.linalg.norm(self.corners[:, 0] - self.corners[:, 1], axis=1).max())
        near = ((flat.min(axis=0) - margin <= X) & (flat.max(axis=0) + margin >= X)).all(axis=1)
        near[near] = np.abs(self.field.distance(X[near])) <= tolerance
        return np.asarray(near)

    def normals(self, X: FloatArray) -> FloatArray:
        """Return the normals of the zero set."""
        return self.field.normals(X)

    def quadrature(self, n: int) -> SurfaceRule:
        """Return Gauss points on every simplex, projected, about n in all."""
        m = max(3, side(n / len(self.corners), self.parameters))
        nodes, weights = tensor(*[gauss(m)] * self.parameters)
        local = np.tile(nodes, (len(self.corners), 1))
        item = np.repeat(np.arange(len(self.corners)), len(nodes))
        points = self.field.projected(self._placed(local, item))
        return points, self.field.normals(points), np.tile(weights, len(self.corners)) * self._stretch(local, item)
