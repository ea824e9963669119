"""Online learners on shards, by iterative parameter mixing.

In each pass every shard continues the same model by ``partial_fit``, and the models are mixed:
those of ordered labels by `rankcore.merge`, pairwise perceptrons by `mix_pairwise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.labels import encode
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import SPARSE
from rankcore._core.sources import Window
from rankcore._core.training import Trainer
from rankcore.dask._estimators import Watching
from rankcore.dask._shards import Shard, ShardedRows, check_supported, take_rows
from rankcore.ordinal.merge import merge
from rankcore.ordinal.scale import fix_scale
from rankcore.ordinal.standardizing import standardize_by
from rankcore.ordinal.training import OnlineLearner, partial_fit_online
from rankcore.ordinal.weights import WeightFacts, weights_of_classes
from rankcore.progress import Progress, report
from rankcore.ranking.perceptron_state import PairwiseState
from rankcore.ranking.perceptron_training import PairwiseLearner
from rankcore.ranking.standardizing import scale_by


def fit_ordinal(model: Any, rows: ShardedRows, watching: Watching, *, classes: Any) -> Any:
    """Return a fitted copy of an online learner of ordered labels, an ordinary estimator."""
    ranks = rows.ranks(model, classes)
    generator = as_generator(model.random_state)
    state = model._new_state(rows.n_features, ranks.size)
    state.model.check_mixes()
    if model.class_weight is not None or rows.weighted:
        model._check_weighable()
    weigh_rows(model.class_weight, rows, ranks, visits=not model._weighs_steps)
    standardize(state.model, model, rows)
    fix_scale(state.model, model, lambda: rows.mean_square, lambda: rows.share_of_nonzero)
    fitted = model._fitted_copy(rows.form, rows.n_features, state, ranks_=ranks)
    learner = OrdinalMixing(fitted, rows, generator)
    Trainer(learner, rows.source(), watching.of_labels(fitted)).run()
    fitted._warn_of_fit()
    return fitted


def standardize(new: Any, model: Any, rows: ShardedRows) -> None:
    """Set the units of a new model by the rows of all shards."""
    if not new.standardizes:
        return
    if rows.share_of_nonzero <= SPARSE:
        new.leave_alone()
        return
    standardize_by(new, model, rows.moments(mean=1.0))


def fit_pairwise(model: Any, rows: ShardedRows, watching: Watching) -> Any:
    """Return a fitted copy of a `PairwisePerceptron`, averaged or last."""
    check_supported(model, variant=("averaged", "last"), quality=(None,))
    if not rows.in_queries:
        raise ValueError(
            "a ranker compares the documents of a query: qid is required for all blocks"
        )
    generator = as_generator(model.random_state)
    state = model._new_state(rows.n_features, generator)
    if state.model.has_factors:
        scale_by(state.model, rows.moments(rows.mean_weight), None, type(model).__name__)
    if model.balance == "query" and rows.weighted:
        rows.shards.transform(divide_weights, by=rows.mean_weight)
    largest = rows.largest_query
    fitted = model._fitted_copy(rows.form, rows.n_features, state, _largest_query=largest)
    learner = PairwiseMixing(fitted, rows, generator)
    Trainer(learner, rows.source(), watching.of_queries(fitted, rows)).run()
    return fitted


class Mixing:
    """Passes over all shards: the part of a learner that does not depend on the model."""

    def __init__(self, fitted: Any, rows: ShardedRows, generator: Any) -> None:
        self.fitted, self.n_iterations = fitted, int(fitted.max_iter)
        self._rows, self._all_equal, self._tied = rows, rows.all_equal, rows.tied
        self._seed = int(generator.integers(2**63))

    def open(self, number: int) -> None:
        """Implement `Learner.open`: mixing logs the pass."""

    def learn_shards(self, epoch: int) -> list[Any]:
        """Return the models after each shard's pass from the present one."""
        shards = self._rows.shards
        with shards.sent(self.fitted) as model:
            seeds = [[self._seed, epoch, number] for number in shards.numbers]
            return shards.gather(learn_pass, seeds, model=model)


class OrdinalMixing(Mixing, OnlineLearner):
    """Learner of ordered labels, with passes over all shards."""

    def learn(self, window: Window, generator: Any, number: int) -> None:
        """Implement `Learner.learn`."""
        fitted, base = self.fitted, self.fitted._state
        state = merge(self.learn_shards(number), base=fitted)._state
        if len(state.log) < number:
            raise ValueError("a pass visited no row: the weights of the rows are too small")
        state.validation = base.validation
        fitted._state = state
        examples, total, _ = state.log[-1]
        n_rows = self._rows.n_rows
        report(Progress(number, self.n_iterations, n_rows, n_rows, total / examples))


class PairwiseMixing(Mixing, PairwiseLearner):
    """Learner of a pairwise perceptron, with passes over all shards."""

    def learn(self, window: Window, generator: Any, number: int) -> None:
        """Implement `Learner.learn`."""
        base, models = self.fitted._state, self.learn_shards(number)
        self.fitted._state = state = mix_pairwise([model._state for model in models], base)
        pairs, wrong, _, n, _ = state.log[-1]
        share, what = wrong / max(pairs, 1), "share of mistakes"
        report(Progress(number, self.n_iterations, n, n, share, what, "queries"))


def mix_pairwise(states: Sequence[PairwiseState], base: PairwiseState) -> PairwiseState:
    """Return the mean of states that continued ``base``.

    That of the current hypotheses is over shards; in the average, all successes weigh the same.
    """
    models = [state.model for state in states]
    model = models[0].mixed(models, np.full(len(models), 1 / len(models)), base.model)
    if not model.is_finite():
        raise ValueError("the sums of the averages overflowed: the models' weights are too large")
    pairs, mistakes, _, n_queries, skipped = np.sum([state.log[-1] for state in states], axis=0)
    record = [pairs, mistakes, model.n_mistakes + 1, n_queries, skipped]
    log = [*base.log, [int(count) for count in record]]
    return replace(base, model=model, log=log, streaming=False)


def weigh_rows(class_weight: Any, rows: ShardedRows, ranks: NDArray[Any], visits: bool) -> None:
    """Multiply the weights of rows by those of their classes, with means over all shards."""
    if class_weight is None and not rows.weighted:
        return
    of_classes = None
    if class_weight is not None:
        counts = np.zeros(ranks.size, dtype=np.int64)
        for part in rows.stats:
            counts[encode(part.labels, ranks)] += part.counts
        of_classes = weights_of_classes(class_weight, counts, ranks)
    of_shards = rows.shards.gather(weight_facts, of_classes=of_classes, ranks=ranks)
    facts = WeightFacts.together(of_shards)
    divisor = facts.divisor(visits=visits)
    rows.shards.keep([part.largest > 0 for part in of_shards])
    equal = facts.all_weigh(divisor)
    rows.shards.transform(weigh, of_classes=of_classes, ranks=ranks, divisor=divisor, drop=equal)


# ------------------------------------------------------------------------------ tasks


def learn_pass(shard: Shard, seed: Sequence[int], model: Any) -> Any:
    """Return a copy of a model after a pass over a shard."""
    learner, n = deepcopy(model), shard.y.size
    vars(learner).pop("feature_names_in_", None)  # rows of shards have no names
    in_queries = hasattr(learner, "balance")
    if learner.shuffle:
        rng = np.random.default_rng(seed)
        shard = take_rows(
            shard, shuffled(group_rows(shard.qid, n), rng) if in_queries else rng.permutation(n)
        )
    if in_queries:
        window = Window(shard.X, shard.y, None, 0, 0, shard.weights)
        learner._learn_more(window, shard.qid, follow=False)  # with the same factors on all shards
    else:
        learner.class_weight = None  # a factor of the weights already
        # In the same units on all shards.
        partial_fit_online(learner, shard.X, shard.y, None, shard.weights, follow=False)
    return learner


def shuffled(queries: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return rows in a random order of their queries."""
    rows = np.arange(queries.bounds[-1]) if queries.rows is None else queries.rows
    parts = np.split(rows, queries.bounds[1:-1])
    return np.concatenate([parts[k] for k in rng.permutation(len(parts))])


def divide_weights(shard: Shard, by: float) -> Shard:
    """Divide the weights of rows by their mean."""
    return replace(shard, weights=None if shard.weights is None else shard.weights / by)


def row_weights(shard: Shard, of_classes: Any, ranks: Any) -> NDArray[np.float64]:
    """Return the weights of rows times those of their classes."""
    weights = np.ones(shard.y.size) if shard.weights is None else shard.weights
    return weights if of_classes is None else weights * of_classes[encode(shard.y, ranks)]


def weight_facts(shard: Shard, of_classes: Any, ranks: Any) -> WeightFacts:
    """Summarise the weights of a shard."""
    return WeightFacts.of(row_weights(shard, of_classes, ranks))


def weigh(shard: Shard, of_classes: Any, ranks: Any, divisor: float, drop: bool) -> Shard:
    """Set the weights of rows, or none if all of them are equal."""
    weights = None if drop else row_weights(shard, of_classes, ranks) / divisor
    return replace(shard, weights=weights)
