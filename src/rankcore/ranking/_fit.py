"""The ``fit`` of rankers that learn from labels or from listed pairs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.arguments import EvalSet, RowsLike
from rankcore._core.concurrency import learns
from rankcore._core.fitted import keep_names
from rankcore._core.monitor import Callback
from rankcore._core.sources import RowBlocks
from rankcore.ranking._click_pairs import PropensitiesLike, weigh_clicks, with_positions
from rankcore.ranking._queries import Given, take_queries

Weights = dict[str, Any]  # sample_weight, pairs and pairs_weight
HeldOut = tuple[Any, Any, Any, Any, Any]  # eval_set, eval_X, eval_y, eval_qid and eval_group
Callbacks = Iterable[Callback]


class LearnsPairs:
    """A ranker that learns from labels or from pairs. Not public: subclasses say how."""

    _check_params: Callable[[], None]

    @abstractmethod
    def _fit(
        self, given: Given, weights: Weights, held_out: HeldOut, callbacks: Callbacks | None
    ) -> None:
        """Implement `fit`, with parameters that are checked."""

    @learns
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
        """Learn from scratch, or go on with ``warm_start`` where a learner has it.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
            Finite; `RankBoost` takes NaN for missing values. CSR and C-ordered float32 or float64
            are used in place: do not write to them before the call returns, callbacks included.
            With ``kernel="precomputed"`` of `RankSVM` the kernel matrix, shape
            (n_samples, n_samples). Or rows on disk, from `rankcore.datasets.open_rows`, which have
            their own labels and queries: `RankBoost` takes a row cache, `RankSVM` reads all rows
            into memory.
        y : array-like of numbers, shape (n_samples,)
            Labels, larger for more relevant; any real numbers, but from 0 to 60 with a
            ``pair_weight`` of NDCG. Not needed with ``pairs``.
        qid : array-like, shape (n_samples,), or str, optional
            The query of each row, of any type and in any order; or the name of a column of a frame
            X. A column named "qid" is taken by itself. None: all rows are of one query.
        group : array-like of int, optional
            Sizes of queries whose rows follow each other, instead of ``qid``.
        sample_weight : array-like, optional
            Of rows, shape (n_samples,): a pair weighs the product of its two. Or of queries, in
            order of first appearance, shape (n_queries,). A weight lengthens the steps of
            `PairwisePerceptron`.
        pairs : array-like of int, shape (n_pairs, 2), optional
            Row of the winner and row of the loser: learn from these instead of from labels.
        pairs_weight : array-like, shape (n_pairs,), optional
        eval_set : (X, y), or a list of such pairs, optional
            Held-out rows, measured by ``eval_metric`` after each pass, round or step.
        eval_X, eval_y : array-like, or lists of them, optional
            The same as two arguments, of which a pipeline can transform the first
            (``transform_input=["eval_X"]``).
        eval_qid, eval_group : array-like, or lists of them, optional
            Their queries, by one of the two; required if there are queries to learn from.
        callbacks : iterable of callables, optional
            Called after each pass, round or step with a `rankcore.callbacks.Iteration`; the fit
            ends after one returns True.
        position : array-like of int, shape (n_samples,), optional
            For rows that are impressions, y clicks and qid sessions: the place in its list, from 1,
            at which each row was shown. Without ``propensity`` linear rankers learn an effect of
            each position beside the features, which they leave out when they predict:
            ``position_effect_``.
        propensity : array-like of float or Propensities, optional
            How often the positions are examined, by position, or of each row if there is no
            ``position``. Learns from pairs of each clicked row and every other row of its session,
            of weight y / propensity; propensities below .01 count as that. Sessions weigh the sums
            of their pairs. See `rankcore.clicks.click_pairs` for logs of many sessions.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, if no query has two documents with different labels, or if
            a kernel matrix takes more than ``memory_limit``. A failed or interrupted fit leaves the
            estimator as it was.
        """
        self._check_params()
        weights = {"sample_weight": sample_weight, "pairs": pairs, "pairs_weight": pairs_weight}
        held_out = (eval_set, eval_X, eval_y, eval_qid, eval_group)
        given = (X, y, qid, group)
        self.__dict__.pop("position_effect_", None)
        if propensity is not None:
            weights = weigh_clicks(given, weights, propensity, position)
            if getattr(self, "balance", None) != "query":
                del weights["sample_weight"]
        elif position is not None:
            self._check_positions()
            if callbacks is not None or any(one is not None for one in held_out):
                raise ValueError("position without propensity excludes eval_set and callbacks")
            given, places = with_positions(given, position)
            self._fit(given, weights, held_out, callbacks)
            self._drop_positions(X, places)
            return self
        self._fit(given, weights, held_out, callbacks)
        return self

    def _check_positions(self) -> None:
        """Raise ValueError unless the learner has effects of positions."""
        raise ValueError(
            f"{type(self).__name__} requires propensity with position: only PairwisePerceptron and "
            "RankSVM without a kernel learn effects of positions themselves"
        )

    def _keep_features(self, n_features: int) -> None:
        """Drop what was learned of all but the first features."""
        raise NotImplementedError

    def _drop_positions(self, X: Any, places: NDArray[np.int64]) -> None:
        """Keep the effects of positions, for which the last features were, out of the model."""
        fitted: Any = self
        n_features = fitted.n_features_in_ - places.size
        if hasattr(self, "coef_"):
            effect = np.full(int(places.max()), np.nan)
            effect[places - 1] = fitted.coef_[n_features:]
            fitted.position_effect_ = effect
        self._keep_features(n_features)
        keep_names(self, take_queries(X, None, None)[0])
        fitted.n_features_in_ = n_features
