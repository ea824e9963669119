"""Labels, scores and queries of rows, checked once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats, as_vector, refuse_mask
from rankcore._core.queries import Queries, group_rows, query_numbers, run_blocks
from rankcore._ext.concordance import sort_queries


@dataclass(frozen=True)
class Judged:
    """Rows that were judged and scored; the kernels check that the numbers are finite."""

    labels: Floats
    scores: Floats
    queries: Queries

    def by_id(self, docid: Any) -> Judged:
        """The same rows, those of each query in ascending order of their document ids, if given."""
        if docid is None:
            return self
        refuse_mask(docid, "docid")
        ids, n = np.asarray(docid), self.labels.size
        if ids.shape != (n,):
            raise ValueError(
                f"docid must have one entry for each of the {n} rows, found {ids.shape}"
            )
        try:
            ascending = np.argsort(ids, kind="stable")
        except TypeError:
            raise TypeError(
                "docid must be of one type that can be sorted, such as strings"
            ) from None
        by_query = np.argsort(query_numbers(self.queries)[ascending], kind="stable")
        return replace(self, queries=replace(self.queries, rows=ascending[by_query]))

    def sorted(self, n_jobs: int | None) -> Judged:
        """Copy with each query sorted by descending score, so that no later kernel sorts."""
        order = np.empty(self.scores.size, dtype=np.int64)

        def run(first: int, last: int) -> None:
            sort_queries(self.scores, self.queries.rows, self.queries.bounds, first, last, order)

        run_blocks(run, self.queries.bounds, n_jobs)
        queries = Queries(self.queries.ids, self.queries.bounds, None)
        return Judged(self.labels[order], self.scores[order], queries)


def judged(y_true: Any, y_score: Any, qid: Any) -> Judged:
    """Check labels and scores, and group them by query."""
    labels, scores = as_vector(y_true, "y_true"), as_vector(y_score, "y_score")
    check_lengths(labels, scores)
    return Judged(labels, scores, group_rows(qid, labels.size))


def check_lengths(labels: NDArray[Any], scores: NDArray[Any]) -> None:
    """Raise ValueError unless labels and scores have the same length, above 0."""
    if labels.size != scores.size:
        raise ValueError(
            f"y_true and y_score must have the same length; found {labels.size} and {scores.size}"
        )
    if labels.size == 0:
        raise ValueError("y_true and y_score are empty; a measure requires at least one row")
