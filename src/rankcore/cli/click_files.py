"""Click logs and tables about them, for ``rankcore clicks``."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore._core.files import atomic_write
from rankcore.cli.paths import Reads
from rankcore.cli.terminal import ProgressBar, print_table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankcore.clicks import ClickLog
    from rankcore.datasets import Run

LogArgument = Annotated[
    Path,
    Reads(),
    typer.Argument(
        metavar="LOG",
        help="Impressions in CSV with a header, JSON lines or Parquet, text also gzip, bzip2 or "
        "Zstandard: query, document, position from 1, clicked; perhaps session. With --ubi events.",
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="NAME=COLUMN",
        help="Another name of a column: document=sku (repeatable).",
    ),
]
UbiOption = Annotated[
    Path | None,
    Reads(),
    typer.Option(
        metavar="QUERIES",
        help="Queries of OpenSearch's User Behavior Insights, JSON lines; LOG has the events.",
    ),
]
OnErrorOption = Annotated[
    str,
    typer.Option(
        "--on-error",
        help="Rows that repeat a document or a position of their session: raise, or drop them but "
        "the first.",
    ),
]


@dataclass
class Impressions:
    """A log, read in windows in each pass, with the counts of the last pass."""

    log: Iterable[ClickLog]
    bar: ProgressBar
    words: bool = False  # whether to convert integer ids to strings
    impressions: int = 0
    sessions: int = 0
    clicks: int = 0

    def __iter__(self) -> Iterator[Any]:
        self.impressions = self.sessions = self.clicks = 0
        for window in self.log:
            self.impressions += len(window)
            self.sessions += window.bounds.size - 1
            self.clicks += int(window.clicked.sum())
            yield _Words(window) if self.words else window
            self.bar.reading(self.impressions)

    def facts(self) -> dict[str, Any]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in ("impressions", "sessions", "clicks")}


class _Words:
    """A window of a log with ids converted to strings, like those of runs."""

    def __init__(self, log: ClickLog) -> None:
        self.query, self.document = log.query, log.document
        self.position, self.clicked = log.position, log.clicked
        self._log = log

    @property
    def queries(self) -> NDArray[np.str_]:
        return self._log.queries.astype(str)

    @property
    def documents(self) -> NDArray[np.str_]:
        return self._log.documents.astype(str)


def open_log(
    path: Path, columns: Sequence[str] | None, ubi: Path | None, on_error: str, bar: ProgressBar
) -> Impressions:
    """Open a log given by options."""
    from rankcore._core.params import check_option
    from rankcore.clicks import open_clicks, read_ubi

    check_option(on_error, "on_error", ("raise", "drop"))
    dropping: Any = on_error
    if ubi is not None:
        if columns:
            raise ValueError("--ubi defines the columns: --column cannot be used with it")
        return Impressions([read_ubi(ubi, path, on_error=dropping)], bar)
    if str(path) == "-" or path.is_fifo():
        raise ValueError(
            f"{path}: logs are read several times, which a pipe does not allow: write it to a file"
        )
    names = {}
    for item in columns or []:
        name, sign, column = item.partition("=")
        if not sign or not column:
            raise ValueError(f"--column must be NAME=COLUMN; got {item!r}")
        names[name] = column
    return Impressions(open_clicks(path, columns=names, on_error=dropping), bar)


def read_table(
    path: Path, kinds: Mapping[str, type], optional: Collection[str] = ()
) -> tuple[dict[str, list[Any]], list[str]]:
    """Read columns of numbers and words; return also the name of each row in errors."""
    from rankcore._core.ids import check_ids
    from rankcore.datasets.table_files import TableFile, floats

    table = TableFile(path, {name: name for name in kinds}, {*kinds} - {*optional})
    columns_by_name: dict[str, list[Any]] = {}
    places: list[str] = []
    kinds_of_ids: dict[str, type | None] = {}
    for columns, lines in table:
        where = table.where(lines)
        for name, values in columns.items():
            if kinds[name] is str:
                kinds_of_ids[name] = check_ids(values, name, where, kinds_of_ids.get(name))
                values = map(str, values)
            else:
                values = floats(values, name, where)
            columns_by_name.setdefault(name, []).extend(values)
        places += map(where, range(lines.size))
    if not places:
        raise ValueError(f"{path} has no rows below its header")
    return columns_by_name, places


def read_ranking(path: Path) -> Run:
    """Read a TREC run, or a table ordered by rank, by score or by its rows."""
    import numpy as np

    from rankcore.cli.trec import is_table
    from rankcore.datasets import Run, read_run

    if not is_table(path):
        return read_run(path)
    kinds = {"query": str, "document": str, "rank": float, "score": float}
    table, places = read_table(path, kinds, {"rank", "score"})
    if "rank" in table:
        score = -np.array(table["rank"])
    else:
        score = np.array(table.get("score", -np.arange(len(places))), dtype=np.float64)
    bad = ~np.isfinite(score)
    if bad.any():
        at = int(bad.argmax())
        raise ValueError(f"{places[at]}: rank or score must be finite; got {abs(score[at]):g}")
    first: dict[tuple[str, str], int] = {}
    for at, pair in enumerate(zip(table["query"], table["document"], strict=True)):
        if first.setdefault(pair, at) != at:
            raise ValueError(
                f"{places[at]}: document {pair[1]!r} of query {pair[0]!r} occurs twice, first in "
                f"{places[first[pair]]}: remove one of them"
            )
    return Run(np.array(table["query"]), np.array(table["document"]), score)


def rows_of(columns: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table as dicts."""
    for row in zip(*(column.tolist() for column in columns.values()), strict=True):
        yield dict(zip(columns, row, strict=True))


def print_rows(rows: list[dict[str, Any]], as_json: bool, facts: dict[str, Any], name: str) -> None:
    """Print rows as CSV, as a table on a terminal, or within one JSON object beside facts."""
    if as_json:
        print(json.dumps({**facts, name: rows}))
        return
    if not sys.stdout.isatty():
        write_rows(rows, sys.stdout)
        return
    from rich.table import Table

    table = Table()
    for column in rows[0]:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(*map(_text, row.values()))
    print_table(None, table)


def write_rows(rows: Iterable[dict[str, Any]], stream: Any) -> None:
    """Write rows as CSV with a header."""
    writer = csv.writer(stream, lineterminator="\n")
    for i, row in enumerate(rows):
        if not i:
            writer.writerow(row)
        writer.writerow(map(_text, row.values()))


def save_rows(rows: Iterable[dict[str, Any]], path: Path) -> None:
    """Write rows as CSV to a file, which appears whole or not at all."""
    with atomic_write(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        write_rows(rows, text)
        text.flush()
        text.detach()


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
