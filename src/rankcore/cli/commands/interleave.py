"""``rankcore interleave``: interleaved lists of several runs, and comparisons by clicks."""

from __future__ import annotations

import csv
import sys
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.paths import Reads

if TYPE_CHECKING:
    from rankcore.datasets import Run

METHODS = ("team_draft", "probabilistic")
_COLUMNS = ("query", "impression", "ranker", "clicked")


def interleave(
    files: Annotated[
        list[Path],
        Reads(),
        typer.Argument(
            help="Two rankings or more, TREC runs or CSV with query, document, and perhaps rank or "
            "score; or the CSV file of lists with clicks."
        ),
    ],
    method: Annotated[
        str, typer.Option(help="How to make lists: team_draft or probabilistic.")
    ] = "team_draft",
    length: Annotated[
        int | None, typer.Option(min=1, help="Documents of a list; by default of the shortest run.")
    ] = None,
    impressions: Annotated[int, typer.Option(min=1, help="Lists of each query.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the first list; each next list uses the next seed.")
    ] = 0,
    alpha: Annotated[
        float, typer.Option(help="Probability of a false alarm at any time, over all pairs.")
    ] = 0.05,
) -> None:
    """Print interleaved lists as CSV; or, for such a file with clicks, which ranker is better."""
    from rankcore.cli.trec import is_run

    if len(files) == 1 and not is_run(files[0]):
        _print_results(files[0], alpha)
    else:
        _print_lists(files, method, length, impressions, seed)


def _print_lists(
    files: list[Path], method: str, length: int | None, impressions: int, seed: int
) -> None:
    from rankcore._core.params import check_option
    from rankcore.cli.click_files import read_ranking
    from rankcore.cli.trec import distinct
    from rankcore.interleaving import Probabilistic, TeamDraft

    check_option(method, "method", METHODS)
    if len(files) < 2:
        raise ValueError(f"interleave requires two runs or more; got {files[0]} alone")
    runs = [_by_query(read_ranking(path)) for path in files]
    names = distinct(files, lambda path: path.stem)
    queries = [query for query in runs[0] if all(query in run for run in runs)]
    left_out = len({query for run in runs for query in run}) - len(queries)
    if left_out:
        print(f"{left_out} queries are not in all runs: omitted", file=sys.stderr)
    maker: Any = TeamDraft() if method == "team_draft" else Probabilistic()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["query", "impression", "position", "document", "ranker"])
    for query in queries:
        for _ in range(impressions):
            shown = maker.interleave([run[query] for run in runs], length=length, seed=seed)
            owned = zip(shown.documents, shown.owners.tolist(), strict=True)
            for position, (document, owner) in enumerate(owned, 1):
                writer.writerow([query, seed, position, document, names[owner]])
            seed += 1


def _by_query(run: Run) -> dict[str, list[str]]:
    """Group documents by query, in the order of trec_eval."""
    return {
        query: sorted(scores, key=lambda document: (scores[document], document), reverse=True)
        for query, scores in run.to_dict().items()
    }


def _print_results(path: Path, alpha: float) -> None:
    import numpy as np

    from rankcore.interleaving import preference, sequential_test

    clicks, days = _read_clicks(path)
    rankers = sorted({ranker for impression in clicks for ranker in impression})
    if len(rankers) < 2:
        raise ValueError(f"{path} must have two rankers or more; got {', '.join(rankers)}")
    ends = [i for i in range(1, len(days) + 1) if i == len(days) or days[i] != days[i - 1]]
    pairs = [*combinations(rankers, 2)]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["a", "b", "day", "impressions", "preference", "low", "high", "p_value", "winner"]
    )
    for a, b in pairs:
        credit = np.array(
            [(impression.get(a, 0.0), impression.get(b, 0.0)) for impression in clicks]
        )
        result = sequential_test(preference(credit), looks=ends, alpha=alpha / len(pairs))
        for i, end in enumerate(ends):
            winner = result.winner_at(i)
            named = "" if winner is None else (a, b)[winner]
            figures = [f"{x[i]:.4f}" for x in (result.mean, result.low, result.high)]
            p = f"{min(1.0, result.p_value[i] * len(pairs)):.3g}"
            writer.writerow([a, b, days[end - 1], end, *figures, p, named])


def _read_clicks(path: Path) -> tuple[list[dict[str, float]], list[str]]:
    """Read the clicks on each ranker's documents, and the day, of each impression."""
    from rankcore.clicks.log import check_clicked
    from rankcore.clicks.reading import clicks_of
    from rankcore.datasets.table_files import TableFile

    credits: dict[tuple[str, str], dict[str, float]] = {}
    days: list[str] = []
    table = TableFile(path, {name: name for name in (*_COLUMNS, "day")}, _COLUMNS)
    for columns, lines in table:
        where = table.where(lines)
        clicked = clicks_of(columns["clicked"], where)
        check_clicked(clicked, where)
        day_of_row = columns.get("day", [""] * lines.size)
        keys = zip(map(str, columns["query"]), map(str, columns["impression"]), strict=True)
        rows = zip(keys, columns["ranker"], clicked.tolist(), day_of_row, strict=True)
        for at, (key, ranker, click, day) in enumerate(rows):
            if ranker in ("", None):
                raise ValueError(f"{where(at)}: ranker must not be empty")
            if key not in credits:
                credits[key] = {}
                days.append(str(day))
            of = credits[key]
            of[str(ranker)] = of.get(str(ranker), 0.0) + click
    if not credits:
        raise ValueError(f"{path}: at least one impression is required; got none")
    return [*credits.values()], days
