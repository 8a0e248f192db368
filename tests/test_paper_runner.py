"""A study can be stopped anywhere and goes on from there; its cells hold what the report reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import pibls as pb
from internals import PROFILES, Grid, Profile, Spec, Store, plan, tasks, write_report
from pibls.paper import published, read_cells, run_study

ENTRIES = {
    "kind",
    "problem",
    "method",
    "score",
    "n_train",
    "seed",
    "settings",
    "train",
    "test",
    "seconds",
    "search_seconds",
    "configurations",
    "parameters",
    "theorems",
    "extra",
    "made",
    "versions",
}


@pytest.fixture
def toy(monkeypatch):
    """A grid and a profile that take a moment."""

    def grid(problem, method, *, beyond=False):
        fixed = {"solver": "svd"} if method in ("PI-BLS", "PI-ELM") else {}
        if method == "PINN":
            space = {"width": [4], "activation": ["tanh"]}
            return Grid(method, space, {}, {"adam_iterations": 3, "lbfgs_iterations": 3})
        space = {"enhancement_nodes": [5], "feature_groups": [2]} if method == "PI-BLS" else {"nodes": [10]}
        if method == "PI-BLS" and not beyond:
            space["lambda_reg"] = [1e-4]
        return Grid(method, {**space, "activation": ["tanh"]}, fixed, {})

    ones = dict.fromkeys(("PI-BLS", "PI-ELM", "BPI-ELM", "PINN"), 1)
    monkeypatch.setattr(tasks, "grid", grid)
    profile = Profile({**ones, "PI-ELM": 2}, other_seeds=1, trained_seeds=1, solves=1, covered=("advection",))
    monkeypatch.setattr(tasks, "PROFILES", {"quick": profile})
    monkeypatch.setattr(tasks, "REPETITIONS", 2)
    monkeypatch.setattr("pibls.paper.selecting.LENGTHS", (2, 4))
    for module in ("selecting", "coverage"):
        monkeypatch.setattr(f"pibls.paper.{module}.scales", lambda *_: [2.0])
    monkeypatch.setattr("pibls.paper.protocol._SHORT", 2)
    monkeypatch.setattr("pibls.paper.protocol._LONG", 4)
    for table in ("_LINEAR_SIZES", "_TRAINED_SIZES"):
        monkeypatch.setattr(f"pibls.paper.complexity.{table}", {"points": ((20, 40), 20), "width": ((10, 20), 20)})


def without_times(cell):
    """What has to be the same in every run."""
    timed = {"seconds", "search_seconds", "exponent", "made"}
    return {key: value for key, value in cell.items() if key not in timed}


def test_a_whole_study_of_one_problem(toy, tmp_path):
    states = []
    assert run_study(tmp_path, workers=1, progress=states.append, only=["advection"]) == ()
    assert states[-1].done == states[-1].total == len(states) - 1
    assert states[-1].remaining == pytest.approx(0.0, abs=1e-6)
    assert "left" in str(states[1])
    cells = read_cells(tmp_path)
    assert all(set(cell) == ENTRIES for cell in cells)
    count = {}
    for cell in cells:
        count[cell["kind"], cell["method"]] = count.get((cell["kind"], cell["method"]), 0) + 1
    sizes = len(published().sizes("advection"))
    for method in ("PI-BLS", "PI-ELM", "BPI-ELM"):
        assert count["accuracy", method] == 2 * sizes + 2 * (method == "PI-ELM")
    assert count["accuracy", "PINN"] == sizes
    assert {key: n for key, n in count.items() if key[0] != "accuracy"} == {
        **{("curve", m): 1 for m in ("PI-BLS", "PI-ELM", "BPI-ELM", "PINN")},
        **{("time", m): 1 + (m == "PI-ELM") for m in ("PI-BLS", "PI-ELM", "BPI-ELM", "PINN")},
        ("theorems", "PI-BLS"): 1,
        ("theorems", "PI-ELM"): 2,
        ("search", "PINN"): sizes,
        ("beyond", "PI-BLS"): 2,
        ("solve", "solve"): 1,
        ("coverage", "BPI-ELM"): 1,
    }


def test_a_cell_can_be_computed_again_by_hand(toy, tmp_path):
    run_study(tmp_path, workers=1, progress=False, only=["advection", "PI-BLS", "accuracy", "theorems"])
    cell = next(c for c in read_cells(tmp_path) if (c["n_train"], c["score"], c["kind"]) == (30, "exact", "accuracy"))
    setting = tasks.Setting("advection", 30, 0)
    solution = pb.PIBLS(**cell["settings"]).fit(setting.problem, setting.points, seed=0)
    assert cell["test"] == pb.metrics(solution, points=setting.test_points)
    assert cell["train"] == pb.metrics(solution, points=setting.points.interior)
    assert cell["parameters"] == solution.diagnostics.nodes
    assert cell["configurations"] == 1
    assert cell["versions"]["pibls"] == pb.__version__
    assert cell["made"]["command"] == (
        "pibls reproduce --profile quick --only advection --only PI-BLS --only accuracy --only theorems"
    )
    assert set(cell["made"]) == {"command", "commit", "machine", "date"}
    checked = next(c for c in read_cells(tmp_path) if c["kind"] == "theorems")["theorems"]
    assert list(checked) == ["optimality", "no descent", "ridge path", "stability", "sensitivity"]
    assert all(check["holds"] for check in checked.values())


def test_only_what_is_missing_is_computed(toy, tmp_path):
    wanted = {"workers": 1, "progress": False, "only": ["advection", "PI-ELM"]}
    run_study(tmp_path, **wanted)
    store = Store(tmp_path)
    before = {path: path.read_text() for path in store.folder.iterdir()}
    lost = store.path(Spec("accuracy", "advection", "PI-ELM", 20, 0, "residual"))
    lost.unlink()
    states = []
    run_study(tmp_path, **{**wanted, "progress": states.append})
    assert [str(state.message) for state in states] == ["start", "accuracy: PI-ELM, advection, N = 20, seed 0"]
    after = {path: path.read_text() for path in store.folder.iterdir()}
    assert after.keys() == before.keys()
    for path, text in after.items():
        assert without_times(json.loads(text)) == without_times(json.loads(before[path]))


def test_an_executor_computes_the_same_cells(toy, tmp_path):
    only = ["advection", "PI-ELM", "accuracy"]
    with ThreadPoolExecutor(2) as threads:
        assert run_study(tmp_path / "threads", executor=threads, progress=False, only=only) == ()
        assert threads.submit(str).result() == ""  # it is not shut down
    run_study(tmp_path / "here", workers=1, progress=False, only=only)
    cells = [
        {path.name: without_times(json.loads(path.read_text())) for path in Store(tmp_path / name).folder.iterdir()}
        for name in ("threads", "here")
    ]
    assert cells[0]
    assert cells[0] == cells[1]


def test_time_is_that_of_the_selected_settings(toy, tmp_path):
    run_study(tmp_path, workers=1, progress=False, only=["advection", "PI-ELM", "time"])
    alone = [without_times(cell) for cell in read_cells(tmp_path)]
    assert [cell["settings"]["nodes"] for cell in alone] == [10, 10]
    run_study(tmp_path / "all", workers=1, progress=False, only=["advection", "PI-ELM"])
    later = [without_times(cell) for cell in read_cells(tmp_path / "all") if cell["kind"] == "time"]
    assert later == alone


def test_complexity_has_an_exponent_per_axis(toy, tmp_path):
    run_study(tmp_path, workers=1, progress=False, only=["complexity", "PI-BLS"])
    cells = read_cells(tmp_path)
    assert {cell["axis"] for cell in cells} == {"points", "width"}
    assert all(isinstance(cell["exponent"], float) for cell in cells)


RUN = """
import sys
from pibls.paper import run_study
if __name__ == "__main__":
    run_study(sys.argv[1], workers=2, progress=False, only=["advection", "solve"])
"""


def start(script, out):
    return subprocess.Popen([sys.executable, str(script), str(out)], stderr=subprocess.DEVNULL, start_new_session=True)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_study_goes_on(tmp_path, end):
    script = tmp_path / "run.py"
    script.write_text(RUN)
    out, cells = tmp_path / "out", tmp_path / "out" / "cells"
    process = start(script, out)
    limit = time.monotonic() + 100
    while not (cells.is_dir() and any(cells.glob("[!.]*.json"))) and time.monotonic() < limit:
        time.sleep(0.01)
    os.kill(process.pid, end)
    ended = process.wait(timeout=60)
    first = {path.name: path.stat().st_mtime_ns for path in cells.glob("[!.]*.json")}
    # It may have come to its end just before.
    assert first if ended else len(first) == PROFILES["quick"].solves
    run_study(out, workers=1, progress=False, only=["advection", "solve"])
    assert len(read_cells(out)) == PROFILES["quick"].solves
    assert {name: (cells / name).stat().st_mtime_ns for name in first} == first
    setting = tasks.Setting("advection", 30, 0)
    cell = next(c for c in read_cells(out) if c["seed"] == 0)
    solution = pb.solve(setting.problem, seed=0)
    assert cell["test"]["relative_rmse"] < 1e-6
    assert cell["extra"]["estimate"] == pytest.approx(solution.error_estimate, rel=1.0)


def test_a_cell_is_whole_or_not_there(tmp_path, monkeypatch):
    store, spec = Store(tmp_path), Spec("solve", "advection", "solve", 30, 0)
    assert store.read(spec) is None
    with pytest.raises(TypeError):
        store.write(spec, {"a": object()})
    assert not store.has(spec)
    assert read_cells(tmp_path) == []
    store.write(spec, spec.cell(seconds=2.0, extra={"bound": float("inf")}))
    assert store.read(spec) == read_cells(tmp_path)[0]
    assert store.read(spec)["extra"]["bound"] == float("inf")
    # A killed process leaves what it was writing beside it.
    (store.folder / f".{spec.key}.host-1-00000000.part.json").write_text(store.path(spec).read_text())
    assert len(read_cells(tmp_path)) == 1
    store.path(spec).write_text("{")
    with pytest.raises(pb.PiblsError, match="Delete it"):
        read_cells(tmp_path)


@pytest.mark.parametrize("content", ["[]", "null", "3", "{}", '{"kind": 5}', '{"kind": "solve", "seed": "x"}'])
def test_a_file_that_is_no_cell_or_another_one_is_named(tmp_path, content):
    store, spec = Store(tmp_path), Spec("solve", "advection", "solve", 30, 0)
    store.write(spec, spec.cell())
    store.path(spec).write_text(content)
    with pytest.raises(pb.PiblsError, match=f"{spec.key}.*Delete it"):
        store.read(spec)


def test_a_cell_under_the_name_of_another_is_not_mistaken_for_it(tmp_path):
    store, spec, other = Store(tmp_path), *(Spec("solve", "advection", "solve", 30, seed) for seed in (0, 1))
    store.write(spec, other.cell())
    with pytest.raises(pb.PiblsError, match="not about solve, advection, solve, 30, 0"):
        store.read(spec)


def test_keys_tell_cells_apart():
    base = ("accuracy", "advection", "PI-BLS", 30, 0, "exact", "")
    other = ("time", "poisson_star", "PINN", 25, 1, "residual", "width")
    keys = {Spec(*base).key, *(Spec(*base[:i], other[i], *base[i + 1 :]).key for i in range(len(base)))}
    assert len(keys) == 1 + len(base)


def test_networks_of_the_tables_are_trained_before_those_of_the_figures():
    stages = plan("full", ["PINN", "search", "accuracy"])
    kinds = [{(t.kind, t.n_train in (30, 100)) for t in stage} for stage in stages]
    assert kinds == [{("search", True)}, {("accuracy", True)}, set(), {("search", False)}, {("accuracy", False)}]
    told = [s for stage in stages for t in stage for s in t.specs if (s.kind, s.problem) == ("accuracy", "advection")]
    assert {(s.n_train, s.seed, s.score) for s in told} == {
        (n, seed, "exact") for n in range(5, 31, 5) for seed in range(10 if n == 30 else 3)
    }


def test_plans():
    quick, full = plan("quick"), plan("full")
    few, every = ({spec for stage in stages for task in stage for spec in task.specs} for stages in (quick, full))
    assert few < every
    for stages in (quick, full):
        specs = [spec.key for stage in stages for task in stage for spec in task.specs]
        assert len(set(specs)) == len(specs)
    drawn = [spec for stage in quick for task in stage for spec in task.specs if spec.kind == "curve"]
    assert len(drawn) == 12
    assert {spec.n_train for spec in drawn if spec.problem == "diffusion_reaction"} == {50}
    seeds = {s for t in quick[0] for n, s in t.members if (t.kind, t.method, n) == ("accuracy", "PI-BLS", 100)}
    assert seeds == set(range(10))


def test_a_failing_task_does_not_stop_the_others(toy, tmp_path, monkeypatch):
    def failing(problem, method, *, beyond=False):
        return Grid("PI-ELM", {"nodes": [5], "activation": ["relu"]}, {}, {})

    good = tasks.grid
    choose = lambda problem, *rest, **more: (failing if problem == "poisson_star" else good)(problem, *rest, **more)  # noqa: E731
    monkeypatch.setattr(tasks, "grid", choose)
    failures = run_study(tmp_path, workers=1, progress=False, only=["poisson_star", "advection", "PI-ELM", "accuracy"])
    assert len(failures) == 7
    assert all("poisson_star" in failure and "relu" in failure for failure in failures)
    assert {cell["problem"] for cell in read_cells(tmp_path)} == {"advection"}
    page = " ".join(write_report(tmp_path).read_text(encoding="utf-8").split())
    assert "7 tasks failed, and their cells are missing" in page
    assert f"<li>{failures[0].partition(':')[0]}" in page
    monkeypatch.setattr(tasks, "grid", good)
    assert run_study(tmp_path, workers=1, progress=False, only=["poisson_star", "PI-ELM", "accuracy"]) == ()
    assert Store(tmp_path).failures == []


def test_a_defect_in_one_task_costs_its_own_cells_only(toy, tmp_path, monkeypatch):
    def broken(setting):
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr(tasks, "solve_cell", broken)
    (failure,) = run_study(tmp_path, workers=1, progress=False, only=["advection", "solve", "coverage"])
    assert "ZeroDivisionError: a defect" in failure
    assert [cell["kind"] for cell in read_cells(tmp_path)] == ["coverage"]


def test_one_cell_alone(toy, tmp_path):
    run_study(tmp_path, workers=1, progress=False, only=["advection", "PI-ELM", "accuracy", "N=30", "seed=1"])
    assert {(c["n_train"], c["seed"], c["kind"]) for c in read_cells(tmp_path)} == {(30, 1, "accuracy")}
    run_study(tmp_path / "pinn", workers=1, progress=False, only=["advection", "PINN", "N=20", "seed=0"])
    assert {(c["n_train"], c["seed"]) for c in read_cells(tmp_path / "pinn")} == {(20, 0)}


def test_without_torch_pinns_are_refused_and_all_else_is_run(toy, tmp_path, monkeypatch):
    monkeypatch.setattr("pibls.paper.runner.find_spec", lambda name: None)
    with pytest.raises(pb.PiblsError, match=r"need torch.*pip install 'pibls\[torch\]'"):
        run_study(tmp_path, workers=1, progress=False, only=["advection", "time"])
    assert not list(tmp_path.iterdir())
    run_study(tmp_path, workers=1, progress=False, only=["advection", "PI-ELM", "time"])
    assert {cell["method"] for cell in read_cells(tmp_path)} == {"PI-ELM"}


def test_the_quick_profile_trains_nothing():
    assert not any(task.method == "PINN" for stage in plan("quick") for task in stage)


def test_a_line_on_the_terminal(toy, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    run_study(tmp_path, workers=1, progress=True, only=["advection", "PI-ELM", "time"])
    assert "1/1 after" in capsys.readouterr().err


def test_a_line_per_batch_where_there_is_no_terminal(toy, tmp_path, capsys):
    run_study(tmp_path, workers=1, only=["advection", "PI-ELM", "PI-BLS", "accuracy", "time"])
    lines = capsys.readouterr().err.splitlines()
    # Six numbers of points each, one with a second seed of PI-ELM, and the timed fits of one task.
    batches = [f"{kind}: {method}, advection" for kind in ("accuracy", "time") for method in ("PI-BLS", "PI-ELM")]
    assert [line.partition(": ")[2] for line in lines] == batches
    assert lines[-1].startswith("15/15 after 0:0")
    run_study(tmp_path, workers=1, only=["advection", "PI-ELM", "PI-BLS", "accuracy", "time"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"out": 3}, "'out'"),
        ({"profile": "huge"}, "'quick', 'full'"),
        ({"workers": 0}, "workers"),
        ({"executor": 2}, "stands for 'workers'"),
        ({"workers": None, "executor": "many"}, "'executor'"),
        ({"progress": 3}, "callable"),
        ({"only": ["burgers"]}, "burgers"),
        ({"only": ["N=31"]}, "N=31 together"),
        ({"only": ["N=many"]}, "N=many"),
        ({"only": ["PINN", "coverage"]}, "PINN, coverage together"),
        ({"progress": lambda: None}, "StudyProgress"),
    ],
)
def test_refusals(tmp_path, change, words):
    with pytest.raises(pb.PiblsError, match=words):
        run_study(**{"out": tmp_path, "workers": 1, "progress": False, "only": ["advection", "solve"], **change})


@pytest.mark.parametrize("change", [{"workers": 0}, {"only": ["burgers"]}, {"only": ["PINN", "coverage"]}])
def test_what_is_refused_leaves_no_folder(tmp_path, change):
    with pytest.raises(pb.PiblsError):
        run_study(tmp_path / "out", **change)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(pb.PiblsError, match="'out'"):
        run_study(tmp_path / "file", workers=1)


def test_the_quick_profile_has_ten_seeds_where_the_paper_has_tables():
    first = plan("quick")[0]
    counts = {
        (problem, kind): sum((t.problem, t.kind, t.method, t.n_train) == (problem, kind, "PI-BLS", n) for t in first)
        for problem, n in (("advection", 30), ("poisson_star", 100), ("diffusion_reaction", 100))
        for kind in ("accuracy", "beyond")
    }
    assert set(counts.values()) == {10}
    full = plan("full")[0]
    assert sum(t.problem == "poisson_square" and t.kind == "beyond" for t in full) == 10
