"""What lies in cells: parts, faces and boundary pieces together are the domain, however it is cut."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Layout, contacts, draw_reference, leaves, refined

x, y, z, t = pb.coordinates("x y z t")
angle = sp.Symbol("angle")


def domains():
    square = pb.Rectangle((x, -1, 1), (y, -1, 1))
    disk = pb.Disk((x, y), (0.1, -0.2), 0.7)
    return {
        "disk": disk,
        "corner": square - pb.Rectangle((x, 0.13, 1), (y, -1, 0.27)),
        "annulus": disk - pb.Disk((x, y), (0.1, -0.2), 0.3),
        "star": pb.Star((x, y), 1 + sp.cos(5 * angle) / 8),
        "plate": square - pb.Disk((x, y), (0.1, -0.2), 0.57),
        "holes": square - pb.Disk((x, y), (-0.6, -0.6), 0.2) - pb.Disk((x, y), (0.6, 0.6), 0.2),
        "cavity": pb.Box((x, 0, 1), (y, 0, 1), (z, 0, 1)) - pb.Ball((x, y, z), (0.4, 0.5, 0.6), 0.3),
        "timed": (square - disk) * pb.TimeInterval(t, 0, 2),
    }


PLANE = ["disk", "corner", "annulus", "star", "plate"]
SOLID = ["cavity", "timed"]


def layout_of(domain, degree=None):
    u = pb.field("u", *domain.coordinates)
    d = len(domain.coordinates)
    conditions = [pb.Dirichlet(u, 0)] + ([pb.Initial(u, 0)] if domain.time is not None else [])
    problem = pb.Problem(pb.laplacian(u) + 1, domain, conditions)
    return Layout(problem, draw_reference(d, degree or {2: 7, 3: 4}[d]))


def split(root, times, seed=0):
    """Split all cells, then half of them again and again."""
    rng = np.random.default_rng(seed)
    d = len(root.low)
    root = refined(root, {root: [(axis, None) for axis in range(d)]})
    for _ in range(times):
        chosen = [cell for cell in leaves(root) if rng.random() < 0.5]
        root = refined(root, {cell: [(int(rng.integers(d)), None)] for cell in chosen})
    return root


def parts_of(layout, root):
    return [part for cell in leaves(root) for part in layout.parts(cell)]


def boundary_size(layout, root):
    """Size of what carries the first condition, over all cells."""
    place = next(s.place for s in layout.problem.statements if not s.is_equation)
    return sum(float(part.boundary[place].weights.sum()) for part in parts_of(layout, root) if place in part.boundary)


@pytest.mark.parametrize("name", PLANE)
def test_areas_of_parts_sum_up_to_that_of_the_domain(name):
    domain = domains()[name]
    layout = layout_of(domain)
    for times in (0, 4):
        parts = parts_of(layout, split(layout.root, times))
        assert sum(float(part.integrals.sum()) for part in parts) == pytest.approx(domain.measure, rel=5e-4)
        assert sum(part.volume for part in parts) == pytest.approx(domain.measure, rel=0.01)
    # Moments too, against points drawn from the domain itself.
    X, weights = domain.quadrature(200_000)
    expected = weights @ (X[:, 0] ** 2 * X[:, 1] + X[:, 0])
    own = (layout.quadrature(part) for part in parts)
    assert sum(w @ (P[:, 0] ** 2 * P[:, 1] + P[:, 0]) for P, w in own) == pytest.approx(
        expected, abs=2e-3 * domain.measure
    )


@pytest.mark.parametrize("name", SOLID)
def test_volumes_of_parts_sum_up_to_that_of_the_domain(name):
    domain = domains()[name]
    layout = layout_of(domain)
    for times in (0, 3):
        parts = parts_of(layout, split(layout.root, times))
        assert sum(part.volume for part in parts) == pytest.approx(domain.measure, rel=1e-4)
        assert sum(float(part.integrals.sum()) for part in parts) == pytest.approx(domain.measure, rel=1e-4)


def test_a_sphere_has_its_area_whatever_the_cells_are():
    layout = layout_of(domains()["cavity"], 8)
    for times in (0, 3):
        found = boundary_size(layout, split(layout.root, times))
        assert found == pytest.approx(6 + 4 * np.pi * 0.3**2, rel=1e-4)


@pytest.mark.parametrize("name", PLANE)
def test_boundary_length_stays_the_same_as_cells_are_split(name):
    domain = domains()[name]
    layout = layout_of(domain)
    for times in (0, 4):
        assert boundary_size(layout, split(layout.root, times)) == pytest.approx(domain.boundary.measure, rel=1e-6)


@pytest.mark.parametrize("name", SOLID)
def test_boundary_area_stays_the_same_as_cells_are_split(name):
    domain = domains()[name]
    layout = layout_of(domain)
    place = next(s.place for s in layout.problem.statements if not s.is_equation)
    for times in (0, 3):
        found = boundary_size(layout, split(layout.root, times))
        assert found == pytest.approx(place.part.measure, rel=0.02)


@pytest.mark.parametrize("name", PLANE)
def test_every_part_is_closed_by_its_faces_and_its_boundary(name):
    layout = layout_of(domains()[name], 11)
    root = layout.root
    for _ in range(2):
        root = refined(root, {cell: [(0, None), (1, None)] for cell in leaves(root)})
    assert unclosed(layout, root) < 1e-5


def test_cusps_keep_their_faces():
    # The hole would touch the sides of four cells if they were halved.
    layout = layout_of(pb.Rectangle((x, -1, 1), (y, -1, 1)) - pb.Disk((x, y), (0.1, -0.2), 0.7))
    root = layout.root
    for _ in range(2):
        root = refined(root, {cell: [(0, None), (1, None)] for cell in leaves(root)})
    assert unclosed(layout, root) < 1e-5


def unclosed(layout, root):
    """How far the divergence theorem is from true on the worst part: of a constant, and of (x, 0) and (0, y)."""
    place = next(s.place for s in layout.problem.statements if not s.is_equation)
    worst = 0.0
    flux = {part: np.zeros((2, 2)) for part in parts_of(layout, root)}
    for contact in contacts(root):
        for face in layout.faces(contact):
            through = np.array([face.weights.sum(), face.weights @ face.points[:, face.axis]])
            flux[face.below][face.axis] += through
            flux[face.above][face.axis] -= through
    for part, through in flux.items():
        if place in part.boundary:
            rule = part.boundary[place]
            for axis in range(2):
                own = rule.weights * rule.normals[:, axis]
                through[axis] += own.sum(), own @ rule.points[:, axis]
        size = float(np.prod(part.cell.size))
        through /= [part.cell.size.max(), size]
        volume = float(part.integrals.sum()) / size
        worst = max(worst, np.abs(through[:, 0]).max(), np.abs(through[:, 1] - volume).max())
    return worst


@pytest.mark.parametrize("cut", [0.1, 0.45, 0.79])
def test_faces_across_a_disk_are_its_chords(cut):
    chord = 2 * np.sqrt(0.7**2 - (cut - 0.1) ** 2)
    layout = layout_of(domains()["disk"])
    root = refined(layout.root, {layout.root: [(0, cut)]})
    root = refined(root, {root.halves[0]: [(1, None)], root.halves[1]: [(1, -0.3)]})
    root = refined(root, {root.halves[1].halves[1]: [(1, 0.05)]})
    faces = [face for contact in contacts(root) if contact.axis == 0 for face in layout.faces(contact)]
    assert sum(float(face.weights.sum()) for face in faces) == pytest.approx(chord, rel=1e-9)
    for face in faces:
        np.testing.assert_allclose(face.basis.T @ face.basis, np.eye(face.basis.shape[1]), atol=1e-10)
        assert (face.below.cell.high[0], face.above.cell.low[0]) == (cut, cut)


def test_faces_through_a_solid_are_its_sections():
    layout = layout_of(domains()["cavity"], 10)
    root = refined(layout.root, {layout.root: [(2, 0.5)]})
    (contact,) = contacts(root)
    found = sum(float(face.weights.sum()) for face in layout.faces(contact))
    assert found == pytest.approx(1 - np.pi * (0.3**2 - 0.1**2), rel=3e-3)


@pytest.mark.parametrize("name", ["disk", "corner", "star", "timed", "cavity"])
def test_the_boundary_is_found_in_tiny_cells(name):
    domain = domains()[name]
    layout = layout_of(domain)
    place = next(s.place for s in layout.problem.statements if not s.is_equation)
    point, normals = place.part.sample(3, "sobol", 2)
    # Not on a face of the box around, and a little inside.
    inner = point[1] - 1e-9 * normals[1]
    root = layout.root
    for depth in range(16 * len(inner)):
        cell = next(c for c in leaves(root) if ((inner > c.low) & (inner <= c.high)).all())
        root = refined(root, {cell: [(depth % len(inner), None)]})
    cell = next(c for c in leaves(root) if ((inner > c.low) & (inner <= c.high)).all())
    assert cell.size.max() < 1e-4
    (part,) = layout.parts(cell)
    rule = part.boundary[place]
    assert len(rule.weights) >= 5
    slack = 1e-6 * cell.size
    assert ((rule.points >= cell.low - slack) & (rule.points <= cell.high + slack)).all()
    # As large as a face of the cell, about: it is cut through, or bounded on a side.
    area = float(np.prod(cell.size)) / cell.size.max()
    assert 0 < rule.weights.sum() < 4 * area
    np.testing.assert_allclose(np.linalg.norm(rule.normals, axis=1), 1)


def test_a_cell_outside_has_no_parts_and_one_inside_is_whole():
    layout = layout_of(domains()["plate"])
    root = refined(layout.root, {layout.root: [(0, 0.0), (1, -0.4)]})
    corner = next(cell for cell in leaves(root) if cell.low.tolist() == [0.0, -0.4])
    root = refined(root, {corner: [(0, 0.6), (1, 0.6)]})
    kinds = {tuple(cell.low.tolist()): [part.whole for part in layout.parts(cell)] for cell in leaves(root)}
    assert kinds[0.6, 0.6] == [True]
    assert kinds[0.0, 0.6] == [True]
    assert kinds[0.6, -0.4] == [False]
    inner = next(cell for cell in leaves(root) if cell.low.tolist() == [0.0, -0.4])
    root = refined(root, {inner: [(0, 0.3), (1, 0.0)]})
    hollow = next(cell for cell in leaves(root) if cell.low.tolist() == [0.0, -0.4])
    assert layout.parts(hollow) == ()


def test_a_part_that_falls_into_two_pieces_is_two():
    layout = layout_of(domains()["annulus"])
    root = refined(layout.root, {layout.root: [(0, 0.0)]})
    root = refined(root, {root.halves[1]: [(0, 0.2)]})
    middle = next(cell for cell in leaves(root) if (cell.low[0], cell.high[0]) == (0.0, 0.2))
    parts = sorted(layout.parts(middle), key=lambda part: float(part.center[1]))
    assert len(parts) == 2
    low, high = parts
    assert (low.points[:, 1] < -0.4).all()
    assert (high.points[:, 1] > 0.0).all()
    np.testing.assert_allclose(low.integrals.sum(), high.integrals.sum(), rtol=1e-5)
    # Both are bounded by a piece of the outer and one of the inner circle, and touch the left and the right cell.
    place = next(s.place for s in layout.problem.statements if not s.is_equation)
    for part in parts:
        radii = np.hypot(*(part.boundary[place].points - [0.1, -0.2]).T)
        assert {round(float(r), 6) for r in radii} == {0.3, 0.7}
    faces = [face for contact in contacts(root) for face in layout.faces(contact)]
    assert len(faces) == 4
    for part in parts:
        assert sum(part in (face.below, face.above) for face in faces) == 2
    own = layout.cutter.part_at(middle, np.array([[0.1, -0.8], [0.1, 0.4]]))
    assert [layout.parts(middle)[number] for number in own] == parts


@pytest.mark.parametrize("d", [1, 2, 3])
def test_boxes_are_cut_into_whole_cells(d):
    symbols = (x, y, z)[:d]
    layout = layout_of(pb.Box(*((s, 0, 1 + i) for i, s in enumerate(symbols))), 4)
    root = split(layout.root, 3)
    parts = parts_of(layout, root)
    assert all(part.whole for part in parts)
    assert len(parts) == len(leaves(root))
    assert sum(part.volume for part in parts) == pytest.approx(layout.tree_domain.domain.measure)
    assert boundary_size(layout, root) == pytest.approx(layout.tree_domain.domain.boundary.measure)


def test_points_on_faces_are_owned_once():
    layout = layout_of(domains()["disk"])
    root = refined(layout.root, {layout.root: [(0, 0.0), (1, 0.0)]})
    X = np.array([[0.0, 0.0], [0.0, 0.2], [0.3, 0.0], [0.2, 0.2], [-0.2, -0.5]])
    owners = [layout.owned(part, X) for part in parts_of(layout, root)]
    assert sorted(np.concatenate(owners).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", [*PLANE, "holes", *SOLID])
def test_cells_cut_together_are_those_cut_one_by_one(name):
    together, alone = (layout_of(domains()[name]) for _ in range(2))
    trees = [split(layout.root, 2) for layout in (together, alone)]
    found = together.parts_of(leaves(trees[0]))
    for cell in reversed(leaves(trees[1])):
        alone.parts(cell)
    again = alone.parts_of(leaves(trees[1]))
    assert len(found) == len(again) > 4
    for one, two in zip(found, again, strict=True):
        assert one.whole == two.whole
        for own in ("center", "half", "points", "weights", "integrals"):
            np.testing.assert_allclose(getattr(one, own), getattr(two, own), rtol=0, atol=1e-12)
        sums = [sorted(float(rule.weights.sum()) for rule in part.boundary.values()) for part in (one, two)]
        np.testing.assert_allclose(sums[0], sums[1], rtol=0, atol=1e-12)
    faces = [
        sorted(float(face.weights.sum()) for many in layout.face_finder.faces_of(list(contacts(tree))) for face in many)
        for layout, tree in zip((together, alone), trees, strict=True)
    ]
    np.testing.assert_allclose(faces[0], faces[1], rtol=0, atol=1e-12)


def test_functions_of_a_higher_degree_use_the_cut_that_is_known():
    layout = layout_of(domains()["annulus"])
    root = split(layout.root, 1)
    before = layout.parts_of(leaves(root))
    fitted = dict(layout.tree_domain.cuts.slice_pieces)
    richer = layout.enriched(2)
    after = richer.parts_of(leaves(root))
    assert fitted == layout.tree_domain.cuts.slice_pieces
    assert any(fitted.values())
    for one, two in zip(before, after, strict=True):
        assert len(two.points) > len(one.points)
        assert one.integrals.sum() == pytest.approx(two.integrals.sum(), abs=1e-9)
