"""Training rows of ``rankcore train``: in memory, or read a window at a time."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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


@dataclass(frozen=True)
class Source:
    """Training and held-out files, and options of reading."""

    files: list[str]
    layout: Layout = field(default_factory=Layout)
    streaming: Streaming = field(default_factory=Streaming)
    valid: str | None = None
    classes: str | None = None  # declared labels: with ``--features`` no scan has to find them

    @cached_property
    def on_disk(self) -> bool:
        """Whether rows are read a window at a time.

        Options request this; it always applies to caches, patterns and Parquet files, and never to
        CSV and to tables with categories or with labels that are words.
        """
        from rankcore.cli.tables import is_table
        from rankcore.datasets.parquet_rows import is_parquet

        tables = [name for name in self.files if is_table(name, self.layout)]
        if tables:
            if self.streaming.stream or self.streaming.cache is not None:
                raise ValueError(
                    f"{tables[0]} is read into memory: omit --stream and --cache, or convert it to "
                    "Parquet with numbers alone"
                )
            return False
        streamed = self.streaming != Streaming() or self.classes is not None
        return (
            streamed
            or self.layout.named != (None, None, None)
            or any(
                os.path.isdir(name)
                or (any(sign in name for sign in "*?[") and not os.path.exists(name))
                or is_parquet(name)
                for name in self.files
            )
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
