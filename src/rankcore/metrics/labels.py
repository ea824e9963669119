"""Labels of measures: validation and order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import declared_order
from rankcore._core.ids import as_column as as_given
from rankcore._core.ids import unboxed
from rankcore._core.labels import agree, sortable
from rankcore._core.numbers import Floats


def ordered(labels: Any, *columns: Any) -> Any:
    """Return labels, lowest first: as given, or the categories of an ordered categorical.

    Numbers are in their own order. ValueError for categoricals with contradictory orders.
    """
    for column in columns:
        order = declared_order(column)
        if order is None or order.dtype.kind in "biuf":
            continue
        if labels is None:
            labels = order
        listed = np.asarray(labels)
        if not agree(order, listed):
            raise ValueError(
                f"labels must list the labels, lowest rank first, as ranks_ of a model does; "
                f"{listed.tolist()} contradict the order of the categorical, {order.tolist()}"
            )
    return labels


def as_column(name: str, x: Any) -> NDArray[Any]:
    """Convert labels to a one-dimensional array."""
    array = _plain(name, x)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} is empty; a mean requires at least one row")
    return array


def _plain(name: str, x: Any) -> NDArray[Any]:
    return sortable(as_given(unboxed(x), name), name)


def as_numbers(name: str, x: NDArray[Any]) -> Floats:
    """Validate real labels, and convert them to float64."""
    if x.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must be real numbers; got {x.dtype}; name other labels in labels=, lowest "
            "rank first (ranks_ of a model), or make y_true an ordered categorical"
        )
    with np.errstate(over="ignore"):  # of a long double
        numbers = x.astype(np.float64, copy=False)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must be finite; got NaN or infinity")
    return numbers


def known_labels(truth: NDArray[Any], guess: NDArray[Any], labels: Any) -> NDArray[Any]:
    """Return the distinct labels, lowest first."""
    if labels is None:
        return np.union1d(as_numbers("y_true", truth), as_numbers("y_pred", guess))
    listed = _plain("labels", labels)
    if listed.ndim != 1 or listed.size == 0:
        raise ValueError(f"labels must list the labels, lowest rank first; got {labels!r}")
    if np.unique(listed).size != listed.size:
        raise ValueError(f"labels must list each label once; got {listed.tolist()}")
    for name, x in (("y_true", truth), ("y_pred", guess)):
        if (x.dtype.kind in "biuf") != (listed.dtype.kind in "biuf"):
            raise TypeError(
                f"{name} must have labels of the type of labels, {listed.dtype}; got {x.dtype}"
            )
    return listed


def places_of(name: str, x: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each label among the known labels."""
    sorter = np.argsort(labels, kind="stable")
    place = np.searchsorted(labels, x, sorter=sorter)
    nearest = sorter[np.minimum(place, labels.size - 1)]
    unknown = labels[nearest] != x
    if unknown.any():
        odd = x[unknown][:1].tolist()[0]
        raise ValueError(f"{name} has {odd!r}, which is not among the labels {labels.tolist()}")
    return nearest
