"""Measures of predicted ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.numbers import Floats, as_weights, check_lengths, scaled, weighted_mean
from rankcore.metrics.labels import as_column, as_numbers, known_labels, ordered, places_of

# Maximum number of labels of a confusion matrix, which then takes 128 MiB.
LARGEST_TABLE = 4096


def rank_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean distance between true and predicted ranks (mean absolute error).

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted ranks: numbers, which predictions may fall between; or, with ``labels``,
        any labels.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first: a label's rank is then its place among them. Required for
        words, unless one of the two is an ordered categorical. A model has them in ``ranks_``.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At least 0, which is perfect.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, a label that is not among ``labels``, or
        weights that are negative or all 0.
    TypeError
        For labels that are not numbers, without ``labels``.

    Examples
    --------
    >>> from rankcore.metrics import rank_loss
    >>> rank_loss([1, 2, 5], [1, 3, 3])
    1.0
    >>> rank_loss(["low", "high"], ["mid", "high"], labels=["low", "mid", "high"])
    0.5
    """
    distance = rank_distances(y_true, y_pred, labels)
    return weighted_mean(distance, row_weights(sample_weight, distance.size))


def accuracy_within(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    d: float = 1,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the fraction of predictions at most ``d`` ranks off.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted ranks: numbers, which predictions may fall between; or, with ``labels``,
        any labels.
    d : float, default=1
        Maximum distance that counts as correct; 0 gives the accuracy.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first: a label's rank is then its place among them. Required for
        words, unless one of the two is an ordered categorical. A model has them in ``ranks_``.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        Between 0 and 1.

    Raises
    ------
    ValueError, TypeError
        As `rank_loss`, and for a negative ``d``.

    Examples
    --------
    >>> from rankcore.metrics import accuracy_within
    >>> accuracy_within([1, 2, 5, 4], [1, 3, 3, 4])
    0.75
    """
    if not d >= 0:
        raise ValueError(f"d must be at least 0; got {d!r}")
    d = min(d, float(np.finfo(np.float64).max))  # an upper bound of the distances
    within = rank_distances(y_true, y_pred, labels) <= d
    return weighted_mean(within, row_weights(sample_weight, within.size))


def accuracy(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the fraction of correct predictions: `accuracy_within` a distance of 0."""
    return accuracy_within(y_true, y_pred, 0, labels=labels, sample_weight=sample_weight)


def macro_rank_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Average the rank loss of each true rank (Baccianella, Esuli and Sebastiani 2009).

    All ranks have the same weight, however rare: always predicting the most frequent rank scores
    badly.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted ranks: numbers, which predictions may fall between; or, with ``labels``,
        any labels.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first: a label's rank is then its place among them. Required for
        words, unless one of the two is an ordered categorical. A model has them in ``ranks_``.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At least 0, which is perfect. Ranks that do not occur in ``y_true``, or weigh nothing,
        are left out.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, a label that is not among ``labels``, or
        weights that are negative or all 0.
    TypeError
        For labels that are not numbers, without ``labels``.

    Examples
    --------
    >>> from rankcore.metrics import macro_rank_loss
    >>> macro_rank_loss([1, 1, 1, 3], [1, 1, 1, 1])
    1.0
    """
    return weighted_mean(_losses_by_rank(y_true, y_pred, labels, sample_weight), None)


def max_rank_loss(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the rank loss of the true rank predicted worst (Cruz-Ramírez et al. 2014).

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted ranks: numbers, which predictions may fall between; or, with ``labels``,
        any labels.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first: a label's rank is then its place among them. Required for
        words, unless one of the two is an ordered categorical. A model has them in ``ranks_``.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At least 0, which is perfect. Ranks that do not occur in ``y_true``, or weigh nothing,
        are left out.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, a label that is not among ``labels``, or
        weights that are negative or all 0.
    TypeError
        For labels that are not numbers, without ``labels``.

    Examples
    --------
    >>> from rankcore.metrics import max_rank_loss
    >>> max_rank_loss([1, 1, 1, 3], [1, 1, 1, 1])
    2.0
    """
    return float(_losses_by_rank(y_true, y_pred, labels, sample_weight).max())


def quadratic_weighted_kappa(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute Cohen's kappa with quadratic weights (Cohen, 1968).

    One minus a ratio: the mean squared distance between true and predicted ranks, divided by its
    expectation if predictions were independent of the truth, with the same frequencies.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted labels.
    labels : array-like, shape (k,), optional
        All labels, lowest first, as for `rank_loss`. None: the numbers that occur in ``y_true`` or
        ``y_pred``, in ascending order. The distance of two labels is the difference of their
        indices.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        At most 1, for perfect agreement; 0 is expected under independence. NaN if all true and
        predicted labels are the same label.

    Raises
    ------
    ValueError
        On empty input, different lengths, NaN or infinity, a label that is not among ``labels``, or
        weights that are negative or all 0.
    TypeError
        For labels that are not numbers, without ``labels``.

    Examples
    --------
    >>> from rankcore.metrics import quadratic_weighted_kappa
    >>> round(quadratic_weighted_kappa([1, 2, 3, 3], [1, 2, 2, 3]), 4)
    0.8
    """
    truth, guess, labels = _columns(y_true, y_pred, labels)
    _, rows, columns = _places(truth, guess, labels)
    a = rows.astype(np.float64)
    b = columns.astype(np.float64)
    weights = row_weights(sample_weight, a.size)
    if weights is not None:
        weighted = weights > 0
        a = a[weighted]
        b = b[weighted]
        weights = scaled(weights[weighted])
    # Relative to the minimum: constant labels then have means and deviations of exactly 0.
    lowest = min(a.min(), b.min())
    a -= lowest
    b -= lowest
    mean_a = np.average(a, weights=weights)
    mean_b = np.average(b, weights=weights)
    chance = np.average((a - mean_a) ** 2 + (b - mean_b) ** 2, weights=weights)
    chance += (mean_a - mean_b) ** 2
    seen = np.average((a - b) ** 2, weights=weights)
    return float(1.0 - seen / chance) if chance > 0 else float("nan")


def confusion_by_rank(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    normalize: Literal["true", "pred", "all"] | None = None,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Compute the confusion matrix of ranks, lowest rank first.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n,)
        True and predicted labels.
    labels : array-like, shape (k,), optional
        All labels, lowest first, as for `rank_loss`. None: the numbers that occur in ``y_true`` or
        ``y_pred``.
    normalize : {"true", "pred", "all"}, optional
        Normalise each row, each column, or the whole matrix to sum 1; empty rows and columns stay
        0.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    ndarray, shape (k, k)
        Entry ``[i, j]`` is the weight of the rows with label ``i`` that are predicted as ``j``.

    Raises
    ------
    ValueError, TypeError
        As `rank_loss`, and for an unknown ``normalize``.

    Examples
    --------
    >>> from rankcore.metrics import confusion_by_rank
    >>> confusion_by_rank(["low", "mid", "mid"], ["low", "mid", "low"], labels=["low", "mid"])
    array([[1., 0.],
           [1., 1.]])
    """
    if normalize not in (None, "true", "pred", "all"):
        raise ValueError(f"normalize must be 'true', 'pred', 'all' or None; got {normalize!r}")
    truth, guess, labels = _columns(y_true, y_pred, labels)
    ordered_labels, rows, columns = _places(truth, guess, labels)
    k = ordered_labels.size
    if k > LARGEST_TABLE:
        raise ValueError(
            f"labels must list at most {LARGEST_TABLE} labels (a table has a cell for each pair); "
            f"got {k}"
        )
    cell = rows * k + columns
    weights = row_weights(sample_weight, rows.size)
    if weights is not None and normalize is not None:
        weights = scaled(weights, {"true": rows, "pred": columns}.get(normalize))
    counts = np.bincount(cell, weights, minlength=k * k).reshape(k, k).astype(np.float64)
    if normalize is None:
        if not np.isfinite(counts).all():
            raise ValueError(
                "the sum of sample_weight must be finite: divide all weights by one number"
            )
        return counts
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    total = counts.sum(axis=axis, keepdims=True)
    return np.divide(counts, total, out=np.zeros_like(counts), where=total > 0)


# Measures of predicted ranks by name, and whether higher is better.
ORDINAL: dict[str, tuple[Callable[..., float], bool]] = {
    "rank_loss": (rank_loss, False),
    "macro_rank_loss": (macro_rank_loss, False),
    "max_rank_loss": (max_rank_loss, False),
    "quadratic_weighted_kappa": (quadratic_weighted_kappa, True),
    "accuracy": (accuracy, True),
    "accuracy_within": (accuracy_within, True),
}


def rank_distances(y_true: Any, y_pred: Any, labels: Any) -> Floats:
    """Compute the distance between the true and the predicted rank of each row."""
    truth, guess = _ranks(y_true, y_pred, labels)
    return _distance(truth, guess)


def _distance(truth: Floats, guess: Floats) -> Floats:
    with np.errstate(over="ignore"):
        distance = np.abs(truth - guess)
    if not np.isfinite(distance).all():
        raise ValueError(
            "the distance of y_true and y_pred must be finite: divide both by one number"
        )
    return distance


def _losses_by_rank(y_true: Any, y_pred: Any, labels: Any, sample_weight: Any) -> Floats:
    """Compute the rank loss of each true rank that occurs."""
    truth, guess = _ranks(y_true, y_pred, labels)
    weights = row_weights(sample_weight, truth.size)
    if weights is None:
        weights = np.ones(truth.size)
    _, rank = np.unique(truth, return_inverse=True)
    weights = scaled(weights, rank)
    total = np.bincount(rank, weights)
    occurs = total > 0
    distance = _distance(truth, guess)
    far = max(0, int(np.frexp(distance.max())[1]) - 900)  # to prevent overflow of the sums
    sums = np.bincount(rank, weights * np.ldexp(distance, -far))
    return np.ldexp(sums[occurs] / total[occurs], far)


def _ranks(y_true: Any, y_pred: Any, labels: Any) -> tuple[Floats, Floats]:
    """Convert true and predicted ranks to numbers."""
    truth, guess, labels = _columns(y_true, y_pred, labels)
    if labels is None:
        return as_numbers("y_true", truth), as_numbers("y_pred", guess)
    _, rows, columns = _places(truth, guess, labels)
    return rows.astype(np.float64), columns.astype(np.float64)


def _places(
    truth: NDArray[Any], guess: NDArray[Any], labels: Any
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.intp]]:
    """Return all labels, lowest first, and the index of each true and predicted label."""
    ordered_labels = known_labels(truth, guess, labels)
    return (
        ordered_labels,
        places_of("y_true", truth, ordered_labels),
        places_of("y_pred", guess, ordered_labels),
    )


def _columns(y_true: Any, y_pred: Any, labels: Any) -> tuple[NDArray[Any], NDArray[Any], Any]:
    """Convert labels to columns; return also all labels, lowest first, if they are given."""
    truth, guess = as_column("y_true", y_true), as_column("y_pred", y_pred)
    check_lengths(y_true=truth, y_pred=guess)
    return truth, guess, ordered(labels, y_true, y_pred)


def row_weights(sample_weight: Any, n: int) -> Floats | None:
    """Validate weights of the rows."""
    return as_weights(sample_weight, "sample_weight", {"row": n})
