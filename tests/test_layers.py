"""Imports go one way: from what is to be solved to how it is shown."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import internals
import pibls

ROOT = Path(pibls.__file__).parent
# Modules of one row may not import each other unless they are one package.
ORDER = [
    {"errors", "status", "interrupts", "markup", "writing"},
    {"checks"},
    {"limits", "reading"},
    {"runtime"},
    {"budget"},
    {"newton"},
    {"quadrature"},
    {"problem"},
    {"geometry"},
    {"problems"},
    {"text"},
    {"features"},
    {"system"},
    {"solvers"},
    {"solution"},
    {"refinement"},
    {"methods", "report"},
    {"cells"},
    {"quantities"},
    {"wellposed"},
    {"evolution"},
    {"inverse"},
    {"spectrum"},
    {"tuning"},
    {"sweeps"},
    {"paper"},
    {"studio"},
    {"cli"},
    {"__main__"},
]
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
# A solution offers quantities, plot() and grow(), a problem to_text(), which live to their right: the import waits.
DEFERRED = {("solution", "quantities"), ("solution", "report"), ("solution", "tuning"), ("problem", "text")}
DEFERRED |= {("geometry", "report")}  # a domain offers plot()
HEAVY = (
    "torch",
    "matplotlib",
    *(f"scipy.{name}" for name in ("integrate", "interpolate", "ndimage", "optimize", "spatial", "stats")),
)


def modules():
    return sorted(p for p in ROOT.rglob("*.py") if p != ROOT / "__init__.py")


def layer_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(tree):
    """Yield (module, deferred, line) of every import, also those inside functions; not those for type checkers."""

    def walk(node, deferred):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                continue
            inside = deferred or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.Import):
                yield from ((alias.name, deferred, child.lineno) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, "absolute imports only"
                names = [f"{child.module}.{a.name}" for a in child.names] if child.module in HOMES else [child.module]
                yield from ((name, deferred, child.lineno) for name in names)
            yield from walk(child, inside)

    return list(walk(tree, False))


HOMES = {"pibls", "scipy"}  # `from pibls import x` names a layer, `from scipy import stats` a heavy module


@cache
def imports_of(path):
    return imports(ast.parse(path.read_text(encoding="utf-8")))


def test_imports_go_to_the_left():
    wrong = []
    for path in modules():
        layer = layer_of(path)
        assert layer in RANK, f"{path} belongs to no layer of {ORDER}"
        for module, deferred, line in imports_of(path):
            parts = module.split(".")
            if parts[0] == "pibls":
                target = parts[1]
                allowed = target == layer or RANK[target] < RANK[layer] or (deferred and (layer, target) in DEFERRED)
                wrong += [] if allowed else [f"{path}:{line}: {layer} imports {module}, which is to its right"]
    assert not wrong, "\n".join(wrong)


def loaded_by_using_the_package():
    """Modules reached from what the package exports by imports that are not deferred to a function."""
    files = {".".join(("pibls", *p.relative_to(ROOT).with_suffix("").parts)): p for p in ROOT.rglob("*.py")}
    files = {name.removesuffix(".__init__"): path for name, path in files.items()}
    found, todo = {}, ["pibls", "pibls.problems", *(f"pibls.{home}" for home in pibls._HOMES)]
    while todo:
        name = todo.pop()
        if name in files and name not in found:
            found[name] = [m for m, deferred, _ in imports_of(files[name]) if not deferred]
            todo += [".".join(m.split(".")[:n]) for m in found[name] for n in range(1, 4)]
    return found


def test_heavy_packages_are_imported_where_they_are_used():
    found = loaded_by_using_the_package()
    assert {"pibls.solvers.lstsq", "pibls.geometry.cloud", "pibls.solution.storage"} <= set(found)
    for name, wanted in found.items():
        heavy = [m for m in wanted if m.startswith(HEAVY)]
        assert not heavy, f"using pibls loads {name}, which loads {heavy[0]}: import it inside a function"


def test_every_layer_exists():
    assert {layer_of(p) for p in modules()} == set(RANK)


def test_the_check_would_notice():
    source = "import torch\ndef f():\n    from pibls.report.plots import plot\n    from scipy import stats\n"
    assert imports(ast.parse(source)) == [
        ("torch", False, 1),
        ("pibls.report.plots", True, 3),
        ("scipy.stats", True, 4),
    ]


def loaded_after(code, *modules):
    """Run code in a process of its own; return which of the modules it has loaded."""
    code = f"import sys\n{code}\nprint(*sorted({set(modules)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_exports_load_nothing_heavy():
    assert loaded_after("from pibls import *", "torch", "matplotlib", "scipy.stats", "numpy") == ["numpy"]


def test_importing_the_package_loads_nothing_that_is_not_asked_for():
    layers = [f"pibls.{name}" for names in ORDER for name in names]
    assert loaded_after("import pibls", *layers, "numpy", "sympy", "scipy") == []
    assert "pibls.geometry" not in loaded_after("import pibls; pibls.coordinates('x')", *layers)


def test_everything_exported_is_there():
    assert len(set(pibls.__all__)) == len(pibls.__all__)
    assert all(hasattr(pibls, name) for name in pibls.__all__)
    assert set(pibls.__all__) | {"__version__"} <= set(dir(pibls))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = pibls.nonsense


def test_exports_are_the_same_for_people_and_type_checkers():
    tree = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    typed = next(n for n in tree.body if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test))
    names = {a.name: n.module for n in typed.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert set(names) == set(pibls.__all__)
    for name, module in names.items():
        assert getattr(importlib.import_module(module), name) is getattr(pibls, name)


def test_tests_reach_internals_through_one_module():
    for path in sorted(Path(__file__).parent.glob("*.py")):
        homes = (
            node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        )
        inner = {home for home in homes if home.startswith("pibls.") and home.count(".") > 1}
        assert not inner, f"import what {path.name} needs of {sorted(inner)} from tests/internals.py, and name it there"


def test_every_internal_name_has_one_home():
    every = [name for names in internals.NAMES.values() for name in names.split()]
    assert sorted(set(every)) == sorted(every)
