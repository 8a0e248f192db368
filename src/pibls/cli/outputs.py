"""Files that are made of a solution: where they may go, and that they are whole or not there."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from glob import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pibls.errors import InputError
from pibls.writing import replaced

if TYPE_CHECKING:
    from pibls.cli.sources import Source


PICTURES = (".png", ".pdf", ".svg")
# A problem file from a stranger shall not be able to replace anything but results.
MAKER = "made by pibls"  # what pictures say of themselves
_SEARCHED = 50_000_000  # bytes of a file in which a mark of its maker is looked for
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "plot": PICTURES,
    "csv": (".csv",),
    "json": (".json",),
    "save": (".pibls",),
    "vtk": (".vtu", ".vtk", ".pvd"),
    "netcdf": (".nc",),
    "animate": (".gif", ".mp4"),
}
_NAMED = ("plot", "vtk", "animate")  # kinds whose endings say how they are written


def plan(given: Mapping[str, Path | None], source: Source, *, force: bool = False) -> dict[str, Path]:
    """Return where every output goes, by kind, or refuse places that cannot be written, before anything is solved.

    Paths of the command line are relative to the current folder; those of a problem file are relative to its own
    folder and stay inside it. The command line wins.
    """
    named = {kind: name for kind, name in asdict(source.output).items() if name is not None}
    targets = {kind: _inside(kind, name, source.folder) for kind, name in named.items() if given.get(kind) is None}
    for kind, path in given.items():
        if path is not None:
            targets[kind] = check_target(f"--{kind}", path, _ENDINGS[kind] if kind in _NAMED else ())
    seen = {path.resolve(): "a file that the problem reads" for path in source.files}
    if source.path is not None:
        seen[source.path.resolve()] = "the problem file"
    for kind, path in targets.items():
        place = path.resolve()
        if place not in seen:
            # The command line names what it replaces; a problem file may come from a stranger.
            own = _own_marks(source) if given.get(kind) is None else {}
            pieces = path.parent.glob(f"{escape(path.stem)}_*.vtu") if path.suffix.lower() == ".pvd" else ()
            for file in (path, *pieces):
                refuse_other(kind, file, force=force, marks=own)
        if place in seen:
            raise InputError(f"The output {kind} would replace {seen[place]}, {path}. Choose another name.")
        seen[place] = f"the output {kind}"
    return targets


def _inside(kind: str, name: str, folder: Path) -> Path:
    """Return the place of an output that a problem file names."""
    path, home = folder / name, folder.resolve()
    # A link would lead somewhere else, even if its own name is in the folder.
    if path.is_symlink() or not path.resolve().is_relative_to(home) or ".." in Path(name).parts:
        raise InputError(
            f"The problem file names the output {kind} = {name!r}, which leaves its folder. Only the command line may "
            f"name a place elsewhere: --{kind} FILE."
        )
    return check_target(f"The output {kind} of the problem file,", path, _ENDINGS[kind])


_LOOKS: Mapping[str, tuple[str, bytes]] = {
    "save": ("a saved solution", rb"PK\x03\x04"),
    "plot": ("a picture", rb"\x89PNG|%PDF|\s*<\?xml|\s*<svg"),
    "csv": ("a table", rb'["\w. -]*([,;\t]["\w. -]+)+\r?\n'),
    "json": ("a record", rb"\s*\{"),
    "vtk": ("a mesh", rb"<\?xml[^>]*>\s*<VTKFile|<VTKFile|# vtk DataFile"),
    "netcdf": ("a netCDF file", rb"CDF[\x01\x02\x05]|\x89HDF"),
    "animate": ("a film", rb"GIF8|....ftyp"),
}


def _own_marks(source: Source) -> Mapping[str, bytes]:
    """Return the marks of the results of this problem, by kind."""
    names = [*(symbol.name for symbol in source.problem.domain.coordinates), *source.problem.field_names]
    marks = {"plot": MAKER, "csv": ",".join(names), "json": '"command": "solve"', "save": "PK", "netcdf": "pibls"}
    return {kind: mark.encode() for kind, mark in (marks | {"vtk": source.problem.field_names[0]}).items()}


def refuse_other(
    kind: str, path: Path, *, force: bool = False, marks: Mapping[str, bytes] = MappingProxyType({})
) -> None:
    """Refuse to replace a file that holds something else: only results are replaced by results."""
    if force or not path.is_file():
        return
    with path.open("rb") as stream:
        content = stream.read(_SEARCHED)
    name, pattern = _LOOKS[kind]
    if content and (not re.match(pattern, content[:4096]) or marks.get(kind, b"") not in content):
        raise InputError(
            f"The output {kind} would replace {path}, which is not {name} that pibls made. Choose another name, or "
            "replace it: --force."
        )


def is_stdout(path: Path | None) -> bool:
    """Tell whether an output is to go to standard output: it is called ``-``, as for most commands.

    >>> is_stdout(Path("-")), is_stdout(Path("values.csv")), is_stdout(None)
    (True, False, False)
    """
    return path is not None and str(path) == "-"


def check_target(what: str, path: Path, endings: tuple[str, ...] = ()) -> Path:
    """Return a path that a file can be written to, or refuse it."""
    refused = f"{what} {path} cannot be written: "
    if is_stdout(path):
        raise InputError(f"{refused}only values (--csv) can go to standard output. Name a file.")
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{refused}its name must end with {' or '.join(endings)}.")
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InputError(f"{refused}it is a folder or a device. Name a file.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"{refused}there is no folder {folder}. Make it first, or choose another place.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{refused}the folder {folder} is not writable. Choose another place.")
    return path


def chosen_target(kind: str, path: Path | None, *, force: bool) -> Path | None:
    """Return where an output of the command line goes, or refuse it; None if it goes nowhere, or to standard output."""
    if path is None or (kind == "csv" and is_stdout(path)):
        return None
    refuse_other(kind, check_target(f"--{kind}", path, PICTURES if kind == "plot" else ()), force=force)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write a text file as a whole or not at all."""
    return replaced(path.resolve(), lambda place: place.write_text(text, encoding="utf-8", newline=""))
