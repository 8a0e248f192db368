"""``python -m pibls`` and ``pibls``: the command line."""

from __future__ import annotations

import sys

from pibls.interrupts import code, listen

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C and SIGTERM while it is being loaded end it as quietly as later."""
    listen()
    try:
        from pibls.cli import app

        app(prog_name="pibls")
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(code())


if __name__ == "__main__":
    main()
