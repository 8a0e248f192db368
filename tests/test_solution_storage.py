"""Saved solutions: the same bits in another process, and nothing but a clear refusal from anything else."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pibls as pb
from internals import FORMAT, VERSION
from pibls.errors import FileFormatError, GeometryError, ProblemError
from pibls.geometry import Points
from pibls.problem import Interior
from pibls.solution import save

METHOD = pb.PIBLS(feature_groups=2, feature_nodes=8, enhancement_nodes=4, activation=["sin", "tanh"], scale=2.0)
ZOO = [
    *(
        "advection",
        "annulus",
        "l_shape_smooth",
        "poisson_star",
        "polygon",
        "robin_disk",
        "poisson_ball",
        "neumann_gauge",
    ),
    *("klein_gordon", "periodic_advection", "schroedinger", "stokes", "elasticity", "damped_oscillator", "heat_robin"),
]


def everything():
    """A problem with every kind of place and condition that a file can hold."""
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, sp.Rational(3, 2)))
    k = pb.data("k", lambda a, b: 1 + a * b, x, y)
    conditions = [
        pb.Dirichlet(u, sp.Piecewise((x, x < 0.5), (1 - x, True)), on=square.left | square.top, weight=2.5),
        pb.Neumann(u, 0.1, on=square.bottom, exact=True),
        pb.Condition(sp.Eq(u.diff(x) + pb.normal(x) * u, 1), on=square.right),
        pb.Condition(sp.Eq(u, 2), on=[[0.25, 0.25], [0.5, 0.5]]),
        pb.Condition(sp.Eq(u.diff(y), 2), on=(0.75, 0.75)),
        pb.Periodic(u, x, derivatives=1, weight=0.5),
        pb.Mean(u * y, 0.3),
        pb.Observation(u, [[0.1, 0.1], [0.9, 0.9]], [1.0, 2.0], noise=[0.5, 0.25]),
        pb.Observation(u.diff(x), [[0.3, 0.1]], [1.0]),
    ]
    return pb.Problem(
        sp.Eq(k * pb.laplacian(u) + pb.div(x * pb.grad(u)), sp.exp(-x) / sp.sqrt(1 + y**2)),
        square,
        conditions,
        exact=x * y,
    )


def cloud():
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    disk = pb.Disk((x, y), (0, 0), 1)
    edge, normals = disk.boundary.sample(20)
    points = pb.PointCloud((x, y), disk.sample(50), boundary=edge, normals=normals, parts={"up": edge[:, 1] > 0})
    return pb.Problem(sp.Eq(pb.laplacian(u), 1), points, [pb.Dirichlet(u, 0), pb.Neumann(u, 1, on=points.up)])


def fitted(problem):
    return METHOD.fit(problem, Points.sample(problem, interior=40))


CASES = {name: pb.problems.catalogue()[name] for name in ZOO} | {"everything": everything, "cloud": cloud}
VALUES = """
import sys, numpy as np, pibls as pb
for path in sys.argv[1:]:
    solution = pb.load(path)
    X = np.load(path + ".points.npy")
    rest = (0,) * (X.shape[1] - 1)
    values = solution.evaluate(X, [(n, (k, *rest)) for n in solution.problem.field_names for k in (0, 1)])
    np.save(path + ".values.npy", values)
    with open(path + ".txt", "w") as file:
        file.write(str(solution.problem))
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Every case, saved here and evaluated by another process."""
    folder = tmp_path_factory.mktemp("saved")
    solutions, paths = {}, []
    for name, make in CASES.items():
        solutions[name] = fitted(make())
        paths.append(str(solutions[name].save(folder / name)))
        np.save(f"{paths[-1]}.points.npy", solutions[name].problem.domain.sample(30, "uniform", 5))
    done = subprocess.run([sys.executable, "-c", VALUES, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder, solutions


@pytest.mark.parametrize("name", CASES)
def test_another_process_computes_the_same_bits(stored, name):
    folder, solutions = stored
    solution = solutions[name]
    X = np.load(folder / f"{name}.points.npy")
    rest = (0,) * (X.shape[1] - 1)
    here = solution.evaluate(X, [(n, (k, *rest)) for n in solution.problem.field_names for k in (0, 1)])
    assert (np.load(folder / f"{name}.values.npy") == np.array(here)).all()
    assert (folder / f"{name}.txt").read_text() == str(solution.problem)


@pytest.mark.parametrize("name", [n for n in CASES if n != "everything"])
def test_the_problem_comes_back_whole(stored, name):
    folder, solutions = stored
    old, new = solutions[name], pb.load(folder / name)
    assert str(new.problem) == str(old.problem)
    assert new.problem.domain == old.problem.domain
    assert new.problem.exact == old.problem.exact
    assert [s.name for s in new.problem.statements] == [s.name for s in old.problem.statements]
    assert [s.form.expression for s in new.problem.statements] == [s.form.expression for s in old.problem.statements]
    assert new.diagnostics == old.diagnostics
    assert (new.status, new.error_estimate) == (old.status, old.error_estimate)
    for one, two in zip(old.problem.conditions, new.problem.conditions, strict=True):
        np.testing.assert_array_equal(new.residual(two).values(20), old.residual(one).values(20))
    again = fitted(new.problem)
    assert (again.weights == old.weights).all()


def test_data_functions_are_given_anew(stored):
    folder, solutions = stored
    old = solutions["everything"]
    X = old.problem.domain.sample(20)
    bare = pb.load(folder / "everything")
    assert (bare(X) == old(X)).all()
    with pytest.raises(ProblemError, match=r"load with data=\{'k': function\}"):
        bare.residual()(X)
    bound = pb.load(folder / "everything", data={"k": lambda a, b: 1 + a * b})
    np.testing.assert_array_equal(bound.residual()(X), old.residual()(X))
    for one, two in zip(old.problem.conditions, bound.problem.conditions, strict=True):
        assert (one.weight, one.exact, repr(one)) == (two.weight, two.exact, repr(two))
        np.testing.assert_array_equal(bound.residual(two).values(30), old.residual(one).values(30))
    assert (fitted(bound.problem).weights == old.weights).all()
    assert [s.place == Interior() for s in bound.problem.statements].count(True) == 1


def test_predicates_are_not_stored_and_say_so(tmp_path):
    x, y = pb.coordinates("x y")
    u = pb.field("u", x, y)
    square = pb.Rectangle((x, 0, 1), (y, 0, 1))

    def upper(X):
        return X[:, 1] > 0.5

    conditions = [
        pb.Dirichlet(u, 1, on=square.left.where(upper)),
        pb.Dirichlet(u, 2, on=square.boundary.where(lambda X: X[:, 0] > 0.5)),
    ]
    solution = fitted(pb.Problem(sp.Eq(pb.laplacian(u), 0), square, conditions))
    again = pb.load(solution.save(tmp_path / "a"))
    X = square.sample(10)
    assert (again(X) == solution(X)).all()
    assert str(again.problem) == str(solution.problem)
    with pytest.raises(GeometryError, match=r"predicate of left\.where\(upper\) was a Python function"):
        again.residual(again.problem.conditions[0]).values()
    twice = pb.load(again.save(tmp_path / "b"))
    assert (twice(X) == solution(X)).all()


def test_infinities_survive_in_strict_json(tmp_path):
    solution = fitted(pb.problems.advection())
    diagnostics = replace(solution.diagnostics, condition=float("inf"), seconds={"solve": float("nan")})
    path = replace(solution, error_estimate=float("inf"), diagnostics=diagnostics).save(tmp_path / "a.pibls")
    with zipfile.ZipFile(path) as archive:
        for name in ("solution.json", "digest.json"):
            json.loads(archive.read(name), parse_constant=lambda word: pytest.fail(word))
        assert all(i.compress_type == zipfile.ZIP_STORED for i in archive.infolist())
    again = pb.load(path)
    assert again.error_estimate == float("inf")
    assert again.diagnostics.condition == float("inf")
    assert np.isnan(again.diagnostics.seconds["solve"])


# Damage and forgery


@pytest.fixture(scope="module")
def small():
    return fitted(pb.problems.advection())


@pytest.fixture(scope="module")
def raw(small, tmp_path_factory):
    return small.save(tmp_path_factory.mktemp("raw") / "a.pibls").read_bytes()


def refused(path, content, words="is|was|cannot|lacks"):
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=words) as caught:
        pb.load(path)
    assert len(str(caught.value)) < 600


def test_truncated_anywhere(raw, tmp_path):
    lengths = {0, 1, 3, 4, 21, 22, len(raw) - 1, len(raw) - 22, *np.linspace(2, len(raw) - 2, 80).astype(int).tolist()}
    for length in sorted(lengths):
        refused(tmp_path / "cut", raw[:length])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), tail=st.booleans())
def test_a_changed_byte_is_refused_or_harmless(raw, small, tmp_path, position, mask, tail):
    # The directory at the end of the file is a few percent of it, and the most delicate.
    start = raw.rindex(b"digest.json") - 60 * len(zipfile.ZipFile(io.BytesIO(raw)).infolist()) if tail else 0
    damaged = bytearray(raw)
    damaged[start + int(position * (len(raw) - start))] ^= mask
    path = tmp_path / "changed"
    path.write_bytes(damaged)
    try:
        again = pb.load(path)
    except FileFormatError:
        return
    # Only what the format does not use, such as the date of a member, may change.
    assert (again.weights == small.weights).all()
    assert str(again.problem) == str(small.problem)
    assert again.diagnostics == small.diagnostics


def members_of(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {i.filename: archive.read(i) for i in archive.infolist()}


def packed(members, *, sign=True, compression=zipfile.ZIP_STORED):
    if sign:
        digests = {n: hashlib.sha256(c).hexdigest() for n, c in members.items() if n != "digest.json"}
        members = members | {"digest.json": json.dumps(digests).encode()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def edited(raw, change):
    """A forged file: the record changed, and its checksum made to fit."""
    members = members_of(raw)
    record = json.loads(members["solution.json"])
    change(record)
    return packed(members | {"solution.json": json.dumps(record).encode()})


def test_a_repacked_file_is_the_same_file(raw, small, tmp_path):
    path = tmp_path / "same"
    path.write_bytes(edited(raw, lambda record: None))
    assert (pb.load(path).weights == small.weights).all()


def test_an_edited_member_is_noticed(raw, tmp_path):
    members = members_of(raw)
    text = members["solution.json"].replace(b'"fitted"', b'"exact!"')
    refused(tmp_path / "a", packed(members | {"solution.json": text}, sign=False), r"changed after.*solution\.json")
    refused(tmp_path / "a", packed({k: v for k, v in members.items() if k != "weights.npy"}, sign=False), "weights")
    refused(tmp_path / "a", packed(members | {"extra.npy": b"1"}, sign=False), r"changed after.*extra\.npy")
    refused(tmp_path / "a", packed({k: v for k, v in members.items() if k != "digest.json"}, sign=False), "lacks")
    refused(tmp_path / "a", packed(members | {"digest.json": b"[]"}, sign=False), "not an object")
    refused(tmp_path / "a", packed(members | {"digest.json": b"{"}, sign=False), "no JSON")
    refused(tmp_path / "a", packed(members, compression=zipfile.ZIP_DEFLATED), "compressed members")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.update(version=VERSION + 1), rf"format version {VERSION + 1}.*update pibls"),
        (lambda r: r.update(version="1"), "format version"),
        (lambda r: r.update(format="pickle"), "its format is 'pickle'"),
        (lambda r: r.pop("format"), "its format is None"),
        (lambda r: r.pop("problem"), "problem"),
        (lambda r: r.update(problem=[]), "not a valid"),
        (
            lambda r: r["problem"].update(equations=[["system", "rm -rf /"]]),
            "'system', which this version does not know",
        ),
        (lambda r: r["problem"].update(equations=[]), "not a valid"),
        (lambda r: r["problem"].update(coordinates=["z"]), "not a valid"),
        (lambda r: r["problem"].update(domain={"shape": "Domain"}), "not a valid"),
        (lambda r: r["problem"].update(domain=None), "not a valid"),
        (lambda r: r["problem"]["conditions"][0].update(weight=-1), "weight"),
        (lambda r: r["problem"]["conditions"][0].update(on={"points": "nowhere"}), "nowhere"),
        (lambda r: r["problem"]["conditions"][0]["on"].update(part="ceiling"), "'ceiling' is not a part"),
        (lambda r: r["problem"]["conditions"][0].update(kind="Observation"), "lacks the points"),
        (lambda r: r["network"].update(features=["__import__"]), "not a valid"),
        (lambda r: r["network"].update(features=["sin"]), "not a valid|do not belong"),
        (lambda r: r["network"].update(enhancement=[]), "do not belong together"),
        (lambda r: r.update(diagnostics={}), "not a valid"),
        (lambda r: r["diagnostics"].update(residuals={"a": {"evil": 1}}), "not a valid"),
        (lambda r: r["diagnostics"].update(condition={"float": "a lot"}), "not a valid"),
    ],
)
def test_a_forged_record_is_refused(raw, tmp_path, change, words):
    refused(tmp_path / "forged", edited(raw, change), words)


@pytest.mark.parametrize(
    "text", [b"[1]", b'"pibls"', b"null", b"{]", b'{"version": NaN}', b"[" * 100_000, b"\xff\xfe", b""]
)
def test_a_record_that_is_no_object_of_json(raw, tmp_path, text):
    refused(tmp_path / "forged", packed(members_of(raw) | {"solution.json": text}), "damaged")


class Bomb:
    def __reduce__(self):
        return os.mkdir, (str(Bomb.target),)


@pytest.mark.parametrize("as_member", [True, False])
def test_pickles_are_never_opened(raw, tmp_path, as_member):
    Bomb.target = tmp_path / "exploded"
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    content = buffer.getvalue() if as_member else pickle.dumps(Bomb())
    refused(tmp_path / "bomb", packed(members_of(raw) | {"weights.npy": content}), "not a valid|type")
    refused(tmp_path / "bomb", content)
    assert not Bomb.target.exists()


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        npy(np.zeros((1, 3), dtype=np.float32)),
        npy(np.zeros((1, 3))),
        npy(np.zeros((2, 20))),
        npy(np.array("x")),
        b"",
        b"\x93NUMPY\x01\x00",
        npy(np.zeros((1, 20))).replace(b"(1, 20)", b"(1, 10**9)"),
        npy(np.zeros((1, 20))).replace(b"(1, 20), }      ", b"(9999999999999,)}"),
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000, 20), }"
        + b" " * 40,
    ],
)
def test_arrays_that_do_not_fit(raw, tmp_path, content):
    refused(tmp_path / "forged", packed(members_of(raw) | {"weights.npy": content}))


def test_not_a_file_of_ours(tmp_path):
    with pytest.raises(FileFormatError, match="There is no file"):
        pb.load(tmp_path / "nowhere.pibls")
    with pytest.raises(FileFormatError, match="cannot be read"):
        pb.load(tmp_path)
    for bad in (None, 3, b"name"):
        with pytest.raises(FileFormatError, match="A file name is needed"):
            pb.load(bad)
    refused(tmp_path / "text", b"u = 0", "damaged or is not a pibls file")
    refused(tmp_path / "empty", b"", "damaged or is not a pibls file")
    refused(tmp_path / "zip", packed({"a": b"b"}, sign=False), "lacks")


# Writing


def test_a_failed_write_leaves_the_old_file_and_no_other(small, tmp_path, monkeypatch):
    path = small.save(tmp_path / "run.pibls")
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    for target in ("os.fsync", "zipfile.ZipFile.writestr", "pathlib.Path.replace"):
        with monkeypatch.context() as patch:
            patch.setattr(target, full)
            with pytest.raises(FileFormatError, match=r"run\.pibls cannot be written: No space left"):
                replace(small, status="stalled").save(path)
        assert path.read_bytes() == before
        assert list(tmp_path.iterdir()) == [path]
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            replace(small, status="stalled").save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_replaces_as_a_whole_and_is_reproducible(small, tmp_path):
    path = tmp_path / "run.pibls"
    path.write_bytes(b"something else")
    assert small.save(str(path)) == path
    first = path.read_bytes()
    assert save(small, path) == path
    assert path.read_bytes() == first
    assert (pb.load(str(path)).weights == small.weights).all()


def test_places_that_cannot_be_written(small, tmp_path):
    with pytest.raises(FileFormatError, match=r"cannot be written.*folder that exists"):
        small.save(tmp_path / "no" / "such" / "folder.pibls")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileFormatError, match="cannot be written"):
        small.save(tmp_path / "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "folder"]
    with pytest.raises(FileFormatError, match="A file name is needed"):
        small.save(None)


def test_what_cannot_be_stored_is_refused_before_the_file_is_touched(tmp_path):
    x = pb.coordinates("x")
    u = pb.field("u", x)
    problem = pb.Problem(sp.Eq(u.diff(x), sp.fresnels(x)), pb.Interval((x, 0, 1)), [pb.Dirichlet(u, 0, on=[0.0])])
    solution = fitted(problem)
    with pytest.raises(FileFormatError, match=r"'fresnels'.*wrap it as pibls\.data"):
        solution.save(tmp_path / "a")
    assert not list(tmp_path.iterdir())
    assert FORMAT == "pibls-solution"


def test_records_with_very_many_statements_or_lists_are_refused_before_they_are_made(raw, tmp_path):
    def longer(key):
        return edited(raw, lambda record: record["problem"].update({key: record["problem"][key] * 5000}))

    started = time.process_time()
    refused(tmp_path / "a.pibls", longer("equations"), "written out")
    refused(tmp_path / "a.pibls", longer("conditions"), "written out")
    refused(
        tmp_path / "a.pibls", edited(raw, lambda record: record.update(more=[[]] * 1_000_000)), "over 2000000 entries"
    )
    assert time.process_time() - started < 10


def test_what_a_forged_record_says_can_be_printed(raw, tmp_path):
    def change(record):
        (one, *_) = record["problem"]["conditions"]
        one |= {
            "kind": "Dir\x1b[31m",
            "on": {"domain": record["problem"]["domain"], "part": "left.where(\x1b]0;a\x07)"},
        }

    path = tmp_path / "a.pibls"
    path.write_bytes(edited(raw, change))
    problem = pb.load(path).problem
    assert f"{problem}{problem.conditions}".replace("\n", "").isprintable()
    assert "\\x1b" in str(problem)


def test_records_that_tell_of_very_much_or_have_very_many_shapes_are_refused(raw, tmp_path):
    def disks(count, first=0):
        if count == 1:
            return {"shape": "Disk", "coordinates": ["x", "y"], "center": [first % 40, first // 40], "radius": 0.7}
        halves = {"first": disks(count // 2, first), "second": disks(count - count // 2, first + count // 2)}
        return {"shape": "Combination", "coordinates": ["x", "y"], "operation": "union"} | halves

    entry = {"rms": 1, "max": 1, "rows": 1}
    many = {f"a{k}": entry for k in range(100_000)}
    began = time.process_time()
    refused(tmp_path / "a", edited(raw, lambda r: r["diagnostics"].update(residuals=many)), "more than 10000")
    refused(tmp_path / "a", edited(raw, lambda r: r["problem"].update(domain=disks(500))), "combines 499 shapes")
    assert time.process_time() - began < 5
