"""The documentation: its code runs, its files solve, its gallery is in step, and the site builds without a network."""

import contextlib
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import typer
from typer.testing import CliRunner

import pibls as pb
from pibls.cli import app
from pibls.text import read_file

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md") if "gallery" not in path.relative_to(DOCS).parts
)
FENCE = re.compile(r"^```(python|toml|sh|text)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SOME = {
    "equations": 'equations = "laplacian(u) = 0"\n',
    "domain": '\n[domain]\nshape = "rectangle"\nx = [0, 1]\ny = [0, 1]\n',
}


ROUND_OFF = 1e-13
POWER = re.compile(r"\d(?:\.\d+)?e[-+]\d+")


def check_said(printed, body, page):
    """Compare texts but for spaces at line ends; numbers in powers of ten, not the same on every machine, by size."""
    texts = ["\n".join(line.rstrip() for line in text.strip().splitlines()) for text in (printed, body)]
    assert POWER.sub("#", texts[0]) == POWER.sub("#", texts[1]), page
    for now, then in zip(*(map(float, POWER.findall(text)) for text in texts), strict=True):
        assert 0.1 <= max(now, ROUND_OFF) / max(then, ROUND_OFF) <= 10, (page, now, then)


@pytest.mark.parametrize("page", PAGES)
def test_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, printed, end = {"__name__": "page"}, None, 0
    text = (DOCS / page).read_text(encoding="utf-8")
    for block in FENCE.finditer(text):
        kind, body = block.groups()
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, page, "exec"), names)
            printed = out.getvalue()
        elif kind == "text" and printed is not None and not text[end : block.start()].strip():
            check_said(printed, body, page)
        elif kind == "toml":
            check_file(body, text)
        elif kind == "sh":
            check_commands(body)
        printed, end = (printed, block.end()) if kind == "python" else (None, block.end())
    plt.close("all")


def check_file(body, page):
    """Solve a whole problem file, unless a command of the page does; read a part of one with the rest filled in."""
    data = tomllib.loads(body)
    path = Path(re.sub(r"\W+", "_", data.get("title", "part").lower()) + ".toml")
    if whole := "equations" in data:
        path.write_text(body, encoding="utf-8")
    else:
        rest = "" if {"domain", "time"} & set(data) else SOME["domain"]
        path.write_text(SOME["equations"] + body + rest, encoding="utf-8")
    file = read_file(path)
    if whole and f"pibls solve {path.name}\n" not in page:
        options = {key: value for key, value in vars(file.solve).items() if value is not None}
        solution = pb.solve(file.problem, **{"budget": 60, **options})
        assert solution.status == "converged", solution.diagnostics.message


def check_commands(body):
    """Run the lines that begin with ``pibls``, as far as there is such a command."""
    commands = typer.main.get_command(app).commands
    for line in body.splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["pibls"] and words[1] in commands and words[1] not in ("reproduce", "bench"):
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, (line, result.output)


def load_gallery():
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_gallery_pages_are_in_step_with_the_zoo():
    gallery = load_gallery()
    results = gallery.stored()
    assert list(results) == list(gallery.makers()), "run python docs/gallery.py NAME for the problems that are missing"
    for file, text in gallery.pages(results).items():
        assert (gallery.FOLDER / file).read_text(encoding="utf-8") == text, f"{file}: run docs/gallery.py --pages"


def test_gallery_pictures_are_small():
    gallery = load_gallery()
    sizes = [(gallery.FOLDER / "images" / f"{name}.png").stat().st_size for name in gallery.makers()]
    assert max(sizes) <= 60_000
    assert sum(sizes) <= 4_000_000


@pytest.mark.parametrize("name", ["advection", "robin_disk", "wave", "cubic_reaction"])
def test_gallery_results_are_those_of_today(name):
    stored = load_gallery().stored()[name]
    solution = pb.solve(pb.problems.catalogue()[name](), budget=60)
    assert solution.status == stored["status"]
    assert solution.true_error() <= 1e-6
    assert stored["error"] <= 1e-6


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as HTML, built with warnings as errors, without torch and with every way to a network closed."""
    folder, without = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("without")
    (without / "sitecustomize.py").write_text('import sys\nsys.modules["torch"] = None\n')
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(folder)]
    nowhere["PYTHONPATH"] = os.pathsep.join([str(without), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **nowhere}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_site_fetches_nothing(site):
    loaded = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*?(?:src|href)="https?:""")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not loaded.search(text), page
        assert not re.search(r"<script[^>]*mathjax", text, flags=re.IGNORECASE), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"""(?:@import|url\()\s*["']?https?:""", sheet.read_text(encoding="utf-8")), sheet


def test_site_shows_formulas_and_every_public_name(site):
    assert "<math" in (site / "maths" / "features.html").read_text(encoding="utf-8")
    reference = (site / "api.html").read_text(encoding="utf-8")
    missing = [name for name in pb.__all__ if name != "problems" and f'id="pibls.{name}"' not in reference]
    assert not missing


def test_pages_link_to_each_other_only_where_something_is():
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+\.(?:md|png|py|toml))", text):
            assert ((DOCS / page).parent / target).is_file(), (page, target)
