"""Pictures with options: expressions, estimated errors, arrows, streamlines, deformed shapes, cuts, marks and words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from matplotlib.collections import LineCollection, TriMesh
from matplotlib.figure import Figure
from matplotlib.quiver import Quiver

import pibls as pb
from internals import lettered, value_scale
from pibls.errors import InputError
from pibls.problem import Problem, coordinates, field
from pibls.report import plot
from report_helpers import fitted

x, y, t = coordinates("x y t")
u, v = field("u", x, y), field("v", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
N = 31


@pytest.fixture(scope="module")
def solved():
    return pb.solve(Problem(sp.Eq(pb.laplacian(u), -1), SQUARE, [pb.Dirichlet(u, x * y)]), tol=1e-6)


@pytest.fixture(scope="module")
def body():
    shape = SQUARE - pb.Disk((x, y), (0.5, 0.5), 0.2)
    problem = Problem([sp.Eq(u, 0.01 * x), sp.Eq(v, -0.02 * x)], shape, [])
    return fitted(
        problem, lambda X: np.stack([0.01 * X[:, 0], -0.02 * X[:, 0]], axis=1), nodes=150, points=600, scale=1.0
    )


def image(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan).ravel()


def grid():
    side = np.linspace(0, 1, N)
    return np.stack([g.ravel() for g in np.meshgrid(side, side)], axis=1)


def words(axes):
    return [entry.get_text() for entry in axes.texts]


def test_the_second_panel_is_the_estimated_error(solved):
    figure = plot(solved, n=N)
    assert [axes.get_title() for axes in figure.axes] == ["Solution u", "Estimated error of u"]
    np.testing.assert_allclose(image(figure.axes[1]), solved.error_field(grid()), rtol=1e-9)
    (alone,) = plot(solved, "estimate", n=N).axes
    np.testing.assert_array_equal(image(alone), image(figure.axes[1]))


def test_every_figure_tells_status_and_estimate(solved):
    estimate = f"converged, estimated error {solved.error_estimate:.0e}"
    assert plot(solved, n=N).get_supxlabel() == estimate
    assert plot(replace(solved, error_estimate=None), n=N).get_supxlabel() == "converged, no error estimate"
    stalled = replace(solved, status="stalled")
    axes = Figure().subplots()
    plot(stalled, ax=axes, n=N)
    assert axes.get_title() == f"Solution u\n{estimate.replace('converged', 'stalled')}"
    plot(solved, ax=axes, n=N)
    assert axes.get_title() == "Solution u"


def test_an_expression_is_drawn_with_its_own_error(solved):
    slope = sp.sqrt(u.diff(x) ** 2 + u.diff(y) ** 2) + x
    figure = plot(solved, slope, n=N)
    assert [axes.get_title() for axes in figure.axes] == ["x + √(u_x² + u_y²)", "Estimated error of x + √(u_x² + u_y²)"]
    network, weights = solved.richer
    richer = replace(solved, network=network, weights=weights, richer=None)
    here, there = (
        np.hypot(*own.evaluate(grid(), [("u", (1, 0)), ("u", (0, 1))])) + grid()[:, 0] for own in (solved, richer)
    )
    np.testing.assert_allclose(image(figure.axes[0]), here, rtol=1e-12)
    np.testing.assert_allclose(image(figure.axes[1]), np.abs(here - there), rtol=1e-6, atol=1e-14)
    assert plot(solved, u, n=N).axes[0].get_title() == "Solution u"


def test_complex_values_are_refused_and_their_parts_drawn():
    psi = field("psi", x, complex=True)
    ends = [pb.Dirichlet(psi, 1)]
    found = pb.solve(Problem(sp.Eq(psi.diff(x, 2) + psi, sp.I * x), pb.Interval((x, 0, 1)), ends), tol=1e-4)
    with pytest.raises(InputError, match=r"complex values. Draw its real part with sympy.re"):
        plot(found, psi.diff(x), n=N)
    axes = plot(found, sp.Abs(psi), n=N).axes[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), np.abs(found(np.linspace(0, 1, N)[:, None])), rtol=1e-9)


def test_one_field_on_axes_of_ones_own_with_words_and_colours(solved):
    one, other = Figure().subplots(1, 2)
    figure = plot(solved, u.diff(x), ax=other, cmap="cividis", label="Slope", unit="1/m", n=N)
    assert figure is one.figure
    assert not one.images
    assert other.get_title() == "Slope"
    assert other.images[0].get_cmap().name == "cividis"
    assert other.child_axes[0].get_ylabel() == "1/m"
    graph = plot(solved, along=((0, 0), (1, 1)), unit="K", n=N).axes[0]
    assert graph.get_ylabel() == "u  [K]"


def test_ax_takes_one_quantity(body):
    axes = Figure().subplots()
    with pytest.raises(InputError, match=r"'ax' parameter of plot takes one map or graph. Got 2 fields"):
        plot(body, ax=axes, n=N)
    with pytest.raises(InputError, match=r"'label' parameter of plot names one quantity. Got 2"):
        plot(body, label="both", n=N)
    plot(body, field="v", ax=axes, n=N)
    assert len(axes.images) == 1


def test_contours_say_their_values_and_keep_off_the_edge(solved):
    axes = plot(solved, levels=4, n=N).axes[0]
    assert set(words(axes)) == {"0.25", "0.5", "0.75"}


def test_arrows_show_direction_and_length(body):
    (axes,) = plot(body, arrows=(u, v), n=N).axes
    assert axes.get_title() == "|(u, v)|"
    inside = np.isfinite(image(axes))
    held = body.problem.domain.contains(grid())
    np.testing.assert_allclose(image(axes)[inside & held], np.hypot(0.01, 0.02) * grid()[inside & held, 0], atol=1e-8)
    (arrows,) = (entry for entry in axes.collections if isinstance(entry, Quiver))
    np.testing.assert_allclose(arrows.V / arrows.U, -2.0, rtol=1e-4)
    assert body.problem.domain.contains(np.stack([arrows.X, arrows.Y], axis=1)).all()
    assert plot(body, field="u", arrows=(u, v), n=N).axes[0].get_title() == "Solution u"


def test_streamlines_follow_the_field(body):
    (axes,) = plot(body, streamlines=(u, v), n=N).axes
    lines = next(entry for entry in axes.collections if isinstance(entry, LineCollection))
    steps = np.concatenate([np.diff(np.asarray(segment), axis=0) for segment in lines.get_segments()])
    steps = steps[np.hypot(*steps.T) > 1e-6]
    np.testing.assert_allclose(steps[:, 1], -2.0 * steps[:, 0], atol=1e-4)


def test_a_deformed_body_is_where_displacements_take_it(body):
    axes = plot(body, field="u", deformed=10, n=N).axes[0]
    (mesh,) = (entry for entry in axes.collections if isinstance(entry, TriMesh))
    drawn = np.stack([mesh._triangulation.x, mesh._triangulation.y], axis=1)[grid()[:, 0] == 1.0]
    np.testing.assert_allclose(drawn, [[1.1, side - 0.2] for side in np.linspace(0, 1, N)], atol=1e-6)
    assert axes.get_xlabel() == "x   (deformation × 10)"
    assert "deformation × 2)" in plot(body, field="u", deformed=True, n=N).axes[0].get_xlabel()
    with pytest.raises(InputError, match="Draw two pictures"):
        plot(body, deformed=True, levels=3, n=N)


def test_a_cut_goes_from_one_point_to_the_other(solved):
    top, bottom = plot(solved, along=((0, 1), (1, 0)), n=N).axes
    share = np.linspace(0, 1, N)
    places = np.stack([share, 1 - share], axis=1)
    np.testing.assert_allclose(top.lines[0].get_xdata(), np.sqrt(2) * share, rtol=1e-12)
    # The diagonal runs through corners of cells: rounding decides which of them a point belongs to.
    np.testing.assert_allclose(top.lines[0].get_ydata(), solved(places), atol=1e-8)
    np.testing.assert_allclose(bottom.lines[0].get_ydata(), solved.error_field(places), rtol=1e-6, atol=1e-8)
    assert top.get_xlabel() == "distance from (0, 1) towards (1, 0)"


def test_a_cut_of_an_evolution_shows_several_times():
    w = field("w", x, t)
    domain = pb.Interval((x, 0, 1)) * pb.TimeInterval(t, 0, 2)
    found = fitted(Problem(sp.Eq(w, x * t), domain, []), lambda X: X[:, 0] * X[:, 1], nodes=150, scale=1.0)
    (axes,) = plot(found, along=([0.25], [0.75]), at={"t": [1, 2]}, n=N).axes
    assert [line.get_label() for line in axes.lines] == ["t = 1", "t = 2"]
    np.testing.assert_allclose(axes.lines[1].get_ydata(), np.linspace(0.5, 1.5, N), atol=1e-5)
    assert axes.get_title() == "Solution w for 2 values of t"


def test_extremes_are_found_between_the_points_of_the_grid():
    w = field("w", x, y)
    bump = sp.exp(-3 * ((x - 0.41) ** 2 + (y - 0.63) ** 2))
    found = fitted(
        Problem(sp.Eq(w, bump), SQUARE, []), lambda X: sp.lambdify((x, y), bump)(*X.T), nodes=150, points=1500
    )
    axes = plot(found, extremes=True, n=8).axes[0]
    assert words(axes)[0] == "max 1"
    np.testing.assert_allclose(axes.lines[0].get_xydata(), [[0.41, 0.63]], atol=2e-3)
    graph = plot(found, at={"y": 0.63}, extremes=True, n=8).axes[0]
    np.testing.assert_allclose(graph.lines[1].get_xydata(), [[0.41, 1.0]], atol=2e-3)


def test_extremes_have_their_error_where_it_shows_in_four_digits(solved):
    slope = plot(solved, u.diff(x), extremes=True, n=N).axes[0]
    place = slope.lines[0].get_xydata()
    assert words(slope)[0] == f"max {solved.value(u.diff(x))(place)[0]:.4g}"
    rough = pb.solve(Problem(sp.Eq(-pb.laplacian(u), sp.exp(6 * x)), SQUARE, [pb.Dirichlet(u, 0)]), tol=1e-1)
    slope = plot(rough, u.diff(x, 2), extremes=True, n=N).axes[0]
    value, error = (float(word) for word in words(slope)[0].removeprefix("max ").split(" ± "))
    place = slope.lines[0].get_xydata()
    assert value == pytest.approx(rough.value(u.diff(x, 2))(place)[0], abs=error)
    assert error == pytest.approx(rough.value(u.diff(x, 2)).error(place)[0], rel=0.05)


def test_uncertain_solutions_have_a_band_or_a_map_of_deviations():
    load, w = pb.unknown("load", prior=(2.0, 0.3)), field("w", x)
    problem = Problem(-w.diff(x, 2) - load, pb.Interval((x, 0, 1)), [pb.Dirichlet(w, 0)])
    found = pb.solve(problem, uncertainty=True)
    axes = plot(found, n=21).axes[0]
    assert [entry.get_text() for entry in axes.get_legend().get_texts()] == ["95 % band", "solution"]
    band = axes.collections[0].get_paths()[0].vertices
    low, high = found.credible_band([[0.5]])
    assert band[:, 1].max() == pytest.approx(high[0], rel=1e-9)
    (deviation,) = plot(found, "deviation", n=21).axes
    np.testing.assert_allclose(deviation.lines[0].get_ydata()[10], (high - low)[0] / 2 / 1.959964, rtol=1e-6)


def test_greek_letters():
    phi = field("phi", sp.Symbol("theta", real=True))
    theta = phi.args[0]
    found = fitted(Problem(sp.Eq(phi, theta), pb.Interval((theta, 0, 1)), []), lambda X: X, nodes=5, points=30)
    (axes,) = plot(found, n=5).axes
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("Solution φ", "θ", "φ")
    assert lettered("lambda_") == "λ"


def test_a_peak_does_not_hide_the_rest():
    values = np.concatenate([np.linspace(1.0, 2.0, 1000), [500.0]])
    scale = value_scale(values, steep=True)
    assert scale.extend == "max"
    assert 2.0 <= scale.norm.vmax < 5.0
    assert (value_scale(values).norm.vmax, value_scale(values).extend) == (500.0, "neither")
    assert value_scale(np.linspace(-1.0, 1.0, 50), steep=True).extend == "neither"


def test_streamlines_are_as_dense_on_a_long_map_as_on_a_square_one():
    channel = pb.Rectangle((x, 0, 10), (y, 0, 1))
    along = fitted(Problem([sp.Eq(u, 1), sp.Eq(v, 0)], channel, []), lambda X: X * 0 + [1, 0], nodes=10, points=50)
    lines = next(own for own in plot(along, streamlines=(u, v), n=N).axes[0].collections if len(own.get_segments()) > 9)
    heights = {round(float(segment[0, 1]), 3) for segment in lines.get_segments()}
    assert len(heights) > 8


def test_words_beside_marks_stay_on_the_map(solved):
    axes = plot(solved, -((x - 0.4) ** 2) - y**2, n=N, extremes=True).axes[0]
    assert [words_.get_ha() for words_ in axes.texts] == ["left", "right"]


def test_a_slim_deformed_body_leaves_room_for_the_words_of_the_next_panel():
    strip = pb.Rectangle((x, 0, 20), (y, 0, 1))
    bent = fitted(Problem([sp.Eq(u, 0), sp.Eq(v, x**2)], strip, []), lambda X: np.stack([0 * X[:, 0], X[:, 0] ** 2], 1))
    figure = plot(bent, deformed=(u, v), n=N)
    figure.draw_without_rendering()
    above, below = figure.axes[0].xaxis.label, figure.axes[1].title
    assert below.get_window_extent().y1 < above.get_window_extent().y0 - 8  # pixels


def test_the_picture_of_a_solid_tells_where_each_part_is():
    z = coordinates("z")
    legend = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), 1).plot().axes[0].get_legend()
    told = [entry.get_text().split("   ") for entry in legend.get_texts()]
    assert told == [["bottom", "(0, 0, 0)"], ["side", "(0, 0, 1)"], ["top", "(0, 0, 2)"]]


def test_a_surface_has_the_unit_and_the_colours_that_were_asked_for():
    z = coordinates("z")
    w = field("w", x, y, z)
    box = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1))
    warm = fitted(Problem(sp.Eq(w, x), box, []), lambda X: X[:, 0], nodes=20, points=100)
    bar = plot(warm, surface=True, unit="°C", cmap="cividis", n=4).axes[-1]
    assert bar.get_ylabel() == "°C"
    assert bar._colorbar.cmap.name == "cividis"


def test_frames_say_once_what_is_the_same_in_all_of_them():
    z = coordinates("z")
    w = field("w", x, y, z, t)
    box = pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) * pb.TimeInterval(t, 0, 3)
    warm = fitted(Problem(sp.Eq(w.diff(t), 0), box, []), lambda X: X[:, 0], nodes=20, points=100)
    titles = [axes.get_title(loc="left") for axes in plot(warm, n=4).axes[:4]]
    assert titles == ["Solution w at z = 0.5\nt = 0", "t = 1", "t = 2", "t = 3"]
