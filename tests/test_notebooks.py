"""What shows itself in notebooks: plain HTML without scripts, and pictures of domains with the names of their parts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from matplotlib.figure import Figure

import pibls as pb
from internals import Parameter, Parameters
from pibls.errors import InputError
from pibls.solution import Diagnostics, Residual

x, y, z, t = pb.coordinates("x y z t")
EVIL = "<script>alert(1)</script>"


def names(figure):
    return sorted(text.get_text() for text in figure.axes[0].texts)


@pytest.mark.parametrize(
    "shown",
    [
        Diagnostics(EVIL, {EVIL: EVIL}, 0, 1, 1, EVIL, None, None, {EVIL: Residual(1.0, 2.0, 3)}, {EVIL: 1.0}, EVIL),
        Parameter(EVIL, 1.0, 0.1, (0.8, 1.2)),
        Parameters((Parameter(EVIL, 1.0, 0.1, (0.8, 1.2)),), np.eye(1), (EVIL,)),
        pb.Quantity(1.0, 0.1, np.array([1.0, 2.0]), EVIL),
        pb.Interval((pb.coordinates("x"), 0, 1)),
    ],
    ids=["diagnostics", "parameter", "parameters", "quantity", "domain"],
)
def test_everything_is_escaped(shown):
    page = shown._repr_html_()
    assert "<script" not in page
    assert set(re.findall(r"</?(\w+)", page)) <= {"table", "tr", "th", "td", "p", "br", "img"}


def test_diagnostics_show_what_they_print():
    record = pb.solve(pb.problems.advection()).diagnostics
    cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", record._repr_html_())
    printed = [line.split(None, 1) for line in str(record).splitlines()]
    assert [cells[i] for i in range(0, len(cells), 2)] == [line[0] for line in printed]


def test_a_quantity_tells_value_error_and_place():
    page = pb.Quantity(324.82383, 2.1e-3, np.array([0.0, 5.0]))._repr_html_()
    assert re.findall(r"<td[^>]*>(.*?)</td>", page) == ["324.824", "0.0021", "0, 5"]


def test_a_domain_shows_its_bounds_and_its_picture():
    page = (pb.Rectangle((x, 0, 2), (y, -1, 1)) * pb.TimeInterval(t, 0, 5))._repr_html_()
    assert "0 ≤ x ≤ 2<br>-1 ≤ y ≤ 1<br>0 ≤ t ≤ 5" in page
    assert "src='data:image/png;base64," in page
    assert "img" not in pb.Ball((x, y, z), (0, 0, 0), 1)._repr_html_()


def test_edges_are_numbered_where_they_are():
    figure = pb.Polygon((x, y), [(0, 0), (4, 0), (4, 2), (0, 2)]).plot()
    assert names(figure) == ["edge0", "edge1", "edge2", "edge3"]
    places = {text.get_text(): text.xy for text in figure.axes[0].texts}
    np.testing.assert_allclose(places["edge0"], [2, 0])
    np.testing.assert_allclose(places["edge1"], [4, 1])


def test_each_part_has_one_name_and_pieces_without_name_are_drawn_too():
    plate = pb.Rectangle((x, 0, 2), (y, 0, 1)) - pb.Disk((x, y), (1, 0.5), 0.25)
    axes = Figure().subplots()
    assert plate.plot(ax=axes) is axes.figure
    assert names(axes.figure) == ["bottom", "left", "right", "top"]
    drawn = np.concatenate([np.asarray(segment) for segment in axes.collections[0].get_segments()])
    assert (np.abs(np.hypot(drawn[:, 0] - 1, drawn[:, 1] - 0.5) - 0.25) < 1e-9).sum() > 50


def test_lines_solids_and_clouds_are_drawn():
    assert names(pb.Interval((x, 0, 1)).plot()) == ["left", "right"]
    legend = pb.Cylinder((x, y, z), (0, 0, 0), (0, 0, 2), 0.5).plot().axes[0].get_legend()
    assert sorted(text.get_text().split()[0] for text in legend.get_texts()) == ["bottom", "side", "top"]
    cloud = pb.PointCloud((x, y), [[0.0, 0.0], [1.0, 0.5]])
    np.testing.assert_array_equal(cloud.plot().axes[0].collections[0].get_offsets(), [[0.0, 0.0], [1.0, 0.5]])
    with pytest.raises(InputError, match="4 coordinates of space cannot be drawn"):
        pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1), (t, 0, 1)).plot()
