"""Forty hostile solves against ``deadline=`` and ``memory=``: how many keep them.

    python -m benchmarks.limits [NAME ...] [--seconds 3]

Every case runs in a process of its own. A deadline is kept if the solve ends within 1.1 times its seconds plus one; an
amount of memory is kept if the process never holds over 1.1 times of it plus 50 MB more than before the solve. Either
way the solve has to end in words: with a solution whose message tells of the limit, or with a ``PiblsError``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp

import pibls as pb
from pibls.errors import PiblsError
from pibls.limits import resident

MEGABYTE = 10**6
x, y, z, t = pb.coordinates("x y z t")
u, w = pb.field("u", x, y), pb.field("w", x, t)
SQUARE = pb.Rectangle((x, 0, 1), (y, 0, 1))
LINE = pb.Interval((x, 0, 1))
ENDLESS: dict[str, Any] = {"tol": 1e-300, "budget": 1e9}
Options = dict[str, Any]


def poisson(source: Any, domain: Any = SQUARE, field: Any = u) -> pb.Problem:
    return pb.Problem(sp.Eq(pb.laplacian(field), source), domain, [pb.Dirichlet(field, 0)])


def with_data(function: Callable[..., Any]) -> pb.Problem:
    return poisson(pb.data("k", function, x, y))


def coupled(count: int, power: int = 1, plane: bool = False) -> pb.Problem:
    """Return a chain of fields, each driven by its neighbours."""
    places = (x, y) if plane else (x,)
    fields = [pb.field(f"u{k}", *places) for k in range(count)]
    equations = [
        sp.Eq(pb.laplacian(one) + fields[k - 1] ** power - fields[(k + 1) % count], sp.sin((k + 1) * x))
        for k, one in enumerate(fields)
    ]
    return pb.Problem(equations, SQUARE if plane else LINE, [pb.Dirichlet(one, 0) for one in fields])


def wide(count: int, power: int = 1) -> pb.Problem:
    """Return a problem in many dimensions."""
    places = pb.coordinates(" ".join(f"x{k}" for k in range(count)))
    field = pb.field("u", *places)
    box = pb.Box(*((place, 0, 1) for place in places))
    return pb.Problem(sp.Eq(pb.laplacian(field) - field**power, 1), box, [pb.Dirichlet(field, 0)])


def sphere(rings: int) -> Any:
    """Return a triangulated ball."""
    from scipy.spatial import ConvexHull

    n = np.arange(rings) + 0.5
    height, angle = 1 - 2 * n / rings, np.pi * (1 + 5**0.5) * n
    radius = np.sqrt(1 - height**2)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)
    faces = ConvexHull(points).simplices
    normals = np.cross(points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]])
    inward = (normals * points[faces[:, 0]]).sum(axis=1) < 0
    faces[inward] = faces[inward][:, ::-1]
    return pb.Solid((x, y, z), points, faces)


def holes(count: int) -> Any:
    plate = pb.Rectangle((x, 0, 10), (y, 0, 10))
    for k in range(count):
        plate = plate - pb.Disk((x, y), (1 + k % 8 + 0.3 * (k % 3), 1 + k // 8), 0.2)
    return plate


def sleeping(seconds: float) -> Callable[..., Any]:
    def function(a: Any, b: Any) -> Any:
        time.sleep(seconds)
        return a * b

    return function


def forever(a: Any, _: Any) -> Any:
    while True:
        try:
            a = a + 0.0
        except Exception:
            a = a * 1.0


def point_by_point(a: Any, b: Any) -> Any:
    return np.array([sum(np.sin(k * p * q) for k in range(2000)) for p, q in zip(a, b, strict=True)])


def hoarding() -> Callable[..., Any]:
    kept: list[Any] = []

    def function(a: Any, b: Any) -> Any:
        for _ in range(2000):
            kept.append(np.ones(10**6))
            time.sleep(0.01)
        return a * b

    return function


def observed() -> pb.Problem:
    k, own = pb.unknown("k"), pb.field("u", x, t)
    truth = sp.exp(-(sp.pi**2) * t / 3) * sp.sin(sp.pi * x)
    X = np.random.default_rng(0).random((500, 2))
    values = np.exp(-(np.pi**2) * X[:, 1] / 3) * np.sin(np.pi * X[:, 0])
    conditions = [pb.Dirichlet(own, 0), pb.Initial(own, truth.subs(t, 0)), pb.Observation(own, X, values, noise=1e-3)]
    source = pb.data("s", lambda a, _: (time.sleep(0.05), 0 * a)[1], x, t)
    return pb.Problem(own.diff(t) - k * own.diff(x, 2) - source, LINE * pb.TimeInterval(t, 0, 1), conditions)


def front(steepness: float) -> pb.Problem:
    exact = sp.atan(steepness * (x + y - 1))
    return pb.Problem(sp.Eq(pb.laplacian(u), exact.diff(x, 2) + exact.diff(y, 2)), SQUARE, [pb.Dirichlet(u, exact)])


def in_thread(problem: pb.Problem, **options: Any) -> pb.Solution:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: solve(problem, **options)).result()


def with_limit(extra: int) -> None:
    """Limit the address space of this process to what it takes now and so many bytes."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + extra, resource.RLIM_INFINITY))


def rod(count: int) -> pb.Points:
    return pb.Points.sample(wave_free, interior=count)


wave_free = poisson(sp.sin(x * y))
oscillator = pb.Problem(
    sp.Eq(pb.field("v", t).diff(t, 2), -(pb.field("v", t) ** 3)),
    pb.TimeInterval(t, 0, 500),
    [pb.Initial(pb.field("v", t), 1), pb.Initial(pb.field("v", t).diff(t), 0)],
)
helmholtz = pb.Problem(sp.Eq(pb.laplacian(u) + 40000 * u, sp.exp(-200 * (x - 0.3) ** 2)), SQUARE, [pb.Dirichlet(u, 0)])
plane = pb.field("p", x, y, t)
reaction = pb.Problem(
    sp.Eq(plane.diff(t), pb.laplacian(plane) / 1000 + plane - plane**3),
    SQUARE * pb.TimeInterval(t, 0, 50),
    [pb.Dirichlet(plane, 0), pb.Initial(plane, sp.sin(9 * x) * sp.sin(7 * y))],
)
solid_field = pb.field("s", x, y, z)
BALL = pb.Ball((x, y, z), (0, 0, 0), 1)

BEGUN = [0.0]


def solve(problem: pb.Problem, **options: Any) -> pb.Solution:
    """Solve, and note when that begins: making problems and points is no part of it."""
    BEGUN[0] = time.monotonic()
    return pb.solve(problem, **options)


DEADLINES: dict[str, Callable[[Options], Any]] = {
    "endless plane": lambda o: solve(pb.problems.poisson(), **ENDLESS, **o),
    "endless space": lambda o: solve(pb.problems.poisson_ball(), **ENDLESS, **o),
    "endless line": lambda o: solve(pb.problems.advection(), **ENDLESS, **o),
    "endless nonlinear": lambda o: solve(pb.problems.cubic_reaction(), **ENDLESS, **o),
    "endless evolution": lambda o: solve(pb.problems.burgers(), **ENDLESS, **o),
    "60 fields": lambda o: solve(coupled(60), **o),
    "60 fields, nonlinear": lambda o: solve(coupled(60, 3), **o),
    "20 fields in a plane": lambda o: solve(coupled(20, plane=True), **o),
    "40 dimensions": lambda o: solve(wide(40), **o),
    "40 dimensions, nonlinear": lambda o: solve(wide(40, 3), **ENDLESS, **o),
    "data that sleep for long": lambda o: solve(with_data(sleeping(60.0)), **o),
    "data that sleep often": lambda o: solve(with_data(sleeping(0.2)), **ENDLESS, **o),
    "data point by point": lambda o: solve(with_data(point_by_point), **o),
    "data without end": lambda o: solve(with_data(forever), **o),
    "in another thread": lambda o: in_thread(pb.problems.poisson(), **ENDLESS, **o),
    "data in another thread": lambda o: in_thread(with_data(forever), **o),
    "a solid of 4000 faces": lambda o: solve(poisson(1, sphere(2000), solid_field), **ENDLESS, **o),
    "a ball": lambda o: solve(poisson(x * y, BALL, solid_field), **ENDLESS, **o),
    "50 holes": lambda o: solve(poisson(1, holes(50)), **ENDLESS, **o),
    "300 000 nodes": lambda o: solve(wave_free, method=pb.PIELM(nodes=300_000), points=rod(300), **o),
    "6000 nodes, 20 000 points": lambda o: solve(wave_free, method=pb.PIELM(nodes=6000), points=rod(20_000), **o),
    "300 000 points": lambda o: solve(wave_free, points=rod(300_000), **o),
    "an unknown number": lambda o: solve(observed(), **o),
    "a short wave": lambda o: solve(helmholtz, budget=1e9, **o),
    "a long time": lambda o: solve(oscillator, budget=1e9, **o),
    "a slow reaction": lambda o: solve(reaction, budget=1e9, **o),
    "a steep front": lambda o: solve(front(10_000), **ENDLESS, **o),
    "a slow callback": lambda o: solve(wave_free, progress=lambda _: time.sleep(20), **o),
    "no time at all": lambda o: solve(wave_free, **{**o, "deadline": 0.01}),
    "training": lambda o: solve(wave_free, method=pb.PINN(), points=rod(2000), **o),
}
AMOUNTS: dict[str, Callable[[Options], Any]] = {
    "memory: endless plane": lambda o: solve(front(300), **ENDLESS, deadline=40, **o),
    "memory: endless space": lambda o: solve(pb.problems.poisson_ball(), **ENDLESS, deadline=40, **o),
    "memory: 20 000 nodes": lambda o: solve(wave_free, method=pb.PIELM(nodes=20_000), points=rod(3000), **o),
    "memory: many points": lambda o: solve(wave_free, method=pb.PIELM(nodes=3000), points=rod(200_000), **o),
    "memory: 40 dimensions": lambda o: solve(wide(40), **ENDLESS, deadline=40, **o),
    "memory: data that hoard": lambda o: solve(with_data(hoarding()), **o),
    "memory: almost none": lambda o: solve(front(300), **ENDLESS, deadline=40, **{**o, "memory": "1 MB"}),
    "memory: a slow reaction": lambda o: solve(reaction, **ENDLESS, deadline=40, **o),
    "ulimit: 20 000 nodes": lambda _: (
        with_limit(300 * MEGABYTE),
        solve(wave_free, method=pb.PIELM(nodes=20_000), points=rod(3000)),
    )[-1],
    "ulimit: endless plane": lambda _: (with_limit(400 * MEGABYTE), solve(front(300), **ENDLESS, deadline=40))[-1],
}


def run(name: str, seconds: float) -> dict[str, Any]:
    """Run one case in this process."""
    pb.solve(pb.problems.advection())  # modules are loaded on first use
    is_time = name in DEADLINES
    memory = 300.0 * MEGABYTE
    options: Options = {"deadline": seconds} if is_time else {"memory": memory}
    before, most, over = resident(), [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            most[0] = max(most[0], resident() - before)

    threading.Thread(target=watch, daemon=True).start()
    try:
        found = (DEADLINES if is_time else AMOUNTS)[name](options)
        words = f"{found.status}: {found.diagnostics.message}"
        fine = True
    except PiblsError as error:
        words, fine = f"{type(error).__name__}: {error}", True
    except BaseException as error:
        words, fine = f"foreign {type(error).__name__}: {error}", False
    took = time.monotonic() - BEGUN[0]
    over.set()
    limit = 0.01 if name == "no time at all" else seconds
    kept = took <= 1.1 * limit + 1.0 if is_time else most[0] <= 1.1 * memory + 50 * MEGABYTE
    return {"kept": kept and fine, "seconds": took, "megabytes": most[0] / MEGABYTE, "words": words}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        print(json.dumps(run(options.names[0], options.seconds)))
        return 0
    names = options.names or [*DEADLINES, *AMOUNTS]
    kept = 0
    for name in names:
        command = [sys.executable, "-m", "benchmarks.limits", "--alone", f"--seconds={options.seconds}", name]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
            found = json.loads(ended.stdout.splitlines()[-1])
        except (subprocess.TimeoutExpired, json.JSONDecodeError, IndexError) as error:
            tail = ended.stderr[-300:] if isinstance(error, IndexError) else ""
            found = {"kept": False, "seconds": np.nan, "megabytes": np.nan, "words": f"{type(error).__name__} {tail}"}
        kept += found["kept"]
        verdict = "kept  " if found["kept"] else "BROKEN"
        facts = f"{found['seconds']:6.2f} s {found['megabytes']:6.0f} MB"
        print(f"{verdict} {name:28s} {facts}  {' '.join(found['words'].split())[:150]}", flush=True)
    print(f"{kept} of {len(names)} kept")
    return int(kept < len(names))


if __name__ == "__main__":
    sys.exit(main())
