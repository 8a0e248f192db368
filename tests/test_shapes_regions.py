"""Shapes as conditions on coordinates: the formula holds where the shape is."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

from pibls.errors import GeometryError
from pibls.geometry import Implicit, Solid
from test_geometry_shapes import PLANE, SOLID, TURNED
from test_shapes_reading import box

x, y, z = sp.symbols("x y z", real=True)
WITH_FORMULA = {name: shape for name, shape in {**PLANE, **TURNED, **SOLID}.items() if name != "array star"}
WITH_FORMULA["implicit"] = Implicit((x, y), x**2 + 4 * y**2 - 1, [(-2, 2), (-1, 1)])


@pytest.mark.parametrize("name", WITH_FORMULA)
def test_the_condition_holds_inside_and_nowhere_else(name):
    shape = WITH_FORMULA[name]
    low, high = shape.bounds.T
    X = low - 0.1 + np.random.default_rng(0).random((2000, shape.dimension)) * (high - low + 0.2)
    level = shape.level(X)
    clear = np.abs(level) > 1e-9
    holds = sp.lambdify(shape.coordinates, shape.condition, "numpy")(*X.T)
    np.testing.assert_array_equal(np.broadcast_to(holds, len(X))[clear], level[clear] > 0)


def test_shapes_without_a_formula_are_refused():
    with pytest.raises(GeometryError, match="a shape with a formula"):
        _ = Solid((x, y, z), *box()).condition
    with pytest.raises(GeometryError, match="given by an expression"):
        _ = Implicit((x, y), lambda X: np.hypot(*X.T) - 1, [(-2, 2), (-2, 2)]).condition
