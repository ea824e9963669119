"""Journal: a file of answers, which a person can read and a killed run continues from."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from rankcore.preference.forms import Batch, Choice, Judges, shown

_TABLE = """
create table if not exists comparisons (
    id integer primary key,
    run text not null,
    -- comparisons of one call of the judge have the same number
    request integer not null check (typeof(request) = 'integer'),
    comparison text not null,  -- keys of the items, sorted
    shown text not null,       -- the same in the order shown
    judge text not null,
    -- to which the first item shown precedes the second
    degree real check (degree is null or (typeof(degree) = 'real' and degree between 0 and 1)),
    answer text,               -- as it came; null for an abstention
    seconds real,
    failure text               -- why there is no answer
)
"""
# Types whose representation is the same in every process.
_PLAIN = (str, int, float, bool, bytes, type(None))


@dataclass(frozen=True)
class Record:
    """An answer of a judge, or a failed call.

    ``keys`` are those of the items in the order shown; ``answer`` is a degree, a position, a list
    of positions, or None.
    """

    request: int
    keys: tuple[Hashable, ...]
    judge: str
    answer: Any
    seconds: float = 0.0
    failure: str | None = None


class Journal:
    """A file of answers, of one or more runs.

    Parameters
    ----------
    path : str or path-like
        SQLite database; created if it does not exist. Its only table is ``comparisons``, with one
        row for each answer or failed call.
    run : str
        Name of the run, such as the query. Answers of other runs in the same file are ignored.
    judge : str, optional
        Name of the judge, such as that of a model and its prompt; answers of others are ignored.
        None: the name of the preference, if it is a function of a module; lambdas, methods, partial
        functions and other objects require a name here. Not used for `Judges`, which have names of
        their own.

    Notes
    -----
    Each answer is committed when it arrives, under the keys of the items in the order shown. If the
    process is killed, no received answer is lost; calls in progress are lost and do not count
    against ``max_calls``. After a power failure the last answers may be missing. Only one process
    at a time may write to a file.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankcore.preference import Journal, PreferenceRanker
    >>> calls = []
    >>> def shorter(u, v):
    ...     calls.append((u, v))
    ...     return len(u) < len(v)
    >>> path = os.path.join(tempfile.mkdtemp(), "answers.sqlite")
    >>> ranker = PreferenceRanker(shorter, journal=Journal(path, run="words"))
    >>> ranker.rank(["ccc", "a", "bb"])
    ['a', 'bb', 'ccc']
    >>> before = len(calls)
    >>> again = PreferenceRanker(shorter, journal=Journal(path, run="words"))
    >>> again.rank(["a", "bb", "ccc"]), len(calls) - before
    (['a', 'bb', 'ccc'], 0)
    """

    def __init__(self, path: str | os.PathLike[str], run: str = "", judge: str | None = None):
        self.path, self.run = os.fspath(path), str(run)
        self.judge = None if judge is None else str(judge)

    def __repr__(self) -> str:
        judge = "" if self.judge is None else f", judge={self.judge!r}"
        return f"Journal({self.path!r}, run={self.run!r}{judge})"


class OpenJournal:
    """An open journal, for use by one thread at a time.

    Methods raise OSError for a file that cannot be read or written, or is damaged.
    """

    def __init__(self, journal: Journal):
        self._run, self._path = journal.run, journal.path
        with self._naming("opened"):
            self._file = sqlite3.connect(
                journal.path, isolation_level=None, check_same_thread=False
            )
        try:
            with self._naming("read"):
                # A commit survives the end of the process without waiting for the disk.
                self._file.execute("pragma journal_mode=wal")
                self._file.execute("pragma synchronous=normal")
                self._file.execute(_TABLE)
                (damage,) = self._file.execute("pragma quick_check(1)").fetchone()
                if damage != "ok":
                    raise ValueError(damage)
        except BaseException:
            self._file.close()
            raise

    def records(self) -> list[Record]:
        """Return the records of the run, in the order of their arrival."""
        with self._naming("read"):
            rows = self._file.execute(
                "select request, shown, judge, degree, answer, seconds, failure "
                "from comparisons where run = ? order by id",
                (self._run,),
            )
            return [
                Record(
                    request,
                    tuple(map(str, json.loads(keys))),
                    judge,
                    degree if degree is not None else json.loads(answer or "null"),
                    seconds,
                    failure,
                )
                for request, keys, judge, degree, answer, seconds, failure in rows
            ]

    def write(self, records: Sequence[Record]) -> None:
        """Commit records."""
        rows = []
        for record in records:
            degree = record.answer if isinstance(record.answer, float) else None
            answer = None if record.answer is None else json.dumps(record.answer)
            keys = [str(key) for key in record.keys]
            rows.append(
                (
                    self._run, record.request, json.dumps(sorted(keys), ensure_ascii=False),
                    json.dumps(keys, ensure_ascii=False), record.judge, degree, answer,
                    record.seconds, record.failure,
                )
            )  # fmt: skip
        with self._naming("written"):
            self._file.execute("begin immediate")
            try:
                self._file.executemany(
                    "insert into comparisons (run, request, comparison, shown, judge, degree, "
                    "answer, seconds, failure) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )
                self._file.execute("commit")
            except BaseException:
                if self._file.in_transaction:  # a full disk may have rolled it back
                    self._file.execute("rollback")
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _naming(self, done: str) -> Iterator[None]:
        """Convert errors of SQLite and JSON to OSError with the path."""
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError, RecursionError) as error:
            locked = "locked" in str(error)
            hint = "one process at a time may write to it" if locked else "use a new journal"
            raise OSError(
                f"the journal {self._path!r} cannot be {done}: {error}; {hint}"
            ) from error


def as_journal(journal: str | os.PathLike[str] | Journal) -> Journal:
    """Return a journal, or that of a path."""
    return journal if isinstance(journal, Journal) else Journal(journal)


def judge_name(journal: Journal, preference: Any) -> str:
    """Return the name of a judge: that of the journal, or that of a function of a module.

    ValueError for other preferences, whose names are those of other judges, too.
    """
    if isinstance(preference, Judges):
        return ""
    if journal.judge is not None:
        return journal.judge
    function = preference.function if isinstance(preference, Batch | Choice) else preference
    name = getattr(function, "__qualname__", "")
    if not isinstance(function, FunctionType) or "<" in name:
        raise ValueError(
            "a journal requires a name of the judge, by which its answers are found: pass "
            "journal=Journal(path, judge=name). Only a function of a module has a name of its "
            f"own; got {shown(preference)}"
        )
    return f"{function.__module__}.{name}"


def item_key(item: Any) -> Hashable:
    """Return a key of an item: a string that is the same in every process, if it is plain.

    Plain are strings, numbers, bytes, None and tuples of these. The key of others is the item, its
    bytes or its identity, for use within this process.
    """
    if isinstance(item, np.generic):
        item = item.item()
    if _is_plain(item):
        return repr(item)
    if isinstance(item, np.ndarray):
        return item.dtype.str, item.shape, item.tobytes()
    try:
        hash(item)
    except TypeError:
        return object, id(item)
    return type(item), item


def _is_plain(item: Any) -> bool:
    if isinstance(item, tuple):
        return all(_is_plain(part) for part in item)
    return type(item) in _PLAIN
