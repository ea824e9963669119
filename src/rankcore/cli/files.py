"""What the commands read and write: arguments, data with a model, and whether a path will do."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.registry import RANKERS
from rankcore.cli.terminal import ProgressBar, progress_bar

if TYPE_CHECKING:
    import numpy as np

DataArgument = Annotated[
    str,
    typer.Argument(metavar="DATA", help="svmlight/LETOR file, also gzip or bzip2; - for stdin."),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="File written by train.")]
ZeroBasedOption = Annotated[
    bool, typer.Option("--zero-based", help="Features are numbered from 0, not from 1.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def read_data(
    data: str, zero_based: bool, n_features: int | None, expected: str, bar: ProgressBar
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, labels and queries (or None) of a file; ``expected`` names who sets the features."""
    from rankcore.cli import svmlight

    return svmlight.read(
        data,
        zero_based=zero_based,
        n_features=n_features,
        expected=expected,
        report=bar.reading,
    )


def load_both(
    model: Path, data: str, zero_based: bool, quiet: bool
) -> tuple[Any, Any, np.ndarray, np.ndarray | None]:
    """A model, and rows (on its scale), labels and queries (or None) of a file of its features."""
    import rankcore
    from rankcore.cli.scaling import scaled
    from rankcore.io.scaled import split_scaler

    scaler, learned = split_scaler(rankcore.load(model))
    with progress_bar(quiet) as bar:
        X, y, qid = read_data(data, zero_based, learned.n_features_in_, str(model), bar)
    return learned, X if scaler is None else scaled(scaler, X), y, qid


def ranks_queries(learned: Any) -> bool:
    """Whether a model ranks the documents of queries."""
    return type(learned).__name__ in {learner.estimator for learner in RANKERS}


def needed_queries(qid: np.ndarray | None, data: str) -> np.ndarray:
    """The queries of a file; raise ValueError if it has none."""
    if qid is None:
        from rankcore.cli.svmlight import title

        raise ValueError(
            f"{title(data)} has lines without qid:, but a ranker compares the documents of a query"
        )
    return qid


def check_writable(path: Path, *inputs: str) -> None:
    """Raise before long work that could not be saved, or would replace a device or an input."""
    for given in inputs:
        if path.exists() and _is_file(path, given):
            raise ValueError(f"{path} is read by this command, too: choose another file to write")
    if os.path.islink(os.path.realpath(path)):
        raise ValueError(f"{path} is a link that leads back to itself; cannot write there")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a directory; cannot write {path.name} there")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} exists and is not a file; cannot write there")


def _is_file(path: Path, given: str) -> bool:
    """Whether an input, which may be standard input, is this file."""
    try:
        found = os.fstat(sys.stdin.fileno()) if given == "-" else os.stat(given)
    except (OSError, ValueError):  # closed, not a file, or not there
        return False
    return os.path.samestat(found, path.stat())
