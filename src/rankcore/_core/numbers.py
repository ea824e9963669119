"""Validation of numbers; values that are not real or would lose precision are rejected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import plain_column
from rankcore._core.inputs import objects_as_floats, reject_mask

Floats = NDArray[np.float64]

# Minimum positive float64.
LEAST = math.ulp(0.0)
# Values per block in sums of variances.
BLOCK = 2**16


def as_reals(values: Any, name: str) -> NDArray[Any]:
    """Convert to an array of booleans, integers or floats; arrays are not copied.

    Raises TypeError for masked arrays, strings, dates and complex numbers, ValueError for an
    integer beyond the range of float64.
    """
    reject_mask(values, name)
    array = np.asarray(plain_column(values))
    if array.dtype.kind == "O":
        return objects_as_floats(array, name)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers; got dtype {array.dtype}")
    return array


def as_vector(values: Any, name: str) -> Floats:
    """Convert to one-dimensional, contiguous, aligned float64, without a copy if possible."""
    array = as_reals(values, name)
    check_vector(array, name)
    return in_place(array)


def in_place(array: NDArray[Any]) -> Floats:
    """Convert to contiguous, aligned float64, without a copy if possible; overflow is inf."""
    with np.errstate(over="ignore"):  # of a long double, rejected later as infinity
        return np.require(array, np.float64, ["C", "A"])


def check_vector(array: NDArray[Any], name: str) -> None:
    """Raise ValueError unless an array has one dimension."""
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, one number for each row; got shape {array.shape}"
        )


def ranges(starts: Any, sizes: NDArray[Any]) -> NDArray[np.intp]:
    """Concatenate ranges ``start, start + 1, ...`` of the given sizes."""
    ends: NDArray[np.intp] = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(int(sizes.sum()))


def check_lengths(**columns: Sized) -> None:
    """Raise ValueError unless columns have the same length."""
    lengths = [len(column) for column in columns.values()]
    if len({*lengths}) > 1:
        raise ValueError(
            f"{enumerated(columns)} must have the same length; got {enumerated(lengths)}"
        )


def enumerated(items: Iterable[Any]) -> str:
    """Join two or more items for a message: "a, b and c"."""
    *first, last = map(str, items)
    return f"{', '.join(first)} and {last}"


def as_weights(weights: Any, name: str, sizes: dict[str, int], remedy: str = "") -> Floats | None:
    """Validate weights of one of several lengths: non-negative, not all 0.

    ``remedy`` is the end of the error for other sizes.
    """
    if weights is None:
        return None
    array = as_reals(weights, name)
    if array.ndim != 1 or array.size not in sizes.values():
        wanted = " or ".join(f"{size} (one per {what})" for what, size in sizes.items())
        raise ValueError(f"{name} must have length {wanted}; got shape {array.shape}{remedy}")
    numbers = in_place(array)
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise ValueError(f"{name} must be finite and not negative")
    if not numbers.any():
        raise ValueError(f"{name} must not be all zero")
    return numbers


def scaled(weights: Floats, groups: NDArray[np.integer[Any]] | None = None) -> Floats:
    """Scale weights to a maximum of about 1; only their ratios matter.

    With ``groups``, group numbers, each group is scaled separately. Weights are multiplied by a
    power of two, which is exact except for weights below 1e-300 of the maximum. Only 0 becomes 0,
    as rows of weight 0 are omitted. If all non-zero weights are equal, they become 1, so that sums
    of products are exact.
    """
    if groups is None:
        least, maximum = extremes(weights)
        return scaled_from(weights, least, maximum)
    n_groups = int(groups.max(initial=-1)) + 1
    highest, lowest = np.zeros(n_groups), np.full(n_groups, np.inf)
    np.maximum.at(highest, groups, weights)
    np.minimum.at(lowest, groups, np.where(weights > 0, weights, np.inf))
    result = _times_power(weights, -np.frexp(highest)[1][groups])
    equal = (lowest == highest)[groups]
    result[equal] = weights[equal] > 0
    return result


def extremes(weights: Floats) -> tuple[float, float]:
    """Return minimum and maximum of the positive weights; inf and 0 if all are 0."""
    least = weights.min(initial=np.inf, where=weights > 0)
    return float(least), float(weights.max(initial=0.0))


def scaled_from(weights: Floats, least: float, maximum: float) -> Floats:
    """Scale some of the weights as `scaled` would, given the `extremes` of all."""
    if least == maximum:
        return (weights > 0).astype(np.float64)
    return _times_power(weights, -math.frexp(maximum)[1])


def _times_power(weights: Floats, powers: int | NDArray[np.integer[Any]]) -> Floats:
    """Multiply weights by powers of two; underflow gives the minimum positive float64."""
    result: Floats = np.ldexp(weights, powers)
    result[(result == 0) & (weights > 0)] = LEAST
    return result


def exact_sum(values: Floats) -> Fraction:
    """Return the exact sum of finite numbers."""
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    total = Fraction()
    for exponent in np.unique(exponents).tolist():
        some = whole[exponents == exponent]
        # In halves, so that 2**31 numbers fit into 64 bits.
        n = (int((some >> 27).sum()) << 27) + int((some & (2**27 - 1)).sum())
        total += Fraction(n) * Fraction(2) ** (exponent - 53)
    return total


def variance(values: NDArray[Any], size: int) -> float:
    """Return the variance of ``values`` and zeros, ``size`` in all; not finite on overflow."""
    mean = float(values.sum(dtype=np.float64)) / size
    step = max(1, BLOCK // max(1, values[:1].size))
    total = (size - values.size) * mean * mean
    for first in range(0, len(values), step):
        block = values[first : first + step].astype(np.float64) - mean
        total += float(np.square(block, out=block).sum())
    return total / size


def weighted_mean(values: NDArray[Any], weights: Floats | None) -> float:
    """Return the mean of numbers, with weights of any magnitude."""
    exponent = int(np.frexp(np.abs(values).max())[1])
    far = max(0, exponent - 900)  # multiplication by powers of two is exact
    values = np.ldexp(values, -far) if far else values
    mean = np.average(values, weights=None if weights is None else scaled(weights))
    return float(np.ldexp(mean, far))


def check_reached(reached: int, stop: int) -> None:
    """Raise ValueError if a kernel stopped before the last row because its score overflowed."""
    if reached < stop:
        raise ValueError(
            f"the score of row {reached} of X overflowed: X or the weights are too large; scale X "
            "as in the fit"
        )


def check_scores(scores: np.ndarray) -> np.ndarray:
    """Return scores; raise ValueError unless all are finite."""
    if scores.size == 1 and math.isfinite(scores.item()):
        return scores  # one row: ten times faster
    finite = np.isfinite(scores)
    if not finite.all():
        rows = finite.reshape(len(scores), -1).all(axis=1)
        check_reached(int(rows.argmin()), len(scores))
    return scores


def power_of_two(value: float, exponent: int = 0) -> float:
    """Return the power of two nearest to value * 2 ** exponent, limited to the range of scales."""
    if not value > 0:
        return 1.0
    return math.ldexp(1.0, min(max(round(math.log2(value)) + exponent, -664), 664))


def largest(sizes: Floats, most: int) -> list[int]:
    """Return the indices of the largest absolute values, without zeros."""
    order = np.argsort(-np.abs(sizes), kind="stable")[:most]
    return [j for j in order.tolist() if sizes[j] != 0]
