"""Atomic writes: a file appears whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


def file_target(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file to write, links resolved; raise if it cannot be a file."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file and cannot be replaced by one: choose another path")
    return target


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside ``path``, which it replaces when the block has succeeded.

    An older file keeps its mode, and its content if the block raises. Links are followed.
    """
    target = file_target(path)
    temporary = target.with_name(f".rankcore-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
        os.replace(temporary, target)
    except OSError as error:
        # Errors of writing name no file, or the temporary one.
        if error.errno is None or error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
