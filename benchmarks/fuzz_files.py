"""Forged files against the readers: whatever a file holds, it is read or refused in words, soon, and nothing runs.

    python -m benchmarks.fuzz_files [--count 100000] [--first 0] [--seed 0] [--kinds pibls problem shape csv mask]

Solutions, problem files with tables and shapes beside them, files of shapes, tables and masks are changed where it
hurts: entries of records become calls of builtins, huge numbers, deep lists or text that looks like code; arrays lie
about their shape; members of archives come twice; letters and bytes change; every hundredth file is made longer, up to
40 MB. A case fails if it raises anything but
``PiblsError``, runs code, opens a file for writing, takes over five seconds or makes memory grow by over 500 MB.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import importlib
import io
import json
import math
import os
import random
import re
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from benchmarks.fuzz_seeds import PROBLEMS, SHAPES, TABLE, solutions
from benchmarks.fuzz_text import StuckError, give_up, mutated, problem_file
from benchmarks.spread import spread
from pibls.errors import PiblsError
from pibls.text import read_file

SECONDS, MEGABYTES = 5.0, 500
PORTION = 500  # cases of one process
CODE = "__import__('os').system('touch owned')"
BUILTINS = (
    "eval",
    "exec",
    "exit",
    "open",
    "input",
    "__import__",
    "print",
    "vars",
    "compile",
    "getattr",
    "sin",
    "u",
    "x",
)
LETTERS = ("\x00", "\x1b[2J", "\u202e", "\ud800", "ａ", "٣", "\n", "é", "\u200b")
NUMBERS = (0, -1, 1, 2, 3, 50, 51, 1000, 10**6, 10**9, 10**18, 10**300, 0.5, -0.0, 1e300, 1e-300, 5e-324, True, None)
OWN = ("sympy/polys/monomials.py", "mpmath/libmp/libhyper.py")  # which make code of numbers and kinds of variables
RUNNING = {"os.system", "os.exec", "subprocess.Popen", "socket.connect"}
_X, _Y, _Z = sp.symbols("x y z")
_MOST_PLACES = 50_000  # entries: a record of more is large enough
_GROWN, _LONGEST = 0.01, 4e7  # share of files that are made longer, and up to how many bytes
_watching: list[str] = []
_armed = [False]
_taken = [0.0, 0.0]  # seconds and megabytes of the last file
STATUS, PEAK = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what must not happen while a file is read: code that runs, files that are written, programs, connections."""
    if not _armed[0]:
        return
    runs = event == "exec" and not is_own(sys._getframe(1))
    if runs or event in RUNNING or (event == "open" and any(mode in str(arguments[1] or "") for mode in "wax+")):
        _watching.append(f"{event} {str(arguments)[:200]}")


def is_own(frame: FrameType | None) -> bool:
    """Tell whether code is that of a module being imported, or made of numbers and kinds of variables alone."""
    while frame is not None:
        if frame.f_code.co_name == "_find_and_load" or frame.f_code.co_filename.endswith(OWN):
            return True
        frame = frame.f_back
    return False


# What changes ---------------------------------------------------------------------------------------------------------


def tree(rng: random.Random, depth: int = 3) -> Any:
    """Return an expression as files store it, mostly a bad one."""
    leaves: tuple[Callable[[], Any], ...] = (
        lambda: ["coordinate", rng.choice(("x", "y", "t", "theta"))],
        lambda: ["int", str(rng.choice((0, 1, -1, 2, 7, 10**9, 10**250, 10**350)))],
        lambda: ["rational", str(rng.choice((1, 7, 10**200))), str(rng.choice((0, 2, 3, 10**200)))],
        lambda: ["float", rng.choice((1.5, 1e300, 1e-300)).hex()],
        lambda: ["float", rng.choice(("inf", "nan", "0x1p99999"))],
        lambda: ["constant", rng.choice(("pi", "E", "true", "I"))],
        lambda: ["field", rng.choice(("u", "eval")), ["coordinate", "x"]],
        lambda: ["unknown", "k", rng.choice(NUMBERS), CODE],
    )
    if depth <= 0 or rng.random() < 0.2:
        return rng.choice(leaves)()

    def below() -> Any:
        return tree(rng, depth - 1)

    named = ("sin", "exp", "log", "gamma", "factorial", "floor", "Abs", "sign", "LambertW", "sinc", "loggamma", "Not")
    two = ("Add", "Mul", "Pow", "Pow", "atan2", "Mod", "Min", "Max", "legendre", "hermite", "besselj", "StrictLessThan")
    makers: tuple[Callable[[], Any], ...] = (
        lambda: ["data", rng.choice(BUILTINS), *(below() for _ in range(rng.randrange(3)))],
        lambda: [rng.choice(BUILTINS), below()],
        lambda: [rng.choice(named), below()],
        lambda: [rng.choice(two), below(), below()],
        lambda: [rng.choice(("Add", "Mul", "Or", "And")), *(below() for _ in range(rng.randrange(8)))],
        lambda: ["derivative", below(), [rng.choice("xyt"), rng.choice(NUMBERS)]],
        lambda: ["piecewise", [below(), ["LessThan", below(), below()]], [below(), ["constant", "true"]]],
        lambda: [rng.choice(("Laplacian", "Divergence", "NormalDerivative", "Inside", "Flux")), below()],
    )
    return rng.choice(makers)()


def value(rng: random.Random) -> Any:
    """Return a JSON value that does not belong anywhere."""
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice(NUMBERS),
        lambda: rng.choice((CODE, "", "x", "\x1b[2J", "__class__", "../../etc/passwd", "inf", "nan", "9" * 5000)),
        lambda: rng.choice(BUILTINS),
        lambda: [],
        lambda: {},
        lambda: tree(rng, 4),
        lambda: {"data": "eval", "shape": rng.choice(("Star", "Implicit", "Union", "Region", "Domain"))},
        lambda: [[rng.choice(NUMBERS)] * rng.randrange(4) for _ in range(rng.randrange(5))],
        lambda: deep(rng.choice((50, 150, 210))),
    )
    return rng.choice(makers)()


def deep(levels: int) -> Any:
    """Return lists in lists."""
    found: Any = ["coordinate", "x"]
    for _ in range(levels):
        found = ["sin", found]
    return found


def places(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all entries of a record."""
    if path:
        yield path
    entries = record.items() if isinstance(record, dict) else enumerate(record) if isinstance(record, list) else ()
    for key, entry in entries:
        yield from places(entry, (*path, key))


def changed(rng: random.Random, record: Any) -> Any:
    """Return a record with some entries replaced, dropped, exchanged or doubled."""
    record = copy.deepcopy(record)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        everywhere = list(islice(places(record), _MOST_PLACES))
        if not 0 < len(everywhere) < _MOST_PLACES:
            break
        path = rng.choice(everywhere)
        holder = record
        for key in path[:-1]:
            holder = holder[key]
        action, key = rng.randrange(6), path[-1]
        if action == 0:
            del holder[key]
        elif action == 1:
            other: Any = record
            for step in rng.choice(everywhere):
                other = other[step]
            holder[key] = copy.deepcopy(other)
        elif action == 2 and isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * rng.choice((1, 3, 500))
        elif action == 3 and isinstance(holder, dict):
            holder[rng.choice(("radius", "function", "expression", "shape", "kind", "weight", CODE))] = value(rng)
        elif action == 4 and isinstance(holder[key], list) and holder[key][:1] and isinstance(holder[key][0], str):
            holder[key] = tree(rng, 4)
        else:
            holder[key] = value(rng)
    return record


def array(rng: random.Random, content: bytes) -> bytes:
    """Return the bytes of an array that lies, or holds what is no number."""
    action = rng.randrange(5)
    if action == 0:
        shape = rng.choice(("(1000000000000,)", "(-1, 3)", "(2, 2)", "(0,)", "()", f"({'1,' * 40})", "(10**9,)", CODE))
        header = f"{{'descr': '<f8', 'fortran_order': {rng.choice(('False', 'True', '1'))}, 'shape': {shape}, }}"
        return b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little") + header.encode() + b"\n" + content[128:]
    if action == 1:
        return content.replace(b"<f8", rng.choice((b"|O8", b"<c8", b"<i8", b"<U2")), 1)
    if action == 2:
        return content[: rng.randrange(len(content) + 1)]
    found = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        if len(found) >= 136:
            place = 128 + 8 * rng.randrange((len(found) - 128) // 8)
            found[place : place + 8] = np.float64(rng.choice((np.nan, np.inf, -1.0, 1e300, 1e18, 0.5, 0.0))).tobytes()
    return bytes(found)


def garbled(rng: random.Random, content: bytes) -> bytes:
    """Return bytes with some of them changed, dropped or doubled; in few cases there are very many of some."""
    if rng.random() < _GROWN:
        return grown(rng, content)
    found = bytearray(content)
    for _ in range(rng.randrange(1, 8)):
        place = rng.randrange(len(found) + 1)
        action = rng.randrange(4)
        if action == 0:
            del found[place : place + rng.randrange(1, 30)]
        elif action == 1:
            found[place:place] = bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
        elif action == 2:
            found[place:place] = found[place : place + rng.randrange(1, 60)] * rng.randrange(1, 4)
        else:
            numbers = (b"nan", b"1e999", b"-1", b"0", b"999999999", b"1e300", b"99999999999999999999", b"inf", b"\x00")
            found[place:place] = rng.choice(numbers)
    return bytes(found)


def grown(rng: random.Random, content: bytes) -> bytes:
    """Return bytes of which a line, or what is between brackets, commas or blanks, comes up to millions of times."""
    pieces = re.split(rng.choice((rb"(?<=\n)", rb"(?<=[,\]}>])", rb"(?<=\s)", rb"(?=[\[{<])")), content)
    first = rng.randrange(len(pieces))
    last = min(len(pieces), first + rng.choice((1, 1, 2, 7)))
    again = b"".join(pieces[first:last]) or b" "
    times = int(10 ** rng.uniform(3, math.log10(_LONGEST))) // len(again)
    return b"".join(pieces[:first]) + again * times + b"".join(pieces[last:])


# Kinds of files -------------------------------------------------------------------------------------------------------


def forged_solution(rng: random.Random, folder: Path, seeds: Mapping[str, dict[str, bytes]]) -> None:
    """Load a changed solution, and use it if it is accepted."""
    members = dict(rng.choice(list(seeds.values())))
    record, path = json.loads(members["solution.json"]), folder / "forged.pibls"
    own = rng.random()
    if own < 0.8:
        record = changed(rng, record)
    if own > 0.7 and rng.random() > _GROWN:
        name = rng.choice([name for name in members if name.endswith(".npy")])
        members[name] = array(rng, members[name])
    members["solution.json"] = json.dumps(record).encode("utf-8", "surrogatepass")
    if rng.random() < _GROWN:
        members["solution.json"] = grown(rng, members["solution.json"])
    del members["digest.json"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", rng.choice((0, 0, 0, 0, 0, 0, 0, 8))) as archive:
        for name, content in (members | {"digest.json": json.dumps(digests).encode()}).items():
            entry = zipfile.ZipInfo(name if rng.random() < 0.995 else rng.choice(("../" + name, "/tmp/" + name, "")))
            archive.writestr(entry, content)
    content = stream.getvalue()
    path.write_bytes(garbled(rng, content) if own > 0.97 else content)
    with armed():
        solution = pb.load(path)
        str(solution), repr(solution), str(solution.problem)
        solution(solution.problem.domain.sample(3))


def forged_problem(rng: random.Random, folder: Path, _: Any) -> None:
    """Read a problem file with tables and shapes beside it."""
    text = rng.choice(PROBLEMS)
    name, shape = rng.choice(list(SHAPES.items()))
    if rng.random() < 0.2:
        text = problem_file(rng)
    for old in ("kappa", "shape.geojson"):
        if rng.random() < 0.5:
            text = text.replace(old, {"kappa": rng.choice(BUILTINS), "shape.geojson": f"shape{Path(name).suffix}"}[old])
    text = mutated(rng, text) if rng.random() < 0.7 else text
    shown = rng.choice(("kappa", *BUILTINS))
    table = garbled(rng, TABLE.replace("kappa", shown).encode()) if rng.random() < 0.5 else TABLE.encode()
    (folder / "table.csv").write_bytes(table)
    (folder / f"shape{Path(name).suffix}").write_bytes(garbled(rng, shape) if rng.random() < 0.3 else shape)
    path = folder / "problem.toml"
    content = text.encode("utf-8", "surrogatepass")
    path.write_bytes(grown(rng, content) if rng.random() < _GROWN else content)
    with armed():
        found = read_file(path).problem
        str(found), repr(found)
        found.domain.sample(3)


def forged_shape(rng: random.Random, folder: Path, _: Any) -> None:
    """Read a changed file with a shape."""
    name, content = rng.choice(list(SHAPES.items()))
    if name.endswith(".geojson") and rng.random() < 0.7:
        content = json.dumps(changed(rng, json.loads(content))).encode("utf-8", "surrogatepass")
    else:
        content = garbled(rng, content)
    path = folder / name
    path.write_bytes(content)
    with armed():
        pb.read_shape(path, rng.choice(((_X, _Y), (_X, _Y, _Z))))


def forged_table(rng: random.Random, folder: Path, _: Any) -> None:
    """Read a changed table as measurements."""
    text = TABLE
    for _ in range(rng.randrange(3)):
        text = text.replace(
            rng.choice(("kappa", "0.5", "1", ",", "\n", "x")), rng.choice((*LETTERS, CODE, "=1+1", "1e999")), 2
        )
    path = folder / "table.csv"
    path.write_bytes(garbled(rng, text.encode("utf-8", "surrogatepass")))
    x, y = pb.coordinates("x y")
    with armed():
        pb.Observation.from_csv(path, pb.field("u", x, y), rng.choice((None, "kappa", "x")))


def forged_mask(rng: random.Random, _: Path, __: Any) -> None:
    """Trace the outline of an odd array within odd limits."""
    shape = rng.choice(((0, 3), (1, 1), (3,), (4, 5), (20, 20), (60, 40), (2, 2, 2), (1, 400)))
    draws = np.random.default_rng(rng.randrange(2**32))
    mask = draws.random(shape) < rng.choice((0.0, 0.02, 0.5, 0.9, 1.0))
    if rng.random() < 0.5 and mask.ndim == 2 and mask.size > 9:
        mask[1:-1, 1:-1] = True
    limits = [
        [rng.choice((0, -1, 1e300, float("nan"), "x")), rng.choice((1, 2, 1e-300, float("inf"), None))] for _ in "xy"
    ]
    bounds = limits if rng.random() < 0.4 else [(0, 1), (0, 2)]
    with armed():
        pb.read_shape(mask, (_X, _Y), bounds=bounds, tolerance=rng.choice((None, 0, 0.01, 1e300, 1e-300)))


KINDS: Mapping[str, Callable[[random.Random, Path, Any], None]] = {
    "pibls": forged_solution,
    "problem": forged_problem,
    "shape": forged_shape,
    "csv": forged_table,
    "mask": forged_mask,
}


@contextmanager
def armed() -> Iterator[None]:
    """Watch what runs while a file is read, and measure seconds and megabytes of that alone."""
    PEAK.write_text("5", encoding="ascii")  # the peak begins anew
    before, started = memory("VmRSS"), time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)
    _armed[0] = True
    try:
        yield
    finally:
        _armed[0] = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        _taken[:] = [time.process_time() - started, memory("VmHWM") - before]


def memory(kind: str) -> int:
    """Return megabytes that this process holds, or held at most since that was last set back."""
    found = re.search(rf"{kind}:\s*(\d+) kB", STATUS.read_text(encoding="ascii"))
    return int(found[1]) // 1024 if found else 0


@cache
def whole(kind: str) -> dict[str, dict[str, bytes]]:
    """Return the members of the solutions that are changed; made once, and once by all processes together."""
    found = solutions() if kind == "pibls" else {}
    for members in found.values():  # what is made once, on the first use, is not the fault of a file
        load_members(members)
    return found


def cases(kind: str, numbers: range, seed: int) -> Iterator[tuple[int, str, float, float]]:
    """Yield number, fault (empty if there is none), seconds and megabytes of every case, the same on every run."""
    seeds = whole(kind)
    signal.signal(signal.SIGVTALRM, give_up)
    with tempfile.TemporaryDirectory() as name:
        for number in numbers:
            # Kept below the limit: a file of its own for each, removed at once.
            with tempfile.TemporaryDirectory(dir=name) as own:
                yield number, *attempt(kind, random.Random(f"{seed} {kind} {number}"), Path(own), seeds)


@dataclass(frozen=True)
class Portion:
    """Some cases of a kind, to be tried in a process of their own."""

    kind: str
    numbers: range
    seed: int


@dataclass(frozen=True)
class Tried:
    """Faults by number, the slowest case and the most memory of a portion, in seconds and megabytes."""

    faults: dict[int, str]
    slowest: float
    peak: float


def tried(portion: Portion) -> Tried:
    """Try a portion, and say each fault at once."""
    faults, slowest, peak = {}, 0.0, 0.0
    for number, fault, seconds, grew in cases(portion.kind, portion.numbers, portion.seed):
        slowest, peak = max(slowest, seconds), max(peak, grew)
        if seconds > SECONDS / 2 or grew > MEGABYTES / 2:
            print(f"{portion.kind} {number}: {seconds:.1f} s and {grew:.0f} MB", file=sys.stderr, flush=True)
        if fault:
            faults[number] = fault
            print(f"{portion.kind} {number}: {fault}", flush=True)
    return Tried(faults, slowest, peak)


def load_members(members: Mapping[str, bytes]) -> pb.Solution:
    """Load a solution from its members."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "whole.pibls"
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        return pb.load(path)


def attempt(kind: str, rng: random.Random, folder: Path, seeds: Any) -> tuple[str, float, float]:
    """Read one changed file; return the fault, if it is one, seconds and megabytes."""
    _watching.clear()
    fault, _taken[:] = "", [0.0, 0.0]
    try:
        KINDS[kind](rng, folder, seeds)
    except PiblsError as error:
        if not str(error).replace("\n", "").replace("\t", "").isprintable():
            fault = f"cannot be printed: {str(error)!r}"
    except (Exception, SystemExit, StuckError) as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
    seconds, grew = _taken
    if _watching:
        fault = f"ran {_watching[0]}"
    elif not fault and (seconds > SECONDS or grew > MEGABYTES):
        fault = f"took {seconds:.1f} s and {grew:.0f} MB"
    return fault, seconds, grew


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for package in ("meshio", "trimesh", "shapely", "scipy.interpolate"):
        importlib.import_module(package)
    sys.addaudithook(watch)
    total, last = 0, options.first + options.count
    for kind in options.kinds:
        whole(kind)
        starts = range(options.first, last, PORTION)
        portions = [Portion(kind, range(start, min(start + PORTION, last)), options.seed) for start in starts]
        found = [result for _, result in spread(portions, tried, options.processes)]
        faults, dead = sum(len(one.faults) for one in found), len(portions) - len(found)
        slowest, peak = max(one.slowest for one in found), max(one.peak for one in found)
        print(
            f"{kind}: {options.count} files, {faults} faults, {dead} processes died, slowest {slowest:.2f} s, "
            f"most {peak:.0f} MB",
            flush=True,
        )
        total += faults + dead
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
