"""``rankcore tune``: random search within a time limit; saves the best model."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from rankcore._core.replacing import replacing
from rankcore.cli.commands.cv import measure, measured, split
from rankcore.cli.files import (
    Columns,
    ColumnsOption,
    FeaturesOption,
    JsonOption,
    LabelOption,
    ManyDataArgument,
    QidOption,
    QuietOption,
    ValidOption,
    ZeroBasedOption,
    needed_queries,
    read_data,
    read_many,
)
from rankcore.cli.learning import Choice, MetricOption, SeedOption, SetOption, choose, fit
from rankcore.cli.paths import Writes
from rankcore.cli.registry import Learner, find_learner
from rankcore.cli.scaling import ScaleOption, check_scale, scaled, scaler_for
from rankcore.cli.search_space import FOR_LABELS, FOR_QUERIES, draw
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar

if TYPE_CHECKING:
    import numpy as np

Data = tuple[Any, Any, Any]
COLUMNS = ("trial", "model", "value", "seconds", "params")
# Seconds between two writes of the table of trials, each of the whole file.
WRITTEN = 5.0


def tune(
    data: ManyDataArgument,
    output: Annotated[
        Path, Writes(), typer.Option("--output", "-o", metavar="MODEL", help="The best model.")
    ],
    minutes: Annotated[float, typer.Option(min=0.001, help="When no more trial begins.")] = 5.0,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help="Learner whose parameters are drawn (repeatable). By default "
            f"{', '.join(FOR_QUERIES)} if every line has qid:, else {', '.join(FOR_LABELS)}.",
        ),
    ] = None,
    valid: ValidOption = None,
    metric: MetricOption = None,
    folds: Annotated[
        int, typer.Option(min=2, help="Parts to cross-validate by, without --valid.")
    ] = 5,
    trials: Annotated[
        Path | None, Writes(), typer.Option(metavar="CSV", help="Write all trials to this file.")
    ] = None,
    scale: ScaleOption = "none",
    seed: SeedOption = 0,
    set_: SetOption = None,
    zero_based: ZeroBasedOption = False,
    features: FeaturesOption = None,
    label: LabelOption = None,
    query: QidOption = None,
    columns: ColumnsOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Try learners and parameters at random, and save the model that measures best."""
    check_scale(scale)
    choice = choose(None, None, None, seed, set_, None)
    metric = _one(metric)
    names = list(model or [])
    for name in names:
        replace(choice, name=name).check()
        draw(name, _generator(seed))

    import rankcore
    from rankcore.io.scaled import with_scaler
    from rankcore.metrics.names import greater_is_better

    taken = Columns.of(label, query, columns)
    with progress_bar(quiet) as bar, ExitStack() as stack:
        X, y, qid = read_many(data, zero_based, features, "--features", bar, taken)
        held_out = None
        if valid is not None:
            held_out = read_data(valid, zero_based, None, "DATA", bar, taken)
            width = max(X.shape[1], held_out[0].shape[1])
            for rows in (X, held_out[0]):
                rows.resize((rows.shape[0], width))
        names = names or list(FOR_LABELS if qid is None else FOR_QUERIES)
        learners = [find_learner(name) for name in names]
        of_queries = learners[0].ranks_queries
        if any(learner.ranks_queries != of_queries for learner in learners):
            raise ValueError("--model names learners of labels and of queries: choose either kind")
        if of_queries and metric == "rank_loss":
            raise ValueError("rank_loss is of labels, not of queries: choose a ranking measure")
        if of_queries or metric not in (None, "rank_loss"):
            qid = needed_queries(qid, data[0])
            if held_out is not None:
                needed_queries(held_out[2], str(valid))
        metric = metric or ("ndcg@10" if of_queries else "rank_loss")
        sign = 1 if greater_is_better(metric) else -1
        task = _Task((X, y, qid), held_out, metric, scale, folds, seed, bar, of_queries)
        table = stack.enter_context(_Trials(trials)) if trials is not None else None
        best: tuple[float, Learner, dict[str, Any], Any] | None = None
        count, start = 0, perf_counter()
        try:
            for learner, drawn in _draws(learners, choice, seed):
                elapsed = perf_counter() - start
                if best is not None and elapsed >= 60 * minutes:
                    break
                bar.working(f"trial {count + 1}", elapsed, 60 * minutes, "s")
                begun = perf_counter()
                value, fitted = task.trial(learner, choice, drawn)
                count += 1
                if table is not None:
                    seconds = f"{perf_counter() - begun:.3f}"
                    table.add([count, learner.name, value, seconds, json.dumps(drawn)])
                if best is None or sign * value > sign * best[0]:
                    best = (value, learner, drawn, fitted)
                    bar.note = f"best {metric} {value:.4f} ({learner.name})"
        except KeyboardInterrupt:
            if best is None:
                raise
            complain(f"interrupted: saving the best of {count} trials")
        assert best is not None
        value, learner, drawn, fitted = best
        scaler, estimator = fitted or task.on_all(learner, choice, drawn)
        rankcore.save(with_scaler(scaler, estimator), output)
    facts = {
        "trials": count,
        "model": learner.name,
        **drawn,
        f"{'valid' if held_out is not None else 'cross_validated'}_{metric}": value,
        "seconds": perf_counter() - start,
        "path": str(output),
    }
    print_facts(facts, as_json)


def _one(metric: str | None) -> str | None:
    """The selected measure, as results name it."""
    from rankcore.metrics.names import parse

    if metric is None or metric == "rank_loss":
        return metric
    titles = [title for title, _ in parse(metric)]
    if len(titles) > 1:
        raise ValueError(f"{metric} is {len(titles)} measures: choose one, such as {titles[0]}")
    return titles[0]


def _generator(seed: int) -> np.random.Generator:
    import numpy as np

    return np.random.default_rng(seed)


def _draws(
    learners: list[Learner], choice: Choice, seed: int
) -> Iterator[tuple[Learner, dict[str, Any]]]:
    """The learners in turn: first with their defaults, then with parameters drawn."""
    for learner in learners:
        yield learner, {}
    rng = _generator(seed)
    while True:
        for learner in learners:
            drawn = draw(learner.name, rng)
            yield learner, {name: x for name, x in drawn.items() if name not in choice.settings}


class _Trials:
    """A CSV file of trials, replaced as a whole every few seconds and at the end.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._path, self._text = path, io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(COLUMNS)
        self._written, self._changed = -inf, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._changed:
            self._write()

    def add(self, row: list[Any]) -> None:
        """Append a trial."""
        self._writer.writerow(row)
        self._changed = True
        if perf_counter() - self._written > WRITTEN:
            self._write()

    def _write(self) -> None:
        with replacing(self._path) as stream:
            stream.write(self._text.getvalue().encode())
        self._written, self._changed = perf_counter(), False


@dataclass
class _Task:
    """Measurement of trials on held-out rows or by cross-validation."""

    data: Data
    held_out: Data | None
    metric: str
    scale: str
    folds: int
    seed: int
    bar: ProgressBar
    of_queries: bool

    def trial(
        self, learner: Learner, choice: Choice, drawn: dict[str, Any]
    ) -> tuple[float, tuple[Any, Any] | None]:
        """The measure, and the scaler and learner that were fitted to all rows, if they were."""
        import numpy as np

        X, y, qid = self.data
        if self.held_out is None:
            values = [
                measure(
                    self._make(learner, choice, drawn),
                    scaler_for(self.scale, learner, X[train]),
                    self.data,
                    (train, test),
                    self.bar,
                    self._metrics(),
                    ranker=self.of_queries,
                )[self.metric]
                for train, test in split(y, qid, self.folds, self.seed)
            ]
            return float(np.mean(values)), None
        fitted = self.on_all(learner, choice, drawn)
        scaler, estimator = fitted
        assert self.held_out is not None
        X, y, qid = self.held_out
        rows = X if scaler is None else scaled(scaler, X)
        found = measured(estimator, (rows, y, qid), self._metrics(), ranker=self.of_queries)
        return found[self.metric], fitted

    def on_all(self, learner: Learner, choice: Choice, drawn: dict[str, Any]) -> tuple[Any, Any]:
        """Scaler and learner, fitted to all rows to learn from."""
        X, y, qid = self.data
        estimator = self._make(learner, choice, drawn)
        scaler = scaler_for(self.scale, learner, X)
        rows = X if scaler is None else scaled(scaler, X, fit=True)
        fit(estimator, rows, y, self.bar, qid=qid if self.of_queries else None)
        return scaler, estimator

    def _make(self, learner: Learner, choice: Choice, drawn: dict[str, Any]) -> Any:
        return replace(choice, settings={**drawn, **choice.settings}).make(learner)

    def _metrics(self) -> list[str] | None:
        return None if self.metric == "rank_loss" else [self.metric]
