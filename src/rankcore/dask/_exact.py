"""Rankers whose fit on shards is that on all rows, whatever the shards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import DaskColumn, DaskRows, EvalSet
from rankcore._core.concurrency import learns
from rankcore._core.monitor import Callback
from rankcore.dask._engine import Client
from rankcore.dask._estimators import Distributed, WatchedLearn
from rankcore.dask._run import Run
from rankcore.dask._shards import Finding
from rankcore.dask._watching import Watching


class ExactRanker(Distributed):
    """A learner of queries that sums over shards. Not public."""

    _by_length = False

    @abstractmethod
    def _learn(self) -> WatchedLearn:
        """The function that fits a model on shards."""

    @learns
    def fit(
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        *,
        qid: DaskColumn | str | None = None,
        sample_weight: DaskColumn | str | None = None,
        eval_set: EvalSet | None = None,
        eval_qid: ArrayLike | Sequence[ArrayLike] | None = None,
        callbacks: Iterable[Callback] | None = None,
        client: Client | None = None,
        n_shards: int | None = None,
        regroup: bool = False,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Learn from scratch; the model does not depend on the shards, to the bit.

        Parameters
        ----------
        X, y, eval_set, callbacks, client, n_shards, n_features, zero_based
            As for `PRank.fit`.
        qid, regroup, sample_weight, eval_qid
            As for `PairwisePerceptron.fit`. Without qid all rows are of one query; for
            boosting it may have rows in several shards if there are two labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters, such as a query in two shards. The estimator stays as it
            was.
        RuntimeError
            If workers are lost again and again.
        """
        files, fit = (n_features, zero_based), self._learn()
        watching = Watching(eval_set, eval_qid, callbacks)

        def learn(model: Any, run: Run, findings: list[Finding], form: Any) -> Any:
            return fit(model, run, findings, form, watching)

        return self._fit_on((X, y, qid, sample_weight), learn, client, files, n_shards, regroup)

    def predict(self, X: DaskColumn) -> Any:
        """Scores, as a lazy collection of the kind of X."""
        return self._lazily("predict", X, None, np.float64)
