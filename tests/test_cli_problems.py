"""Commands about problems: show, check, list, new, and completion."""

from __future__ import annotations

import os
import tomllib

import pytest

import pibls as pb
from cli_helpers import COSINE, call, call_json, plain
from internals import complete, examine, kinds, marks, picture, sketch, starter, zoo
from pibls.checks import cut
from pibls.errors import InputError
from pibls.text import read_text

PLATE = starter("plate")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_show_says_the_mathematics_and_the_kind(here):
    (here / "cosine.toml").write_text(COSINE + "[solve]\ntol = 1e-3\n")
    text = call("show", "cosine.toml").stdout
    assert "  u_xx = -u    in Interval((x, 0, 1))\n" in text
    assert "kind       linear, order 2\n" in text
    assert "exact      u = cos(x)\n" in text
    assert "solve      tol = 0.001\n" in text
    assert "1──" in text
    assert "  1  Dirichlet(u = cos(x) on the boundary)" in text


ODD = "a\x1b[31m\x07[red]\u202e\nOK  b"
ESCAPED = "a\\x1b[31m\\x07[red]\\u202e\\nOK  b"


def test_names_of_files_are_printed_and_not_obeyed(here):
    (here / f"{ODD}.toml").write_text(COSINE.replace('title = "Cosine"', ""))
    assert call("check", f"{ODD}.toml").stdout == f"OK  {ESCAPED}.toml\n"
    assert call("show", f"{ODD}.toml", "--plot", f"{ODD}.png").stdout.startswith(f"{ESCAPED}\nFind u(x)")
    text = call("solve", f"{ODD}.toml", "--save", f"{ODD}.pibls").stdout
    assert text.startswith(f"{ESCAPED}\n")
    assert f"wrote save       {ESCAPED}.pibls\n" in text
    assert f"solve {ESCAPED}.toml\n" in call("new", "heat", "--out", f"{ODD}.toml", "--force").stdout
    for command in ("check", "show", "solve"):
        told = call(command, f"{ODD}2.toml", code=2).output
        assert told.count("\n") == 1
        assert told.rstrip().isprintable()
        assert "a\\x1b[31m\\x07[red]\\u202e" in told
    assert call_json("check", f"{ODD}.toml")["files"][0]["file"] == f"{ODD}.toml"


def test_titles_are_printed_and_not_obeyed(here):
    title = r"a\u001b[31m\u0007[red]\u202e"
    (here / "cosine.toml").write_text(COSINE.replace("Cosine", title))
    for command in ("show", "solve"):
        assert call(command, "cosine.toml").stdout.startswith("a\\x1b[31m\\x07[red]\\u202e\nFind u(x)")


def test_show_of_nonlinear_problems_with_computed_solutions_and_data(here):
    text = call("show", "zoo:allen_cahn").stdout
    assert "kind       nonlinear, order 2" in text
    assert "space      x, time t" in text
    assert "exact      computed by another method" in text
    assert "data       " in call("show", "zoo:variable_coefficient_data").stdout


def test_show_draws_a_file(here):
    assert "wrote plot a.png" in call("show", "zoo:wave", "--plot", "a.png").stdout
    assert (here / "a.png").read_bytes()[:4] == b"\x89PNG"
    assert "there is no folder" in call("show", "zoo:wave", "--plot", "no/a.png", code=2).stderr
    assert "6 dimensions cannot be drawn" in call("show", "zoo:poisson_6d", "--plot", "b.png", code=2).stderr


def test_a_sketch_of_a_plate_shows_hole_and_conditions():
    lines = plain(sketch(read_text(PLATE).problem)).splitlines()
    rows = [line[2:] for line in lines[:15]]
    assert rows[0] == rows[-1] == "3" * 60
    assert all(row[0] == "1" and row[-1] == "2" for row in rows[1:-1])
    assert rows[7][36] == " "
    assert rows[7].count("3") == 2
    assert "█" not in "".join(lines)
    assert lines[-3:] == [
        "  1  Dirichlet(T = 1 on left)",
        "  2  Robin(2.5*T + dn(T) = 0.25 on right)",
        "  3  Neumann(dn(T) = 0 on bottom|top|boundary)",
    ]


def test_a_sketch_shows_where_nothing_holds():
    lines = plain(sketch(pb.problems.ill_posed()["laplace_three_sides"].problem())).splitlines()
    assert lines[-1] == "  █  no condition"
    assert all(line[2] == "1" and line[-1] == "█" for line in lines[1:23])
    assert sum(line.count("█") for line in lines[:24]) == 22


def test_a_sketch_in_time_has_its_start_at_the_bottom():
    lines = plain(sketch(pb.problems.wave())).splitlines()
    assert lines[13] == "0 " + "2" * 60
    assert lines[0] == "1 1" + "░" * 58 + "1"
    assert lines[15] == "x to the right, t upwards"


def test_a_sketch_of_space_leaves_time_out_and_of_many_dimensions_draws_nothing():
    lines = plain(sketch(pb.problems.heat_2d())).splitlines()
    assert lines[0].startswith("1 111")
    assert lines[-1].startswith("     Initial(")
    assert plain(sketch(pb.problems.poisson_6d())).startswith("     Dirichlet(")


def test_sketches_of_points_periods_and_averages():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    cloud = pb.PointCloud((x, y), [[0.1, 0.1], [0.5, 0.5]], [[0, 0], [1, 1]], [[-1, 0], [1, 0]])
    lines = plain(sketch(pb.Problem(pb.laplacian(u) - 1, cloud, [pb.Dirichlet(u, 0)]))).splitlines()
    assert lines[0].endswith("1")
    assert lines[23][2] == "1"
    assert "".join(lines).count("░") == 2
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))
    conditions = [pb.Periodic(u, x), pb.Condition(pb.laplacian(u), on=[[0.5, 0.5]]), pb.Mean(u, 0)]
    found = marks.marks(pb.Problem(pb.laplacian(u) - 1, square, conditions))
    assert [mark.sign for mark in found] == ["1", "2", "3"]
    assert found[0].conditions == ("Periodic(u in x)",)
    assert set(found[0].points[:, 0].round(9)) == {0.0, 1.0}
    assert found[1].points.tolist() == [[0.5, 0.5]]
    assert found[2].points is None


def test_places_where_several_conditions_hold_have_a_sign_of_their_own():
    left, right = marks.marks(pb.problems.beam())
    assert left.points.tolist() == [[0.0]] * len(left.points)
    assert right.points.tolist() == [[1.0]] * len(right.points)
    assert [words.split("(")[1].split(" ")[0] for words in left.conditions] == ["u", "u_x"]
    assert [words.split("(")[1].split(" ")[0] for words in right.conditions] == ["u", "u_xx"]
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    edge = pb.Rectangle((x, 0, 1), (y, 0, 1)).boundary
    halves = [
        pb.Dirichlet(u, 0, on=edge.where(lambda X: X[:, 0] < 0.5)),
        pb.Dirichlet(u, 0, on=edge.where(lambda X: X[:, 0] > 0.5)),
    ]
    found = marks.marks(pb.Problem(pb.laplacian(u) - 1, edge.domain, halves))
    assert [(mark.points[:, 0] < 0.5).all() for mark in found] == [True, False]


def test_colours_and_long_conditions():
    text = sketch(pb.problems.elasticity(), coloured=True)
    assert "\x1b[" in text
    assert plain(text) == sketch(pb.problems.elasticity())
    assert max(map(len, plain(text).splitlines())) < 120


def test_a_sketch_for_a_terminal_without_blocks():
    text = plain(sketch(pb.problems.beam(), "ascii"))
    assert text.splitlines()[0] == "1" + "-" * 58 + "2"
    assert text.isascii()


def test_a_tall_domain_is_drawn_narrow():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    tall = pb.Rectangle((x, 0, 1), (y, 0, 100))
    lines = plain(sketch(pb.Problem(pb.laplacian(u), tall, [pb.Dirichlet(u, 0)]))).splitlines()
    assert len(lines[0]) == len("100 ") + 16
    assert lines[24].split() == ["0", "1"]


@pytest.mark.parametrize("name", ["beam", "annulus", "wave", "poisson_ball"])
def test_pictures_in_one_two_and_three_dimensions(name):
    problem = pb.problems.catalogue()[name]()
    figure = picture(problem)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[0] == "domain"
    assert set("\n".join(labels[1:]).splitlines()) == {cut(repr(condition), 64) for condition in problem.conditions}


def test_pictures_beyond_three_dimensions_are_refused():
    with pytest.raises(InputError, match="6 dimensions"):
        picture(pb.problems.poisson_6d())


def test_check_says_ok_or_points_at_the_error(here):
    (here / "good.toml").write_text(COSINE)
    (here / "bad.toml").write_text(COSINE.replace("u_xx", "u_xy"))
    assert call("check", "good.toml").stdout == "OK  good.toml\n"
    result = call("check", "good.toml", "bad.toml", "none.toml", code=2)
    lines = result.stdout.splitlines()
    assert lines[0] == "OK  good.toml"
    assert lines[1].startswith("Error: bad.toml, line 2, column 15: ")
    assert lines[3].strip() == "^^^^"
    assert lines[4].startswith("Error: The file 'none.toml' cannot be read")


def test_check_as_json(here):
    (here / "bad.toml").write_text(COSINE.replace("u_xx", "u_xy"))
    record = call_json("check", "zoo:poisson", "bad.toml", "zoo:ode_one_condition", code=2)
    assert record["exit_code"] == 2
    good, bad, ill = record["files"]
    assert good == {"file": "zoo:poisson", "status": "ok", "error": None, "message": "", "warnings": []}
    assert (bad["status"], bad["error"]["line"], bad["error"]["column"]) == ("error", 2, 15)
    assert ill["status"] == "ill-posed"
    assert "not unique" in ill["message"]


def test_check_finds_problems_without_one_solution():
    assert "not unique" in call("check", "zoo:pure_neumann", code=4).stdout
    unknown = COSINE.replace("u_xx = -u", "u_xx = -k*u").replace("equations", 'unknown_numbers = ["k"]\nequations')
    assert "Nothing was measured that could determine k" in call("check", "-", input=unknown, code=2).stdout


INVERSE = COSINE.replace("u_xx = -u", "u_xx = -k*u").replace("equations", 'unknown_numbers = ["k"]\nequations')
MEASURED = '[[conditions]]\nkind = "observation"\npoints = [[0.5]]\nvalues = ["cos(0.5)"]\n[truth]\nk = 1\n'


def test_check_and_show_of_unknown_numbers():
    told = call("show", "-", input=INVERSE + MEASURED).stdout
    assert "Find u(x), k with" in told
    assert "unknown    k" in told
    assert call("check", "-", input=INVERSE + MEASURED).stdout.startswith("OK")
    wrong = call("check", "-", input=INVERSE + MEASURED.replace("k = 1", "k = 2")).stdout
    assert "exact solution does not satisfy the equation" in wrong


def test_check_compares_the_exact_solution_with_everything(here):
    wrong = COSINE.replace('u = "cos(x)"', 'u = "cos(x) + x"')
    result = call("check", "-", input=wrong)
    assert result.stdout.count("warning: the exact solution does not satisfy") == 2
    assert "the equation" in result.stdout
    parts = read_text(PLATE).problem
    assert examine(parts) == ("", ())


@pytest.mark.parametrize("name", ["l_shape", "kovasznay", "robin_disk", "burgers", "stokes", "periodic_advection"])
def test_check_accepts_the_zoo(name):
    assert examine(zoo()[name]()) == ("", ())


def test_list_has_the_whole_zoo():
    known = call_json("list")["problems"]
    assert [entry["name"] for entry in known] == list(zoo())
    entry = {one["name"]: one for one in known}
    assert entry["heat_2d"] == {
        "name": "heat_2d",
        "linear": True,
        "kind": "linear PDE",
        "order": 2,
        "dimensions": "2 + time",
        "coordinates": ["x", "y", "t"],
        "fields": ["u"],
        "solution": "exact",
        "about": entry["heat_2d"]["about"],
    }
    assert (entry["lorenz"]["kind"], entry["lorenz"]["dimensions"]) == ("nonlinear ODE system", "time")
    assert entry["allen_cahn"]["solution"] == "reference"
    assert entry["bratu_unforced"]["solution"] == "values at points"
    assert entry["heat_backward"]["solution"] == "ill-posed: unstable"
    assert not any(":func:" in one["about"] or "Return" in one["about"] for one in known)


def test_list_can_be_narrowed():
    rest = call_json("list", "--nonlinear")["problems"]
    names = {entry["name"] for entry in rest}
    assert not any(entry["linear"] for entry in rest)
    assert {*pb.problems.catalogue(linear=False), "burgers", "lorenz", "bratu_unforced"} <= names
    assert not names & {*pb.problems.catalogue(linear=True), "advection_long"}
    text = call("list", "--nonlinear").stdout
    assert all(name in text for name in names)
    assert f"{len(rest)} problems" in text


@pytest.mark.parametrize("kind", kinds())
def test_every_starter_is_read_commented_and_solved(kind, here):
    said = call("new", kind).stdout
    text = (here / f"{kind}.toml").read_text()
    assert text == starter(kind)
    assert text.startswith("# ")
    assert tomllib.loads(text)["title"]
    if "\neigenvalue" in text:
        assert f"pibls eigen {kind}.toml" in said
        assert call_json("eigen", f"{kind}.toml", "--number", "1")["eigenvalues"][0]["real"] == pytest.approx(
            5.7831860, rel=1e-6
        )
        return
    record = call_json("solve", f"{kind}.toml")
    assert record["status"] == "converged"
    assert record["error_estimate"] <= record["tol"]
    if record["true_error"] is not None:
        assert record["true_error"] <= record["tol"]
    assert examine(read_text(text).problem) == ("", ())


def test_new_lists_prints_and_never_overwrites(here):
    listed = call("new").stdout
    assert all(f"{kind} " in listed for kind in kinds())
    assert call("new", "heat", "--out", "-").stdout == starter("heat")
    call("new", "--out", "first.toml")
    assert (here / "first.toml").read_text() == starter("poisson")
    refused = call("new", "wave", "--out", "first.toml", code=2)
    assert "--force" in refused.stderr
    assert (here / "first.toml").read_text() == starter("poisson")
    call("new", "wave", "--out", "first.toml", "--force")
    assert (here / "first.toml").read_text() == starter("wave")
    assert "Did you mean 'wave'?" in call("new", "wawe", code=2).stderr
    assert "there is no folder" in call("new", "wave", "--out", "no/a.toml", code=2).stderr


def test_completion_knows_names_files_and_folders(here):
    (here / "heat.toml").write_text("")
    (here / "heat.csv").write_text("")
    (here / "sub").mkdir()
    (here / "sub" / "wave.toml").write_text("")
    assert complete("") == ["zoo:", "heat.toml", "sub/"]
    assert complete("he") == ["heat.toml"]
    assert complete("sub/") == ["sub/wave.toml"]
    assert complete("none/") == []
    assert complete("zoo:burg") == ["zoo:burgers_steady", "zoo:burgers", "zoo:burgers_2d"]
    assert complete("zo") == [f"zoo:{name}" for name in zoo()]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("pibls sol", "solve"),
        ("pibls solve zoo:bratu_1", "zoo:bratu_1d"),
        ("pibls bench wav", "wave"),
        ("pibls new od", "ode"),
    ],
)
def test_completion_in_a_shell(words, answer, here):
    environment = {"_PIBLS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    found = call(env={**os.environ, **environment}, prog_name="pibls").stdout.split()
    assert found[0] == answer


def test_the_help_names_exit_codes_and_every_command():
    text = plain(call("--help").stdout)
    for words in ("solve", "show", "check", "eval", "list", "new", "doctor", "bench", "reproduce", "Exit codes"):
        assert words in text
    assert "130 interrupted" in " ".join(text.split())
