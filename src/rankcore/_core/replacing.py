"""Atomic writes of files and folders.

Output is written to a workshop, a hidden folder next to its target, and then renamed. The lock
of the workshop ends with the process in any case, and the next writer in the same folder
removes workshops whose lock is free.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from rankcore._core.opened import opened

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PREFIX, LOCK = ".rankcore-", "lock"
# Errors of writing, which Python gives no name of a file.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Workshop:
    """A private folder beside a target, in which it is built, until `close`.

    Errors of writing in the folder name the target.
    """

    def __init__(self, target: Path) -> None:
        self._target, self._process = target, os.getpid()
        remove_abandoned(target.parent)
        try:
            self.path, self._lock = _make(target.parent)
        except OSError as error:
            raise _of_target(error, target) from error

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        if isinstance(error, OSError):
            unnamed = error.filename is None and error.errno in _NO_ROOM
            inside = str(self.path) in (str(error.filename), str(Path(str(error.filename)).parent))
            if unnamed or inside:
                raise _of_target(error, self._target) from error

    def close(self) -> None:
        """Remove the folder and its contents."""
        if os.getpid() == self._process:  # a fork has a copy of this object, not its folder
            _remove(self.path, self._lock)


def _of_target(error: OSError, target: Path) -> OSError:
    return OSError(error.errno, error.strerror, str(target))


def _make(parent: Path) -> tuple[Path, int]:
    """Create a workshop folder and its lock."""
    while True:
        folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        try:
            lock = os.open(folder / LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        except FileNotFoundError:
            continue  # another writer has found it without a lock
        # Without locks on this file system, nobody can take it for abandoned either.
        if _take(lock) is not False and os.fstat(lock).st_nlink:
            return folder, lock
        os.close(lock)  # another writer was faster, and removes it


def _take(lock: int) -> bool | None:
    """Lock an open file until it is closed; False if another has done so, None without locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return None
    return True


def _remove(folder: Path, lock: int) -> None:
    """Remove a workshop, its lock last: what is left by a kill can then be removed later."""
    closed = False
    try:
        # What cannot be removed keeps its lock file, so that a later writer can try again.
        with suppress(OSError):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif entry.name != LOCK:
                    os.unlink(entry.path)
            if sys.platform == "win32":  # which removes no open file
                os.close(lock)
                closed = True
            os.unlink(folder / LOCK)
            os.rmdir(folder)
    finally:
        if not closed:
            os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the workshops in a folder whose processes have ended."""
    # A folder that cannot be listed, or an entry that goes meanwhile, is no obstacle to writing.
    with suppress(OSError):
        for entry in os.scandir(parent):
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_abandoned(Path(entry.path))


def _remove_if_abandoned(folder: Path) -> None:
    if hasattr(os, "geteuid") and folder.lstat().st_uid != os.geteuid():
        return
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        lock = os.open(folder / LOCK, flags)
    except FileNotFoundError:
        os.rmdir(folder)  # a kill came before its lock, or after
        return
    if _take(lock):
        _remove(folder, lock)
    else:
        os.close(lock)


def file_target(path: str | os.PathLike[str]) -> Path:
    """Resolve a path through all links; raise if no file can be there."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file, and cannot be replaced by one: choose another")
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a new file that atomically replaces an older one, keeping its mode, at the end.

    Links are followed, and stay links. The ``name`` of the file can be read after a flush, to check
    what was written. After an exception the older file is as it was.
    """
    target = file_target(path)
    with Workshop(target) as folder:
        made = folder / target.name
        with opened(made, "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            os.chmod(made, stat.S_IMODE(target.stat().st_mode))
        os.replace(made, target)
