"""Committees of hypotheses, and their votes on ranks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import check_scores
from rankcore._core.queries import Queries
from rankcore._ext.rows import Rows, project


class Committee(NamedTuple):
    """A committee of hypotheses.

    Attributes
    ----------
    weights : ndarray of float64, shape (n_members, n_features)
        Best member first.
    successes : ndarray of float64, shape (n_members,)
        Pairs that each ranked rightly before its first mistake: what its vote counts.
    """

    weights: NDArray[np.float64]
    successes: NDArray[np.float64]


def votes(successes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of each member in the vote: its successes, or equal weights if all are 0."""
    return successes if successes.any() else np.ones_like(successes)


def borda(
    rows: Rows, members: NDArray[np.float64], successes: NDArray[np.float64], queries: Queries
) -> NDArray[np.float64]:
    """Minus the mean rank that the members give each document within its query, by weighted votes.

    Documents of equal score share the mean of their ranks. O(n_members * (n_values + n_rows log
    n_rows)).
    """
    n = rows.n_rows
    of = np.repeat(np.arange(queries.ids.size), np.diff(queries.bounds))
    starts = np.repeat(queries.bounds[:-1], np.diff(queries.bounds))
    scores, total = np.empty(n), np.zeros(n)
    weights = votes(successes)
    for member, weight in zip(members, weights, strict=True):
        project(rows, np.ascontiguousarray(member), scores)
        check_scores(scores)
        placed = scores if queries.rows is None else scores[queries.rows]
        order = np.lexsort((-placed, of))
        new = np.ones(n + 1, dtype=bool)
        new[1:-1] = (of[1:] != of[:-1]) | (placed[order][1:] != placed[order][:-1])
        edges = np.flatnonzero(new)
        middle = np.repeat((edges[:-1] + edges[1:] + 1) / 2, np.diff(edges))
        total[order] += weight * (middle - starts)
    total /= weights.sum()
    if queries.rows is not None:
        total[queries.rows] = total.copy()
    return -total
