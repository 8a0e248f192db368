"""What README and docs say about the study of the paper, written from the cells that come with the library.

Every number is looked up by what it is: problem, method, number of points, quantity and statistic over seeds. The test
of the tables holds the documents against what is written here, so that a number, or two methods, exchanged by hand is
found.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from statistics import median

from pibls.paper.conclusions import claims, standings
from pibls.paper.findings import Findings
from pibls.paper.ledger import Ledger, Summary, held, own_numbers, tally
from pibls.paper.published import published
from pibls.paper.selecting import LENGTHS
from pibls.paper.stored import stored

__all__ = ["PAPER_TABLES"]

TITLES = {
    "advection": "advection",
    "poisson_star": "Poisson on a star",
    "poisson_square": "Poisson on a square",
    "diffusion_reaction": "diffusion–reaction",
}
STUDIED = ("advection", "poisson_star", "diffusion_reaction")
NAMES = {"PI-BLS": "PI-BLS", "PINN": "PINN", "PI-ELM": "PI-ELM", "BPI-ELM": "Bayesian PI-ELM"}


@cache
def _found() -> Findings:
    return Findings(Ledger.of(stored().cells), published(), "full")


def _power(value: float, digits: int = 1) -> str:
    """Return a number as 1.2e-3.

    >>> _power(0.00123), _power(2.5)
    ('1.2e-3', '2.5e0')
    """
    if math.isnan(value):
        return "–"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _size(value: float) -> str:
    """Return an error or a factor with two digits, as people write it.

    >>> _size(0.00123), _size(0.5), _size(6.71), _size(1234.0)
    ('1.2e-3', '0.50', '6.7', '1200')
    """
    if math.isnan(value):
        return "–"
    if value < 0.1:
        return _power(value)
    return f"{value:.2f}" if value < 1 else f"{float(f'{value:.2g}'):g}"


def _table(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [heads, ["---"] * len(heads), *lines]
    return "\n".join("|" + "|".join(f" {cell} " if cell != "---" else cell for cell in row) + "|" for row in rows)


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(
        textwrap.fill(" ".join(text.split()), 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        for text in sentences
    )


def _words(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 120, break_on_hyphens=False)


def _error(kind: str, problem: str, method: str, n: int = 0, score: str | None = "exact") -> Summary | None:
    return _found().error(kind, problem, method, n, score).measured


def _median(summary: Summary | None) -> float:
    return summary.median if summary else math.nan


def reproduce() -> str:
    """Return the study's errors beside the published ones and those of plain solve."""
    columns: dict[str, tuple[str, str, str | None]]
    columns = {NAMES[m]: ("accuracy", m, "exact") for m in ("PI-BLS", "PI-ELM", "BPI-ELM", "PINN")}
    columns |= {"wider space": ("beyond", "PI-BLS", "exact"), "plain `solve`": ("solve", "solve", None)}
    lines = []
    for problem in STUDIED:
        n = published().table_size(problem)
        told = published().accuracy(problem, "PI-BLS", "test", "relative_rmse") or math.nan
        errors = {h: _median(_error(kind, problem, m, n, score)) for h, (kind, m, score) in columns.items()}
        best = min(list(columns)[:4], key=errors.__getitem__)
        cells = [f"**{_power(e)}**" if h == best else _power(e) for h, e in errors.items()]
        lines.append([f"{TITLES[problem]}, {n}", _power(told), *cells])
    return _table(("problem, points", "PI-BLS published", *columns), lines)


def parameters() -> str:
    """Return how many parameters the selected models have."""
    lines = []
    for problem in STUDIED:
        records = [_found().number("accuracy", problem, m, "parameters", score="exact") for m in NAMES]
        published_counts = [
            published().parameters(problem, published().table_size(problem), m) for m in ("PI-BLS", "PINN")
        ]
        counts = [f"{_median(record.measured):.0f}" for record in records]
        lines.append(
            [f"{TITLES[problem]}, {records[0].n_train}", *(f"{c:.0f}" for c in published_counts if c), *counts]
        )
    return _table(("parameters, points", "PI-BLS published", "PINN published", *NAMES.values()), lines)


def seconds() -> str:
    """Return how long the fits of the tables take, and with which error."""
    lines = []
    for slow, slow_all, evaluations, fast, fast_all in _found().speed:
        values = [_size(_median(record.measured)) for record in (slow, slow_all)]
        own = [_size(_median(record.measured)) for record in (fast, fast_all)]
        errors = [_power(_median(_error("accuracy", slow.problem, m))) for m in ("PINN", "PI-BLS")]
        factors = [_median(a.measured) / _median(b.measured) for a, b in ((slow, fast), (slow_all, fast_all))]
        length = f"{_median(evaluations.measured):.0f}"
        name = f"{TITLES[slow.problem]}, {slow.n_train}"
        lines.append([name, *values, length, errors[0], *own, errors[1], *map(_size, factors)])
    heads = ("PINN: seconds", "search and fit", "evaluations", "error", "PI-BLS: seconds", "search and fit", "error")
    return _table(("problem, points", *heads, "faster by", "with search"), lines)


def points() -> str:
    """Return errors of PI-BLS over the number of points, tables for few of them and for more."""
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    for problem in (*STUDIED[:2], "poisson_square", *STUDIED[2:]):
        sizes = published().sizes(problem)
        found = [_error("accuracy", problem, "PI-BLS", n) for n in sizes]
        cells = [f"{_size(_median(s))} ({s.count if s else 0})" for s in found]
        tables.setdefault(("points", *map(str, sizes)), []).append([TITLES[problem], *cells])
    return "\n\n".join(_table(heads, lines) for heads, lines in tables.items())


def claims_table() -> str:
    """Return the paper's claims with the verdicts."""
    lines = [[claim.claim, f"**{claim.verdict}**", claim.plain] for claim in claims(_found())]
    return _table(("claim of the paper", "verdict", "what it rests on"), lines)


def origins() -> str:
    """Return where the stored cells come from."""
    rows = stored().origins
    commits: dict[tuple[str, str, str], int] = {}
    for row in rows:
        key = row["machine"], row["commit"], row["date"]
        commits[key] = commits.get(key, 0) + row["cells"]
    lines = [[str(count), machine, commit, date] for (machine, commit, date), count in sorted(commits.items())]
    return _table(("cells", "machine", "commit", "date"), lines)


def _standing(problem: str) -> str:
    parts = []
    for pair in standings(_found(), problem):
        name = NAMES[pair.second]
        if pair.word == "level":
            parts.append(f"level with {name}")
        else:
            size = pair.ratio if pair.word == "better" else 1 / pair.ratio
            parts.append(f"{pair.word} than {name} by a factor of {_size(size)}")
    return f"On {TITLES[problem]} PI-BLS is {', '.join(parts[:-1])} and {parts[-1]}."


def findings_words() -> str:
    """Return the sentences of the document about the results."""
    return _bullets(sentence for part in (_beaten, _square, _raced, _chosen, _checked, _covered) for sentence in part())


def _beaten() -> Iterator[str]:
    own = own_numbers([r for r in _found().accuracy if r.method == "PI-BLS"])
    counts, (agree, seeds) = tally(own), held(own)
    yield (
        f"The medians of PI-BLS beat {counts['beat']} of its {counts['published']} published errors by more than a "
        f"factor of two, reproduce {counts['reproduce']} and miss {counts['miss']}; these verdicts are true of {agree} "
        f"of {seeds} numbers of single seeds."
    )
    yield " ".join(map(_standing, STUDIED))
    gaps = _found().gaps
    if gaps:
        yield (
            f"Draws differ: the worst of {gaps[0].count} advection seeds has an error of {_power(gaps[1])}; its "
            f"longest stretch without a point is {gaps[2]:.2f} of the interval."
        )


def _square() -> Iterator[str]:
    errors = {NAMES[m]: _error("accuracy", "poisson_square", m) for m in NAMES}
    told = [f"{name} {_power(s.median)} ({s.count} seeds)" for name, s in errors.items() if s]
    if told:
        plain = _power(_median(_error("solve", "poisson_square", "solve", score=None)), 0)
        yield (
            f"The Poisson problem that the paper's text prints, on the unit square, is harder: with 100 points "
            f"{', '.join(told)}; plain `solve` {plain}. Its maximum is 1, and that of the solution of the published "
            "table 1.5: the table belongs to another problem."
        )


def _raced() -> Iterator[str]:
    pilots, scales, settings, searches = _found().races
    if pilots:
        yield (
            f"The search for PINNs is a race: {', '.join(map(str, LENGTHS))} evaluations for fewer and fewer networks. "
            f"The last length, four times the one before, changed {scales} of {pilots} scales and the settings in "
            f"{settings} of {searches} searches."
        )


def _chosen() -> Iterator[str]:
    count, rough = _found().settings("poisson_star", "PI-BLS")
    yield (
        f"A third of the search spaces for second-order equations cannot be fitted: {rough} of the {count} settings of "
        "PI-BLS have ReLU nodes, whose second derivative is zero."
    )
    ratios = sorted(ratio for *_, ratio in _found().choices if ratio)
    if ratios:
        yield (
            "Choosing settings by the residual at held-out points, which needs no exact solution, multiplies errors by "
            f"{_size(median(ratios))} in the median of {len(ratios)} pairs of method and problem, and by "
            f"{_size(ratios[-1])} in the worst."
        )


def _checked() -> Iterator[str]:
    rows = _found().theorems
    if rows:
        yield (
            f"The theorems are checked by properties that only the minimiser has: {sum(row.held for row in rows)} of "
            f"{sum(len(row.found) for row in rows)} checks hold. Weights times 1.9, times ½, or zero fail every check."
        )


def _covered() -> Iterator[str]:
    cells = {cell["problem"]: cell["extra"] for cell in _found().book.select(kind="coverage").cells}
    shares = {p: 100 * cells[p]["coverage"][cells[p]["levels"].index(0.95)] for p in TITLES if p in cells}
    if shares:
        told = ", ".join(f"{share:.0f} % ({TITLES[problem]})" for problem, share in shares.items())
        yield (
            f"With measurements that carry 5 % noise, 95 % bands of Bayesian PI-ELM hold {told} of the true solution "
            "at test points, over 100 repetitions."
        )


def readme_words() -> str:
    """Return the sentences of the README about the study."""
    counts = tally(own_numbers([r for r in _found().accuracy if r.method == "PI-BLS"]))
    errors = [[_power(_median(_error("accuracy", p, m))) for p in STUDIED] for m in ("PI-BLS", "PINN")]
    return _words(
        f"The medians of PI-BLS beat {counts['beat']} of its {counts['published']} published errors by more than a "
        f"factor of two. It does not always win. {' '.join(map(_standing, STUDIED))} Its errors "
        f"on the three are {', '.join(errors[0])}. PINNs, searched with the same care, have {', '.join(errors[1])}."
    )


PAPER_TABLES: dict[str, Callable[[], str]] = {
    "reproduce": reproduce,
    "parameters": parameters,
    "seconds": seconds,
    "points": points,
    "claims": claims_table,
    "origins": origins,
    "paper-findings": findings_words,
    "paper-readme": readme_words,
}
