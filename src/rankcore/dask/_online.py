"""Online learners on shards, by iterative parameter mixing.

In each pass every shard continues the same model by ``partial_fit``, and the models are mixed:
those of ordered labels by `rankcore.merge`, pairwise perceptrons by `mix_pairwise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from math import fsum, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.numbers import power_of_two
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import SPARSE, count_nonzero, square_lengths
from rankcore._core.sources import Window
from rankcore._core.training import Trainer
from rankcore.dask._blocks import Shard
from rankcore.dask._estimators import FitArguments, check_supported
from rankcore.dask._shards import Shards
from rankcore.ordinal.merge import merge
from rankcore.ordinal.scale import fix_scale
from rankcore.ordinal.standardizing import standardize_by
from rankcore.ordinal.training import OnlineLearner, partial_fit_online
from rankcore.progress import Progress, report
from rankcore.ranking.perceptron_state import PairwiseState
from rankcore.ranking.perceptron_training import PairwiseLearner
from rankcore.ranking.standardizing import scale_by


def fit_ordinal(model: Any, shards: Shards, given: FitArguments) -> Any:
    """Return a fitted copy of an online learner of ordered labels, an ordinary estimator."""
    ranks = shards.ranks(model, given.classes)
    generator = as_generator(model.random_state)
    state = model._new_state(shards.n_features, ranks.size)
    state.model.check_mixes()
    if model.class_weight is not None or shards.weighted:
        model._check_weighable()
    mean_square, share_of_nonzero = scales_of(shards)
    shards.weigh(model.class_weight, ranks, model._weights_are)
    if state.model.standardizes and share_of_nonzero <= SPARSE:
        state.model.leave_alone()
    elif state.model.standardizes:
        standardize_by(state.model, model, shards.moments(mean=1.0))
    fix_scale(state.model, model, lambda: mean_square, lambda: share_of_nonzero)
    fitted = model._fitted_copy(shards.form, shards.n_features, state, ranks_=ranks)
    learner = OrdinalMixing(fitted, shards, generator)
    Trainer(learner, shards.source(), given.monitor_of_labels(fitted)).run()
    fitted._warn_of_fit()
    return fitted


def fit_pairwise(model: Any, shards: Shards, given: FitArguments) -> Any:
    """Return a fitted copy of a `PairwisePerceptron`, averaged or last."""
    check_supported(model, classes=(None,), variant=("averaged", "last"), quality=(None,))
    shards.grades()
    if not shards.in_queries:
        raise ValueError(
            "a ranker compares the documents of a query: qid is required for all blocks"
        )
    generator = as_generator(model.random_state)
    state = model._new_state(shards.n_features, generator)
    if state.model.has_factors:
        scale_by(state.model, shards.moments(shards.mean_weight), None, type(model).__name__)
    if model.balance == "query" and shards.weighted:
        shards.transform(divide_weights, by=shards.mean_weight)
    largest = shards.largest_query
    fitted = model._fitted_copy(shards.form, shards.n_features, state, _largest_query=largest)
    learner = PairwiseMixing(fitted, shards, generator)
    Trainer(learner, shards.source(), given.monitor_of_queries(fitted, shards)).run()
    return fitted


class Mixing:
    """Passes over all shards: the part of a learner that does not depend on the model."""

    _tied = False  # equal rows are not looked for

    def __init__(self, fitted: Any, shards: Shards, generator: Any) -> None:
        self.fitted, self.n_iterations, self._shards = fitted, int(fitted.max_iter), shards
        self._seed = int(generator.integers(2**63))

    def open(self, number: int) -> None:
        """Implement `Learner.open`: mixing logs the pass."""

    def learn_shards(self, epoch: int) -> list[Any]:
        """Return the models after each shard's pass from the present one."""
        with self._shards.sent(self.fitted) as model:
            seeds = [[self._seed, epoch, number] for number in self._shards.numbers]
            return self._shards.gather(learn_pass, seeds, model=model)


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
        n_rows = self._shards.n_rows
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


def scales_of(shards: Shards) -> tuple[float, float]:
    """Return the power of two nearest to the mean squared length of the rows, as in memory.

    Also return the fraction of their values that are not 0.
    """
    squares, exponents, counts = zip(*shards.gather(square_sums), strict=True)
    largest = max(exponents)
    total = fsum(ldexp(s, 2 * (e - largest)) for s, e in zip(squares, exponents, strict=True))
    mean_square = power_of_two(total / shards.n_rows, 2 * largest)
    return mean_square, sum(counts) / (shards.n_rows * shards.n_features)


# ------------------------------------------------------------------------------ tasks


def learn_pass(shard: Shard, seed: Sequence[int], model: Any) -> Any:
    """Return a copy of a model after a pass over a shard."""
    learner, n = deepcopy(model), shard.y.size
    vars(learner).pop("feature_names_in_", None)  # rows of shards have no names
    in_queries = hasattr(learner, "balance")
    if learner.shuffle:
        rng = np.random.default_rng(seed)
        queries = group_rows(shard.qid, n)
        shard = shard.take(shuffled(queries, rng) if in_queries else rng.permutation(n))
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


def square_sums(shard: Shard) -> tuple[float, int, int]:
    """Return s and e such that all squares sum to s * 4 ** e, and the number of nonzero values."""
    rows = as_rows(shard.X)
    return *square_lengths(rows), count_nonzero(rows)


def divide_weights(shard: Shard, by: float) -> Shard:
    """Divide the weights of rows by their mean."""
    return replace(shard, weights=None if shard.weights is None else shard.weights / by)
