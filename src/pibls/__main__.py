"""``python -m pibls`` and ``pibls``: the command line."""

from __future__ import annotations

import sys

__all__ = ["main"]

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl-C while it is being loaded ends it as quietly as later."""
    try:
        from pibls.cli import app

        app(prog_name="pibls")
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
