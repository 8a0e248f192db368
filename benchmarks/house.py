"""The size of the house: lines, constants that decide, functions on the way of a simple solve, names and sentences.

    python -m benchmarks.house            print every figure, and where it stands against the kept one
    python -m benchmarks.house --list     name what is counted, file by file
    python -m benchmarks.house --keep     keep figures that fell, in benchmarks/house.json; a test lets none rise
    python -m benchmarks.house --reset    keep today's figures, also those that rose

A constant that decides is a number with a name in upper case at the top of a module, or a field with a number as its
default in a dataclass of settings (``...Settings``), in a package that chooses how a problem is solved.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "pibls"
KEPT = Path(__file__).parent / "house.json"
# Packages and modules that choose how a problem is solved, today and as they may be called.
DECIDING = ("automatic", "cells", "evolution", "inverse", "lines", "newton", "quadrature", "refinement", "tuning")
DECIDING += ("wellposed",)
LONG_FUNCTION, LONG_FILE = 60, 400


def trees() -> dict[Path, ast.Module]:
    """Return every module of the library, parsed."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def _is_number(node: ast.expr | None) -> bool:
    """Tell whether an expression has a number in it that it is made of; texts and truth values are none."""
    return node is not None and any(
        isinstance(part, ast.Constant) and isinstance(part.value, int | float) and not isinstance(part.value, bool)
        for part in ast.walk(node)
    )


def _is_settings(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and node.name.endswith("Settings")


def constants(tree: ast.Module) -> Iterator[str]:
    r"""Yield the names of the constants of a module.

    >>> list(constants(ast.parse("_A, B = 1, 2.5\nc = 3\nNAME = 'x'\nclass MySettings:\n    share: float = 0.1")))
    ['_A', 'B', 'MySettings.share']
    """
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and _is_number(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            yield from (name for name in names if name.isupper())
        elif _is_settings(node) and isinstance(node, ast.ClassDef):
            for entry in node.body:
                if isinstance(entry, ast.AnnAssign) and _is_number(entry.value) and isinstance(entry.target, ast.Name):
                    yield f"{node.name}.{entry.target.id}"


def package(path: Path) -> str:
    """Return the name of the package, or of the module at the top, that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def walked() -> list[str]:
    """Return the functions of the library that a Poisson equation on a square passes through, the second time."""
    import pibls as pb

    pb.solve(pb.problems.poisson(), progress=False)
    problem, seen = pb.problems.poisson(), set()

    def look(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and not code.co_name.startswith("<"):
            seen.add(f"{Path(code.co_filename).relative_to(SOURCE)}:{code.co_firstlineno} {code.co_name}")

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        pb.solve(problem, progress=False)
    finally:
        sys.setprofile(before)
    return sorted(seen)


def found() -> dict[str, list[str]]:
    """Return everything that is counted, by figure, with the place of each."""
    parsed = trees()
    result: dict[str, list[str]] = {}
    names = (
        "lines",
        "constants that decide",
        "constants elsewhere",
        "functions walked for Poisson",
        "files over 400 lines",
        "functions over 60 lines",
    )
    names += ("classes with one name", "basenames twice", "summaries built on what")
    result |= {name: [] for name in names}
    result["functions walked for Poisson"] = walked()
    classes: Counter[str] = Counter()
    for path, tree in parsed.items():
        place, lines = str(path.relative_to(SOURCE)), path.read_text(encoding="utf-8").count("\n")
        result["lines"] += [place] * lines
        result["files over 400 lines"] += [place] if lines > LONG_FILE else []
        of = "constants that decide" if package(path) in DECIDING else "constants elsewhere"
        result[of] += [f"{place} {name}" for name in constants(tree)]
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name] += 1
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno >= LONG_FUNCTION:
                result["functions over 60 lines"].append(f"{place}:{node.lineno} {node.name}")
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                said = (ast.get_docstring(node) or "").partition("\n")[0]
                if re.search(r"\bwhat\b", said, flags=re.IGNORECASE):
                    result["summaries built on what"].append(f"{place}: {said}")
    files = Counter(path.name for path in parsed if path.name != "__init__.py")
    result["classes with one name"] = sorted(name for name, count in classes.items() if count > 1)
    result["basenames twice"] = sorted(name for name, count in files.items() if count > 1)
    return result


def kept() -> dict[str, int]:
    """Return the figures that none of today's may exceed."""
    return dict(json.loads(KEPT.read_text(encoding="utf-8")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--reset", action="store_true")
    options = parser.parse_args()
    counted = found()
    before = kept() if KEPT.exists() else {}
    for name, entries in counted.items():
        number = len(entries)
        print(f"{number:6d} {name}" + (f" (kept: {before[name]})" if before.get(name, number) != number else ""))
        if name == "constants that decide":
            print("       " + ", ".join(f"{of} {n}" for of, n in Counter(e.split("/")[0] for e in entries).items()))
        if options.list and name != "lines":
            print("\n".join(f"         {entry}" for entry in entries))
    if options.keep or options.reset:
        numbers = {name: len(entries) for name, entries in counted.items()}
        if not options.reset:
            numbers = {name: min(number, before.get(name, number)) for name, number in numbers.items()}
        KEPT.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
