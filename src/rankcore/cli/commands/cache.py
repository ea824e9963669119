"""``rankcore cache``: convert text or Parquet files to a directory of memory-mapped arrays."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from rankcore.cli.options import JsonOption, Layout, ManyDataArgument, QuietOption
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import print_facts, progress_bar


def cache(
    files: ManyDataArgument,
    layout: Layout,
    output: Annotated[
        Path,
        Writes(folder=True),
        typer.Option("--output", "-o", metavar="DIR", help="The directory to make."),
    ],
    float32: Annotated[
        bool, typer.Option("--float32", help="Keep values in 4 bytes instead of 8.")
    ] = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a row cache."""
    from rankcore.cli.rows import open_blocks

    start = perf_counter()
    with progress_bar(quiet):
        rows = open_blocks(files, layout, output, "float32" if float32 else "float64")
    stats = rows.stats()
    facts = {
        "examples": stats.n_rows,
        "features": stats.n_features,
        "labels": stats.labels.tolist(),
        "in_queries": stats.in_queries,
        "bytes": rows.size,
        "seconds": perf_counter() - start,
        "path": str(output),
    }
    print_facts(facts, as_json)
