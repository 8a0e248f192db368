"""Problems with open parameters, and sweeps over them: labelled, resumed, the same whatever the number of processes."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
import xarray

import pibls as pb
import sweep_helpers
from cli_helpers import call, call_json
from internals import file_of
from pibls.errors import InputError, ProblemError

x = pb.coordinates("x")
u = pb.field("u", x)
line = pb.Interval((x, 0, 1))
middle = {"middle": lambda solution: solution([0.5])[0]}
PLATE = """title = "Rod"
equations = ["-k*u_xx = load"]
[domain]
shape = "interval"
x = [0, "length"]
[parameters]
k = 1
load = 2
length = "1/k"
[[conditions]]
kind = "dirichlet"
value = "0"
[solve]
tol = 1e-5
"""


def test_a_problem_with_open_parameters_becomes_one_without():
    k, load = pb.parameter("k"), pb.parameter("load")
    exact = load * x * (1 - x) / (2 * k)
    problem = pb.Problem(sp.Eq(-k * u.diff(x, 2), load), line, [pb.Dirichlet(u, 0 * load)], exact=exact)
    assert problem.parameters == (k, load)
    assert problem.is_linear
    assert str(problem).startswith("Find u(x) for given k, load with")
    half = problem.at(k=2)
    assert half.parameters == (load,)
    solution = pb.solve(half.at(load=sp.Rational(1, 3)))
    assert solution.true_error() < 1e-6
    assert solution([0.5])[0] == pytest.approx(1 / 48)


def test_parameters_in_conditions_and_across_interfaces():
    k, gap = pb.parameter("k"), pb.parameter("gap")
    contact = pb.Interface(u, on=pb.Interval((x, 0, 0.5)), resistance=gap)
    ends = [pb.Dirichlet(u, 0, on=line.left), pb.Robin(u, k, 1, k, on=line.right)]
    problem = pb.Problem(sp.Eq(u.diff(x, 2), 0), line, [*ends, contact])
    solution = pb.solve(problem.at(k=2, gap=1))
    # One flux q through the rod, the contact and the end: q·(1/2 + 1 + 1/2) + q/2 = 1.
    assert solution([[0.25], [0.75]]) == pytest.approx([0.1, 0.7])


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p: pb.solve(p), r"k, load are open in this one. Give them values: problem\.at\(k=…, load=…\)"),
        (lambda p: pb.solve(p.at(k=1)), r"load is open"),
        (lambda p: p.at(q=1), "no open parameter 'q'; its open parameters are k, load"),
        (lambda p: p.at(k="2"), "must be a finite real number"),
        (lambda p: p.at(k=np.inf), "must be a finite real number"),
        (lambda p: p.to_text(), "to_text needs a problem without open parameters"),
        (lambda p: pb.PIELM(nodes=9).fit(p, pb.Points.sample(p, interior=9)), "without open parameters"),
        (lambda p: pb.sweep(p, k=[1]), "load has none"),
        (lambda p: pb.sweep(p, k=[1], load=[1], q=[2]), "no parameter 'q'"),
        (lambda p: pb.sweep(p, k=[1, 1], load=[1]), "every value once"),
        (lambda p: pb.sweep(p, k=[np.nan], load=[1]), "finite numbers"),
        (lambda p: pb.sweep(p, k=[], load=[1]), "finite numbers"),
        (lambda p: pb.sweep(p, k=[1], load=[1], executor=0), "at least 1"),
        (lambda p: pb.sweep(p, k=[1], load=[1], executor="two"), "Or give an Executor of concurrent.futures"),
        (lambda p: pb.sweep(p, k=[1], load=[1], quantities={"a": 1}), "function of a solution"),
        (lambda p: pb.sweep(p, k=[1], load=[1], start=p), "must be a number or text"),
        (lambda p: pb.sweep(p.at(k=1, load=1)), "at least one parameter"),
    ],
)
def test_what_is_refused_says_what_to_do(ask, words):
    with pytest.raises(InputError, match=words):
        ask(sweep_helpers.rod())


def test_an_undeclared_symbol_can_be_declared_as_a_parameter():
    with pytest.raises(ProblemError, match=r"pibls\.parameter\('k'\)"):
        pb.Problem(u.diff(x, 2) - sp.Symbol("k"), line, [pb.Dirichlet(u, 0)])


def test_open_problems_go_to_other_processes():
    problem = pickle.loads(pickle.dumps(sweep_helpers.rod()))
    assert problem.parameters == sweep_helpers.rod().parameters
    assert pb.solve(problem.at(k=1, load=8))([0.5])[0] == pytest.approx(1)


def test_a_sweep_is_labelled():
    found = pb.sweep(
        sweep_helpers.rod(), k=[1, 2], load=[8.0, 16.0, 24.0], executor=1, grid_points=5, quantities=middle
    )
    assert found.middle.dims == ("k", "load")
    assert (found.middle - found["load"] / found.k / 8).values == pytest.approx(0, abs=1e-9)
    assert (found.u.sel(x=0.25) - found["load"] / found.k * 3 / 32).values == pytest.approx(0, abs=1e-9)
    assert (found.status == "converged").all()
    assert (found.error_estimate <= 1e-6).all()
    assert found.attrs["failed"] == 0


def test_the_number_of_processes_changes_nothing():
    asked = {"k": [1, 3], "load": [0.1, 7], "quantities": middle, "grid_points": 9}
    alone = pb.sweep(sweep_helpers.rod(), executor=1, **asked)
    assert pb.sweep(sweep_helpers.rod(), executor=2, **asked).identical(alone)
    with ThreadPoolExecutor(2) as threads:
        assert pb.sweep(sweep_helpers.rod(), executor=threads, **asked).identical(alone)


def test_domains_that_differ_have_quantities_but_no_common_grid():
    def bar(length):
        return sweep_helpers.rod().at(k=1, load=8) if length == 1 else _longer(length)

    found = pb.sweep(bar, length=[1, 2], executor=1, quantities=middle)
    assert found.middle.values == pytest.approx([1, 3])
    assert "u" not in found
    assert set(found.sizes) == {"length"}


def _longer(length):
    return pb.Problem(sp.Eq(-u.diff(x, 2), 8), pb.Interval((x, 0, length)), [pb.Dirichlet(u, 0)])


def test_a_point_that_fails_costs_itself_alone():
    k = pb.parameter("k")
    problem = pb.Problem(sp.Eq(k * u.diff(x, 2), -k), line, [pb.Dirichlet(u, 0)])
    told = []
    found = pb.sweep(problem, k=[0, 1], executor=1, quantities=middle, progress=told.append)
    assert found.status.values.tolist() == ["failed", "converged"]
    assert "k" not in found.message.sel(k=1)
    assert np.isnan(found.middle.sel(k=0))
    assert np.isnan(found.u.sel(k=0)).all()
    assert found.attrs["failed"] == 1
    assert [(one.done, one.total, one.failed) for one in told] == [(1, 2, 1), (2, 2, 1)]
    assert "k = 0: " in str(told[0])


def test_a_quantity_that_fails_is_told_and_costs_nothing_else():
    found = pb.sweep(
        sweep_helpers.rod(),
        k=[1],
        load=[1, 0],
        executor=1,
        quantities={"inverse": lambda s: 1 / int(bool(s([0.5]) > 1e-9))},
    )
    assert found.inverse.values[0] == pytest.approx([1.0, np.nan], nan_ok=True)
    assert "ZeroDivisionError" in found.message.sel(load=0).item()
    assert (found.status == "converged").all()


def test_a_process_that_dies_costs_its_own_point():
    k = pb.parameter("k")
    problem = pb.Problem(sp.Eq(-u.diff(x, 2), 8 * k), line, [pb.Dirichlet(u, 0)])
    deadly = pb.data("deadly", sweep_helpers.deadly, x)

    def make(k):
        return pb.Problem(sp.Eq(-u.diff(x, 2), 8 * deadly), line, [pb.Dirichlet(u, 0)]) if k == 2 else problem.at(k=k)

    found = pb.sweep(make, k=[1, 2, 3], executor=2, quantities=middle)
    assert found.status.values.tolist() == ["converged", "failed", "converged"]
    assert "process ended" in found.message.sel(k=2).item()
    assert found.middle.values[[0, 2]] == pytest.approx([1, 3])


def test_what_cannot_go_to_another_process_says_so():
    f = pb.data("f", lambda x: np.ones_like(x), x)
    make = lambda k: pb.Problem(sp.Eq(-u.diff(x, 2), k * f), line, [pb.Dirichlet(u, 0)])  # noqa: E731
    with pytest.raises(InputError, match="executor=1"):
        pb.sweep(make, k=[1, 2], executor=2)
    assert pb.sweep(make, k=[8], executor=1, quantities=middle).middle.item() == pytest.approx(1)
    with pytest.raises(InputError, match="data function 'f'"):
        pb.sweep(make, k=[1], executor=1, folder="nowhere")
    Path("nowhere").rmdir()


def test_results_are_kept_and_found_again(tmp_path, monkeypatch):
    asked = {"folder": tmp_path, "executor": 1, "quantities": middle, "grid_points": 5}
    first = pb.sweep(sweep_helpers.rod(), k=[1, 2], load=[1], **asked)
    assert sorted(path.name.split("-")[0] for path in tmp_path.iterdir()) == ["k=1,load=1", "k=2,load=1"]
    solved = []
    real = pb.tuning.solve
    monkeypatch.setattr("pibls.sweeps.solving.solve", lambda *a, **b: solved.append(1) or real(*a, **b))
    assert pb.sweep(sweep_helpers.rod(), k=[1, 2], load=[1], **asked).identical(first)
    assert not solved
    more = pb.sweep(sweep_helpers.rod(), k=[1, 2, 3], load=[1], **asked)
    assert len(solved) == 1
    assert more.middle.sel(k=[1, 2]).identical(first.middle)
    pb.sweep(sweep_helpers.rod(), k=[1], load=[1], tol=1e-3, **asked)  # asked for otherwise
    assert len(solved) == 2
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-50])  # damaged
    assert pb.sweep(sweep_helpers.rod(), k=[1, 2], load=[1], **asked).identical(first)
    assert len(solved) == 4


def test_files_are_told_apart_by_all_that_counts(tmp_path):
    names = {
        file_of(tmp_path, problem, {"k": 1}, options).name
        for problem in (
            sweep_helpers.rod().at(k=1, load=1),
            sweep_helpers.rod().at(k=1, load=1 + 1e-15),
            _longer(1),
            _longer(2),
        )
        for options in ({"tol": 1e-6}, {"tol": 1e-5}, {"tol": 1e-6, "seed": 1})
    }
    assert len(names) == 12


def test_what_only_python_knows_is_not_kept(tmp_path):
    y, square = pb.coordinates("y"), pb.Rectangle((x, 0, 1), (pb.coordinates("y"), 0, 1))
    v = pb.field("v", x, y)
    disk = pb.Disk((x, y), (0, 0), 2)
    for part in (
        square.boundary.where(lambda X: X[:, 0] < 0.5),
        (square & disk).boundary.where(lambda X: X[:, 1] < 0.5),
    ):
        domain = square if part.domain == square else square & disk
        problem = pb.Problem(pb.laplacian(v), domain, [pb.Dirichlet(v, 1, on=part)])
        with pytest.raises(InputError, match=r"the predicate of .* which is a Python function"):
            file_of(tmp_path, problem, {"k": 1}, {"tol": 1e-6})


def test_parts_of_a_file_are_told_apart(tmp_path):
    text = 'equations = "laplacian(u) = 0"\n[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]\n'
    text += '[[conditions]]\nkind = "dirichlet"\nvalue = 1\nwhere = "x < SHARE"\n'
    problems = [pb.text.read_text(text.replace("SHARE", share)).problem for share in ("0.5", "0.50000000000001")]
    assert len({file_of(tmp_path, problem, {"k": 1}, {}) for problem in problems}) == 2


def test_names_of_files_are_the_same_in_every_process(tmp_path):
    code = "from internals import file_of; from pathlib import Path; from sweep_helpers import rod\n"
    code += "print(file_of(Path(), rod().at(k=1.5, load=2), {'k': 1.5}, {'tol': 1e-6}))"
    paths = ":".join([str(Path(__file__).parent), *sys.path])
    other = {"PYTHONHASHSEED": "17", "PYTHONPATH": paths}
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=other).stdout
    here = file_of(tmp_path, sweep_helpers.rod().at(k=1.5, load=2), {"k": 1.5}, {"tol": 1e-6})
    assert said.strip() == here.name


def test_a_sweep_that_is_killed_goes_on_where_it_was(tmp_path):
    script = Path(sweep_helpers.__file__)
    run = subprocess.Popen([sys.executable, script, tmp_path], env={"PYTHONPATH": ":".join(sys.path)})
    for _ in range(600):
        if len(list(tmp_path.glob("k=*.pibls"))) >= 2:
            break
        time.sleep(0.1)
    run.send_signal(signal.SIGKILL)
    run.wait()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("k=*.pibls")}
    assert 2 <= len(before) < 8
    assert not (tmp_path / "finished").exists()
    found = pb.sweep(sweep_helpers.rod(), k=range(1, 9), load=[1], executor=1, folder=tmp_path, quantities=middle)
    assert found.middle.values[:, 0] == pytest.approx(1 / (8 * np.arange(1, 9)))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(tmp_path.glob("*.pibls"))) == 8
    assert not list(tmp_path.glob(".*"))


def _die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def _solve_and_die(real):
    def solve(*given, **options):
        real(*given, **options)
        _die()

    return solve


MOMENTS = {
    "before a solve": lambda patch: patch.setattr("pibls.sweeps.solving.solve", _die),
    "before its file": lambda patch: patch.setattr("pibls.sweeps.solving.solve", _solve_and_die(pb.tuning.solve)),
    "while it is written": lambda patch: patch.setattr("pathlib.Path.replace", _die),
    "before its numbers": lambda patch: patch.setattr("pibls.sweeps.labels.values_at", _die),
    "when all is told": lambda patch: None,
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_sweep_killed_at_any_moment_loses_nothing_and_repeats_nothing(moment, tmp_path, monkeypatch):
    asked = {"load": [1], "executor": 1, "folder": tmp_path}

    def end(progress):
        if moment == "when all is told":
            _die()
        MOMENTS[moment](pytest.MonkeyPatch())  # from the second point on

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads that the child does not have
        child = os.fork()
    if child == 0:
        pb.sweep(sweep_helpers.rod(), k=range(1, 4), progress=end, **asked)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("k=*.pibls")}
    assert len(before) == (2 if moment == "before its numbers" else 1)
    solved, real = [], pb.tuning.solve
    monkeypatch.setattr("pibls.sweeps.solving.solve", lambda *a, **b: solved.append(1) or real(*a, **b))
    found = pb.sweep(sweep_helpers.rod(), k=range(1, 4), quantities=middle, **asked)
    assert found.middle.values[:, 0] == pytest.approx(1 / (8 * np.arange(1, 4)))
    assert len(solved) == 3 - len(before)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_problem_goes_to_each_worker_once():
    sizes = []

    class Counting(ThreadPoolExecutor):
        def submit(self, function, *given):
            sizes.append(sum(len(pickle.dumps(one)) for one in given[1:]))
            return super().submit(function, *given)

    with Counting(2) as threads:
        pb.sweep(sweep_helpers.rod(), k=[1, 2, 3], load=[1], executor=threads)
    assert max(sizes) < len(pickle.dumps(sweep_helpers.rod())) / 4


def test_seeds_are_a_dimension():
    found = pb.sweep(sweep_helpers.rod(), k=[1], load=[8], seed=range(3), executor=1, quantities=middle)
    assert found.middle.dims == ("k", "load", "seed")
    assert found.middle.values == pytest.approx(np.ones((1, 1, 3)))
    alone = pb.sweep(sweep_helpers.rod(), k=[1], load=[8], seed=2, executor=1, quantities=middle)
    assert alone.middle.item() == found.middle.sel(seed=2).item()
    only = pb.sweep(lambda: sweep_helpers.rod().at(k=1, load=8), seed=[1, 2], executor=1, quantities=middle)
    assert only.middle.values == pytest.approx([1, 1])


def test_an_interrupt_is_no_result(tmp_path, monkeypatch):
    real = pb.tuning.solve

    def interrupted(problem, **options):
        solution = real(problem, **options)
        try:
            signal.raise_signal(signal.SIGINT)  # while it solves, which ends with the best solution so far
        except KeyboardInterrupt:
            return solution

    monkeypatch.setattr("pibls.sweeps.solving.solve", interrupted)
    # A suite that a shell runs in the background is told to ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pb.sweep(sweep_helpers.rod(), k=[1, 2], load=[1], executor=1, folder=tmp_path)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not list(tmp_path.iterdir())


def test_sensitivities_are_those_of_a_formula():
    solution = pb.solve(sweep_helpers.rod().at(k=2.0, load=3.0))
    found = solution.sensitivity(lambda s: s([0.5])[0] ** 2, ["load", "k"])
    exact = {"load": 2 * 3 / 16**2, "k": -2 * 9 / 64 / 2**3}  # of (load/(8 k))²
    assert [found["load"], found["k"]] == pytest.approx(list(exact.values()), rel=1e-9)
    assert (np.abs(found - np.array(list(exact.values()))) <= found.errors).all()
    assert repr(found).startswith("Gradient(load: 0.0234375 ±")
    assert dict(zip(found.names, found, strict=True)) == {"load": found[0], "k": found[1]}


def test_sensitivities_ask_for_no_errors_of_moved_solutions_and_state_each_problem_once():
    estimates, problems = [], []

    def middle(solution):
        estimates.append(solution.error_estimate)
        problems.append(solution.problem)
        return solution([0.5])[0]

    found = pb.solve(sweep_helpers.rod().at(k=2.0, load=3.0)).sensitivity(middle, "k")
    assert found["k"] == pytest.approx(-3 / 32, rel=1e-8)
    assert set(estimates) == {None}
    assert len({id(problem) for problem in problems}) == 4 < len(problems)


def test_sensitivities_see_the_parameter_where_a_quantity_uses_it():
    def flow(solution):
        k = float(solution.problem.equations[0].lhs.coeff(u.diff(x, 2)))
        return k * solution.derivative(u, x)([1.0])[0]  # −k u′ at the end, load/2 whatever k is

    found = pb.solve(sweep_helpers.rod().at(k=2.0, load=3.0)).sensitivity(flow, ["k", "load"])
    assert found.values == pytest.approx([0, 0.5], abs=1e-8)


@pytest.mark.parametrize("case", ["nonlinear", "jump", "heat"])
def test_sensitivities_agree_with_differences(case):
    t, k = pb.coordinates("t"), pb.parameter("k")
    if case == "heat":
        v = pb.field("v", x, t)
        heat = sp.Eq(v.diff(t), k * v.diff(x, 2))
        start = [pb.Dirichlet(v, 0), pb.Initial(v, sp.sin(sp.pi * x))]
        problem, X = pb.Problem(heat, line * pb.TimeInterval(t, 0, 1), start), [[0.5, 1.0]]
    else:
        inner = sp.Piecewise((k, x < sp.Rational(1, 2)), (1, True)) if case == "jump" else 1
        equation = sp.Eq(-pb.div([inner * u.diff(x)]), 1 if case == "jump" else 1 - k * u**3)
        problem, X = pb.Problem(equation, line, [pb.Dirichlet(u, 0)]), [[0.3]]
    place, step = 0.8, 1e-3

    def at(value):
        return float(pb.solve(problem.at(k=value), tol=1e-10)(X)[0])

    near, far = ((at(place + h) - at(place - h)) / (2 * h) for h in (step, 2 * step))
    found = pb.solve(problem.at(k=place)).sensitivity(lambda s: s(X)[0], k)
    assert found[0] == pytest.approx((4 * near - far) / 3, rel=1e-6)


def test_sensitivities_belong_to_the_solution_at_hand():
    k = pb.parameter("k")
    problem = pb.Problem(sp.Eq(-u.diff(x, 2), k * sp.exp(u)), line, [pb.Dirichlet(u, 0)])  # Bratu's has two solutions
    for start in (None, 4 * sp.sin(sp.pi * x)):
        own = pb.solve(problem.at(k=1.0), start=start)
        near, far = (
            [float(pb.solve(problem.at(k=1.0 + s * h), start=own, tol=1e-9)([0.5])[0]) for s in (1, -1)]
            for h in (1e-3, 2e-3)
        )
        slope = (4 * (near[0] - near[1]) / 2e-3 - (far[0] - far[1]) / 4e-3) / 3
        assert own.sensitivity(lambda s: s([0.5])[0], k)[0] == pytest.approx(slope, rel=1e-6)


def test_sensitivities_that_are_refused(tmp_path):
    solution = pb.solve(sweep_helpers.rod().at(k=2.0, load=3.0))
    for parameters in ("q", [], ["k", "k"], [1]):
        with pytest.raises(InputError, match="among those that the problem was given, k, load"):
            solution.sensitivity(lambda s: 1.0, parameters)
    with pytest.raises(InputError, match="function of a solution"):
        solution.sensitivity(1.0, "k")
    with pytest.raises(InputError, match="was loaded from a file"):
        pb.load(solution.save(tmp_path / "a.pibls")).sensitivity(lambda s: 1.0, "k")


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "rod.toml"
    path.write_text(PLATE)
    return path


def test_parameters_of_a_file_can_be_set(file):
    record = call_json("solve", file, "--set", "k=2", "--set", "load=pi/2", "--csv", "a.csv")
    assert "Interval((x, 0, 0.5))" in record["problem"]["text"]  # what depends on it follows
    table = np.loadtxt("a.csv", delimiter=",", skiprows=1)
    assert table[:, 1].max() == pytest.approx(np.pi / 2 / 2 / 8 / 4)
    for word, told in (("q=1", "its parameters are k, load, length"), ("k", "NAME=VALUE"), ("k=u", "no 'u' here")):
        assert told in call("solve", file, "--set", word, code=2).stderr
    assert "k=x" not in call("solve", file, "--set", "k=x", code=2).stdout
    assert "zoo:advection is none" in call("solve", "zoo:advection", "--set", "k=1", code=2).stderr


def test_a_sweep_from_the_command_line(file, tmp_path):
    words = ["sweep", file, "--set", "k=1:4:3log", "--set", "load=1,2", "--workers", "1", "--folder", "kept"]
    record = call_json(*words, "--netcdf", "a.nc", "--csv", "a.csv")
    assert [(point["k"], point["load"]) for point in record["points"]] == [
        (k, load) for k in (1, 2, 4) for load in (1, 2)
    ]
    assert {point["status"] for point in record["points"]} == {"converged"}
    assert len(list((tmp_path / "kept").iterdir())) == 6
    with xarray.open_dataset("a.nc") as table:
        assert table.attrs["tolerance"] == 1e-5
        assert dict(table.error_estimate.sizes) == {"k": 3, "load": 2}
    assert (tmp_path / "a.csv").read_text().count("\n") == 7
    shown = call(*words)
    assert "6/6: k = 4, load = 2: converged" in shown.stderr
    assert shown.stdout.count("converged") == 6


def test_sweeps_from_the_command_line_that_fail(file):
    failed = call("sweep", file, "--set", "k=0,1", "--workers", "1", code=2)
    assert failed.stdout.count("converged") == 1
    assert "divides by zero" in failed.stderr
    for word, told in (("q=1", "no parameter 'q'"), ("k=a", "takes numbers"), ("k=-1:1:3log", "one sign")):
        assert told in call("sweep", file, "--set", word, code=2).stderr
    assert "problem file that has parameters" in call("sweep", "zoo:advection", "--set", "k=1", code=2).stderr
    assert "has no parameter" in call("sweep", file, "--set", "nothing=1", code=2).stderr
    both = call("sweep", file, "--set", "k=1", "--processes", "1", "--executor", "tcp://nowhere:1", code=2)
    assert "Leave one of them out" in both.stderr
