"""``rankcore predict``: a label or a score for each line of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from rankcore.cli.files import (
    DataArgument,
    ModelArgument,
    QuietOption,
    ZeroBasedOption,
    check_writable,
    load_both,
    needed_queries,
    ranks_queries,
)
from rankcore.cli.terminal import label_text


def predict(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of stdout.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the scores behind the labels.")
    ] = False,
    zero_based: ZeroBasedOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict labels or scores; the labels in the file do not matter."""
    if output is not None:
        check_writable(output, str(model), data)
    learned, X, _, qid = load_both(model, data, zero_based, quiet)
    lines: Iterator[str]
    if ranks_queries(learned):
        if getattr(learned, "combine", "score") == "rank":
            qid = needed_queries(qid, data)
        lines = map(repr, learned.predict(X, qid=qid).tolist())
    elif scores:
        score = getattr(learned, "project", learned.decision_function)
        rows = score(X).reshape(X.shape[0], -1).tolist()
        lines = (" ".join(map(repr, row)) for row in rows)
    else:
        lines = (label_text(label) for label in learned.predict(X).tolist())
    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        with open(output, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in lines)
