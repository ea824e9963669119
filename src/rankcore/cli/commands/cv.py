"""``rankcore cv``: cross-validate a learner."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from rankcore._core.warning import warns_once
from rankcore.cli.learning import Choice
from rankcore.cli.options import (
    JsonOption,
    Layout,
    ManyDataArgument,
    QuietOption,
    WeightsOption,
)
from rankcore.cli.scaling import Scale, ScaleOption
from rankcore.cli.terminal import print_facts, print_table, progress_bar


def cv(
    data: ManyDataArgument,
    choice: Choice,
    layout: Layout,
    folds: Annotated[
        int, typer.Option(min=2, help="Number of folds of the queries, or of the rows.")
    ] = 5,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Measure on the held-out rows: rank_loss, rps, accuracy ...; of queries "
            "ndcg@10, map ... (repeatable).",
        ),
    ] = None,
    scale: ScaleOption = Scale.NONE,
    weights: WeightsOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Cross-validate: fit on all folds but one and measure on that one, in turn."""
    import numpy as np

    from rankcore.cli.measuring import measure, separated, split
    from rankcore.cli.rows import read_many
    from rankcore.metrics.tables import fold_table

    ranking, _ = separated(metric)
    choice.check(own=True)
    with progress_bar(quiet) as bar:
        rows = read_many(data, layout, bar).weighted(weights)
        learner = choice.learner(rows, own=True)
        rows.check_values(learner.estimator, learner.scale_invariant)
        if learner.ranks_queries or ranking:
            rows.check_queries(data[0])
        parts = split(rows, folds, choice.seed)

        @warns_once
        def measure_folds() -> list[dict[str, float]]:
            values = []
            for number, part in enumerate(parts, 1):
                bar.note = f"fold {number} of {folds}"
                estimator = choice.make(learner)
                values.append(measure(estimator, learner, scale, rows, part, metric))
            return values

        measured_folds = measure_folds()
    names = list(measured_folds[0])
    values = np.array([[fold[name] for name in names] for fold in measured_folds])
    if as_json:
        summary: dict[str, Any] = {
            name: {"mean": float(column.mean()), "deviation": float(column.std(ddof=1))}
            for name, column in zip(names, values.T, strict=True)
        }
        print_facts({"model": learner.name, "folds": measured_folds, "summary": summary}, as_json)
        return
    unit = "queries" if rows.in_queries else "rows"
    caption = f"{learner.name}: on the {unit} of each fold, fitted to the other folds"
    table = fold_table(names, values, caption)
    print_table(table, table.rich())
