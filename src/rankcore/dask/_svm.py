"""Linear ranking SVMs on shards: sums of losses, gradients and Hessian products.

Newton's method runs at the client, as in memory. As scores are linear in the weights, elements of
its space are weights only, and no scores leave a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.labels import as_relevance
from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows, warn_without_qid
from rankcore._core.threads import one_blas_thread
from rankcore._core.training import Trainer
from rankcore.dask._blocks import Shard
from rankcore.dask._estimators import FitArguments, check_supported
from rankcore.dask._shards import Shards
from rankcore.ranking.base import ModelState
from rankcore.ranking.pairs import Pairing, nothing_to_learn, pair_by_label
from rankcore.ranking.standardizing import factors_of_fit
from rankcore.ranking.svm.losses import Evaluation, PairLosses, Terms
from rankcore.ranking.svm.models import LinearModel
from rankcore.ranking.svm.newton import NewtonLearner, newton_steps
from rankcore.ranking.svm.spaces import WeightSpace


def fit_ranksvm(model: Any, shards: Shards, given: FitArguments) -> Any:
    """Return a fitted copy of a `RankSVM`."""
    check_supported(model, classes=(None,), kernel=(None,), warm_start=(False,))
    shards.grades()
    if not shards.in_queries:
        if len(shards.futures) > 1:
            raise ValueError(
                "without qid all rows belong to one query, divided among "
                f"{len(shards.futures)} shards: pass qid, or n_shards=1"
            )
        warn_without_qid()
    state, largest = ModelState(None, settings={}), shards.largest_query
    fitted = model._fitted_copy(shards.form, shards.n_features, state, _largest_query=largest)
    monitor = given.monitor_of_queries(fitted, shards)
    factors = None
    if model.standardize == "auto":
        factors = factors_of_fit(shards.moments(shards.mean_weight), None, type(model).__name__)
    shards.transform(prepare, balanced=model.balance == "query", mean=shards.mean_weight)
    sizes = shards.gather(QuerySums.sizes)
    if not any(n_docs.size for n_docs, _, _ in sizes):
        raise nothing_to_learn()
    space = ClusterSpace(shards, sizes, as_generator(model.random_state), factors)
    problem: Any = SimpleNamespace(model=space.model)
    with (
        one_blas_thread(),
        np.errstate(over="ignore", invalid="ignore"),  # overflows raise an error later
    ):
        steps = newton_steps(model, space, space.zero())
        learner = NewtonLearner(fitted, problem, steps, monitor, tied=False)
        Trainer(learner, shards.source(), monitor).run()
        solution = learner.solution()
    fitted._take(problem, solution)
    model._warn(solution)
    return fitted


class ClusterSpace(WeightSpace):
    """Weights of features, for sums over shards of type `QuerySums`."""

    def __init__(
        self, shards: Shards, sizes: Sequence[Any], generator: Any, factors: Floats | None
    ) -> None:
        self._shards = shards
        self._last: Evaluation | None = None
        n_docs, n_values, weights = zip(*sizes, strict=True)
        self._edges = np.cumsum([0, *map(len, n_docs)])
        sizes_of_queries, weight = np.concatenate(n_docs), float(sum(weights))
        super().__init__(
            sizes_of_queries, shards.n_features, weight, generator, sum(n_values), factors
        )

    def model(self, w: Floats) -> LinearModel:
        """Return the model of an element."""
        return LinearModel(self.times_factors(w))

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Evaluation, Floats]:
        """Implement `Space.evaluate`."""
        at = self.along(self.times_factors(w), terms)
        return at, w + self.times_factors(at.slopes)

    def along(self, scores: Floats, terms: Terms) -> Evaluation:
        """Evaluate the loss at weights of features as given, which stand for their scores.

        Slopes are by these weights.
        """
        last = self._last  # the end of a step is evaluated once
        if last is not None and last.terms.same(terms) and np.array_equal(last.scores, scores):
            return last
        of_shards = self._shards.gather(QuerySums.evaluate, w=scores, terms=terms)
        of_sums, traces, gradients = zip(*of_shards, strict=True)
        sums, gradient = np.sum(of_sums, axis=0), np.sum(gradients, axis=0)
        trace, loss = sum(traces), float(terms.factors @ sums[:, 1])
        self._last = Evaluation(
            terms, scores.copy(), gradient, np.empty(0), trace, loss, sums, gradient
        )
        return self._last

    def curve(self, p: Floats, at: Evaluation) -> tuple[Floats, Floats]:
        """Return the weights of p, and the Hessian of the loss times p."""
        weights = self.times_factors(p)
        products = self._shards.gather(QuerySums.curve, w=at.scores, terms=at.terms, p=weights)
        return weights, self.times_factors(np.sum(products, axis=0))

    def _matrix(self, sample: NDArray[np.int64], at: Evaluation) -> tuple[Floats, float]:
        queries = [
            sample[(sample >= first) & (sample < last)] - first
            for first, last in pairwise(self._edges)
        ]
        of_shards = self._shards.gather(QuerySums.matrix, queries, w=at.scores, terms=at.terms)
        matrices, weights = zip(*of_shards, strict=True)
        return np.sum(matrices, axis=0), sum(weights)


# ------------------------------------------------------------------------------ tasks


class QuerySums:
    """Sums over the pairs of a shard; the last evaluation is kept for products at its weights."""

    def __init__(self, X: Any, pairing: Pairing, balanced: bool) -> None:
        self._made_of = X, pairing, balanced
        self._rows, self._losses = as_rows(X), PairLosses(pairing, balanced)
        self._at: tuple[Floats, Evaluation] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return QuerySums, self._made_of  # the evaluation is repeated where it is needed

    def sizes(self) -> tuple[NDArray[np.int64], int, float]:
        """Return the sizes of queries with pairs, the number of values and the weight of pairs."""
        weight = float(self._losses.weights.sum())
        return np.diff(self._losses.pairing.bounds), self._rows.n_values, weight

    def evaluate(self, w: Floats, terms: Terms) -> tuple[Floats, float, Floats]:
        """Return the sums of the loss, the trace of its Hessian, and its gradient."""
        at = self._evaluated(w, terms)
        assert at.pulled is not None
        return at.sums, at.trace, at.pulled

    def curve(self, w: Floats, terms: Terms, p: Floats) -> Floats:
        """Return the Hessian at w times p."""
        _, _, pulled = self._losses.curve(self._evaluated(w, terms), rows=self._rows, weights=p)
        assert pulled is not None
        return pulled

    def matrix(self, queries: NDArray[np.int64], w: Floats, terms: Terms) -> tuple[Floats, float]:
        """Return the Hessian at w of some queries, and the weight of their pairs."""
        if not queries.size:
            return np.zeros((w.size, w.size)), 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # the client raises an error
            matrix = self._losses.curve_rows(self._evaluated(w, terms), self._rows, queries)
        return matrix, float(self._losses.weights[queries].sum())

    def _evaluated(self, w: Floats, terms: Terms) -> Evaluation:
        if self._at is not None:
            weights, at = self._at
            if at.terms.same(terms) and np.array_equal(weights, w):
                return at
        with np.errstate(over="ignore", invalid="ignore"):  # the client raises an error
            at = self._losses.evaluate(terms, rows=self._rows, weights=w)
        self._at = w.copy(), at
        return at


def prepare(shard: Shard, balanced: bool, mean: float) -> QuerySums:
    """Form the pairs of a shard; ``mean`` is that of the weights of all rows."""
    rows = as_rows(shard.X)
    queries = group_rows(shard.qid, rows.n_rows)
    labels = as_relevance(shard.y, rows.n_rows)
    weights = shard.weights
    if balanced and weights is not None:
        weights = weights / mean
    return QuerySums(
        shard.X, pair_by_label(labels, queries, weights, True, balanced, 1.0), balanced
    )
