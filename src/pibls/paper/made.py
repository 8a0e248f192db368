"""Where results come from: command, commit, machine and date, which every cell carries."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from pibls.methods.fit import found_device
from pibls.runtime import available_cores

_CPU = Path("/proc/cpuinfo")
_COMMIT = "PIBLS_COMMIT"  # names the commit where the code is a copy without its history


def made(profile: str, only: Sequence[str] | None) -> dict[str, str]:
    """Return command, commit, machine and date of a run that begins now.

    >>> made("quick", ["advection"])["command"]
    'pibls reproduce --profile quick --only advection'
    """
    words = ["pibls", "reproduce", "--profile", profile, *(w for word in only or () for w in ("--only", word))]
    cores = available_cores()
    gpu = f" and one {device_name()}" if found_device() else ""
    machine = f"{cores} {'core' if cores == 1 else 'cores'} of {processor()}{gpu}"
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"command": " ".join(words), "commit": _commit(), "machine": machine, "date": date}


def device_name() -> str:
    """Return the name of the device that networks are trained on."""
    if found_device() is None:
        return "CPU"
    import torch

    return str(torch.cuda.get_device_name())


def processor() -> str:
    """Return the name of the processor."""
    text = _CPU.read_text(encoding="utf-8", errors="replace") if _CPU.exists() else ""
    names = re.findall(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """Return the commit of the code, or nothing where it was installed without its history."""
    if os.environ.get(_COMMIT):
        return os.environ[_COMMIT]
    here = Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "--short", "HEAD"]
    try:
        # Only where this file is part of the repository: an environment may lie inside of another one.
        known = [*command[:3], "ls-files", "--error-unmatch", __file__]
        subprocess.run(known, capture_output=True, check=True)  # noqa: S603
        found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
