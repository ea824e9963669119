"""LETOR and svmlight files, read in each pass, a window of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.params import check_flag
from rankcore.datasets.file_rows import FileRows, Part, Piece
from rankcore.datasets.letor_blocks import (
    CANONICAL,
    WORD,
    Block,
    BlockRows,
    Growing,
    Options,
    QueryRun,
    blocks,
    csr,
)
from rankcore.datasets.streams import Source, open_lines, title


def reading_options(zero_based: bool, dtype: Any, n_features: int | None) -> Options:
    """Return the reader options for training on text rows."""
    # Whether a feature 0 occurs is not known before the last row.
    check_flag(zero_based, "zero_based")
    # Learners check NaN.
    return Options(n_features, dtype, zero_based=zero_based, ensure_all_finite="allow-nan")


class TextRows(FileRows):
    """Rows of text files. Memory: a window, a block of text, and 100 bytes per query."""

    def __init__(self, sources: Sequence[Source], options: Options, window: int) -> None:
        size = sum(os.path.getsize(source) for source in sources if not hasattr(source, "read"))
        super().__init__(sources, size, options.dtype, options.n_features, window)
        self.options = options

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that determine the rows; see `FileRows.settings`."""
        return {"zero_based": self.options.zero_based, "dtype": self.dtype.name, "columns": None}

    def pieces(self) -> Iterator[Piece]:
        """Implement `FileRows.pieces`: blocks of text."""
        for block, done in text_blocks(self.sources, self.options):
            yield Piece(block.labels, block.columns, block.values, block.has_qid, done)

    def parts(self, n_features: int | None, n_values: int, n_rows: int) -> Iterator[Part]:
        """Implement `FileRows.parts`."""
        options = replace(self.options, n_features=n_features)
        return text_parts(self.sources, options, n_values, n_rows)


class QueryStarts:
    """Offsets of queries in consecutive blocks of rows."""

    def __init__(self) -> None:
        self.seen: set[int | str] = set()
        self.last: int | str | None = None
        # The first id of each of two kinds that exclude each other.
        self._word: str | None = None
        self._odd: str | None = None

    def starts(self, block: Block) -> Iterator[int]:
        """Yield the rows of a block that start a query, ascending."""
        for run in map(QueryRun._make, block.runs.tolist()):
            query = run.number if run.kind else block.word(run.start, run.stop)
            if run.kind != CANONICAL:
                self._check_spelling(block, run)
            if query == self.last:
                continue
            if query in self.seen:
                raise ValueError(
                    f"{block.where(run)}: query {query} continues "
                    "after another one started; the rows of a query must be contiguous"
                )
            self.seen.add(query)
            self.last = query
            yield run.row

    def _check_spelling(self, block: Block, run: QueryRun) -> None:
        """Raise if the ids include both words and integers such as 01.

        If all ids are integers, 01 is 1; otherwise all are words. The first ids are used before
        the others are known.
        """
        word = block.word(run.start, run.stop)
        if run.kind == WORD:
            self._word = self._word or word
        else:
            self._odd = self._odd or word
        if self._word and self._odd:
            raise ValueError(
                f"{block.where(run)}: query ids are integers, which "
                f"may be written as {self._odd}, or words such as {self._word}; got both: write "
                f"{int(self._odd)}, or use words alone"
            )


def text_blocks(sources: Sequence[Source], options: Options) -> Iterator[tuple[Block, int]]:
    """Yield blocks of several files, each with the number of bytes read so far on disk."""
    before = 0
    has_qid = None
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
) -> Iterator[Part]:
    """Yield rows of several files in parts of whole queries: `FileRows.parts`."""
    part = _PartRows(options, n_values, n_rows)
    starts = QueryStarts()
    done = 0
    for block, done in text_blocks(sources, options):
        candidates = np.fromiter(starts.starts(block), np.int64) if block.has_qid else None
        first = 0
        while True:
            stop = _end(block, first, part, n_values, n_rows)
            if candidates is not None:
                at = int(candidates.searchsorted(stop))
                stop = int(candidates[at]) if at < candidates.size else block.n_rows + 1
            if stop > block.n_rows:
                break
            part.add(block, first, stop, candidates)
            if part.n_rows:
                yield part.finish(done)
            first = stop
        part.add(block, first, block.n_rows, candidates)
    if part.n_rows:
        yield part.finish(done)


def _end(block: Block, first: int, part: _PartRows, n_values: int, n_rows: int) -> int:
    """Return the row of a block at which a part is full; the end of the block if it is not full."""
    before = int(block.ends[first - 1]) if first else 0
    wanted = before + n_values - part.values.n
    by_values = int(block.ends.searchsorted(wanted)) + 1 if wanted > before else first
    return max(first, min(by_values, first + max(n_rows - part.n_rows, 0)))


class _PartRows(BlockRows):
    """Rows of a part of about this size, in arrays that the next part overwrites.

    New arrays for each part took a quarter of the reading time, because the system clears pages.
    """

    def __init__(self, options: Options, n_values: int, n_rows: int) -> None:
        # A part ends with a query: an eighth more is enough, except for long ones.
        super().__init__(options, n_rows + n_rows // 8, n_values + n_values // 8)
        self.queries = Growing(np.int64, capacity=n_rows + n_rows // 8)
        self.query = -1  # the last one

    def add(self, block: Block, first: int, last: int, starts: NDArray[np.int64] | None) -> None:
        """Append rows first .. last - 1 of a block, whose queries start at ``starts``."""
        n = last - first
        if n == 0:
            return
        self.append(block, first, last)
        self.labels.room(n, 0.0)[:] = block.labels[first:last]
        self.n_columns = self.largest(block)
        if starts is not None:
            begins = np.zeros(n, dtype=np.int64)
            begins[starts[starts.searchsorted(first) : starts.searchsorted(last)] - first] = 1
            queries = self.queries.room(n, 0.0)
            np.cumsum(begins, out=queries)
            queries += self.query
            self.query = int(queries[-1])

    def finish(self, bytes_read: int) -> Part:
        """Return the rows; the next ones start a new part."""
        n_features = self.options.n_features or self.n_columns
        X = csr(self.values.used(), self.columns.used(), self.ends.used(), n_features)
        queries = self.queries.used()
        part = Part(X, self.labels.used(), queries if queries.size else None, bytes_read)
        for grown in (self.values, self.columns, self.labels, self.queries):
            grown.n = 0
        self.ends.n = 1  # the leading 0
        self.n_columns = 0
        self.query = -1
        return part
