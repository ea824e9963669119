"""A regression tree on gradients and hessians of rows, plain and slow.

No gradient exceeds its hessian: half their sum and half their difference are rounded to integers W
and L, so that the gradient is W - L and the hessian W + L.

A tree is a list of nodes (feature, threshold, default, low, high): rows go high where the value is
above the threshold, and where it is missing if default is 1. low and high are the number of a node,
or ~leaf. The leaf of maximum gain is split next; of equal cuts the first feature is taken, then
the highest threshold, then default 1.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import exp, floor, inf, log2

import numpy as np

from reference.boosting import is_missing, midpoints

LEAST_GAIN = 1e-12


def rounded(gradients, hessians, rows):
    """W and L of some rows, and the scale."""
    whole = sum(hessians[i] for i in rows)
    scale = 2.0 ** floor(log2((2**31 - 1 - 2 * len(rows)) / whole)) if whole > 0 else 0.0
    return (
        {i: int(0.5 * (hessians[i] + gradients[i]) * scale + 0.5) for i in rows},
        {i: int(0.5 * (hessians[i] - gradients[i]) * scale + 0.5) for i in rows},
        scale,
    )


@dataclass
class Leaf:
    rows: list
    path: int = 1  # the children of p are 2 p and 2 p + 1
    depth: int = 0
    low: float = -inf
    high: float = inf


def value(w, m, l2, low, high):
    h = float(w + m) + l2
    return min(max(float(w - m) / h if h > 0 else 0.0, low), high)


def worth(w, m, l2, value):
    """Gain of a leaf by a value."""
    return (2.0 * float(w - m) - (float(w + m) + l2) * value) * value


def pair_worth(one, other, l2, sign, low, high):
    """Gain of two children by their values, or -1 if these break the order."""
    if not sign and low == -inf and high == inf:
        a, h = float(one[0] - one[1]), float(sum(one))
        b, g = float(other[0] - other[1]), float(sum(other))
        return a * a / (h + l2) + b * b / (g + l2)
    first, second = value(*one, l2, low, high), value(*other, l2, low, high)
    if sign * (first - second) < 0:
        return -1.0
    return worth(*one, l2, first) + worth(*other, l2, second)


def goes_high(x, threshold, default, zero_missing):
    if isinstance(threshold, frozenset):
        return (x in threshold) != bool(default)
    return bool(default) if is_missing(x, zero_missing) else bool(x > threshold)


def sorted_sets(masses):
    """Categories of some weight that go high, the fewest first; masses are (won, lost) of each."""
    order = sorted(
        (category for category, (w, m) in masses.items() if w + m),
        key=lambda category: (Fraction(masses[category][0], sum(masses[category])), category),
    )
    return [order[i:] for i in range(len(order) - 1, 0, -1)]


def all_sets(masses):
    """Every set of categories of some weight but none and all."""
    heavy = [category for category, mass in masses.items() if sum(mass)]
    return [part for n in range(1, len(heavy)) for part in combinations(heavy, n)]


def category_cuts(column, leaf, W, L):
    """Set and default of each split of categories; missing values are category inf."""
    of_row = {i: column[i] if column[i] >= 0 else inf for i in leaf.rows}
    masses = {}
    for i, category in of_row.items():
        w, m = masses.get(category, (0, 0))
        masses[category] = (w + W[i], m + L[i])
    for high in sorted_sets(masses):
        low = [one for one in masses if sum(masses[one]) and one not in high]
        heavier = sum(sum(masses[one]) for one in high) > sum(sum(masses[one]) for one in low)
        default = inf in high if sum(masses.get(inf, (0, 0))) else heavier
        yield frozenset(low if default else high), int(default)


def numeric_cuts(column, leaf, W, L, thresholds, zero_missing):
    missing = any(W[i] + L[i] for i in leaf.rows if is_missing(column[i], zero_missing))
    for threshold in thresholds:
        for default in (1, 0) if missing and threshold > -inf else (0,):
            if threshold > -inf or missing:
                yield threshold, default


def best_cut(X, leaf, W, L, scale, thresholds, signs, features, rules, zero_missing):
    """Worth and cut."""
    whole = (sum(W[i] for i in leaf.rows), sum(L[i] for i in leaf.rows))
    least = max(rules.min_hessian * scale, 1.0)
    l2 = rules.l2_leaf * scale
    best, found = 0.0, None
    for f in features:
        column = X[:, f]
        if thresholds[f] is None:
            cuts = category_cuts(column, leaf, W, L)
        else:
            cuts = numeric_cuts(column, leaf, W, L, thresholds[f], zero_missing)
        for threshold, default in cuts:
            high = [i for i in leaf.rows if goes_high(column[i], threshold, default, zero_missing)]
            one = (sum(W[i] for i in high), sum(L[i] for i in high))
            other = (whole[0] - one[0], whole[1] - one[1])
            if min(sum(one), sum(other)) < least:
                continue
            n = len(high)
            if rules.min_samples_leaf > 1 and min(n, len(leaf.rows) - n) < rules.min_samples_leaf:
                continue
            gained = pair_worth(one, other, l2, signs[f], leaf.low, leaf.high)
            if gained > best:
                best, found = gained, (f, threshold, default)
    return best, found


def grow(
    X,
    gradients,
    hessians,
    rules,
    drawn=None,
    mask_of=None,
    zero_missing=False,
    categorical=frozenset(),
):
    """Nodes, gains, leaf of each row, and the range of each leaf's value.

    ``mask_of(path)`` is the mask of the features drawn for a node; None: all are. The root tries
    the others if none of these has a cut.
    """
    n, d = X.shape
    drawn = range(n) if drawn is None else np.flatnonzero(drawn).tolist()
    signs = [0] * d if rules.signs is None else rules.signs.tolist()
    W, L, scale = rounded(gradients, hessians, list(drawn))
    thresholds = [
        None if f in categorical else midpoints(column, zero_missing)
        for f, column in enumerate(X.T)
    ]
    l2 = rules.l2_leaf * scale
    leaves, nodes, gains, places = [Leaf(list(drawn))], [], [], [None]

    def candidate(leaf):
        masks = [np.ones(d, dtype=bool)] if mask_of is None else [mask_of(leaf.path)]
        for mask in (*masks, ~masks[0]) if leaf.path == 1 else masks:
            found = candidate_by(np.flatnonzero(mask).tolist(), leaf)
            if found[1]:
                return found
        return 0.0, None

    def candidate_by(features, leaf):
        w, m = sum(W[i] for i in leaf.rows), sum(L[i] for i in leaf.rows)
        if rules.max_depth is not None and leaf.depth >= rules.max_depth:
            return 0.0, None
        found = best_cut(X, leaf, W, L, scale, thresholds, signs, features, rules, zero_missing)
        gain = found[0] - worth(w, m, l2, value(w, m, l2, leaf.low, leaf.high))
        return (gain, found[1]) if found[1] and gain > LEAST_GAIN * (w + m) else (0.0, None)

    cuts = [candidate(leaves[0])]
    while len(leaves) < rules.max_leaf_nodes:
        at = max(range(len(leaves)), key=lambda i: (cuts[i][0], -i))
        gain, cut = cuts[at]
        if cut is None:
            break
        leaf, (f, threshold, default) = leaves[at], cut
        sides = [[], []]
        for i in leaf.rows:
            sides[goes_high(X[i, f], threshold, default, zero_missing)].append(i)
        children = [
            Leaf(rows, 2 * leaf.path + side, leaf.depth + 1, leaf.low, leaf.high)
            for side, rows in enumerate(sides)
        ]
        if signs[f]:
            middle = 0.5 * sum(
                value(sum(W[i] for i in rows), sum(L[i] for i in rows), l2, leaf.low, leaf.high)
                for rows in sides
            )
            rising = signs[f] > 0
            children[not rising].high = middle
            children[rising].low = middle
        if places[at] is not None:
            node, side = places[at]
            nodes[node][3 + side] = len(nodes)
        nodes.append([f, threshold, default, ~at, ~len(leaves)])
        gains.append(gain / scale)
        places[at] = (len(nodes) - 1, 0)
        places.append((len(nodes) - 1, 1))
        leaves[at] = children[0]
        leaves.append(children[1])
        cuts[at] = candidate(children[0])
        cuts.append(candidate(children[1]))
    leaf_of = [find_leaf(nodes, x, zero_missing) for x in X]
    return nodes, gains, leaf_of, [(leaf.low, leaf.high) for leaf in leaves]


def find_leaf(nodes, x, zero_missing=False):
    at = 0 if nodes else -1
    while at >= 0:
        f, threshold, default = nodes[at][:3]
        at = nodes[at][3 + goes_high(x[f], threshold, default, zero_missing)]
    return ~at


def left(D, pairs, scores, step):
    """Weight after so long a step."""
    return sum(w * exp(-step * (scores[i] - scores[j])) for w, (i, j) in zip(D, pairs, strict=True))


def line_search(D, pairs, scores, longest):
    """Find the step from 0 to the longest of minimum weight, by its derivative's sign."""
    apart = scores[pairs[:, 0]] - scores[pairs[:, 1]]

    def slope(step):
        return -float((D * apart * np.exp(-step * apart)).sum())

    low, high = 0.0, longest
    if slope(0.0) >= 0:
        return 0.0
    if slope(high) < 0:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        if slope(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
