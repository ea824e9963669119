"""Click logs in files: CSV, JSON lines and Parquet, in windows of whole sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.docs import documented
from rankcore.clicks._ids import Codes
from rankcore.clicks.log import IDS, ClickLog, check_numbers
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
) -> ClickFile:
    r"""Open a click log that is read in windows of whole sessions, in each pass.

    Parameters
    ----------
    path : str or path-like
        CSV with a header, JSON lines or Parquet, recognised by its first bytes. Text may be
        compressed by gzip, bzip2 or Zstandard. Parquet requires pyarrow.
    columns : mapping of str to str, optional
        Names in the file of the columns ``query``, ``document``, ``position``, ``clicked``,
        ``session``, ``dwell`` and ``ranker``, if they differ. The last three are optional. Rows of
        a session must be contiguous. Without a session column, a session starts where the query
        changes, or where the position is not larger than in the previous row.
    window : int, default=1048576
        Approximate number of impressions per window; a window ends with a session.

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
    Memory: a window, and the ids of queries and documents. Contiguity of sessions is checked within
    a window.

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
    return ClickFile(path, columns or {}, window)


@documented(open_clicks)
def read_clicks(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None
) -> ClickLog:
    r"""Read a whole click log into memory.

    Returns
    -------
    ClickLog

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
    (log,) = ClickFile(path, columns or {}, 1 << 62)
    return log


class ClickFile:
    """A click log in a file: an iterable of windows. See `open_clicks`."""

    def __init__(
        self, path: str | os.PathLike[str], columns: Mapping[str, str], window: int
    ) -> None:
        known = (*REQUIRED, *OPTIONAL)
        for name in columns:
            if name not in known:
                raise ValueError(f"columns must have keys from {', '.join(known)}; found {name!r}")
        if window < 1:
            raise ValueError(f"window must be at least 1; found {window}")
        self.path, self.window = path, int(window)
        self._table = TableFile(
            path,
            {name: columns.get(name, name) for name in known},
            {*REQUIRED, *columns},  # explicitly named columns are required
            gaps={"dwell"},  # for clicks only
            hint=": name its {name} by columns={{'{name}': ...}}, or --column {name}=...",
        )
        self._codes = {name: Codes(name) for name in IDS}

    def __repr__(self) -> str:
        return f"ClickFile({self._table.title!r})"

    def __iter__(self) -> Iterator[ClickLog]:
        held: list[dict[str, NDArray[Any]]] = []
        n_held = 0
        for block in self._blocks():
            held.append(block)
            n_held += block["line"].size
            if n_held > self.window:
                joined = _joined(held)
                cuts = self._cuts(joined, n_held)
                for first, stop in pairwise([0, *cuts]):
                    yield self._log({k: v[first:stop] for k, v in joined.items()})
                end = cuts[-1] if cuts else 0
                held = [{name: values[end:] for name, values in joined.items()}]
                n_held -= end
        if not n_held:
            raise ValueError(f"{self._table.title} holds no impressions")
        yield self._log(_joined(held))

    def _blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield columns of numbers, some thousand rows at a time."""
        last: Any = None
        n_sessions = 0
        for columns, lines in self._table:
            block = self._numbers(columns, lines)
            if "session" in columns:
                ids = columns["session"]
                starts = np.array([one != last for one, last in zip(ids, [last, *ids])])  # noqa: B905
                last = ids[-1]
                block["session"] = n_sessions + np.cumsum(starts)
                n_sessions = int(block["session"][-1])
                seen = set()
                for at in np.flatnonzero(starts).tolist():
                    if ids[at] in seen:
                        raise ValueError(
                            f"{self._table.where(lines)(at)}: session {ids[at]!r} goes on after "
                            "another one began; the rows of a session must be next to each other: "
                            "sort by session"
                        )
                    seen.add(ids[at])
            yield block

    def _cuts(self, columns: dict[str, NDArray[Any]], n: int) -> list[int]:
        """Ends of whole windows, at starts of sessions; the remainder starts with a session."""
        if "session" in columns:
            starts = np.flatnonzero(np.diff(columns["session"])) + 1
        else:
            query, position = columns["query"], columns["position"]
            starts = np.flatnonzero((np.diff(query) != 0) | (np.diff(position) <= 0)) + 1
        cuts, end = [], 0
        while n - end > self.window and starts.size and starts[-1] > end:
            at = int(np.searchsorted(starts, end + self.window, side="right")) - 1
            # The last start within the window; of a longer session, the end.
            end = int(starts[at] if at >= 0 and starts[at] > end else starts[at + 1])
            cuts.append(end)
        return cuts

    def _log(self, columns: dict[str, NDArray[Any]]) -> ClickLog:
        if "dwell" in columns and np.isnan(columns["dwell"]).all():
            del columns["dwell"]
        return ClickLog._of(columns, self._codes, self._table.where(columns["line"]))

    def _numbers(self, columns: dict[str, Any], lines: NDArray[np.int64]) -> dict[str, Any]:
        """Validated columns of numbers."""
        where = self._table.where(lines)
        found: dict[str, NDArray[Any]] = {"line": lines}
        for name in IDS:
            if name in columns:
                found[name] = self._codes[name].number(columns[name], where)
        found["position"] = floats(columns["position"], "position", where)
        found["clicked"] = clicks_of(columns["clicked"], where)
        if "dwell" in columns:
            dwell = [np.nan if one in ("", None) else one for one in columns["dwell"]]
            found["dwell"] = floats(dwell, "dwell", where)
        check_numbers(found, where)
        return found


def clicks_of(values: Any, where: Callable[[int], str]) -> NDArray[np.float64]:
    """Clicks as numbers, given 0 and 1, or false and true."""
    given = [CLICKED.get(one, one) for one in values] if type(values[0]) is str else values
    return floats(given, "clicked", where)


def _joined(blocks: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
