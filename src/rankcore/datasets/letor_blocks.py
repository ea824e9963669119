"""Conversion of blocks of LETOR text to arrays, and their concatenation."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rankcore._core.params import check_integer
from rankcore._core.threads import n_threads
from rankcore._ext.letor import parse, scatter
from rankcore._ext.tokens import find_docids
from rankcore.datasets.ids import MAX_ID, check_length, word, words_of
from rankcore.datasets.streams import Lines

if TYPE_CHECKING:
    from concurrent.futures import Future

MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True)
class Options:
    """Reader options: the arguments of `load_letor`."""

    n_features: int | None = None
    dtype: Any = np.float64
    dense: bool = False
    zero_based: bool | Literal["auto"] = False
    docid: bool = False
    comments: bool = False
    ensure_all_finite: bool | Literal["allow-nan"] = True
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        if self.n_features is not None:
            check_integer(self.n_features, "n_features", 1, MAX_FEATURES)
        if np.dtype(self.dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
            raise ValueError(f"dtype must be float32 or float64; got {self.dtype!r}")
        for name, third in [("zero_based", "auto"), ("ensure_all_finite", "allow-nan")]:
            value = getattr(self, name)
            if value is not True and value is not False and value != third:
                raise ValueError(f"{name} must be True, False or {third!r}; got {value!r}")


class _Scratch:
    """Arrays that the kernel fills with rows, for lines of ``n`` bytes in total."""

    def __init__(self, n: int, n_rows: int, options: Options) -> None:
        n_values = n // 4  # " 1:1"
        self.n = n
        self.n_rows = n_rows
        self.labels = np.empty(n_rows)
        self.ends = np.empty(n_rows, np.int64)
        self.columns = np.empty(n_values, np.int32)
        self.values: np.ndarray = np.empty(n_values, options.dtype)
        self.runs = np.empty((n_rows, 6), np.int64)
        self.comments: np.ndarray | None = None
        if options.docid or options.comments:
            self.comments = np.empty((n_rows, 2), np.int64)


# Kinds of query ids, as the kernel writes them; others are integers such as +1 or 01.
WORD = 0
CANONICAL = 1


class QueryRun(NamedTuple):
    """Neighbouring rows of one query: a record of `Block.runs`."""

    row: int  # the first one
    start: int  # of the id in the text
    stop: int
    number: int  # the id, if it is an integer
    line: int  # of the first row, from 1 in the block
    kind: int


class _BlockStats(NamedTuple):
    """Statistics of a block, which the kernel returns besides the arrays."""

    n_rows: int
    n_values: int
    n_runs: int
    has_qid: bool
    first_row_line: int
    has_zero: bool  # whether a feature has the number 0
    largest: int  # number of a feature; -1 without features
    largest_line: int


class Block:
    """The rows of one block of whole lines, in arrays that the next block overwrites.

    ``first_line`` is the number of the first line, ``taken`` the number of bytes of the file up to
    the end of the block, and ``name`` the name of the file in errors.
    """

    def __init__(
        self,
        text: memoryview,
        first_line: int,
        taken: int,
        name: str,
        options: Options,
        scratch: _Scratch,
    ) -> None:
        self.text = text
        self.first_line = first_line
        self.taken = taken
        self.name = name
        self.scratch = scratch
        stats = _BlockStats._make(
            parse(
                text,
                name,
                first_line,
                first_number(options),
                options.zero_based == "auto",
                options.ensure_all_finite is not True,
                options.ensure_all_finite is False,
                scratch.labels,
                scratch.ends,
                scratch.columns,
                scratch.values,
                scratch.runs,
                scratch.comments,
            )
        )
        self.n_rows = stats.n_rows
        self.has_qid = stats.has_qid
        self.first_row_line = stats.first_row_line
        self.has_zero = stats.has_zero
        self.largest = stats.largest
        self.largest_line = stats.largest_line
        self.labels = scratch.labels[: self.n_rows]
        self.ends = scratch.ends[: self.n_rows]
        self.columns = scratch.columns[: stats.n_values]
        self.values = scratch.values[: stats.n_values]
        self.runs = scratch.runs[: stats.n_runs]
        self.comments = None if scratch.comments is None else scratch.comments[: self.n_rows]

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Return the start and end of the values of rows first .. last - 1."""
        return int(self.ends[first - 1]) if first else 0, int(self.ends[last - 1])

    def where(self, run: QueryRun) -> str:
        """Name the file and the first line of a run in errors."""
        return f"{self.name}, line {self.first_line + run.line - 1}"

    def word(self, start: int, stop: int) -> str:
        """Decode a part of the text."""
        return word(self.text, start, stop)

    def check_id(self, start: int, stop: int) -> None:
        """Raise if an id is too long for an array of ids."""
        if stop - start > MAX_ID:
            line = self.first_line + bytes(self.text[:start]).count(b"\n")
            hint = " (docid=False ignores document ids)"
            check_length(self.name, line, self.text, start, stop, hint)


def first_number(options: Options) -> int:
    """Return the number of column 0 in the text: 1 unless ``zero_based`` is True."""
    return 0 if options.zero_based is True else 1


def blocks(lines: Lines, options: Options) -> Iterator[Block]:
    """Yield blocks in order; each is valid until the next one is read."""
    largest = zero = 0
    has_qid: bool | None = None
    for block in _parsed(lines, options):
        if block.n_rows == 0:
            continue
        if has_qid is not None and block.has_qid != has_qid:
            has, have = ("a", "none") if block.has_qid else ("no", "one")
            raise ValueError(
                f"{lines.name}, line {block.first_row_line}: the row has {has} qid:, while the "
                f"rows before it have {have}; expected one in all or in none"
            )
        has_qid = block.has_qid
        zero |= options.zero_based == "auto" and block.has_zero
        largest = max(largest, block.largest)
        n_columns = largest - first_number(options) + 1 + zero
        n_features = MAX_FEATURES if options.n_features is None else options.n_features
        if n_columns > n_features:
            where = f", line {block.largest_line}" if block.largest == largest else ""
            raise ValueError(
                f"{lines.name}{where}: features must be at most {n_features - n_columns + largest} "
                f"with {n_features} features; got {largest}"
            )
        yield block


def _parsed(lines: Lines, options: Options) -> Iterator[Block]:
    n_jobs = n_threads(options.n_jobs)
    free: list[_Scratch] = []

    def scratch_for(text: memoryview, first_line: int) -> _Scratch:
        n = len(text)
        n_rows = lines.n_lines - first_line + 1
        scratch = free.pop() if free else _Scratch(0, 0, options)
        if scratch.n < n or scratch.n_rows < n_rows:
            return _Scratch(n + n // 8, n_rows + n_rows // 8, options)
        return scratch

    if n_jobs == 1:
        for text, first_line in lines:
            scratch = scratch_for(text, first_line)
            yield Block(text, first_line, lines.taken, lines.name, options, scratch)
            free.append(scratch)
        return
    from concurrent.futures import ThreadPoolExecutor

    pending: deque[Future[Block]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        for text, first_line in lines:
            scratch = scratch_for(text, first_line)
            pending.append(
                pool.submit(Block, text, first_line, lines.taken, lines.name, options, scratch)
            )
            if len(pending) > n_jobs:
                block = pending.popleft().result()
                yield block
                free.append(block.scratch)
        while pending:
            yield pending.popleft().result()


class Growing:
    """An array that grows along its first axis, with initial ``capacity``."""

    def __init__(self, dtype: Any, width: int | None = None, capacity: int = 0) -> None:
        self.shape: tuple[int, ...] = () if width is None else (width,)
        self.dtype = dtype
        self.n = 0
        self.array: np.ndarray = np.empty((capacity, *self.shape), dtype)

    def room(self, n: int, share: float) -> np.ndarray:
        """Return space for n more items, which end at ``share`` of all items; 0 if unknown."""
        start = self.n
        self.n += n
        if self.n > len(self.array):
            expected = int(1.02 * self.n / share) if share else 0
            old = self.array
            self.array = np.empty((max(self.n, expected, 3 * start // 2), *self.shape), self.dtype)
            self.array[:start] = old[:start]
        return self.array[start : self.n]

    def used(self) -> np.ndarray:
        """Return a view of the items."""
        return self.array[: self.n]

    def finish(self) -> np.ndarray:
        """Return the array, without unused space."""
        self.array.resize((self.n, *self.shape), refcheck=False)
        return self.array


class BlockRows:
    """Rows of blocks, concatenated as CSR: labels, ends of rows, columns and values.

    ``n_rows`` and ``n_values`` are estimates of the final sizes, 0 if unknown.
    """

    def __init__(self, options: Options, n_rows: int = 0, n_values: int = 0) -> None:
        self.options = options
        self.n_columns = 0  # before a shift
        self.labels = Growing(np.float64, capacity=n_rows)
        self.ends = Growing(np.int64, capacity=n_rows + 1)
        self.ends.room(1, 0.0)[:] = 0
        self.columns = Growing(np.int32, capacity=n_values)
        self.values = Growing(options.dtype, capacity=n_values)

    @property
    def n_rows(self) -> int:
        """Rows added so far."""
        return self.labels.n

    def append(self, block: Block, first: int, last: int, share: float = 0.0) -> None:
        """Append the values of rows first .. last - 1 of a block; see `Growing.room`."""
        start, stop = block.span(first, last)
        np.add(
            block.ends[first:last], self.values.n - start, out=self.ends.room(last - first, share)
        )
        self.columns.room(stop - start, share)[:] = block.columns[start:stop]
        self.values.room(stop - start, share)[:] = block.values[start:stop]

    def largest(self, block: Block) -> int:
        """Return the maximum number of columns, before a shift, including those of a block."""
        return max(self.n_columns, block.largest - first_number(self.options) + 1)


def csr(values: np.ndarray, columns: np.ndarray, ends: np.ndarray, n_features: int) -> Any:
    """Build a CSR matrix in canonical format of arrays, which are not copied."""
    from scipy.sparse import csr_matrix

    X = csr_matrix((values, columns, ends), shape=(ends.size - 1, n_features))
    X.has_canonical_format = True
    return X


class Collected(BlockRows):
    """Rows of blocks with their ids and comments, CSR or dense.

    ``size`` is the size of the whole file in bytes; 0 if unknown, or if only part of it will be
    added.
    """

    def __init__(self, options: Options, size: int = 0) -> None:
        super().__init__(options)
        self.size = size
        self.shift = 0  # of columns, if a feature 0 occurs after 1 was assumed to be the first
        self.dense = Growing(options.dtype, options.n_features or 0)
        self.run_rows: list[np.ndarray] = []
        self.run_ids: list[np.ndarray] = []
        self.n_runs = 0
        self.run_words: dict[int, str] = {}  # rows where str(id) differs from the word
        self.has_words = False  # that are not integers
        self.docid_parts: list[tuple[int, np.ndarray | None]] = []
        self.comments: list[str] = []

    def add(self, block: Block, first: int, last: int) -> None:
        """Append rows first .. last - 1 of a block."""
        n = last - first
        if n == 0:
            return
        if block.has_qid:
            self._add_qids(block, first, last)
        share = block.taken / self.size if self.size else 0.0
        self.labels.room(n, share)[:] = block.labels[first:last]
        shift = max(self.shift, self.options.zero_based == "auto" and block.has_zero)
        n_columns = self.largest(block)
        if self.options.dense:
            self._make_wide(self.options.n_features or n_columns + shift, shift - self.shift)
        self.shift = shift
        self.n_columns = n_columns
        if self.options.dense:
            scatter(
                block.ends[first:last],
                block.columns,
                block.values,
                block.span(first, last)[0],
                self.shift,
                self.dense.room(n, share),
            )
        else:
            self.append(block, first, last, share)
        if block.comments is not None:
            if self.options.docid:
                self._add_docids(block, block.comments[first:last])
            if self.options.comments:
                spans = block.comments[first:last].tolist()
                self.comments += [block.word(a, b) if a >= 0 else "" for a, b in spans]

    def _make_wide(self, width: int, move: int) -> None:
        """Widen the dense matrix, and shift its columns."""
        old = self.dense
        if width > old.shape[0] or move:
            self.dense = Growing(self.options.dtype, width)
            new = self.dense.room(old.n, 0.0)
            new[:] = 0
            # Columns shifted out were never written: their numbers would have been too large.
            kept = min(old.shape[0], width - move)
            new[:, move : move + kept] = old.array[: old.n, :kept]

    def _add_qids(self, block: Block, first: int, last: int) -> None:
        starts = block.runs[:, 0]
        first_run = starts.searchsorted(first + 1) - 1
        runs = block.runs[first_run : starts.searchsorted(last)]
        for run in np.flatnonzero(runs[:, 5] != CANONICAL).tolist():
            query_run = QueryRun._make(runs[run].tolist())
            block.check_id(query_run.start, query_run.stop)
            self.run_words[self.n_runs + run] = block.word(query_run.start, query_run.stop)
            self.has_words |= query_run.kind == WORD
        self.run_rows.append(np.maximum(runs[:, 0], first) + (self.n_rows - first))
        self.run_ids.append(runs[:, 3].copy())
        self.n_runs += len(runs)

    def _add_docids(self, block: Block, comments: np.ndarray) -> None:
        spans = np.empty_like(comments)
        longest = find_docids(block.text, comments, spans)
        docids = None
        if longest:
            if longest > MAX_ID:
                start, stop = spans[(spans[:, 1] - spans[:, 0]).argmax()].tolist()
                block.check_id(start, stop)
            docids = words_of(block.text, spans, longest)
        self.docid_parts.append((len(spans), docids))

    def matrix(self) -> Any:
        """Return the features, CSR or dense; nothing can be appended afterwards."""
        if self.options.dense:
            return self.dense.finish()
        columns = self.columns.finish()
        if self.shift:
            columns += self.shift
        n_features = self.options.n_features or self.n_columns + self.shift
        return csr(self.values.finish(), columns, self.ends.finish(), n_features)

    def qids(self) -> np.ndarray | None:
        """Return the query id of each row; None without ids."""
        if not self.run_ids:
            return None
        ids = np.concatenate(self.run_ids)
        if self.has_words:
            words = map(str, ids.tolist())
            ids = np.array([self.run_words.get(run, word) for run, word in enumerate(words)])
        starts = np.concatenate(self.run_rows)
        return np.repeat(ids, np.diff(starts, append=self.n_rows))

    def docids(self) -> np.ndarray | None:
        """Return the document id of each row, empty where there is none; None without ids."""
        if all(docids is None for _, docids in self.docid_parts):
            return None
        parts = [np.zeros(n, "U1") if docids is None else docids for n, docids in self.docid_parts]
        return np.concatenate(parts)
