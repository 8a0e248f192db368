"""A small problem file, and how to call the command line on it."""

from __future__ import annotations

import json
import re

from typer.testing import CliRunner

from pibls.cli import app

COSINE = """title = "Cosine"
equations = ["u_xx = -u"]
[domain]
shape = "interval"
x = [0, 1]
[[conditions]]
kind = "dirichlet"
value = "cos(x)"
[exact]
u = "cos(x)"
"""

runner = CliRunner()


def call(*words, code=0, **options):
    """Run a command; return what it printed, after checking its exit code and that it shows no traceback."""
    result = runner.invoke(app, [str(word) for word in words], **options)
    assert result.exit_code == code, (result.exit_code, result.output)
    assert "Traceback" not in result.output
    return result


def call_json(*words, code=0, **options):
    """Run a command with --json; return the one object that it printed."""
    result = call(*words, "--json", code=code, **options)
    assert result.stdout.count("\n") == 1
    record = json.loads(result.stdout)
    assert (record["schema"], record["command"]) == (1, str(words[0]))
    return record


def plain(text):
    """Return a text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
