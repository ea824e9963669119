"""``rankcore predict``: a label or a score for each line of a file, or a TREC run."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.options import DataArgument, ModelArgument, QuietOption, UnlabelledLayout
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import label_text

if TYPE_CHECKING:
    from rankcore.cli.rows import Rows


def predict(
    *,
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path | None, Writes(), typer.Option("--output", "-o", help="Write here instead of stdout.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the scores behind the labels.")
    ] = False,
    probabilities: Annotated[
        bool,
        typer.Option(
            "--probabilities",
            help="Print the probability of each rank, lowest first, for a model of train "
            "--calibrate or --model ordinal-boost.",
        ),
    ] = False,
    run: Annotated[
        Path | None,
        Writes(),
        typer.Option(
            metavar="RUN",
            help="Write a TREC run instead: the documents of each query by descending score, named "
            "by 'docid = NAME' in comments, or by their line within the query.",
        ),
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Tag of the run.", show_default="name of MODEL")
    ] = None,
    with_input: Annotated[
        bool, typer.Option("--with-input", help="Print each line of DATA after its prediction.")
    ] = False,
    layout: UnlabelledLayout,
    quiet: QuietOption = False,
) -> None:
    """Predict labels or scores; labels in the file are ignored."""
    if run is not None and (output is not None or scores or probabilities or with_input):
        raise ValueError("--run writes queries, documents and scores: no other output can be added")
    if scores and probabilities:
        raise ValueError("--scores and --probabilities are two outputs: pass one of them")
    if with_input and data == "-":
        raise ValueError("--with-input reads DATA again: name a file, not standard input")
    from rankcore._core.labels import by_rank
    from rankcore.cli.models import Model, load_with_rows

    # Scores with labels, and those of queries, require the learner.
    opened = Model.load if scores or run is not None else Model.open
    layout = replace(layout, labelled=False, docid=run is not None)
    (loaded,), rows = load_with_rows([model], data, layout, quiet, opened)
    learned = loaded.learned
    X = loaded.scaled(rows.X)
    in_queries = getattr(learned, "combine", "score") == "rank"
    if run is not None or in_queries:
        rows.check_queries(data)
    if run is not None:
        _write_run(run, learned, replace(rows, X=X), tag or model.stem)
        return
    lines: Iterable[str]
    if probabilities:
        if not loaded.has_probabilities:
            raise ValueError(
                f"{model} has no probabilities: train it with --calibrate cumulative or "
                "--model ordinal-boost"
            )
        lines = map(_joined, by_rank(learned, learned.predict_proba(X)).tolist())
    elif loaded.ranks_queries:
        scored = learned.predict(X, qid=rows.qid) if in_queries else learned.predict(X)
        lines = map(repr, scored.tolist())
    elif scores:
        if hasattr(learned, "project"):
            outputs = learned.project(X)
        else:
            outputs = by_rank(learned, learned.decision_function(X))
        lines = map(_joined, outputs.reshape(X.shape[0], -1).tolist())
    else:
        lines = (label_text(label) for label in learned.predict(X).tolist())
    if with_input:
        lines = (f"{line}\t{text}" for line, text in zip(lines, _rows_of_text(data), strict=True))
    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
        return
    from rankcore.datasets.streams import writable

    with writable(output) as stream:
        for line in lines:
            stream.write(f"{line}\n".encode("utf-8", "surrogateescape"))


def _joined(numbers: list[float]) -> str:
    return " ".join(map(repr, numbers))


def _write_run(path: Path, learned: Any, rows: Rows, tag: str) -> None:
    """Write the scores of queries as a TREC run."""
    import numpy as np

    from rankcore.cli.trec import document_names
    from rankcore.datasets import Run, write_run
    from rankcore.metrics.scorers import ranking_scores

    qid = rows.qid
    ids = document_names(rows.qid, rows.ids)
    scores = np.asarray(ranking_scores(learned, rows.X, qid), dtype=np.float64)
    write_run(Run(qid.astype(str), ids, scores, tag), path)


def _rows_of_text(data: str) -> Iterator[str]:
    """Yield the lines of a file with examples: no comments, and no header of a table."""
    from rankcore.cli.tables import is_text_table
    from rankcore.datasets.streams import open_lines

    table = is_text_table(data)
    in_header = table
    with open_lines(data) as blocks:
        for text, _ in blocks:
            for line in bytes(text).split(b"\n"):
                if not (line if table else line.partition(b"#")[0]).strip():
                    continue
                if not in_header:
                    yield line.rstrip(b"\r").decode("utf-8", "surrogateescape")
                in_header = False
