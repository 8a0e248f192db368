"""The studio's workers: they read, solve, measure and write; a problem that goes wrong costs its own answer alone."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import threading
import time
import tomllib
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import pibls as pb
from internals import (
    Allowance,
    Crew,
    History,
    Inbox,
    Move,
    Session,
    Workbench,
    step_ahead,
    to_click,
    with_value,
    without,
)
from pibls.errors import DeadlineError, InputError, ResourceError

pytest.importorskip("latex2mathml", reason="formulas are typeset by pibls[studio]")

PLATE = (Path(pb.__file__).parent / "cli" / "starters" / "plate.toml").read_text(encoding="utf-8")
MEMBRANE = """title = "Membrane"
unknowns = ["u"]
equations = ["-k*laplacian(u) = load"]
[parameters]
k = 1
load = 4
[domain]
shape = "disk"
radius = 1
[[conditions]]
kind = "dirichlet"
value = 0
[solve]
tol = 1e-4
"""
PICTURE = {"what": "solution", "field": None, "over": [], "n": 31}


@pytest.fixture(scope="module")
def loop():
    own = asyncio.new_event_loop()
    yield own
    own.close()


@pytest.fixture(scope="module")
def session(loop):
    """A session on a membrane whose workers all tests of this file share."""
    crew = Crew(Allowance(seconds=60.0, look=60.0, room=2 * 2**30))
    own = Session(crew, MEMBRANE)
    yield own
    own.close()
    crew.dismiss()


def read(loop, session, text):
    session.history = History(text)
    return loop.run_until_complete(session.read())


def solved(loop, session, text, **options):
    session.history = History(text)
    told = []
    return loop.run_until_complete(session.solve(PICTURE, told.append, **options)), told


def asked(loop, session, task, **given):
    return loop.run_until_complete(session.measure(task, **given))


# Reading -------------------------------------------------------------------------------------------------------------


def test_a_file_is_read_as_cards_and_a_drawing(loop, session):
    found = read(loop, session, PLATE)
    assert found["error"] is None
    assert found["equations"][0]["mathml"].startswith("<math")
    assert [own["name"] for own in found["parameters"]] == ["h", "air"]
    edges = {edge["name"]: edge for edge in found["board"]["edges"]}
    assert {name: edge["conditions"] for name, edge in edges.items()} == {
        **{"left": [0], "right": [1], "bottom": [2], "top": [2]},
        "hole": [2],
    }
    assert not any(curve["bare"] for edge in edges.values() for curve in edge["curves"])
    assert ">air<" in found["conditions"][1]["mathml"]  # a word, and no product of letters


def test_edges_without_a_condition_are_bare_and_told(loop, session):
    found = read(loop, session, without(PLATE, ("conditions", 1)))
    bare = [edge["name"] for edge in found["board"]["edges"] if any(curve["bare"] for curve in edge["curves"])]
    assert bare == ["right"]
    assert "right has no condition" in found["told"]
    half = with_value(PLATE, ("conditions", 1, "where"), "y > 0.5")
    pieces = next(edge for edge in read(loop, session, half)["board"]["edges"] if edge["name"] == "right")["curves"]
    assert sorted(piece["bare"] for piece in pieces) == [False, True]


def test_words_say_what_a_page_offers(loop, session):
    bare = read(loop, session, without(MEMBRANE, ("conditions", 0)))
    assert bare["told"].endswith("Click what is red to give it a condition.")
    free = read(loop, session, with_value(MEMBRANE, ("conditions", 0, "kind"), "neumann"))
    assert "Fix the level, or give a value at some point." in free["told"]
    missing = f'{MEMBRANE}[[conditions]]\nkind = "observation"\nfile = "data.csv"\n'
    assert "no file data.csv here yet. Open it, or drop it" in read(loop, session, missing)["error"]["message"]
    assert read(loop, session, MEMBRANE)["unknowns"] == ["unknowns", "u"]
    body = (Path(pb.__file__).parent / "cli" / "starters" / "body.toml").read_text(encoding="utf-8")
    assert read(loop, session, body)["problem"]["flows"] == ["u", "v", "w"]


def test_a_larger_budget_is_asked_for_as_a_page_can_give_it():
    words = "The budget limits the accuracy. Give a larger budget, such as budget=100."
    assert to_click(words).endswith("such as budget = 100 below [solve] in the file.")


def test_names_of_several_letters_are_typeset_as_words(loop, session):
    drum = MEMBRANE.replace("-k*laplacian(u) = load", "-k*laplacian(u) = mode*u").replace(
        "[parameters]", 'eigenvalue = "mode"\n[parameters]'
    )
    assert "mode" in read(loop, session, drum)["equations"][0]["mathml"].split("<mtext>")[1].split("</mtext>")[0]


def test_errors_have_their_place_and_a_suggestion(loop, session):
    found = read(loop, session, with_value(PLATE, ("equations", 0), "-laplacian(T) = sinn(x)"))
    assert "Did you mean 'sin'?" in found["equations"][0]["error"]["message"]
    assert found["equations"][0]["error"]["excerpt"].endswith("^^^^")
    assert found["error"]["line"] == 4
    assert found["board"]["edges"]  # the domain is drawn all the same
    found = read(loop, session, with_value(PLATE, ("conditions", 1, "value"), "h*airr"))
    assert found["conditions"][1]["error"]["key"] == "value"
    assert read(loop, session, "not toml")["error"]["line"] == 1
    found = read(loop, session, with_value(PLATE, ("equations", 0), "-k*laplacian(T) = 0"))
    assert found["equations"][0]["error"]["missing"] == "k"


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('touch owned')",
        "(1).__class__.__base__.__subclasses__()",
        "lambda: 0",
        "<script>alert(1)</script>",
        "9**9**9**9",
        "u_" + "x" * 400,
        "(" * 500,
        "u" * 30000,
    ],
)
def test_nothing_typed_is_run(loop, session, hostile):
    text = with_value(MEMBRANE, ("equations", 0), hostile)
    found = read(loop, session, text)
    assert found["equations"][0]["error"] or found["error"]
    assert "<script" not in found["equations"][0]["mathml"]
    session.history = History(MEMBRANE)
    assert loop.run_until_complete(session.typeset(hostile))["error"] is not None


# Solving -------------------------------------------------------------------------------------------------------------


def test_a_solve_tells_its_progress_and_its_picture_holds_the_solution(loop, session):
    found, told = solved(loop, session, MEMBRANE)
    assert found["status"] == "converged"
    assert told
    assert told[-1]["estimate"] < 1e-4
    picture = found["picture"]
    codes = np.frombuffer(base64.b64decode(picture["codes"][0]), "<u2").reshape(31, 31)
    assert codes[0, 0] == 65535  # a corner of the box around the disk
    middle = picture["low"] + codes[15, 15] / 65534 * (picture["high"] - picture["low"])
    assert middle == pytest.approx(1.0, abs=1e-4)


def test_parameters_on_right_hand_sides_are_solved_from_kept_factors(loop, session):
    solved(loop, session, MEMBRANE)
    for load, kept in ((3, False), (2, True), (8, True)):
        text = with_value(MEMBRANE, ("parameters", "load"), load)
        found, _ = solved(loop, session, text, again=Move("load", settled=False))
        assert (found["way"] == "kept factors") == kept
        assert found["picture"]["high"] == pytest.approx(load / 4, abs=2e-3)
    found, _ = solved(loop, session, with_value(MEMBRANE, ("parameters", "k"), 2), again=Move("k", settled=False))
    assert found["way"] == ""
    assert found["picture"]["high"] == pytest.approx(0.5, abs=2e-3)


@pytest.fixture(scope="module")
def bench():
    """A workbench in this process, with a membrane whose coefficient has been solved for ahead of its slider."""
    own = Workbench(lambda _: None)
    own.solve(MEMBRANE, "", 60.0, PICTURE, {"k": (0.0, 2.0, 200), "load": (0.0, 8.0, 200)})
    while own.ahead():
        pass
    return own


def moved(bench, value, name="k", **options):
    text = with_value(MEMBRANE, ("parameters", name), value)
    return bench.again(text, 60.0, PICTURE, bench.ranges, moved=name, **options)


def test_a_coefficient_that_moves_is_shown_between_solutions_and_solved_for_when_it_rests(bench):
    for value in (0.5, 1.23, 1.9):
        found = moved(bench, value, settled=False)
        assert (found["way"], found["status"]) == ("between", "converged")
        assert "values that were solved for: the estimated error" in found["message"]
        assert found["picture"]["high"] == pytest.approx(1 / value, rel=2e-3)
        assert abs(bench.held([[0.0, 0.0]])[0] - 1 / value) < max(found["estimate"], 1e-9) * 3 / value
    assert not bench.ahead()  # nothing is made while the slider moves
    found = moved(bench, 1.9, settled=True)
    assert (found["way"], found["status"]) == ("", "converged")


def test_a_number_that_is_measured_between_solutions_has_their_error(bench):
    moved(bench, 1.37, settled=False)
    error = bench.tasks["probe"]([0.5, 0.0])["lines"][0]
    value, width = (float(word) for word in error.removeprefix("u = ").split(" ± "))
    assert abs(value - 0.75 / 1.37) <= max(3 * width, 1e-9)


def test_other_text_has_none_of_the_solutions_that_are_kept(bench):
    """Solutions for one load tell nothing of another one."""
    moved(bench, 1.0, settled=True)
    doubled = with_value(MEMBRANE, ("parameters", "load"), 8)
    found = bench.again(with_value(doubled, ("parameters", "k"), 1.5), 60.0, PICTURE, bench.ranges, "k", settled=False)
    assert found["way"] == ""
    assert found["picture"]["high"] == pytest.approx(2 / 1.5, rel=2e-3)


def test_numbers_come_with_their_errors(loop, session):
    solved(loop, session, MEMBRANE)
    line = asked(loop, session, "probe", place=[0.5, 0.0])["lines"][0]
    value, error = (float(word) for word in line.removeprefix("u = ").split(" ± "))
    assert value == pytest.approx(0.75, abs=max(10 * error, 1e-5))
    flow = asked(loop, session, "quantity", kind="flow", formula="", part="boundary", at=None)["line"]
    assert float(flow.split(" = ")[1].split(" ± ")[0]) == pytest.approx(4 * np.pi, rel=1e-4)
    top = asked(loop, session, "quantity", kind="maximum", formula="u", part=None, at=None)
    assert top["place"] == pytest.approx([0.0, 0.0], abs=1e-2)
    cut = asked(loop, session, "cut", ends=[[-1, 0], [1, 0]], at=None, name="u")
    assert cut["values"][100] == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(InputError, match="outside the domain"):
        asked(loop, session, "probe", place=[2.0, 2.0])
    with pytest.raises(InputError, match="Did you mean"):
        asked(loop, session, "quantity", kind="integral", formula="uu", part=None, at=None)


def test_overlays_and_files(loop, session):
    solved(loop, session, MEMBRANE)
    over = ["cells", "streamlines", "gradient"]
    found = asked(loop, session, "picture", what="estimate", field=None, over=over, n=21)
    assert found["log"]
    assert found["high"] < 1e-3
    assert len(found["walls"]) == 1
    assert len(found["arrows"][0][0]) == 4
    x, y = np.array(found["streams"][0][0]).T
    assert np.hypot(x, y)[-1] > np.hypot(x, y)[0]  # down the gradient, towards the rim
    table = loop.run_until_complete(session.write("csv")).decode()
    assert table.startswith("x,y,u,u_error\n")
    assert not list(Path(session.folder).glob("export*"))


def test_eigenvalues_and_unknown_numbers(loop, session):
    drum = without(without(MEMBRANE, ("parameters", "k")), ("parameters", "load"))
    drum = with_value(drum.replace("-k*laplacian(u) = load", "-laplacian(u) = lam*u"), ("eigenvalue",), "lam")
    found, _ = solved(loop, session, with_value(drum, ("solve", "tol"), 1e-3))
    assert float(found["eigenvalues"][0].split(" ± ")[0]) == pytest.approx(5.783186, rel=1e-3)
    assert asked(loop, session, "mode", number=1, picture=PICTURE)["picture"]["signed"]
    rows = "".join(f"{x / 10},0,{(1 - x * x / 100) / 2}\n" for x in range(-9, 10, 3))
    name = session.store("../measured data.csv", f"x,y,u\n{rows}".encode())
    fitted = without(MEMBRANE, ("parameters", "k")).replace(
        'unknowns = ["u"]', 'unknowns = ["u"]\nunknown_numbers = ["k"]'
    )
    fitted += f'[[conditions]]\nkind = "observation"\nfile = "{name}"\nnoise = 1e-3\n'
    found, _ = solved(loop, session, fitted)
    assert float(found["parameters"][0].split()[3]) == pytest.approx(2.0, rel=1e-2)


def test_uploads_are_kept_by_plain_names_and_limited(session):
    assert session.store("../../etc/part.stl", b"solid") == "part.stl"
    assert session.store("a b\x00;.csv", b"x") == "a_b__.csv"
    with pytest.raises(InputError, match="reads"):
        session.store("run.py", b"")
    with pytest.raises(InputError, match="8 MiB"):
        session.store("big.csv", b"x" * (8 * 2**20 + 1))
    names = {path.name for path in Path(session.folder).iterdir()}
    assert {"part.stl", "a_b__.csv"} <= names


# Limits --------------------------------------------------------------------------------------------------------------


def test_a_problem_that_would_need_a_terabyte_is_refused_in_words(loop, session):
    huge = MEMBRANE.replace("-k*laplacian(u) = load", "-k*laplacian(u) = load + 1e6*sin(100000*x)*sin(100000*y)")
    huge = with_value(with_value(huge, ("solve", "tol"), 1e-12), ("solve", "budget"), 1e12)
    crew = Crew(Allowance(seconds=1.0, grace=5.0, room=2**29))
    own = Session(crew, huge)
    try:
        words = ""
        try:
            words = loop.run_until_complete(own.solve(PICTURE, lambda _: None))["message"]
        except (DeadlineError, InputError, ResourceError) as error:
            words = str(error)
        assert any(word in words for word in ("memory", "deadline", "seconds", "tolerance"))
    finally:
        own.close()
        crew.dismiss()
    assert read(loop, session, MEMBRANE)["error"] is None  # other pages go on


def test_a_worker_that_is_killed_or_late_is_told_and_replaced(loop, session):
    solved(loop, session, MEMBRANE)

    async def killed():
        work = asyncio.ensure_future(session.solve(PICTURE, lambda _: None))
        await asyncio.sleep(0)
        while not session.bench.turn.locked():
            await asyncio.sleep(0)
        session.bench.process.kill()
        return await work

    with pytest.raises(ResourceError, match="ended before it had an answer"):
        loop.run_until_complete(killed())
    with pytest.raises(InputError, match="no solution yet"):
        asked(loop, session, "probe", place=[0, 0])
    with pytest.raises(DeadlineError, match="took more than"):
        loop.run_until_complete(session.crew.desk().ask("read", {"text": PLATE, "folder": session.folder}, 1e-6))
    assert read(loop, session, PLATE)["error"] is None
    assert solved(loop, session, MEMBRANE)[0]["status"] == "converged"


def test_fifty_solves_at_one_time_are_answered_each(loop):
    """Two are solved at a time, some wait, and the others are refused in words; none is lost."""
    crew = Crew(Allowance(together=2, waiting=3))
    running, most, answers = 0, 0, []

    async def one():
        nonlocal running, most
        try:
            async with crew.turn():
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.01)
                running -= 1
            answers.append("solved")
        except ResourceError as error:
            answers.append(str(error))

    async def all_of_them():
        await asyncio.gather(*(one() for _ in range(50)))

    loop.run_until_complete(all_of_them())
    refused = [words for words in answers if words != "solved"]
    assert most == 2
    assert len(answers) == 50
    assert 3 <= answers.count("solved") <= 5
    assert all("solves 2 problems at a time" in words for words in refused)
    assert (crew.running, crew.queued) == (0, 0)


def test_a_cancelled_solve_gives_its_best_solution_or_says_that_there_is_none(loop, session):
    hard = MEMBRANE.replace("-k*laplacian(u) = load", "-k*laplacian(u) = load*exp(2*x)*cos(7*y)")
    hard = with_value(with_value(hard, ("solve", "tol"), 1e-14), ("solve", "budget"), 1e6)
    session.history = History(hard)

    async def cancelled():
        def tell(progress):
            session.bench.interrupt()

        return await session.solve(PICTURE, tell)

    try:
        words = loop.run_until_complete(cancelled())["message"]
    except InputError as error:
        words = str(error)
    assert "nterrupt" in words or "cancelled" in words
    assert solved(loop, session, MEMBRANE)[0]["status"] == "converged"


def test_a_solve_that_waits_can_be_cancelled(loop):
    crew = Crew(Allowance(together=1))
    own = Session(crew, MEMBRANE)

    async def cancelled():
        async with crew.turn():
            work = asyncio.ensure_future(own.solve(PICTURE, lambda _: None))
            while not crew.queued:
                await asyncio.sleep(0)
            own.cancel()
            await work

    with pytest.raises(InputError, match="cancelled before its turn"):
        loop.run_until_complete(cancelled())
    assert (crew.queued, own.solving, own.bench) == (0, False, None)
    own.close()


def test_what_is_made_ahead_ends_as_soon_as_something_is_asked():
    ends, gone = os.pipe(), []

    class Slow:
        busy = interrupted = False

        def ahead(self):
            os.write(ends[1], b'{"task": "read"}\n')
            while True:
                gone.append(time.sleep(0.001))

    own = Slow()

    def stop(number, frame):
        own.interrupted = True
        if own.busy:
            raise KeyboardInterrupt

    before, lost = signal.signal(signal.SIGINT, stop), threading.Event()
    with os.fdopen(ends[0]) as stream:
        try:
            inbox = Inbox(stream, lost=lost.set, rest=0.0)
            inbox.meanwhile(partial(step_ahead, own))
            assert inbox.next() == {"task": "read"}
            steps = iter([True, False])
            inbox.meanwhile(lambda: next(steps))  # it goes on once the request was taken
            assert next(steps, None) is None
            assert own.interrupted
            assert not own.busy
        finally:
            signal.signal(signal.SIGINT, before)
            os.close(ends[1])
            assert lost.wait(60)


def test_a_failure_ahead_is_nobodys_concern():
    class Broken:
        busy = interrupted = False

        def ahead(self):
            raise ZeroDivisionError

    assert not step_ahead(Broken())


def test_a_move_that_goes_on_ends_the_solve_of_the_place_where_it_rested(bench):
    moved(bench, 1.6, settled=False)
    before = bench.solution
    bench.interrupted = True
    try:
        with pytest.raises(InputError, match="interrupted"):
            moved(bench, 1.6, settled=True)
    finally:
        bench.interrupted = False
    assert bench.solution is before
    assert moved(bench, 1.61, settled=False)["way"] == "between"


def test_the_state_is_plain_json(loop, session):
    found = read(loop, session, PLATE)
    assert json.loads(json.dumps(found)) == found
    assert tomllib.loads(session.text)["title"] == found["title"]
