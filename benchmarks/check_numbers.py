"""Every number of the study's page, looked up in the cells by its name, by other code than the page's.

A name says what a number is: kind of cells, problem, method, number of points, score, part, quantity and statistic over
seeds; or, first of all, which number or word made of several it is, for which there is a function here.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from pibls.paper.ledger import label
from pibls.paper.published import METHODS, published
from pibls.paper.setting import Setting
from pibls.report.metrics import METRICS

__all__ = ["looked_up", "same"]

Cells = Sequence[dict[str, Any]]
_OWN = ("advection", "poisson_star", "diffusion_reaction")  # problems whose numbers are published


def same(printed: str, value: float | str, name: str = "") -> bool:
    """Whether a number or a word is the printed one, a number to all the digits that are printed."""
    text = printed.replace("−", "-").strip()
    if isinstance(value, str):
        return text == value
    if name.endswith("|~2"):
        return text == f"{float(f'{value:.2g}'):g}"
    if text in ("∞", "-∞"):
        return value == (math.inf if text == "∞" else -math.inf)
    if text.startswith("1 - "):
        return same(text[4:], 1 - value)
    try:
        number = float(text)
    except ValueError:
        return False
    mantissa, _, exponent = text.partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits)
    return math.isclose(number, value, abs_tol=0.500001 * unit, rel_tol=1e-12)


def picked(cells: Cells, kind: str, problem: str, method: str, n: str | int, score: str | None) -> Cells:
    """Return the cells that are about this, by seed."""
    wanted = (kind, problem, method, int(n), score or None)
    found = [c for c in cells if (c["kind"], c["problem"], c["method"], c["n_train"], c["score"] or None) == wanted]
    return sorted(found, key=lambda cell: int(cell["seed"]))


def statistic(values: Sequence[float], which: str, *, high: bool = False) -> float:
    """Return the median of numbers or their worst or best; one that is none counts as the worst."""
    worst = -math.inf if high else math.inf
    numbers = [worst if math.isnan(value) else value for value in values]
    if which == "median":
        return statistics.median(numbers)
    return (min if (which == "worst") == high else max)(numbers)


def looked_up(name: str, cells: Cells, sizes: dict[str, int]) -> float | str:
    """Return what a number or a word of this name should be; NaN for a name that nothing is known under."""
    first, *rest = name.removesuffix("|~2").split("|")
    try:
        return _RESOLVERS.get(first, _plain)(first, rest, cells, sizes)
    except (KeyError, ValueError, IndexError, TypeError, ZeroDivisionError):
        return math.nan


def _errors(cells: Cells, problem: str, method: str, sizes: dict[str, int], score: str = "exact") -> dict[int, float]:
    found = picked(cells, "accuracy", problem, method, sizes[problem], score)
    return {c["seed"]: float(c["test"]["relative_rmse"]) for c in found}


def _plain(kind: str, rest: Sequence[str], cells: Cells, _: dict[str, int]) -> float:
    problem, method, n, score, part, quantity, which = rest
    found = picked(cells, kind, problem, method, n, score)
    if quantity == "seconds per point":
        return statistic([float(c["seconds"]) / int(n) for c in found], which)
    if quantity == "seconds and search":
        return statistic([float(c["seconds"]) + float(c["search_seconds"]) for c in found], which)
    values = [float((c[part] if part else c)[quantity]) for c in found]
    return statistic(values, which, high=quantity == "r2")


def _savings(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    problem, _, n, _, _, quantity, _ = rest
    large, small = (
        statistics.median(float(c["parameters"]) for c in picked(cells, "accuracy", problem, method, n, "exact"))
        for method in ("PINN", "PI-BLS")
    )
    return 100.0 * (1.0 - small / large) if quantity == "reduction" else large / small


def _duel(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method, what = rest
    own, other = (_errors(cells, problem, m, sizes) for m in ("PI-BLS", method))
    common = own.keys() & other.keys()
    medians = statistics.median(own.values()), statistics.median(other.values())
    return {
        "ratio": medians[1] / medians[0],
        "inverse": medians[0] / medians[1],
        "lower": float(sum(own[seed] < other[seed] for seed in common)),
        "seeds": float(len(common)),
    }[what]


def _word(cells: Cells, problem: str, method: str, n: int) -> str | None:
    """Return whether PI-BLS is better than a method, level or worse, by the rule that the page states."""
    own, other = (
        {c["seed"]: c["test"]["relative_rmse"] for c in picked(cells, "accuracy", problem, m, n, "exact")}
        for m in ("PI-BLS", method)
    )
    seeds = own.keys() & other.keys()
    if not seeds:
        return None
    ratio = statistics.median(other.values()) / statistics.median(own.values())
    wins = sum(own[seed] < other[seed] for seed in seeds)
    unsure = 2 * sum(math.comb(len(seeds), k) for k in range(min(wins, len(seeds) - wins) + 1)) / 2 ** len(seeds)
    if 1 / 1.1 <= ratio <= 1.1 or (len(seeds) >= 6 and unsure > 0.05) or (ratio > 1) != (wins > len(seeds) / 2):
        return "level"
    return "better" if ratio > 1 else "worse"


def _standing(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> str:
    problem, method, n = rest
    return str(_word(cells, problem, method, int(n)))


def _comparisons(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    words, seeds = [], []
    for problem, n, method in ((p, n, m) for p in _OWN for n in published().sizes(p) for m in METHODS[1:]):
        if word := _word(cells, problem, method, n):
            words.append(word)
            both = [{c["seed"] for c in picked(cells, "accuracy", problem, m, n, "exact")} for m in ("PI-BLS", method)]
            seeds.append(len(both[0] & both[1]))
    counts = {"all": len(words), "fewest": min(seeds, default=0), "most": max(seeds, default=0)}
    return float(counts[rest[0]] if rest[0] in counts else words.count(rest[0]))


def _best(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> str:
    problem, which = rest
    errors = {}
    for method in METHODS:
        own = list(_errors(cells, problem, method, sizes).values())
        told = published().accuracy(problem, method, "test", "relative_rmse")
        if which == "measured" and own:
            errors[method] = statistics.median(own)
        elif which == "published" and told is not None:
            errors[method] = told
    return label(min(errors, key=errors.__getitem__)) if errors else "–"


def _reductions(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    cut = []
    for problem in _OWN:
        large, small = (_medians(cells, problem, method) for method in ("PINN", "PI-BLS"))
        cut += [100 * (1 - small[n] / large[n]) for n in published().sizes(problem) if n in large and n in small]
    return float({"min": min(cut), "max": max(cut), "rows": len(cut)}[rest[0]])


def _checks(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    found = [check for c in cells if c["kind"] == "theorems" for check in c["theorems"].values()]
    if rest[0] == "excess":
        return float(max(check["measured"] / check["sharp_bound"] for check in found if not check["holds"]))
    return float(len(found) if rest[0] == "all" else sum(check["holds"] for check in found))


def _one(first: str, rest: Sequence[str], cells: Cells, _: dict[str, int]) -> float | str:
    """Return the verdict on one number, of how many seeds it is true, or how many there are."""
    kind, *where, quantity = rest
    seeds = _seeds(kind, where, quantity, cells)
    if first == "count":
        return float(len(seeds))
    wanted = _published("", rest, cells, {})
    verdict = _judged(_middle(seeds, quantity), wanted, quantity)
    return verdict if first == "verdict" else float(_agreeing(seeds, wanted, quantity, verdict))


def _middle(seeds: Sequence[float], quantity: str) -> float:
    return statistic(seeds, "median", high=quantity in ("r2", "reduction", "factor"))


def _agreeing(seeds: Sequence[float], wanted: float, quantity: str, verdict: str) -> int:
    found = [_judged(value, wanted, quantity) for value in seeds]
    return found.count(verdict) + (found.count("beat") if verdict == "reproduce" else 0)


def _growth(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    method, axis, which = rest
    (cell,) = (c for c in cells if (c["kind"], c["method"], c.get("axis")) == ("complexity", method, axis))
    sizes, seconds = cell["extra"]["sizes"], cell["extra"]["seconds"]
    a, b = (0, 1) if which == "small" else (-2, -1)
    return math.log(seconds[b] / seconds[a]) / math.log(sizes[b] / sizes[a])


def _solvers(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method, which = rest
    found = picked(cells, "accuracy", problem, method, sizes[problem], "exact")
    ratios = [
        c["test"]["relative_rmse"] / c["extra"]["as_searched"] for c in found if c["extra"].get("as_searched", 0) > 0
    ]
    return float(len(ratios)) if which == "count" else statistic(ratios, which)


def _choice(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, method = rest
    exact, residual = (_errors(cells, problem, method, sizes, score) for score in ("exact", "residual"))
    return statistics.median(residual.values()) / statistics.median(exact.values())


def _speed(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    problem, what = rest
    costs = []
    for method in ("PINN", "PI-BLS"):
        found = picked(cells, "accuracy", problem, method, sizes[problem], "exact")
        costs.append(statistics.median(c["seconds"] + (c["search_seconds"] if what == "all" else 0.0) for c in found))
    return float(costs[0] / costs[1])


def _alone(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    n = published().time_size(rest[0])
    found = [picked(cells, "time", rest[0], method, n, None) for method in ("PINN", "PI-BLS")]
    slow, fast = (statistics.median(c["seconds"] for c in own) for own in found)
    return float(slow / fast)


def _theorem(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    check, method, which = rest
    found = [c["theorems"] for c in cells if (c["kind"], c["method"]) == ("theorems", method)]
    reports = [theorems[check] for theorems in found if check in theorems]
    if which in ("models", "held"):
        return float(len(reports) if which == "models" else sum(r["holds"] for r in reports))
    if which == "printed":
        return float(statistics.median(r["measured"] / r["paper_bound"] for r in reports if r["paper_bound"] > 0))
    return statistic([r["measured"] / r["sharp_bound"] for r in reports], which)


def _coverage(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    problem, what, *which = rest
    (cell,) = (c for c in cells if (c["kind"], c["problem"]) == ("coverage", problem))
    runs = cell["extra"]
    if what == "error":
        return statistic(runs["errors"], which[0])
    values = {
        "measurements": runs["measurements"],
        "noise": statistics.median(runs["noise"]),
        "inside": 100.0 * runs["coverage"][runs["levels"].index(0.95)],
        "lowest": 100.0 * min(runs["inside"]),
    }
    return float(values[what])


def _races(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    courses = [c["extra"]["course"] for c in cells if c["kind"] == "accuracy" and c["extra"].get("course")]
    pilots = [leaders for course in courses for leaders in course["pilots"].values()]
    scales = sum(leaders[-2]["settings"]["scale"] != leaders[-1]["settings"]["scale"] for leaders in pilots)
    settings = sum(course["leaders"][-2]["settings"] != course["leaders"][-1]["settings"] for course in courses)
    counts = {"pilots": len(pilots), "scales": scales, "settings": settings, "searches": len(courses)}
    return float(counts[rest[0]])


def _published(_: str, rest: Sequence[str], __: Cells, ___: dict[str, int]) -> float:
    """Return a number of the paper, from its data file."""
    kind, problem, method, n, score, part, quantity, *more = rest
    del score, more
    paper = published()
    if kind == "time":
        value = paper.seconds(problem, method, per_point=quantity == "seconds per point")
    elif kind == "savings" or quantity == "parameters":
        value = paper.parameters(problem, int(n), quantity if kind == "savings" else method)
    else:
        value = paper.accuracy(problem, method, part, quantity)
    return math.nan if value is None else value


def _judged(value: float, wanted: float, quantity: str) -> str:
    """Return the verdict on a number, by the rule that the page states."""
    limit = 4.0 if quantity in ("mse", "relative_mse", "r2") else 2.0
    if quantity in ("r2", "reduction"):
        whole = 1.0 if quantity == "r2" else 100.0
        value, wanted = whole - value, whole - wanted
    elif quantity == "factor":
        value, wanted = wanted, value
    ratio = 1.0 if value == wanted else value / wanted if wanted else math.inf
    return "beat" if ratio < 1 / limit else "reproduce" if ratio <= limit else "miss"


def _verdicts(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    group, column = rest
    count = 0
    for name in _compared(group):
        wanted = _published("", [*name.split("|")], cells, sizes)
        if math.isnan(wanted):
            continue
        kind, *where, quantity = name.split("|")
        if column == "published":
            count += 1
            continue
        seeds = _seeds(kind, where, quantity, cells)
        if not seeds:
            continue
        if column == "seeds":
            count += len(seeds)
            continue
        middle = _middle(seeds, quantity)
        verdict = _judged(middle, wanted, quantity)
        if column == "held":
            count += _agreeing(seeds, wanted, quantity, verdict)
        elif column == "at or below":
            count += middle >= wanted if quantity in ("r2", "reduction", "factor") else middle <= wanted
        else:
            count += verdict == column
    return float(count)


def _seeds(kind: str, where: Sequence[str], quantity: str, cells: Cells) -> list[float]:
    problem, method, n, score, part = where
    if kind == "savings":
        try:
            return [_savings("", [problem, method, n, score, part, quantity, "median"], cells, {})]
        except statistics.StatisticsError:
            return []
    found = picked(cells, kind, problem, method, n, score)
    if quantity == "seconds per point":
        return [float(c["seconds"]) / int(n) for c in found]
    return [float((c[part] if part else c)[quantity]) for c in found]


def _compared(group: str) -> Iterator[str]:
    """Yield the names of all numbers of a group that may have a published one."""
    paper = published()
    if group.startswith("table "):
        _, problem, part = group.split(" ")
        n = paper.table_size(problem)
        yield from (f"accuracy|{problem}|{method}|{n}|exact|{part}|{m}" for method in METHODS for m in METRICS)
        return
    for problem in _OWN:
        table, time = paper.table_size(problem), paper.time_size(problem)
        for method in METHODS:
            wanted = {"PI-BLS": method == "PI-BLS", "the baselines": method != "PI-BLS"}
            if group == "all" or any(group.startswith(f"accuracy of {who}") and yes for who, yes in wanted.items()):
                for part in ("test", "train"):
                    yield from (f"accuracy|{problem}|{method}|{table}|exact|{part}|{m}" for m in METRICS)
            if group == "all" or group.startswith("training times"):
                yield from (f"time|{problem}|{method}|{time}|||{q}" for q in ("seconds", "seconds per point"))
            if group == "all" or group.startswith("parameters"):
                yield from (f"accuracy|{problem}|{method}|{n}|exact||parameters" for n in paper.sizes(problem))
        if group == "all" or group.startswith("parameters"):
            for n in paper.sizes(problem):
                yield from (f"savings|{problem}|PI-BLS|{n}|||{q}" for q in ("reduction", "factor"))


def _gap(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    errors = _errors(cells, "advection", "PI-BLS", sizes)
    gaps = {}
    for seed in errors:
        x = [0.0, *sorted(Setting("advection", sizes["advection"], seed).points.interior[:, 0].tolist()), 1.0]
        gaps[seed] = max(b - a for a, b in pairwise(x))
    worst = max(errors, key=errors.__getitem__)
    values = {"count": len(gaps), "median": statistics.median(gaps.values()), "worst": max(gaps.values())}
    return float({**values, "error": errors[worst], "stretch": gaps[worst]}[rest[0]])


def _medians(cells: Cells, problem: str, method: str) -> dict[int, float]:
    found: dict[int, list[float]] = {}
    for cell in cells:
        if (cell["kind"], cell["problem"], cell["method"], cell["score"]) == ("accuracy", problem, method, "exact"):
            found.setdefault(cell["n_train"], []).append(float(cell["parameters"]))
    return {n: statistics.median(values) for n, values in found.items()}


def _larger(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    own = [problem for problem in _OWN if problem in sizes]
    rows = [(p, n, m) for p in own for n, m in _medians(cells, p, "PI-BLS").items() if n in published().sizes(p)]
    above = [m > (published().parameters(p, n, "PI-BLS") or math.inf) for p, n, m in rows]
    return float(len(rows) if rest[0] == "rows" else sum(above))


def _timed(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    timed = [c for c in cells if c["kind"] == "time"]
    other = 0
    for cell in timed:
        behind = picked(cells, "accuracy", cell["problem"], cell["method"], sizes[cell["problem"]], "exact")
        other += any(c["seed"] == cell["seed"] and c["settings"] != cell["settings"] for c in behind)
    return float(len(timed) if rest[0] == "all" else other)


def _factors(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    ratios = []
    for problem in sizes:
        large, small = (_medians(cells, problem, method) for method in ("PINN", "PI-BLS"))
        ratios += [large[n] / small[n] for n in published().sizes(problem) if n in large and n in small]
    return float({"min": min(ratios), "max": max(ratios), "count": len(ratios)}[rest[0]])


def _choices(_: str, rest: Sequence[str], cells: Cells, sizes: dict[str, int]) -> float:
    pairs = [(problem, method) for problem in sizes for method in ("PI-BLS", "PI-ELM", "BPI-ELM")]
    known = [(p, m) for p, m in pairs if _errors(cells, p, m, sizes, "residual") and _errors(cells, p, m, sizes)]
    ratios = [_choice("", pair, cells, sizes) for pair in known]
    return float({"median": statistics.median(ratios), "count": len(ratios), "worst": max(ratios)}[rest[0]])


def _nodes(_: str, rest: Sequence[str], cells: Cells, __: dict[str, int]) -> float:
    counts = [float(c["parameters"]) for c in cells if (c["kind"], c["problem"]) == ("solve", rest[0])]
    return min(counts) if rest[1] == "min" else max(counts)


_RESOLVERS: dict[str, Callable[[str, Sequence[str], Cells, dict[str, int]], float | str]] = {
    "standing": _standing,
    "comparisons": _comparisons,
    "best": _best,
    "reductions": _reductions,
    "checks": _checks,
    "verdict": _one,
    "held": _one,
    "count": _one,
    "savings": _savings,
    "duel": _duel,
    "growth": _growth,
    "solvers": _solvers,
    "choice": _choice,
    "speed": _speed,
    "alone": _alone,
    "theorem": _theorem,
    "coverage": _coverage,
    "races": _races,
    "published": _published,
    "verdicts": _verdicts,
    "gap": _gap,
    "larger": _larger,
    "factors": _factors,
    "timed": _timed,
    "choices": _choices,
    "nodes": _nodes,
}
