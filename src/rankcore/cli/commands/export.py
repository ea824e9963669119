"""``rankcore export``: write a model in the format of another program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rankcore.cli.options import (
    ModelArgument,
    NamesOption,
    NumberedLayout,
    QuietOption,
    read_names,
)
from rankcore.cli.paths import Reads, Writes
from rankcore.cli.terminal import complain, progress_bar

# Maximum number of rows to compare, and of values: 400 MB of doubles.
MOST, MOST_VALUES = 100_000, 50_000_000


def _header(path: Path, given: dict[str, Any]) -> list[Path]:
    written = given["format"] == "c" or (given["format"] is None and path.suffix.lower() == ".c")
    return [path.with_suffix(".h")] if written else []


def export(
    *,
    model: ModelArgument,
    output: Annotated[
        Path,
        Writes(beside=_header),
        typer.Argument(metavar="OUTPUT", help="The file to write; for c also a header."),
    ],
    data: Annotated[
        str | None,
        Reads(),
        typer.Argument(
            metavar="DATA",
            help="svmlight/LETOR file, such as the training file: its rows are scored with the "
            "written file, and the scores compared.",
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="c, onnx, xgboost, xgboost_dump, elasticsearch, opensearch, solr, ranklib, sql or "
            "vespa; by default that of the ending of OUTPUT: .c, .onnx or .sql.",
        ),
    ] = None,
    names: NamesOption = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the model in the other program; prefix in C.")
    ] = None,
    layout: NumberedLayout,
    quiet: QuietOption = False,
) -> None:
    """Export a model, and compare the outputs of the other program on rows."""
    import rankcore
    from rankcore.cli.models import Model
    from rankcore.cli.rows import read, some_rows
    from rankcore.exporters.checking import CHECKED, missing_engine
    from rankcore.exporters.described import describe
    from rankcore.exporters.exporting import format_of

    format = format_of(output) if format is None else format
    loaded = rankcore.load(model)
    X = None
    missing = missing_engine(format)
    options: dict[str, Any] = {} if name is None else {"name": name}
    feature_names = read_names(names)
    try:
        if data is not None and format in CHECKED and missing is None:
            width = describe(loaded).n_features
            opened = Model.load(model)  # it takes the names from the learners
            layout = replace(
                layout,
                features=width,
                feature_names=opened.names,
                known_categories=opened.categories,
                expected=str(model),
                labelled=False,
            )
            with progress_bar(quiet) as bar:
                rows = read(data, layout, bar).X
                few = min(MOST, MOST_VALUES // width + 1, rows.shape[0])
                X = some_rows(rows, range(few))
        rankcore.export(loaded, output, format, feature_names=feature_names, check=X, **options)
    except (TypeError, ModuleNotFoundError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    if X is None:
        why = "there is no engine for it here" if data else "name a file of rows"
        if data and missing is not None:
            why = f"the check requires {missing}: pip install {missing}"
        complain(f"not checked: {why}")
