"""``pibls doctor``: the abilities of the machine, and advice to make it faster."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from typing import Any

from pibls.cli.console import Debug, Json, emit, emit_json, emit_table, told

_PACKAGES = ("pibls", "numpy", "scipy", "sympy", "array-api-compat", "threadpoolctl", "matplotlib", "rich", "typer")
EXTRAS = {
    "torch": ("torch",),
    "dask": ("dask", "distributed"),
    "files": ("meshio", "pandas", "pillow", "xarray"),
    "studio": ("latex2mathml", "nicegui", "pillow"),
    "shapes": ("meshio", "shapely", "trimesh"),
}
"""Packages of every extra."""
_PURPOSES = {
    "torch": "GPUs, the PINN",
    "dask": "clusters",
    "files": "tables, netCDF, films",
    "studio": "the page in the browser",
    "shapes": "shapes from files",
}
_SIZE, _ON_GPU, _REPEATS = 1200, 4096, 3
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
        emit_table(
            ["extra", "for", "state"],
            [[name, _PURPOSES[name], _state(name, own)] for name, own in found["extras"].items()],
        )
        emit()
        for sentence in found["advice"]:
            emit(f"- {sentence}")


def examination() -> dict[str, Any]:
    """Return the facts about the machine, with advice."""
    from pibls.runtime import available_cores, available_memory, core_quota, free_cores

    facts: dict[str, Any] = {
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: _version(name) for name in (*_PACKAGES, "torch")},
        "extras": {name: {own: _version(own) for own in packages} for name, packages in EXTRAS.items()},
        "cores": {
            "machine": os.cpu_count(),
            "available": available_cores(),
            "free": free_cores(),
            "quota": core_quota(),
        },
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "memory_bytes": available_memory(),
        "thread_variables": {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ},
        **_devices(),
    }
    facts |= _matrix_product()
    facts |= {"uses": uses(facts), "solve": _small_solve(facts["gflops"])}
    return facts | {"advice": advice(facts)}


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _devices() -> dict[str, Any]:
    """Return the GPUs that torch can use, with memory and speed, and devices that it has but solves cannot use."""
    try:
        import torch
    except (ImportError, OSError):  # a torch that lacks a library of the system
        return {"gpu": [], "gpus": [], "refused": []}
    found = []
    for number in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(number)
        found.append({"name": facts.name, "memory_bytes": facts.total_memory, "gflops": _gpu_product(torch, number)})
    others = {"mps": getattr(torch.backends, "mps", None), "xpu": getattr(torch, "xpu", None)}
    refused = [
        f"{name}: solves need double precision, which it lacks; use the processor."
        for name, own in others.items()
        if own is not None and own.is_available() and not _is_double(torch, name)
    ]
    return {"gpu": [own["name"] for own in found], "gpus": found, "refused": refused}


def _is_double(torch: Any, device: str) -> bool:
    """Return whether a device computes in double precision."""
    try:
        torch.ones(1, dtype=torch.float64, device=device)
    except (RuntimeError, TypeError):
        return False
    return True


def _gpu_product(torch: Any, number: int) -> float:
    """Return how fast a GPU multiplies in double precision, in 10⁹ operations a second."""
    A = torch.ones((_ON_GPU, _ON_GPU), dtype=torch.float64, device=f"cuda:{number}")
    torch.cuda.synchronize(number)
    return 2 * _ON_GPU**3 / _fastest(lambda: (A @ A, torch.cuda.synchronize(number)))[0] / 1e9


def _fastest(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least of the seconds that some work takes, and its result."""
    seconds = []
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        found = work()
        seconds.append(time.perf_counter() - begun)
    return min(seconds), found


def uses(facts: dict[str, Any]) -> dict[str, str]:
    """Return in words the resources that a solve, a sweep and a cluster would use.

    >>> machine = {"cores": {"available": 4, "free": 4}, "gpus": [], "extras": {"dask": {"dask": None}}}
    >>> uses(machine)["sweep"]
    '4 processes, one thread each'
    """
    cores = facts["cores"]
    threads = f"NumPy; cells on one thread, wide networks on {cores['free']}"
    gpu = f' (device="auto": {facts["gpus"][0]["name"]})' if facts["gpus"] else ""
    dask = all(facts["extras"]["dask"].values())
    return {
        "solve": threads + gpu,
        "sweep": "this process" if cores["available"] == 1 else f"{cores['available']} processes, one thread each",
        "cluster": "solve(..., cluster=Client(...)), sweep(..., executor=Client(...))"
        if dask
        else "none: Dask is missing",
    }


def _small_solve(gflops: float) -> dict[str, float]:
    """Return the seconds of a small solve, and its counted operations as a share of the matrix product."""
    from pibls.problems import poisson_gaussian
    from pibls.tuning import solve

    seconds, solution = _fastest(lambda: solve(poisson_gaussian(), progress=False))
    share = solution.diagnostics.operations / seconds / (1e9 * gflops)
    return {"seconds": seconds, "nodes": solution.diagnostics.nodes, "share": share}


def _matrix_product() -> dict[str, Any]:
    """Return the BLAS libraries and how fast they multiply, in 10⁹ operations a second in double precision."""
    import numpy as np
    from threadpoolctl import threadpool_info

    A = np.random.default_rng(0).standard_normal((_SIZE, _SIZE))
    seconds, _ = _fastest(lambda: A @ A)
    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    return {
        "blas": [{name: pool.get(name) for name in ("internal_api", "version", "num_threads")} for pool in pools],
        "gflops": 2 * _SIZE**3 / seconds / 1e9,
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


def _state(name: str, packages: dict[str, str | None]) -> str:
    """Return whether an extra is installed, or how to install it."""
    missing = [own for own, version in packages.items() if version is None]
    return f"{', '.join(missing)} missing: pip install 'pibls[{name}]'" if missing else "installed"


def _lines(facts: dict[str, Any]) -> dict[str, str]:
    from pibls.runtime import format_bytes

    cores, small = facts["cores"], facts["solve"]
    quota = "" if cores["quota"] is None else f" (the container may use {cores['quota']:g})"
    gpus = [
        f"{own['name']}, {format_bytes(own['memory_bytes'])}, {own['gflops']:.0f} GFLOP/s in double precision"
        for own in facts["gpus"]
    ]
    pools = [f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads" for pool in facts["blas"]]
    variables = [f"{name}={value}" for name, value in facts["thread_variables"].items()]
    return {
        "Python": facts["python"],
        **{name: found or "not installed" for name, found in facts["versions"].items()},
        "system": facts["system"],
        "cores": f"{cores['available']} available of {cores['machine']}{quota}, {cores['free']} free",
        "BLAS": "; ".join(pools) or "unknown",
        **({"set": ", ".join(variables)} if variables else {}),
        "memory": f"{format_bytes(facts['memory_bytes'])} available",
        "GPU": "; ".join([*gpus, *facts["refused"]]) or "none",
        "matrix product": f"{facts['gflops']:.1f} GFLOP/s in double precision",
        "small solve": f"{1e3 * small['seconds']:.0f} ms, {small['share']:.0%} of the matrix product",
        **facts["uses"],
    }
