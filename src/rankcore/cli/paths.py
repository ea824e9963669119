"""Paths that commands read or write; no file may be both."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from glob import glob
from pathlib import Path
from typing import Any, get_args, get_type_hints


@dataclass(frozen=True)
class Reads:
    """Marker for ``Annotated``: paths that are read; ``-`` is standard input."""


@dataclass(frozen=True)
class Writes:
    """Marker for ``Annotated``: a path that is written."""

    folder: bool = False  # whether it is a directory, which may exist
    # other files written, as a function of the path and all arguments
    beside: Callable[[Path, dict[str, Any]], list[Path]] = lambda path, given: []


def declared(command: Callable[..., Any]) -> dict[str, Reads | Writes]:
    """Return the path parameters of a command, with their markers.

    TypeError if a path parameter is marked neither as read nor as written.
    """
    marks_by_name: dict[str, Reads | Writes] = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        marks = [mark for mark in get_args(hint)[1:] if isinstance(mark, Reads | Writes)]
        if marks:
            marks_by_name[name] = marks[0]
        elif "Path" in str(hint):
            raise TypeError(f"{command.__name__}: mark {name}, a path, as Reads or Writes")
    return marks_by_name


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command, to raise ValueError if it would write a file that it reads."""
    marks = declared(command)

    @wraps(command)
    def checked(**given: Any) -> None:
        check_paths(marks, given)
        command(**given)

    return checked


def check_paths(marks: dict[str, Reads | Writes], given: dict[str, Any]) -> None:
    """Raise ValueError if the output could not be saved, or would replace an input."""
    read: list[str] = []
    written: list[Path] = []
    for name, mark in marks.items():
        value = given.get(name)
        if value is None:
            continue
        if isinstance(mark, Reads):
            read += [str(path) for path in (value if isinstance(value, list | tuple) else [value])]
            continue
        _check_writable(value, mark.folder)
        written += [value, *mark.beside(value, given)]
    files = [file for path in read for file in _files(path)]
    for i, path in enumerate(written):
        parts = [Path(one) for one in _files(str(path))]
        if any(_same(part, file) for part in parts for file in files):
            raise ValueError(f"{path} is read by this command, too: choose another file to write")
        others = [Path(path) for other in written[:i] for path in _files(str(other))]
        if any(_same(part, other) for part in parts for other in others):
            raise ValueError(f"{path} is written twice by this command: choose another file")


def _files(text: str) -> Iterator[str]:
    """List a path itself, the files of a pattern, and those in a directory."""
    names = [text]
    if any(sign in text for sign in "*?[") and not os.path.exists(text):
        names += glob(text, recursive=True)
    for path in names:
        yield path
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                yield from (entry.path for entry in entries if entry.is_file())


def _same(path: Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file; links and redirected stdin are followed."""
    try:
        status = os.fstat(sys.stdin.fileno()) if other == "-" else os.stat(other)
        return os.path.samestat(status, os.stat(path))
    except (OSError, ValueError):  # closed, not a file, or does not exist yet
        return other != "-" and os.path.realpath(path) == os.path.realpath(other)


def _check_writable(path: Path, folder: bool) -> None:
    if str(path) == "-":
        raise ValueError(
            "- cannot be written: name a file (predictions and tables go to standard output "
            "without an option)"
        )
    if os.path.islink(os.path.realpath(path)):
        raise ValueError(f"{path} is a link that leads back to itself; cannot write there")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a directory; cannot write {path.name} there")
    if path.exists() and not (path.is_dir() if folder else path.is_file()):
        kind = "directory" if folder else "file"
        raise ValueError(f"{path} exists and is not a {kind}; cannot write there")
