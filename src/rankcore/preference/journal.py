"""Journal of answers in a file, for resuming interrupted runs."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from rankcore.preference.forms import shown

# Keys of items, and the index of the repeat.
Answered = tuple[Hashable, ...]
_TABLES = """
create table if not exists runs (
    run text primary key, seed text not null, calls integer not null
) without rowid;
create table if not exists answers (
    run text, first text, second text, repeat integer, degree real not null,
    primary key (run, first, second, repeat)
) without rowid;
create table if not exists orders (
    run text, items text, repeat integer, places text not null,
    primary key (run, items, repeat)
) without rowid;
"""
_DIGITS = 39  # of 128 bits, which a seed is drawn from
# Types whose representation is the same in every process.
_PLAIN = (str, int, float, bool, bytes, type(None))


class Journal:
    """A file of answers, of one or more runs.

    Parameters
    ----------
    path : str or path-like
        SQLite database; created if it does not exist.
    run : str
        Name of the run, such as the query. Answers of other runs in the same file are ignored.

    Notes
    -----
    Each answer is committed when it arrives. If the process is killed, no received answer is lost;
    calls in progress are lost and do not count against ``max_calls``. After a power failure the
    last answers may be missing. Only one process at a time may write to a run.

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
    >>> again.rank(["ccc", "a", "bb"]), len(calls) - before
    (['a', 'bb', 'ccc'], 0)
    """

    def __init__(self, path: str | os.PathLike[str], run: str = ""):
        self.path = os.fspath(path)
        self.run = str(run)

    def __repr__(self) -> str:
        return f"Journal({self.path!r}, run={self.run!r})"


class OpenJournal:
    """An open journal, for use by one thread at a time.

    All methods raise OSError if SQLite cannot read or write the file. Methods that read raise
    ValueError for contents that were not written by a `PreferenceRanker`.
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
                self._file.executescript(_TABLES)
                (damage,) = self._file.execute("pragma quick_check(1)").fetchone()
            if damage != "ok":
                raise OSError(f"the journal {self._path!r} is damaged: {damage}")
        except BaseException:
            self._file.close()
            raise

    def seed(self, new: str) -> int:
        """The stored seed of the run; if there is none, ``new`` is stored."""
        with self._naming("written"):
            self._file.execute("insert or ignore into runs values (?, ?, 0)", (self._run, new))
        ((seed,),) = self._select("seed", "runs")
        if not (
            isinstance(seed, str) and len(seed) <= _DIGITS and seed.isascii() and seed.isdecimal()
        ):
            raise self._wrong("a seed", f"a number of at most {_DIGITS} digits", seed)
        return int(seed)

    def calls(self) -> int:
        """Number of calls made by the run."""
        ((calls,),) = self._select("calls", "runs") or [(0,)]
        if not (isinstance(calls, int) and calls >= 0):
            raise self._wrong("the number of calls", "an integer from 0 on", calls)
        return calls

    def answers(self) -> dict[Answered, float]:
        """Degrees of the run, by the keys of the two items and the index of the repeat."""
        found: dict[Answered, float] = {}
        columns = "first, second, repeat, degree"
        for first, second, repeat, degree in self._select(columns, "answers"):
            self._check_call([first, second], repeat)
            if not (isinstance(degree, float) and 0 <= degree <= 1):
                raise self._wrong("a degree", "a number in [0, 1]", degree)
            found[first, second, repeat] = degree
        return found

    def orders(self) -> dict[Answered, tuple[int, ...]]:
        """Orders of the run as positions, by the keys of the items and the index of the repeat."""
        found: dict[Answered, tuple[int, ...]] = {}
        for items, repeat, places in self._select("items, repeat, places", "orders"):
            keys, order = self._list(items), self._list(places)
            self._check_call(keys, repeat)
            known = set(range(len(keys)))
            if not (all(type(k) is int for k in order) and len(set(order) & known) == len(order)):
                raise self._wrong("an order", f"different positions of {len(keys)} items", places)
            found[(*keys, repeat)] = tuple(order)
        return found

    def record(self, answers: Mapping[Answered, Any], calls: int) -> None:
        """Store answers and the number of calls in one transaction; failed calls have no answers.

        Answers are degrees or orders, by the keys of the items and the index of the repeat.
        """
        with self._naming("written"):
            self._file.execute("begin immediate")
            try:
                for key, answer in answers.items():
                    table, row = "answers", (*key, answer)
                    if isinstance(answer, tuple):
                        table, row = "orders", (json.dumps(key[:-1]), key[-1], json.dumps(answer))
                    marks = ", ".join("?" * len(row))
                    insert = f"insert or replace into {table} values (?, {marks})"
                    self._file.execute(insert, (self._run, *row))
                self._file.execute(
                    "update runs set calls = calls + ? where run = ?", (calls, self._run)
                )
                self._file.execute("commit")
            except BaseException:
                if self._file.in_transaction:  # a full disk may have rolled it back
                    self._file.execute("rollback")
                raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _select(self, columns: str, table: str) -> list[Any]:
        with self._naming("read"):
            select = f"select {columns} from {table} where run = ?"
            return self._file.execute(select, (self._run,)).fetchall()

    def _check_call(self, keys: list[Any], repeat: Any) -> None:
        for key in keys:
            if not isinstance(key, str):
                raise self._wrong("the key of an item", "a string", key)
        if not (isinstance(repeat, int) and repeat >= 0):
            raise self._wrong("a repeat", "an integer from 0 on", repeat)

    def _list(self, text: Any) -> list[Any]:
        found = None
        if isinstance(text, str):
            with suppress(ValueError, RecursionError):  # None is rejected below
                found = json.loads(text)
        if not isinstance(found, list):
            raise self._wrong("the items and positions of an order", "a list in JSON", text)
        return found

    def _wrong(self, what: str, required: str, found: Any) -> ValueError:
        return ValueError(
            f"the journal {self._path!r} is damaged or not of this package: in run {self._run!r} "
            f"{what} must be {required}; found {shown(found)}. Use a new journal"
        )

    @contextmanager
    def _naming(self, done: str) -> Iterator[None]:
        """Convert errors of SQLite to OSError with the path."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # messages quote what is damaged
            locked = "locked" in str(error)
            hint = "; one process at a time may write to it" if locked else ""
            raise OSError(f"the journal {self._path!r} cannot be {done}: {error}{hint}") from error


def open_journal(
    journal: Journal, keys: list[Any], known: dict[Answered, Any], several: bool, seed: str
) -> OpenJournal:
    """Open a journal, and exchange its answers with those of the ranker.

    ``known`` has the answers of this process; ``several`` tells whether they are orders of several
    items; ``seed`` is the seed of a new run.
    """
    check_keys(keys)
    opened = OpenJournal(journal)
    try:
        opened.seed(seed)
        written: dict[Answered, Any] = {**(opened.orders() if several else opened.answers())}
        about = {key for answer in written for key in answer[:-1]}
        if keys and about and about.isdisjoint(keys):
            raise ValueError(
                f"{journal!r} has answers about other items, none about these {len(keys)}; give "
                "each list a run of its own, Journal(path, run=...)"
            )
        # Answers that are missing in the file, for example after a full disk.
        missing = {key: answer for key, answer in known.items() if key not in written}
        if missing:
            opened.record(missing, len(missing))
    except BaseException:
        opened.close()
        raise
    known.update(written)
    return opened


def lasting_key(item: Any) -> str:
    """Key of an item that is the same in every process.

    TypeError for items that are not strings, numbers, bytes, None, or tuples of these.
    """
    if isinstance(item, np.generic):
        item = item.item()
    if not _is_plain(item):
        raise TypeError(
            "a journal requires permanent keys: pass key=, a function that returns a string for an "
            f"item; found an item of type {type(item).__name__}"
        )
    return repr(item)


def check_keys(keys: Sequence[Any]) -> None:
    """Raise for keys that the file of a journal cannot hold."""
    for key in keys:
        if not isinstance(key, str):
            raise TypeError(f"with a journal, key= must return strings; found {shown(key)}")
        try:
            key.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"with a journal, keys must be valid UTF-8; found {key!r}") from error


def memory_key(item: Any) -> Hashable:
    """Key of an item within this process: the item, its bytes, or the object's identity."""
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
