"""``python -m pibls`` is the command line."""

from pibls.cli import app

if __name__ == "__main__":
    app(prog_name="pibls")
