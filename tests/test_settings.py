"""Constants are changed where they are made, and tried on the solves that read them."""

import sys
from dataclasses import replace

import pytest
from benchmarks import house, settings
from benchmarks.settings import Changed, Constant, Trial, every_constant, readers, scaled, summary, tasks

TRIAL = Trial("", 1.0, "linear", "a", 1e-6, 0, "converged", 1e-7, 1.0, 2.0)
FILES = {
    "fake/__init__.py": "",
    "fake/cells/__init__.py": "",
    "fake/cells/loop.py": """
_SHARE = 0.25
_PAIR, MOST = (1, 2), 8
_TWICE = 2 * MOST

class LoopSettings:
    growth: float = 1.5

def share(of=_SHARE):
    return of

def most():
    return MOST
""",
    "fake/cells/use.py": "from pibls.cells.loop import MOST as LIMIT\n\ndef limit():\n    return LIMIT\n",
}


@pytest.fixture
def fake(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for module in (settings, house):
        monkeypatch.setattr(module, "SOURCE", tmp_path / "fake")
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "fake"]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("value", "factor", "result"),
    [(0.3, 2, 0.6), (1, 0.5, 0), (3, 2, 6), (1, 1.1, 2), ({2: (3, True)}, 2, {2: (6, True)}), ("a", 2, "a"), (0, 2, 0)],
)
def test_numbers_are_scaled_and_nothing_else(value, factor, result):
    assert scaled(value, factor) == result


@pytest.mark.parametrize(
    ("name", "read", "result"),
    [
        ("_SHARE", "share()", 0.5),
        ("MOST", "most() + _TWICE", 48),
        ("_PAIR", "_PAIR[1] + MOST", 12),
        ("LoopSettings.growth", "LoopSettings.growth", 3.0),
    ],
)
def test_a_constant_changes_with_all_that_is_made_of_it(fake, monkeypatch, name, read, result):
    monkeypatch.setattr(sys, "meta_path", [Changed(Constant("cells/loop.py", name), 2.0), *sys.meta_path])
    import fake.cells.loop as loop

    assert eval(read, vars(loop)) == result


def test_constants_and_their_readers_are_found(fake):
    found = readers(every_constant())
    assert [c.name for c in found] == ["_SHARE", "_PAIR", "MOST", "_TWICE", "LoopSettings.growth"]
    by_name = {constant.name: places for constant, places in found.items()}
    assert by_name["MOST"] == {("cells/loop.py", "MOST"), ("cells/loop.py", ""), ("cells/use.py", "LIMIT")}
    assert by_name["_SHARE"] == {("cells/loop.py", "_SHARE"), ("cells/loop.py", "")}
    assert by_name["_PAIR"] == {("cells/loop.py", "_PAIR")}


def test_a_constant_is_tried_on_the_solves_that_read_it(fake):
    reads, other = TRIAL.key, ("linear", "b", 1e-6, 0)
    usual = {reads: TRIAL, other: replace(TRIAL, problem="b")}
    names = {reads: {("cells/use.py", "LIMIT")}, other: {("cells/loop.py", "_PAIR")}}
    chosen = [Constant("cells/loop.py", name) for name in ("MOST", "_SHARE")]
    made = list(tasks(chosen, usual, names, 4.0))
    assert [(c.name, factor, [key for key, _ in own]) for c, factor, own in made] == [
        *(("MOST", factor, [reads]) for factor in (0.5, 2.0)),
        *(("_SHARE", factor, []) for factor in (0.5, 2.0)),
    ]


def test_changes_that_count_are_told():
    constants = [Constant("a.py", name) for name in "XYZ"]
    trials = [
        replace(TRIAL, constant="a.py:X", factor=2.0, work=1.04, estimate=1.05e-7, seconds=9.0),
        replace(TRIAL, constant="a.py:Y", factor=2.0, work=0.9, status="stalled"),
    ]
    lines = {line.constant: line for line in summary(trials, {TRIAL.key: TRIAL}, constants)}
    assert [lines[f"a.py:{name}"].matters for name in "XYZ"] == ["no", "yes", "untried"]
    assert (lines["a.py:Y"].status, lines["a.py:Y"].estimate, lines["a.py:Y"].work) == (1, 0, 1)
