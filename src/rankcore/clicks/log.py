"""Click logs in memory: impressions of documents, by session and position."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.ids import Codes, id_list
from rankcore._core.inputs import reject_mask
from rankcore._core.numbers import as_vector, check_lengths
from rankcore._core.params import check_option
from rankcore._core.warning import warn

# Maximum position, so that arrays by position are small.
MAX_POSITION = 100_000
# Required numeric columns, and columns of ids.
IDS = ("query", "document", "ranker")
# What to do with repeated rows.


class ClickLog:
    """Click log: impressions of documents by session and position, with clicks.

    A session is one list, shown to one user for one query. Its impressions are kept in the order of
    positions. Ids become integers.

    Parameters
    ----------
    query, document : array-like of int or str, shape (n_impressions,)
    position : array-like of int, shape (n_impressions,)
        Position in the list, from 1.
    clicked : array-like of bool, shape (n_impressions,)
        Or 0 and 1.
    session : array-like of int or str, shape (n_impressions,), optional
        Session of each impression, in any order. None: a session starts where the query changes, or
        where the position is not larger than in the previous row.
    dwell : array-like of float, shape (n_impressions,), optional
        Seconds spent on the document; NaN where unknown.
    ranker : array-like of int or str, shape (n_impressions,), optional
        Ranker of the list.
    on_error : {"raise", "drop"}, default="raise"
        What to do with rows that repeat a document or a position of their session. "drop": keep the
        first one by position, clicked if any row of the document in the session is; warn with the
        number of dropped rows.

    Attributes
    ----------
    query, document : ndarray of int32, shape (n_impressions,)
        Numbers of ids: indices of ``queries`` and ``documents``.
    position : ndarray of int32, shape (n_impressions,)
    clicked : ndarray of bool, shape (n_impressions,)
    bounds : ndarray of int64, shape (n_sessions + 1,)
        Session s has the impressions ``bounds[s]`` to ``bounds[s + 1]``.
    dwell : ndarray of float64, shape (n_impressions,), or None
    ranker : ndarray of int32, shape (n_impressions,), or None
        Indices of ``rankers``.
    n_dropped : int
        Number of rows dropped by ``on_error="drop"``.

    Raises
    ------
    ValueError, TypeError
        For invalid columns, positions below 1, a session with two queries, or a repeated document
        or position in a session; the message names the row, from 0.

    See Also
    --------
    read_clicks : Read a log from a file.
    open_clicks : Stream a log that is larger than memory.

    Notes
    -----
    O(n log n) if rows are not in order. Memory: 13 bytes per impression, 8 per session, and 12 more
    for dwell and ranker.

    Examples
    --------
    >>> from rankcore.clicks import ClickLog
    >>> log = ClickLog(["q", "q", "q"], ["a", "b", "a"], [1, 2, 1], [0, 1, 1])
    >>> log
    ClickLog(3 impressions, 2 sessions, 1 queries, 2 clicks)
    >>> log.documents[log.document].tolist()
    ['a', 'b', 'a']
    """

    query: NDArray[np.int32]
    document: NDArray[np.int32]
    position: NDArray[np.int32]
    clicked: NDArray[np.bool_]
    bounds: NDArray[np.int64]
    dwell: NDArray[np.float64] | None
    ranker: NDArray[np.int32] | None
    n_dropped: int

    def __init__(
        self,
        query: ArrayLike,
        document: ArrayLike,
        position: ArrayLike,
        clicked: ArrayLike,
        *,
        session: ArrayLike | None = None,
        dwell: ArrayLike | None = None,
        ranker: ArrayLike | None = None,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> None:
        codes = {name: Codes(name) for name in IDS}
        columns: dict[str, NDArray[Any]] = {}
        for name, ids in [("query", query), ("document", document), ("ranker", ranker)]:
            if ids is not None:
                columns[name] = codes[name].number(id_list(ids, name))
        columns["position"] = as_vector(position, "position")
        columns["clicked"] = as_vector(clicked, "clicked")
        if dwell is not None:
            reject_mask(dwell, "dwell")
            columns["dwell"] = np.asarray(dwell, dtype=np.float64)
        if session is not None:
            columns["session"] = Codes("session").number(id_list(session, "session"))
        check_lengths(**columns)
        self._set(columns, codes, "row {}".format, on_error)
        warn_of_dropped(self.n_dropped)

    @classmethod
    def _of(
        cls,
        columns: Mapping[str, NDArray[Any]],
        codes: Mapping[str, Codes],
        where: Callable[[int], str],
        on_error: Literal["raise", "drop"] = "raise",
    ) -> Self:
        """Create a log from columns of numbers; ``where`` names a row in errors."""
        log = cls.__new__(cls)
        log._set(columns, codes, where, on_error)
        return log

    def _set(
        self,
        columns: Mapping[str, NDArray[Any]],
        codes: Mapping[str, Codes],
        where: Callable[[int], str],
        on_error: Literal["raise", "drop"],
    ) -> None:
        check_option(on_error, "on_error", ("raise", "drop"))
        check_numbers(columns, where)
        arrays = {**columns, "position": columns["position"].astype(np.int32)}
        arrays["clicked"] = columns["clicked"] != 0
        arrays["row"] = np.arange(arrays["query"].size)
        if "session" in arrays:
            order = _order(arrays["session"], arrays["position"])
            if order is not None:
                arrays = {name: column[order] for name, column in arrays.items()}
            starts = changes(arrays["session"])
        else:
            starts = changes(arrays["query"]) | (np.diff(arrays["position"], prepend=0) <= 0)
        if on_error == "drop":
            arrays["clicked"], kept = _first_rows(np.cumsum(starts), arrays)
            starts = starts[kept]
            arrays = {name: array[kept] for name, array in arrays.items()}
        rows = arrays["row"]
        self.n_dropped = columns["query"].size - rows.size
        _check_sessions(arrays["query"], arrays["position"], starts, lambda i: where(int(rows[i])))
        self.query, self.document = arrays["query"], arrays["document"]
        self.position, self.clicked = arrays["position"], arrays["clicked"]
        self.dwell = arrays["dwell"].astype(np.float64) if "dwell" in arrays else None
        self.ranker = arrays.get("ranker")
        self.bounds = np.append(np.flatnonzero(starts), rows.size).astype(np.int64)
        self._codes = codes
        self._check_documents(lambda i: where(int(rows[i])))

    def _check_documents(self, where: Callable[[int], str]) -> None:
        """Raise ValueError if a document occurs twice in a session."""
        keys = self.session * max(len(self._codes["document"]), 1) + self.document
        in_order = np.sort(keys)
        if (in_order[1:] != in_order[:-1]).all():
            return
        order = np.argsort(keys, kind="stable")
        twice = int(order[1:][keys[order][1:] == keys[order][:-1]].min())
        first = int(np.flatnonzero(keys == keys[twice])[0])
        document = self.documents[self.document[twice]]
        raise ValueError(
            f"document {getattr(document, 'item', lambda: document)()!r:.60} occurs twice in one "
            f"session ({_both(where, first, twice)}); pass session= if these are two sessions, or "
            'on_error="drop" to keep the first'
        )

    def __len__(self) -> int:
        return int(self.query.size)

    def __repr__(self) -> str:
        return (
            f"ClickLog({len(self)} impressions, {self.bounds.size - 1} sessions, "
            f"{np.unique(self.query).size} queries, {np.count_nonzero(self.clicked)} clicks)"
        )

    @property
    def queries(self) -> NDArray[Any]:
        """Ids of queries by their number."""
        return self._codes["query"].ids()

    @property
    def documents(self) -> NDArray[Any]:
        """Ids of documents by their number."""
        return self._codes["document"].ids()

    @property
    def rankers(self) -> NDArray[Any]:
        """Ids of rankers by their number."""
        return self._codes["ranker"].ids()

    @property
    def session(self) -> NDArray[np.int64]:
        """Number of the session of each impression, shape (n_impressions,)."""
        return np.repeat(np.arange(self.bounds.size - 1), np.diff(self.bounds))

    def with_clicks(self, clicked: ArrayLike) -> Self:
        """Copy the log with new clicks.

        Parameters
        ----------
        clicked : array-like of bool, shape (n_impressions,)

        Returns
        -------
        ClickLog
            Without ``dwell``, which refers to the old clicks.
        """
        clicks = np.asarray(clicked)
        if clicks.shape != self.clicked.shape or clicks.dtype.kind not in "b":
            raise ValueError(
                f"clicked must be of dtype bool and shape {self.clicked.shape}; got "
                f"{clicks.dtype} and {clicks.shape}"
            )
        log = type(self).__new__(type(self))
        log.__dict__.update(self.__dict__, clicked=clicks, dwell=None)
        return log


# A log in memory, or an iterable of its windows that can be iterated again.
Log: TypeAlias = ClickLog | Iterable[ClickLog]


def windows(log: Log) -> Iterable[ClickLog]:
    """Yield windows of a log, with whole sessions."""
    if isinstance(log, ClickLog):
        return [log]
    if iter(log) is log:
        raise TypeError(
            "a log in windows must be readable again, as open_clicks returns it; got a "
            f"{type(log).__name__}, which is used up after one pass"
        )
    return log


def check_numbers(columns: Mapping[str, NDArray[Any]], where: Callable[[int], str]) -> None:
    """Raise ValueError for positions, clicks or dwell times out of range."""
    position, clicked = columns["position"], columns["clicked"]
    if not position.size:
        raise ValueError("the log must have at least one impression; got none")
    bad = (position < 1) | (position > MAX_POSITION) | (position != np.floor(position))
    required = f"positions must be integers from 1 to {MAX_POSITION}"
    from_0 = bad.any() and position[bad.argmax()] == 0
    hint = " (add 1 to positions from 0)" if from_0 else ""
    _check(bad, position, where, required, hint)
    check_clicked(clicked, where)
    if "dwell" in columns:
        dwell = columns["dwell"]
        bad = (dwell < 0) | np.isinf(dwell)
        _check(bad, dwell, where, "dwell must be finite and at least 0")


def check_clicked(clicked: NDArray[Any], where: Callable[[int], str]) -> None:
    """Raise ValueError for clicks that are not 0 or 1."""
    _check((clicked != 0) & (clicked != 1), clicked, where, "clicked must be 0 or 1")


def _check(
    bad: Any, values: Any, where: Callable[[int], str], required: str, hint: str = ""
) -> None:
    """Raise ValueError with the first bad value, if there is one."""
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{where(at)}: {required}; got {values[at]:g}{hint}")


def _order(session: NDArray[Any], position: NDArray[np.int32]) -> NDArray[np.int64] | None:
    """Return the order by session and position; None if rows are in this order."""
    same = session[1:] == session[:-1]
    sorted_rows = (session[1:] > session[:-1]) | (same & (position[1:] > position[:-1]))
    return None if sorted_rows.all() else np.lexsort((position, session))


def _check_sessions(
    query: NDArray[np.int32],
    position: NDArray[np.int32],
    starts: NDArray[np.bool_],
    where: Callable[[int], str],
) -> None:
    """Raise ValueError for a session of two queries, or two impressions at one position."""
    within = ~starts[1:]
    mixed = np.flatnonzero(within & (query[1:] != query[:-1]))
    if mixed.size:
        at = int(mixed[0])
        raise ValueError(
            f"{where(at + 1)} and {where(at)} are of one session and of different queries; a "
            "session is one list for one query"
        )
    twice = np.flatnonzero(within & (position[1:] == position[:-1]))
    if twice.size:
        at = int(twice[0])
        raise ValueError(
            f"two documents are at position {position[at]} of one session "
            f"({_both(where, at, at + 1)}); pass session= if these are two sessions, or "
            'on_error="drop" to keep the first'
        )


def _both(where: Callable[[int], str], one: int, other: int) -> str:
    """Name two rows for errors: "rows 0 and 4"."""
    head, _, first = where(one).rpartition(" ")
    return f"{head}s {first} and {where(other).rpartition(' ')[2]}"


def changes(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Return whether each row differs from the one before in any column; True for the first."""
    differs = [column[1:] != column[:-1] for column in columns]
    return np.append(True, np.logical_or.reduce(differs))


def _first_rows(
    session: NDArray[Any], columns: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return whether each document is clicked in its session, and the rows without repetitions.

    Rows are in order of session and position.
    """
    order = np.lexsort((columns["document"], session))
    first = changes(session[order], columns["document"][order])
    clicked = np.empty(session.size, dtype=np.bool_)
    group = np.cumsum(first) - 1
    clicked[order] = np.bincount(group, columns["clicked"][order])[group] > 0
    kept = np.sort(order[first])
    return clicked, kept[changes(session[kept], columns["position"][kept])]


def warn_of_dropped(n: int) -> None:
    """Warn of rows dropped by ``on_error="drop"``, if there are any."""
    if n:
        warn(f"{n} rows repeat a document or a position of their session, and are dropped")
