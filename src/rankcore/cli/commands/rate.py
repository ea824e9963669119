"""``rankcore rate``: a leaderboard of items from a log of games."""

from __future__ import annotations

import csv
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from rankcore.cli.paths import Reads, Writes


def rate(
    games: Annotated[
        str,
        Reads(),
        typer.Argument(
            help="A CSV file with a header, or JSON; .gz is read; - for standard input."
        ),
    ],
    first: Annotated[str, typer.Option(help="Column of the item shown first.")] = "model_a",
    second: Annotated[str, typer.Option(help="Column of the other item.")] = "model_b",
    winner: Annotated[
        str, typer.Option(help="Column of the outcome, or of the item that won.")
    ] = "winner",
    loser: Annotated[
        str | None, typer.Option(help="Column of the item that lost, instead of the two items.")
    ] = None,
    degree: Annotated[
        str | None,
        typer.Option(help="Column of the degree, 0 to 1, to which the winner or the first won."),
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Column of the judge.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of the weight of a game.")] = None,
    covariate: Annotated[
        list[str] | None,
        typer.Option(
            help="A difference whose effect is removed; its column, or those with _a, _b."
        ),
    ] = None,
    ties: Annotated[str, typer.Option(help="half, or davidson: an outcome of its own.")] = "half",
    level: Annotated[
        float, typer.Option(help="Probability that all intervals are right together.")
    ] = 0.95,
    scale: Annotated[float, typer.Option(help="Standard deviation of the prior of ratings.")] = 1.5,
    bootstrap: Annotated[int, typer.Option(help="Resamples for intervals; 0 for none.")] = 0,
    disconnected: Annotated[
        str,
        typer.Option(help="If comparisons do not connect all items: raise, or rely on the prior."),
    ] = "raise",
    output: Annotated[
        Path | None,
        Writes(),
        typer.Option("--output", "-o", help="A file for the leaderboard, not stdout."),
    ] = None,
) -> None:
    """Print ratings and places with simultaneous intervals as CSV, the best item first."""
    from rankcore.preference import read_games
    from rankcore.preference.ratings import check_level

    check_level(level)
    log = read_games(
        sys.stdin if games == "-" else games,
        first=first,
        second=second,
        winner=winner,
        loser=loser,
        degree=degree,
        judge=judge,
        weight=weight,
        covariates=covariate or (),
    )
    ratings = log.rate(ties=ties, scale=scale, bootstrap=bootstrap, disconnected=disconnected)
    _say(f"{len(log.first)} games of {len(ratings.items)} items")
    if log.n_self_play or log.n_missing:
        _say(f"dropped: {log.n_self_play} of an item with itself, {log.n_missing} with gaps")
    if ratings.position_bias is not None:
        _say(f"position bias {ratings.position_bias:+.3f} for the item shown first")
    if ratings.tie_probability is not None:
        _say(f"ties between equal items: {ratings.tie_probability:.3f}")
    for name, (effect, error) in ratings.effects.items():
        _say(f"{name}: effect {effect:.4g}, standard error {error:.2g}")
    if judge is not None:
        for name, reliability in zip(ratings.judges, ratings.reliability, strict=True):
            _say(f"{judge} {name}: reliability {reliability:.3f}")
    errors = dict(zip(ratings.items.tolist(), ratings.standard_errors.tolist(), strict=True))
    with nullcontext(sys.stdout) if output is None else output.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ["place", "item", "rating", "standard_error", "low", "high", "first_place",
             "last_place", "comparisons"]
        )  # fmt: skip
        for row in ratings.leaderboard(level):
            numbers = (f"{x:.6g}" for x in (row.rating, errors[row.item], row.low, row.high))
            places = row.first_place, row.last_place, f"{row.n_answers:g}"
            writer.writerow([row.place, row.item, *numbers, *places])


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)
