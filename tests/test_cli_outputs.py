"""Files that the command line writes: what is in them, where they may go, and that they are whole."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import pibls as pb
from cli_helpers import COSINE, call, call_json
from internals import emit, grid_points, outputs
from pibls import writing
from pibls.errors import InputError
from pibls.writing import replaced

ROOT = Path(__file__).parent.parent
PNG, PDF = b"\x89PNG", b"%PDF"


@pytest.fixture
def cosine(tmp_path, monkeypatch):
    folder = tmp_path / "problem"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    path = folder / "cosine.toml"
    path.write_text(COSINE)
    return path


def read(path):
    with path.open(newline="") as stream:
        head, *rows = list(csv.reader(stream))
    return head, np.array(rows, dtype=float)


def test_every_output_of_the_command_line(cosine, tmp_path):
    result = call("solve", cosine, "--csv", "v.csv", "--save", "s.pibls", "--plot", "p.png")
    assert "wrote csv        v.csv" in result.stdout
    heading, numbers = read(tmp_path / "v.csv")
    assert heading == ["x", "u", "u_error"]
    assert numbers.shape == (201, 3)
    assert (numbers[0, 0], numbers[-1, 0]) == (0.0, 1.0)
    solution = pb.load(tmp_path / "s.pibls")
    assert np.array_equal(numbers[:, 1], solution(numbers[:, 0]))
    assert np.array_equal(numbers[:, 2], solution.error_field(numbers[:, 0]))
    assert (tmp_path / "p.png").read_bytes()[:4] == PNG
    assert {path.name for path in tmp_path.iterdir()} == {"problem", "v.csv", "s.pibls", "p.png"}
    assert list(cosine.parent.iterdir()) == [cosine]


def test_outputs_of_the_file_lie_beside_it(cosine, tmp_path):
    cosine.write_text(COSINE + '[output]\nplot = "a.pdf"\ncsv = "out/a.csv"\njson = "a.json"\nsave = "a.pibls"\n')
    (cosine.parent / "out").mkdir()
    record = call_json("solve", "problem/cosine.toml", "--csv", "mine.csv")
    assert (tmp_path / "mine.csv").is_file()
    assert {path.name for path in cosine.parent.iterdir()} == {"cosine.toml", "a.pdf", "out", "a.json", "a.pibls"}
    assert not list((cosine.parent / "out").iterdir())
    assert (cosine.parent / "a.pdf").read_bytes()[:4] == PDF
    stored = json.loads((cosine.parent / "a.json").read_text())
    assert set(record["files"]) - set(stored["files"]) == {"json"}
    assert stored["error_estimate"] == record["error_estimate"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('csv = "../a.csv"', "folder of the problem file"),
        ('csv = "/a.csv"', "folder of the problem file"),
        ('csv = "link.csv"', "leaves its folder"),
        ('csv = "way/a.csv"', "leaves its folder"),
        ('csv = "none/a.csv"', "there is no folder"),
        ('csv = "a.toml"', "must end with .csv"),
        ('save = ".bashrc"', "must end with .pibls"),
        ('plot = "a.exe"', "must end with .png"),
        ('json = "sub.json"', "a folder or a device"),
        ('csv = "same.csv"\nplot = "same.csv"', "must end with .png"),
    ],
)
def test_outputs_of_a_file_that_are_refused_before_solving(cosine, tmp_path, monkeypatch, line, words):
    monkeypatch.setattr(pb.tuning, "solve", lambda *_, **__: pytest.fail("it was solved"))
    (cosine.parent / "link.csv").symlink_to(cosine.parent / "inside.csv")
    (cosine.parent / "way").symlink_to(tmp_path)
    (cosine.parent / "sub.json").mkdir()
    cosine.write_text(COSINE + f"[output]\n{line}\n")
    assert words in call("solve", cosine, code=2).stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--csv", "none/a.csv"], "there is no folder"),
        (["--csv", "problem"], "a folder or a device"),
        (["--csv", "/dev/null"], "a folder or a device"),
        (["--plot", "a.bmp"], "must end with .png or .pdf or .svg"),
        (["--csv", "a", "--save", "a"], "would replace the output csv"),
        (["--csv", "problem/cosine.toml"], "would replace the problem file"),
    ],
)
def test_outputs_of_the_command_line_that_are_refused_before_solving(cosine, monkeypatch, options, words):
    monkeypatch.setattr(pb.tuning, "solve", lambda *_, **__: pytest.fail("it was solved"))
    assert words in call("solve", cosine, *options, code=2).stderr
    assert cosine.read_text() == COSINE


def test_a_folder_that_is_not_writable_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="not writable"):
        outputs.check_target("--csv", tmp_path / "a.csv")


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("before")

    def fail(place):
        place.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        replaced(path, fail)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    outputs.write_text(path, "after\n")
    assert path.read_bytes() == b"after\n"
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_link_of_the_user_is_written_through(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    outputs.write_text(tmp_path / "link.csv", "new")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_a_picture_that_cannot_be_drawn_does_not_lose_the_solution(cosine, monkeypatch):
    def fail(*_, **__):
        raise InputError("nothing to draw")

    monkeypatch.setattr(pb.Solution, "plot", fail)
    result = call("solve", cosine, "--plot", "p.png", "--save", "s.pibls", code=2)
    assert "converged" in result.stdout
    assert "the output plot was not written: nothing to draw" in result.stderr
    assert pb.load("s.pibls").status == "converged"
    record = call_json("solve", cosine, "--plot", "p.png", "--save", "s.pibls", code=2)
    assert (record["files"], record["failed_files"]) == ({"save": "s.pibls"}, {"plot": "nothing to draw"})


def test_the_demo_solves_an_example_and_draws_it(tmp_path):
    (line,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if "pibls solve" in line]
    _, *words = line.split("$(BIN)/pibls ")[1].split()
    example, picture = ROOT / words[0], tmp_path / words[2]
    picture.parent.mkdir()
    record = call_json("solve", example, "--plot", picture)
    assert record["status"] == "converged"
    assert record["true_error"] < record["tol"]
    assert picture.stat().st_size > 50_000


def test_grids():
    x, y = pb.coordinates("x y")
    disk = grid_points(pb.Disk((x, y), (0, 0), 1))
    assert (np.hypot(*disk.T) <= 1 + 1e-8).all()
    assert len(disk) == 2821  # Gauss's circle problem for the radius 30
    cloud = pb.PointCloud((x, y), [[0.5, 0.5], [0.25, 0.75]], [[0, 0]], [[-1, 0]])
    assert sorted(grid_points(cloud).tolist()) == [[0.25, 0.75], [0.5, 0.5]]
    names = pb.coordinates("a b c d e f g")
    assert grid_points(pb.Box(*((name, 0, 1) for name in names))).shape == (5000, 7)


def test_several_fields_have_a_column_each(tmp_path):
    path = tmp_path / "v.csv"
    call("solve", "zoo:maxwell_1d", "--tol", "1e-3", "--csv", path)
    heading, numbers = read(path)
    assert heading == ["x", "t", "E", "H", "E_error", "H_error"]
    exact = pb.problems.maxwell_1d().exact_values(numbers[:, :2])
    assert np.abs(numbers[:, 2] - exact["E"]).max() < 1e-2


def test_a_terminal_without_the_letters_shows_question_marks(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    emit("░ ψ 1")
    assert stream.buffer.getvalue() == b"? ? 1\n"


def test_what_a_killed_process_has_left_is_swept(tmp_path):
    own = f".a.{writing._machine()}-"
    left = tmp_path / f"{own}999999999-0123abcd.part.csv"
    running = tmp_path / f"{own}{os.getpid()}-0123abcd.part.csv"
    others = [tmp_path / ".a.elsewhere-999999999-0123abcd.part.csv", tmp_path / ".a.csv", tmp_path / f"{own}x.part"]
    for path in (left, running, *others):
        path.touch()
    outputs.write_text(tmp_path / "a.csv", "x\n")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a.csv", running, *others])


KINDS = {
    "save": b"PK\x03\x04 an archive",
    "plot": b"\x89PNG an image",
    "csv": b"x,y,u\n1,2,3\n",
    "json": b'{"schema": 1}',
    "problem": b'title = "Cosine"\nequations = ["u_xx = -u, 1"]\n',
    "notes": b"Dear all, these are my notes: a, b\n",
    "program": b"\x7fELF\x02\x01",
}


@pytest.mark.parametrize("kind", ["save", "plot", "csv", "json"])
@pytest.mark.parametrize("held", KINDS)
def test_only_results_are_replaced_by_results(tmp_path, kind, held):
    path = tmp_path / "there.png"
    path.write_bytes(KINDS[held])
    if kind == held:
        outputs.refuse_other(kind, path)
    else:
        with pytest.raises(InputError, match="--force"):
            outputs.refuse_other(kind, path)
    outputs.refuse_other(kind, path, force=True)
    outputs.refuse_other(kind, tmp_path / "missing.png")


def test_another_kind_of_file_stays_unless_forced(cosine, tmp_path):
    diary = tmp_path / "diary.csv"
    diary.write_text("Monday\n")
    for words in (("--csv", diary), ("--save", diary)):
        assert "would replace" in call("solve", cosine, *words, code=2).stderr
    assert diary.read_text() == "Monday\n"
    call("solve", cosine, "--csv", diary, "--force", "-q")
    assert diary.read_text().startswith("x,u")
    call("solve", cosine, "--csv", diary, "-q")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_what_there_is_is_saved_when_the_program_is_asked_to_end(tmp_path, number, code):
    command = [sys.executable, "-m", "pibls", "solve", "zoo:l_shape", "--tol", "1e-14", "--budget", "1e9"]
    with subprocess.Popen(
        [*command, "--save", "corner.pibls", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        line = b""
        while process.poll() is None and b"error" not in line:
            line = process.stderr.readline()
        process.send_signal(number)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == code
    assert json.loads(output)["exit_code"] == code
    assert [path.name for path in tmp_path.iterdir()] == ["corner.pibls"]
    assert pb.load(tmp_path / "corner.pibls").status == "stalled"


READS = """
equations = ["u_xx = -q"]
[domain]
shape = "interval"
x = [0, 1]
[data.q]
file = "q.csv"
column = "q"
[[conditions]]
kind = "dirichlet"
value = 0
[output]
"""


@pytest.mark.parametrize(
    ("output", "name", "content"),
    [
        ('csv = "q.csv"', "q.csv", "x,q\n0,1\n0.5,2\n1,1\n"),
        ('csv = "other.csv"', "other.csv", "x,temperature\n0,1\n"),
        ('json = "package.json"', "package.json", '{"name": "my app"}'),
        ('plot = "thesis.pdf"', "thesis.pdf", "%PDF-1.4 my thesis"),
    ],
)
def test_a_problem_file_replaces_neither_what_it_reads_nor_what_others_made(tmp_path, output, name, content):
    (tmp_path / "q.csv").write_text("x,q\n0,1\n0.5,2\n1,1\n")
    (tmp_path / name).write_text(content)
    (tmp_path / "o.toml").write_text(READS + output)
    call("solve", tmp_path / "o.toml", code=2)
    assert (tmp_path / name).read_text() == content


def test_a_problem_file_replaces_its_own_results(tmp_path):
    (tmp_path / "q.csv").write_text("x,q\n0,1\n0.5,2\n1,1\n")
    (tmp_path / "o.toml").write_text(READS + 'csv = "a.csv"\njson = "a.json"\nplot = "a.pdf"\nsave = "a.pibls"\n')
    for _ in range(2):
        call("solve", tmp_path / "o.toml")


def test_a_picture_goes_through_a_link_and_a_failing_one_costs_only_itself(tmp_path, cosine, monkeypatch):
    (tmp_path / "latest.png").symlink_to(tmp_path / "store")
    call("solve", cosine, "--plot", tmp_path / "latest.png")
    assert (tmp_path / "store").read_bytes()[:4] == PNG
    for fault, code in ((ValueError("odd"), 2), (KeyboardInterrupt(), 2)):
        monkeypatch.setattr("matplotlib.figure.Figure.savefig", Mock(side_effect=fault))
        record = call_json("solve", cosine, "--plot", tmp_path / "b.png", code=code)
        assert record["status"] == "converged"
        assert list(record["failed_files"]) == ["plot"]
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["latest.png", "store"]


def test_streams_that_are_full_or_closed_cost_no_answer(cosine, tmp_path):
    run = f'"{sys.executable}" -m pibls solve "{cosine}"'

    def code(command):
        return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)

    full = code(f"{run} --json > /dev/full")
    assert full.returncode == 2
    assert full.stderr.count("Standard output cannot be written") == 1
    assert "Traceback" not in full.stderr
    for number, closed in enumerate(("2> /dev/full", "2>&-")):
        told = code(f"{run} --save {number}.pibls {closed}")
        assert told.returncode == 0
        assert "converged" in told.stdout
        assert pb.load(tmp_path / f"{number}.pibls").status == "converged"
    assert code(f'"{sys.executable}" -m pibls solve - <&-').returncode == 2
