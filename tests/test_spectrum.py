"""Eigenvalues against known ones: multiplicities, corners of the spectrum, conditions, quadratic and complex ones."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sp
from scipy.special import ai_zeros, j0, j1, y0, y1
from typer.testing import CliRunner

import pibls as pb
from internals import Cell, EigenSearch, approached, leaves
from pibls.cli import app

x, y = pb.coordinates("x y")
lam = pb.eigenvalue("lam")
u, v, w = pb.field("u", x), pb.field("v", x, y), pb.field("w", x)
PSI = pb.field("psi", x, complex=True)
LINE = pb.Interval((x, 0, sp.pi))
SQUARE = pb.Rectangle((x, 0, sp.pi), (y, 0, sp.pi))
DISK = pb.Disk((x, y), (0, 0), 1)


def drum(domain, *conditions):
    return pb.Problem(sp.Eq(-pb.laplacian(v), lam * v), domain, conditions or [pb.Dirichlet(v, 0)])


def assert_right(found, exact):
    assert found.status == "converged"
    assert np.all(np.abs(found.values - exact) <= 3 * found.errors + 1e-13)
    assert np.all(found.errors <= 1e-6 * (1 + np.abs(exact)))


def test_no_twin_is_lost_from_tree_to_tree():
    exact = np.pi**2 * np.sort([i**2 + j**2 for i in range(8) for j in range(8)])[:30]
    assert_right(pb.eigen(drum(pb.Rectangle((x, 0, 1), (y, 0, 1)), pb.Neumann(v, 0)), 30), exact)


def test_a_square_misses_none_of_its_double_eigenvalues():
    exact = np.sort([i**2 + j**2 for i in range(1, 7) for j in range(1, 7)])[:12]
    assert_right(pb.eigen(drum(SQUARE), 12), exact)


def test_a_disk_has_the_zeros_of_bessel_functions():
    exact = np.array([2.404825557695773, 3.831705970207512, 3.831705970207512, 5.135622301840683]) ** 2
    assert_right(pb.eigen(drum(DISK), 4), exact)


def test_a_free_membrane_begins_with_zero():
    exact = [0.0, 1.841183781340659**2, 1.841183781340659**2]
    assert_right(pb.eigen(drum(DISK, pb.Neumann(v, 0)), 3), exact)


def test_the_eigenvalue_may_stand_in_a_condition():
    steklov = pb.Problem(sp.Eq(pb.laplacian(v), 0), DISK, [pb.Condition(sp.Eq(pb.normal_derivative(v), lam * v))])
    found = pb.eigen(steklov, 5)
    assert np.allclose(found.values, [0, 1, 1, 2, 2], atol=1e-9)


def test_bound_states_lie_below_zero():
    well = pb.Problem(
        sp.Eq(-u.diff(x, 2) - 6 / sp.cosh(x) ** 2 * u, lam * u), pb.Interval((x, -12, 12)), [pb.Dirichlet(u, 0)]
    )
    assert np.allclose(pb.eigen(well, 2).values, [-4, -1], atol=1e-6)


def test_errors_are_not_below_rounding():
    # The shift lies so close to the first value that its distance from that is known to more digits than the value.
    slope = pb.Problem(sp.Eq(-u.diff(x, 2) + x * u, lam * u), pb.Interval((x, 0, 25)), [pb.Dirichlet(u, 0)])
    found = pb.eigen(slope, 2)
    assert np.all(np.abs(found.values + ai_zeros(2)[0]) <= found.errors)


def test_a_damped_string_has_complex_eigenvalues():
    string = pb.Problem(sp.Eq(lam**2 * u + lam * u / 2, u.diff(x, 2)), LINE, [pb.Dirichlet(u, 0)])
    found = pb.eigen(string, 4, near=-0.2)
    exact = [-0.25 + sign * 1j * np.sqrt(k**2 - 1 / 16) for k in (1, 2) for sign in (-1, 1)]
    assert max(min(abs(value - one) for one in exact) for value in found.values) < 1e-7
    assert found.imaginary[0] is not None


def test_values_near_a_complex_number_are_the_nearest_of_all():
    # Four pairs lie nearer to the real part of the number.
    string = pb.Problem(sp.Eq(lam**2 * u + lam * u / 2, u.diff(x, 2)), LINE, [pb.Dirichlet(u, 0)])
    found = pb.eigen(string, 1, near=-0.2 + 5j)
    assert_right(found, [-0.25 + 1j * np.sqrt(25 - 1 / 16)])


def test_complex_problems_have_no_conjugate_values():
    shifted = pb.Problem(sp.Eq(-PSI.diff(x, 2) + 3j * PSI, lam * PSI), LINE, [pb.Dirichlet(PSI, 0)])
    assert_right(pb.eigen(shifted, 3), [1 + 3j, 4 + 3j, 9 + 3j])


def test_complex_problems_have_every_value_once():
    # A ring with a flux through it.
    flux = sp.Rational(3, 10)
    way = PSI.diff(x) - sp.I * flux * PSI
    ring = pb.Problem(
        sp.Eq(-way.diff(x) + sp.I * flux * way, lam * PSI), pb.Interval((x, 0, 2 * sp.pi)), [pb.Periodic(PSI, x)]
    )
    found = pb.eigen(ring, 4)
    assert_right(found, [0.3**2, 0.7**2, 1.3**2, 1.7**2])
    values = found.solutions[1](x=np.linspace(0.0, 6.0, 7))
    assert np.allclose(values, values[0] * np.exp(1j * np.linspace(0.0, 6.0, 7)), atol=1e-6)
    assert abs(values[0]) == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-6)


def test_negative_operators_give_the_values_nearest_to_zero():
    found = pb.eigen(pb.Problem(sp.Eq(u.diff(x, 2), lam * u), LINE, [pb.Dirichlet(u, 0)]), 3)
    assert np.allclose(found.values, [-9, -4, -1], atol=1e-7)


def test_values_near_a_number_come_nearest_first():
    found = pb.eigen(drum(SQUARE), 3, near=9.2)
    assert np.allclose(found.values, [10, 10, 8], atol=1e-7)


def test_a_stiff_core_within_one_cell_is_seen():
    # On the circle between both materials, few moments of values and fluxes would leave each side to itself.
    core = pb.Disk((x, y), (0, 0), 0.5)
    stiff = pb.per_region({core: 4}, 1)
    membrane = pb.Problem(sp.Eq(-pb.div(stiff * pb.grad(v)), lam * v), DISK, [pb.Dirichlet(v, 0)])
    found = pb.eigen(membrane, 2, tol=1e-5)
    assert abs(found.values[0] - 6.344910819437) < 1e-4


def test_a_contact_resistance_lowers_the_eigenvalue():
    core = pb.Disk((x, y), (0, 0), 0.5)
    found = pb.eigen(drum(DISK, pb.Dirichlet(v, 0), pb.Interface(v, on=core, resistance=0.5)), 1, tol=1e-6)
    # Bessel functions on both sides: the same slope at the contact, and a jump of half of it.
    k = np.sqrt(found.values[0])
    r = k / 2
    rows = [
        [-k * j1(r), k * j1(r), k * y1(r)],
        [j0(r) - 0.5 * k * j1(r), -j0(r), -y0(r)],
        [0, j0(k), y0(k)],
    ]
    assert found.values[0] < 5.78
    assert abs(np.linalg.det(rows)) < 1e-5


def test_systems_share_one_eigenvalue():
    coupled = pb.Problem(
        [sp.Eq(-u.diff(x, 2) + w, lam * u), sp.Eq(-w.diff(x, 2) + u, lam * w)],
        LINE,
        [pb.Dirichlet(u, 0), pb.Dirichlet(w, 0)],
    )
    assert np.allclose(pb.eigen(coupled, 4).values, [0, 2, 3, 5], atol=1e-7)


def test_eigenfunctions_are_solutions_of_size_one():
    found = pb.eigen(pb.Problem(sp.Eq(-u.diff(x, 2), lam * u), LINE, [pb.Dirichlet(u, 0)]), 2)
    X = np.linspace(0.1, 3.0, 7)[:, None]
    shape = np.sqrt(2 / np.pi) * np.sin(2 * X[:, 0])
    values = found.solutions[1](X)
    assert np.allclose(values * np.sign(values[0] * shape[0]), shape, atol=1e-7)
    assert found.solutions[1].error_estimate < 1e-6


def test_the_same_call_gives_the_same_values():
    one, two = (pb.eigen(drum(SQUARE), 3) for _ in range(2))
    assert np.array_equal(one.values, two.values)


@pytest.mark.parametrize(
    ("equation", "value", "words"),
    [
        (sp.Eq(-u.diff(x, 2), lam * u), 1, "homogeneous"),
        (sp.Eq(-u.diff(x, 2) + u**2, lam * u), 0, "not linear"),
        (sp.Eq(-u.diff(x, 2), sp.sin(lam) * u), 0, "neither linearly nor quadratically"),
        (sp.Eq(-u.diff(x, 2), u), 0, "one eigenvalue"),
        (sp.Eq(-PSI.diff(x, 2) + sp.conjugate(PSI), lam * PSI), 0, "conjugated"),
    ],
)
def test_other_problems_are_refused_in_words(equation, value, words):
    with pytest.raises(pb.PiblsError, match=words):
        pb.eigen(pb.Problem(equation, LINE, [pb.Dirichlet(PSI if equation.has(sp.I) else u, value)]))


def test_solve_says_who_finds_eigenvalues():
    with pytest.raises(pb.PiblsError, match=r"pibls\.eigen"):
        pb.solve(drum(SQUARE))


FILE = """
eigenvalue = "lam"
equations = ["-u_xx = lam*u"]
[domain]
shape = "interval"
x = [0, 3.141592653589793]
[[conditions]]
kind = "dirichlet"
value = 0
"""


def test_the_command_line_tells_values_and_errors(tmp_path):
    path = tmp_path / "string.toml"
    path.write_text(FILE)
    done = CliRunner().invoke(
        app, ["eigen", str(path), "--number", "2", "--json", "--save", str(tmp_path / "mode.pibls")]
    )
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)["eigenvalues"]
    assert [round(one["real"], 7) for one in values] == [1.0, 4.0]
    assert pb.load(tmp_path / "mode-2.pibls")([[np.pi / 2]])[0] == pytest.approx(0.0, abs=1e-8)
    shown = CliRunner().invoke(app, ["eigen", str(path), "--near", "x"])
    assert shown.exit_code == 2
    assert "--near must be a number" in shown.output


def test_check_knows_problems_with_an_eigenvalue(tmp_path):
    path, wrong = tmp_path / "string.toml", tmp_path / "wrong.toml"
    path.write_text(FILE)
    wrong.write_text(FILE.replace("value = 0", "value = 1"))
    done = CliRunner().invoke(app, ["check", str(path), str(wrong)])
    assert "OK" in done.output
    assert "homogeneous" in done.output


def test_one_eigenvalue_is_found_as_well_as_many():
    # A shift that is too near to the only eigenvalue asked for would cost all its digits. Relative to the distance from
    # it, the tolerance would be more than an equation of fourth order has.
    plate = pb.Problem(
        sp.Eq(pb.laplacian(pb.laplacian(v)), lam * v),
        pb.Rectangle((x, 0, 1), (y, 0, 1)),
        [pb.Dirichlet(v, 0), pb.Neumann(v, 0)],
    )
    assert_right(pb.eigen(plate, 1), [1294.93397959171])


def test_a_drum_with_corners_of_several_kinds():
    drum = pb.Polygon((x, y), [(0, 0), (0, 1), (2, 3), (2, 2), (3, 2), (2, 1), (1, 1), (1, 0)])
    found = pb.eigen(pb.Problem(sp.Eq(-pb.laplacian(v), lam * v), drum, [pb.Dirichlet(v, 0)]), 2, tol=1e-4)
    assert found.status == "converged"
    assert np.all(np.abs(found.values - [10.1517759992, 14.62203885408]) <= 3 * found.errors)


def test_the_error_at_a_re_entrant_corner_is_known():
    corner = pb.Polygon((x, y), [(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)])
    found = pb.eigen(drum(corner), 4, tol=1e-6)
    assert_right(found, [9.6397238440219, 15.1972519264543, 2 * np.pi**2, 29.5214811141448])


def test_a_residual_that_both_trees_leave_is_part_of_the_error():
    search = EigenSearch(None, None, 0.0, None, 1, 1e-8, 0, None)
    here, better = (
        SimpleNamespace(values=np.array([value]), left=np.array([left]), missed=np.zeros(1))
        for value, left in ((10.0, 1e-5), (10.0 + 1e-12, 9e-6))
    )
    found = search.paired(here, better)
    assert found.errors[0] == 9e-6
    assert found.estimate == 9e-6 / (10.0 + 1e-12)


def test_cells_shrink_across_an_edge_and_not_along_it():
    tree = approached(
        Cell(np.zeros(3), np.ones(3), edges=np.array([[[0.0, 0, 0], [0, 0, 1]]])), {(0, 0, 0, 0, 0, 1): 0.1}, 50
    )
    sizes = np.array([leaf.size for leaf in leaves(tree)])
    assert sizes[:, 2].tolist() == [1.0] * 7
    assert sizes.min() == 1 / 16


def test_the_rounding_of_a_double_eigenvalue_is_stated():
    # Derivatives of fourth order lose digits on small cells, though residuals are small there.
    disk = pb.Disk((x, y), (0, 0), 1)
    plate = pb.Problem(sp.Eq(pb.laplacian(pb.laplacian(v)), lam * v), disk, [pb.Dirichlet(v, 0), pb.Neumann(v, 0)])
    found = pb.eigen(plate, 4)
    first, second, third = 104.363105558844, 452.004510133174, 1216.407599710232
    assert np.all(np.abs(found.values - [first, second, second, third]) <= 3 * found.errors)


def test_a_notebook_shows_the_values_with_their_errors():
    w, lam = pb.field("w", x), pb.eigenvalue("lam")
    string = pb.Problem(sp.Eq(-w.diff(x, 2), lam * w), pb.Interval((x, 0, sp.pi)), [pb.Dirichlet(w, 0)])
    found = pb.eigen(string, number=1)
    assert repr(found).startswith("Spectrum(converged, 1 eigenvalue)\n")
    assert "±" in found._repr_html_()
    assert "The estimated error" in found._repr_html_()
    assert "1 equation, 1 condition, " in repr(string)
