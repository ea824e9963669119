"""``rankcore stream``: predict the rows of files before they are learned, in one pass."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.learning import Choice
from rankcore.cli.options import (
    JsonOption,
    Layout,
    ManyDataArgument,
    Only,
    QuietOption,
    listed_labels,
)
from rankcore.cli.paths import Writes
from rankcore.cli.registry import FOR_LABELS, FOR_QUERIES, find_learner
from rankcore.cli.source import Source, Streaming
from rankcore.cli.terminal import finite, print_facts, progress_bar

if TYPE_CHECKING:
    from rankcore.cli.rows import Rows
    from rankcore.online import Chunk, StreamWindow


def stream(
    data: ManyDataArgument,
    choice: Choice,
    layout: Layout,
    streaming: Annotated[Streaming, Only(("cache",))],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Measure: rank_loss, rps, ...; of queries ndcg@10, map ..."
        ),
    ] = None,
    window: Annotated[
        int, typer.Option(min=1, help="Rows, or queries, between two lines of measures.")
    ] = 1000,
    delay: Annotated[
        int, typer.Option(min=0, help="Rows, or queries, between a chunk and its labels.")
    ] = 0,
    chunk: Annotated[
        int, typer.Option(min=1, help="Rows that are predicted before one of them is learned.")
    ] = 100,
    hashed: Annotated[
        int | None,
        typer.Option(
            "--hash",
            min=1,
            metavar="COLUMNS",
            help="DATA are JSON lines: hash their keys and texts to this many columns. Requires "
            "--classes for labels.",
        ),
    ] = None,
    drift: Annotated[
        bool,
        typer.Option(
            "--drift",
            help="Start again from the latest rows when ADWIN of river finds that the rank loss "
            "rises.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        Writes(),
        typer.Option("--output", "-o", metavar="MODEL", help="Save the model at the end."),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a learner progressively, and save it."""
    import rankcore
    from rankcore.online import DriftMonitor, evaluate

    choice.check()
    printer = _Printer(None if as_json else sys.stdout)
    with progress_bar(quiet) as bar:
        classes: Any = listed_labels(choice.classes)
        if hashed is None:
            source = Source(data, layout, _reading(data, layout, streaming))
            rows = source.open(bar)
            learner = choice.learner(rows)
            classes = _labels(rows) if classes is None else classes
            chunks = _chunks(rows, chunk, classes)
        else:
            by_query = FOR_LABELS if layout.qid is None else FOR_QUERIES
            learner = find_learner(choice.name or by_query)
            chunks = _hashed(data, layout, hashed, chunk)
        if learner.ranks_queries:
            classes = None
        elif classes is None:
            raise ValueError("--hash requires --classes, as the labels are not known in advance")
        estimator = choice.make(learner)
        if not hasattr(estimator, "partial_fit"):
            raise ValueError(f"--model {learner.name} does not learn streams; prank does")
        if learner.ranks_queries:
            chunks = _with_queries(chunks, learner.name)
        elif not hasattr(estimator, "predict_proba") and _of_probabilities(metric):
            raise ValueError(
                f"--metric: {', '.join(metric or ())} require probabilities, which --model "
                f"{learner.name} does not predict; logistic does"
            )
        if drift and learner.ranks_queries:
            raise ValueError(f"--drift requires labels, which {learner.name} does not predict")
        model = DriftMonitor(estimator) if drift else estimator
        evaluation = evaluate(
            model,
            chunks,
            metrics=metric,
            window=window,
            delay=delay,
            classes=classes,
            callbacks=[printer],
        )
    if not evaluation.windows:
        raise ValueError("DATA has no rows")
    facts: dict[str, Any] = {"model": learner.name}
    if isinstance(model, DriftMonitor):
        facts["drifts"] = model.drifts_
        estimator = model.estimator_
    if output is not None:
        rankcore.save(estimator, output)
        facts["path"] = str(output)
    if as_json:
        shown = [_as_json(window, evaluation.unit) for window in evaluation.windows]
        print_facts({**facts, "windows": shown}, as_json)
    elif len(facts) > 1:
        print_facts(facts, as_json)


class _Printer:
    """Callback that prints a line for each window, with tabs; nothing without a file."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.begun = False

    def __call__(self, window: StreamWindow) -> None:
        if self.file is None:
            return
        if not self.begun:
            overall = [f"{name} (overall)" for name in window.overall]
            print("\t".join(["seen", "seconds", *window.latest, *overall]), file=self.file)
            self.begun = True
        values = [*window.latest.values(), *window.overall.values()]
        shown = [str(window.seen), f"{window.seconds:.2f}", *(f"{value:.4f}" for value in values)]
        print("\t".join(shown), file=self.file, flush=True)


def _as_json(window: StreamWindow, unit: str) -> dict[str, Any]:
    return {
        unit: window.seen,
        "seconds": window.seconds,
        "latest": {name: finite(value) for name, value in window.latest.items()},
        "overall": {name: finite(value) for name, value in window.overall.items()},
    }


def _reading(data: list[str], layout: Layout, streaming: Streaming) -> Streaming:
    """Return the options of reading: a window at a time, except tables, which fit into memory."""
    from rankcore.cli.tables import is_table

    if any(is_table(name, layout) for name in data):
        return streaming
    return Streaming(stream=True, cache=streaming.cache)


def _labels(rows: Rows) -> Any:
    """Return all labels, in ascending order; raise ValueError for words."""
    from rankcore._core.labels import find_classes

    return rows.X.stats().labels if rows.on_disk else find_classes(rows.y)


def _chunks(rows: Rows, n_rows: int, classes: Any) -> Iterator[Chunk]:
    """Yield rows of files in order, in chunks of whole queries with at least ``n_rows`` rows."""
    import numpy as np

    from rankcore._core.kernels import as_matrix
    from rankcore._core.queries import group_rows
    from rankcore.cli.rows import some_rows
    from rankcore.online import Chunk

    if rows.on_disk:
        n_features = rows.X.n_features or rows.X.stats().n_features
        windows: Any = (
            (as_matrix(window.rows), window.labels, window.queries)
            for window in rows.X.windows(n_features, None)
        )
    else:
        windows = [(rows.X, rows.y, rows.qid)]
    dtype = np.asarray(classes).dtype
    for X, labels, qid in windows:
        y = labels.astype(dtype) if dtype.kind in "iu" else labels
        ends = np.arange(1, y.size + 1)
        if qid is not None:
            queries = group_rows(qid, y.size)
            if queries.rows is not None:
                raise ValueError("the rows of each query must be contiguous in a stream")
            ends = queries.bounds[1:]
            qid = np.repeat(np.arange(ends.size), np.diff(queries.bounds))
        first = 0
        while first < y.size:
            place = min(int(np.searchsorted(ends, first + n_rows)), ends.size - 1)
            part = slice(first, int(ends[place]))
            yield Chunk(some_rows(X, part), y[part], None if qid is None else qid[part])
            first = part.stop


def _of_probabilities(metrics: list[str] | None) -> bool:
    """Return whether some measures need probabilities; raise ValueError for unknown ones."""
    from rankcore.metrics import row_evaluation
    from rankcore.online.evaluation import OF_PROBABILITIES

    return metrics is not None and not OF_PROBABILITIES.isdisjoint(
        row_evaluation.row_measures(metrics)
    )


def _with_queries(chunks: Iterator[Chunk], name: str) -> Iterator[Chunk]:
    """Yield chunks; raise ValueError for one without queries."""
    for chunk in chunks:
        if chunk.qid is None:
            raise ValueError(
                f"--model {name} compares the documents of a query, and DATA has none: lines of "
                "text need qid:, tables and JSON lines --qid"
            )
        yield chunk


def _hashed(data: list[str], layout: Layout, n_features: int, n_rows: int) -> Iterator[Chunk]:
    """Yield the chunks of files of JSON lines."""
    from rankcore.online import hash_records

    for name in data:
        yield from hash_records(
            sys.stdin.buffer if name == "-" else name,
            layout.label or "label",
            n_features=n_features,
            rows_per_chunk=n_rows,
            qid=layout.qid,
        )
