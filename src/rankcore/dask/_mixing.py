"""Iterative parameter mixing: a pass over each shard, then models are averaged."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.equal_rows import equal_in_groups
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import as_matrix
from rankcore._core.labels import encode, ranks_among
from rankcore._core.numbers import power_of_two
from rankcore._core.params import as_generator
from rankcore._core.queries import group_rows
from rankcore._core.scales import deviations_of, moments_of
from rankcore._core.sources import Window
from rankcore._core.state import OnlineState
from rankcore._core.training import Trainer
from rankcore.dask._changes import Change
from rankcore.dask._run import Run, Watching
from rankcore.dask._shards import (
    PairWeights,
    Shard,
    Weighing,
    all_equal,
    check_queries,
    check_supported,
    common_order,
    facts_of,
    join_labels,
    naming,
)
from rankcore.ordinal._scale import fix_scale
from rankcore.ordinal._training import OnlineLearner
from rankcore.ordinal._weights import (
    Examples,
    Visits,
    WeightFacts,
    rows_together,
    weights_of_classes,
)
from rankcore.ordinal.merge import mixed
from rankcore.progress import Progress, report
from rankcore.ranking._feature_scale import fix_feature_scale, scaled_rows
from rankcore.ranking._pairs import Pairing, pair_by_label, warn_of_pairs
from rankcore.ranking._perceptron_state import PairwiseState
from rankcore.ranking._queries import as_relevance
from rankcore.ranking._training import PairwiseLearner, bind_pairs, run_pass

MIXINGS = ("uniform", "mistakes")


def fit_ordinal(model: Any, run: Run, *, classes: Any, mixing: str, watching: Watching) -> Any:
    """Fitted copy of an online ordinal learner, as an ordinary estimator."""
    model._check_params()
    known = classes_of(model, run, classes)
    base = model._new_state(run.n_features, known.size)
    fix_scale_of(base, model, run)
    weights, useful = weighing_of(model, run, run.shards, known)
    # Shards whose rows all have weight 0 are omitted.
    run.shards = list(compress(run.shards, useful))
    run.numbers = list(compress(run.numbers, useful))
    fitted = model._shadow(run.form, run.n_features, base, ranks_=known)
    learner = MixedOrdinal(model, fitted, run, weights, mixing)
    Trainer(learner, run.source(), watching.watch_labels(model, fitted, known)).run()
    fitted._warn_of_fit()
    return fitted


class MixedOrdinal(OnlineLearner):
    """Learner of an ordinal model with passes on all shards, which are mixed."""

    def __init__(
        self, model: Any, fitted: Any, run: Run, weights: Weighing | None, mixing: str
    ) -> None:
        self.fitted, self.n_iterations = fitted, int(model.max_iter)
        self._run, self._weights, self._mixing = run, weights, mixing
        self._all_equal = all_equal(run.findings)
        self._orders: list[Any] = []
        if model.shuffle or weights is not None:
            generators = _generators(as_generator(model.random_state), len(run.shards))
            args = weights, model, generators, run.numbers
            first = run.map(begin_visits, run.shards, *args, what="order-0")
            self._orders = run.map(next_visits, first, what="order-1")

    def open(self, number: int) -> None:
        """As `Learner.open`: shards open their own records."""

    def learn(self, window: Window, generator: Any, number: int) -> None:
        """As `Learner.learn`."""
        run, fitted, base, orders = self._run, self.fitted, self._state, self._orders
        fitted._state = sent = Change.of(base)
        held = run.submit(hold, fitted, what=f"model-{number}")
        args = orders or None, held, self._weights, run.numbers
        tasks = run.map(learn_ordinal, run.shards, *args, what=f"epoch-{number}")
        if orders and number < self.n_iterations:  # drawn while models are gathered and mixed
            self._orders = orders = run.map(next_visits, orders, what=f"order-{number + 1}")
        states = [change.onto(sent) for change in run.gather(tasks)]
        run.drop(orders)
        fitted._state = mixed_state = _mix(fitted, states, base, self._mixing)
        mixed_state.validation = base.validation
        examples, total, _ = mixed_state.log[-1]
        if not examples:
            raise ValueError("a pass visited no row: the weights of the rows are too small")
        report(Progress(number, self.n_iterations, run.n_rows, run.n_rows, total / examples))


def classes_of(model: Any, run: Run, classes: Any) -> NDArray[Any]:
    """All labels, lowest rank first: as given, or from all shards."""
    found = np.unique(join_labels([finding.labels for finding in run.findings]))
    declared = model._declared(classes)
    return ranks_among(found, common_order(run.findings), declared, type(model).__name__)


def weighing_of(
    model: Any, run: Run, wholes: Sequence[Any], known: NDArray[Any]
) -> tuple[Weighing | None, list[bool]]:
    """Weights of rows, or None if all are equal; and the shards with positive weight.

    ``wholes`` are futures of all shards. The mean of weights is equal to that in memory, to the
    bit.
    """
    everything = [True] * len(wholes)
    if model.class_weight is None and run.findings[0].heaviest is None:
        return None, everything
    model._check_weighable()
    of_classes = None
    if model.class_weight is not None:
        counts = np.zeros(known.size, dtype=np.int64)
        for finding in run.findings:
            counts[encode(finding.labels, known)] += finding.counts
        of_classes = weights_of_classes(model.class_weight, counts, known)
    plain = Weighing(known, of_classes)
    found = run.gather(run.each(facts_of, wholes, plain, what="weights"))
    facts = WeightFacts.together(found)
    divisor = facts.divisor(visits=not model._weighs_steps)
    if facts.all_weigh(divisor):
        return None, everything
    return Weighing(known, of_classes, divisor), [one.largest > 0 for one in found]


def fix_scale_of(state: OnlineState, model: Any, run: Run) -> None:
    """Set an automatic scale from the rows of all shards."""

    def mean_square() -> float:
        squares = [finding.squares for finding in run.findings]
        shift = max(one for _, one in squares)
        total = sum(np.ldexp(total, 2 * (one - shift)) for total, one in squares)
        return power_of_two(float(total) / run.n_rows, 2 * shift)

    fix_scale(state, model, mean_square, partial(share_in, run))


def share_in(run: Run) -> float:
    """Share of the values of all shards that are not 0."""
    n_nonzero = sum(finding.n_nonzero for finding in run.findings)
    return n_nonzero / (run.n_rows * run.n_features)


def _generators(generator: np.random.Generator, n: int) -> list[np.random.Generator]:
    """One generator per shard; a single shard has that of a fit in memory."""
    if n == 1:
        return [generator]
    seed = int(generator.integers(2**63))
    return [np.random.default_rng([seed, number]) for number in range(n)]


def _mix(model: Any, states: list[OnlineState], base: OnlineState, mixing: str) -> OnlineState:
    if len(states) == 1:
        return states[0]
    shares = _shares(mixing, [int(one.counts[2] - base.counts[2]) for one in states])
    return mixed(model, states, shares, base)


def _shares(mixing: str, mistakes: Sequence[int]) -> NDArray[np.float64]:
    """Weights of models with these numbers of mistakes in their mean."""
    n, total = len(mistakes), sum(mistakes)
    if mixing == "uniform" or total == 0:
        return np.full(n, 1 / n)
    return np.array(mistakes, dtype=np.float64) / total


# ------------------------------------------------------------------------------ tasks


def hold(model: Any) -> Any:
    """Return a model, for the tasks that continue it."""
    return model


def begin_visits(
    shard: Shard,
    weights: Weighing | None,
    model: Any,
    generator: np.random.Generator,
    number: int | None = None,
) -> Visits:
    """Order of visits for the first pass; errors name the shard if it has a number."""
    of_rows = None if weights is None else weights.of(shard)
    visits, _ = model._split_weights(of_rows)
    n_together = rows_together(as_rows(shard.X), shard.y) if model.shuffle else 1
    with nullcontext() if number is None else naming(f"shard {number}"):
        return Visits(shard.y.size, visits, model.shuffle, deepcopy(generator), True, n_together)


def next_visits(visits: Visits) -> tuple[Visits, NDArray[Any] | None]:
    """Visits for the next pass, and their order."""
    following = deepcopy(visits[0] if isinstance(visits, tuple) else visits)
    order = following.next()
    return following, order


def learn_ordinal(
    shard: Shard,
    visits: tuple[Visits, NDArray[Any] | None] | None,
    model: Any,
    weights: Weighing | None,
    number: int,
) -> Change:
    """Change of a model in a pass over a shard."""
    with naming(f"shard {number}"):
        rows, ranks = as_rows(shard.X), encode(shard.y, model.ranks_)
        learner, sent = copy(model), model._state
        learner._state = state = sent.onto()
        state.log.append([0, 0, 0])
        order = None if visits is None else visits[1]
        _, steps = learner._split_weights(None if weights is None else weights.of(shard))
        examples = Examples(rows, ranks, order, steps)
        if examples.n_visits:
            learner._run_pass(state, examples, len(state.log), learner.max_iter)
    return Change.of(state, sent)


# ------------------------------------------------------------------------------ pairs


@dataclass(frozen=True)
class Prepared:
    """Queries of a shard, prepared for passes."""

    X: Any
    pairing: Pairing
    skipped: int
    largest: int
    tied: bool  # whether compared rows are equal


def fit_pairwise(model: Any, run: Run, *, mixing: str, watching: Watching) -> Any:
    """Fitted copy of a `PairwisePerceptron`, averaged or last; parameters as in `fit_ordinal`."""
    model._check_params()
    check_supported(model, variant=("averaged", "last"), quality=(None,))
    queries = [finding.queries for finding in run.findings]
    if any(one is None for one in queries):
        raise ValueError(
            "a ranker compares the documents of a query: qid is required for all blocks"
        )
    check_queries(queries)
    generator = as_generator(model.random_state)
    state = model._new_state(run.n_features, generator)
    fitted = model._shadow(run.form, run.n_features, state, _largest_query=0)

    def deviations() -> NDArray[np.float64]:
        moments = run.gather(run.map(moments_at, run.shards, what="moments"))
        return deviations_of(np.sum(moments, axis=0), run.n_rows)

    fix_feature_scale(fitted._state, deviations, partial(share_in, run))
    orders = _generators(generator, len(run.shards))
    scale = fitted._state.scale
    weighing = PairWeights.of(run.findings) if model.balance == "query" else None
    args = model, weighing, scale, run.numbers
    prepared = run.map(prepare_pairs, run.shards, *args, what="pairs")
    sizes = run.gather(run.map(size_of, prepared, what="size"))
    n_queries = sum(size[0] for size in sizes)
    if n_queries == 0:
        raise ValueError(
            "no query has two documents with different labels (and weights above 0): nothing is "
            "left to learn from"
        )
    fitted._largest_query = max(size[1] for size in sizes)
    warn_of_pairs(max(size[2] for size in sizes))
    learner = MixedPairwise(model, fitted, run, prepared, orders, n_queries, mixing)
    learner._tied = all(size[3] for size in sizes)
    Trainer(learner, run.source(), watching.watch(model, fitted, run.form, True)).run()
    return fitted


class MixedPairwise(PairwiseLearner):
    """Learner of a pairwise perceptron with passes on all shards, which are mixed.

    ``prepared`` are futures of `Prepared`; each shard has a generator of orders.
    """

    def __init__(
        self,
        model: Any,
        fitted: Any,
        run: Run,
        prepared: list[Any],
        orders: list[np.random.Generator],
        n_queries: int,
        mixing: str,
    ) -> None:
        self.fitted, self.n_iterations = fitted, int(model.max_iter)
        self._run, self._prepared, self._orders = run, prepared, orders
        self._n_queries, self._mixing = n_queries, mixing

    def open(self, number: int) -> None:
        """As `Learner.open`: shards open their own record."""

    def learn(self, window: Window, generator: Any, number: int) -> None:
        """As `Learner.learn`."""
        run, fitted, prepared = self._run, self.fitted, self._prepared
        base = fitted._state
        fitted._state = sent = Change.of(base)
        held = run.submit(hold, fitted, what=f"model-{number}")
        args = held, self._orders, len(prepared) == 1, run.numbers
        results = run.gather(run.map(learn_pairs, prepared, *args, what=f"epoch-{number}"))
        run.drop(prepared)
        self._orders = [order for _, order in results]
        states = [change.onto(sent) for change, _ in results]
        fitted._state = mixed_state = _mix_pairs(states, base, self._mixing)
        mixed_state.validation = base.validation
        seen, mistakes = mixed_state.log[-1][:2]
        share, total = mistakes / max(seen, 1), self._n_queries
        what = "share of mistakes"
        report(Progress(number, self.n_iterations, total, total, share, what, "queries"))


def _mix_pairs(states: list[PairwiseState], base: PairwiseState, mixing: str) -> PairwiseState:
    """Mean of the weights; all successes have the same weight in the average."""
    if len(states) == 1:
        return states[0]
    shares = _shares(mixing, [int(one.counts[4] - base.counts[4]) for one in states])
    result = deepcopy(base)
    result.weights = np.sum(
        [w * one.weights for w, one in zip(shares, states, strict=True)], axis=0
    )
    # Successes times weights, over all hypotheses so far: the numerator of the average.
    before = base.total() * base.weights - base.sums
    sums = [one.total() * one.weights - one.sums - before for one in states]
    total = base.total() + sum(one.total() - base.total() for one in states)
    result.sums = total * result.weights - (before + np.sum(sums, axis=0))
    # The mixed weights are a new hypothesis, without successes.
    result.clock = np.array([0.0, total, 0.0])
    result.counts = base.counts + np.sum([one.counts - base.counts for one in states], axis=0)
    result.counts[1:3] = 0
    result.members, result.longest = [], []
    if not (np.isfinite(result.weights).all() and np.isfinite(result.sums).all()):
        raise ValueError("the sums of the averages overflowed: the models' weights are too large")
    opened = [one.log[-1] for one in states]
    figures = np.sum(opened, axis=0).tolist()
    result.log = [*base.log, [*figures[:2], int(result.counts[4]) + 1, *figures[3:]]]
    return result


def moments_at(shard: Shard) -> NDArray[np.float64]:
    """Sums of the features of a shard and of their squares."""
    return moments_of(as_rows(shard.X))


def prepare_pairs(
    shard: Shard,
    model: Any,
    weighing: PairWeights | None,
    scale: NDArray[np.float64],
    number: int,
) -> Prepared:
    """Validate, group and scale a shard once for all passes.

    Weights are as given if queries are not balanced.
    """
    with naming(f"shard {number}"):
        rows = as_rows(shard.X)
        queries = group_rows(shard.qid, rows.n_rows)
        labels = as_relevance(shard.y, rows.n_rows)
        # As in memory, except that all rows of a shard may have weight 0.
        balanced = weighing is not None
        weights, mean = shard.weights, 1.0
        if weighing is not None:
            weights, mean = weighing.scaled(shard), weighing.mean
        pairing = pair_by_label(labels, queries, weights, not model.shuffle, balanced, mean)
        skipped = queries.ids.size - pairing.n_pairs.size
    X = as_matrix(scaled_rows(rows, scale)) if scale.size else shard.X
    tied = equal_in_groups(rows, pairing.docs, pairing.bounds)
    return Prepared(X, pairing, skipped, int(np.diff(queries.bounds).max()), tied)


def size_of(prepared: Prepared) -> tuple[int, int, int, bool]:
    """Number of queries with pairs, maximum rows and pairs of a query, and whether rows tie."""
    n_pairs, largest = prepared.pairing.n_pairs, prepared.largest
    return n_pairs.size, largest, int(n_pairs.max(initial=0)), prepared.tied


def learn_pairs(
    prepared: Prepared, model: Any, generator: np.random.Generator, alone: bool, number: int
) -> tuple[Change, np.random.Generator]:
    """Change of a model in a pass over a shard, and the generator for the next order."""
    with naming(f"shard {number}"):
        rows = as_rows(prepared.X)
        learner, sent, generator = copy(model), model._state, deepcopy(generator)
        learner._state = state = sent.onto()
        state.log.append([0, 0, 0, 0, prepared.skipped])
        sequence = np.arange(prepared.pairing.n_pairs.size)
        if learner.shuffle:
            generator.shuffle(sequence)
        data = bind_pairs(learner, prepared.pairing, rows, state.seed, learner.max_iter)
        epochs = len(state.log), learner.max_iter
        run_pass(learner, data, prepared.pairing, sequence, None, epochs)
    if not alone:  # the committee of a shard, which is not mixed
        state.members, state.longest = [], []
    return Change.of(state, sent), generator
