"""The studio's text: places of a problem file are changed one at a time, and everything else stays as it is."""

from __future__ import annotations

import ast
import base64
import json
import tomllib
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pibls as pb
from internals import (
    History,
    attached,
    dragged,
    handles,
    named_part,
    of_fragment,
    quoted,
    serving,
    to_fragment,
    to_notebook,
    to_script,
    with_condition,
    with_item,
    with_shape,
    with_table,
    with_unknowns,
    with_value,
    without,
    without_shape,
    zoo_text,
)
from pibls.cli import app
from pibls.errors import InputError
from pibls.text import read_text

ROOT = Path(pb.__file__).parent
PLATE = (ROOT / "cli" / "starters" / "plate.toml").read_text(encoding="utf-8")
FILES = sorted((ROOT / "cli" / "starters").glob("*.toml"))


def comments(text):
    return [line.partition("#")[2] for line in text.splitlines() if "#" in line]


def test_a_new_name_of_an_unknown_goes_through_all_formulas():
    text = with_value(PLATE, ("conditions", 1, "value"), "h*air + T**2")
    text = with_value(with_value(text, ("parameters", "Tea"), 1), ("equations", 0), "-laplacian(T) + T_x*Tea = exp(T)")
    made = with_unknowns(text, "unknowns", ["w"])
    assert tomllib.loads(made)["equations"] == ["-laplacian(w) + w_x*Tea = exp(w)"]
    assert tomllib.loads(made)["conditions"][1]["value"] == "h*air + w**2"
    assert comments(made) == comments(text)
    assert read_text(made).problem.field_names == ("w",)
    assert with_unknowns(made, "unknowns", ["T"]) == text
    for taken in ("x", "exp", "h", "plate", "2"):  # half of a name, or one of something else
        assert tomllib.loads(with_unknowns(text, "unknowns", [taken]))["equations"] == tomllib.loads(text)["equations"]


def test_a_condition_on_one_field_leaves_those_of_others_on_an_edge():
    text = (ROOT / "cli" / "starters" / "body.toml").read_text(encoding="utf-8")
    edges = ["left", "right", "bottom", "top", "front", "back"]
    made = with_condition(text, {"kind": "dirichlet", "u": "w", "value": 1}, "right", edges, "w")
    held = tomllib.loads(made)["conditions"]
    assert [own.get("equation", own.get("u")) for own in held if "right" in own["on"]] == [
        "flux(u) = 0",
        "flux(v) = 0",
        "w",
    ]
    made = attached(text, 4, "left", edges, "u")
    held = tomllib.loads(made)["conditions"]
    assert [own.get("equation", own.get("u")) for own in held if "left" in own["on"]] == ["u", "w", "flux(v) = 0"]


def test_conditions_keep_their_unknown_when_another_one_comes():
    made = tomllib.loads(with_unknowns(PLATE, "unknowns", ["T", "p"]))
    assert [own["u"] for own in made["conditions"]] == ["T"] * 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_value_of_a_file_can_be_changed_by_itself(path):
    text = path.read_text(encoding="utf-8")
    places = list(leaves_of(tomllib.loads(text)))
    assert places
    for place in places:
        changed = with_value(text, place, "new")
        assert value_at(tomllib.loads(changed), place) == "new"
        assert comments(changed) == comments(text)
        others = [other for other in places if other != place]
        assert [value_at(tomllib.loads(changed), other) for other in others] == [
            value_at(tomllib.loads(text), other) for other in others
        ]


def leaves_of(data, path=()):
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        if isinstance(value, dict | list):
            yield from leaves_of(value, (*path, key))
        else:
            yield (*path, key)


def value_at(data, path):
    for key in path:
        data = data[key]
    return data


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_conditions_come_and_go(path):
    text = path.read_text(encoding="utf-8")
    before = tomllib.loads(text)
    more = with_table(text, ("conditions",), {"kind": "mean", "value": 3}, several=True)
    assert tomllib.loads(more) == {**before, "conditions": [*before["conditions"], {"kind": "mean", "value": 3}]}
    assert tomllib.loads(without(more, ("conditions", len(before["conditions"])))) == before
    for number in range(len(before["conditions"])):
        rest = [own for i, own in enumerate(before["conditions"]) if i != number]
        found = tomllib.loads(without(text, ("conditions", number)))
        assert found.get("conditions", []) == rest
        assert {**found, "conditions": 0} == {**before, "conditions": 0}


def test_lists_and_new_tables():
    assert tomllib.loads(with_item('a = ["x"]', ("a",), "y"))["a"] == ["x", "y"]
    assert tomllib.loads(with_item('a = "x"\n', ("a",), "y"))["a"] == ["x", "y"]
    assert tomllib.loads(with_item("b = 1\n[c]\nd = 2\n", ("a",), "y")) == {"b": 1, "a": ["y"], "c": {"d": 2}}
    assert tomllib.loads(with_value("b = 1\n", ("solve", "tol"), 1e-3)) == {"b": 1, "solve": {"tol": 1e-3}}
    assert tomllib.loads(with_value("a = {x = 1}\n", ("a", "y"), 2)) == {"a": {"x": 1, "y": 2}}
    assert tomllib.loads(without("a = {x = 1, y = 2}\n", ("a", "y"))) == {"a": {"x": 1}}
    nested = "a = [\n  [0, 1],\n  [2, 3],\n]\n[b]\nc = 1\n"
    assert tomllib.loads(with_value(nested, ("a", 1), [4, 5])) == {"a": [[0, 1], [4, 5]], "b": {"c": 1}}


# Shapes --------------------------------------------------------------------------------------------------------------


def test_handles_move_the_numbers_of_their_shapes():
    for number, handle in enumerate(handles(PLATE)):
        moved = handles(dragged(PLATE, handle, handle.x + 0.1, handle.y, 0.01))[number]
        assert (moved.x - handle.x, moved.y - handle.y) == pytest.approx((0.1, 0.0), abs=1e-9)
        assert comments(dragged(PLATE, handle, 0.5, 0.5, 0.01)) == comments(PLATE)
    kinds = [handle.kind for handle in handles(PLATE)]
    assert kinds == ["move", "corner", "corner", "corner", "corner", "move", "radius"]


def test_polygons_intervals_and_formulas():
    polygon = '[domain]\nshape = "polygon"\nvertices = [[0, 0], [1, 0], [0, 1]]\n'
    moved = dragged(polygon, handles(polygon)[2], 1.504, 0.2, 0.01)
    assert tomllib.loads(moved)["domain"]["vertices"] == [[0, 0], [1.5, 0.2], [0, 1]]
    rod = '[domain]\nshape = "interval"\nx = [0, 1]\n'
    assert tomllib.loads(dragged(rod, handles(rod)[1], 2.0, 0.3, 0.1))["domain"]["x"] == [0, 2]
    assert handles('[domain]\nshape = "disk"\nradius = "r0"\n')[-1].kind == "move"
    assert handles("[time]\nt = [0, 1]\n") == []


def test_shapes_are_added_and_taken_away():
    two = with_shape(PLATE, "disk", "difference", [[0, 2], [0, 1]])
    assert len(tomllib.loads(two)["domain"]["of"]) == 3
    assert read_text(two).problem.domain.measure < read_text(PLATE).problem.domain.measure
    assert tomllib.loads(without_shape(two, ("domain", "of", 2))) == tomllib.loads(PLATE)
    alone = without_shape(PLATE, ("domain", "of", 1))
    assert tomllib.loads(alone)["domain"] == {"shape": "rectangle", "x": [0, 2], "y": [0, 1], "name": "plate"}


def test_sides_keep_their_conditions_when_a_second_shape_has_sides_too():
    square = '[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]\n[[conditions]]\nkind = "dirichlet"\non = "left"\n'
    joined = tomllib.loads(with_shape(square, "rectangle", "union", [[0, 1], [0, 1]]))
    assert joined["conditions"][0]["on"] == "part1.left"


# Conditions ----------------------------------------------------------------------------------------------------------


EDGES = ["left", "right", "bottom", "top", "hole"]


def places(text):
    return [own.get("on") for own in tomllib.loads(text)["conditions"]]


def test_an_edge_has_one_condition_of_a_field():
    convection = {"kind": "robin", "alpha": "1", "beta": "1", "value": "0"}
    text = with_condition(PLATE, convection, "hole", EDGES, "T")
    assert places(text) == ["left", "right", ["bottom", "top"], "hole"]
    assert places(attached(text, 0, "right", EDGES, "T")) == [["left", "right"], ["bottom", "top"], "hole"]
    assert read_text(text).problem.conditions


def test_a_shape_without_a_name_gets_one_when_its_edge_is_chosen():
    text = '[domain]\nshape = "difference"\nof = [{shape = "disk", radius = 2}, {shape = "disk", radius = 1}]\n'
    named, part = named_part(text, ("domain", "of", 1), "boundary", "boundary")
    assert part == tomllib.loads(named)["domain"]["of"][1]["name"] == "part1"
    assert named_part(PLATE, ("domain", "of", 0), "left", "left") == (PLATE, "left")


# Steps, links, scripts -----------------------------------------------------------------------------------------------


def test_steps_with_one_mark_are_undone_together():
    history = History("0").with_text("1", "drag").with_text("2", "drag").settled().with_text("3", "drag")
    assert history.undone().text == "2"
    assert history.undone().undone().text == "0"
    assert history.undone().redone().text == "3"
    assert history.undone().with_text("4").future == ()
    assert len(History("").with_text("x").past) == 1


@pytest.mark.parametrize("text", ["", PLATE, "title = 'ü \\' \"\"\" \\n'", 'a = "\\u0007"\n' * 50])
def test_texts_survive_links_and_scripts(text):
    assert of_fragment(to_fragment(text)) == text
    assert ast.literal_eval(quoted(text)).rstrip("\n") == text.rstrip("\n")
    script = ast.parse(to_script(text, 1e-4))
    assert [ast.unparse(node)[:7] for node in script.body[:2]] == ["import ", "from pi"]
    cells = json.loads(to_notebook(text, 1e-4, "T"))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "code", "code"]


def test_a_text_cannot_leave_the_string_of_its_script():
    hostile = '"""\nimport os; os.system("x")\n"""\\"""\\\\'
    names = {node.id for node in ast.walk(ast.parse(to_script(hostile, 1e-4))) if isinstance(node, ast.Name)}
    assert "os" not in names


@pytest.mark.parametrize("fragment", ["!", "AAAA", "x" * 1000, to_fragment(PLATE)[:-9], "é"])
def test_damaged_links_are_refused_in_words(fragment):
    with pytest.raises(InputError, match="address"):
        of_fragment(fragment)


def test_a_link_that_would_unpack_to_gigabytes_is_refused():
    bomb = base64.urlsafe_b64encode(zlib.compress(b"a" * 10_000_000, 9)).decode().rstrip("=")
    with pytest.raises(InputError, match="200000 characters"):
        of_fragment(bomb)


def test_problems_of_the_zoo_become_text_with_or_without_their_exact_solution():
    assert read_text(zoo_text("poisson")["text"]).problem.exact is not None
    assert read_text(zoo_text("burgers")["text"]).problem.exact is None
    with pytest.raises(InputError, match="Did you mean 'poisson'"):
        zoo_text("poison")


def test_without_its_packages_the_studio_says_how_to_install_them(monkeypatch):
    monkeypatch.setattr(serving, "find_spec", lambda name: None)
    found = CliRunner().invoke(app, ["studio"])
    assert found.exit_code == 2
    assert "pip install 'pibls[studio]'" in " ".join(found.output.split())


def test_a_file_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr(serving, "find_spec", lambda name: name)
    found = CliRunner().invoke(app, ["studio", "missing.toml"])
    assert found.exit_code == 2
    assert "missing.toml cannot be read" in found.output
