"""``rankcore train``: learn a model from a file."""

from __future__ import annotations

import ast
import sys
import warnings
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.files import (
    DataArgument,
    JsonOption,
    QuietOption,
    ZeroBasedOption,
    check_writable,
    needed_queries,
    read_data,
)
from rankcore.cli.registry import (
    EVERY_LEARNER,
    FOR_LABELS,
    FOR_QUERIES,
    Learner,
    find_learner,
)
from rankcore.cli.scaling import SCALES, scaled, scaler_for
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar

if TYPE_CHECKING:
    import numpy as np


def train(
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")
    ],
    model: Annotated[
        str | None,
        typer.Option(
            help="; ".join(f"{item.name}: {item.summary}" for item in EVERY_LEARNER)
            + f". By default {FOR_QUERIES} if every line has qid:, else {FOR_LABELS}."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, or rounds.")
    ] = None,
    shuffle: Annotated[
        bool | None,
        typer.Option(help="Whether to visit the examples in a new order in each pass."),
    ] = None,
    scale: Annotated[
        str,
        typer.Option(
            help="Put features on one scale, and keep how with the model: standard (mean 0, "
            "deviation 1), maxabs (greatest magnitude 1), auto (which of them suits), or none."
        ),
    ] = "none",
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; may be repeated."),
    ] = None,
    zero_based: ZeroBasedOption = False,
    features: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features, if DATA may lack the last of them."),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a learner to a file and save it."""
    if scale not in SCALES:
        raise typer.BadParameter(f"{scale!r} is none of {', '.join(SCALES)}", param_hint="--scale")
    settings = dict(map(_parse_setting, set_ or []))
    asked = None
    if model is not None:  # what is wrong with it is said before a file is read
        asked = _make(find_learner(model), epochs, shuffle, seed, settings)
    check_writable(output, data)

    import rankcore
    from rankcore.io.scaled import with_scaler

    with progress_bar(quiet) as bar:
        X, y, qid = read_data(data, zero_based, features, "--features", bar)
        learner = find_learner(model or (FOR_LABELS if qid is None else FOR_QUERIES))
        estimator = asked or _make(learner, epochs, shuffle, seed, settings)
        queries = {"qid": needed_queries(qid, data)} if learner.ranks_queries else {}
        start = perf_counter()
        scaler = scaler_for(scale, learner, X)
        rows = X if scaler is None else scaled(scaler, X, fit=True)
        try:
            _fit(estimator, rows, y, bar, **queries)
            seconds = perf_counter() - start
            rankcore.save(with_scaler(scaler, estimator), output)
        except TypeError as error:  # a parameter of a wrong type
            raise ValueError(str(error)) from error
    facts: dict[str, Any] = {"model": learner.name}
    if model is None:
        facts["chosen_since"] = "no line has qid:" if qid is None else "every line has qid:"
    facts |= {"examples": X.shape[0], "features": X.shape[1]}
    if scaler is not None:
        facts["scale"] = "maxabs" if type(scaler).__name__ == "MaxAbsScaler" else "standard"
    if learner.ranks_queries:
        facts["queries"] = len(set(queries["qid"].tolist()))
    facts |= estimator._fit_summary()
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)


def _make(
    learner: Learner, epochs: int | None, shuffle: bool | None, seed: int, settings: dict[str, Any]
) -> Any:
    """The estimator that the options ask for, its parameters such as a file can hold."""
    from rankcore.io.model_file import check_params

    known = learner.accepts()
    params: dict[str, Any] = {}
    if "random_state" in known:
        params["random_state"] = seed
    if epochs is not None:
        params["max_iter" if "max_iter" in known else "n_estimators"] = epochs
    if shuffle is not None:
        if "shuffle" not in known:
            raise ValueError(
                f"--shuffle is not for {learner.name}: it uses all examples in each round"
            )
        params["shuffle"] = shuffle
    params |= settings
    estimator = learner.make(**params)
    try:
        check_params(estimator)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return estimator


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, value  # a word, or what no parameter accepts


def _fit(estimator: Any, X: Any, y: np.ndarray, bar: ProgressBar, **queries: Any) -> None:
    from rankcore.progress import watch

    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for the result
        watch(bar.learning) if bar.visible else nullcontext(),
    ):
        warnings.simplefilter("always")
        estimator.fit(X, y, **queries)
    for warning in caught:
        complain(f"warning: {warning.message}")
