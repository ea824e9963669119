"""``rankcore rate``: ratings of items from a table of comparisons."""

from __future__ import annotations

import csv
import sys
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from typing import Annotated, Any, TextIO

import typer

from rankcore.cli.paths import Reads

# Rows in memory at a time.
_BLOCK = 200_000


def rate(
    games: Annotated[
        str, Reads(), typer.Argument(help="A CSV file with a header; - for standard input.")
    ],
    winner: Annotated[str, typer.Option(help="Column of the item that won.")] = "winner",
    loser: Annotated[str, typer.Option(help="Column of the item that lost.")] = "loser",
    degree: Annotated[
        str | None, typer.Option(help="Column of the degree of the win, 0 to 1; 0.5 for a tie.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Column of the judge.")] = None,
    scale: Annotated[float, typer.Option(help="Standard deviation of the prior of ratings.")] = 1.5,
    disconnected: Annotated[
        str,
        typer.Option(help="If comparisons do not connect all items: raise, or rely on the prior."),
    ] = "raise",
) -> None:
    """Print ratings with standard errors as CSV, the best item first."""
    from rankcore.preference.games import Tally

    columns = {"winners": winner, "losers": loser, "degree": degree, "judge": judge}
    used = {name: column for name, column in columns.items() if column is not None}
    tally = Tally(first_row=1)
    title = "standard input" if games == "-" else games
    with _open(games) as lines:
        reader = csv.reader(lines, strict=True)
        try:
            header = next(reader, [])
            places = {name: _place(header, column) for name, column in used.items()}
            while block := [*islice(reader, _BLOCK)]:
                tally.add(**_table(block, places))
        except csv.Error as error:
            raise ValueError(f"{title}, line {reader.line_num}: {error}") from error
        except ValueError as error:
            raise ValueError(f"{title}: {error}") from error
    ratings = tally.ratings(scale=scale, disconnected=disconnected)
    if judge is not None:
        for name, share in zip(ratings.judges, ratings.reliability, strict=True):
            print(f"{judge} {name}: reliability {share:.3g}", file=sys.stderr)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["item", "rating", "standard_error", "comparisons"])
    errors = ratings.standard_errors
    for k in ratings.ranking.tolist():
        figures = (f"{ratings.scores[k]:.6g}", f"{errors[k]:.6g}", f"{ratings.n_answers[k]:g}")
        writer.writerow([ratings.items[k], *figures])


def _open(games: str) -> AbstractContextManager[TextIO]:
    if games == "-":
        return nullcontext(sys.stdin)
    return open(games, newline="", encoding="utf-8-sig")  # without byte order mark


def _place(header: list[str], column: str) -> int:
    if header.count(column) != 1:
        found = ", ".join(header) or "none"
        raise ValueError(f"a header with one column {column!r} is required; found: {found}")
    return header.index(column)


def _table(block: list[list[str]], places: dict[str, int]) -> dict[str, Any]:
    """The columns of a block; missing values of short rows are empty."""
    table: dict[str, Any] = {
        name: [row[k] if k < len(row) else "" for row in block] for name, k in places.items()
    }
    if "degree" in table:
        try:
            table["degree"] = [float(text) for text in table["degree"]]
        except ValueError as error:
            raise ValueError(f"degree must be a number: {error}") from error
    return table
