"""Columns of files: CSV with a header, JSON lines and Parquet, in blocks of rows."""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore.datasets.parquet_rows import BUFFER, is_parquet, pyarrow_of
from rankcore.datasets.streams import open_lines, title

# Lines whose fields are Python objects at a time.
LINES = 1 << 13

# Text in bytes, and the number of its first line.
Blocks = Iterator[tuple[memoryview, int]]
# Columns of values as in a file, and the line (in Parquet the row) of each row.
Block = tuple[dict[str, Any], NDArray[np.int64]]


class TableFile:
    """Columns of a file, recognised by its first bytes: an iterable of blocks of rows.

    It is CSV with a header, JSON lines or Parquet; text may be compressed. ``names`` are columns
    and their names in the file. Without ``required`` ones it raises ValueError, which ``hint`` ends
    with the column's ``{name}``; other columns are left out. JSON objects may lack ``gaps``: None.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        names: Mapping[str, str],
        required: Collection[str],
        *,
        gaps: Collection[str] = (),
        hint: str = "",
    ) -> None:
        self.path = path
        self.title = title(path)
        self._names = names
        self._required = required
        self._gaps = gaps
        self._hint = hint
        self._parquet = is_parquet(path)

    def __iter__(self) -> Iterator[Block]:
        for columns, lines in self._parquet_blocks() if self._parquet else self._text_blocks():
            for name, values in columns.items():
                if not {list, dict}.isdisjoint(map(type, values)):
                    at = next(i for i, value in enumerate(values) if isinstance(value, list | dict))
                    raise ValueError(
                        f"{self.where(lines)(at)}: {self._names[name]} must be a word or a number; "
                        f"got {_shown(values[at])}"
                    )
            yield columns, lines

    def where(self, lines: NDArray[np.int64]) -> Callable[[int], str]:
        """Return a function that names the rows of a block in errors."""
        word = "row" if self._parquet else "line"
        return lambda i: f"{self.title}, {word} {lines[i]}"

    def _text_blocks(self) -> Iterator[Block]:
        with open_lines(self.path) as lines:
            blocks = iter(lines)
            text, first = _begun(blocks, self.title)
            if text.startswith("["):
                raise ValueError(
                    f"{self.title} begins with a JSON array: write one object per line, without "
                    "brackets and commas around them"
                )
            if text.startswith("{"):
                yield from self._json_blocks(blocks, text, first)
            else:
                yield from self._csv_blocks(blocks, text, first)

    def _csv_blocks(self, blocks: Blocks, text: str, first: int) -> Iterator[Block]:
        header, _, rest = text.partition("\n")
        names = [name.strip() for name in next(csv.reader([header]), [])]
        places = self._places(names)
        for rows, numbers in _lines(blocks, rest, first + 1, self.title):
            fields = self._split(rows, numbers, len(names))
            taken = [*zip(*fields, strict=True)]
            columns = {name: taken[place] for name, place in places.items()}
            yield columns, np.array(numbers, dtype=np.int64)

    def _split(self, rows: list[str], numbers: list[int], n_fields: int) -> list[list[str]]:
        """Split rows of CSV into fields."""
        split_rows: list[list[str]] = []
        with suppress(csv.Error):  # found again in the loop below, with its line
            split_rows = [*csv.reader(rows, strict=True)]
            if len(split_rows) == len(rows) and {*map(len, split_rows)} == {n_fields}:
                return split_rows
        split_rows = []
        reader = csv.reader(rows, strict=True)
        try:
            for fields in reader:
                if reader.line_num > len(split_rows) + 1:
                    raise csv.Error("a line break within quotes is not supported")
                if len(fields) != n_fields:
                    raise csv.Error(f"{len(fields)} fields; the header has {n_fields}")
                split_rows.append(fields)
        except csv.Error as error:
            raise ValueError(f"{self.title}, line {numbers[len(split_rows)]}: {error}") from None
        return split_rows

    def _json_blocks(self, blocks: Blocks, text: str, first: int) -> Iterator[Block]:
        places: dict[str, int] | None = None
        for lines, numbers in _lines(blocks, text, first, self.title):
            rows = [
                json_object(line, f"{self.title}, line {number}")
                for line, number in zip(lines, numbers, strict=True)
            ]
            if places is None:
                places = {**self._places([*rows[0]]), **dict.fromkeys(self._gaps, 0)}
            columns = {}
            for name in places:
                key = self._names[name]
                columns[name] = [row.get(key) for row in rows]
                lacking = name not in self._gaps and None in columns[name]
                for row, number in zip(rows if lacking else (), numbers, strict=False):
                    if key not in row:
                        raise ValueError(f"{self.title}, line {number} has no field {key!r}")
            yield columns, np.array(numbers, dtype=np.int64)

    def _parquet_blocks(self) -> Iterator[Block]:
        arrow = pyarrow_of(os.fsdecode(self.path))
        try:
            with arrow.parquet.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False) as file:
                places = self._places(file.schema_arrow.names)
                wanted = [self._names[name] for name in places]
                row = 0
                for batch in file.iter_batches(1 << 16, columns=wanted):
                    columns = {
                        name: batch.column(called).to_pylist()
                        for name, called in zip(places, wanted, strict=True)
                    }
                    if batch.num_rows:
                        yield columns, np.arange(row, row + batch.num_rows)
                    row += batch.num_rows
        except (arrow.ArrowException, OSError) as error:
            damaged = f"{self.title} is damaged, or pyarrow cannot read it: {error}"
            raise ValueError(damaged) from error

    def _places(self, names: list[str]) -> dict[str, int]:
        """Find the columns in the file; raise ValueError if a required one is missing."""
        places = {}
        for name, called in self._names.items():
            if names.count(called) > 1:
                raise ValueError(
                    f"{self.title} has {names.count(called)} columns {called!r}: rename all but "
                    f"that of the {name}"
                )
            if called in names:
                places[name] = names.index(called)
            elif name in self._required:
                listed = ", ".join(names) or "none"
                apart = len(names) == 1 and any(sign in listed for sign in ";\t|")
                raise ValueError(
                    f"{self.title} has no column {called!r}; it has {listed}"
                    + (": separate columns by commas" if apart else self._hint.format(name=name))
                )
        return places


def _begun(blocks: Blocks, name: str) -> tuple[str, int]:
    """Return the text from the first line that is not blank, and that line's number."""
    for block, first in blocks:
        text = _decoded(block, name, first)
        begun = text.lstrip()
        if begun:
            return begun, first + text.count("\n", 0, len(text) - len(begun))
    raise ValueError(f"{name} is empty: it must have a header or JSON objects")


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, int]]:
    """Yield the lines of text that are not blank, and their numbers."""
    name = title(path)
    with open_lines(path) as lines:
        for rows, numbers in _lines(iter(lines), "", 1, name):
            yield from zip(rows, numbers, strict=True)


def json_object(line: str, where: str) -> dict[str, Any]:
    """Parse a line that holds a JSON object; errors begin with ``where``."""
    try:
        parsed = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where}: {error}") from None
    except ValueError:  # of an integer
        raise ValueError(
            f"{where}: an integer has more than {sys.get_int_max_str_digits()} digits; write it as "
            "a string if it is an id"
        ) from None
    except RecursionError:
        raise ValueError(f"{where}: JSON is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError(f"{where}: expected a JSON object; got {type(parsed).__name__}")
    return parsed


def _lines(
    blocks: Blocks, text: str, first: int, name: str
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the non-blank lines of a text and of the blocks after it, with their numbers."""
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


def _shown(value: Any) -> str:
    """Return the first letters of a value, for errors."""
    return f"{value!r:.60}" if not isinstance(value, str) else repr(value[:60])


def floats(values: Any, name: str, where: Callable[[int], str]) -> NDArray[np.float64]:
    """Convert a column to numbers; raise ValueError that names the first invalid row."""
    try:
        return np.fromiter(map(float, values), np.float64, len(values))
    except (TypeError, ValueError, OverflowError):
        for at, value in enumerate(values):
            try:
                float(value)
            except OverflowError:
                raise ValueError(
                    f"{where(at)}: {name} must be a number in the range of float64; got an "
                    "integer beyond it"
                ) from None
            except (TypeError, ValueError):
                shown = _shown(value)
                raise ValueError(f"{where(at)}: {name} must be a number; got {shown}") from None
        raise
