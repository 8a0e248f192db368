"""``pibls doctor``: the abilities of the machine, and advice to make it faster."""

from __future__ import annotations

import os
import platform
import time
from typing import Any

from pibls.cli.console import Debug, Json, emit, emit_json, told

_PACKAGES = ("pibls", "numpy", "scipy", "sympy", "array-api-compat", "threadpoolctl", "matplotlib", "rich", "typer")
_OPTIONAL = ("torch",)
_SIZE, _REPEATS = 1200, 3
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "BLIS_NUM_THREADS")
# Below this, NumPy was built without an optimised BLAS, or something else uses the core.
_SLOW = 4.0
_LITTLE_MEMORY = 2 * 2**30
_BUSY = 1.25


def doctor(as_json: Json = False, debug: Debug = False) -> None:
    """Describe the machine that pibls runs on: versions, cores, memory, GPU and speed, with advice."""
    with told(debug, as_json="doctor" if as_json else ""):
        found = examination()
        if as_json:
            emit_json("doctor", found)
            return
        for name, value in _lines(found).items():
            emit(f"{name:<16} {value}")
        emit()
        for sentence in found["advice"]:
            emit(f"- {sentence}")


def examination() -> dict[str, Any]:
    """Return the facts about the machine, with advice."""
    from pibls.runtime import available_cores, available_memory, free_cores

    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: _version(name) for name in (*_PACKAGES, *_OPTIONAL)},
        "cores": {"machine": os.cpu_count(), "available": available_cores(), "free": free_cores()},
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "memory_bytes": available_memory(),
        "thread_variables": {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        "gpu": _gpu(),
    }
    facts |= _matrix_product()
    return facts | {"advice": advice(facts)}


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _gpu() -> list[str]:
    """Return the names of the GPUs that torch can use; none without torch."""
    try:
        import torch
    except (ImportError, OSError):  # a torch that lacks a library of the system
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def _matrix_product() -> dict[str, Any]:
    """Return the BLAS libraries and how fast they multiply, in 10⁹ operations a second in double precision."""
    import numpy as np
    from threadpoolctl import threadpool_info

    A = np.random.default_rng(0).standard_normal((_SIZE, _SIZE))
    seconds = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        A @ A
        seconds.append(time.perf_counter() - begun)
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "blas": [{name: pool.get(name) for name in ("internal_api", "version", "num_threads")} for pool in pools],
        "gflops": 2 * _SIZE**3 / min(seconds) / 1e9,
    }


def advice(facts: dict[str, Any]) -> list[str]:
    """Return advice about the machine, in sentences.

    >>> machine = {"cores": {"machine": 4, "available": 4}, "load": 0.2, "memory_bytes": 2**34, "gpu": []}
    >>> advice(machine | {"blas": [{"num_threads": 4}], "gflops": 100.0, "thread_variables": {}, "versions": {}})
    ['torch is not installed; it is needed only for a GPU and for the PINN: pip install torch.']
    """
    said = []
    cores, threads = facts["cores"]["available"], max((pool["num_threads"] or 1 for pool in facts["blas"]), default=1)
    if threads < cores:
        names = ", ".join(f"{name}={value}" for name, value in facts["thread_variables"].items())
        cause = f" because of {names}; unset it" if names else "; set OPENBLAS_NUM_THREADS"
        said.append(f"BLAS uses {threads} of {cores} cores{cause} to solve large problems faster.")
    if facts["load"] is not None and facts["load"] > _BUSY * (facts["cores"]["machine"] or 1):
        said.append(f"Other programs keep the machine busy (load {facts['load']:.1f}); everything takes longer now.")
    if facts["gflops"] < _SLOW:
        said.append(
            f"The matrix product is slow ({facts['gflops']:.1f} GFLOP/s): use a NumPy with OpenBLAS or MKL, or wait "
            "until the machine is idle."
        )
    if facts["memory_bytes"] < _LITTLE_MEMORY:
        said.append("There is little free memory; large problems will stop early and say so.")
    if facts["gpu"]:
        said.append('Large problems may run on the GPU: pibls solve --device cuda, or solve(..., device="cuda").')
    elif facts["versions"].get("torch") is None:
        said.append("torch is not installed; it is needed only for a GPU and for the PINN: pip install torch.")
    return said or ["Nothing to improve."]


def _lines(facts: dict[str, Any]) -> dict[str, str]:
    from pibls.runtime import format_bytes

    cores = facts["cores"]
    pools = [f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in facts["blas"]]
    variables = [f"{name}={value}" for name, value in facts["thread_variables"].items()]
    return {
        "Python": facts["python"],
        **{name: found or "not installed" for name, found in facts["versions"].items()},
        "system": facts["system"],
        "cores": f"{cores['available']} available of {cores['machine']}, {cores['free']} free",
        "BLAS": "; ".join(pools) or "unknown",
        **({"set": ", ".join(variables)} if variables else {}),
        "memory": f"{format_bytes(facts['memory_bytes'])} available",
        "GPU": ", ".join(facts["gpu"]) or "none",
        "matrix product": f"{facts['gflops']:.1f} GFLOP/s in double precision",
    }
