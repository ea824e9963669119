"""LETOR and svmlight files that are read anew for each pass, a window of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.blocks import RowBlocks, Survey, Window
from rankcore._core.inputs import as_rows
from rankcore.datasets.letor_blocks import Block, Collected, Options, blocks
from rankcore.datasets.query_starts import QueryStarts
from rankcore.datasets.streams import Source, open_lines, title
from rankcore.datasets.surveys import Surveyor
from rankcore.progress import Progress, report

# Stored values of a block of rows: 3 MiB as CSR of float64, which the caches hold.
BLOCK_VALUES = 1 << 18
# Rows of a block that has few values.
BLOCK_ROWS = 1 << 16
# Blocks whose rows are shuffled together.
WINDOW = 8


def reading_options(zero_based: bool, dtype: Any, n_features: int | None) -> Options:
    """How rows are read to learn from them."""
    return Options(
        n_features=n_features,
        dtype=dtype,
        dense=False,
        zero_based=zero_based,
        docid=False,
        comments=False,
        ensure_all_finite="allow-nan",  # whether NaN will do, learners say
        n_jobs=None,
    )


def reading(done: int, size: int, n_rows: int) -> Progress:
    """How far a reading has come that learns nothing."""
    return Progress(0, 0, min(done, size), size, n_rows, "rows", "bytes")


class TextRows(RowBlocks):
    """Rows of text files, one after the other.

    Parameters
    ----------
    paths : list of str
    options : Options
    window : int
        Blocks whose rows are shuffled together.

    Notes
    -----
    Memory: a window, a block of the text, and 100 bytes for each query.
    """

    surveyed = False

    def __init__(self, paths: Sequence[str], options: Options, window: int) -> None:
        self.paths, self.options, self.window = list(paths), options, window
        self.n_features = options.n_features
        self.size = sum(os.path.getsize(path) for path in self.paths)
        self._survey: Survey | None = None

    def __repr__(self) -> str:
        names = self.paths[0] if len(self.paths) == 1 else f"{len(self.paths)} files"
        return f"<rows of {names}, {self.size} bytes>"

    def survey(self) -> Survey:
        """As `RowBlocks.survey`: one reading."""
        if self._survey is None:
            surveyor, has_qid = Surveyor(self.n_features), False
            n_rows = 0
            for block, done in text_blocks(self.paths, self.options):
                has_qid = block.has_qid
                surveyor.add(block.labels, block.columns, block.values)
                n_rows += block.n_rows
                report(reading(done, self.size, n_rows))
            self._survey = surveyor.finish(has_qid, self.paths[0])
        return self._survey

    def windows(
        self, n_features: int, order: tuple[int, int] | None, first: int
    ) -> Iterator[Window]:
        """As `RowBlocks.windows`; of an order, rows come as in the files, in larger windows."""
        options = replace(self.options, n_features=n_features)
        size = BLOCK_VALUES * (1 if order is None else self.window)
        parts = text_parts(self.paths, options, size, BLOCK_ROWS * size // BLOCK_VALUES)
        for number, (X, labels, queries, done) in enumerate(parts):
            if number >= first:
                yield Window(as_rows(X), labels, queries, number, done)

    def outline(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Raise, as `whole` does."""
        _, labels, queries = self.whole()
        return labels, queries

    def whole(self) -> tuple[Any, NDArray[Any], NDArray[np.int64] | None]:
        """Raise: rows of text are not laid out in memory."""
        raise ValueError(
            f"this learner looks at all rows at once, which requires a row cache; found "
            f"{self.paths[0]}, a text file: make one with `rankcore cache` or "
            "open_rows(..., cache='directory')"
        )


def text_blocks(sources: Sequence[Source], options: Options) -> Iterator[tuple[Block, int]]:
    """Blocks of several files, each with the bytes read so far, as they are on disk.

    Raises
    ------
    ValueError
        If a line is malformed, or some files have query ids and others none.
    """
    before, has_qid = 0, None
    for source in sources:
        with ExitStack() as files:
            # Opened here, for the position in a compressed file.
            stream: Any = source
            if not hasattr(source, "read"):
                stream = files.enter_context(open(source, "rb", buffering=0))
            lines = files.enter_context(open_lines(stream, title(source)))
            for block in blocks(lines, options):
                if has_qid is not None and block.has_qid != has_qid:
                    has, have = ("has", "none") if block.has_qid else ("has no", "some")
                    raise ValueError(
                        f"{lines.name} {has} qid:, while the files before it have {have}; "
                        "expected one in all rows or in none"
                    )
                has_qid = block.has_qid
                done = stream.tell() if stream is not source else lines.taken
                yield block, before + done
            before += lines.taken if stream is source else os.fstat(stream.fileno()).st_size


def text_parts(
    sources: Sequence[Source], options: Options, n_values: int, n_rows: int
) -> Iterator[tuple[Any, NDArray[np.float64], NDArray[np.int64] | None, int]]:
    """Rows of several files in parts of whole queries.

    Parameters
    ----------
    sources : sequence of paths or binary files
    options : Options
    n_values, n_rows : int
        A part ends with the first query, or row, that brings it to one of these.

    Yields
    ------
    X : CSR matrix
    labels : ndarray of float64
    queries : ndarray of int64, or None
        The place of its query among those of the part.
    done : int
        Bytes of the sources that were read.
    """
    part, starts = Collected(options), QueryStarts("")
    done = 0
    for block, done in text_blocks(sources, options):
        starts.name = block.name
        candidates = None
        if block.has_qid:
            candidates = np.fromiter(starts.starts(block), np.int64)
        first = 0
        while True:
            stop = _end(block, first, part, n_values, n_rows)
            if candidates is not None:
                at = int(candidates.searchsorted(stop))
                stop = int(candidates[at]) if at < candidates.size else block.n_rows + 1
            if stop > block.n_rows:
                break
            part.add(block, first, stop)
            if part.n_rows:
                yield *_finished(part), done
            part, first = Collected(options), stop
        part.add(block, first, block.n_rows)
    if part.n_rows:
        yield *_finished(part), done


def _end(block: Block, first: int, part: Collected, n_values: int, n_rows: int) -> int:
    """The row of a block before which a part is full; beyond the block if it is not."""
    before = int(block.ends[first - 1]) if first else 0
    wanted = before + n_values - part.values.n
    by_values = int(block.ends.searchsorted(wanted)) + 1 if wanted > before else first
    return max(first, min(by_values, first + max(n_rows - part.n_rows, 0)))


def _finished(part: Collected) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None]:
    X, labels, qid, _, _ = part.finish()
    if qid is None:
        return X, labels, None
    queries = np.zeros(qid.size, dtype=np.int64)
    np.cumsum(qid[1:] != qid[:-1], out=queries[1:])
    return X, labels, queries
