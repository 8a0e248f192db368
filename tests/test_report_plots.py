from __future__ import annotations

import io
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
import sympy as sp
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from internals import View, choose_views, decades, magnitude_scale, value_scale
from pibls.errors import InputError, ProblemError
from pibls.geometry import (
    Ball,
    Cylinder,
    Disk,
    Interval,
    PointCloud,
    Polygon,
    Rectangle,
    Solid,
    TimeInterval,
    per_region,
)
from pibls.problem import Dirichlet, Problem, coordinates, div, field, grad, laplacian
from pibls.report import plot
from report_helpers import fitted

x, y, z, t = coordinates("x y z t")
PLATE = Rectangle((x, 0, 2), (y, 0, 1)) - Disk((x, y), (0.7, 0.5), 0.3)
N = 24


def make(domain, exact, *, known=True, nodes=40):
    u = field("u", *domain.coordinates)
    function = sp.lambdify(domain.coordinates, exact, "numpy")
    problem = Problem(sp.Eq(u, exact), domain, [], exact=exact if known else None)
    return fitted(problem, lambda X: function(*X.T) + 0 * X[:, 0], nodes=nodes, points=300)


@pytest.fixture(scope="module")
def line():
    return make(Interval((x, 0, 2)), sp.sin(3 * x), nodes=10)


@pytest.fixture(scope="module")
def square():
    return make(Rectangle((x, 0, 1), (y, -1, 2)), 1 + x * sp.exp(y))


@pytest.fixture(scope="module")
def plate():
    return make(PLATE, sp.sin(3 * x) * sp.cos(4 * y))


@pytest.fixture(scope="module")
def heat():
    return make(Interval((x, 0, 1)) * TimeInterval(t, 0, 2), sp.sin(sp.pi * x) * sp.exp(-t))


@pytest.fixture(scope="module")
def disk_in_time():
    return make(Disk((x, y), (0, 0), 1) * TimeInterval(t, 0, 3), sp.cos(x - t))


@pytest.fixture(scope="module")
def system():
    u, v = field("u", x, y), field("v", x, y)
    equations = [sp.Eq(u.diff(x), v), sp.Eq(v.diff(y), u), sp.Eq(u.diff(y) + v, 0)]
    problem = Problem(equations, Rectangle((x, 0, 1), (y, 0, 1)), [])
    return fitted(problem, lambda X: np.stack([X[:, 0], 1 + X[:, 1]], axis=1), nodes=20, points=300)


def titles(figure):
    return [axes.get_title() or axes.get_title(loc="left") for axes in figure.axes]


def image(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


def grid_points(*grids):
    return np.stack([g.ravel() for g in np.meshgrid(*grids)], axis=1)


def test_a_line_shows_the_values_of_the_solution_and_the_exact_ones_dashed(line):
    figure = plot(line, n=50)
    top, bottom = figure.axes
    grid = np.linspace(0, 2, 50)
    computed, exact = top.lines
    np.testing.assert_array_equal(computed.get_xdata(), grid)
    np.testing.assert_allclose(computed.get_ydata(), line(grid), rtol=1e-12)
    np.testing.assert_allclose(exact.get_ydata(), np.sin(3 * grid), atol=1e-15)
    assert exact.is_dashed()
    assert not computed.is_dashed()
    assert [text.get_text() for text in top.get_legend().get_texts()] == ["solution", "exact"]
    assert (top.get_xlabel(), top.get_ylabel()) == ("x", "u")
    np.testing.assert_allclose(bottom.lines[0].get_ydata(), np.abs(line(grid) - np.sin(3 * grid)), rtol=1e-9)
    assert bottom.get_yscale() == "log"
    assert titles(figure) == ["Solution u", "Absolute error of u"]


def test_titles_stay_short_enough_to_be_read(square):
    u, (x, y) = square.problem.fields[0], square.problem.domain.coordinates
    plain, long = sp.sqrt(u.diff(x) ** 2 + u.diff(y) ** 2), sum(k * u.diff(x, k) for k in range(9))
    assert plot(square, plain).axes[0].get_title() == "√(u_x² + u_y²)"
    assert plot(square, long).axes[0].get_title() == "expression of u"


def test_residuals_are_shown_on_request():
    found = make(Interval((x, 0, 2)), sp.sin(3 * x), known=False, nodes=10)
    assert titles(plot(found, n=40)) == ["Solution u"]
    figure = plot(found, n=40, residuals=True)
    grid = np.linspace(0, 2, 40)
    assert titles(figure) == ["Solution u", "Absolute residual of the equation"]
    assert len(figure.axes[0].lines) == 1
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), np.abs(found.residual()(grid)), rtol=1e-9)
    assert len(plot(found, exact=sp.sin(3 * x)).axes[0].lines) == 2


def test_a_map_shows_the_values_with_y_upwards(square):
    figure = plot(square, n=N)
    values, error = figure.axes
    points = grid_points(np.linspace(0, 1, N), np.linspace(-1, 2, N))
    np.testing.assert_allclose(image(values).ravel(), square(points), rtol=1e-12)
    truth = 1 + points[:, 0] * np.exp(points[:, 1])
    np.testing.assert_allclose(image(error).ravel(), np.abs(square(points) - truth), rtol=1e-6, atol=1e-15)
    assert values.images[0].origin == "lower"
    assert (values.get_xlabel(), values.get_ylabel()) == ("x", "y")
    assert (values.get_xlim(), values.get_ylim()) == ((0, 1), (-1, 2))
    assert values.get_aspect() == 1.0
    assert values.images[0].get_cmap().name == "viridis"
    assert isinstance(error.images[0].norm, LogNorm)


def test_signed_values_get_symmetric_colours(plate):
    picture = plot(plate, n=N).axes[0].images[0]
    assert picture.get_cmap().name == "RdBu_r"
    assert picture.norm.vmin == -picture.norm.vmax
    assert picture.norm.vmax >= np.nanmax(np.abs(image(plot(plate, n=N).axes[0])))


def test_outside_of_the_domain_is_cut_away(plate):
    n = 61
    axes = plot(plate, "exact", n=n).axes[0]
    points = grid_points(np.linspace(0, 2, n), np.linspace(0, 1, n))
    distance = np.hypot(points[:, 0] - 0.7, points[:, 1] - 0.5).reshape(n, n)
    values = image(axes)
    assert np.isnan(values[distance < 0.2]).all()
    inside = distance >= 0.3
    truth = (np.sin(3 * points[:, 0]) * np.cos(4 * points[:, 1])).reshape(n, n)
    np.testing.assert_allclose(values[inside], truth[inside], atol=1e-14)


def test_the_edge_of_a_hole_is_sharp_on_a_coarse_grid(plate):
    figure = plot(plate, "exact", exact=lambda X: 3.0 + 0 * X[:, 0], n=21)
    (axes,) = figure.axes
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=100)
    width, height = (round(side * 100) for side in figure.get_size_inches())
    pixels = np.frombuffer(buffer.getvalue(), dtype=np.uint8).reshape(height, width, 4)

    def is_white(*position):
        column, row = axes.transData.transform(position)
        return bool((pixels[height - 1 - int(row), int(column)] == 255).all())

    angles = np.linspace(0.1, 6.2, 20)
    assert all(is_white(0.7 + 0.26 * np.cos(a), 0.5 + 0.26 * np.sin(a)) for a in angles)
    assert not any(is_white(0.7 + 0.34 * np.cos(a), 0.5 + 0.34 * np.sin(a)) for a in angles)


def test_the_outline_lies_on_the_boundary_whatever_the_grid():
    for n in (15, 40):
        view = View(PLATE, (0, 1), {}, n)
        points = np.concatenate(view.outline)
        assert len(view.outline) == 2
        distance = np.minimum(
            np.abs(np.hypot(points[:, 0] - 0.7, points[:, 1] - 0.5) - 0.3),
            np.abs(points[:, [0, 0, 1, 1]] - [0, 2, 0, 1]).min(axis=1),
        )
        assert distance.max() < 1e-6
    assert View(Rectangle((x, 0, 1), (y, 0, 1)), (0, 1), {}, 9).outline == []


def test_the_outline_goes_round_once_and_round_holes_backwards():
    def area(curve):
        a, b = curve.T
        return 0.5 * np.sum(a[:-1] * b[1:] - a[1:] * b[:-1])

    outer, hole = sorted((area(curve) for curve in View(PLATE, (0, 1), {}, 200).outline), key=abs, reverse=True)
    assert abs(outer) == pytest.approx(2.0, rel=1e-6)
    assert hole / outer == pytest.approx(-np.pi * 0.09 / 2.0, rel=1e-3)


def test_an_l_shape_keeps_its_corner():
    shape = Polygon((x, y), [(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)])
    axes = plot(make(shape, x + y), "exact", n=81).axes[0]
    assert np.isnan(image(axes)[70, 70])
    outline = np.concatenate([line.get_xydata() for line in axes.lines])
    assert np.hypot(*(outline - 1).T).min() < 1.01 * 2 / 80


def test_space_and_time(heat):
    figure = plot(heat, n=N)
    picture, lines, error = figure.axes
    assert titles(figure) == ["Solution u", "Solution u for 5 values of t", "Absolute error of u"]
    assert (picture.get_xlabel(), picture.get_ylabel()) == ("x", "t")
    assert picture.get_aspect() == "auto"
    np.testing.assert_allclose(image(picture)[-1], heat(x=np.linspace(0, 1, N), t=2.0), rtol=1e-10, atol=1e-12)
    solid = [line for line in lines.lines if not line.is_dashed()]
    assert [line.get_label() for line in solid] == ["t = 0", "t = 0.5", "t = 1", "t = 1.5", "t = 2"]
    grid = np.linspace(0, 1, 2 * N)
    for line, time in zip(solid, (0, 0.5, 1, 1.5, 2), strict=True):
        np.testing.assert_allclose(line.get_ydata(), heat(x=grid, t=time), rtol=1e-10, atol=1e-12)
    dashed = [line for line in lines.lines if line.is_dashed()]
    np.testing.assert_allclose(dashed[2].get_ydata(), np.sin(np.pi * grid) * np.exp(-1.0), atol=1e-12)
    assert isinstance(error.images[0].norm, LogNorm)


def test_lines_at_times_of_ones_own(heat):
    figure = plot(heat, at={t: [0.5, 0.25]}, n=N)
    assert len(figure.axes) == 2
    assert [line.get_label() for line in figure.axes[1].lines] == ["t = 0.25", "t = 0.5"]
    (graph,) = plot(heat, "error", at={"x": 0.5}, n=N).axes
    assert graph.get_xlabel() == "t"
    assert graph.get_title() == "Absolute error of u at x = 0.5"


def test_two_space_dimensions_and_time_are_four_frames_with_one_scale(disk_in_time):
    figure = plot(disk_in_time, n=N)
    top, bottom = figure.axes[:4], figure.axes[4:]
    assert titles(figure)[:4] == ["Solution u\nt = 0", "t = 1", "t = 2", "t = 3"]
    assert len(bottom) == 4
    assert len({axes.images[0].norm for axes in top}) == 1
    assert [len(axes.child_axes) for axes in top] == [0, 0, 0, 1]
    points = np.array([[0.0, 0.0, time] for time in range(4)])
    middle = [image(axes)[N // 2 - 1 : N // 2 + 1, N // 2 - 1 : N // 2 + 1].mean() for axes in top]
    np.testing.assert_allclose(middle, disk_in_time(points), atol=5e-3)


def test_a_ball_is_cut_through_the_middle_or_where_asked():
    ball = make(Ball((x, y, z), (0, 0, 2), 1), x + sp.exp(z))
    figure = plot(ball, n=N)
    assert titles(figure) == ["Solution u at z = 2", "Absolute error of u at z = 2"]
    axes = plot(ball, at={"x": 0.6}, n=N).axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("y", "z")
    outline = axes.lines[0].get_xydata()
    np.testing.assert_allclose(np.hypot(outline[:, 0], outline[:, 1] - 2), 0.8, atol=1e-6)
    (graph,) = plot(ball, "exact", at={"x": 0, "y": 0}, n=N).axes
    np.testing.assert_allclose(graph.lines[0].get_ydata(), np.exp(np.linspace(1, 3, N)), rtol=1e-12)


def test_more_coordinates_and_time_show_the_middle():
    views = choose_views(Ball((x, y, z), (0, 0, 0), 1) * TimeInterval(t, 0, 3), {"t": 1}, 5, "plot")
    assert [view.place for view in views] == ["z = 0, t = 1"]


def test_several_fields_stand_side_by_side(system):
    figure = plot(system, n=8, residuals=True)
    assert titles(figure) == [
        "Solution u",
        "Solution v",
        "Absolute residual of equation 1",
        "Absolute residual of equation 2",
        "Absolute residual of equation 3",
    ]
    v = system.problem.fields[1]
    exact = {"u": x, "v": lambda X: 1 + X[:, 1]}
    assert titles(plot(system, field=v, n=8, exact=exact)) == ["Solution v", "Absolute error of v"]
    both = plot(system, "exact", n=8, exact=lambda X: {"v": X[:, 0], "u": X[:, 1]})
    np.testing.assert_allclose(image(both.axes[1])[3], np.linspace(0, 1, 8))
    np.testing.assert_allclose(image(both.axes[0])[:, 3], np.linspace(0, 1, 8))


def test_residual_map(square):
    (axes,) = plot(square, "residual", n=N).axes
    points = grid_points(np.linspace(0, 1, N), np.linspace(-1, 2, N))
    np.testing.assert_allclose(image(axes).ravel(), np.abs(square.residual()(points)), rtol=1e-9)


def test_a_vanishing_error_can_be_drawn(square, line):
    for found in (square, line):
        figure = plot(found, "error", exact=lambda X, found=found: found(X), n=N)
        figure.draw_without_rendering()
    assert image(plot(square, "error", exact=square, n=N).axes[0]).max() == 0.0


def test_points_where_an_expression_is_not_finite_are_left_out(square):
    (axes,) = plot(square, "exact", exact=1 / x, n=N).axes
    assert np.nanmax(image(axes)) == pytest.approx(N - 1)
    with pytest.raises(ProblemError, match="not finite"):
        plot(square, "exact", exact=sp.log(-1 - x), n=3)


def test_a_function_may_return_one_number(square):
    assert (image(plot(square, "exact", exact=lambda X: 2.0, n=4).axes[0]) == 2.0).all()


def test_contour_lines(square):
    (axes,) = plot(square, "exact", levels=[2.0, 1.5], n=N).axes
    np.testing.assert_array_equal(axes.collections[0].levels, [1.5, 2.0])
    assert len(plot(square, "exact", levels=5, n=N).axes[0].collections) == 1
    assert len(plot(square, "error", levels=5, n=N).axes[0].collections) == 0


def test_a_point_cloud_is_drawn_point_by_point():
    X = Rectangle((x, 0, 1), (y, 0, 1)).sample(50)
    u = field("u", x, y)
    found = fitted(
        Problem(sp.Eq(u, x * y), PointCloud((x, y), X), []), lambda X: X[:, 0] * X[:, 1], nodes=20, points=50
    )
    dots = plot(found).axes[0].collections[0]
    positions = np.asarray(dots.get_offsets())
    np.testing.assert_allclose(np.asarray(dots.get_array()), found(positions), rtol=1e-12)
    assert {tuple(p) for p in positions} == {tuple(p) for p in X}
    with pytest.raises(InputError, match="cannot slice a point cloud"):
        plot(found, at={"x": 0.5})


def test_a_point_cloud_on_a_line_is_sorted():
    u = field("u", x)
    cloud = PointCloud((x,), [[0.5], [0.1], [0.9]])
    found = fitted(Problem(sp.Eq(u, x), cloud, []), lambda X: X, nodes=3, points=3)
    graph = plot(found).axes[0].lines[0]
    np.testing.assert_array_equal(graph.get_xdata(), [0.1, 0.5, 0.9])
    np.testing.assert_allclose(graph.get_ydata(), found([0.1, 0.5, 0.9]), rtol=1e-12)


def test_a_strip_is_not_drawn_to_scale():
    found = make(Rectangle((x, 0, 100), (y, 0, 1)), x + y)
    assert plot(found, "exact", n=N).axes[0].get_aspect() == "auto"


def boxes(figure):
    figure.draw_without_rendering()
    return [axes.get_position() for axes in figure.axes]


def test_maps_of_a_channel_stand_one_above_the_other_and_use_the_width():
    figure = plot(make(Rectangle((x, 0, 10), (y, 0, 1)), x + y), n=N)
    upper, lower = boxes(figure)
    assert [axes.get_aspect() for axes in figure.axes] == [1.0, 1.0]
    assert upper.y0 > lower.y1
    assert min(upper.width, lower.width) > 0.75
    left, right = boxes(plot(make(Rectangle((x, 0, 1), (y, 0, 10)), x + y), n=N))
    assert left.x1 < right.x0


def test_frames_of_a_channel_have_their_errors_beside_them():
    found = make(Rectangle((x, 0, 5), (y, 0, 1)) * TimeInterval(t, 0, 3), x + y - t)
    figure = plot(found, n=N)
    places = boxes(figure)
    assert titles(figure)[:2] == ["Solution u: t = 0", "Absolute error of u: t = 0"]
    assert places[0].x1 < places[1].x0
    assert [places[i].y0 for i in range(0, 8, 2)] == sorted((places[i].y0 for i in range(0, 8, 2)), reverse=True)


def test_given_axes(square):
    figure = Figure()
    pair = figure.subplots(1, 2)
    assert plot(square, axes=pair, n=N) is figure
    assert pair[1].get_title() == "Absolute error of u"
    (single,) = Figure().subplots(1, 1, squeeze=False)[0]
    assert plot(square, "residual", axes=single, n=N) is single.figure
    for wrong in (single, "axes", [1, 2]):
        with pytest.raises(InputError, match="'axes' parameter of plot must be 2 Matplotlib axes"):
            plot(square, axes=wrong, n=N)


def test_nothing_global_is_touched_and_notebooks_get_a_picture():
    code = (
        "import sys, pibls.report\n"
        "assert 'matplotlib.figure' not in sys.modules\n"
        "import pibls.report.figure_panels\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    before = dict(mpl.rcParams)
    figure = plot(make(Interval((x, 0, 1)), x), n=5)
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"what": "solutoin"}, "'what' parameter of plot must be one of 'solution'"),
        ({"field": "w"}, "'field' parameter of plot must be one of the fields u"),
        ({"what": "residual", "field": "u"}, "residuals belong to equations"),
        ({"at": 0.5}, "'at' parameter of plot must be a mapping"),
        ({"at": {"q": 0.5}}, "may fix x, y"),
        ({"at": {"x": 5}}, r"at\['x'\].*The domain goes from 0 to 1"),
        ({"at": {"x": "a"}}, r"at\['x'\]"),
        ({"at": {"x": []}}, "has no value for x"),
        ({"at": {"x": [0, 1], "y": [0, 1]}}, "several values for one coordinate only"),
        ({"at": {"x": 0, "y": 0}}, "fixes every coordinate"),
        ({"n": 1}, "'n' parameter of plot"),
        ({"levels": "many"}, "'levels' parameter of plot"),
        ({"levels": 0}, "'levels' parameter of plot"),
        ({"levels": [1, "a"]}, "'levels' parameter of plot"),
        ({"exact": [1.0, 2.0]}, "'exact' parameter of plot must be an expression"),
        ({"exact": sp.Symbol("q")}, "expression of the coordinates"),
        ({"exact": lambda X: X[:, 7]}, "'exact' parameter of plot raised IndexError"),
        ({"exact": lambda X: [1.0]}, "one per point"),
    ],
)
def test_refusals(square, options, message):
    with pytest.raises(InputError, match=message):
        plot(square, n=options.pop("n", 4), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"along": ((0, 0), (0, 0))}, "'along' parameter of plot must be two different points of 2 numbers"),
        ({"along": "x"}, "'along' parameter of plot"),
        ({"along": ((5, 5), (6, 5))}, r"has no points in .* from \(5, 5\) to \(6, 5\)"),
        ({"along": ((0, 0), (1, 1)), "at": {"x": 0.5}}, "'at' may fix the time alone"),
        ({"along": ((0, 0), (1, 1)), "arrows": (x, y)}, "'arrows' parameter of plot is for maps of two coordinates"),
        ({"arrows": x}, "'arrows' parameter of plot must be a pair"),
        ({"streamlines": (x, 1)}, "'streamlines' parameter of plot must be a pair"),
        ({"deformed": "much"}, "'deformed' parameter of plot"),
        ({"deformed": 2.0}, r"a displacement along each of x, y, .* such as deformed=\(u, v\)"),
        ({"extremes": 1}, "'extremes' parameter of plot must be True or False"),
        ({"residuals": "all"}, "'residuals' parameter of plot must be True or False"),
        ({"label": 3}, "'label' parameter of plot must be a text"),
        ({"cmap": "rainbows"}, "'cmap' parameter of plot must be the name of a Matplotlib colour map"),
        ({"what": x, "field": "u"}, "'field' parameter of plot has no meaning for an expression"),
        ({"what": "estimate"}, "no estimated error at points"),
        ({"what": "deviation"}, "no standard deviation"),
        ({"ax": 3}, "'axes' parameter of plot must be 1 Matplotlib axes"),
    ],
)
def test_refusals_of_overlays(square, options, message):
    with pytest.raises(InputError, match=message):
        plot(square, n=4, **options)


def test_refusals_that_need_a_problem_of_their_own(system):
    for what in ("error", "exact"):
        with pytest.raises(InputError, match=r"no exact solution. Give one as plot\(..., exact=expression\)"):
            plot(system, what)
    with pytest.raises(InputError, match="must be a Solution"):
        plot(lambda X: X)
    ring = Rectangle((x, 0, 1), (y, 0, 1)) - Rectangle((x, 0.4, 0.6), (y, -1, 2))
    with pytest.raises(InputError, match=r"slice x = 0.5 of .* has no points"):
        plot(make(ring, x), at={"x": 0.5})


def test_colour_scales():
    assert value_scale(np.array([-1e-6, 1.0])).colours == "viridis"
    assert value_scale(np.array([-3.0, -1.0])).norm.vmin == -3.0
    assert value_scale(np.array([0.0, 0.99985])).norm.vmax == 1.0
    assert value_scale(np.array([0.0, 0.9])).norm.vmax == pytest.approx(0.9)
    for constant in (0.0, 5.0, -5.0):
        norm = value_scale(np.full(3, constant)).norm
        assert norm.vmin < constant < norm.vmax
    assert decades(np.zeros(4)) is None
    assert decades(np.array([2.0, 2.0, np.nan])) == (0.2, 2.0)
    norm = magnitude_scale(np.array([0.0, 1.0])).norm
    assert not np.ma.is_masked(norm(np.array([0.0])))
    assert float(norm(np.array([0.0]))[0]) == 0.0


def test_materials_are_outlined_where_the_coefficient_jumps():
    u = field("u", x, y)
    steel = Disk((x, y), (1.4, 0.5), 0.2)
    equation = sp.Eq(div(per_region({steel: 50}, 1) * grad(u)), 0)
    problem = Problem(equation, PLATE, [Dirichlet(u, x)])
    figure = fitted(problem, lambda X: X[:, 0], nodes=10, points=60).plot(n=N)
    for axes in figure.axes[:2]:
        (lines,) = (entry for entry in axes.collections if isinstance(entry, LineCollection))
        (curve,) = lines.get_segments()
        # On the circle at every crossing of a grid line, and all around it.
        np.testing.assert_allclose(np.hypot(curve[:, 0] - 1.4, curve[:, 1] - 0.5), 0.2, atol=1e-7)
        np.testing.assert_allclose(curve[0], curve[-1])
    plain = fitted(Problem(sp.Eq(laplacian(u), 0), PLATE, [Dirichlet(u, x)]), lambda X: X[:, 0], nodes=10, points=60)
    assert not any(isinstance(entry, LineCollection) for entry in plain.plot(n=N).axes[0].collections)


@pytest.mark.parametrize(
    "solid",
    [
        Ball((x, y, z), (0, 0, 0), 1),
        Cylinder((x, y, z), (0, 0, 0), (1, 1, 1), 0.5),
        Solid((x, y, z), [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 3)], [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]),
    ],
    ids=["ball", "cylinder", "triangles"],
)
def test_surfaces_are_coloured_by_the_solution(solid):
    solution = make(solid, 2 + x, nodes=15)
    figure = plot(solution, surface=True, n=30)
    axes = figure.axes[0]
    (faces,) = axes.collections
    assert axes.get_title() == "Solution u"
    facets = np.concatenate([patch.facets(12) for patch in solid.boundary.patches if patch.parameters == 2])
    one, two = np.cross(facets[:, 1] - facets[:, 0], facets[:, 2] - facets[:, 0]), 0.0
    if facets.shape[1] == 4:
        two = np.cross(facets[:, 2] - facets[:, 0], facets[:, 3] - facets[:, 0])
    assert np.linalg.norm(one + two, axis=1).sum() / 2 == pytest.approx(solid.boundary.measure, rel=0.05)
    assert solid.boundary.contains(facets.reshape(-1, 3)).all()
    assert len(faces.get_facecolor()) > 100
    figure.savefig(io.BytesIO(), format="png")


def test_surfaces_are_for_solids_in_space(square, heat):
    for solution in (square, heat):
        with pytest.raises(InputError, match="'surface' parameter of plot is for solids in three coordinates"):
            plot(solution, surface=True)
    with pytest.raises(InputError, match="'surface' parameter of plot must be True or False"):
        plot(square, surface="yes")
