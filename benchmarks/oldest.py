"""Print the oldest versions that pyproject.toml allows, as requirements for pip.

python -m benchmarks.oldest
"""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["pins"]


def pins(text: str) -> list[str]:
    """Return dependencies and those for files and shapes, each pinned to its lower bound."""
    project = tomllib.loads(text)["project"]
    extras = project["optional-dependencies"]
    wanted = dict.fromkeys([*project["dependencies"], *extras["files"], *extras["shapes"]])
    return [entry.replace(">=", "==") for entry in wanted]


if __name__ == "__main__":
    print(" ".join(pins(Path("pyproject.toml").read_text(encoding="utf-8"))))
