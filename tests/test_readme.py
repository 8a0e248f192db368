"""Code in the README runs as printed."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_readme_code_runs_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    figures = re.compile(r"converged: estimated error (\S+), true error (\S+)")
    told = figures.search((ROOT / "README.md").read_text())
    for now, then in zip(figures.match(printed).groups(), told.groups(), strict=True):
        assert 0.1 <= float(now) / float(then) <= 10
    assert "T_t = 0.1*laplacian(T)" in printed
    assert (tmp_path / "solution.png").stat().st_size > 10_000
    assert names["solution"].true_error() < 1e-6


def test_readme_images_and_links_exist():
    text = (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (ROOT / target).is_file(), target
