"""The L-shape: its corner singularity against the polar form, and the loaded one against a second computation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from pibls import problems

FloatArray = npt.NDArray[np.float64]
ComplexArray = npt.NDArray[np.complex128]

CORNERS = np.array([0, 1, 1 + 1j, -1 + 1j, -1 - 1j, -1j])
# Where no point of the domain is: cuts of roots and logarithms around each corner lie along these.
OUTWARD = np.exp(0.25j * np.pi * np.array([-1, -1, 1, 3, -3, -1]))
REFERENCE = problems.references()["l_shape_unit_load"]


def as_complex(X: FloatArray) -> ComplexArray:
    return X[:, 0] + 1j * X[:, 1]


def test_singular_solution_is_the_polar_form_on_the_closed_domain() -> None:
    problem = problems.l_shape()
    X = np.concatenate([problem.domain.sample(500, seed=4), problem.domain.boundary.sample(500, seed=4).points])
    # From 0 to 2π, and above 0 by round-off on the first edge; the domain ends at 3π/2.
    theta = np.mod(np.angle(as_complex(X)) + 1e-9, 2 * np.pi) - 1e-9
    assert theta.max() < 1.5 * np.pi + 1e-6
    expected = np.hypot(*X.T) ** (2 / 3) * np.sin(2 * theta / 3)
    np.testing.assert_allclose(problem.exact_values(X)["u"], expected, atol=1e-14)


def test_singular_solution_vanishes_on_the_edges_of_the_corner_and_at_it() -> None:
    s = np.linspace(0, 1, 50)
    edges = np.concatenate([np.column_stack([s, 0 * s]), np.column_stack([0 * s, -s]), [[-0.0, -0.0], [0.0, -0.0]]])
    problem = problems.l_shape()
    assert problem.domain.boundary.contains(edges).all()
    assert np.abs(problem.exact_values(edges)["u"]).max() < 1e-15
    inside = problem.exact_values(problem.domain.sample(300, seed=1))["u"]
    assert inside.min() > 0


def test_singular_solution_has_the_exponent_of_the_corner() -> None:
    r = np.array([1e-12, 1e-6, 1.0])
    values = problems.l_shape().exact_values(np.column_stack([-r, 0 * r]))["u"]
    np.testing.assert_allclose(values, r ** (2 / 3) * np.sin(2 * np.pi / 3), rtol=1e-13)


def particular_solutions(z: ComplexArray, count: int) -> FloatArray:
    """Return harmonic functions that together hold the singularities of every corner, one per column."""
    turned = -(z[:, None] - CORNERS) / OUTWARD
    logs = turned**2 * np.log(np.where(turned == 0, 1, turned))
    k = 2 / 3 * np.arange(1, count + 1)
    fans = np.abs(z[:, None]) ** k * np.sin(k * (np.angle(turned[:, :1]) + 3 * np.pi / 4))
    powers = ((z[:, None] + 0.2 - 0.2j) / 1.6) ** np.arange(2 * count // 3 + 1)
    return np.hstack([logs.real, logs.imag, fans, powers.real, powers.imag[:, 1:]])


def unit_load(X: FloatArray, count: int) -> tuple[FloatArray, float]:
    """Return the solution of −Δu = 1 at points, and by the maximum principle the bound of its error."""

    def boundary(n: int) -> ComplexArray:
        s = (1 - np.cos(np.linspace(0, np.pi, n))) / 2
        return np.concatenate([a + (b - a) * s for a, b in zip(CORNERS, np.roll(CORNERS, -1), strict=True)])

    fitted, checked, asked = boundary(300), boundary(1001), as_complex(X)
    A = particular_solutions(fitted, count)
    scale = np.linalg.norm(A, axis=0)
    c = np.linalg.lstsq(A / scale, fitted.imag**2 / 2, rcond=1e-15)[0] / scale
    defect = particular_solutions(checked, count) @ c - checked.imag**2 / 2
    return particular_solutions(asked, count) @ c - asked.imag**2 / 2, float(np.abs(defect).max())


@pytest.mark.parametrize(("count", "bound"), [(20, 1e-6), (40, 1e-10), (60, 5e-13)])
def test_reference_values_against_particular_solutions(count: int, bound: float) -> None:
    values, error = unit_load(REFERENCE.points, count)
    assert error < bound
    assert np.abs(values - REFERENCE.values).max() <= error + REFERENCE.accuracy


def test_reference_values_against_finite_differences() -> None:
    from scipy.sparse import diags_array, eye, kron
    from scipy.sparse.linalg import spsolve

    def grid_values(n: int) -> FloatArray:
        ticks = np.arange(1, 2 * n) / n - 1
        second = diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(2 * n - 1, 2 * n - 1)) * n**2
        full = (kron(second, eye(2 * n - 1)) + kron(eye(2 * n - 1), second)).tocsr()
        x, y = (a.ravel() for a in np.meshgrid(ticks, ticks, indexing="ij"))
        inside = np.flatnonzero((x < 0) | (y > 0))
        u = np.zeros(len(x))
        u[inside] = spsolve(-full[inside][:, inside], np.ones(len(inside)))
        nodes = np.rint((REFERENCE.points[on_grid] + 1) * n).astype(int) - 1
        return u.reshape(2 * n - 1, 2 * n - 1)[nodes[:, 0], nodes[:, 1]]

    on_grid = (REFERENCE.points * 4 % 1 == 0).all(axis=1)
    assert on_grid.sum() >= 9
    errors = [np.abs(grid_values(n) - REFERENCE.values[on_grid]).max() for n in (8, 16, 32)]
    assert errors[-1] < 1e-3
    # The corner slows the five-point formula down to order 4/3.
    assert 2 ** (4 / 3) * 0.8 < errors[1] / errors[2] < 4


def test_reference_is_symmetric_about_the_diagonal() -> None:
    found = {tuple(p): v for p, v in zip(REFERENCE.points.tolist(), REFERENCE.values, strict=True)}
    pairs = [(p, (-p[1], -p[0])) for p in found if p[0] != -p[1] and (-p[1], -p[0]) in found]
    assert len(pairs) >= 4
    for point, mirrored in pairs:
        assert found[point] == pytest.approx(found[mirrored], abs=2 * REFERENCE.accuracy)


def test_reference_holds_its_problem_and_cannot_be_changed() -> None:
    problem = REFERENCE.problem()
    assert problem.is_linear
    assert problem.exact is None
    assert problem.domain.contains(REFERENCE.points).all()
    assert REFERENCE.points.shape == (len(REFERENCE.values), 2)
    assert str(problem).splitlines()[1:] == [
        f"  -laplacian(u) = 1   in {problem.domain}",
        "  u = 0               on the boundary",
    ]
    for array in (REFERENCE.points, REFERENCE.values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(TypeError):
        problems.references()["mine"] = REFERENCE  # type: ignore[index]
