"""Thresholds of binned columns, plain and slow."""

from itertools import pairwise

import numpy as np


def between(lower, upper):
    """Return the midpoint of two values, of their float32 roundings where these differ."""
    low, high = max(lower, float(np.float32(lower))), min(upper, float(np.float32(upper)))
    if low >= high:
        low, high = lower, upper
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low


def shared(values, n_bins):
    """Cut values into bins: each bin takes values until it has its share of what was left."""
    distinct, found, filled = sorted(set(values)), [], 0
    left = len(values)
    for value, following in pairwise(distinct):
        filled += values.count(value)
        bins_left = n_bins - len(found)
        if bins_left > 1 and filled >= left / bins_left:
            found.append(between(value, following))
            left, filled = left - filled, 0
    return found


def thresholds(values, max_bins):
    """Ascending thresholds of a column of finite values.

    Few values have a bin each. Of more, zero has a bin of its own. The other bins go to the two
    signs in proportion to how many values they have, rounded down for the negative ones, but at
    least one to each sign; if only one is left, the positive values take it, and the negative ones
    share the bin of zero.
    """
    values = [float(x) for x in values]
    distinct = sorted(set(values))
    if len(distinct) <= max_bins:
        return [between(a, b) for a, b in pairwise(distinct)]
    negative, positive = [x for x in values if x < 0], [x for x in values if x > 0]
    zero = 0.0 in distinct
    n_bins = max_bins - zero
    of_negative = n_bins * len(negative) // (len(negative) + len(positive))
    if negative:
        of_negative = max(of_negative, 1)
    if positive:
        of_negative = min(of_negative, n_bins - 1)
    found = []
    if of_negative:
        found += shared(negative, of_negative)
        if negative and (zero or positive):
            found.append(between(max(negative), 0.0 if zero else min(positive)))
    if zero and positive:
        found.append(between(0.0, min(positive)))
    return found + shared(positive, n_bins - of_negative)
