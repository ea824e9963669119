"""Relevance estimated from clicks, and measures of an order by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.clicks._ranked import Impressions

# The ideal DCG is estimated twice: from the best order of the estimates, which is too high, and
# from the order by nine folds of the impressions with the relevance by the tenth, which is too low.
# With this share of the second, the biases for tied and for continuous relevance are similar in
# size.
_FOLDS = 10
_CROSSED = 2 / 3


@dataclass(frozen=True)
class Relevance:
    """Estimated relevance of rows."""

    whole: Floats  # from all impressions
    parts: Floats  # (folds, rows): contribution of each fold of impressions
    rest: Floats  # (folds, rows): from the other folds only
    shown: NDArray[np.bool_]

    def of(self, rows: slice) -> Relevance:
        """Return the relevance of the rows of a query."""
        return Relevance(
            self.whole[rows], self.parts[:, rows], self.rest[:, rows], self.shown[rows]
        )


class Sums:
    """Sums over the impressions of each row, in folds, that estimate its relevance."""

    def __init__(self, model: Floats, estimator: str) -> None:
        self.model = model
        self._normalised = estimator == "snips"
        self._counts = np.zeros(model.size, dtype=np.intp)
        self._gained = np.zeros((_FOLDS, model.size))
        self._weighed = np.zeros((_FOLDS, model.size))
        self._weight = self._square = 0.0

    def add(self, shown: Impressions, weights: Floats) -> None:
        """Add impressions with their weights."""
        at = shown.row
        n = self.model.size
        counts = np.bincount(at, minlength=n)
        order = np.argsort(at, kind="stable")
        nth = np.empty(at.size, dtype=np.intp)  # impression of its row
        nth[order] = np.arange(at.size) - (np.cumsum(counts) - counts)[at[order]]
        cell = (nth + self._counts[at]) % _FOLDS * n + at
        shape = self._gained.shape
        size = self._gained.size
        by_model = shown.propensities * self.model[at]
        gained = weights * (shown.clicks - shown.trust - by_model)
        self._gained += np.bincount(cell, gained, size).reshape(shape)
        weighed = np.bincount(
            cell, weights * shown.propensities if self._normalised else None, size
        )
        self._weighed += weighed.reshape(shape)
        self._counts += counts
        counted = weights * shown.clicks
        self._weight += float(counted.sum())
        self._square += float(counted @ counted)

    def effective_sample_size(self) -> float:
        """Return the number of clicks of equal weight that would have the same variance."""
        return self._weight**2 / self._square if self._square else 0.0

    def relevance(self) -> Relevance:
        """Estimate relevance."""
        gained = self._gained
        over = self._weighed
        model = self.model
        total = over.sum(axis=0)
        share = np.divide(over, total, out=np.full(over.shape, 1 / _FOLDS), where=total > 0)
        parts = model * share + np.divide(gained, total, out=np.zeros(over.shape), where=total > 0)
        others = gained.sum(axis=0) - gained
        left = total - over
        rest = model + np.divide(others, left, out=np.zeros(over.shape), where=left > 0)
        added = np.divide(gained.sum(axis=0), total, out=np.zeros(model.size), where=total > 0)
        return Relevance(model + added, parts, rest, self._counts > 0)


def _discounts(n: int) -> Floats:
    return 1.0 / np.log2(np.arange(2.0, n + 2.0))


def _dcg(relevance: Relevance, k: int | None) -> float:
    best = relevance.whole[:k]
    return float(best @ _discounts(best.size))


def _ndcg(relevance: Relevance, k: int | None) -> float:
    best = np.sort(relevance.whole)[::-1][:k]
    discounts = _discounts(best.size)
    # The noise that makes an order the best one is independent of the other clicks.
    orders = np.argsort(-relevance.rest, axis=1, kind="stable")[:, :k]
    crossed = (np.take_along_axis(relevance.parts, orders, axis=1) @ discounts).sum()
    ideal = _CROSSED * crossed + (1 - _CROSSED) * (best @ discounts)
    return float(_dcg(relevance, k) / ideal) if ideal > 0 else 0.0


def _precision(relevance: Relevance, k: int | None) -> float:
    return float(relevance.whole[:k].sum() / k) if k else 0.0


def _reciprocal_rank(relevance: Relevance, k: int | None) -> float:
    best = relevance.whole[:k]
    none_before = np.concatenate([[1.0], np.cumprod(1.0 - best)[:-1]])
    return float((best * none_before) @ (1.0 / np.arange(1.0, best.size + 1.0)))


# Documents in the order of the new ranking, to a depth.
VALUES: dict[str, Callable[[Relevance, int | None], float]] = {
    "ndcg": _ndcg,
    "dcg": _dcg,
    "precision": _precision,
    "reciprocal_rank": _reciprocal_rank,
}
