"""LETOR and svmlight files that are read in each pass, a window of rows at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.opened import opened
from rankcore._core.params import check_flag
from rankcore.datasets.file_rows import FileRows, Part, Piece
from rankcore.datasets.letor_blocks import Block, Growing, Options, blocks, first_number
from rankcore.datasets.query_starts import QueryStarts
from rankcore.datasets.streams import Source, open_lines, title


def reading_options(zero_based: bool, dtype: Any, n_features: int | None) -> Options:
    """Options of reading text rows to learn from."""
    # Whether any feature is 0 is not known before the last row.
    check_flag(zero_based, "zero_based")
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


class TextRows(FileRows):
    """Rows of text files.

    Parameters
    ----------
    sources : sequence of paths or binary files
    options : Options
    window : int

    Notes
    -----
    Memory: a window, a block of the text, and 100 bytes for each query.
    """

    def __init__(self, sources: Sequence[Source], options: Options, window: int) -> None:
        size = sum(os.path.getsize(one) for one in sources if not hasattr(one, "read"))
        super().__init__(sources, size, options.dtype, options.n_features, window)
        self.options = options

    @property
    def settings(self) -> dict[str, Any]:
        """As `FileRows.settings`."""
        return {"zero_based": self.options.zero_based, "dtype": self.dtype.name, "columns": None}

    def pieces(self) -> Iterator[Piece]:
        """As `FileRows.pieces`: blocks of text."""
        for block, done in text_blocks(self.sources, self.options):
            yield block.labels, block.columns, block.values, block.has_qid, done

    def parts(self, n_features: int | None, n_values: int, n_rows: int) -> Iterator[Part]:
        """As `FileRows.parts`."""
        options = replace(self.options, n_features=n_features)
        return text_parts(self.sources, options, n_values, n_rows)


def text_blocks(sources: Sequence[Source], options: Options) -> Iterator[tuple[Block, int]]:
    """Blocks of several files, each with the bytes read so far, as they are on disk."""
    before, has_qid = 0, None
    for source in sources:
        with ExitStack() as files:
            # Opened here, for the position in a compressed file.
            stream: Any = source
            if not hasattr(source, "read"):
                stream = files.enter_context(opened(source, buffering=0))
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
    """Rows of several files in parts of whole queries: `FileRows.parts`."""
    part, starts = _PartRows(options, n_values, n_rows), QueryStarts("")
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
            part.add(block, first, stop, candidates)
            if part.n_rows:
                yield *part.finish(), done
            first = stop
        part.add(block, first, block.n_rows, candidates)
    if part.n_rows:
        yield *part.finish(), done


def _end(block: Block, first: int, part: _PartRows, n_values: int, n_rows: int) -> int:
    """The row of a block before which a part is full; beyond the block if it is not."""
    before = int(block.ends[first - 1]) if first else 0
    wanted = before + n_values - part.values.n
    by_values = int(block.ends.searchsorted(wanted)) + 1 if wanted > before else first
    return max(first, min(by_values, first + max(n_rows - part.n_rows, 0)))


class _PartRows:
    """The rows of a part, in arrays that the next part overwrites.

    New ones for each part took a quarter of the time of reading: the system clears their pages.

    Parameters
    ----------
    options : Options
    n_values, n_rows : int
        About how many there will be.
    """

    def __init__(self, options: Options, n_values: int, n_rows: int) -> None:
        self.options = options
        # A part ends with a query: an eighth more holds all but long ones.
        n_values, n_rows = n_values + n_values // 8, n_rows + n_rows // 8
        self.labels = Growing(np.float64, capacity=n_rows)
        self.ends = Growing(np.int64, capacity=n_rows + 1)
        self.columns = Growing(np.int32, capacity=n_values)
        self.values = Growing(options.dtype, capacity=n_values)
        self.queries = Growing(np.int64, capacity=n_rows)
        self._clear()

    @property
    def n_rows(self) -> int:
        """Rows added so far."""
        return self.labels.n

    def _clear(self) -> None:
        for array in (self.labels, self.ends, self.columns, self.values, self.queries):
            array.n = 0
        self.n_columns = 0
        self.ends.room(1, 0.0)[:] = 0
        self.query = -1  # the last one

    def add(self, block: Block, first: int, last: int, starts: NDArray[np.int64] | None) -> None:
        """Append rows first .. last - 1 of a block, in which queries begin with ``starts``."""
        n = last - first
        if n == 0:
            return
        start, stop = int(block.ends[first - 1]) if first else 0, int(block.ends[last - 1])
        np.add(block.ends[first:last], self.values.n - start, out=self.ends.room(n, 0.0))
        self.labels.room(n, 0.0)[:] = block.labels[first:last]
        self.columns.room(stop - start, 0.0)[:] = block.columns[start:stop]
        self.values.room(stop - start, 0.0)[:] = block.values[start:stop]
        self.n_columns = max(self.n_columns, block.largest - first_number(self.options) + 1)
        if starts is not None:
            begins = np.zeros(n, dtype=np.int64)
            begins[starts[starts.searchsorted(first) : starts.searchsorted(last)] - first] = 1
            queries = self.queries.room(n, 0.0)
            np.cumsum(begins, out=queries)
            queries += self.query
            self.query = int(queries[-1])

    def finish(self) -> tuple[Any, NDArray[np.float64], NDArray[np.int64] | None]:
        """X, labels and queries; what is added next begins another part."""
        from scipy.sparse import csr_matrix

        labels, ends, columns, values, queries = (
            grown.array[: grown.n]
            for grown in (self.labels, self.ends, self.columns, self.values, self.queries)
        )
        n_features = self.options.n_features or self.n_columns
        X = csr_matrix((values, columns, ends), shape=(labels.size, n_features))
        X.has_canonical_format = True
        self._clear()
        return X, labels, queries if queries.size else None
