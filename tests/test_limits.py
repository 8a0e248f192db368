"""Limits of time and memory: decided by a clock and a count that tests set, and kept wherever a solve is."""

from __future__ import annotations

import contextlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import RefinementInTime
from pibls import limits, runtime
from pibls.cells import newton as cells_newton
from pibls.checks import check_bytes
from pibls.errors import DeadlineError, InputError, ResourceError
from pibls.limits import Guard, Stopped, guarded, in_words

x, y = pb.coordinates("x y")
u = pb.field("u", x, y)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
EXACT = sp.atan(40 * (x + y - 1))
FRONT = pb.Problem(
    sp.Eq(pb.laplacian(u), EXACT.diff(x, 2) + EXACT.diff(y, 2)), SQUARE, [pb.Dirichlet(u, EXACT)], exact=EXACT
)


class Hand:
    """A clock that stands still until it is told the time."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of every guard, and looks at it that follow each other soon."""
    hand = Hand()
    made = Guard.__init__

    def init(self, *args, **kwargs):
        made(self, *args, **{"clock": hand, **kwargs})

    monkeypatch.setattr(Guard, "__init__", init)
    monkeypatch.setattr(limits, "_STEP", 0.001)
    return hand


# Decisions --------------------------------------------------------------------------------------------------------


def test_the_deadline_and_the_time_for_what_follows():
    hand = Hand()
    guard = Guard(10.0, clock=hand)
    for now, reached in ((0.0, False), (9.99, False), (10.0, True), (11.0, True)):
        hand.now = now
        assert bool(guard.look()) is reached
    guard.noticed = True
    for now, reached in ((10.0, False), (11.5, False), (11.7, True)):
        hand.now = now
        assert bool(guard.look()) is reached


def test_memory_counts_from_what_was_held_at_the_start():
    held = [700]
    guard = Guard(memory=100, holds=lambda: held[0])
    assert guard.room == 100
    held[0] = 790
    assert (guard.room, guard.look()) == (10, "")
    held[0] = 801
    assert (guard.room, bool(guard.look())) == (0, True)


def test_memory_that_runs_out_is_noticed_without_a_limit():
    free = [10**9]
    guard = Guard(free=lambda: free[0])
    assert guard.look() == ""
    free[0] = 10**6
    assert "The memory limits the solve" in guard.look()


def test_without_limits_nothing_asks_the_clock():
    hand = Hand()
    guard = Guard(clock=hand)
    guard.clock = lambda: pytest.fail("asked")
    assert guard.look() == ""
    guard.require_time(1e30)


def test_a_factorisation_that_would_end_late_is_not_begun():
    guard = Guard(10.0, clock=lambda: 0.0)
    guard.rate = 1e9
    guard.require_time(4e9)  # eight seconds
    with pytest.raises(Stopped):
        guard.require_time(6e9)
    assert guard.words.startswith("The deadline limits the solve: the next step takes about 12 s")


def test_the_rate_of_the_machine_is_measured():
    assert 1e6 < Guard(1.0).rate < 1e15


# Solves ---------------------------------------------------------------------------------------------------------------


def test_the_best_solution_is_returned_when_the_time_is_over(clock):
    def tell(progress):
        clock.now = 1001.0 if progress.estimate is not None else clock.now

    solution = pb.solve(FRONT, tol=1e-12, budget=1e9, deadline=1000, progress=tell)
    assert solution.status == "stalled"
    assert "The deadline ended the solve: 1000 s have passed." in solution.diagnostics.message
    assert solution.true_error() < 1.0


def test_without_a_solution_an_error_says_so(clock):
    def late(a, _):
        clock.now = 100.0
        time.sleep(60)
        return a

    problem = pb.Problem(sp.Eq(pb.laplacian(u), pb.data("k", late, x, y)), SQUARE, [pb.Dirichlet(u, 0)])
    with pytest.raises(DeadlineError, match="There is no solution yet"):
        pb.solve(problem, deadline=50)
    assert signal.getsignal(signal.SIGURG) is signal.SIG_DFL
    assert pb.solve(pb.problems.advection()).status == "converged"


def test_other_threads_are_stopped_too(clock):
    def late(a, _):
        clock.now = 100.0
        while True:
            try:
                a = a + 0.0
            except Exception:
                a = a * 1.0

    problem = pb.Problem(sp.Eq(pb.laplacian(u), pb.data("k", late, x, y)), SQUARE, [pb.Dirichlet(u, 0)])
    with ThreadPoolExecutor(1) as pool:
        assert isinstance(pool.submit(lambda: pb.solve(problem, deadline=50)).exception(), DeadlineError)
        assert pool.submit(lambda: pb.solve(pb.problems.advection()).status).result() == "converged"


def test_memory_that_is_not_there_is_refused_beforehand():
    problem = pb.problems.poisson()
    points = pb.Points.sample(problem, 3000)
    with pytest.raises(ResourceError, match=r"needs .* of memory"):
        pb.solve(problem, method=pb.PIELM(nodes=20_000), points=points, memory="50 MB")


def test_memory_stops_a_solve_that_has_a_solution(monkeypatch):
    held, made = [0], Guard.__init__
    monkeypatch.setattr(limits, "_STEP", 0.001)
    monkeypatch.setattr(Guard, "__init__", lambda self, *a, **k: made(self, *a, **{**k, "holds": lambda: held[0]}))

    def tell(progress):
        held[0] = 1_050_000_000 if progress.estimate is not None else 0

    solution = pb.solve(FRONT, tol=1e-12, budget=1e9, memory="1 GB", progress=tell)
    assert solution.status == "stalled"
    assert "memory limits the solve" in solution.diagnostics.message


@pytest.mark.parametrize("speed", [0.0, 1e6, 1e9, 1e11])
def test_looks_come_the_sooner_the_faster_memory_grows(speed):
    passed, stops = [0.0], []
    guard = Guard(memory=1e8, holds=lambda: int(speed * passed[0]))

    def wait(step):
        passed[0] += step
        return bool(stops) or passed[0] > 1.0

    guard.ended.wait = wait
    limits._watch(guard, lambda: stops.append(guard.holds()))
    # Growth is known from the second look on.
    assert all(taken <= max(1e8, 0.05 * speed) + 0.002 * speed for taken in stops)
    assert len(stops) == (speed >= 1e9)


def test_memory_that_runs_out_is_told_in_words():
    def function(a, b):
        raise MemoryError

    with pytest.raises(ResourceError, match="memory ran out"), guarded(Guard()):
        function(1, 2)


def stop_late():
    running = threading.active_count()
    for number in range(200):
        with contextlib.suppress(DeadlineError), guarded(Guard(1e-9)):
            sum(range(100 * number))
    sum(range(10**5))
    assert threading.active_count() == running


def test_stops_that_come_late_do_no_harm():
    stop_late()
    signal.raise_signal(signal.SIGURG)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(stop_late).result()


def test_an_interrupt_stays_one():
    with pytest.raises(KeyboardInterrupt), guarded(Guard(1e9)):
        raise KeyboardInterrupt
    assert in_words(KeyboardInterrupt()).startswith("It was interrupted")


def test_the_same_answer_with_and_without_limits():
    plain = pb.solve(pb.problems.poisson())
    limited = pb.solve(pb.problems.poisson(), deadline=1e6, memory="1000 GB")
    X = pb.problems.poisson().domain.sample(20)
    assert np.array_equal(plain(X), limited(X))


# Amounts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [(1000, 1000), ("2 GB", 2e9), ("1.5GiB", 1.5 * 2**30), ("300 mb", 3e8), (" 4kB ", 4000), ("12", 12), ("1e9", 1e9)],
)
def test_amounts_of_memory(given, expected):
    assert check_bytes("memory", given, "solve") == expected


@pytest.mark.parametrize(
    "given", [0, -1, "much", "", "GB", "-2 GB", "1.2.3 GB", "inf", np.nan, True, "2 XB", "２GB", []]
)
def test_what_is_no_amount_of_memory(given):
    with pytest.raises(InputError, match="memory"):
        pb.solve(pb.problems.advection(), memory=given)


def test_errors_of_limits_can_be_pickled():
    for error in (DeadlineError("late"), ResourceError("large")):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


# Limits of the process and its groups -------------------------------------------------------------------------------


def test_the_limit_of_the_address_space_counts(monkeypatch, tmp_path):
    import resource

    (tmp_path / "statm").write_text("1000 500 0 0 0 0 0")
    monkeypatch.setattr(runtime, "_STATM", tmp_path / "statm")
    monkeypatch.setattr(runtime, "_meminfo_available", lambda: 10**12)
    monkeypatch.setattr(runtime, "_cgroup_memory", lambda: None)
    page = resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda _: (3000 * page, resource.RLIM_INFINITY))
    assert runtime.available_memory() == 2000 * page
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert runtime.available_memory() == 10**12


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_within_a_group_is_limited_by_both(monkeypatch, tmp_path, version):
    root = tmp_path / "memory" if version == 1 else tmp_path
    limit, used = (
        ("memory.limit_in_bytes", "memory.usage_in_bytes") if version == 1 else ("memory.max", "memory.current")
    )
    inner = root / "batch" / "job"
    inner.mkdir(parents=True)
    for folder, numbers in ((root, (900, 100)), (root / "batch", (500, 300)), (inner, (700, 100))):
        for name, number in zip((limit, used), numbers, strict=True):
            (folder / name).write_text(str(number * 2**20))
    own = tmp_path / "cgroup"
    own.write_text("3:cpu,memory:/batch/job\n" if version == 1 else "0::/batch/job\n")
    monkeypatch.setattr(runtime, "_CGROUP", tmp_path)
    monkeypatch.setattr(runtime, "_OWN_GROUP", own)
    monkeypatch.setattr(runtime, "_meminfo_available", lambda: 10**12)
    monkeypatch.setattr(runtime, "_address_space", lambda: None)
    assert runtime.available_memory() == 200 * 2**20


def test_a_solve_can_be_profiled_after_another():
    problem, calls = pb.problems.poisson(), []
    pb.solve(problem)
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.append(event))
    try:
        pb.solve(problem)
    finally:
        sys.setprofile(before)
    assert len(calls) > 1000


def test_an_approximation_without_an_estimate_is_returned_where_there_is_nothing_better(monkeypatch):
    told = []

    def tell(progress):
        told.append(progress.stage)
        if told.count("scan") == 3:
            raise KeyboardInterrupt

    narrow = pb.solve(pb.problems.poisson_nd(5), progress=tell)
    assert narrow.status == "stalled"
    assert "error is not known" in narrow.diagnostics.message
    assert "interrupted" in narrow.diagnostics.message
    assert narrow.true_error() < 0.5

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("pibls.cells.newton._carried", stop)
    coarse = pb.solve(pb.problems.cubic_reaction(), tol=1e-8, progress=False)
    assert coarse.status == "stalled"
    assert "not estimated" in coarse.diagnostics.message
    assert coarse.error_estimate == np.inf
    assert coarse.true_error() < 1e-2


def test_solutions_of_easier_problems_on_the_way_are_not_returned(monkeypatch):
    calls = []
    before = cells_newton._solved

    def solved(*arguments, **options):
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return before(*arguments, **options)

    monkeypatch.setattr(cells_newton, "_solved", solved)
    easier = pb.problems.cubic_reaction()
    with pytest.raises(KeyboardInterrupt):
        pb.solve(pb.problems.cubic_reaction(), continuation=[easier], progress=False)
    assert len(calls) == 2


def test_a_solve_within_a_solve_has_what_is_left_to_the_outer_one():
    hand = Hand()
    with guarded(Guard(10.0, memory=1e9, clock=hand)) as outer:
        hand.now = 4.0
        with guarded(Guard(clock=hand)) as inner:
            assert inner.deadline == 6.0
            assert 0 < inner.memory <= outer.memory
        with guarded(Guard(5.0, memory=10.0**6, clock=hand)) as inner:
            assert (inner.deadline, inner.memory) == (5.0, 10.0**6)


def test_a_solve_that_calls_a_solve_ends_as_its_own_deadline_says():
    inner = pb.problems.heat_3d()
    inner.domain.sample(8)  # files are read before the clock runs

    def slow(a, b):
        pb.solve(inner, tol=1e-15, budget=1e6)
        return 0 * a + b

    problem = pb.Problem(sp.Eq(pb.laplacian(u), pb.data("f", slow, x, y)), SQUARE, [pb.Dirichlet(u, 0)])
    with pytest.raises(DeadlineError, match="1 s have passed"):
        pb.solve(problem, deadline=1)


def test_a_solve_within_another_keeps_its_own_deadline():
    def asleep(a, b):
        time.sleep(10)
        return 0 * a + b

    def impatient(a, b):
        with pytest.raises(DeadlineError, match=r"0\.2 s have passed"):
            pb.solve(with_source(asleep), deadline=0.2)
        return 0 * a + b

    def with_source(function):
        return pb.Problem(sp.Eq(pb.laplacian(u), pb.data("f", function, x, y)), SQUARE, [pb.Dirichlet(u, 0)])

    with pytest.raises(DeadlineError, match=r" 2 s"):
        pb.solve(with_source(lambda a, b: impatient(a, b) + asleep(a, b)), deadline=2)


def test_the_thread_that_looks_imports_nothing():
    code = """if True:
        import builtins, sys
        from pibls.limits import Guard
        from pibls.runtime import available_memory
        own = builtins.__import__
        def refuse(name, *rest, **named):
            assert name in sys.modules or name.startswith("encodings."), name  # which are no libraries
            return own(name, *rest, **named)
        builtins.__import__ = refuse
        print(Guard(1e9, 1e12).look() == Guard(1e9, free=available_memory).look() == "")
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr) == ("True\n", "")


def test_an_interrupt_between_a_run_in_time_and_its_residual_is_an_interrupt(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(RefinementInTime, "_residual", interrupted)
    with pytest.raises(KeyboardInterrupt):
        pb.solve(pb.problems.burgers(), progress=False)
