"""The resources of the machine: cores, memory, and BLAS threads that fit them.

Containers and batch systems give a process fewer cores and less memory than the machine has, and neither BLAS nor
``os.cpu_count`` notices. LAPACK on more threads than free cores can be tens of times slower than on the right
number, and an array past the memory limit ends the process without a word, so both are asked about here first.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import math
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pibls.errors import ResourceError
from pibls.limits import RESOURCE, room

__all__ = ["RATE", "Spare", "available_cores", "available_memory", "blas_threads", "core_quota", "device_for"]
__all__ += ["format_bytes", "free_cores", "is_dask", "mapped", "one_core", "require_memory", "seldom_collected"]

Item = TypeVar("Item")
Found = TypeVar("Found")

RATE = 1e10
"""Operations that count as a second of a budget: work is counted and not timed, so that it ends alike everywhere."""


_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_OWN_GROUP = Path("/proc/self/cgroup")
_STATM = Path("/proc/self/statm")
# A machine that says nothing about its memory is taken to have this much: enough for every small problem.
_FALLBACK_MEMORY = 4 * 2**30
# Asking takes longer than a small solve; so little is not asked about.
_ALWAYS_THERE = 16 * 2**20
# New objects after which Python looks for cycles; 700 by default.
_SELDOM = 20_000
# Load, per core of the machine, from which on other programs are taken to be waiting.
_CROWDED = 1.25
_ALONE: ContextVar[bool] = ContextVar("alone", default=False)  # whether other workers have the other cores


@dataclass(frozen=True)
class Spare:
    """A device beside the processor, for the work that takes about a second of a core or more."""

    device: str

    def __str__(self) -> str:
        return "auto"


def device_for(device: Any, operations: float) -> Any:
    """Return the device for so many operations; None if NumPy does them.

    >>> device_for(Spare("cuda"), 1e6), device_for(Spare("cuda"), 1e12), device_for("cuda", 1e6)
    (None, 'cuda', 'cuda')
    """
    if isinstance(device, Spare):
        return device.device if operations >= RATE else None
    return device


def available_cores() -> int:
    """Return how many cores this process may keep busy: its affinity, cut by the container's quota; at least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = core_quota()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def core_quota() -> float | None:
    """Return how many cores the container may keep busy; None without a limit."""
    return _cgroup_cores(_CGROUP)


def free_cores() -> int:
    """Return how many of the available cores are worth a thread now: fewer where the machine has more to do than cores.

    Threads of LAPACK wait for each other; one that is kept waiting by another program holds up all.
    """
    if _ALONE.get():
        return 1
    cores, machine = available_cores(), os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return cores if load <= _CROWDED * machine else max(1, int(cores * machine / load))


def available_memory() -> int:
    """Return how many bytes this process can still allocate.

    The machine's free memory is cut by the limit of the container, by that of the process (``ulimit -v``), and by the
    ``memory`` that a solve was given.
    """
    free = _meminfo_available()
    if free is None:
        free = _sysconf_memory()
    rooms = [free, _cgroup_memory(), _address_space(), room()]
    return max(0, int(min(one for one in rooms if one is not None)))


def require_memory(nbytes: float, what: str, remedy: str) -> None:
    """Refuse arrays that would not fit into memory before anything is allocated, with a sentence that says a remedy.

    >>> require_memory(1e18, "A matrix of 10⁹ × 10⁸", "Use fewer points.")
    Traceback (most recent call last):
    ...
    pibls.errors.ResourceError: A matrix of 10⁹ × 10⁸ needs 888 PiB of memory, and ... Use fewer points.
    """
    if nbytes <= _ALWAYS_THERE:
        return
    free = available_memory()
    if nbytes <= free:
        return
    share = f"{100 * free / nbytes:.2g} %" if free / nbytes > 1e-4 else "a ten-thousandth"
    raise ResourceError(
        f"{what} needs {format_bytes(nbytes)} of memory, and {format_bytes(free)} are available. At most "
        f"{share} of that size would fit. {remedy}"
    )


def is_dask(given: object) -> bool:
    """Return whether something is a client of a Dask cluster, without importing Dask.

    >>> is_dask(4)
    False
    """
    return type(given).__module__.partition(".")[0] == "distributed" and hasattr(given, "get_executor")


def format_bytes(nbytes: float) -> str:
    """Return a number of bytes as people write it.

    >>> format_bytes(3 * 2**30 / 2)
    '1.5 GiB'
    """
    units = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    power = min(len(units) - 1, int(math.log2(max(nbytes, 1)) // 10))
    return f"{nbytes / 2 ** (10 * power):.3g} {units[power]}"


@contextmanager
def blas_threads(most: int | None = None) -> Iterator[None]:
    """Cap the threads of BLAS and OpenMP to the cores that are free while the block runs; never raise them.

    ``most`` caps them further: small matrices gain nothing from threads, and lose much where cores are busy.
    """
    cores = 1 if most == 1 else min(free_cores(), most or sys.maxsize)
    controller = _controller("torch" in sys.modules)
    pools = {library.prefix: library.num_threads for library in controller.lib_controllers}
    crowded = {prefix: cores for prefix, threads in pools.items() if threads is not None and threads > cores}
    if not crowded:
        yield
        return
    with controller.limit(limits=crowded):
        yield


@contextmanager
def one_core() -> Iterator[None]:
    """Keep all that the block does on one core, for workers that share a machine with others like them.

    >>> with one_core():
    ...     free_cores()
    1
    """
    token = _ALONE.set(True)
    try:
        with blas_threads(1):
            yield
    finally:
        _ALONE.reset(token)


def mapped(function: Callable[[Item], Found], items: Sequence[Item], cores: int) -> list[Found]:
    """Return the values of a function, computed by as many threads as there are cores; LAPACK runs beside Python.

    Each thread has LAPACK to itself: threads of its own would have to share the cores with all others.

    >>> mapped(abs, [-1, 2, -3], cores=2)
    [1, 2, 3]
    """
    if min(cores, len(items)) < 2:
        return [function(item) for item in items]
    contexts = [contextvars.copy_context() for _ in items]
    with blas_threads(1), ThreadPoolExecutor(min(cores, len(items))) as pool:
        return list(pool.map(lambda own, item: own.run(function, item), contexts, items))


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Let Python look for unreachable cycles less often while the block runs.

    A solve makes many objects at once and hardly any cycles: looking for them took half of the time of large trees.
    """
    before = gc.get_threshold()
    if not 0 < before[0] < _SELDOM:
        yield
        return
    gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@functools.cache
def _controller(_torch_loaded: bool) -> Any:
    """Find the thread pools of the libraries loaded now (slow), again once torch has brought its own."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _words(path: Path) -> list[str]:
    """Return the words of a file; none where there is no such file."""
    try:
        return path.read_text(encoding="ascii", errors="replace").split()
    except (OSError, ValueError):
        return []


def _number(words: list[str], place: int = 0) -> float | None:
    """Return the number at a place among words; None where there is none ("max" means no limit)."""
    try:
        return float(words[place])
    except (ValueError, IndexError):
        return None


@functools.cache
def _cgroup_cores(root: Path) -> float | None:
    words = _words(root / "cpu.max")
    quota, period = _number(words), _number(words, 1)
    if period is None:
        quota = _number(_words(root / "cpu" / "cpu.cfs_quota_us"))
        period = _number(_words(root / "cpu" / "cpu.cfs_period_us")) or 100_000.0
    return quota / period if quota is not None and quota > 0 and period > 0 else None


def _cgroup_memory() -> int | None:
    """Return the room below the container's memory limit; its file cache, which it can give back, counts as room.

    A group is limited by the groups that it is in as well.
    """
    rooms = []
    for root, limit_file, used_file in (
        (_CGROUP, "memory.max", "memory.current"),
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        for folder in _groups(root):
            limit, used = _number(_words(folder / limit_file)), _number(_words(folder / used_file))
            if limit is not None:
                cache = _field(folder / "memory.stat", ("inactive_file", "total_inactive_file"))
                rooms.append(int(limit - (used or 0.0) + (cache or 0.0)))
    return min(rooms, default=None)


def _groups(root: Path) -> list[Path]:
    """Return the folders of the group of this process and of those around it, the outermost first."""
    try:
        lines = [line.split(":", 2) for line in _OWN_GROUP.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        lines = []
    wanted = "memory" if root.name == "memory" else ""
    own = [Path(line[2].lstrip("/")) for line in lines if len(line) == 3 and wanted in line[1].split(",")]
    inner = own[0].parts if own and ".." not in own[0].parts else ()
    return [root.joinpath(*inner[:depth]) for depth in range(len(inner) + 1)]


def _address_space() -> int | None:
    """Return the room below the limit of the process's own address space, if it has one."""
    try:
        limit = RESOURCE.getrlimit(RESOURCE.RLIMIT_AS)[0]
        taken = int(_STATM.read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return None if limit == RESOURCE.RLIM_INFINITY else int(limit) - taken


def _meminfo_available() -> int | None:
    kibibytes = _field(_MEMINFO, ("MemAvailable:",))
    return None if kibibytes is None else int(kibibytes * 1024)


def _field(path: Path, keys: tuple[str, ...]) -> float | None:
    """Return the number after the first of some keys in a file."""
    words = _words(path)
    return next((_number(words, place) for place, word in enumerate(words, 1) if word in keys), None)


def _sysconf_memory() -> int:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _FALLBACK_MEMORY
    return total if total > 0 else _FALLBACK_MEMORY
