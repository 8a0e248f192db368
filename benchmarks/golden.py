"""The golden table: every problem of every set by plain ``pb.solve``, compared with the table of another commit.

    python -m benchmarks.golden                           run everything; results in out/golden-CODE.csv as they come
    python -m benchmarks.golden --sample --compare        a few minutes: some sixty solves, beside the kept table
    python -m benchmarks.golden --keep                    run what is missing, and keep it in benchmarks/results
    python -m benchmarks.golden --compare COMMIT|FILE     run what is missing, and compare; exit status 1 if worse
    python -m benchmarks.golden --merge FILE ... --keep   run nothing: put these files together, and keep them
    [--set NAME ...] [--only PROBLEM ...] [--part 1/4] [--processes N] [--out FILE] [--commit NAME] [--draw PNG]

A solve is FALSE that is called converged with an error above 3 max(tol, estimate), or converged or ill-posed when it is
not, or whose error is above ten times the estimate. Work is counted in operations, over 10¹⁰; seconds are those of the
processor, on one thread. CODE names the library and the sets by their content: what was run for it is not run again.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.compared import compared, summary
from benchmarks.records import load, parsed, save
from benchmarks.runner import Key, Row, digest, keys, longest_first, run
from benchmarks.sample import SAMPLE
from benchmarks.sets import SETS
from benchmarks.tables import FOLDER, ROOT, commit_of, machine, provenance
from pibls.runtime import available_cores

KEPT = FOLDER / "golden.csv"
_DRAWN = ("error", "estimate", "seconds")


def chosen(options: argparse.Namespace) -> list[Key]:
    """Return the solves that are asked for, the longest first."""
    wanted = keys(options.set or SETS)
    if options.sample:
        wanted = sampled(wanted)
    if options.only:
        if unknown := set(options.only) - {key[1] for key in wanted}:
            raise SystemExit(f"--only: no problem is named {', '.join(sorted(unknown))} here.")
        wanted = [key for key in wanted if key[1] in options.only]
    wanted = longest_first(wanted, kept())
    if options.part:
        own, parts = (int(word) for word in options.part.split("/"))
        wanted = wanted[own - 1 :: parts]
    return wanted


def sampled(wanted: Iterable[Key]) -> list[Key]:
    """Return the solves that are in the sample."""
    first = {}
    for key in wanted:
        if key[1] in SAMPLE.get(key[0], ()):
            first.setdefault(key[:2], key)
    return list(first.values())


def kept() -> list[Row]:
    """Return the table that is kept."""
    return load(Row, KEPT)


def keep(rows: Iterable[Row], where: str) -> None:
    """Keep rows in place of older ones of the same solves; those of other solves stay."""
    merged = {row.key: row for row in [*kept(), *rows]}
    order = {key: number for number, key in enumerate(keys())}
    table = sorted((row for row in merged.values() if row.key in order), key=lambda row: order[row.key])
    usual = Counter(row.commit for row in table).most_common(1)[0][0]
    made = provenance("golden") | {"commit": usual, "machine": where}
    save(Row, KEPT, table, head=f"# {json.dumps(made)}\n", untold=("message",))


def base(name: str) -> list[Row]:
    """Return the table of a file, or the one that is kept at a commit."""
    if Path(name).is_file():
        return load(Row, Path(name))
    shown = subprocess.run(
        ["git", "show", f"{name}:{KEPT.relative_to(ROOT)}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if shown.returncode:
        raise SystemExit(f"--compare: {name!r} is neither a file nor a commit with a golden table. {shown.stderr}")
    return parsed(Row, shown.stdout)


def draw(rows: Iterable[Row], path: Path) -> None:
    """Plot true errors over estimates, and over time."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), constrained_layout=True)
    line = [1e-16, 1e1]
    left.fill_between(line, [v / 3 for v in line], [3 * v for v in line], color="0.9", label="within a factor of 3")
    left.plot(line, line, color="0.6", lw=1)
    for status, colour in (("converged", "tab:blue"), ("stalled", "tab:orange"), ("ill-posed", "tab:red")):
        errors, estimates, seconds = ([getattr(r, k) for r in rows if r.status == status] for k in _DRAWN)
        if errors:
            left.loglog(estimates, errors, ".", color=colour, label=status)
            right.loglog(seconds, errors, ".", color=colour, label=status)
    left.set(xlabel="estimated relative error", ylabel="true relative error", xlim=line, ylim=line)
    right.set(xlabel="seconds of the processor", ylabel="true relative error", ylim=line)
    left.legend()
    figure.savefig(path, dpi=120)


def options_given() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", choices=SETS, metavar="NAME", help=f"of {', '.join(SETS)}")
    parser.add_argument("--only", nargs="+", metavar="PROBLEM")
    parser.add_argument("--sample", action="store_true", help="some sixty cheap solves of all sets")
    parser.add_argument("--part", metavar="I/N", help="every N-th solve, from the I-th on")
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, help="file for the rows; what it has is not run again")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="take rows from files, and run nothing")
    parser.add_argument("--commit", default=None, help="the commit that rows are marked with, where there is no git")
    parser.add_argument("--draw", type=Path, metavar="PNG", help="plot true errors over estimates and over seconds")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--machine", default=machine(), help="where files that are merged come from")
    parser.add_argument("--compare", nargs="?", const=str(KEPT), metavar="COMMIT|FILE")
    return parser.parse_args()


def main() -> None:
    """Run what is missing, keep it, compare it."""
    options = options_given()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before = base(options.compare) if options.compare else []
    wanted = chosen(options)
    if options.merge:
        own = {row.key: row for path in options.merge for row in load(Row, path)}
        rows = [own[key] for key in wanted if key in own]
    else:
        out = options.out or ROOT / "out" / f"golden-{digest()}.csv"
        rows = run(wanted, out, options.processes, options.commit or commit_of(ROOT))
        print(f"{len(rows)} rows are in {out}")
    print("\n".join(summary(rows)))
    worse = []
    if options.compare:
        lines, worse = compared(before, rows)
        print("\n".join(lines))
    if options.keep:
        keep(rows, options.machine)
    if options.draw:
        draw(rows, options.draw)
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
