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
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a row cache, or check one."""
    from rankcore.cli.rows import open_blocks
    from rankcore.datasets.row_cache import CachedRows

    if check == (output is not None):
        raise typer.BadParameter("give either --output or --check", param_hint="--output")
    start = perf_counter()
    if check:
        rows = open_blocks(files, Layout())
        if not isinstance(rows, CachedRows):
            raise ValueError(
                f"{files[0]} is not a row cache: --check compares the checksums of one"
            )
        rows.check()
    else:
        with progress_bar(quiet):
            rows = open_blocks(files, layout, output, "float32" if float32 else "float64")
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
