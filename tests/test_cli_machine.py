"""pibls doctor and pibls bench."""

from __future__ import annotations

import csv
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import pibls as pb
from cli_helpers import call, call_json
from internals import EXTRAS, advice, bench, zoo
from pibls.runtime import available_cores

HEALTHY = {
    "cores": {"machine": 4, "available": 4},
    "load": 0.1,
    "memory_bytes": 2**34,
    "gpu": [],
    "blas": [{"num_threads": 4}],
    "gflops": 50.0,
    "thread_variables": {},
    "versions": {"torch": "2"},
}
SMALL = {"seconds": 0.02, "nodes": 100, "share": 0.1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "Nothing to improve."),
        ({"blas": [{"num_threads": 1}]}, "BLAS uses 1 of 4 cores; set OPENBLAS_NUM_THREADS to"),
        (
            {"blas": [{"num_threads": 2}], "thread_variables": {"OMP_NUM_THREADS": "2"}},
            "BLAS uses 2 of 4 cores because of OMP_NUM_THREADS=2; unset it to",
        ),
        ({"load": 9.0}, "busy (load 9.0)"),
        ({"gflops": 1.0}, "slow (1.0 GFLOP/s)"),
        ({"memory_bytes": 2**20}, "little free memory"),
        ({"gpu": ["H200"]}, "--device cuda"),
        ({"versions": {"torch": None}}, "torch is not installed"),
    ],
)
def test_advice(change, words):
    (sentence,) = advice(HEALTHY | change)
    assert words in sentence


def test_doctor_as_json():
    record = call_json("doctor")
    assert record["versions"]["pibls"] == pb.__version__
    assert record["cores"]["available"] == available_cores()
    assert record["gflops"] > 0.1
    assert record["memory_bytes"] > 0
    assert record["advice"]
    assert set(record["blas"][0]) == {"internal_api", "version", "num_threads"}
    assert record["cores"]["quota"] is None or record["cores"]["quota"] > 0
    assert 0 < record["solve"]["share"] < 10
    assert record["solve"]["seconds"] > 0
    assert set(record["uses"]) == {"solve", "sweep", "cluster"}


def test_extras_of_the_doctor_are_those_of_the_package():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    wanted = {
        name: {re.match(r"[\w-]+", requirement)[0] for requirement in own}
        for name, own in project["optional-dependencies"].items()
        if name not in ("dev", "docs")
    }
    assert {name: set(packages) for name, packages in EXTRAS.items()} == wanted


def test_devices_are_told_with_memory_and_speed_or_refused_in_words(monkeypatch):
    class Device:
        def __init__(self, double):
            self.double = double

        def is_available(self):
            return True

    def ones(shape, dtype, device):
        if device == "mps":
            raise TypeError("no double precision")
        return np.ones(shape)

    cuda = SimpleNamespace(
        device_count=lambda: 1,
        get_device_properties=lambda number: SimpleNamespace(name="H200", total_memory=2**37),
        synchronize=lambda number: None,
    )
    backends = SimpleNamespace(mps=Device(False))
    torch = SimpleNamespace(cuda=cuda, backends=backends, xpu=Device(True), ones=ones, float64=float)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr("pibls.cli.doctor._small_solve", lambda gflops: SMALL)  # which would use that torch
    monkeypatch.setattr("pibls.cli.doctor._ON_GPU", 8)
    text = call("doctor").stdout
    assert re.search(r"GPU +H200, 128 GiB, \d+ GFLOP/s in double precision; mps: solves need double precision", text)
    assert "xpu" not in text
    assert 'device="auto": H200' in text


def test_doctor_in_words_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("pibls.cli.doctor._small_solve", lambda gflops: SMALL)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    text = call("doctor").stdout
    for words in ("numpy ", "cores ", "BLAS ", "memory ", "GPU              none", "GFLOP/s", "OMP_NUM_THREADS=1"):
        assert words in text
    for words in ("small solve ", "sweep ", "cluster ", "of the matrix product"):
        assert words in text
    for extra in EXTRAS:
        assert re.search(
            rf"^ *{extra} .* (installed|missing: pip install 'pibls\[{extra}\]')$", text, flags=re.MULTILINE
        )
    assert "\n- " in text


def test_bench_over_seeds(tmp_path):
    path = tmp_path / "bench.csv"
    result = call("bench", "advection", "zoo:ode_one_condition", "--seeds", 2, "--tol", "1e-3", "--csv", path)
    assert "2 of 4 runs converged" in result.stdout
    assert result.stderr.count("\n") == 4
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["problem"], row["seed"], row["status"]) for row in rows] == [
        ("advection", "0", "converged"),
        ("advection", "1", "converged"),
        ("ode_one_condition", "0", "ill-posed"),
        ("ode_one_condition", "1", "ill-posed"),
    ]
    solution = pb.solve(pb.problems.advection(), tol=1e-3, seed=1)
    assert float(rows[1]["error_estimate"]) == solution.error_estimate
    assert float(rows[1]["true_error"]) == solution.true_error()
    assert rows[2]["true_error"] == ""


def test_bench_as_json_and_its_default(monkeypatch):
    assert len(bench.DEFAULT) == 12
    assert set(bench.DEFAULT) <= set(zoo())
    monkeypatch.setattr(bench, "DEFAULT", ("advection",))
    (run,) = call_json("bench")["runs"]
    assert (run["problem"], run["status"]) == ("advection", "converged")


def test_bench_refuses_before_it_runs(tmp_path):
    assert "Did you mean 'wave'?" in call("bench", "advection", "wawe", code=2).stderr
    assert "there is no folder" in call("bench", "--csv", tmp_path / "no" / "a.csv", code=2).stderr
    call("bench", "advection", "--seeds", 0, code=2)
