"""The referee: what it calls worse, what it calls false, and that nothing is lost when it is cut off."""

from dataclasses import replace
from functools import partial

import pytest
from benchmarks import runner
from benchmarks.compared import compared
from benchmarks.golden import sampled
from benchmarks.records import load, save
from benchmarks.runner import Row
from benchmarks.sample import SAMPLE
from benchmarks.sets import SETS, Case, cases
from benchmarks.spread import spread

import pibls as pb

ROW = Row("zoo", "a", "", 1e-6, 0, "converged", "converged", 1e-7, 1.5e-7, 1.0, 2.0, 100, "Cells", "")
OTHER = replace(ROW, problem="b")
ILL = replace(ROW, problem="c", expected="ill-posed", status="ill-posed", error=float("nan"))
TABLE = [ROW, OTHER, ILL]


def worse(*changed):
    new = {row.key: row for row in (*TABLE, *changed)}
    return compared(TABLE, list(new.values()))[1]


def test_the_same_table_is_not_worse_and_a_better_one_neither():
    assert worse() == []
    assert compared([replace(ROW, status="stalled")], [ROW])[1] == []
    assert worse(replace(ROW, work=0.1, seconds=9.0)) == []


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        (replace(ROW, status="stalled"), "status worse"),
        (replace(ROW, status="exception"), "status worse"),
        (replace(ILL, status="stalled"), "status worse"),
        (replace(ILL, status="converged", verdict="FALSE CONVERGED"), "newly FALSE CONVERGED"),
        (replace(ROW, verdict="FALSE ESTIMATE"), "newly FALSE ESTIMATE"),
        (replace(ROW, error=4e-7), "within 3x"),
        (replace(ROW, work=1.4), "times the work"),
    ],
)
def test_what_is_worse_is_said(changed, word):
    assert any(word in line for line in worse(changed))


@pytest.mark.parametrize(
    ("expected", "status", "estimate", "error", "said"),
    [
        ("converged", "converged", 1e-6, 2.9e-6, ""),
        ("converged", "converged", 1e-7, 3.1e-6, "FALSE CONVERGED"),
        ("converged", "converged", 1e-7, float("nan"), "FALSE CONVERGED"),
        ("converged", "stalled", 1e-4, 0.9e-3, ""),
        ("converged", "stalled", 1e-4, 1.1e-3, "FALSE ESTIMATE"),
        ("converged", "ill-posed", 1e-4, 1e-4, "FALSE ILL-POSED"),
        ("ill-posed", "stalled", 1e-4, float("nan"), "MISSED"),
        ("ill-posed", "converged", 1e-4, float("nan"), "FALSE CONVERGED"),
        ("stalled", "converged", 1e-4, float("nan"), "FALSE CONVERGED"),
        ("stalled", "stalled", 1e-4, float("nan"), ""),
        ("converged", "exception", float("nan"), float("nan"), "EXCEPTION"),
    ],
)
def test_verdicts(expected, status, estimate, error, said):
    case = Case("a", pb.problems.poisson, None, expected=expected)
    assert runner.verdict(case, 1e-6, status, estimate, error) == said


def test_references_are_not_held_against_a_solve():
    case = Case("a", pb.problems.poisson, None, accuracy=1e-5)
    assert runner.verdict(case, 1e-6, "converged", 1e-7, 2e-5) == ""


def test_a_solve_is_a_row():
    row = runner.solved(("linear", "poisson", 1e-6, 0), "abc")
    assert (row.status, row.verdict, row.commit, row.method) == ("converged", "", "abc", "Cells")
    assert 1 / 3 < row.ratio < 3
    assert row.work > 0
    assert row.seconds > 0


def test_an_exception_is_a_row(monkeypatch):
    monkeypatch.setattr(pb, "solve", lambda *_, **__: 1 / 0)
    row = runner.solved(("linear", "poisson", 1e-6, 0))
    assert (row.status, row.verdict) == ("exception", "EXCEPTION")
    assert "ZeroDivisionError" in row.message


def test_a_table_that_was_cut_off_is_read_and_completed(tmp_path, monkeypatch):
    path = tmp_path / "golden.csv"
    save(Row, path, TABLE)
    assert [row.key for row in load(Row, path)] == [row.key for row in TABLE]
    path.write_text(path.read_text()[:-30])
    solved = []
    monkeypatch.setattr(runner, "warm_up", lambda: None)
    monkeypatch.setattr("benchmarks.spread.spread", lambda tasks, *_: solved.extend(tasks) or [(None, ILL)])
    rows = runner.run([row.key for row in TABLE], path, 1, "abc")
    assert solved == [ILL.key]
    assert [row.key for row in rows] == [row.key for row in load(Row, path)] == [row.key for row in TABLE]


def _task(number):
    if number == 2:
        raise SystemExit(1)
    return number**2


def test_tasks_are_spread_and_one_that_dies_takes_no_other_with_it(capsys):
    assert sorted(spread(range(5), _task, 2)) == [(0, 0), (1, 1), (3, 9), (4, 16)]
    assert "2: the process ended without a result" in capsys.readouterr().err


def test_longest_come_first_and_unknown_ones_between():
    keys = [("zoo", name, 1e-6, 0) for name in "abc"]
    known = [replace(ROW, seconds=0.1), replace(OTHER, seconds=60.0)]
    assert [key[1] for key in runner.longest_first(keys, known)] == ["b", "c", "a"]


def test_sets_are_whole():
    keys = runner.keys()
    assert len(set(keys)) == len(keys) > 700
    assert {key[0] for key in keys} == set(SETS)
    for name in SETS:
        for case in cases(name).values():
            assert (case.error is None) == (case.expected != "converged")
            assert isinstance(case.make, partial) or callable(case.make)


def test_the_sample_has_problems_of_every_set():
    assert set(SAMPLE) == set(SETS)
    assert all(name in cases(of) for of, names in SAMPLE.items() for name in names)
    assert len(sampled(runner.keys())) == sum(map(len, SAMPLE.values()))
