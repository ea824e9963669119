"""Atomic writes of files and folders.

Output is written to a workshop, a hidden folder next to its target, and then renamed. The lock of
the workshop is released when the process ends in any way, and the next writer in the same folder
removes workshops without a held lock.
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
# Errors of writing, to which Python adds no file name.
_NO_ROOM = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


class Workshop:
    """A private folder beside a target, in which the target is built, until `close`.

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
        if os.getpid() == self._process:  # a fork does not own the folder
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
            continue  # another writer found it without a lock
        # Without locks on this file system, no writer can consider it abandoned either.
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
    """Remove a workshop, its lock last, so that remains of a killed process can be removed."""
    closed = False
    try:
        # Files that cannot be removed keep the lock file, so that a later writer can try again.
        with suppress(OSError):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif entry.name != LOCK:
                    os.unlink(entry.path)
            if sys.platform == "win32":  # which cannot remove open files
                os.close(lock)
                closed = True
            os.unlink(folder / LOCK)
            os.rmdir(folder)
    finally:
        if not closed:
            os.close(lock)


def remove_abandoned(parent: Path) -> None:
    """Remove the workshops in a folder whose processes have ended."""
    # Ignore folders that cannot be listed, and entries that disappear meanwhile.
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
        os.rmdir(folder)  # killed before or after its lock existed
        return
    if _take(lock):
        _remove(folder, lock)
    else:
        os.close(lock)


def file_target(path: str | os.PathLike[str]) -> Path:
    """Resolve all links of a path; raise if it cannot be a file."""
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

    Links are followed and kept. After a flush, the file can be read under its ``name``, to check
    the output. After an exception the older file is unchanged.
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
