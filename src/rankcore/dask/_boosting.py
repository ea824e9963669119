"""Exact RankBoost on shards: bins independent of the shards, and integer sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from fractions import Fraction
from math import frexp, ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import as_rows
from rankcore._core.numbers import exact_sum
from rankcore._core.queries import group_rows
from rankcore.boosting._booster import steps_of, vanishing
from rankcore.boosting._given_bins import Cuts, GivenBins, ValueGroups
from rankcore.boosting._params import grows_trees
from rankcore.boosting._stump_booster import Round, Step
from rankcore.boosting._stump_shard import StumpShard
from rankcore.boosting._training import RoundLearner, train_rounds
from rankcore.boosting.rankboost import RankBoost
from rankcore.dask._rounds import rounds_of
from rankcore.dask._run import Run, Watching
from rankcore.dask._shards import PairWeights, Shard, check_supported, in_queries, naming
from rankcore.ranking._pairs import Pairing, nothing_to_learn, pair_by_label
from rankcore.ranking._queries import as_relevance, warn_without_qid

# Maximum exponents of the powers of two that scale weights to about 1.
FARTHEST = 1000


@dataclass(frozen=True)
class Documents:
    """Compared rows of a shard, in the order of the columns."""

    X: Any
    docs: NDArray[np.int64]
    pairing: Pairing | None  # None if all shards have parts of one query
    # Number of documents with the upper label in that query; these come first.
    n_winning: int
    weights: NDArray[np.float64] | None  # weights of the documents of that query
    largest: int  # rows of the largest query


@dataclass(frozen=True)
class Size:
    """Size of the documents of a shard, for the client."""

    n_pairs: int
    # For the single query that is divided among all shards.
    n_winning: int
    n_losing: int
    # Weight of all pairs; for that query, weights of its documents by label.
    totals: tuple[Fraction, ...]
    largest: int  # rows of the largest query


def fit_stumps(model: Any, run: Run, watching: Watching) -> Any:
    """Fitted copy of a `RankBoost` or `BipartiteRankBoost`; parameters as in `fit_ordinal`."""
    if grows_trees(model):
        raise ValueError("a fit on shards requires max_leaf_nodes=2 and weak='auto' or 'stump'")
    if model.max_bins is None:
        raise ValueError("a fit on shards requires max_bins; found None")
    check_supported(model, select=("edge",), warm_start=(False,))
    findings = run.findings
    labels = np.unique(np.concatenate([finding.labels for finding in findings]))
    labels = as_relevance(labels, labels.size)
    of_queries = in_queries(findings)
    upper = _upper_label(model, labels)
    split = not of_queries and upper is not None
    if not of_queries and not split and len(findings) > 1:
        raise ValueError(
            f"without qid all rows belong to one query, divided among {len(findings)} shards: "
            f"that requires two different labels, and there are {labels.size}; pass qid, or "
            "n_shards=1"
        )
    if not of_queries and not split and isinstance(model, RankBoost):
        warn_without_qid()  # one query that is divided among shards cannot be declared
    learner = copy(model)
    learner._categories = None
    fitted = learner._begin(run.form, run.n_features, 0)
    watch = watching.watch(learner, fitted, run.form, of_queries)
    balanced = model.balance == "query"
    args = upper, split, balanced, PairWeights.of(findings), run.numbers
    documents = run.map(pick, run.shards, *args, what="documents")
    n_pairs, totals, fitted._largest_query = _measured(run, documents, balanced, split)
    # Weights of pairs with a sum of about 1 are far from the limits of the range of numbers.
    powers = tuple(min(-frexp(total)[1], FARTHEST) for total in totals)
    totals = [ldexp(*one) for one in zip(totals, powers, strict=True)]
    values = run.map(values_of, documents, what="values")
    (groups,) = run.joined(ValueGroups.joined, values, "values")
    zero_missing = model.missing == "zero"
    limits = int(model.max_bins), zero_missing
    cuts = run.submit(ValueGroups.cuts, groups, *limits, what="thresholds")
    run.shards = run.map(prepare, documents, cuts, balanced, powers, what="bins")
    # The rows are read again if bins are lost.
    run.drop([*run.shards, cuts])
    step = Step.of(model, n_pairs)
    n_estimators = fitted.n_estimators_
    stumps = rounds_of(run, cuts, tuple(totals), step, n_estimators)
    rounds = _added(fitted._state.model, stumps)
    train_rounds(RoundLearner(fitted, rounds, n_estimators), run.source(), watch)
    return fitted


def _measured(
    run: Run, documents: list[Any], balanced: bool, split: bool
) -> tuple[int, list[float], int]:
    """Number of pairs, their total weights, and number of rows of the largest query."""
    sizes = run.gather(run.map(size_of, documents, balanced, what="size"))
    n_pairs = sum(size.n_pairs for size in sizes)
    if split:
        n_pairs = sum(size.n_winning for size in sizes) * sum(size.n_losing for size in sizes)
    if n_pairs == 0:
        raise nothing_to_learn()
    totals = [float(sum(some)) for some in zip(*(size.totals for size in sizes), strict=True)]
    if not all(totals):
        raise vanishing()
    return n_pairs, totals, max(size.largest for size in sizes)


def _added(model: Any, made: Iterable[Round]) -> Iterator[dict[str, float]]:
    """Add the stumps of rounds to a model; yield the statistics of the rounds."""
    for stump in made:
        model.add(*stump[:4])
        yield stump.figures


def _upper_label(model: Any, labels: NDArray[Any]) -> float | None:
    """Minimum label of relevant documents, if labels are of two kinds."""
    if hasattr(model, "rel"):
        if model.rel is not None:
            return float(model.rel)
        return float(labels[1]) if labels.size > 1 else np.inf
    return float(labels[1]) if labels.size == 2 else None


# ------------------------------------------------------------------------------ tasks


def pick(
    shard: Shard,
    upper: float | None,
    split: bool,
    balanced: bool,
    weighing: PairWeights,
    number: int,
) -> Documents:
    """Documents of a shard, with scaled weights."""
    with naming(f"shard {number}"):
        rows = as_rows(shard.X, nan=True)
        labels = as_relevance(shard.y, rows.n_rows)
        weights = weighing.scaled(shard)
        if upper is not None:
            labels = (labels >= upper).astype(np.float64)
        if split:
            docs = np.argsort(-labels, kind="stable")
            of_docs = np.ones(rows.n_rows) if weights is None else weights
            docs = docs[of_docs[docs] > 0]
            return Documents(shard.X, docs, None, int(labels[docs].sum()), of_docs[docs], 0)
        queries = group_rows(shard.qid, rows.n_rows)
        # As in memory, except that all rows of a shard may have weight 0.
        pairing = pair_by_label(
            labels,
            queries,
            weights,
            lexicographic=False,
            balanced=balanced,
            mean=weighing.mean,
        )
        steps_of(pairing, balanced)
    largest = 0 if shard.qid is None else int(np.diff(queries.bounds).max())
    return Documents(shard.X, pairing.docs, pairing, 0, None, largest)


def size_of(documents: Documents, balanced: bool) -> Size:
    """Size of the documents of a shard."""
    n, pairing = documents.docs.size, documents.pairing
    n_winning, weights = documents.n_winning, documents.weights
    if pairing is None:
        assert weights is not None
        totals = exact_sum(weights[:n_winning]), exact_sum(weights[n_winning:])
        return Size(0, n_winning, n - n_winning, totals, 0)
    whole = exact_sum(pairing.weights)
    if balanced:
        factors = pairing.query_weights
        whole = Fraction(pairing.n_pairs.size) if factors is None else exact_sum(factors)
    return Size(int(pairing.n_pairs.sum()), 0, 0, (whole,), documents.largest)


def values_of(documents: Documents) -> ValueGroups:
    """Groups of the values of documents."""
    return ValueGroups.of(as_rows(documents.X, nan=True), documents.docs)


def prepare(
    documents: Documents, cuts: Cuts, balanced: bool, powers: tuple[int, ...]
) -> StumpShard:
    """Bins of a shard, with weights of pairs multiplied by powers of two."""
    rows, docs = as_rows(documents.X, nan=True), documents.docs
    entries = None
    if rows.columns is not None:
        entries = ValueGroups.count(rows, docs)
    places = np.arange(docs.size, dtype=np.int32)
    bins = GivenBins([(rows, docs, places)], docs.size, entries, cuts)
    pairing, n, weights = documents.pairing, documents.n_winning, documents.weights
    if pairing is not None:
        factors = 1.0 if pairing.query_weights is None else pairing.query_weights
        by_query = np.full(pairing.n_pairs.size, np.ldexp(factors, powers[0]))
        return StumpShard(bins, replace(pairing, query_weights=by_query), balanced)
    assert weights is not None
    weights = np.concatenate([np.ldexp(weights[:n], powers[0]), np.ldexp(weights[n:], powers[1])])
    return StumpShard(bins, None, balanced, n, weights)
