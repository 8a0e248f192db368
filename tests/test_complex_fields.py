"""Complex fields are solved as pairs of real ones and returned complex."""

import numpy as np
import pytest
import sympy as sp

import pibls as pb

x, t = pb.coordinates("x t")
psi = pb.field("psi", x, t, complex=True)
LINE = pb.Interval((x, 0, sp.pi))


def packet():
    exact = (sp.exp(-sp.I * t / 2) * sp.sin(x) + sp.exp(-2 * sp.I * t) * sp.sin(2 * x)) * sp.Rational(1, 2)
    equation = sp.Eq(sp.I * psi.diff(t), -psi.diff(x, 2) / 2)
    conditions = [pb.Dirichlet(psi, 0), pb.Initial(psi, exact.subs(t, 0))]
    return pb.Problem(equation, LINE * pb.TimeInterval(t, 0, 1), conditions, exact=exact)


def test_a_wave_function_is_complex_and_right():
    solution = pb.solve(packet(), tol=1e-5)
    X = np.array([[0.7, 0.4], [2.0, 0.9]])
    waves = sum(np.exp(-0.5j * k**2 * X[:, 1]) * np.sin(k * X[:, 0]) for k in (1, 2)) / 2
    assert solution.status == "converged"
    assert np.allclose(solution(X), waves, atol=1e-4)
    slopes = sum(k * np.exp(-0.5j * k**2 * X[:, 1]) * np.cos(k * X[:, 0]) for k in (1, 2)) / 2
    assert np.allclose(solution.derivative(psi, x)(X), slopes, atol=1e-3)
    assert solution.true_error() < 1e-4


def test_a_steady_complex_equation_keeps_its_value_after_saving(tmp_path):
    u = pb.field("u", x, complex=True)
    ends = [pb.Dirichlet(u, 1, on=LINE.left), pb.Dirichlet(u, sp.I, on=LINE.right)]
    problem = pb.Problem(sp.Eq(u.diff(x, 2) + (1 + 2 * sp.I) * u, 0), LINE, ends)
    solution = pb.solve(problem)
    solution.save(tmp_path / "u.pibls")
    values = pb.load(tmp_path / "u.pibls")([[0.0], [np.pi]])
    assert np.allclose(values, [1, 1j], atol=1e-6)


def test_absolute_values_and_laplacians_are_written_out():
    problem = pb.Problem(
        sp.I * psi.diff(t) + pb.laplacian(psi) + sp.Abs(psi) ** 2 * psi,
        LINE * pb.TimeInterval(t, 0, 1),
        [pb.Dirichlet(psi, 0), pb.Initial(psi, sp.sin(x))],
    )
    assert set(problem.field_names) == {"psi_re", "psi_im"}
    assert not problem.is_linear


def test_parts_that_are_not_known_are_refused():
    with pytest.raises(pb.PiblsError, match="not known"):
        pb.Problem(sp.I * psi.diff(t) + sp.gamma(psi), LINE * pb.TimeInterval(t, 0, 1))
    with pytest.raises(pb.PiblsError, match="two real ones"):
        pb.field("psi", x, complex=True, start=1)
