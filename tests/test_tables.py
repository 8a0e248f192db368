"""Every measured figure in README and docs is what the kept results say."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import pibls as pb

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tables():
    sys.path.insert(0, str(ROOT))
    try:
        yield importlib.import_module("benchmarks.tables")
    finally:
        sys.path.remove(str(ROOT))


def test_tables_are_what_the_results_say(tables):
    assert tables.out_of_step() == [], "run python -m benchmarks.tables"


def test_every_kind_of_result_is_told_and_says_where_it_comes_from(tables):
    told = set(re.findall(r"<!-- table: ([\w-]+) -->", "".join(p.read_text(encoding="utf-8") for p in tables.pages())))
    assert told == set(importlib.import_module("benchmarks.tables_written").TABLES)
    kept = sorted(p.stem for p in tables.FOLDER.glob("*.csv"))
    assert set(kept) <= set(tables.COMMANDS)
    for name in kept:
        made = tables.results(name).made
        assert all(made[key] for key in ("command", "date", "commit", "machine"))


def test_a_changed_figure_is_seen(tables):
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    changed = re.sub(r"\| (\d)e-", lambda m: f"| {int(m[1]) % 9 + 1}e-", text, count=1)
    assert changed != text
    assert tables.written(changed) == text


def test_the_golden_table_is_whole(tables):
    keys = importlib.import_module("benchmarks.runner").keys()
    rows = tables.results("golden").rows
    assert [(r["set"], r["problem"], float(r["tol"]), int(r["seed"])) for r in rows] == keys, "run benchmarks.golden"


def test_kept_runs_are_rounded_and_dated(tables, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "FOLDER", tmp_path / "results")
    monkeypatch.setattr(tables, "commit_of", lambda root: "abc1234")
    (tmp_path / "results").mkdir()
    run = tmp_path / "accuracy.csv"
    run.write_text("problem,error,nodes,message\npoisson,1.23456789e-7,12345678,long\n")
    tables.keep(run)
    head, *rest = (tmp_path / "results" / "accuracy.csv").read_text().splitlines()
    assert head.startswith('# {"command": "python -m benchmarks.accuracy')
    assert rest == ["problem,error,nodes", "poisson,1.235e-07,12345678"]
    with pytest.raises(SystemExit, match="must be named after a benchmark"):
        tables.keep(tmp_path / "other.csv")


def test_counts_in_the_readme_are_those_of_today():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    examples = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8").count("\n## ")
    assert re.search(r"\[(\d+) worked examples\]", text)[1] == str(examples)
    assert re.search(r"\(all (\d+) in `pb\.problems\.ill_posed", text)[1] == str(len(pb.problems.ill_posed()))
