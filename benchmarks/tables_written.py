"""What README and docs say of each benchmark, made from its results: one function per table or sentence."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from statistics import median

from benchmarks.paper_words import PAPER_TABLES
from benchmarks.runner import ROUND_OFF
from benchmarks.scale_words import SCALE_TABLES
from benchmarks.tables import Results, Row, power, results, table

STUDIED = ("advection", "poisson_star", "diffusion_reaction")
TITLES = {
    "advection": "advection",
    "poisson_star": "Poisson on a star",
    "poisson_square": "Poisson on a square",
    "diffusion_reaction": "diffusion–reaction",
    "helmholtz": "Helmholtz `sin 10x sin 10y`",
    "stokes": "Stokes, three fields",
    "biharmonic": "biharmonic",
}


def _words(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _numbers(rows: Iterable[Row], key: str) -> list[float]:
    return [float(row[key]) for row in rows]


def _groups(found: Results, *keys: str) -> dict[tuple[str, ...], list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in found.rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


def _statuses(rows: Sequence[Row]) -> str:
    states = [row["status"] for row in rows]
    if len({*states}) == 1:
        return states[0]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted({*states}))


def _calibration(rows: Sequence[Row], above: float = ROUND_OFF) -> str:
    """Say how far estimates are from errors above round-off, and how many runs converged that had not."""
    ratios = [_ratio(row) for row in rows if float(row["error"]) > above]
    share = {k: sum(1 / k <= ratio <= k for ratio in ratios) / len(ratios) for k in (3, 10)}
    said = " and ".join(
        f"within a factor of {k} of the estimate in " + ("all" if part == 1 else f"{math.floor(1000 * part) / 10:g} %")
        for k, part in share.items()
        if k == 3 or share[3] < 1
    )
    wrong = sum(r["status"] == "converged" and float(r["error"]) > 10 * float(r["tol"]) for r in rows)
    outside = sorted({f"`{r['problem']}`" for r in rows if float(r["error"]) > above and not 0.1 <= _ratio(r) <= 10})
    return (
        f"Of {len(rows)} runs, {len(ratios)} ended above round-off. The true error was {said} of these "
        f"(smallest ratio {min(ratios):.2g}, largest {max(ratios):.2g}"
        f"{'; outside 10: ' if outside else ''}{', '.join(outside)}). "
        f"{wrong or 'No'} run called converged had a true error above ten times its tolerance."
    )


def _ratio(row: Row) -> float:
    return float(row["error"]) / float(row["estimate"])


def linear() -> str:
    """Return plain solve over the linear zoo, a line per problem."""
    heads = ("problem", "true error, median", "worst", "estimate", "status", "seconds", "weights")
    lines = []
    for (name,), rows in sorted(_groups(results("linear"), "problem").items()):
        errors, estimates = _numbers(rows, "error"), _numbers(rows, "estimate")
        small = [power(value) for value in (median(errors), max(errors), median(estimates))]
        nodes = median(_numbers(rows, "nodes"))
        lines.append([name, *small, _statuses(rows), f"{median(_numbers(rows, 'seconds')):.2f}", f"{nodes:.0f}"])
    return table(heads, lines)


def linear_words() -> str:
    """Return the same in two sentences."""
    found = results("linear")
    half, where = median(_numbers(found.rows, "seconds")), found.made["machine"].partition(" (")[0]
    return _words(
        f"Measured on {found.when()}, each in a process of its own, all cores busy ({where}). Half of the solves take "
        f"less than {half:.2f} s. {_calibration(found.rows)}"
    )


def linear_estimates() -> str:
    """Return how good the estimates are."""
    return _words(_calibration(results("linear").rows))


def accuracy() -> str:
    """Return settings by hand, a line per case."""
    lines = []
    for row in results("accuracy").rows:
        title = TITLES[row["problem"]]
        if row["points"] == "few":
            inside = 30 if row["problem"] == "advection" else 100
            title += f", {inside} random points inside"
        if int(row["enhancement"]):
            title += ", half of the nodes enhancement nodes"
        lines.append([title, f"{row['rows']} × {row['weights']}", power(row["error"]), power(row["worst"])])
    return table(("problem", "rows × weights", "median", "worst"), lines)


def few() -> str:
    """Return the error of advection with few points, without enhancement nodes."""
    return _few("0")


def few_enhanced() -> str:
    """Return the same with half of the nodes enhancement nodes."""
    return _few("100")


def _few(enhancement: str) -> str:
    rows = (row for row in results("accuracy").rows if row["points"] == "few" and row["problem"] == "advection")
    (error,) = (row["error"] for row in rows if row["enhancement"] == enhancement)
    return power(error)


def assembly() -> str:
    """Return what a large system costs."""
    found = results("assembly")
    (row,) = (r for r in found.rows if (r["rows"], r["columns"]) == ("10000", "2000"))
    return _words(
        "Assembly and solve of a 10 000 × 2000 system (2-D Laplacian, half the nodes enhancement nodes) take "
        f"{float(row['ratio']):.1f} times as long as the bare matrix products plus one LAPACK QR of that size, in "
        f"{float(row['memory']):.1f} times the memory of the matrix (`python -m benchmarks.assembly`, one thread, "
        f"{found.when()})."
    )


def cells() -> str:
    """Return what even trees cost, by the number of weights."""
    lines = [
        [r["cells"], r["weights"], f"{float(r['seconds']):.1f}", f"{float(r['gib']):.1f}", power(r["error"])]
        for r in results("cells").rows
    ]
    return table(("cells", "weights", "s", "GiB", "true error"), lines)


def everyday() -> str:
    """Return plain solve over everyday problems, a line each."""
    rows = _everyday()
    lines = [[r["problem"], r["status"], power(r["error"]), power(r["estimate"])] for r in rows]
    return table(("problem", "status", "true error", "estimate"), lines)


def _everyday() -> list[Row]:
    return [row for row in results("everyday").rows if row["tol"] == "0.0001"]


def everyday_words() -> str:
    """Return the same in two sentences."""
    rows = _everyday()
    states = [row["status"] for row in rows]
    false = sum(row["verdict"].startswith("FALSE") for row in rows)
    ratios = [_ratio(row) for row in rows if float(row["error"]) > ROUND_OFF]
    within = sum(0.1 <= ratio <= 10 for ratio in ratios)
    return _words(
        f"At a tolerance of 1e-4, {states.count('converged')} of {len(states)} everyday problems (corners, layers, "
        f"narrow sources, jumping materials) converge; {states.count('stalled') or 'none'} stall. {within} of "
        f"{len(ratios)} estimates are within a factor of 10 of the true error. {false or 'No'} "
        f"answer{'s are' if false > 1 else ' is'} false. (False means: called converged with an error above three "
        "times its tolerance or estimate, called ill-posed, or with an error above ten times its estimate.) "
        "(`python -m benchmarks.golden --set everyday`, "
        f"{results('everyday').when()}.)"
    )


def nonlinear() -> str:
    """Return steady nonlinear problems at two tolerances, a line each."""
    groups = _groups(results("nonlinear"), "problem", "tol")
    heads = ("converged", "error", "worst", "s")
    lines = []
    for name in sorted({name for name, _ in groups}):
        cells = [f"`{name}`"]
        for tol in ("1e-06", "1e-09"):
            rows = groups[name, tol]
            errors = _numbers(rows, "error")
            met = sum(row["status"] == "converged" for row in rows)
            cells += [f"{met}/{len(rows)}", power(median(errors), 1), power(max(errors), 1)]
            cells.append(f"{median(_numbers(rows, 'seconds')):.1f}")
        lines.append(cells)
    return table(("problem", *heads, "at 1e-9: converged", *heads[1:]), lines)


def nonlinear_words() -> str:
    """Return how good the estimates of the same are, and when."""
    found = results("nonlinear")
    return _words(f"{_calibration(found.rows)} (Measured on {found.when()}.)")


def evolution() -> str:
    """Return evolutions, a line each."""
    lines = []
    for r in results("evolution").rows:
        if r["seed"] != "0":
            continue
        way = "lines" if "lines" in r["method"].lower() else "space–time"
        ratio = f"{float(r['estimate']) / float(r['error']):.2f}"
        facts = (way, r["status"], power(r["error"]), ratio, r["nodes"], f"{float(r['seconds']):.1f}")
        lines.append([r["problem"], power(r["tol"]), *facts])
    return table(("problem", "tol", "way", "status", "error", "estimate / error", "features", "s"), lines)


def gpu() -> str:
    """Return one fit on a device and on a processor, by the number of nodes."""
    lines = [
        [r["nodes"], f"{r['device']} s", f"{r['processor']} s", "1" if r["error"] == "1" else power(r["error"])]
        for r in results("gpu").rows
    ]
    return table(("nodes", "H200", "16 cores", "true error"), lines)


def inverse_bound() -> str:
    """Return errors with 1 % noise beside the least that any unbiased estimate can have, a line per unknown."""
    lines = [
        [f"`{r['problem']}`", r["unknown"], power(r["error"], 1), f"{float(r['over_bound']):.2f}"]
        for r in results("inverse_bound").rows
    ]
    return table(("problem", "unknown", "median relative error", "over the bound"), lines)


def inverse_coverage() -> str:
    """Return how often intervals and bands hold the truth, a line per unknown or field."""
    groups = {(r["problem"], r["unknown"]): r for r in results("inverse_coverage").rows}
    lines = []
    for (problem, unknown), row in groups.items():
        spoiled = groups.get((f"{problem} with outliers", unknown))
        if spoiled is not None:
            what = f"band of {unknown.removesuffix('()')}" if unknown.endswith("()") else f"interval of {unknown}"
            lines.append([f"`{problem}`", what, *(f"{float(own['held']):.1%}" for own in (row, spoiled))])
    return table(("problem", "95 %", "held", "held with 10 % outliers"), lines)


def inverse_starts() -> str:
    """Return how searches from random starts ended, a line per unknown."""
    lines = []
    for r in results("inverse_starts").rows:
        solves, elsewhere, silent = (int(r[key]) for key in ("solves", "elsewhere", "silent"))
        counts = (solves - elsewhere, elsewhere - silent, silent)
        lines.append([f"`{r['problem']}`", r["unknown"], *map(str, counts), f"{float(r['seconds']):.1f}"])
    return table(
        ("problem", "unknown", "at the truth", "elsewhere, and say so", "elsewhere in silence", "median seconds"), lines
    )


def windows() -> str:
    """Return unknown numbers where measurements stand in place of all conditions, a line per unknown."""
    lines = [
        [
            *(r["problem"], r["unknown"], power(r["error"], 1)),
            *(f"{float(r['held']):.1%}", f"{float(r['spread']):.2f}", f"{float(r['seconds']):.2f}"),
        ]
        for r in results("windows").rows
    ]
    return table(("window", "unknown", "median relative error", "held", "errors over deviations", "s"), lines)


def peers_inverse() -> str:
    """Return unknown numbers without noise, by plain solve and by DeepXDE."""
    lines = [
        [
            f"`{r['problem']}`",
            r["unknown"],
            r["solver"],
            power(r["error"], 1),
            f"{float(r['seconds']):.1f}",
            r["setting"],
        ]
        for r in results("peers_inverse").rows
    ]
    return table(("problem", "unknown", "solver", "relative error", "s", "setting"), lines)


def settings() -> str:
    """Return how many constants of each package change a solve."""
    found, kinds = results("settings"), ("yes", "no", "untried")
    groups: dict[str, list[Row]] = {}
    for row in found.rows:
        groups.setdefault(row["constant"].partition("/")[0], []).append(row)
    groups["all"] = found.rows
    counts = [[name, *(str(sum(r["matters"] == kind for r in own)) for kind in kinds)] for name, own in groups.items()]
    return table(("package", "change something", "change nothing", "read by no problem that was tried"), counts)


TABLES: dict[str, Callable[[], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(linear, linear_words, linear_estimates, accuracy, few, few_enhanced, assembly, cells),
        *(everyday, everyday_words, nonlinear, nonlinear_words, evolution, gpu),
        *(inverse_bound, inverse_coverage, inverse_starts),
        *(peers_inverse, windows, settings),
    )
} | {**PAPER_TABLES, **SCALE_TABLES}
