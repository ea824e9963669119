"""Measures of a new ranker from clicks on the lists of another ranker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.numbers import Floats
from rankcore._core.params import check_count, check_option, check_real
from rankcore._core.warning import warn
from rankcore.clicks._ranked import Log, Ranked, impressions, queries_of
from rankcore.clicks._relevance import VALUES, Sums
from rankcore.clicks.log import windows
from rankcore.metrics.names import parse

# Below this effective number of clicks, intervals are not reliable.
FEW_CLICKS = 100
ESTIMATORS = ("ips", "snips", "dr")
# Values that are resampled at a time: 8 MB.
_BATCH = 1_000_000


@dataclass(frozen=True)
class Estimate:
    """Estimate of a measure of a ranker from clicks on other lists.

    Attributes
    ----------
    value : float
        Mean over queries.
    low, high : float
        Studentised bootstrap interval over queries.
    per_query : ndarray of float64, shape (n_queries,)
        Value of each query.
    """

    value: float
    low: float
    high: float
    per_query: Floats


class CounterfactualEvaluation(dict[str, Estimate]):
    """Estimates by the name of the measure.

    Attributes
    ----------
    queries : list
        Queries in both the log and the ranking.
    effective_sample_size : float
        Number of clicks of equal weight that would have the same variance.
    never_shown : float
        Share of the new ranking's documents, to the maximum depth of the measures, that are not in
        the log: their relevance is 0, or that of the model.
    """

    def __init__(
        self,
        estimates: Mapping[str, Estimate],
        queries: list[Any],
        effective_sample_size: float,
        never_shown: float,
    ) -> None:
        super().__init__(estimates)
        self.queries = queries
        self.effective_sample_size = effective_sample_size
        self.never_shown = never_shown


def evaluate(
    log: Log | Iterable[Log],
    ranking: Mapping[str, ArrayLike],
    *,
    propensity: ArrayLike | Any,
    metrics: str | Iterable[str] = ("ndcg@10", "precision@10", "mrr"),
    estimator: str = "ips",
    clip: float | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> CounterfactualEvaluation:
    """Estimate measures of a new ranker from clicks on the lists of another ranker.

    Parameters
    ----------
    log : ClickLog or windows of one
        Impressions; windows are read twice.
    ranking : mapping or data frame
        A row for each document that the new ranker ranks: "query", "document" and "score", higher
        is better; ties are in row order. For the estimator "dr" also "relevance", a probability
        estimated by a model, such as a click model.
    propensity : array-like, shape (n_positions,), or Propensities
        Probability that each position is examined, from position 1. With ``trust`` of
        `Propensities`, c below is a click less its probability by trust.
    metrics : str or iterable of str
        "ndcg", "dcg" and "mrr", optionally with a depth such as "ndcg@10", and "precision" with a
        depth.
    estimator : {"ips", "snips", "dr"}
        See Notes.
    clip : float, optional
        Maximum weight of a click, at least 1; None: 1 / propensity, however large.
    confidence_level : float
        Confidence level of the intervals, between 0 and 1.
    n_resamples : int
        Bootstrap samples of queries.
    random_state : int
        Seed of the bootstrap.

    Returns
    -------
    CounterfactualEvaluation

    Raises
    ------
    ValueError
        For columns that are missing or of different lengths, a pair that is ranked twice, numbers
        out of range, positions without a propensity, a log and a ranking without a query in common,
        and unknown measures and options.

    Warns
    -----
    UserWarning
        If the effective sample size is below 100 clicks.

    Notes
    -----
    In the position-based model a click at position p has probability theta_p gamma, where gamma is
    the probability that the document is relevant. With weights w = 1 / theta_p, at most ``clip``,
    and the n impressions of a document in a query, gamma is estimated as

    - "ips": the sum of w c over n (Joachims, Swaminathan and Schnabel, 2017). Unbiased without
      ``clip``, biased towards 0 with it.
    - "snips", self-normalised: the sum of w c over the sum of w theta. Also unbiased with ``clip``;
      without it equal to "ips".
    - "dr", doubly robust: m + the sum of w (c - theta m) over n, with the model's relevance m
      (Oosterhuis, 2023). Unbiased if no weight is clipped and all documents were shown, or
      if m is right.

    Estimates may be above 1. A measure is the mean over queries of its expectation under the model:
    precision is the mean relevance of the best k; DCG its sum with discounts 1 / log2(1 + place);
    MRR is the sum over places of 1 / place times the probability that the first relevant document
    is there. They are unbiased if relevance is. NDCG divides by the DCG of the best order, 0 if it
    is not above 0. As that order is not known, this DCG is a weighted mean: one third from the best
    order of the estimates, two thirds cross-fitted, from the order by nine tenths of the
    impressions and the clicks of the others. With 100 impressions of each of five documents of a
    query its bias was about 0.006, with 400 it was 0.004.

    O(n log n) for n impressions. Plain form: ``tests/reference/counterfactual.py``, ``evaluate``.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from rankcore.clicks.evaluation import evaluate
    >>> rng, n = np.random.default_rng(0), 20_000
    >>> theta, relevance = np.array([1, 0.5, 0.25]), np.array([0.2, 0.4, 0.8])
    >>> position = np.tile([1, 2, 3], n)  # the worst document first
    >>> clicked = rng.random(3 * n) < theta[position - 1] * relevance[position - 1]
    >>> log = SimpleNamespace(query=np.repeat(np.arange(n) % 50, 3), document=position,
    ...                       position=position, clicked=clicked)
    >>> new = {"query": np.repeat(np.arange(50), 3), "document": np.tile([1, 2, 3], 50),
    ...        "score": np.tile([1, 2, 3], 50)}
    >>> found = evaluate(log, new, propensity=theta, metrics=["precision@1", "precision@2"])
    >>> print(f"{found['precision@1'].value:.2f} {found['precision@2'].value:.2f}")
    0.81 0.60
    """
    measures = _measures(metrics)
    check_option(estimator, "estimator", ESTIMATORS)
    if clip is not None:
        check_real(clip, "clip", 1.0)
    check_count(n_resamples, "n_resamples")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {confidence_level!r}")
    parts: Any = [log] if hasattr(log, "query") else windows(log)  # type: ignore[arg-type]
    rows = Ranked.of(ranking, queries_of(parts), estimator == "dr")
    most = np.inf if clip is None else float(clip)
    sums = Sums(np.zeros(rows.bounds[-1]) if rows.model is None else rows.model, estimator)
    for part in parts:
        shown = impressions(part, rows, propensity)
        sums.add(shown, np.minimum(1.0 / shown.propensities, most))
    size = sums.effective_sample_size()
    relevance = sums.relevance()
    if size < FEW_CLICKS:
        warn(
            f"the effective sample size is {size:.0f} clicks, below {FEW_CLICKS}: intervals may be "
            "too narrow. Log more sessions, or clip the weights"
        )
    ends = [slice(a, b) for a, b in pairwise(rows.bounds.tolist())]
    estimates = {}
    for name, (kind, k) in measures.items():
        each = np.array([VALUES[kind](relevance.of(query_rows), k) for query_rows in ends])
        rng = np.random.default_rng(random_state)
        low, high = _interval(each, n_resamples, confidence_level, rng)
        estimates[name] = Estimate(float(each.mean()), low, high, each)
    depths = [k for _, k in measures.values()]
    deepest = None if None in depths else max(k for k in depths if k is not None)
    top = np.concatenate([relevance.shown[query_rows][:deepest] for query_rows in ends])
    return CounterfactualEvaluation(estimates, rows.queries, size, float(1 - top.mean()))


def _measures(metrics: str | Iterable[str]) -> dict[str, tuple[str, int | None]]:
    """Return the kinds and cut-offs of measures, by name."""
    measures = {}
    for text in [metrics] if isinstance(metrics, str) else metrics:
        for name, measure in parse(text):
            if measure.kind not in VALUES:
                raise ValueError(
                    f"metrics must be of ndcg, dcg, precision and mrr, which clicks can estimate; "
                    f"got {name!r}"
                )
            measures[name] = measure.kind, measure.k
    if not measures:
        raise ValueError("metrics must name at least one measure")
    return measures


def _interval(
    values: Floats, n_resamples: int, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Compute a studentised bootstrap interval of a mean, accurate for few queries.

    The mean itself for one query, or for equal values.
    """
    n = values.size
    mean = float(values.mean())
    if n < 2 or not values.std():
        return mean, mean
    statistics = np.empty(n_resamples)
    step = max(1, _BATCH // n)
    for first in range(0, n_resamples, step):
        drawn = values[rng.integers(0, n, (min(step, n_resamples - first), n))]
        off = drawn.mean(axis=1) - mean
        deviation = drawn.std(axis=1)
        t = np.divide(off, deviation, out=np.zeros_like(off), where=deviation > 0)
        statistics[first : first + len(drawn)] = t
    below, above = np.quantile(statistics, [(1 - level) / 2, (1 + level) / 2]) * values.std()
    return mean - float(above), mean - float(below)
