"""Click logs in files: CSV, JSON lines and Parquet, in windows of whole sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankcore._core.ids import Codes, check_ids
from rankcore._core.params import check_count
from rankcore.clicks.log import IDS, ClickLog, check_numbers, warn_of_dropped
from rankcore.datasets.table_files import TableFile, floats

# Impressions per window.
WINDOW = 1 << 20
REQUIRED = ("query", "document", "position", "clicked")
OPTIONAL = ("session", "dwell", "ranker")
CLICKED = {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1}


def open_clicks(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    window: int = WINDOW,
    on_error: Literal["raise", "drop"] = "raise",
) -> ClickFile:
    r"""Open a click log that is read in windows of whole sessions, in each pass.

    Parameters
    ----------
    path : str or path-like
        CSV with a header, JSON lines or Parquet, recognised by its first bytes. Text may be
        compressed by gzip, bzip2 or Zstandard. Parquet requires pyarrow.
    columns : mapping of str to str, optional
        Names in the file of the columns ``query``, ``document``, ``position``, ``clicked``,
        ``session``, ``dwell`` and ``ranker``, if they differ. The last three are optional. In
        windows, rows of a session must be contiguous. Without a session column, a session starts
        where the query changes, or where the position is not larger than in the previous row.
    window : int, default=1048576
        Approximate number of impressions per window; a window ends with a session.
    on_error : {"raise", "drop"}, default="raise"
        What to do with rows that repeat a document or a position of their session: see `ClickLog`.

    Returns
    -------
    ClickFile
        An iterable of `ClickLog`, which can be iterated again. Ids have the same numbers in all
        windows.

    Raises
    ------
    ValueError
        For an invalid line, with its number, and as `ClickLog`; also while windows are read.

    Notes
    -----
    Memory: a window, the ids of queries and documents, and 8 bytes per session.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankcore.clicks import open_clicks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.csv")
    ...     with open(path, "w") as file:
    ...         _ = file.write("session,query,document,position,clicked\n"
    ...                        "1,q,a,1,0\n1,q,b,2,1\n2,q,b,1,1\n")
    ...     [len(log) for log in open_clicks(path, window=2)]
    [2, 1]
    """
    return ClickFile(path, columns or {}, window, on_error)


def read_clicks(
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str] | None = None,
    on_error: Literal["raise", "drop"] = "raise",
) -> ClickLog:
    r"""Read a whole click log into memory.

    Parameters
    ----------
    path : str or path-like
        CSV with a header, JSON lines or Parquet, recognised by its first bytes. Text may be
        compressed by gzip, bzip2 or Zstandard. Parquet requires pyarrow.
    columns : mapping of str to str, optional
        Names in the file of the columns ``query``, ``document``, ``position``, ``clicked``,
        ``session``, ``dwell`` and ``ranker``, if they differ. The last three are optional. In
        windows, rows of a session must be contiguous. Without a session column, a session starts
        where the query changes, or where the position is not larger than in the previous row.
    on_error : {"raise", "drop"}, default="raise"
        What to do with rows that repeat a document or a position of their session: see `ClickLog`.

    Returns
    -------
    ClickLog

    Raises
    ------
    ValueError
        For an invalid line, with its number, and as `ClickLog`; also while windows are read.

    Examples
    --------
    >>> import os, tempfile
    >>> from rankcore.clicks import read_clicks
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.jsonl")
    ...     with open(path, "w") as file:
    ...         _ = file.write('{"q": "x", "document": "a", "position": 1, "clicked": true}\n')
    ...     read_clicks(path, columns={"query": "q"})
    ClickLog(1 impressions, 1 sessions, 1 queries, 1 clicks)
    """
    (log,) = ClickFile(path, columns or {}, None, on_error)
    return log


class ClickFile:
    """A click log in a file: an iterable of windows. See `open_clicks`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        columns: Mapping[str, str],
        window: int | None,
        on_error: Literal["raise", "drop"] = "raise",
    ) -> None:
        allowed = (*REQUIRED, *OPTIONAL)
        for name in columns:
            if name not in allowed:
                raise ValueError(f"columns must have keys from {', '.join(allowed)}; got {name!r}")
        if window is not None:
            check_count(window, "window")
        self.path, self.window = path, window  # None: the whole file
        self.on_error: Literal["raise", "drop"] = on_error
        self._table = TableFile(
            path,
            {name: columns.get(name, name) for name in allowed},
            {*REQUIRED, *columns},  # explicitly named columns are required
            gaps={"dwell"},  # for clicks only
            hint=": name its {name} by columns={{'{name}': ...}}, or --column {name}=...",
        )
        self._codes = {name: Codes(name) for name in IDS}

    def __repr__(self) -> str:
        return f"ClickFile({self._table.title!r})"

    def __iter__(self) -> Iterator[ClickLog]:
        held: list[dict[str, NDArray[Any]]] = []
        n_held = n_dropped = 0
        for block in self._blocks():
            held.append(block)
            n_held += block["line"].size
            if self.window is not None and n_held > self.window:
                joined = _joined(held)
                cuts = self._cuts(joined, n_held, self.window)
                for first, stop in pairwise([0, *cuts]):
                    log = self._log({k: v[first:stop] for k, v in joined.items()})
                    n_dropped += log.n_dropped
                    yield log
                end = cuts[-1] if cuts else 0
                held = [{name: values[end:] for name, values in joined.items()}]
                n_held -= end
        if not n_held:
            raise ValueError(f"{self._table.title} holds no impressions")
        log = self._log(_joined(held))
        warn_of_dropped(n_dropped + log.n_dropped)
        yield log

    def _blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield columns of numbers, some thousand rows at a time."""
        sessions = Codes("session") if self.window is None else _Sessions()
        for columns, lines in self._table:
            block = self._numbers(columns, lines)
            if "session" in columns:
                block["session"] = sessions.number(columns["session"], self._table.where(lines))
            yield block

    @staticmethod
    def _cuts(columns: dict[str, NDArray[Any]], n: int, window: int) -> list[int]:
        """Find the ends of windows of whole sessions; the rows after the last begin a session."""
        if "session" in columns:
            starts = np.flatnonzero(np.diff(columns["session"])) + 1
        else:
            query, position = columns["query"], columns["position"]
            starts = np.flatnonzero((np.diff(query) != 0) | (np.diff(position) <= 0)) + 1
        cuts = []
        end = 0
        while n - end > window and starts.size and starts[-1] > end:
            at = int(np.searchsorted(starts, end + window, side="right")) - 1
            # The last start within the window; of a longer session, the end.
            end = int(starts[at] if at >= 0 and starts[at] > end else starts[at + 1])
            cuts.append(end)
        return cuts

    def _log(self, columns: dict[str, NDArray[Any]]) -> ClickLog:
        if "dwell" in columns and np.isnan(columns["dwell"]).all():
            del columns["dwell"]
        return ClickLog._of(columns, self._codes, self._table.where(columns["line"]), self.on_error)

    def _numbers(self, columns: dict[str, Any], lines: NDArray[np.int64]) -> dict[str, Any]:
        """Validate columns, and convert them to numbers."""
        where = self._table.where(lines)
        arrays: dict[str, NDArray[Any]] = {"line": lines}
        for name in IDS:
            if name in columns:
                arrays[name] = self._codes[name].number(columns[name], where)
        arrays["position"] = floats(columns["position"], "position", where)
        arrays["clicked"] = clicks_of(columns["clicked"], where)
        if "dwell" in columns:
            dwell = [np.nan if value in ("", None) else value for value in columns["dwell"]]
            arrays["dwell"] = floats(dwell, "dwell", where)
        check_numbers(arrays, where)
        return arrays


class _Sessions:
    """Session numbers of a file read in windows, in which each session is contiguous.

    Ended sessions are kept as hashes of 64 bits, in sorted arrays of different sizes. Two of n
    sessions have the same hash with a probability below n^2 / 2^65.
    """

    def __init__(self) -> None:
        self._n = 0
        self._last: Any = None
        self._kind: type | None = None
        self._ended: list[NDArray[np.int64]] = []

    def number(self, ids: Sequence[Any], where: Callable[[int], str]) -> NDArray[np.int64]:
        """Assign numbers to the sessions of the next rows; raise ValueError for a divided one."""
        self._kind = check_ids(ids, "session", where, self._kind)
        starts = np.array([session != last for session, last in zip(ids, [self._last, *ids])])  # noqa: B905
        rows = np.flatnonzero(starts)
        # Of tuples, whose hashes of integers are mixed.
        hashes = np.array([hash((ids[row],)) for row in rows.tolist()], dtype=np.int64)
        again = np.zeros(rows.size, dtype=np.bool_)
        again[np.setdiff1d(np.arange(rows.size), np.unique(hashes, return_index=True)[1])] = True
        for ended in self._ended:
            place = np.minimum(np.searchsorted(ended, hashes), ended.size - 1)
            again |= ended[place] == hashes
        if again.any():
            row = int(rows[again.argmax()])
            raise ValueError(
                f"{where(row)}: session {ids[row]!r} continues after another one started; the "
                "rows of a session must be contiguous: sort by session, or read the whole file "
                "with read_clicks"
            )
        merged = np.sort(hashes)
        while self._ended and self._ended[-1].size <= 2 * merged.size:
            merged = np.sort(np.concatenate([self._ended.pop(), merged]))
        if merged.size:
            self._ended.append(merged)
        numbers: NDArray[np.int64] = self._n + np.cumsum(starts)
        self._n = int(numbers[-1])
        self._last = ids[-1]
        return numbers


def clicks_of(values: Any, where: Callable[[int], str]) -> NDArray[np.float64]:
    """Convert clicks to numbers, given 0 and 1, or false and true."""
    values_as_numbers = (
        [CLICKED.get(value, value) for value in values] if type(values[0]) is str else values
    )
    return floats(values_as_numbers, "clicked", where)


def _joined(blocks: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
