"""Cores, memory and threads as the container allows them, from files written here."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import pibls as pb
from pibls import runtime
from pibls.errors import ResourceError


@pytest.fixture
def cgroup(tmp_path, monkeypatch):
    """An empty control group; the machine itself says 8 cores and 16 GiB."""
    monkeypatch.setattr(runtime, "_CGROUP", tmp_path)
    monkeypatch.setattr(runtime, "_MEMINFO", tmp_path / "meminfo")
    (tmp_path / "meminfo").write_text(f"MemTotal: 99 kB\n\nMemAvailable:  {16 * 2**20} kB\n", encoding="ascii")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    return tmp_path


def write(root, **files):
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="ascii")


@pytest.mark.parametrize(
    ("quota", "cores"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("1000 100000", 1),
        ("9900000 100000", 8),
        ("x", 8),
    ],
)
def test_cores_follow_the_quota_of_version_2(cgroup, quota, cores):
    write(cgroup, cpu_dot_max=quota)
    assert runtime.available_cores() == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("300000", 3), ("50000", 1)])
def test_cores_follow_the_quota_of_version_1(cgroup, quota, cores):
    write(cgroup, cpu__cpu_dot_cfs_quota_us=quota, cpu__cpu_dot_cfs_period_us="100000")
    assert runtime.available_cores() == cores


def test_cores_without_affinity(cgroup, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert runtime.available_cores() == 1


def test_memory_is_what_is_free_below_the_limit(cgroup):
    assert runtime.available_memory() == 16 * 2**30
    write(cgroup, memory_dot_max=str(4 * 2**30), memory_dot_current=str(3 * 2**30))
    assert runtime.available_memory() == 2**30
    write(cgroup, memory_dot_stat=f"anon 5\ninactive_file {2**30}\n")
    assert runtime.available_memory() == 2 * 2**30
    write(cgroup, memory_dot_current=str(9 * 2**30))
    assert runtime.available_memory() == 0


def test_memory_limit_of_version_1(cgroup):
    write(cgroup, memory__memory_dot_limit_in_bytes=str(2**30), memory__memory_dot_usage_in_bytes="24")
    assert runtime.available_memory() == 2**30 - 24


def test_memory_without_proc(cgroup, monkeypatch):
    (cgroup / "meminfo").unlink()
    monkeypatch.setattr(os, "sysconf", {"SC_PHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}.__getitem__, raising=False)
    assert runtime.available_memory() == 4096000
    monkeypatch.setattr(os, "sysconf", lambda _: -1, raising=False)
    assert runtime.available_memory() == 1  # pages × size, both unknown
    monkeypatch.delattr(os, "sysconf")
    assert runtime.available_memory() == runtime._FALLBACK_MEMORY


def test_require_memory_says_what_is_needed_and_what_fits(cgroup):
    runtime.require_memory(16 * 2**30, "This", "Nothing.")
    with pytest.raises(ResourceError, match=r"^A needs 32 GiB of memory, and 16 GiB are .* 50 % .* Halve it\.$"):
        runtime.require_memory(32 * 2**30, "A", "Halve it.")
    with pytest.raises(ResourceError, match="ten-thousandth"):
        runtime.require_memory(1e30, "A", "Halve it.")


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1023, "1.02e+03 B"), (2**20, "1 MiB"), (2**70, "1.05e+06 PiB")]
)
def test_bytes_are_readable(size, text):
    assert runtime.format_bytes(size) == text


def threads():
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info()]


def test_blas_threads_cap_and_come_back(monkeypatch):
    import numpy as np

    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads()
    monkeypatch.setattr(runtime, "available_cores", lambda: 1)
    with runtime.blas_threads():
        assert set(threads()) <= {1}
    assert threads() == before
    monkeypatch.setattr(runtime, "available_cores", lambda: 10_000)
    with runtime.blas_threads():
        assert threads() == before


@pytest.mark.parametrize(("load", "expected"), [(0.0, 8), (20.0, 8), (32.0, 4), (64.0, 2), (1000.0, 1)])
def test_threads_give_way_to_other_programs(monkeypatch, load, expected):
    monkeypatch.setattr(runtime, "available_cores", lambda: 8)
    monkeypatch.setattr(runtime.os, "cpu_count", lambda: 16)
    monkeypatch.setattr(runtime.os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert runtime.free_cores() == expected


@pytest.mark.parametrize("before", [(700, 10, 10), (0, 10, 10), (10**6, 5, 5)])
def test_cycles_are_looked_for_seldom_only_in_a_block(before):
    kept = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        with runtime.seldom_collected():
            assert gc.get_threshold() == ((20_000, 10, 10) if before[0] == 700 else before)
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*kept)


@pytest.mark.parametrize("cores", [1, 3])
def test_threads_keep_the_order_and_the_context(cores):
    def mean(values):
        return float(np.array(values) @ np.zeros(2) / np.float64(0.0))

    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        runtime.mapped(mean, [[1.0, 2.0], [3.0, 4.0]], cores)
    assert runtime.mapped(sum, [[1, 2], [3], []], cores) == [3, 3, 0]


def test_threads_have_lapack_to_themselves():
    def threads(_):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2):
        assert max(threads(None)) == 2
        assert runtime.mapped(threads, [1, 2, 3], 3) == [{1}] * 3


def test_workers_that_share_a_machine_use_one_core(monkeypatch):
    seen = []

    def mapped(work, stacks, cores):
        seen.append(cores)
        return [work(own) for own in stacks]

    monkeypatch.setattr(runtime, "available_cores", lambda: 8)
    monkeypatch.setattr(runtime.os, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr("pibls.cells.batches.mapped", mapped)
    monkeypatch.setattr("pibls.cells.batches.LONG", 0.0)
    pb.solve(pb.problems.poisson())
    assert max(seen) > 1
    seen.clear()
    pb.sweep(pb.problems.poisson(), seed=[0], executor=1)
    assert set(seen) == {1}
