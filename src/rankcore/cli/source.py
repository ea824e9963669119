"""Training rows of ``rankcore train``: in memory, or read a window at a time."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.learning import Scale
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
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue from MODEL.checkpoint of an interrupted train."),
    ] = False

    def labels(self) -> list[Any] | None:
        """The classes."""
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
    scale: Scale = Scale.NONE
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
        """Training rows."""
        from rankcore.cli.rows import Rows, open_blocks, read_many

        if self.on_disk:
            return Rows(open_blocks(self.files, self.layout, self.streaming.cache))
        return read_many(self.files, self.layout, bar)

    def open_held_out(self, bar: ProgressBar) -> list[Rows]:
        """Held-out rows, in memory, if there are any."""
        from rankcore.cli.rows import read

        layout = replace(self.layout, features=None)
        return [] if self.valid is None else [read(self.valid, layout, bar)]

    @property
    def reopens(self) -> bool:
        """Whether the rows can be read again."""
        return "-" not in self.files or self.streaming.cache is not None

    def stamp(self) -> dict[str, Any]:
        """Facts about files and options, which must be equal to resume a fit."""
        if not self.reopens:
            raise ValueError("standard input cannot be read again: --resume requires --cache")
        from rankcore.datasets.row_cache import read_description
        from rankcore.datasets.row_cache_writer import source_stamps
        from rankcore.datasets.row_files import list_files

        cache, layout = self.streaming.cache, self.layout
        paths = [name for name in self.files if name != "-"]
        cache = cache if cache is not None and cache.exists() else None
        if cache is None and len(paths) == 1 and os.path.isdir(paths[0]):
            cache = Path(paths[0])
        stamps: Any = source_stamps(list_files(paths)) if cache is None else read_description(cache)
        return {
            "rows": stamps,
            "zero_based": layout.zero_based,
            "features": layout.features,
            "classes": self.streaming.classes,
            "columns": list(layout.named),
            "scale": self.scale,
            "held_out": None if self.valid is None else source_stamps([self.valid]),
        }
