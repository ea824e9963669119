"""The ``fit`` of rankers that learn from labels or listed pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.fitted import keep_names
from rankcore._core.monitor import Callback
from rankcore._core.sources import RowBlocks
from rankcore.ranking._click_pairs import (
    PropensitiesLike,
    weigh_clicks,
    with_columns,
    with_positions,
)
from rankcore.ranking._queries import Given, held_out_sets, take_queries

Weights = dict[str, Any]  # sample_weight, pairs and pairs_weight
HeldOut = tuple[Any, Any, Any, Any, Any]  # eval_set, eval_X, eval_y, eval_qid and eval_group
Callbacks = Iterable[Callback]


class PairwiseFitMixin:
    """Mixin of rankers that learn from labels or listed pairs. Not public."""

    _check_params: Callable[[], None]

    @abstractmethod
    def _fit(
        self, given: Given, weights: Weights, held_out: HeldOut, callbacks: Callbacks | None
    ) -> None:
        """Implement `fit`, after the parameters are checked."""

    def fit(
        self,
        X: RowsLike | RowBlocks,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | str | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pairs_weight: ArrayLike | None = None,
        eval_set: EvalSet | None = None,
        eval_X: RowsLike | Sequence[RowsLike] | None = None,
        eval_y: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        eval_group: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        position: ArrayLike | None = None,
        propensity: ArrayLike | PropensitiesLike | None = None,
    ) -> Self:
        """Fit a new model or, with ``warm_start``, continue the current one.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite; for `RankBoost`, NaN is missing. CSR and C-ordered float32 or float64 arrays are
            not copied: do not change them before the call returns, nor in callbacks. With
            ``kernel="precomputed"`` of `RankSVM`, the kernel matrix, shape (n_samples, n_samples).
            Rows on disk, from `rankcore.datasets.open_rows`, include their labels and queries:
            `RankBoost` uses a row cache, `RankSVM` reads all rows into memory.
        y : array-like of numbers, shape (n_samples,)
            Labels, higher for more relevant: any real numbers, from 0 to 60 with a ``pair_weight``
            of NDCG. Optional with ``pairs``.
        qid : array-like, shape (n_samples,), or str, optional
            Query of each row, of any type and in any order, or the name of a column of a DataFrame
            X; by default, a column named "qid" if X has one. None: all rows belong to one query.
        group : array-like of int, optional
            Sizes of queries with contiguous rows, instead of ``qid``.
        sample_weight : array-like, optional
            Weights of rows, shape (n_samples,); or of queries, in order of first appearance, shape
            (n_queries,), which are those of all of their rows. Rows of weight 0 are left out. With
            ``balance="query"`` the weight of a query is the mean of its rows' positive weights, in
            ``fit`` relative to that of all rows, and its pairs share it in proportion to the
            products of their rows' weights. With ``balance=None`` the weight of a pair is this
            product.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Rows of the winner and the loser of each pair to learn from, instead of labels.
        pairs_weight : array-like, shape (n_pairs,), optional
            Weights of ``pairs``.
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass, round or step.
        eval_X, eval_y : array-like, or lists of them, optional
            ``eval_set`` as two arguments, of which a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        eval_qid, eval_group : array-like, or lists of them, optional
            Queries of the held-out rows, as ``qid`` or ``group``; required if the fit has queries.
        callbacks : iterable of callables, optional
            Called after each pass, round or step with a `rankcore.callbacks.Iteration`; the fit
            ends when one returns True.
        position : array-like of int, shape (n_samples,), optional
            Position of each row in its list, from 1, if rows are impressions, y has clicks and qid
            sessions. Without ``propensity``, linear rankers learn an effect of each position in
            addition to the features, which predictions and measures of held-out rows omit:
            ``position_effect_``.
        propensity : array-like of float or Propensities, optional
            Examination probability of each position or, without ``position``, of each row. The fit
            then uses the pairs of each clicked row and every other row of its session, with weight
            y / max(propensity, 0.01). The weight of a session is the sum of its pairs' weights.
            With `rankcore.clicks.Propensities` that have ``trust``, y - trust replaces y, and a row
            with a negative weight loses against every other row.
            Where documents are shown in several sessions, `rankcore.clicks.click_pairs` adds up
            their clicks: its pairs are fewer and less noisy.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If input or parameters are invalid, no query has two documents with different labels,
            or a kernel matrix requires more than ``memory_limit``. A failed or interrupted fit does
            not change the estimator.
        """
        self._check_params()
        weights = {"sample_weight": sample_weight, "pairs": pairs, "pairs_weight": pairs_weight}
        held_out = (eval_set, eval_X, eval_y, eval_qid, eval_group)
        given = (X, y, qid, group)
        if propensity is not None:
            weights = weigh_clicks(given, weights, propensity, position)
            if getattr(self, "balance", None) != "query":
                del weights["sample_weight"]
        elif position is not None:
            self._check_positions()
            if callbacks is not None:
                raise ValueError(
                    "position without propensity excludes callbacks, which would find effects of "
                    "positions in the model: omit callbacks, or pass propensity"
                )
            given, places = with_positions(given, position)
            held_out = self._without_positions(X, held_out, places.size)
            self._fit(given, weights, held_out, callbacks)
            self._drop_positions(X, places)
            return self
        self._fit(given, weights, held_out, callbacks)
        self.__dict__.pop("position_effect_", None)  # of an earlier fit
        return self

    def _check_positions(self) -> None:
        """Raise ValueError unless the learner supports effects of positions."""
        raise ValueError(
            f"{type(self).__name__} requires propensity with position: only PairwisePerceptron and "
            "RankSVM without a kernel learn effects of positions"
        )

    def _without_positions(self, X: Any, held_out: HeldOut, n_places: int) -> HeldOut:
        """Held-out rows with a zero for each position: they are measured without its effect."""
        sets = held_out_sets(held_out)
        if not sets:
            return held_out
        like: Any = copy(self)
        keep_names(like, take_queries(X, None, None)[0])
        wide = [(with_columns(like._more_rows(one), n_places), y) for one, y, _, _ in sets]
        return wide, None, None, [qid for *_, qid, _ in sets], [group for *_, group in sets]

    def _keep_features(self, n_features: int) -> None:
        """Remove all but the first features from the model."""
        raise NotImplementedError

    def _drop_positions(self, X: Any, places: NDArray[np.int64]) -> None:
        """Remove the effects of positions, which are the last features, from the model."""
        fitted: Any = self
        n_features = fitted.n_features_in_ - places.size
        if hasattr(self, "coef_"):
            effect = np.full(int(places.max()), np.nan)
            effect[places - 1] = fitted.coef_[n_features:]
            fitted.position_effect_ = effect
        self._keep_features(n_features)
        keep_names(self, take_queries(X, None, None)[0])
        fitted.n_features_in_ = n_features
