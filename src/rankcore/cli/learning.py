"""Learners by name, their settings and fits, for train, cv and tune."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.options import ClassesOption, SeedOption, SetOption, listed_labels
from rankcore.cli.paths import Reads
from rankcore.cli.registry import (
    EVERY_LEARNER,
    FOR_LABELS,
    FOR_QUERIES,
    TREES_FOR_LABELS,
    TREES_FOR_QUERIES,
    Learner,
    find_learner,
)

if TYPE_CHECKING:
    from rankcore.cli.rows import Rows


@dataclass(frozen=True)
class Choice:
    """Options that choose a learner and its parameters."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME",
            help=f"Learner: see the list below. By default {FOR_QUERIES} if every line has qid:, "
            f"else {FOR_LABELS}; with categories {TREES_FOR_QUERIES} or {TREES_FOR_LABELS}.",
        ),
    ] = None
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the data, or rounds.")] = (
        None
    )
    shuffle: Annotated[
        bool | None, typer.Option(help="Whether to visit the examples in a new order in each pass.")
    ] = None
    seed: SeedOption = 0
    set_: SetOption = None
    classes: ClassesOption = None
    params: Annotated[
        Path | None,
        Reads(),
        typer.Option(
            metavar="TOML", help="File of parameters, NAME = VALUE; may include model = NAME."
        ),
    ] = None

    @cached_property
    def _parsed(self) -> tuple[str | None, dict[str, Any]]:
        """The name of a learner or None, and parameters: ``--set`` overrides the file."""
        parsed = {} if self.params is None else _read_toml(self.params)
        name = self.model or parsed.pop("model", None)
        return name, {**parsed, **dict(map(_parse_setting, self.set_ or []))}

    def check(self, own: bool = False) -> None:
        """Raise ValueError for invalid settings, before files are read.

        With ``own``, for commands that save no model, the learner may be module:Class.
        """
        if self.name is not None:
            self.make(find_learner(self.name, own))

    @property
    def name(self) -> str | None:
        """Name of the learner; None if it depends on the data."""
        return self._parsed[0]

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters of the file and of ``--set``."""
        return self._parsed[1]

    def learner(self, rows: Rows, own: bool = False) -> Learner:
        """Find the learner for rows, with or without queries; ``own`` as in `check`."""
        for_labels, for_queries = FOR_LABELS, FOR_QUERIES
        if rows.has_categories:
            for_labels, for_queries = TREES_FOR_LABELS, TREES_FOR_QUERIES
        return find_learner(self.name or (for_queries if rows.in_queries else for_labels), own)

    def make(self, learner: Learner, **more: Any) -> Any:
        """Make an estimator that a model file supports, with those of ``more`` that it has."""
        from rankcore.io.parameters import check_params

        accepted = learner.accepts()
        params: dict[str, Any] = {name: value for name, value in more.items() if name in accepted}
        if "random_state" in accepted:
            params["random_state"] = self.seed
        if self.epochs is not None:
            params["max_iter" if "max_iter" in accepted else "n_estimators"] = self.epochs
        if self.shuffle is not None:
            if "shuffle" not in accepted:
                raise ValueError(
                    f"--shuffle does not apply to {learner.name}, which learns from all examples "
                    "in each round"
                )
            params["shuffle"] = self.shuffle
        if self.classes is not None:
            if "classes" not in accepted:
                raise ValueError(
                    f"--classes does not apply to {learner.name}, which finds its labels"
                )
            params["classes"] = listed_labels(self.classes)
        params |= self.settings
        try:
            estimator = learner.make(**params)
            if ":" not in learner.estimator:  # a user's class is never saved
                check_params(estimator)
        except TypeError as error:
            raise ValueError(str(error)) from error
        return estimator


def _read_toml(path: Path) -> dict[str, Any]:
    with open(path, "rb") as stream:
        try:
            content = tomllib.load(stream)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a TOML file: {error}") from error
    for name, value in content.items():
        if isinstance(value, dict) and name not in ("class_weight", "monotonic_cst"):
            raise ValueError(f"{path} has a table [{name}]; write NAME = VALUE, without tables")
    if not isinstance(content.get("model", ""), str):
        raise ValueError(f"{path}: model must be a name; got {content['model']!r}")
    return content


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, value  # a word, or an invalid value


def list_of_learners() -> str:
    """Write a table of the learners for the end of a help page."""
    lines = ["Learners (--model):"]
    for title, ranks_queries in (("ordered labels", False), ("documents of queries", True)):
        lines += ["", f"  {title}"]
        lines += [
            f"    {learner.name:<20} {learner.summary}"
            for learner in EVERY_LEARNER
            if learner.ranks_queries is ranks_queries
        ]
    return "\n".join(["\b", *lines])


def fit(
    estimator: Any,
    learner: Learner,
    rows: Rows,
    *held_out: Rows,
    callbacks: Sequence[Any] = (),
) -> None:
    """Fit a learner to rows; raise ValueError for parameters of a wrong type."""
    more: dict[str, Any] = {}
    if learner.ranks_queries and rows.qid is not None:
        more["qid"] = rows.qid
    if rows.weights is not None:
        more["sample_weight"] = rows.weights
    if held_out:
        more["eval_set"] = [(rows.X, rows.y) for rows in held_out]
        if learner.ranks_queries:
            more["eval_qid"] = [rows.qid for rows in held_out]
    if callbacks:
        more["callbacks"] = callbacks
    try:
        with named_values(learner, rows):
            estimator.fit(rows.X, rows.y, **more)
    except TypeError as error:
        raise ValueError(str(error)) from error


@contextmanager
def named_values(learner: Learner, rows: Rows) -> Iterator[None]:
    """Add to a ValueError of the body the place of the rejected value in rows on disk."""
    try:
        yield
    except ValueError:
        if rows.on_disk:
            rows.check_values(learner.estimator, learner.scale_invariant, scan=True)
        raise
