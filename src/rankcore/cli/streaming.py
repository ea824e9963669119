"""``rankcore train`` on files that need not fit into memory: windows, checkpoints, resuming."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.registry import FOR_LABELS, FOR_QUERIES, Learner, find_learner
from rankcore.cli.terminal import ProgressBar, complain, print_facts, progress_bar

if TYPE_CHECKING:
    from rankcore._core.blocks import Pauses, Position, RowBlocks

StreamOption = Annotated[
    bool,
    typer.Option("--stream", help="Read a window of rows at a time, in memory that does not grow."),
]
CacheOption = Annotated[
    Path | None,
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
# Seconds from one checkpoint to the next at the end of a pass.
CHECKPOINT_SECONDS = 30.0
# Parameters that a fit may be resumed with other values of: the model does not depend on them.
FREE = ("n_jobs", "verbose", "memory_limit")


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
    resume : bool
    """

    files: list[str]
    zero_based: bool
    features: int | None
    cache: Path | None
    classes: str | None
    resume: bool

    def open(self) -> RowBlocks:
        """The rows."""
        from rankcore.datasets import open_rows

        sources: Any = [sys.stdin.buffer if name == "-" else name for name in self.files]
        return open_rows(
            sources, n_features=self.features, zero_based=self.zero_based, cache=self.cache
        )

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
        from rankcore.datasets.row_cache import read_description, source_stamps
        from rankcore.datasets.row_files import list_sources

        if "-" in self.files and self.cache is None:
            raise ValueError("standard input cannot be read again: --resume requires --cache")
        paths = [name for name in self.files if name != "-"]
        cache = self.cache if self.cache is not None and self.cache.exists() else None
        if cache is None and len(paths) == 1 and on_disk(paths):
            cache = Path(paths[0]) if os.path.isdir(paths[0]) else None
        if cache is not None:
            stamps: Any = read_description(cache)
        else:
            stamps = source_stamps(list_sources(paths))
        return {
            "rows": stamps,
            "zero_based": self.zero_based,
            "features": self.features,
            "classes": self.classes,
        }


def on_disk(files: list[str]) -> bool:
    """Whether data are read a window at a time without being asked: a cache, or a pattern."""
    return any(os.path.isdir(name) or _is_pattern(name) for name in files)


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[") and not os.path.exists(name)


def train_on_disk(
    disk: OnDisk,
    output: Path,
    name: str | None,
    make: Callable[[Learner], Any],
    quiet: bool,
    as_json: bool,
) -> None:
    """Fit a learner to rows on disk, save it, and print facts.

    Parameters
    ----------
    disk : OnDisk
    output : Path
    name : str or None
        The learner; None for the one that suits the rows.
    make : callable
        Makes the estimator of a learner.
    quiet, as_json : bool
    """
    import rankcore
    from rankcore._core.concurrency import signals_held

    checkpoint = Checkpoint(Path(f"{output}.checkpoint"), disk)
    classes = disk.labels()
    facts: dict[str, Any] = {}
    with progress_bar(quiet) as bar:
        start = perf_counter()
        opened: list[RowBlocks] = []
        run(lambda: opened.append(disk.open()), bar)  # which may write a cache
        rows = opened[0]
        if name is None:
            run(rows.survey, bar)
            in_queries = rows.survey().in_queries
            name = FOR_QUERIES if in_queries else FOR_LABELS
            facts["chosen_since"] = f"{'every' if in_queries else 'no'} line has qid:"
        learner = find_learner(name)
        estimator = make(learner)
        more = {} if learner.ranks_queries else {"classes": classes}
        try:
            if getattr(estimator, "_walks_blocks", False):
                if rows.n_features is None or (classes is None and not learner.ranks_queries):
                    run(rows.survey, bar)  # while Ctrl-C still ends it at once
                pauses = checkpoint.pauses(estimator)
                # Ctrl-C is looked for where the state is whole; after the last pass, when all
                # is saved.
                with signals_held():
                    run(lambda: estimator._fit_blocks(rows, pauses=pauses, **more), bar)
                    seconds = perf_counter() - start
                    rankcore.save(estimator, output)
                    checkpoint.remove()
            else:
                checkpoint.refuse(learner)
                run(lambda: estimator.fit(rows, **more), bar)
                seconds = perf_counter() - start
                rankcore.save(estimator, output)
        except TypeError as error:  # a parameter of a wrong type
            raise ValueError(str(error)) from error
        except KeyboardInterrupt:
            if checkpoint.saved:
                complain(f"saved {checkpoint.folder}: the same command with --resume goes on")
            raise
    known = rows.survey() if rows.surveyed else None
    facts = {"model": learner.name, **facts}
    if known is not None:
        facts |= {"examples": known.n_rows, "features": known.n_features}
    else:
        facts["features"] = estimator.n_features_in_
    facts |= estimator._fit_summary()
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)


def run(fit: Callable[[], Any], bar: ProgressBar) -> None:
    """Read or fit under a bar, and show warnings as lines."""
    from rankcore.progress import watch

    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for the result
        watch(bar.learning) if bar.visible else nullcontext(),
    ):
        warnings.simplefilter("always")
        fit()
    for warning in caught:
        complain(f"warning: {warning.message}")


class Checkpoint:
    """A directory that a fit can be resumed from: a model, and where it stands.

    Parameters
    ----------
    folder : Path
    disk : OnDisk
    """

    def __init__(self, folder: Path, disk: OnDisk) -> None:
        self.folder, self._disk = folder, disk
        self.saved = False
        self._last = monotonic()
        if disk.resume and not self._position.exists():
            raise ValueError(f"--resume requires {folder}, which an interrupted train leaves")

    @property
    def _position(self) -> Path:
        return self.folder / "position.json"

    def refuse(self, learner: Learner) -> None:
        """Raise if a learner that cannot is to be resumed."""
        if self._disk.resume:
            raise ValueError(f"--resume is not for {learner.name}, which learns from all rows")

    def pauses(self, estimator: Any) -> Pauses:
        """What the fit of an estimator calls, and where it begins."""
        from rankcore._core.blocks import Pauses

        return Pauses(self._save, self._load(estimator) if self._disk.resume else None)

    def remove(self) -> None:
        """Delete it: the fit has ended."""
        if self._position.exists():
            shutil.rmtree(self.folder)

    def _save(self, model: Any, position: Position, interrupted: bool) -> None:
        if "-" in self._disk.files and self._disk.cache is None:
            return
        if not interrupted and monotonic() - self._last < CHECKPOINT_SECONDS:
            return
        import rankcore

        self.folder.mkdir(exist_ok=True)
        name = f"model-{position.epoch}-{position.window}.rankcore"
        rankcore.save(model, self.folder / name)
        written = {
            "model": name,
            "epoch": position.epoch,
            "window": position.window,
            "seed": position.seed,
            **self._disk.stamp(),
        }
        temporary = self.folder / "position.json.new"
        temporary.write_text(json.dumps(written, indent=1), encoding="utf-8")
        os.replace(temporary, self._position)
        for old in self.folder.glob("model-*.rankcore"):
            if old.name != name:
                old.unlink()
        self._last, self.saved = monotonic(), True

    def _load(self, estimator: Any) -> tuple[Any, Position]:
        import rankcore
        from rankcore._core.blocks import Position

        try:
            written = json.loads(self._position.read_text(encoding="utf-8"))
            place = [written[name] for name in ("epoch", "window", "seed")]
            if not all(type(one) is int and one >= 0 for one in place) or place[0] < 1:
                raise ValueError(f"its position is {place}")
            model = rankcore.load(self.folder / written["model"])
            stamp = {name: written[name] for name in ("rows", "zero_based", "features", "classes")}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{self.folder} is damaged: {error}") from error
        if stamp != self._disk.stamp():
            raise ValueError(
                f"{self.folder} is of other files, or they have changed since: give the same "
                "files and options, or delete it and train without --resume"
            )
        mine, then = _fixed(estimator), _fixed(model)
        if type(model) is not type(estimator) or mine != then:
            changed = [name for name in mine if mine[name] != then.get(name)]
            raise ValueError(
                f"{self.folder} is of {model!r}, which has other parameters: "
                f"{', '.join(changed) or 'another learner'}; give the same options"
            )
        return model, Position(*place)


def _fixed(estimator: Any) -> dict[str, Any]:
    params = estimator.get_params()
    return {name: value for name, value in params.items() if name not in FREE}
