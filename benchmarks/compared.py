"""Two golden tables beside each other, and one in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from benchmarks.runner import Row

MORE_WORK = 1.1
_LISTED = 12  # rows that are listed of a kind
_RANKS = {
    "converged": ("converged", "stalled", "ill-posed"),
    "stalled": ("stalled", "ill-posed", "converged"),
    "ill-posed": ("ill-posed", "stalled", "converged"),
}


def rank(row: Row) -> int:
    """Return how far a status is from the right one: 0 is the best, and an exception the worst.

    >>> from benchmarks.runner import Row
    >>> common = ("zoo", "a", "", 1e-6, 0), (1e-7, 1e-7, 1.0, 1.0, 10, "Cells", "")
    >>> [rank(Row(*common[0], expected, "converged", *common[1])) for expected in ("converged", "ill-posed")]
    [0, 2]
    """
    statuses = _RANKS[row.expected]
    return statuses.index(row.status) if row.status in statuses else len(statuses)


def share(rows: Sequence[Row], factor: float) -> float:
    """Return the share of estimates that are within a factor of the true error; 1 where nothing can be compared."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    return sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios) if ratios else 1.0


def by_set(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return rows by set, in the order in which sets appear."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.set, []).append(row)
    return groups


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for every set, and one for all: statuses, false statements, estimates, work, seconds."""
    for name, own in [*sorted(by_set(rows).items()), ("all", list(rows))]:
        states = {state: sum(row.status == state for row in own) for state in sorted({row.status for row in own})}
        false = [row for row in own if row.verdict not in ("", "MISSED")]
        said = ", ".join(f"{count} {state}" for state, count in states.items())
        yield (
            f"{name:10s} {len(own):4d} solves: {said}; {len(false)} false; estimates within 3x {share(own, 3):.0%}, "
            f"10x {share(own, 10):.0%}; work {_total(own, 'work'):.1f}, {_total(own, 'seconds'):.0f} s"
        )
    for row in rows:
        if row.verdict:
            yield f"  {row.verdict}: {_words(row)} {row.message[:120] if row.verdict == 'EXCEPTION' else ''}".rstrip()


def compared(before: Sequence[Row], after: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Return a comparison of the solves that two tables share: all lines of it, and those that make it worse."""
    old = {row.key: row for row in before}
    pairs = [(old[row.key], row) for row in after if row.key in old]
    lines = [f"{len(pairs)} solves are in both tables; {len(after) - len(pairs)} of {len(after)} are new."]
    worse = [f"status worse: {_change(a, b)}" for a, b in pairs if rank(b) > rank(a)]
    worse += [f"newly {b.verdict}: {_change(a, b)}" for a, b in pairs if b.verdict not in ("", "MISSED", a.verdict)]
    better = [f"status better: {_change(a, b)}" for a, b in pairs if rank(b) < rank(a)]
    better += [f"no longer {a.verdict}: {_change(a, b)}" for a, b in pairs if a.verdict and not b.verdict]
    for name, own in by_set([b for _, b in pairs]).items():
        own_before = [old[row.key] for row in own]
        line, bad = _of_set(name, own_before, own)
        lines.append(line)
        worse += bad
    for label, get in (("work", lambda row: row.work), ("seconds", lambda row: row.seconds)):
        lines += _extremes(label, get, pairs)
    lines += better
    lines += ["WORSE:", *(f"  {line}" for line in worse)] if worse else ["Nothing is worse."]
    return lines, worse


def _of_set(name: str, before: Sequence[Row], after: Sequence[Row]) -> tuple[str, list[str]]:
    """Compare the solves of a set: how good estimates are, and how much work and time it takes."""
    near = [(share(before, k), share(after, k)) for k in (3, 10)]
    work = [b.work / a.work for a, b in zip(before, after, strict=True) if a.work > 0 and b.work > 0]
    took = [b.seconds / a.seconds for a, b in zip(before, after, strict=True) if a.seconds > 0]
    totals = [_total(after, key) / _total(before, key) if _total(before, key) else 1.0 for key in ("work", "seconds")]
    line = (
        f"{name:10s} {len(after):4d} solves; estimates within 3x {near[0][0]:.1%} -> {near[0][1]:.1%}, "
        f"10x {near[1][0]:.1%} -> {near[1][1]:.1%}; work median {median(work or [1]):.2f}x, sum {totals[0]:.2f}x; "
        f"seconds median {median(took or [1]):.2f}x, sum {totals[1]:.2f}x"
    )
    worse = [
        f"{name}: estimates within {k}x: {one:.1%} -> {two:.1%}"
        for k, (one, two) in zip((3, 10), near, strict=True)
        if two < one
    ]
    if totals[0] > MORE_WORK:
        worse.append(f"{name}: {totals[0]:.2f} times the work")
    return line, worse


def _extremes(label: str, get: Callable[[Row], float], pairs: Sequence[tuple[Row, Row]]) -> Iterator[str]:
    """Yield the solves whose work or time grew most."""
    ratios = [(get(b) / get(a), a, b) for a, b in pairs if get(a) > 0 and get(b) > 0]
    for ratio, a, b in sorted(ratios, key=lambda entry: -entry[0])[:_LISTED]:
        if ratio > MORE_WORK:
            yield f"  {label} {ratio:.2f}x ({get(a):.3g} -> {get(b):.3g}): {_words(b)}"


def _total(rows: Sequence[Row], key: str) -> float:
    return sum(value for row in rows if not math.isnan(value := getattr(row, key)))


def _words(row: Row) -> str:
    return (
        f"{row.set} {row.problem}, tol {row.tol:g}, seed {row.seed}: {row.status}, estimate {row.estimate:.1e}, "
        f"error {row.error:.1e}"
    )


def _change(before: Row, after: Row) -> str:
    return f"{_words(after)} (was {before.status}, {before.estimate:.1e}, {before.error:.1e})"
