"""Significance tests of differences between rankings, and between predictions of ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.labels import as_grades, check_words
from rankcore._core.numbers import Floats
from rankcore._core.params import check_count
from rankcore.metrics.comparison import Comparison, Contrast, defined_pairs
from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluation import Evaluation, evaluate
from rankcore.metrics.names import greater_is_better, parse
from rankcore.metrics.row_evaluation import default_measures, evaluate_rows, row_measures

# Random numbers drawn at a time: 8 MB.
_BATCH = 1_000_000
# Number of differences from which on their sums are taken as normal.
MANY = 10_000


def compare(
    scores: Mapping[str, Any],
    y_true: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    metrics: str | Iterable[str] | None = None,
    baseline: str | None = None,
    labels: ArrayLike | None = None,
    convention: str | Convention | None = None,
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    random_state: int = 0,
    docid: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare rankings of the same queries, or predictions of the same ordered labels.

    For each measure and pair of systems: the difference of the means, a bootstrap confidence
    interval, and the paired randomisation test, whose null hypothesis is that the two systems are
    exchangeable in each query, or in each row (Smucker, Allan and Carterette, 2007).

    Parameters
    ----------
    scores : mapping of str to array-like
        At least two systems, by name: scores of the rows, shape (n,); or without ``qid``,
        predicted labels, shape (n,), or probabilities of ranks, shape (n, k), with columns as
        ``predict_proba`` has them, or of a data frame, named by the labels.
    y_true : array-like, shape (n,)
        With ``qid``, numbers, higher for better, or words, as for `evaluate`. Otherwise ordered
        labels.
    qid : array-like, shape (n,), optional
        The query of each row: rankings are compared over queries. None: predictions are compared
        over rows, which should be independent.
    metrics : str or iterable of str, optional
        By default ``"ndcg@10"`` and ``"map"`` with ``qid``; otherwise ``"rank_loss"``, and
        ``"ranked_probability_score"`` if all systems give probabilities. Over rows:
        ``"rank_loss"``, ``"accuracy"``, ``"accuracy_within"`` (a distance of at most 1), and of
        probabilities ``"ranked_probability_score"`` (``"rps"``), ``"brier_score"`` and
        ``"log_loss"``; the rank that probabilities predict is their median. Distances are in ranks
        with ``labels`` and for words, otherwise in the units of the labels. Over queries: any that
        `evaluate` takes.
    baseline : str, optional
        System to compare all others with; None: compare every pair.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first, as for `rank_loss`; ``ranks_`` of a model. Required for
        words, unless ``y_true`` is an ordered categorical. With ``qid`` only for words.
    convention : str or Convention, optional
        Convention of gains, ties, queries without relevant documents and more: ``"sklearn"``,
        ``"trec_eval"`` (version 10; ``"trec_eval-9"``), ``"lightgbm"``, ``"xgboost"``,
        ``"xgboost-"``, ``"letor3"``, ``"letor4"``, ``"ranx"``, or a `Convention`. None:
        `Convention` ``()``.
    n_resamples : int, default=9999
        Random sign patterns of the test, and bootstrap samples. If there are at most this many sign
        patterns (2^n), all are enumerated and the p-value is exact.
    confidence_level : float, default=0.95
        Confidence level of the intervals, between 0 and 1.
    random_state : int, default=0
        Seed. Each contrast uses the same random numbers, so it does not depend on other contrasts.
    docid : array-like, shape (n,), optional
        Document ids. If the convention breaks ties by row order, their order is used instead:
        trec_eval sorts them in descending order.
    n_jobs : int, optional
        Threads; -1 for one per processor. The values do not depend on it.

    Returns
    -------
    Comparison
        Contrasts with means, intervals, p-values, and p-values with Holm's correction.

    Raises
    ------
    ValueError
        For fewer than two systems, an unknown baseline, parameters out of range, measures that have
        no value in a row, or infinity in one (``"log_loss"`` where a label has probability 0),
        without ``qid``, and as `evaluate` and `rank_loss`.
    TypeError
        If scores are not a mapping with string keys, and as `evaluate`.

    Notes
    -----
    O(n_resamples * n_queries) for each contrast. With more than 10,000 queries or rows, the test
    and the interval are those of the normal distribution with the same variance, which differ from
    the random ones by less than their random error. Queries omitted from either mean are omitted
    from the contrast. As values of measures are rounded, sums of differences are equal to the
    observed one if they differ by less than 1e-12 of the sum of absolute differences.

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> rng = np.random.default_rng(0)
    >>> y, qid = rng.integers(0, 3, 2000), np.repeat(np.arange(100), 20)
    >>> noise = rng.normal(size=(2, 2000))
    >>> found = rc.metrics.compare({"a": y + 2 * noise[0], "b": y + noise[1]}, y, qid=qid,
    ...                            metrics="map")
    >>> found[0].difference > 0, found[0].p_value
    (True, 0.0001)
    >>> stars = rng.integers(1, 6, 500)
    >>> near, far = np.clip(stars + rng.integers(-1, 2, (2, 500)) * [[1], [2]], 1, 5)
    >>> found = rc.metrics.compare({"far": far, "near": near}, stars)
    >>> found[0].measure, found[0].difference < 0, found[0].p_value
    ('rank_loss', True, 0.0001)
    """
    if not isinstance(scores, Mapping):
        raise TypeError(
            f"scores must be a mapping from names to scores; got {type(scores).__name__}"
        )
    for system in scores:
        if not isinstance(system, str):
            raise TypeError(f"systems must have str for names; got {system!r}")
    names = [metrics] if isinstance(metrics, str) else None if metrics is None else list(metrics)
    evaluations: dict[str, Evaluation] = {}
    if qid is None:
        if convention is not None or docid is not None:
            raise ValueError("convention and docid belong to rankings of queries; pass qid, too")
        names = default_measures(scores.values()) if names is None else row_measures(names)
        for system, predicted in scores.items():
            with _naming(system):
                evaluations[system] = evaluate_rows(y_true, predicted, names, labels)
    else:
        names = ["ndcg@10", "map"] if names is None else names
        words = None if labels is None else check_words(labels, "labels")
        truth, _ = as_grades(y_true, words, "compare", "labels")
        meant = resolve(convention)
        for name in names:
            parse(name)  # here, so that the error names no system
        for system, s in scores.items():
            with _naming(system):
                evaluations[system] = evaluate(
                    truth, s, qid=qid, metrics=names, convention=meant, docid=docid, n_jobs=n_jobs
                )
    return compare_evaluations(
        evaluations,
        baseline=baseline,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        random_state=random_state,
    )


@contextmanager
def _naming(system: str) -> Iterator[None]:
    """Add the name of a system to errors of its evaluation."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"scores of {system!r}: {error}") from error
    except TypeError as error:
        raise TypeError(f"scores of {system!r}: {error}") from error


def compare_evaluations(
    evaluations: Mapping[str, Evaluation],
    *,
    baseline: str | None = None,
    n_resamples: int = 9999,
    confidence_level: float = 0.95,
    random_state: int = 0,
) -> Comparison:
    """Compare evaluations of several systems, on the queries they have in common.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Result of `evaluate` for each system, by name; at least two systems, with the same measures
        and convention, and without weights: the test weighs all queries the same.
    baseline : str, optional
        System to compare all others with; None: compare every pair.
    n_resamples : int, default=9999
        Random sign patterns of the test, and bootstrap samples. If there are at most this many sign
        patterns (2^n), all are enumerated and the p-value is exact.
    confidence_level : float, default=0.95
        Confidence level of the intervals, between 0 and 1.
    random_state : int, default=0
        Seed. Each contrast uses the same random numbers, so it does not depend on other contrasts.

    Returns
    -------
    Comparison
        Contrasts with means, intervals, p-values, and p-values with Holm's correction.

    Raises
    ------
    ValueError
        For fewer than two systems, different measures or conventions, weights, no query in
        common, and as `compare`.

    Examples
    --------
    >>> import rankcore as rc
    >>> a = rc.metrics.evaluate([1, 0, 1, 0], [2, 1, 1, 2], qid=["p", "p", "q", "q"], metrics="mrr")
    >>> b = rc.metrics.evaluate([0, 1, 1, 0], [1, 2, 2, 1], qid=["q", "q", "p", "p"], metrics="mrr")
    >>> rc.metrics.compare_evaluations({"a": a, "b": b})[0].difference
    0.25
    """
    if len(evaluations) < 2:
        raise ValueError(f"at least two systems are required; got {len(evaluations)}")
    if baseline is not None and baseline not in evaluations:
        raise ValueError(f"baseline {baseline!r} is not among the systems {', '.join(evaluations)}")
    check_count(n_resamples, "n_resamples")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1; got {confidence_level!r}")
    first = next(iter(evaluations.values()))
    for system, evaluation in evaluations.items():
        if list(evaluation) != list(first):
            raise ValueError(
                f"all systems must be measured by {', '.join(first)}; got "
                f"{', '.join(evaluation)} for {system}"
            )
        if not _agree(evaluation.convention, first.convention):
            raise ValueError(
                f"{system} was measured with {evaluation.convention}; the first system with "
                f"{first.convention}"
            )
        if evaluation.weights is not None:
            raise ValueError(
                "evaluations must have no weights, as the test weighs queries equally; got those "
                f"of {system}"
            )
    measures = [name for name in first if first.over[name] == "mean"]
    if not measures:
        raise ValueError(f"a measure with a mean over queries is required; got {', '.join(first)}")
    pairs = (
        list(combinations(evaluations, 2))
        if baseline is None
        else [(baseline, other) for other in evaluations if other != baseline]
    )
    all_contrasts = [
        _contrast(
            measure,
            (a, b),
            defined_pairs(evaluations[a], evaluations[b], measure)[1:],
            int(n_resamples),
            confidence_level,
            random_state,
        )
        for measure in measures
        for a, b in pairs
    ]
    corrected = holm([contrast["p_value"] for contrast in all_contrasts])
    contrasts = [
        Contrast(**contrast, p_holm=p) for contrast, p in zip(all_contrasts, corrected, strict=True)
    ]
    return Comparison(contrasts, dict(evaluations), confidence_level)


def _agree(first: Convention, other: Convention) -> bool:
    """Return whether two conventions are equal; gains may be arrays."""
    return first is other or all(
        np.array_equal(getattr(first, field.name), getattr(other, field.name))
        for field in fields(Convention)
    )


def _contrast(
    measure: str,
    systems: tuple[str, str],
    values: tuple[Floats, Floats],
    n_resamples: int,
    confidence_level: float,
    random_state: int,
) -> dict[str, Any]:
    a, b = values
    if not a.size:
        raise ValueError(f"{measure} is not defined in any query for both of {systems}")
    d = b - a
    better = d if greater_is_better(measure) else -d
    low, high = bootstrap_interval(
        d, n_resamples, confidence_level, np.random.default_rng(random_state)
    )
    return {
        "measure": measure,
        "a": systems[0],
        "b": systems[1],
        "mean_a": float(a.mean()),
        "mean_b": float(b.mean()),
        "difference": float(d.mean()),
        "low": low,
        "high": high,
        "p_value": randomisation_test(d, n_resamples, np.random.default_rng(random_state)),
        "wins": int((better > 0).sum()),
        "ties": int((d == 0).sum()),
        "losses": int((better < 0).sum()),
        "n": int(d.size),
    }


def randomisation_test(d: Floats, n_resamples: int, rng: np.random.Generator) -> float:
    """Compute the p-value of paired differences by random signs.

    All 2^n patterns are enumerated if there are at most ``n_resamples``. The observed one counts.
    Sums of more than `MANY` have the normal distribution.
    """
    from scipy.stats import norm

    d = d[d != 0]  # these have no sign to change
    n = d.size
    if n > MANY:
        return float(2 * norm.sf(abs(d.sum()) / np.sqrt((d**2).sum())))
    extreme = abs(d.sum()) - 1e-12 * np.abs(d).sum()
    if n < 63 and 2**n <= n_resamples:
        numbers = np.arange(2**n)[:, None]
        flipped = (numbers >> np.arange(n) & 1).astype(np.float64)
        return float(np.mean(np.abs(d.sum() - 2 * (flipped @ d)) >= extreme))
    as_extreme = 0
    n_bytes = -(-n // 8)
    for size in _batches(n_resamples, n):
        bits = rng.integers(0, 256, (size, n_bytes), dtype=np.uint8)
        flipped = np.unpackbits(bits, axis=1, count=n).astype(np.float64)
        as_extreme += int((np.abs(d.sum() - 2 * (flipped @ d)) >= extreme).sum())
    return (as_extreme + 1) / (n_resamples + 1)


def bootstrap_interval(
    d: Floats, n_resamples: int, confidence_level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Compute the bootstrap percentile interval of a mean; beyond `MANY` queries, the normal."""
    from scipy.stats import bootstrap, norm

    if d.size == 1:  # every sample is the same
        return float(d[0]), float(d[0])
    if d.size > MANY:
        low, high = norm.interval(confidence_level, d.mean(), d.std() / np.sqrt(d.size))
        return float(low), float(high)
    interval = bootstrap(
        (d,),
        np.mean,
        n_resamples=n_resamples,
        batch=max(1, _BATCH // d.size),
        vectorized=True,
        confidence_level=confidence_level,
        method="percentile",
        random_state=rng,
    ).confidence_interval
    return float(interval.low), float(interval.high)


def _batches(n_resamples: int, n: int) -> Iterator[int]:
    most = max(1, _BATCH // max(n, 1))
    for start in range(0, n_resamples, most):
        yield min(most, n_resamples - start)


def holm(p_values: list[float]) -> list[float]:
    """Correct p-values for multiple tests (Holm, 1979).

    Rejecting those up to a level bounds the probability of any false rejection by that level.
    """
    order = np.argsort(p_values, kind="stable")
    ascending = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(ascending), 1.0)
    return corrected.tolist()
