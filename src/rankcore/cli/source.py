"""Training rows of ``rankcore train``: in memory, or read a window at a time."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.options import Layout
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import ProgressBar

if TYPE_CHECKING:
    from rankcore.cli.rows import Rows


@dataclass(frozen=True)
class Streaming:
    """Options of rows that are read a window at a time."""

    stream: Annotated[
        bool,
        typer.Option(
            "--stream", help="Read a window of rows at a time, in memory that does not grow."
        ),
    ] = False
    cache: Annotated[
        Path | None,
        Writes(folder=True),
        typer.Option(
            metavar="DIR", help="Read DATA once into a row cache, or reuse an existing one."
        ),
    ] = None
    classes: Annotated[
        str | None,
        typer.Option(
            metavar="LABELS",
            help="All labels, ascending, as in 0,1,2: with --features, DATA is not scanned to find "
            "them.",
        ),
    ] = None

    def labels(self) -> list[Any] | None:
        """Return the classes."""
        if self.classes is None:
            return None
        try:
            return [ast.literal_eval(label) for label in self.classes.split(",")]
        except (ValueError, SyntaxError):
            message = f"{self.classes!r} is not a list of numbers, as in 0,1,2"
            raise typer.BadParameter(message, param_hint="--classes") from None


@dataclass(frozen=True)
class Source:
    """Training and held-out files, and options of reading."""

    files: list[str]
    layout: Layout = field(default_factory=Layout)
    streaming: Streaming = field(default_factory=Streaming)
    valid: str | None = None

    @cached_property
    def on_disk(self) -> bool:
        """Whether rows are read a window at a time.

        Options request this; it always applies to caches, patterns and Parquet files.
        """
        from rankcore.datasets.parquet_rows import is_parquet

        chosen = self.streaming != Streaming() or self.layout.named != (None, None, None)
        return chosen or any(
            os.path.isdir(name)
            or (any(sign in name for sign in "*?[") and not os.path.exists(name))
            or is_parquet(name)
            for name in self.files
        )

    def open(self, bar: ProgressBar) -> Rows:
        """Open the training rows."""
        from rankcore.cli.rows import Rows, open_blocks, read_many

        if self.on_disk:
            return Rows(open_blocks(self.files, self.layout, self.streaming.cache))
        return read_many(self.files, self.layout, bar)

    def open_held_out(self, bar: ProgressBar) -> list[Rows]:
        """Read the held-out rows into memory, if there are any."""
        from rankcore.cli.rows import read

        layout = replace(self.layout, features=None)
        return [] if self.valid is None else [read(self.valid, layout, bar)]
