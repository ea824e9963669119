"""Exact linear ranking SVM on shards: integer sums, one optimiser at the client."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from rankcore._core.inputs import as_rows
from rankcore._core.numbers import Floats
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.training import Trainer
from rankcore.dask._run import Run, Watching
from rankcore.dask._shards import PairWeights, Shard, check_supported, in_queries, naming
from rankcore.ranking._base import ModelState
from rankcore.ranking._pairs import nothing_to_learn, pair_by_label
from rankcore.ranking._queries import as_relevance, warn_without_qid
from rankcore.ranking.svm._losses import Terms
from rankcore.ranking.svm._models import LinearModel
from rankcore.ranking.svm._newton import NewtonLearner, newton_steps
from rankcore.ranking.svm._shards import (
    PairShard,
    SharedSpace,
    Slopes,
    Words,
    added_slopes,
    added_words,
    joined_shard,
)


def fit_ranksvm(model: Any, run: Run, watching: Watching) -> Any:
    """Fitted copy of a `RankSVM`; parameters as in `fit_ordinal`."""
    check_supported(model, kernel=(None,), warm_start=(False,))
    of_queries = in_queries(run.findings)
    if not of_queries and len(run.findings) > 1:
        raise ValueError(
            f"without qid all rows belong to one query, divided among {len(run.findings)} shards: "
            "pass qid, or n_shards=1"
        )
    if not of_queries:
        warn_without_qid()
    state = ModelState(None, settings={})
    shadow = model._shadow(run.form, run.n_features, state, _largest_query=0)
    watch = watching.watch(model, shadow, run.form, of_queries)
    balanced = model.balance == "query"
    weighing = PairWeights.of(run.findings) if balanced else None
    prepared = run.map(prepare, run.shards, weighing, run.numbers, what="pairs")
    facts = run.gather(run.map(PairShard.facts, prepared, what="facts"))
    run.drop(prepared)
    useful = [at for at, one in enumerate(facts) if one.sizes.size]
    if not useful:
        raise nothing_to_learn()
    if of_queries:
        shadow._largest_query = max(one.n_in_query for one in facts)
    run.numbers = [run.numbers[at] for at in useful]
    run.shards = [prepared[at] for at in useful]
    run.drop(run.shards)
    questions = ShardSums(run, [facts[at].sizes.size for at in useful], balanced)
    # No entropy is needed: the sample affects only the steps, and so the last bits.
    generator = as_generator(0 if model.random_state is None else model.random_state)
    space = SharedSpace([facts[at] for at in useful], questions, generator)
    problem: Any = SimpleNamespace(model=LinearModel)  # of an element of the space
    with (
        threadpool_limits(limits=1, user_api="blas"),
        np.errstate(over="ignore", invalid="ignore"),  # overflows raise an error later
    ):
        steps = newton_steps(model, space, space.zero())
        tied = all(facts[at].tied for at in useful)
        learner = NewtonLearner(shadow, problem, steps, watch, tied)
        Trainer(learner, run.source(), watch).run()
        found = learner.solution()
    shadow._take(problem, found)
    model._warn(found)
    return shadow


class ShardSums:
    """Sums over shards for the optimiser, for a run with shards of type `PairShard`."""

    def __init__(self, run: Run, n_queries: list[int], balanced: bool) -> None:
        self._run, self._balanced, self._n_asked = run, balanced, 0
        self._edges = np.concatenate([[0], np.cumsum(n_queries)])
        self._sample: tuple[NDArray[np.int64], Any] | None = None

    def slopes(self, weights: Floats, terms: Terms, exponents: NDArray[np.intc]) -> Slopes:
        """Sum `PairShard.slopes` over the shards."""
        found = self._ask(PairShard.slopes, added_slopes, "slopes", weights, terms, exponents)
        assert isinstance(found, Slopes)
        return found

    def curve(self, weights: Floats, terms: Terms, p: Floats, exponents: NDArray[np.intc]) -> Words:
        """Sum `PairShard.curve` over the shards."""
        found = self._ask(PairShard.curve, added_words, "curve", weights, terms, p, exponents)
        return np.asarray(found)

    def matrix(
        self, queries: NDArray[np.int64], weights: Floats, terms: Terms
    ) -> tuple[Floats, float]:
        """`PairShard.matrix` of some queries, which are first joined to one shard."""
        run = self._run
        if self._sample is None or not np.array_equal(self._sample[0], queries):
            self._n_asked += 1
            parts = []
            for at, (shard, number) in enumerate(zip(run.shards, run.numbers, strict=True)):
                first, last = self._edges[at], self._edges[at + 1]
                ours = queries[(queries >= first) & (queries < last)] - first
                if ours.size:
                    what = f"sample-{self._n_asked}-shard-{number}"
                    parts.append(run.submit(PairShard.take, shard, ours, what=what))
            what = f"sample-{self._n_asked}"
            self._sample = queries, run.submit(joined_shard, parts, self._balanced, what=what)
        self._n_asked += 1
        what = f"matrix-{self._n_asked}"
        (found,) = run.gather(
            [run.submit(PairShard.matrix, self._sample[1], weights, terms, what=what)]
        )
        self._drop()
        return found[0], found[1]

    def _ask(self, function: Any, add: Any, what: str, *args: Any) -> Any:
        self._n_asked += 1
        name = f"{what}-{self._n_asked}"
        tasks = self._run.map(function, self._run.shards, *args, what=name)
        found = self._run.sum(add, tasks, name)
        self._drop()
        return found

    def _drop(self) -> None:
        sample = [] if self._sample is None else [self._sample[1]]
        self._run.drop([*self._run.shards, *sample])


# ------------------------------------------------------------------------------ tasks


def prepare(shard: Shard, weighing: PairWeights | None, number: int) -> PairShard:
    """Pairs of a shard, with weights as given if queries are not balanced."""
    balanced = weighing is not None
    with naming(f"shard {number}"):
        rows = as_rows(shard.X)
        queries = group_rows(shard.qid, rows.n_rows)
        # As in memory, except that all rows of a shard may have weight 0.
        labels = as_relevance(shard.y, rows.n_rows)
        weights, mean = shard.weights, 1.0
        if weighing is not None:
            weights, mean = weighing.scaled(shard), weighing.mean
        pairing = pair_by_label(labels, queries, weights, True, balanced, mean)
        return PairShard(shard.X, pairing, balanced, int(np.diff(queries.bounds).max()))
