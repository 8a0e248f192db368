"""Run all notebooks of the documentation and store their outputs: ``python docs/execute_notebooks.py``.

It needs ``pip install nbclient ipykernel``. Lines of progress, which change from run to run, are left out.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parent / "notebooks"


def main() -> None:
    """Run every notebook in place."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
        for cell in notebook.cells:
            cell.metadata.clear()
            if cell.cell_type == "code":
                cell.outputs = [own for own in cell.outputs if not own.get("text", "").startswith("\r")]
        notebook.metadata.pop("widgets", None)
        nbformat.write(notebook, path)
        print(f"{path.name}: {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
