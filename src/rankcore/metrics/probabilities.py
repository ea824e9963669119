"""Scores of predicted probabilities of ranks: ranked probability, Brier and logarithmic scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.frames import names_of
from rankcore._core.inputs import reject_mask
from rankcore._core.labels import is_rising
from rankcore._core.numbers import Floats, weighted_mean
from rankcore.metrics.labels import as_column, known_labels, ordered, places_of
from rankcore.metrics.ordinal import row_weights


def ranked_probability_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    normalize: bool = False,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the ranked probability score (Epstein 1969; Murphy 1971).

    For each row, the sum of ``(P - I)**2`` over the thresholds between neighbouring ranks: ``P`` is
    the probability of a rank below the threshold, and ``I`` is 1 if the true rank is below it, else
    0. The true probabilities minimise its expectation.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels.
    y_proba : array-like of numbers, shape (n, k)
        Probabilities; each row adds up to 1. Columns are in ascending order of their labels (words:
        alphabetical), as those of ``predict_proba``; those of a data frame that are named by the
        labels may be in any order.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first, as for `rank_loss`: ``ranks_`` of a model. Required for
        words, unless ``y_true`` is an ordered categorical. None: the distinct numbers in
        ``y_true``, which must be k then.
    normalize : bool, default=False
        Whether to divide by the number of thresholds, k - 1, so that 1 is the worst.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        From 0, which is perfect, to k - 1.

    Raises
    ------
    ValueError
        On empty input, different lengths, a label that is not among ``labels``, numbers that are no
        probabilities, or weights that are negative or all 0.
    TypeError
        For words whose order is not known.

    Examples
    --------
    >>> from rankcore.metrics import ranked_probability_score
    >>> y, y_proba = [1, 3], [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    >>> ranked_probability_score(y, y_proba, labels=[1, 2, 3])
    0.25
    """
    table, place, _ = checked_probabilities(y_true, y_proba, labels)
    scores = ranked_probability_scores(table, place) / (table.shape[1] - 1 if normalize else 1)
    return weighted_mean(scores, row_weights(sample_weight, place.size))


def brier_score(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean squared distance of probabilities from the truth (Brier 1950).

    For each row, the sum over ranks of ``(p - I)**2``, where ``I`` is 1 for the true rank, else 0.
    All mistakes count the same; in `ranked_probability_score` near misses count less.

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels.
    y_proba : array-like of numbers, shape (n, k)
        Probabilities; each row adds up to 1. Columns are in ascending order of their labels (words:
        alphabetical), as those of ``predict_proba``; those of a data frame that are named by the
        labels may be in any order.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first, as for `rank_loss`: ``ranks_`` of a model. Required for
        words, unless ``y_true`` is an ordered categorical. None: the distinct numbers in
        ``y_true``, which must be k then.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        From 0, which is perfect, to 2.

    Raises
    ------
    ValueError
        On empty input, different lengths, a label that is not among ``labels``, numbers that are no
        probabilities, or weights that are negative or all 0.
    TypeError
        For words whose order is not known.

    Examples
    --------
    >>> from rankcore.metrics import brier_score
    >>> brier_score([1, 3], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], labels=[1, 2, 3])
    0.25
    """
    table, place, _ = checked_probabilities(y_true, y_proba, labels)
    return weighted_mean(brier_scores(table, place), row_weights(sample_weight, place.size))


def log_loss(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Compute the mean negative logarithm of the true rank's probability (Good 1952).

    Parameters
    ----------
    y_true : array-like, shape (n,)
        True labels.
    y_proba : array-like of numbers, shape (n, k)
        Probabilities; each row adds up to 1. Columns are in ascending order of their labels (words:
        alphabetical), as those of ``predict_proba``; those of a data frame that are named by the
        labels may be in any order.
    labels : array-like, shape (k,), optional
        All labels, lowest rank first, as for `rank_loss`: ``ranks_`` of a model. Required for
        words, unless ``y_true`` is an ordered categorical. None: the distinct numbers in
        ``y_true``, which must be k then.
    sample_weight : array-like, shape (n,), optional
        Non-negative weights of the rows.

    Returns
    -------
    float
        From 0, which is perfect, to infinity, where a true rank had the probability 0. In nats.

    Raises
    ------
    ValueError
        On empty input, different lengths, a label that is not among ``labels``, numbers that are no
        probabilities, or weights that are negative or all 0.
    TypeError
        For words whose order is not known.

    Examples
    --------
    >>> from rankcore.metrics import log_loss
    >>> round(log_loss([1, 3], [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], labels=[1, 2, 3]), 4)
    0.3466
    """
    table, place, _ = checked_probabilities(y_true, y_proba, labels)
    return weighted_mean(log_losses(table, place), row_weights(sample_weight, place.size))


def ranked_probability_scores(table: Floats, place: NDArray[np.intp]) -> Floats:
    """Compute the ranked probability score of each row, from probabilities by rank."""
    below = np.cumsum(table[:, :-1], axis=1)
    below -= place[:, None] <= np.arange(table.shape[1] - 1)
    return (below**2).sum(axis=1)


def brier_scores(table: Floats, place: NDArray[np.intp]) -> Floats:
    """Compute the Brier score of each row, from probabilities by rank."""
    true = table[np.arange(place.size), place]
    return (table**2).sum(axis=1) - 2 * true + 1


def log_losses(table: Floats, place: NDArray[np.intp]) -> Floats:
    """Compute the negative logarithm of the true rank's probability in each row."""
    with np.errstate(divide="ignore"):
        return -np.log(table[np.arange(place.size), place]) + 0.0


# Measures of probabilities by name: losses.
PROBABILITIES: dict[str, Callable[..., float]] = {
    "ranked_probability_score": ranked_probability_score,
    "brier_score": brier_score,
    "log_loss": log_loss,
}


# Probability of a label that a model does not know, so that its logarithm is finite.
UNKNOWN = 1e-7


def with_unknown(table: Floats, of_classes: NDArray[Any], n_labels: int) -> Floats:
    """Add columns for labels that a model does not know, at the places of `ranks_beside`."""
    if table.shape[1] == n_labels:
        return table
    extended = np.full((len(table), n_labels), UNKNOWN)
    extended[:, of_classes] = table
    return extended / extended.sum(axis=1, keepdims=True)


def _columns_of_ranks(y_proba: Any, ordered_labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the column of each rank: by name in a frame, else in ascending order of labels."""
    names = names_of(y_proba) or []
    if names != [*range(len(names))]:  # the numbers of pandas for columns without names
        are_numbers = ordered_labels.dtype.kind in "biuf"
        columns = [_name_of_label(name, are_numbers) for name in names]
        labels = [_name_of_label(label, are_numbers) for label in ordered_labels.tolist()]
        if {*columns} == {*labels}:
            return np.array([columns.index(label) for label in labels])
        if {*columns} & {*labels} and names != [str(j) for j in range(len(names))]:
            raise ValueError(
                "the columns of y_proba must be named by the labels "
                f"{ordered_labels.tolist()}; got {names}: rename them, or pass an array with "
                "columns in ascending order of the labels"
            )
    return np.argsort(np.argsort(ordered_labels))


def _name_of_label(name: Any, is_number: bool) -> str | float:
    """Return the text of a name; its number if labels are numbers, as "2" and 2.0 are equal."""
    text = str(name)
    try:
        return float({"True": 1, "False": 0}.get(text, text)) if is_number else text
    except ValueError:
        return text


def checked_probabilities(
    y_true: Any, y_proba: Any, labels: Any
) -> tuple[Floats, NDArray[np.intp], NDArray[Any]]:
    """Return probabilities by rank, (n, k), ranks of the true labels, and labels by rank."""
    truth = as_column("y_true", y_true)
    reject_mask(y_proba, "y_proba")
    table = np.asarray(y_proba)
    if table.dtype.kind not in "biuf":
        raise TypeError(f"y_proba must be real numbers; got {table.dtype}")
    if table.ndim != 2 or table.shape[0] != truth.size or table.shape[1] < 2:
        raise ValueError(
            f"y_proba must have a row for each of the {truth.size} labels and a column for each of "
            f"two or more ranks; got shape {table.shape}"
        )
    table = table.astype(np.float64, copy=False)
    order = ordered(labels, y_true)
    ordered_labels = known_labels(truth, truth, order)
    if ordered_labels.size != table.shape[1]:
        raise ValueError(
            f"y_proba has {table.shape[1]} columns for {ordered_labels.size} labels"
            + (" in y_true; name all of them in labels=" if order is None else "")
        )
    place = places_of("y_true", truth, ordered_labels)
    columns = _columns_of_ranks(y_proba, ordered_labels)
    if not is_rising(columns):
        table = table[:, columns]
    # Probabilities computed as float32 add up to 1 only to this tolerance.
    if not ((table >= 0).all() and (np.abs(table.sum(axis=1) - 1) <= 1e-5).all()):
        raise ValueError("y_proba must not be negative, and each row must add up to 1")
    return table, place, ordered_labels
