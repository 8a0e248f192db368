"""The command line ``pibls``: thin, one command per file.

Modules here import at the top only what takes no time; a command loads the library when it runs, so that help, version
and completion are at once there. What all commands share (exit codes, messages, failures) is in
:mod:`~pibls.cli.console`, what they read in :mod:`~pibls.cli.sources`, what they write in :mod:`~pibls.cli.outputs`.
"""

from pibls.cli.app import app

__all__ = ["app"]
