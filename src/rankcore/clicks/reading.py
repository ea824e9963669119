"""Click logs in files: CSV, JSON lines and Parquet, in windows of whole sessions."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.clicks._ids import Codes
from rankcore.clicks.log import IDS, ClickLog, check_numbers
from rankcore.datasets.parquet_rows import BUFFER, is_parquet, pyarrow_of
from rankcore.datasets.streams import open_lines, title

# Impressions per window.
WINDOW = 1 << 20
# Lines whose fields are Python objects at a time.
LINES = 1 << 13
REQUIRED = ("query", "document", "position", "clicked")
OPTIONAL = ("session", "dwell", "ranker")
CLICKED = {"0": 0, "1": 1, "false": 0, "true": 1, "False": 0, "True": 1}

# Text in bytes, and the number of its first line.
Blocks = Iterator[tuple[memoryview, int]]
# Columns of values as in a file, and the line (in Parquet the row) of each row.
Block = tuple[dict[str, Any], NDArray[np.int64]]


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
        Here, or while windows are read: for an invalid line, with its number, and as `ClickLog`.

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


def read_clicks(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None
) -> ClickLog:
    r"""Read a whole click log into memory.

    Parameters
    ----------
    path : str or path-like
    columns : mapping of str to str, optional
        As for `open_clicks`.

    Returns
    -------
    ClickLog

    Raises
    ------
    ValueError
        As `open_clicks`.

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
        self._names = {name: columns.get(name, name) for name in known}
        # Explicitly named columns are required.
        self._wanted = {*REQUIRED, *columns}
        self._codes = {name: Codes(name) for name in IDS}
        self._title = title(path)
        self._parquet = is_parquet(path)

    def __repr__(self) -> str:
        return f"ClickFile({self._title!r})"

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
            raise ValueError(f"{self._title} holds no impressions")
        yield self._log(_joined(held))

    def _blocks(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Yield columns of numbers, some thousand rows at a time."""
        last: Any = None
        n_sessions = 0
        for columns, lines in self._parquet_blocks() if self._parquet else self._text_blocks():
            block = self._numbers(columns, lines)
            if "session" in columns:
                ids = columns["session"]
                starts = np.array([one != last for one, last in zip(ids, [last, *ids])])  # noqa: B905
                last = ids[-1]
                block["session"] = n_sessions + np.cumsum(starts)
                n_sessions = int(block["session"][-1])
                self._check_adjacent(ids, starts, lines)
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
            end = (
                int(starts[at] if starts[at] > end else starts[at + 1])
                if at >= 0
                else int(starts[0])
            )
            cuts.append(end)
        return cuts

    def _log(self, columns: dict[str, NDArray[Any]]) -> ClickLog:
        if "dwell" in columns and np.isnan(columns["dwell"]).all():
            del columns["dwell"]
        return ClickLog._of(columns, self._codes, self._where(columns["line"]))

    def _where(self, lines: NDArray[np.int64]) -> Callable[[int], str]:
        word = "row" if self._parquet else "line"
        return lambda i: f"{self._title}, {word} {lines[i]}"

    def _check_adjacent(
        self, ids: list[Any], starts: NDArray[np.bool_], lines: NDArray[np.int64]
    ) -> None:
        seen = set()
        for at in np.flatnonzero(starts).tolist():
            if ids[at] in seen:
                raise ValueError(
                    f"{self._where(lines)(at)}: session {ids[at]!r} goes on after another one "
                    "began; the rows of a session must be next to each other: sort by session"
                )
            seen.add(ids[at])

    def _numbers(self, columns: dict[str, Any], lines: NDArray[np.int64]) -> dict[str, Any]:
        """Validated columns of numbers."""
        where = self._where(lines)
        found: dict[str, NDArray[Any]] = {"line": lines}
        for name in IDS:
            if name in columns:
                found[name] = self._codes[name].number(columns[name], where)
        found["position"] = _floats(columns["position"], "position", where)
        clicked = columns["clicked"]
        if type(clicked[0]) is str:
            clicked = [CLICKED.get(one, one) for one in clicked]
        found["clicked"] = _floats(clicked, "clicked", where)
        if "dwell" in columns:
            dwell = [np.nan if one in ("", None) else one for one in columns["dwell"]]
            found["dwell"] = _floats(dwell, "dwell", where)
        check_numbers(found, where)
        return found

    def _text_blocks(self) -> Iterator[Block]:
        with open_lines(self.path) as lines:
            blocks = iter(lines)
            block, first = next(blocks, (memoryview(b""), 1))
            text = _decoded(block, self._title, first)
            if not text.strip():
                raise ValueError(f"{self._title} is empty: a log has a header or JSON objects")
            if text.lstrip().startswith("["):
                raise ValueError(
                    f"{self._title} begins with a JSON array: write one object per line, without "
                    "brackets and commas around them"
                )
            if text.lstrip().startswith("{"):
                yield from self._json_blocks(blocks, text)
            else:
                yield from self._csv_blocks(blocks, text)

    def _csv_blocks(self, blocks: Blocks, text: str) -> Iterator[Block]:
        header, _, rest = text.partition("\n")
        names = next(csv.reader([header]), [])
        places = self._places(names)
        for rows, numbers in _lines(blocks, rest, 2, self._title):
            found = self._split(rows, numbers, len(names))
            taken = [*zip(*found, strict=True)]
            columns = {name: taken[place] for name, place in places.items()}
            yield columns, np.array(numbers, dtype=np.int64)

    def _split(self, rows: list[str], numbers: list[int], n_fields: int) -> list[list[str]]:
        """Fields of each row of CSV."""
        found: list[list[str]] = []
        with suppress(csv.Error):  # found again in the loop below, with its line
            found = [*csv.reader(rows, strict=True)]
            if len(found) == len(rows) and {*map(len, found)} == {n_fields}:
                return found
        found = []
        reader = csv.reader(rows, strict=True)
        try:
            for fields in reader:
                if reader.line_num > len(found) + 1:
                    raise csv.Error("a line break within quotes is not supported")
                if len(fields) != n_fields:
                    raise csv.Error(f"{len(fields)} fields; the header has {n_fields}")
                found.append(fields)
        except csv.Error as error:
            raise ValueError(f"{self._title}, line {numbers[len(found)]}: {error}") from None
        return found

    def _json_blocks(self, blocks: Blocks, text: str) -> Iterator[Block]:
        places: dict[str, int] | None = None
        for lines, numbers in _lines(blocks, text, 1, self._title):
            rows = [
                json_object(line, f"{self._title}, line {number}")
                for line, number in zip(lines, numbers, strict=True)
            ]
            if places is None:
                places = {**self._places([*rows[0]]), "dwell": 0}  # optional, for clicks only
            columns = {}
            for name in places:
                key = self._names[name]
                if name == "dwell":
                    columns[name] = [row.get(key) for row in rows]
                    continue
                try:
                    columns[name] = [row[key] for row in rows]
                except KeyError:
                    at = next(i for i, row in enumerate(rows) if key not in row)
                    raise ValueError(
                        f"{self._title}, line {numbers[at]} has no field {key!r}"
                    ) from None
            yield columns, np.array(numbers, dtype=np.int64)

    def _parquet_blocks(self) -> Iterator[Block]:
        arrow = pyarrow_of(os.fsdecode(self.path))
        try:
            with arrow.parquet.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False) as file:
                places = self._places(file.schema_arrow.names)
                wanted = [self._names[name] for name in places]
                row = 0
                for batch in file.iter_batches(1 << 16, columns=wanted):
                    if not batch.num_rows:
                        continue
                    lines = np.arange(row, row + batch.num_rows)
                    row += batch.num_rows
                    columns = {}
                    for name in places:
                        columns[name] = batch.column(self._names[name]).to_pylist()
                    yield columns, lines
        except (arrow.ArrowException, OSError) as error:
            raise ValueError(f"{self._title} is damaged, or pyarrow cannot read it: {error}") from (
                error
            )

    def _places(self, names: list[str]) -> dict[str, int]:
        """Places of the columns in the file; ValueError if a required one is missing."""
        places = {}
        for name, called in self._names.items():
            if names.count(called) > 1:
                raise ValueError(
                    f"{self._title} has {names.count(called)} columns {called!r}: rename all but "
                    f"that of the {name}"
                )
            if called in names:
                places[name] = names.index(called)
            elif name in self._wanted:
                raise ValueError(
                    f"{self._title} has no column {called!r}; it has {', '.join(names)}: name the "
                    f"column of the {name} by columns={{{name!r}: ...}}"
                )
        return places


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, int]]:
    """Lines of text that are not blank, and their numbers."""
    name = title(path)
    with open_lines(path) as lines:
        for rows, numbers in _lines(iter(lines), "", 1, name):
            yield from zip(rows, numbers, strict=True)


def json_object(line: str, where: str) -> dict[str, Any]:
    """The object of a line of JSON; ValueError that begins with ``where``."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    except RecursionError:
        raise ValueError(f"{where}: JSON is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"{where}: expected a JSON object, found {type(found).__name__}")
    return found


def _lines(
    blocks: Blocks, text: str, first: int, name: str
) -> Iterator[tuple[list[str], list[int]]]:
    """Non-blank lines with their numbers, of a text and the blocks after it."""
    while True:
        lines = text.split("\n")[:-1]
        for start in range(0, len(lines), LINES):
            some = lines[start : start + LINES]
            numbers = [*range(first + start, first + start + len(some))]
            if not all(map(str.strip, some)):
                full = [i for i, line in enumerate(some) if line.strip()]
                some, numbers = [some[i] for i in full], [numbers[i] for i in full]
            if some:
                yield some, numbers
        block, first = next(blocks, (memoryview(b""), 0))
        if not first:
            return
        text = _decoded(block, name, first)


def _decoded(block: memoryview, name: str, first: int) -> str:
    data = bytes(block)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        raise ValueError(f"{name}, line {line}: not UTF-8: {error.reason}") from None


def _floats(values: Any, name: str, where: Callable[[int], str]) -> NDArray[np.float64]:
    try:
        return np.fromiter(map(float, values), np.float64, len(values))
    except (TypeError, ValueError):
        for at, one in enumerate(values):
            try:
                float(one)
            except (TypeError, ValueError):
                raise ValueError(f"{where(at)}: {name} must be a number; found {one!r}") from None
        raise


def _joined(blocks: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
