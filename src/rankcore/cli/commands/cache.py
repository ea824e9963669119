"""``rankcore cache``: text or Parquet files as a directory of arrays that is mapped into memory."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from rankcore.cli.files import (
    Columns,
    ColumnsOption,
    JsonOption,
    LabelOption,
    ManyDataArgument,
    QidOption,
    QuietOption,
    ZeroBasedOption,
)
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import print_facts, progress_bar


def cache(
    files: ManyDataArgument,
    output: Annotated[
        Path | None,
        Writes(folder=True),
        typer.Option("--output", "-o", metavar="DIR", help="The directory to make."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare all checksums of the row cache DATA.")
    ] = False,
    float32: Annotated[
        bool, typer.Option("--float32", help="Keep values in 4 bytes instead of 8.")
    ] = False,
    label: LabelOption = None,
    query: QidOption = None,
    columns: ColumnsOption = None,
    zero_based: ZeroBasedOption = False,
    features: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features, if DATA may lack the last of them."),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a row cache, or check one."""
    from rankcore.datasets import open_rows
    from rankcore.datasets.row_cache import CachedRows
    from rankcore.progress import watch

    if check == (output is not None):
        raise typer.BadParameter("give either --output or --check", param_hint="--output")
    start = perf_counter()
    sources: Any = [sys.stdin.buffer if name == "-" else name for name in files]
    names = Columns.of(label, query, columns)
    if check:
        rows = open_rows(sources)
        if not isinstance(rows, CachedRows):
            raise ValueError(
                f"{files[0]} is not a row cache: --check compares the checksums of one"
            )
        rows.check()
    else:
        with (
            progress_bar(quiet) as bar,
            watch(bar.learning) if bar.visible else nullcontext(),
        ):
            rows = open_rows(
                sources,
                n_features=features,
                zero_based=zero_based,
                dtype="float32" if float32 else "float64",
                cache=output,
                label=names.label,
                qid=names.query,
                columns=names.features,
            )
    known = rows.facts()
    facts = {
        "examples": known.n_rows,
        "features": known.n_features,
        "labels": known.labels.tolist(),
        "in_queries": known.in_queries,
        "bytes": rows.size,
        "seconds": perf_counter() - start,
        "path": str(files[0] if check else output),
    }
    print_facts(facts, as_json)
