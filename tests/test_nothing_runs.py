"""Files run nothing: expressions are evaluated by programs of listed operations only, and forged files are refused."""

from __future__ import annotations

import ast
import hashlib
import json
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import pibls as pb
from internals import Program, compile_function
from pibls.errors import FileFormatError, PiblsError, ProblemError
from pibls.text import read_text

X, Y = pb.coordinates("x y")
U = pb.field("u", X, Y)
SOURCE = Path(pb.__file__).parent
FORBIDDEN = {
    *("eval", "exec", "compile", "__import__", "lambdify", "sympify", "parse_expr", "parse_latex", "autowrap"),
    *("ufuncify", "implemented_function", "S", "loads", "load", "unpickle", "popen"),
}
# What stays is harmless: patterns of text, values that are SymPy's already, arrays without objects, JSON, and what
# processes of one program send each other.
HARMLESS = {"re.compile", "json.loads", "tomllib.loads", "storage.load", "ForkingPickler.loads"}


@cache
def nodes():
    """Return every call and every import of the library, with the file it is in."""
    files = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    kinds = ast.Call | ast.Import | ast.ImportFrom
    return [(path, node) for path, tree in files.items() for node in ast.walk(tree) if isinstance(node, kinds)]


def calls():
    for path, node in nodes():
        if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in FORBIDDEN:
            name = ast.unparse(node.func)
            if name not in HARMLESS:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", name, node


def is_allowed(name, node):
    given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    strict = name == "sp.sympify" and given.get("strict") == "True"
    plain = name == "np.load" and given.get("allow_pickle") == "False"
    own = name in ("trimesh.load", "load")
    return strict or plain or own


def test_no_text_becomes_code_anywhere_in_the_source():
    found = [(place, name) for place, name, node in calls() if not is_allowed(name, node)]
    assert found == []


def test_builtins_are_not_reached_through_imports():
    for path, node in nodes():
        names = [] if isinstance(node, ast.Call) else [alias.name for alias in node.names]
        assert not {"pickle", "marshal", "shelve", "builtins", "lambdify"} & set(names), path


# Programs -----------------------------------------------------------------------------------------------------------


def test_a_program_agrees_with_sympy():
    expressions = [
        X**2 * sp.sin(3 * Y) / (1 + X**2) - sp.sqrt(Y) ** -3,
        sp.Piecewise((X, X < Y), (sp.exp(-Y), X < 2 * Y), (sp.besselj(1, X), True)),
        sp.Max(X, Y, 1) + sp.Min(X, Y) - sp.Abs(X - Y) + sp.Heaviside(X - Y, 1) + sp.sign(Y - X),
        sp.sec(X) + sp.cot(Y) + sp.csch(X) + sp.sinc(X) + sp.airyai(X) + sp.erf(X * Y) + sp.gamma(X),
        sp.Rational(1, 3) * X**Y + 2 ** (X / 3) + sp.pi * sp.E + sp.EulerGamma,
        sp.Mod(X, sp.Rational(1, 3)) + sp.floor(3 * X) + sp.ceiling(Y) + sp.legendre(3, X) + sp.zeta(X + 2),
    ]
    points = np.array([[0.3, 0.7], [1.9, 0.4], [1.0, 1.5]])
    found = Program.of(expressions, (X, Y))(*points.T)
    for expression, values in zip(expressions, found, strict=True):
        expected = [float(expression.subs({X: a, Y: b}).evalf()) for a, b in points]
        np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["eval", "exec", "exit", "print", "input", "open", "__import__", "sin", "os"])
def test_functions_of_any_name_are_refused_unless_they_are_data(name):
    called = sp.Function(name)(X)
    with pytest.raises(ProblemError, match="cannot be evaluated"):
        compile_function(called + 1, (X,))
    bound = pb.data(name, lambda values: values + 2, X)
    assert compile_function(bound, (X,))(np.array([[1.0]])).tolist() == [3.0]


def test_symbols_may_be_called_as_functions_are():
    sine = sp.Symbol("sin", real=True)
    assert compile_function(sp.sin(sine) + 1, (sine,))(np.zeros((1, 1))).tolist() == [1.0]
    built_in = sp.Symbol("print", real=True)
    assert compile_function(2 * built_in, (built_in,))(np.ones((1, 1))).tolist() == [2.0]


def test_values_that_occur_twice_are_computed_once():
    program = Program.of([sp.sin(X * Y) + sp.exp(sp.sin(X * Y))], (X, Y))
    assert [name for name, _ in program.steps].count("sin") == 1


# Forged files -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """The members of the file of a solution on a star."""
    star = pb.Star((X, Y), 1 + sp.cos(3 * sp.Symbol("theta")) / 10)
    problem = pb.Problem(pb.laplacian(U), star, [pb.Dirichlet(U, X)])
    solution = pb.PIELM(nodes=20).fit(problem, pb.Points.sample(problem, 30))
    path = solution.save(tmp_path_factory.mktemp("saved") / "star.pibls")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(members, path, change):
    """Write a file with a changed record and digests that fit it."""
    record = json.loads(members["solution.json"])
    change(record)
    contents = {**members, "solution.json": json.dumps(record).encode()}
    del contents["digest.json"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in (contents | {"digest.json": json.dumps(digests).encode()}).items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


def text_as_tree(text):
    return ["data", "bytes", ["data", "list", *(["int", str(ord(letter))] for letter in text)]]


CALLS = {
    "eval": ["data", "eval", text_as_tree("__import__('pathlib').Path('owned').touch()")],
    "exec": ["data", "exec", text_as_tree("raise SystemExit")],
    "exit": ["data", "exit", ["int", "3"]],
    "input": ["data", "input"],
    "breakpoint": ["data", "breakpoint", ["coordinate", "theta"]],
    "print": ["data", "print", ["coordinate", "theta"]],
    "nested": ["Add", ["int", "2"], ["data", "vars", ["data", "__import__", ["coordinate", "theta"]]]],
}


def in_radius(tree):
    return lambda record: record["problem"]["domain"]["radius"].update(expression=tree)


def in_level(tree):
    def change(record):
        level = {"symbols": [["x", True], ["y", True], ["theta", True]], "expression": tree}
        own = {"shape": "Implicit", "coordinates": ["x", "y"], "function": level, "bounds": [[-1, 1], [-1, 1]]}
        record["problem"]["domain"] = own | {"cells": 8}

    return change


def in_equation(tree):
    named = json.loads(json.dumps(tree).replace('"theta"', '"x"'))
    return lambda record: record["problem"]["equations"].__setitem__(0, ["Equality", named, ["int", "0"]])


@pytest.mark.parametrize("place", [in_radius, in_level, in_equation], ids=lambda place: place.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_a_forged_solution_calls_nothing(members, tmp_path, monkeypatch, name, place):
    path = forged(members, tmp_path / "forged.pibls", place(CALLS[name]))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileFormatError):
        pb.load(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["forged.pibls"]


@pytest.mark.parametrize("name", ["exit", "quit", "input", "eval", "exec", "breakpoint", "print", "open"])
def test_names_of_data_in_a_problem_file_reach_no_builtins(tmp_path, name):
    grid = "\n".join(f"{a},{b},{a * a + b * b - 0.5}" for a in (-1, -0.5, 0, 0.5, 1) for b in (-1, -0.5, 0, 0.5, 1))
    (tmp_path / "level.csv").write_text(f"x,y,{name}\n{grid}\n")
    text = f"""
    equations = ["laplacian(u) = 1"]
    [data.{name}]
    file = "level.csv"
    [domain]
    shape = "implicit"
    function = "{name}"
    bounds = [[-1, 1], [-1, 1]]
    [[conditions]]
    kind = "dirichlet"
    value = 0
    """
    try:
        problem = read_text(text, tmp_path).problem
    except PiblsError:
        return
    # The name means the table of the file, as it should.
    assert problem.domain.measure == pytest.approx(np.pi / 2, rel=0.2)


# Archives and arrays ------------------------------------------------------------------------------------------------


def test_a_gmsh_file_with_huge_numbers_of_nodes_takes_no_memory(tmp_path):
    path = tmp_path / "sparse.msh"
    nodes, cells = "1 0 0 0\n2 1 0 0\n500000000 0 1 0\n", "1 2 2 0 1 1 2 500000000\n"
    head = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n"
    path.write_text(f"{head}$Nodes\n3\n{nodes}$EndNodes\n$Elements\n1\n{cells}$EndElements\n")
    tracemalloc.start()
    try:
        shape = pb.read_shape(path, (X, Y))
        assert tracemalloc.get_traced_memory()[1] < 500_000_000  # a table of all numbers would take gigabytes
    finally:
        tracemalloc.stop()
    assert shape.measure == pytest.approx(0.5)


def rewritten(members, path, entries):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries:
            archive.writestr(zipfile.ZipInfo(name), content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_come_twice_are_refused(members, tmp_path):
    path = rewritten(members, tmp_path / "twice.pibls", [*members.items(), ("weights.npy", members["weights.npy"])])
    with pytest.raises(FileFormatError, match="a member twice"):
        pb.load(path)


def test_members_that_share_their_bytes_are_refused_before_they_are_read(members, tmp_path, monkeypatch):
    path = rewritten(members, tmp_path / "whole.pibls", members.items())
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda archive: [*archive.filelist, *map(copied, range(50))])

    def copied(number):
        entry = zipfile.ZipInfo(f"more_{number}.npy")
        entry.file_size = 10_000
        return entry

    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("it was read"))
    with pytest.raises(FileFormatError, match="larger than itself"):
        pb.load(path)


@pytest.mark.parametrize("version", [0, -1, 2, True, 1.0, None, "1"])
def test_unknown_versions_are_refused(members, tmp_path, version):
    path = forged(members, tmp_path / "forged.pibls", lambda record: record.update(version=version))
    with pytest.raises(FileFormatError, match="has format version"):
        pb.load(path)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "9" * 5000])
def test_numbers_of_records_are_finite(members, tmp_path, number):
    contents = {
        **members,
        "solution.json": members["solution.json"].replace(b'"weight": 1.0', f'"weight": {number}'.encode()),
    }
    del contents["digest.json"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    path = rewritten(members, tmp_path / "a.pibls", [*contents.items(), ("digest.json", json.dumps(digests))])
    with pytest.raises(FileFormatError, match="damaged"):
        pb.load(path)


def with_array(members, path, name, content):
    contents = {**members, name: content}
    del contents["digest.json"]
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return rewritten(members, path, [*contents.items(), ("digest.json", json.dumps(digests))])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_weights_are_finite(members, tmp_path, bad):
    content = bytearray(members["weights.npy"])
    content[-8:] = np.float64(bad).tobytes()
    with pytest.raises(FileFormatError, match="not finite"):
        pb.load(with_array(members, tmp_path / "a.pibls", "weights.npy", bytes(content)))


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-1,)", "(3, 3, 3)", "(10**12,)"])
def test_arrays_that_lie_about_their_shape_are_not_made(members, tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + members["weights.npy"][128:]
    with pytest.raises(FileFormatError):
        pb.load(with_array(members, tmp_path / "a.pibls", "weights.npy", content))


def test_words_of_a_file_cannot_command_a_terminal(members, tmp_path):
    def change(record):
        record["diagnostics"]["message"] = "fine \x1b[2J\x1b]0;title\x07 \u202egnp.exe"

    found = pb.load(forged(members, tmp_path / "forged.pibls", change))
    assert found.diagnostics.message == "fine \\x1b[2J\\x1b]0;title\\x07 \\u202egnp.exe"
    with pytest.raises(FileFormatError) as caught:
        pb.load(forged(members, tmp_path / "b.pibls", lambda record: record.update(format="\x1b[2J\u202e")))
    assert str(caught.value).isprintable()
    assert str(PiblsError("a\x1b[2J")) == "a\\x1b[2J"
