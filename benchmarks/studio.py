"""The studio's speed in a browser: its first page, a key until its formula is typeset, a slider until its picture.

    python -m benchmarks.studio [--solves 1000]

A studio runs as a process of its own, and Chromium is driven by Playwright as a hand would: seconds go by the clock of
the page, from the event of a key or a slider to the frame that shows what came of it; beside them stands what the
studio and its workers took of the processor, which other programs hardly change. A coefficient is moved at once,
before anything was made ahead for it, then after that; and a move is followed until the problem itself is solved. The
last lines tell the memory of the studio and of its workers after a tenth of the solves, and after all of them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

_HOLES = ((0.5, 0.3), (0.5, 0.7), (1.5, 0.3), (1.5, 0.7))
_DISKS = ", ".join(
    f'{{shape = "disk", center = [{x}, {y}], radius = 0.1, name = "hole{i}"}}' for i, (x, y) in enumerate(_HOLES)
)
_PLATE = '{shape = "rectangle", x = [0, 2], y = [0, 1], name = "plate"}'
_DOMAINS = {
    "disk": 'shape = "disk"\nradius = 1',
    "plate with a hole": f'shape = "difference"\nof = [{_PLATE}, {_DISKS.partition("}, ")[0]}}}]',
    "plate with four holes": f'shape = "difference"\nof = [{_PLATE}, {_DISKS}]',
}
_PROBLEM = """unknowns = ["u"]
equations = ["-k*laplacian(u) = load"]
[parameters]
k = 1
load = 4
[domain]
{domain}
[[conditions]]
kind = "dirichlet"
value = 0
[solve]
tol = 1e-4
"""
# The time from an event of an element until a page that fulfils a condition has been painted.
_TIMED = """([chosen, change, done]) => new Promise((resolve) => {
  const node = document.querySelector(chosen), met = new Function("before", `return ${done}`);
  const picture = document.querySelector("pibls-picture"), math = () => document.querySelector(".math").innerHTML;
  const before = { data: picture.data, math: math() }, begun = performance.now();
  new Function("node", change)(node);
  const look = () => met({ ...before, picture, now: math() })
    ? requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)))
    : performance.now() - begun > 30000 ? resolve(Infinity) : setTimeout(look, 1);
  look();
})"""
_TYPE = "node.value = {!r}; node.dispatchEvent(new Event('input', {{bubbles: true}}))"


@contextmanager
def studio(text: str) -> Iterator[tuple[str, int, float]]:
    """Yield the address of a studio with a problem, the number of its process, and the seconds until it was there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.toml"
        path.write_text(text, encoding="utf-8")
        begun = time.perf_counter()
        command = [sys.executable, "-m", "pibls", "studio", str(path), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[-1]
            try:
                yield address, server.pid, time.perf_counter() - begun
            finally:
                server.terminate()


def timed(page: Any, chosen: str, change: str, done: str) -> float:
    """Return milliseconds from a change of an element until the page has followed it."""
    return float(page.evaluate(_TIMED, [chosen, change, done]))


def keys(page: Any, count: int = 40) -> list[float]:
    """Return milliseconds from each key of a formula that is typed until it is typeset."""
    found, formula = [], "-k*laplacian(u) + sin(3*x)*u_x = load*exp(-y**2) + "
    for number in range(count):
        formula += str(number % 9 + 1)
        change = _TYPE.format(formula)
        found.append(timed(page, '[aria-label="Equation 1"]', change, "before.now !== before.math"))
        page.wait_for_timeout(60)
    return found


def slides(page: Any, name: str, count: int = 40) -> list[float]:
    """Return milliseconds from each move of a slider until the new picture is painted."""
    chosen = f'[aria-label="Slider of {name}"]'
    moves = [_TYPE.format(f"{1 + 0.05 * number:.2f}") for number in range(count)]
    return [timed(page, chosen, move, "before.picture.data !== before.data") for move in moves]


def rest(page: Any, server: int) -> None:
    """Wait until the studio and its workers have nothing more to do."""
    done = -1.0
    while work(server) > done:
        done = work(server)
        page.wait_for_timeout(700)


def settled(page: Any, count: int = 3) -> list[float]:
    """Return the milliseconds from a move of a coefficient until the problem itself is solved for it."""
    green = "document.querySelector('.status').classList.contains('good')"
    done = f"(before.picture.moved ||= !{green}) && {green}"
    moves = [
        "document.querySelector('pibls-picture').moved = false; " + _TYPE.format(f"{1.003 + 0.05 * k:.3f}")
        for k in range(count)
    ]
    return [timed(page, '[aria-label="Slider of k"]', move, done) for move in moves]


def solve(page: Any) -> float:
    """Solve, and return the milliseconds until the picture."""
    return timed(page, ".top .action:last-of-type", "node.click()", "before.picture.data !== before.data")


def processes(server: int) -> Iterator[tuple[str, Path]]:
    """Yield a studio and its workers, each with its place among the processes of the machine."""
    yield "studio", Path("/proc") / str(server)
    for number in (Path("/proc") / str(server) / "task" / str(server) / "children").read_text().split():
        yield f"worker {number}", Path("/proc") / number


def memory(server: int) -> Mapping[str, float]:
    """Return the megabytes that a studio and each of its workers hold."""
    return {
        name: int((place / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        for name, place in processes(server)
    }


def work(server: int) -> float:
    """Return the milliseconds of the processor that a studio and its workers have taken so far."""
    ticks = [sum(map(int, (place / "stat").read_text().split()[13:15])) for _, place in processes(server)]
    return 1000 * sum(ticks) / os.sysconf("SC_CLK_TCK")


def told(name: str, server: int, measure: Callable[[], list[float]]) -> None:
    """Measure milliseconds, and print their middle, the largest, and what each took of the processor."""
    begun = work(server)
    found = measure()
    each = (work(server) - begun) / len(found)
    print(f"  {name:30} median {median(found):4.0f} ms, largest {max(found):4.0f} ms, processor {each:4.0f} ms")


def opened(browser: Any, address: str) -> Any:
    """Return a page that is drawn and typeset."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.set_default_timeout(60_000)
    page.goto(address)
    page.locator(".math math").first.wait_for()
    page.locator("pibls-board .edge").first.wait_for(state="attached")
    return page


def measured(browser: Any, solves: int) -> None:
    """Measure one studio after the other."""
    for name, domain in _DOMAINS.items():
        with studio(_PROBLEM.format(domain=domain)) as (address, server, seconds):
            begun = time.perf_counter()
            page = opened(browser, address)
            first = time.perf_counter() - begun
            print(f"{name}: address after {seconds:.2f} s, first page {first:.2f} s, {seconds + first:.2f} s in all")
            solve(page)
            print(f"  {page.locator('.figures').inner_text()}")
            slides(page, "load", 3)
            told("slider of a right-hand side", server, partial(slides, page, "load"))
            begun = work(server)
            told("coefficient, moved at once", server, partial(slides, page, "k", 3))
            rest(page, server)
            print(f"  made ahead of its moves: processor {work(server) - begun:.0f} ms")
            told("slider of a coefficient", server, partial(slides, page, "k"))
            rest(page, server)
            told("coefficient, solved at rest", server, partial(settled, page))
            told("key", server, partial(keys, page))
            page.close()
    with studio(_PROBLEM.format(domain=_DOMAINS["disk"])) as (address, server, _):
        page = opened(browser, address)
        for number in range(solves):
            solve(page)
            if number + 1 in (max(1, solves // 10), solves):
                sizes = ", ".join(f"{own} {size:.1f} MB" for own, size in sorted(memory(server).items()))
                print(f"after {number + 1} solves: {sizes}")


def main() -> None:
    """Print all figures."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--solves", type=int, default=1000, help="how many solves in a row, for the memory they leave")
    solves = parser.parse_args().solves
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        measured(browser, solves)
        browser.close()


if __name__ == "__main__":
    main()
