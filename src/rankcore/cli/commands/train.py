"""``rankcore train``: learn a model from files."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import typer

from rankcore.cli.checkpoint import checkpoint_of
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
from rankcore.cli.learning import (
    EpochsOption,
    MetricOption,
    ModelOption,
    ParamsOption,
    SeedOption,
    SetOption,
    choose,
    fit,
    held_out_facts,
    stopping,
)
from rankcore.cli.paths import Writes
from rankcore.cli.scaling import ScaleOption, check_scale, scale_fact, scaled, scaler_for
from rankcore.cli.streaming import (
    CacheOption,
    ClassesOption,
    HeldOut,
    OnDisk,
    ResumeOption,
    StreamOption,
    on_disk,
    train_on_disk,
)
from rankcore.cli.terminal import print_facts, progress_bar


def train(
    data: ManyDataArgument,
    output: Annotated[
        Path,
        Writes(beside=lambda path, given: [checkpoint_of(path)]),
        typer.Option("--output", "-o", metavar="MODEL", help="The model file to write."),
    ],
    model: ModelOption = None,
    epochs: EpochsOption = None,
    shuffle: Annotated[
        bool | None,
        typer.Option(help="Whether to visit the examples in a new order in each pass."),
    ] = None,
    valid: ValidOption = None,
    metric: MetricOption = None,
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Passes or rounds without a better measure of --valid after which training ends; "
            "by default a fifth of them.",
        ),
    ] = None,
    calibrate: Annotated[
        str | None,
        typer.Option(
            metavar="cumulative|isotonic",
            help="Learn the probability of each rank, too, from held-out parts of the rows, which "
            "takes six fits: see predict --probabilities.",
        ),
    ] = None,
    scale: ScaleOption = "none",
    seed: SeedOption = 0,
    set_: SetOption = None,
    params: ParamsOption = None,
    zero_based: ZeroBasedOption = False,
    features: FeaturesOption = None,
    stream: StreamOption = False,
    cache: CacheOption = None,
    classes: ClassesOption = None,
    resume: ResumeOption = False,
    label: LabelOption = None,
    query: QidOption = None,
    columns: ColumnsOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a learner to files and save it."""
    check_scale(scale)
    if valid is None and (metric is not None or patience is not None):
        option = "--metric" if metric is not None else "--patience"
        raise typer.BadParameter("requires held-out rows: --valid FILE", param_hint=option)
    if calibrate not in (None, "cumulative", "isotonic"):
        message = f"{calibrate!r} is neither cumulative nor isotonic"
        raise typer.BadParameter(message, param_hint="--calibrate")
    if valid is not None and calibrate is not None:
        raise typer.BadParameter(
            "holds rows out itself: leave --valid out", param_hint="--calibrate"
        )
    choice = choose(model, epochs, shuffle, seed, set_, params)
    choice.check()
    if [*data, valid].count("-") > 1:
        raise ValueError("standard input can be read once: name a file for the others")
    given = [stream, resume, *(one is not None for one in (cache, classes, label, query, columns))]
    if any(given) or on_disk(data):
        if calibrate is not None:
            raise ValueError("--calibrate requires all rows in memory; found a stream")
        stop = None if valid is None else HeldOut(valid, metric, patience)
        names = Columns.of(label, query, columns)
        disk = OnDisk(data, zero_based, features, cache, classes, names, scale, stop)
        train_on_disk(disk, output, choice, resume, quiet, as_json)
        return

    import rankcore
    from rankcore.io.scaled import with_scaler

    with progress_bar(quiet) as bar:
        X, y, qid = read_many(data, zero_based, features, "--features", bar)
        learner = choice.learner(qid)
        estimator = choice.make(learner)
        queries = needed_queries(qid, data[0]) if learner.ranks_queries else None
        if calibrate is not None:
            if learner.ranks_queries:
                raise ValueError(f"--calibrate is for ordered labels, which {learner.name} is not")
            estimator = rankcore.CalibratedOrdinal(
                estimator, method=calibrate, random_state=choice.seed
            )
        held_out = None
        if valid is not None:
            held_out = read_data(valid, zero_based, None, "DATA", bar)
            width = max(X.shape[1], held_out[0].shape[1])
            X.resize((X.shape[0], width))
            held_out[0].resize((held_out[0].shape[0], width))
            if learner.ranks_queries:
                needed_queries(held_out[2], valid)
            estimator = choice.make(learner, **stopping(estimator, metric, patience))
        start = perf_counter()
        scaler = scaler_for(scale, learner, X)
        rows = X if scaler is None else scaled(scaler, X, fit=True)
        if held_out is not None and scaler is not None:
            held_out = (scaled(scaler, held_out[0]), *held_out[1:])
        measured = fit(estimator, rows, y, bar, qid=queries, held_out=held_out)
        seconds = perf_counter() - start
        rankcore.save(with_scaler(scaler, estimator), output)
    facts: dict[str, Any] = {"model": learner.name}
    if choice.name is None:
        facts["chosen_since"] = "no line has qid:" if qid is None else "every line has qid:"
    facts |= {"examples": X.shape[0], "features": X.shape[1]}
    facts |= scale_fact(scaler)
    if queries is not None:
        facts["queries"] = len(set(queries.tolist()))
    facts |= estimator._fit_summary()
    if measured:
        facts |= held_out_facts(estimator, measured)
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)
