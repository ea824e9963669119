"""Counts of events by query and document, the input of click models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from rankcore._core.ids import Codes
from rankcore._core.numbers import Floats, check_lengths
from rankcore.clicks.log import ClickLog, Log, changes, windows

# Number of the event of each impression of a window.
Event = Callable[[ClickLog], NDArray[np.integer[Any]]]


@dataclass(frozen=True)
class Pairs:
    """The unique (query, document) pairs, sorted."""

    codes: Mapping[str, Codes]
    query: NDArray[np.int64]  # (n_pairs,)
    document: NDArray[np.int64]

    def of(self, log: ClickLog) -> NDArray[np.int64]:
        """Find the pair of each impression; -1 if unknown."""
        query: NDArray[np.int64] = log.query.astype(np.int64)
        document: NDArray[np.int64] = log.document.astype(np.int64)
        if log._codes is not self.codes:
            query = self.codes["query"].find("query", log.queries)[query]
            document = self.codes["document"].find("document", log.documents)[document]
        return self._find(query, document)

    def rows(self, qid: ArrayLike, docid: ArrayLike) -> NDArray[np.int64]:
        """Find the pair of each row by its ids; -1 if unknown."""
        query = self.codes["query"].find("qid", qid)
        document = self.codes["document"].find("docid", docid)
        check_lengths(qid=query, docid=document)
        return self._find(query, document)

    def _find(self, query: NDArray[np.int64], document: NDArray[np.int64]) -> NDArray[np.int64]:
        keys = (self.query << 32) | self.document
        wanted = (query << 32) | document
        place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        exists = (query >= 0) & (document >= 0) & (keys[place] == wanted)
        return np.where(exists, place, -1)

    @property
    def query_ids(self) -> NDArray[Any]:
        """Id of the query of each pair."""
        return self.codes["query"].ids()[self.query]

    @property
    def document_ids(self) -> NDArray[Any]:
        """Id of the document of each pair."""
        return self.codes["document"].ids()[self.document]


@dataclass(frozen=True)
class Counts:
    """Counts of events by cell: a pair of query and document, or a pair at a position."""

    pairs: Pairs
    pair: NDArray[np.int32]  # (n_cells,), ascending
    position: NDArray[np.int32]  # (n_cells,), from 0
    events: Floats  # (n_cells, n_events)

    def by_pair(self) -> Floats:
        """Return the sums by pair, shape (n_pairs, n_events)."""
        return sums(self.pair, self.events, self.pairs.query.size)

    def by_position(self) -> Floats:
        """Return the sums by position, shape (n_positions, n_events)."""
        return sums(self.position, self.events, int(self.position.max()) + 1)

    def table(self, values: Floats) -> csr_array:
        """Arrange values of the cells as a sparse matrix of pairs and positions."""
        shape = (self.pairs.query.size, int(self.position.max()) + 1)
        return csr_array((values, (self.pair, self.position)), shape=shape)


def sums(of: NDArray[Any], values: Floats, n: int) -> Floats:
    """Sum the rows of a table by group."""
    columns = [np.bincount(of, weights=column, minlength=n) for column in values.T]
    return np.stack(columns, axis=1)


def clicks(log: ClickLog) -> NDArray[np.uint8]:
    """Return the events of impressions: 0 without and 1 with a click."""
    return log.clicked.view(np.uint8)


@dataclass(frozen=True)
class _Cells:
    """Events by query, document and position, sorted."""

    query: NDArray[Any]
    document: NDArray[Any]
    position: NDArray[Any]
    events: Floats  # (n_cells, n_events)


def count(log: Log, event: Event, n_events: int, *, by_position: bool = True) -> Counts:
    """Count events; O(n log n), in memory for two windows and the cells."""
    merged: list[_Cells] = []  # at most one
    waiting: list[_Cells] = []
    codes: Mapping[str, Codes] | None = None
    for window in windows(log):
        if codes is not None and window._codes is not codes:
            raise ValueError("all windows of a log must come from one log, as open_clicks reads it")
        codes = window._codes
        waiting.append(_cells(window, event, n_events, by_position))
        if merged and sum(cells.query.size for cells in waiting) < merged[0].query.size:
            continue
        merged = [_merge([*merged, *waiting])]
        waiting = []
    if codes is None:
        raise ValueError("the log must have at least one impression; got none")
    cells = _merge([*merged, *waiting])
    first = changes(cells.query, cells.document)
    return Counts(
        pairs=Pairs(codes, cells.query[first], cells.document[first]),
        pair=(np.cumsum(first) - 1).astype(np.int32),
        position=cells.position.astype(np.int32),
        events=cells.events,
    )


def _cells(log: ClickLog, event: Event, n_events: int, by_position: bool) -> _Cells:
    """Count the events of a window."""
    n_documents = int(log.document.max()) + 1
    n_positions = int(log.position.max()) if by_position else 1
    if (int(log.query.max()) + 1) * n_documents * n_positions * n_events >= 2**63:
        raise ValueError("the log has too many queries and documents: split it")
    keys = log.query.astype(np.int64) * n_documents + log.document
    if by_position:
        keys = keys * n_positions + (log.position - 1)
    keys, n = np.unique(keys * n_events + event(log), return_counts=True)
    cells, number = np.divmod(keys, n_events)
    first = changes(cells)
    events = np.zeros((np.count_nonzero(first), n_events))
    events[np.cumsum(first) - 1, number] = n
    rest, position = np.divmod(cells[first], n_positions)
    query, document = np.divmod(rest, n_documents)
    return _Cells(query, document, position, events)


def _merge(parts: list[_Cells]) -> _Cells:
    """Sum equal cells of several windows."""
    if len(parts) == 1:
        return parts[0]
    query = np.concatenate([cells.query for cells in parts])
    document = np.concatenate([cells.document for cells in parts])
    position = np.concatenate([cells.position for cells in parts])
    events = np.concatenate([cells.events for cells in parts])
    order = np.lexsort((position, document, query))
    query = query[order]
    document = document[order]
    position = position[order]
    first = changes(query, document, position)
    added = np.add.reduceat(events[order], np.flatnonzero(first), axis=0)
    return _Cells(query[first], document[first], position[first], added)
