"""Answers in a file, so that a run that was killed goes on where it stopped."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_TABLES = """
create table if not exists runs (
    run text primary key, seed text not null, calls integer not null
) without rowid;
create table if not exists answers (
    run text, first text, second text, repeat integer, degree real not null,
    primary key (run, first, second, repeat)
) without rowid;
"""
# What has a representation that is the same in every process.
_PLAIN = (str, int, float, bool, bytes, type(None))


class Journal:
    """A file of answers, of one run or of several.

    Parameters
    ----------
    path : str or path-like
        An SQLite database; made if it does not exist.
    run : str
        What the answers are about, such as the query: answers of other runs in the same file are
        not looked at.

    Notes
    -----
    Each call is committed when it is answered. A process that is killed loses the calls that are
    under way and no answer, and they do not count against ``max_calls``; after a power failure the
    last answers may be missing. One process at a time may write to a run.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankcore.preference import Journal, PreferenceRanker
    >>> asked = []
    >>> def shorter(u, v):
    ...     asked.append((u, v))
    ...     return len(u) < len(v)
    >>> path = os.path.join(tempfile.mkdtemp(), "answers.sqlite")
    >>> ranker = PreferenceRanker(shorter, journal=Journal(path, run="words"))
    >>> ranker.rank(["ccc", "a", "bb"])
    ['a', 'bb', 'ccc']
    >>> before = len(asked)
    >>> again = PreferenceRanker(shorter, journal=Journal(path, run="words"))
    >>> again.rank(["ccc", "a", "bb"]), len(asked) - before
    (['a', 'bb', 'ccc'], 0)
    """

    def __init__(self, path: str | os.PathLike[str], run: str = ""):
        self.path = os.fspath(path)
        self.run = str(run)

    def __repr__(self) -> str:
        return f"Journal({self.path!r}, run={self.run!r})"


class OpenJournal:
    """A journal that is being read and written, by one thread. Not public."""

    def __init__(self, journal: Journal):
        self._run, self._path = journal.run, journal.path
        try:
            self._file = sqlite3.connect(journal.path, isolation_level=None)
        except sqlite3.Error as error:
            raise OSError(f"the journal {journal.path!r} cannot be opened: {error}") from error
        try:
            # A commit is safe from the end of the process without waiting for the disk.
            self._file.execute("pragma journal_mode=wal")
            self._file.execute("pragma synchronous=normal")
            self._file.executescript(_TABLES)
        except sqlite3.Error as error:
            self._file.close()
            raise OSError(f"the journal {journal.path!r} cannot be read: {error}") from error

    def seed(self, new: str) -> str:
        """The seed of the run: what is written, or else a new one, which is written."""
        with self._writing():
            self._file.execute("insert or ignore into runs values (?, ?, 0)", (self._run, new))
        (seed,) = self._file.execute("select seed from runs where run = ?", (self._run,)).fetchone()
        return str(seed)

    def calls(self) -> int:
        """Calls that the run has paid for."""
        row = self._file.execute("select calls from runs where run = ?", (self._run,)).fetchone()
        return 0 if row is None else int(row[0])

    def answers(self) -> Iterable[tuple[str, str, int, float]]:
        """All answers of the run: keys of the two items, number of the repeat, degree."""
        return self._file.execute(
            "select first, second, repeat, degree from answers where run = ?", (self._run,)
        )

    def record(self, answers: list[tuple[str, str, int, float]], calls: int) -> None:
        """Write what calls have brought, all or nothing: answers, or none from calls that failed.

        Parameters
        ----------
        answers : list of (str, str, int, float)
        calls : int
            How many they were.
        """
        with self._writing():
            self._file.execute("begin immediate")
        try:
            self._file.executemany(
                "insert or replace into answers values (?, ?, ?, ?, ?)",
                [(self._run, *answer) for answer in answers],
            )
            self._file.execute(
                "update runs set calls = calls + ? where run = ?", (calls, self._run)
            )
        except BaseException:
            self._file.execute("rollback")
            raise
        self._file.execute("commit")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OSError(
                f"the journal {self._path!r} cannot be written: {error}; one process at a time "
                "may write to it"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def lasting_key(item: Any) -> str:
    """Key of an item that is the same in every process.

    Raises
    ------
    TypeError
        For items that are not strings, numbers, bytes, None, or tuples of these.
    """
    if not _is_plain(item):
        raise TypeError(
            "a journal needs keys that last: pass key=, a function that gives a string for an "
            f"item; found an item of type {type(item).__name__}"
        )
    return repr(item)


def memory_key(item: Any) -> Hashable:
    """Key of an item while this process lasts: the item, its bytes, or the object it is."""
    if type(item).__module__ == "numpy" and hasattr(item, "tobytes"):
        return (type(item), item.dtype.str, item.shape, item.tobytes())
    try:
        hash(item)
    except TypeError:
        return (object, id(item))
    return (type(item), item)


def _is_plain(item: Any) -> bool:
    if isinstance(item, tuple):
        return all(_is_plain(part) for part in item)
    return type(item) in _PLAIN
