"""``rankcore cv``: cross-validate a learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from rankcore.cli.files import (
    Columns,
    ColumnsOption,
    FeaturesOption,
    JsonOption,
    LabelOption,
    ManyDataArgument,
    QidOption,
    QuietOption,
    ZeroBasedOption,
    needed_queries,
    read_many,
)
from rankcore.cli.learning import (
    EpochsOption,
    ModelOption,
    ParamsOption,
    SeedOption,
    SetOption,
    choose,
    fit,
)
from rankcore.cli.scaling import ScaleOption, check_scale, scaled, scaler_for
from rankcore.cli.terminal import ProgressBar, print_facts, progress_bar

if TYPE_CHECKING:
    import numpy as np


def cv(
    data: ManyDataArgument,
    model: ModelOption = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts of the queries, or of the rows.")] = 5,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Ranking measure of the queries left out: ndcg@10, map ... (repeatable).",
        ),
    ] = None,
    epochs: EpochsOption = None,
    shuffle: Annotated[
        bool | None,
        typer.Option(help="Whether to visit the examples in a new order in each pass."),
    ] = None,
    scale: ScaleOption = "none",
    seed: SeedOption = 0,
    set_: SetOption = None,
    params: ParamsOption = None,
    zero_based: ZeroBasedOption = False,
    features: FeaturesOption = None,
    label: LabelOption = None,
    query: QidOption = None,
    columns: ColumnsOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Cross-validate: fit on all parts but one and measure on that one, in turn."""
    import numpy as np

    from rankcore.metrics.names import parse
    from rankcore.metrics.tables import fold_table

    check_scale(scale)
    for name in metric or []:
        parse(name)
    choice = choose(model, epochs, shuffle, seed, set_, params)
    choice.check()
    taken = Columns.of(label, query, columns)
    with progress_bar(quiet) as bar:
        X, y, qid = read_many(data, zero_based, features, "--features", bar, taken)
        learner = choice.learner(qid)
        if learner.ranks_queries or metric:
            qid = needed_queries(qid, data[0])
        of_queries = learner.ranks_queries or bool(metric)
        parts = split(y, qid if of_queries else None, folds, seed)
        found = []
        for number, (train, test) in enumerate(parts, 1):
            bar.note = f"fold {number} of {folds}"
            found.append(
                measure(
                    choice.make(learner),
                    scaler_for(scale, learner, X[train]),
                    (X, y, qid),
                    (train, test),
                    bar,
                    metric,
                    ranker=learner.ranks_queries,
                )
            )
    names = list(found[0])
    values = np.array([[one[name] for name in names] for one in found])
    unit = "queries" if of_queries else "rows"
    if as_json:
        summary = {
            name: {"mean": float(column.mean()), "deviation": float(column.std(ddof=1))}
            for name, column in zip(names, values.T, strict=True)
        }
        print_facts({"model": learner.name, "folds": found, "summary": summary}, as_json)
        return
    caption = f"{learner.name}: on the {unit} of each fold, learned from the others"
    table = fold_table(names, values, caption)
    if Console().is_terminal:
        Console().print(table.rich())
    else:
        print(table)


def split(
    y: np.ndarray, qid: np.ndarray | None, folds: int, seed: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn from and rows left out; queries stay whole, labels are stratified."""
    import warnings

    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    from rankcore.model_selection import QueryKFold

    X = np.zeros((y.size, 1))
    if qid is not None:
        return list(QueryKFold(folds, shuffle=True, random_state=seed).split(X, y, qid=qid))
    if y.size < folds:
        raise ValueError(f"--folds {folds} requires as many rows; found {y.size}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        parts = StratifiedKFold(folds, shuffle=True, random_state=seed)
        return list(parts.split(X, y))


def measure(
    estimator: Any,
    scaler: Any,
    data: tuple[Any, np.ndarray, np.ndarray | None],
    part: tuple[np.ndarray, np.ndarray],
    bar: ProgressBar,
    metrics: list[str] | None,
    *,
    ranker: bool,
) -> dict[str, float]:
    """Learn from some rows, and measure on others; rankers by ranking measures."""
    from rankcore._core.inputs import find_classes

    (X, y, qid), (train, test) = data, part
    learned, left_out = X[train], X[test]
    if scaler is not None:
        learned, left_out = scaled(scaler, learned, fit=True), scaled(scaler, left_out)
    fit(estimator, learned, y[train], bar, qid=qid[train] if ranker and qid is not None else None)
    return measured(
        estimator,
        (left_out, y[test], None if qid is None else qid[test]),
        metrics,
        ranker=ranker,
        classes=find_classes(y),
    )


def measured(
    estimator: Any,
    data: tuple[Any, np.ndarray, np.ndarray | None],
    metrics: list[str] | None,
    *,
    ranker: bool,
    classes: np.ndarray | None = None,
) -> dict[str, float]:
    """Measures of a fitted learner on rows: ranking measures, or those of predicted labels."""
    from rankcore._core.inputs import encode
    from rankcore.metrics import accuracy_within, rank_loss
    from rankcore.metrics.evaluation import DEFAULT_MEASURES, evaluate
    from rankcore.metrics.scorers import ranking_scores

    rows, y, qid = data
    if ranker or metrics:
        scores = ranking_scores(estimator, rows, qid)
        return dict(evaluate(y, scores, qid=qid, metrics=metrics or DEFAULT_MEASURES))
    classes = estimator.ranks_ if classes is None else classes
    ranks, predicted = encode(y, classes), encode(estimator.predict(rows), classes)
    return {
        "rank_loss": rank_loss(ranks, predicted),
        "accuracy": accuracy_within(ranks, predicted, 0),
        "within_1_rank": accuracy_within(ranks, predicted, 1),
    }
