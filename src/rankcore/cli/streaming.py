"""``rankcore train`` on files that need not fit into memory: what is read, and the fit."""

from __future__ import annotations

import ast
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.checkpoint import Checkpoint, checkpoint_of
from rankcore.cli.files import Columns, needed_queries, read_data
from rankcore.cli.learning import Choice, Shown, held_out_facts, stopping
from rankcore.cli.paths import Writes
from rankcore.cli.registry import FOR_LABELS, FOR_QUERIES, Learner, find_learner
from rankcore.cli.scaling import scale_fact, scaler_for
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar

if TYPE_CHECKING:
    import numpy as np

    from rankcore._core.sources import RowBlocks

StreamOption = Annotated[
    bool,
    typer.Option("--stream", help="Read a window of rows at a time, in memory that does not grow."),
]
CacheOption = Annotated[
    Path | None,
    Writes(folder=True),
    typer.Option(metavar="DIR", help="Read DATA once into a row cache, or use the one made of it."),
]
ClassesOption = Annotated[
    str | None,
    typer.Option(
        metavar="LABELS",
        help="All labels, ascending, as in 0,1,2: with --features, DATA is not read to find them.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Go on from MODEL.checkpoint, which an interrupted train left."),
]


@dataclass(frozen=True)
class HeldOut:
    """Rows that a fit stops by.

    Attributes
    ----------
    file : str
    metric : str or None
    patience : int or None
    """

    file: str
    metric: str | None
    patience: int | None


@dataclass(frozen=True)
class OnDisk:
    """What is to be read, and how.

    Attributes
    ----------
    files : list of str
    zero_based : bool
    features : int or None
    cache : Path or None
    classes : str or None
    columns : Columns
    scale : str
    held_out : HeldOut or None
    """

    files: list[str]
    zero_based: bool = False
    features: int | None = None
    cache: Path | None = None
    classes: str | None = None
    columns: Columns = field(default_factory=Columns)
    scale: str = "none"
    held_out: HeldOut | None = None

    def open(self) -> RowBlocks:
        """The rows."""
        from rankcore.datasets import open_rows

        sources: Any = [sys.stdin.buffer if name == "-" else name for name in self.files]
        return open_rows(
            sources,
            n_features=self.features,
            zero_based=self.zero_based,
            cache=self.cache,
            label=self.columns.label,
            qid=self.columns.query,
            columns=self.columns.features,
        )

    def open_held_out(self, bar: ProgressBar) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """The rows to stop by, their labels and their queries or None, in memory."""
        assert self.held_out is not None
        return read_data(self.held_out.file, self.zero_based, None, "DATA", bar, self.columns)

    def labels(self) -> list[Any] | None:
        """The classes of the option."""
        if self.classes is None:
            return None
        try:
            return [ast.literal_eval(label) for label in self.classes.split(",")]
        except (ValueError, SyntaxError):
            raise typer.BadParameter(
                f"{self.classes!r} is not a list of numbers, as in 0,1,2", param_hint="--classes"
            ) from None

    def stamp(self) -> dict[str, Any]:
        """What must be equal for a fit to go on."""
        from rankcore.datasets.row_cache import read_description
        from rankcore.datasets.row_cache_writer import source_stamps
        from rankcore.datasets.row_files import list_files

        if "-" in self.files and self.cache is None:
            raise ValueError("standard input cannot be read again: --resume requires --cache")
        paths = [name for name in self.files if name != "-"]
        cache = self.cache if self.cache is not None and self.cache.exists() else None
        if cache is None and len(paths) == 1 and on_disk(paths):
            cache = Path(paths[0]) if os.path.isdir(paths[0]) else None
        if cache is not None:
            stamps: Any = read_description(cache)
        else:
            stamps = source_stamps(list_files(paths))
        held_out = None if self.held_out is None else source_stamps([self.held_out.file])
        return {
            "rows": stamps,
            "zero_based": self.zero_based,
            "features": self.features,
            "classes": self.classes,
            "columns": [self.columns.label, self.columns.query, self.columns.features],
            "scale": self.scale,
            "held_out": held_out,
        }


def on_disk(files: list[str]) -> bool:
    """Whether data are read a window at a time without being asked.

    So are row caches, directories, patterns and Parquet files.
    """
    from rankcore.datasets.parquet_rows import is_parquet

    return any(os.path.isdir(name) or _is_pattern(name) or is_parquet(name) for name in files)


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[") and not os.path.exists(name)


def train_on_disk(
    disk: OnDisk, output: Path, choice: Choice, resume: bool, quiet: bool, as_json: bool
) -> None:
    """Fit a learner to rows on disk, save it, and print facts.

    Parameters
    ----------
    disk : OnDisk
    output : Path
    choice : Choice
    resume, quiet, as_json : bool
    """
    import rankcore
    from rankcore._core.concurrency import signals_held
    from rankcore.io.scaled import with_scaler

    checkpoint = Checkpoint(checkpoint_of(output), disk, resume)
    with progress_bar(quiet) as bar:
        start = perf_counter()
        data, facts = prepare(disk, choice, bar)
        rows, learner, estimator = data.rows, data.learner, data.estimator
        shown = Shown(bar)
        try:
            if getattr(estimator, "_in_windows", False):
                if rows.n_features is None or (data.classes is None and not learner.ranks_queries):
                    run(rows.facts, bar)  # while Ctrl-C still ends it at once
                more = data.for_blocks(shown)
                more["pauses"] = checkpoint.pauses(estimator)
                # Ctrl-C is looked for where the state is whole; after the last pass, when all
                # is saved.
                with signals_held():
                    run(lambda: estimator._fit_source(rows, **more), bar)
                    seconds = perf_counter() - start
                    rankcore.save(with_scaler(data.scaler, estimator), output)
                    checkpoint.remove()
            else:
                checkpoint.refuse(learner)
                run(lambda: estimator.fit(rows, **data.for_fit(shown)), bar)
                seconds = perf_counter() - start
                rankcore.save(with_scaler(data.scaler, estimator), output)
        except TypeError as error:  # a parameter of a wrong type
            raise ValueError(str(error)) from error
        except KeyboardInterrupt:
            if checkpoint.saved:
                complain(f"saved {checkpoint.folder}: the same command with --resume goes on")
            raise
    facts |= {"features": estimator.n_features_in_, **estimator._fit_summary()}
    if shown.names:
        facts |= held_out_facts(estimator, shown.names)
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)


@dataclass(frozen=True)
class Prepared:
    """What a fit to rows on disk begins with.

    Attributes
    ----------
    rows : RowBlocks
        As the scaler leaves them.
    learner : Learner
    estimator : estimator
    scaler : StandardScaler, MaxAbsScaler or None
    classes : list or None
    held_out : (X, y, qid or None) or None
        As the scaler leaves them, too.
    """

    rows: RowBlocks
    learner: Learner
    estimator: Any
    scaler: Any
    classes: list[Any] | None
    held_out: tuple[Any, Any, Any] | None

    def for_fit(self, shown: Shown) -> dict[str, Any]:
        """Arguments of ``fit``."""
        more: dict[str, Any] = {} if self.learner.ranks_queries else {"classes": self.classes}
        if self.held_out is not None:
            X, y, qid = self.held_out
            more |= {"eval_set": [(X, y)], "callbacks": [shown]}
            if self.learner.ranks_queries:
                more["eval_qid"] = [qid]
        return more

    def for_blocks(self, shown: Shown) -> dict[str, Any]:
        """Arguments of ``_fit_source``."""
        more = self.for_fit(shown)
        if self.held_out is not None:
            eval_set, eval_qid = more.pop("eval_set"), more.pop("eval_qid", None)
            ranks = self.learner.ranks_queries
            more["held_out"] = (eval_set, None, None, *([eval_qid, None] if ranks else []))
        return more


def prepare(disk: OnDisk, choice: Choice, bar: ProgressBar) -> tuple[Prepared, dict[str, Any]]:
    """Open rows, choose a learner and a scale, and say what was found."""
    from rankcore.datasets.scaled_rows import ScaledRows, fit_scaler

    classes, held_out = disk.labels(), None
    if disk.held_out is not None:
        held_out = disk.open_held_out(bar)
    opened: list[RowBlocks] = []
    run(lambda: opened.append(disk.open()), bar)  # which may write a cache
    rows = opened[0]
    facts: dict[str, Any] = {}
    name = choice.name
    if name is None or held_out is not None or disk.scale != "none":
        run(rows.facts, bar)
    if name is None:
        in_queries = rows.facts().in_queries
        name = FOR_QUERIES if in_queries else FOR_LABELS
        if rows.feature_names is None:
            facts["chosen_since"] = f"{'every' if in_queries else 'no'} line has qid:"
        else:
            facts["chosen_since"] = f"there is {'a' if in_queries else 'no'} column of queries"
    learner = find_learner(name)
    estimator = choice.make(learner)
    if held_out is not None and disk.held_out is not None:
        if learner.ranks_queries:
            needed_queries(held_out[2], disk.held_out.file)
        rows.widen(held_out[0].shape[1])
        held_out[0].resize((held_out[0].shape[0], rows.facts().n_features))
        stops = stopping(estimator, disk.held_out.metric, disk.held_out.patience)
        estimator = choice.make(learner, **stops)
    known = rows.facts() if rows.surveyed else None
    if known is not None:
        facts["examples"] = known.n_rows
    scaler = None if disk.scale == "none" else scaler_for(disk.scale, learner, rows)
    if scaler is not None:
        run(lambda: fit_scaler(scaler, rows), bar)
        rows = ScaledRows(rows, scaler)
        if held_out is not None:
            held_out = (rows.scaled(held_out[0]), *held_out[1:])
    facts = {"model": learner.name, **facts, **scale_fact(scaler)}
    return Prepared(rows, learner, estimator, scaler, classes, held_out), facts


def run(fit: Callable[[], Any], bar: ProgressBar) -> None:
    """Read or fit under a bar, and show warnings as lines."""
    from rankcore.progress import watch

    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for the result
        watch(bar.learning) if bar.visible else nullcontext(),
    ):
        warnings.simplefilter("always")
        # Held-out rows have the same columns, taken by their names.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        fit()
    for warning in caught:
        complain(f"warning: {warning.message}")
