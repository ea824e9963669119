"""``rankcore train``: train a model on files."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from rankcore.cli.checkpoint import Checkpoint, checkpoint_of
from rankcore.cli.learning import Choice, Scale, ScaleOption, fit, on_scale, scale_fact
from rankcore.cli.options import (
    JsonOption,
    Layout,
    ManyDataArgument,
    MetricOption,
    QuietOption,
    ValidOption,
)
from rankcore.cli.paths import Writes
from rankcore.cli.registry import Learner
from rankcore.cli.source import Source, Streaming
from rankcore.cli.terminal import print_facts, progress_bar


@dataclass(frozen=True)
class HeldOut:
    """Options of held-out rows."""

    valid: ValidOption = None
    metric: MetricOption = None
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes or rounds without improvement on --valid before training stops; "
            "by default a fifth of them.",
        ),
    ] = None

    def check(self, calibrate: str | None) -> None:
        """Raise for options without held-out rows, or with two kinds of them."""
        for option in ("metric", "patience"):
            if self.valid is None and getattr(self, option) is not None:
                message = "requires held-out rows: --valid FILE"
                raise typer.BadParameter(message, param_hint=f"--{option}")
        if calibrate not in (None, "cumulative", "isotonic"):
            message = f"{calibrate!r} is neither cumulative nor isotonic"
            raise typer.BadParameter(message, param_hint="--calibrate")
        if self.valid is not None and calibrate is not None:
            message = "holds out rows itself: omit --valid"
            raise typer.BadParameter(message, param_hint="--calibrate")

    def stopping(self, estimator: Any) -> dict[str, Any]:
        """Parameters of early stopping."""
        params = estimator.get_params(deep=False)
        planned = params.get("max_iter") or params.get("n_estimators") or 1
        if planned == "auto":
            from rankcore.boosting._params import Schedule
            from rankcore.ordinal._parameters import AUTO_PASSES

            of_rounds = "max_iter" not in params
            planned = Schedule.of(estimator).n_estimators if of_rounds else AUTO_PASSES
        patience = self.patience or params.get("early_stopping_rounds") or max(1, planned // 5)
        more = {"early_stopping_rounds": patience}
        return more if self.metric is None else {**more, "eval_metric": self.metric}


def train(
    data: ManyDataArgument,
    output: Annotated[
        Path,
        Writes(beside=lambda path, given: [checkpoint_of(path)]),
        typer.Option("--output", "-o", metavar="MODEL", help="The model file to write."),
    ],
    choice: Choice,
    held_out: HeldOut,
    layout: Layout,
    streaming: Streaming,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="cumulative|isotonic",
            help="Also fit the probability of each rank, on held-out folds, which "
            "takes six fits: see predict --probabilities.",
        ),
    ] = None,
    scale: ScaleOption = Scale.NONE,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a learner to files and save it."""
    held_out.check(calibrate)
    choice.check()
    if [*data, held_out.valid].count("-") > 1:
        raise ValueError("standard input can be read once: name files for the others")
    source = Source(data, layout, streaming, scale, held_out.valid)
    if source.on_disk and calibrate is not None:
        raise ValueError("--calibrate requires all rows in memory; found a stream")

    import rankcore
    from rankcore.cli.rows import same_width
    from rankcore.io.scaled import with_scaler

    classes, checkpoint = streaming.labels(), None
    if source.on_disk:
        checkpoint = Checkpoint(checkpoint_of(output), source, streaming.resume)
    with progress_bar(quiet) as bar:
        start = perf_counter()
        rows, valid = source.open(bar), source.open_held_out(bar)
        learner = choice.learner(rows)
        estimator = _estimator(choice, learner, held_out, calibrate)
        if learner.ranks_queries:
            for one, name in zip([rows, *valid], [data[0], held_out.valid], strict=False):
                one.check_queries(str(name))
        if valid:
            same_width(rows, *valid)
        scaler, parts = on_scale(scale, learner, rows, *valid)
        shown = [bar.measured] if valid else []
        pausing: AbstractContextManager[list[Any]] = nullcontext([])
        if checkpoint is not None:
            pausing = checkpoint.pausing(estimator, learner)
        with pausing as pauses:
            fit(estimator, learner, *parts, callbacks=[*shown, *pauses], classes=classes)
            seconds = perf_counter() - start
            rankcore.save(with_scaler(scaler, estimator), output)
    facts: dict[str, Any] = {"model": learner.name}
    if choice.name is None:
        facts["chosen_since"] = rows.origin_of_queries
    if rows.n_rows is not None:
        facts["examples"] = rows.n_rows
    facts |= {"features": estimator.n_features_in_, **scale_fact(scaler)}
    if learner.ranks_queries and rows.qid is not None:
        facts["queries"] = len(set(rows.qid.tolist()))
    facts |= estimator._fit_summary()
    if valid:
        facts |= _held_out_facts(estimator)
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)


def _estimator(choice: Choice, learner: Learner, held_out: HeldOut, calibrate: Any) -> Any:
    estimator = choice.make(learner)
    if held_out.valid is not None:
        return choice.make(learner, **held_out.stopping(estimator))
    if calibrate is None:
        return estimator
    if learner.ranks_queries:
        raise ValueError(
            f"--calibrate requires ordered labels, which {learner.name} does not predict"
        )
    from rankcore.ordinal.calibrated import CalibratedOrdinal

    return CalibratedOrdinal(estimator, method=calibrate, random_state=choice.seed)


def _held_out_facts(estimator: Any) -> dict[str, Any]:
    """Measures on held-out rows of the pass or round of the model."""
    measured = {name: estimator.history_[name] for name in estimator._state.validation}
    best = getattr(estimator, "best_iteration_", None)
    at = -1 if best is None else best - 1
    facts: dict[str, Any] = {name: float(values[at]) for name, values in measured.items()}
    if best is not None:
        facts |= {"best_iteration": int(best), "iterations": len(next(iter(measured.values())))}
    return facts
