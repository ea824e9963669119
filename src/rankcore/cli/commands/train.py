"""``rankcore train``: train a model on files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from rankcore.cli.checkpoint import Checkpoint
from rankcore.cli.learning import Choice, fit
from rankcore.cli.options import (
    JsonOption,
    Layout,
    ManyDataArgument,
    MetricOption,
    QuietOption,
    ValidOption,
    WeightsOption,
)
from rankcore.cli.paths import Writes
from rankcore.cli.registry import Learner
from rankcore.cli.scaling import Scale, ScaleOption, on_scale, scale_fact
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
        """Return the parameters of early stopping."""
        params = estimator.get_params(deep=False)
        planned = params.get("max_iter") or params.get("n_estimators") or 1
        if planned == "auto":
            from rankcore.boosting.params import Schedule
            from rankcore.ordinal.parameters import AUTO_PASSES

            by_rounds = "max_iter" not in params
            planned = Schedule.of(estimator).n_estimators if by_rounds else AUTO_PASSES
        patience = self.patience or params.get("early_stopping_rounds") or max(1, planned // 5)
        more = {"early_stopping_rounds": patience}
        return more if self.metric is None else {**more, "eval_metric": self.metric}


def train(
    data: ManyDataArgument,
    output: Annotated[
        Path,
        Writes(),
        typer.Option("--output", "-o", metavar="MODEL", help="The model file to write."),
    ],
    choice: Choice,
    held_out: HeldOut,
    layout: Layout,
    streaming: Streaming,
    checkpoint: Checkpoint,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="cumulative|isotonic",
            help="Also fit the probability of each rank, on held-out folds, which "
            "takes six fits: see predict --probabilities.",
        ),
    ] = None,
    scale: ScaleOption = Scale.NONE,
    weights: WeightsOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a learner to files and save it."""
    held_out.check(calibrate)
    checkpoint.check()
    choice.check()
    if [*data, held_out.valid].count("-") > 1:
        raise ValueError("standard input can be read once: name files for the others")
    source = Source(data, layout, streaming, held_out.valid, choice.classes)
    if source.on_disk and calibrate is not None:
        raise ValueError("--calibrate requires all rows in memory; got a stream")
    if checkpoint.checkpoint is not None and calibrate is not None:
        raise ValueError("--calibrate makes several fits, of which --checkpoint cannot save one")

    import rankcore
    from rankcore.cli.models import name_features
    from rankcore.cli.rows import same_width
    from rankcore.io.scaled import with_scaler

    with progress_bar(quiet) as bar:
        start = perf_counter()
        rows = source.open(bar).weighted(weights)
        valid = source.open_held_out(bar)
        learner = choice.learner(rows)
        estimator = _estimator(choice, learner, held_out, calibrate)
        if learner.ranks_queries:
            for part, name in zip([rows, *valid], [data[0], held_out.valid], strict=False):
                part.check_queries(str(name))
        if valid:
            rows, *valid = same_width(rows, *valid)
        scaler, (rows, *valid) = on_scale(scale, learner, rows, *valid)
        shown = [bar.measured] if valid else []
        saving = checkpoint.saving(partial(with_scaler, scaler))
        saved = checkpoint.load(estimator)
        estimator, resuming = _resumed(estimator, saved)
        callbacks = [*shown, *saving, *resuming]
        fit(estimator, learner, rows, *valid, callbacks=callbacks)
        seconds = perf_counter() - start
        if saved is not None and "warm_start" in estimator.get_params():
            estimator.set_params(warm_start=False)
        model = name_features(with_scaler(scaler, estimator), layout.listed_names)
        rankcore.save(model, output)
    facts: dict[str, Any] = {"model": learner.name}
    if choice.name is None:
        facts["chosen_because"] = rows.origin_of_queries
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


def _resumed(estimator: Any, saved: Any) -> tuple[Any, list[Any]]:
    """Return the estimator to fit, and callbacks that resume from a saved model."""
    from rankcore._core.monitor import Resume

    if saved is None:
        return estimator, []
    wanted = estimator.get_params(deep=False)
    if "warm_start" not in wanted:
        return estimator, [Resume(saved)]
    return saved.set_params(**{**wanted, "warm_start": True}), []


def _held_out_facts(estimator: Any) -> dict[str, Any]:
    """Return the measures on held-out rows after the epoch or round of the saved model."""
    measured = {name: estimator.history_[name] for name in estimator._state.validation}
    best = getattr(estimator, "best_iteration_", None)
    at = -1 if best is None else best - 1
    facts: dict[str, Any] = {name: float(values[at]) for name, values in measured.items()}
    if best is not None:
        facts |= {"best_iteration": int(best), "iterations": len(next(iter(measured.values())))}
    return facts
