"""Shared by train, cv and tune: a learner by name, its settings, and fits with held-out rows."""

from __future__ import annotations

import ast
import sys
import tomllib
import warnings
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.paths import Reads
from rankcore.cli.registry import EVERY_LEARNER, FOR_LABELS, FOR_QUERIES, Learner, find_learner
from rankcore.cli.terminal import ProgressBar, complain

if TYPE_CHECKING:
    import numpy as np

    from rankcore.callbacks import Iteration

ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help=f"Learner: see the list below. By default {FOR_QUERIES} if every line has qid:, else "
        f"{FOR_LABELS}.",
    ),
]
EpochsOption = Annotated[int | None, typer.Option(min=1, help="Passes over the data, or rounds.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; may be repeated."),
]
ParamsOption = Annotated[
    Path | None,
    Reads(),
    typer.Option(
        metavar="TOML", help="File of parameters, NAME = VALUE; model = NAME is one of them."
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option("--metric", "-m", help="Measure of held-out rows: ndcg@10, map, rank_loss ..."),
]


@dataclass(frozen=True)
class Choice:
    """Settings from the options and a file of parameters.

    Attributes
    ----------
    name : str or None
        The learner's; None: by the data.
    epochs : int or None
    shuffle : bool or None
    seed : int
    settings : dict of str to object
    """

    name: str | None
    epochs: int | None
    shuffle: bool | None
    seed: int
    settings: dict[str, Any]

    def check(self) -> None:
        """Raise ValueError for invalid settings, before a file is read."""
        if self.name is not None:
            self.make(find_learner(self.name))

    def learner(self, qid: np.ndarray | None) -> Learner:
        """The learner for data with or without queries."""
        return find_learner(self.name or (FOR_LABELS if qid is None else FOR_QUERIES))

    def make(self, learner: Learner, **more: Any) -> Any:
        """The estimator, with such parameters as a file can hold; `more` where it has them."""
        from rankcore.io.parameters import check_params

        known = learner.accepts()
        params: dict[str, Any] = {name: value for name, value in more.items() if name in known}
        if "random_state" in known:
            params["random_state"] = self.seed
        if self.epochs is not None:
            params["max_iter" if "max_iter" in known else "n_estimators"] = self.epochs
        if self.shuffle is not None:
            if "shuffle" not in known:
                raise ValueError(
                    f"--shuffle is not for {learner.name}: it uses all examples in each round"
                )
            params["shuffle"] = self.shuffle
        params |= self.settings
        estimator = learner.make(**params)
        try:
            check_params(estimator)
        except TypeError as error:
            raise ValueError(str(error)) from error
        return estimator


def choose(
    model: str | None,
    epochs: int | None,
    shuffle: bool | None,
    seed: int,
    set_: list[str] | None,
    params: Path | None,
) -> Choice:
    """Merge options with a file of parameters."""
    settings: dict[str, Any] = {}
    if params is not None:
        with open(params, "rb") as stream:
            try:
                settings = tomllib.load(stream)
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise ValueError(f"{params} is not a TOML file: {error}") from error
        for name, value in settings.items():
            if isinstance(value, dict) and name not in ("class_weight", "monotonic_cst"):
                raise ValueError(
                    f"{params} has a table [{name}]; write NAME = VALUE, without tables"
                )
        named = settings.pop("model", None)
        if named is not None and not isinstance(named, str):
            raise ValueError(f"{params}: model must be a name, found {named!r}")
        model = model or named
    settings |= dict(map(_parse_setting, set_ or []))
    return Choice(model, epochs, shuffle, seed, settings)


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, value  # a word, or what no parameter accepts


def list_of_learners() -> str:
    """The learners as a table for the end of a help page."""
    lines = ["Learners (--model):"]
    for title, of_queries in (("ordered labels", False), ("documents of queries", True)):
        lines += ["", f"  {title}"]
        lines += [
            f"    {one.name:<20} {one.summary}"
            for one in EVERY_LEARNER
            if one.ranks_queries is of_queries
        ]
    return "\n".join(["\b", *lines])


def fit(
    estimator: Any,
    X: Any,
    y: np.ndarray,
    bar: ProgressBar,
    *,
    qid: np.ndarray | None = None,
    held_out: tuple[Any, np.ndarray, np.ndarray | None] | None = None,
) -> list[str]:
    """Fit with a bar that shows measures on held-out rows; warnings take one line each.

    Returns
    -------
    list of str
        Names of the measures of held-out rows in ``history_``.
    """
    from rankcore.progress import watch

    more: dict[str, Any] = {} if qid is None else {"qid": qid}
    if held_out is not None:
        more["eval_set"] = [held_out[:2]]
        shown = Shown(bar)
        more["callbacks"] = [shown]
        if qid is not None:
            more["eval_qid"] = [held_out[2]]
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for the result
        watch(bar.learning) if bar.visible else nullcontext(),
    ):
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y, **more)
        except TypeError as error:  # a parameter of a wrong type
            raise ValueError(str(error)) from error
    for warning in caught:
        complain(f"warning: {warning.message}")
    return [] if held_out is None else shown.names


class Shown:
    """Shows the latest measures on held-out rows in the bar.

    Parameters
    ----------
    bar : ProgressBar

    Attributes
    ----------
    names : list of str
        Names of the measures in ``history_``.
    """

    def __init__(self, bar: ProgressBar) -> None:
        self.bar = bar
        self.names: list[str] = []

    def __call__(self, iteration: Iteration) -> None:
        """Update from an iteration."""
        self.names = list(iteration.results)
        self.bar.note = ", ".join(
            f"{name} {result.value:.4f}" for name, result in iteration.results.items()
        )


def held_out_facts(estimator: Any, names: list[str]) -> dict[str, Any]:
    """Measures on held-out rows of the pass or round that the model is from."""
    history = estimator.history_
    best = getattr(estimator, "best_iteration_", None)
    facts: dict[str, Any] = {}
    for name in names:
        at = len(history[name]) if best is None else best
        facts[f"valid_{name.removeprefix('valid_')}"] = float(history[name][at - 1])
    if best is not None:
        facts |= {"best_iteration": int(best), "iterations": len(history[names[0]])}
    return facts


def stopping(estimator: Any, metric: str | None, patience: int | None) -> dict[str, Any]:
    """Parameters that end a fit by held-out rows."""
    params = estimator.get_params(deep=False)
    planned = params.get("max_iter") or params.get("n_estimators") or 1
    more = {
        "early_stopping_rounds": patience
        or params.get("early_stopping_rounds")
        or max(1, planned // 5)
    }
    return more if metric is None else {**more, "eval_metric": metric}
