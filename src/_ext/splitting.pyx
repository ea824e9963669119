"""Find the best split of a leaf, from its histograms of packed gradients and hessians.

``histogram`` (n_sums,) has the sums of all features of one leaf; those of feature f begin at
``offsets[f]``: one packed sum per bin, and a last one of missing values. It may be the sum of the
histograms of several parts of the rows: packed sums are exact integers.

Cost: O(n_sums), and O(n_bins log n_bins) for a categorical feature. Gains of candidates are
computed eight at a time by vector instructions; formulas are in ``_splitting.h``.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t

from rankcore._ext._splitting cimport (
    LeafRecord,
    SplitRecord,
    best_split,
    rc_category,
    rc_hessian,
    rc_leaf,
    rc_leaf_gain,
    rc_leaf_value,
    rc_mark_categories,
    recorded,
)


def find_splits(
    const uint64_t[::1] histogram not None,  # (n_sums,): of the leaf, zeros of sparse rows included
    const int64_t[::1] offsets not None,  # (n_features + 1,): where each feature's sums begin
    const int32_t[::1] counts,  # (n_sums,), or None: number of rows of each sum
    const LeafRecord[::1] leaves not None,  # (1,): the leaf; its node is unused
    const uint8_t[::1] allowed,  # (n_features,), or None: which features may be used
    # (n_features,), or None: 1: the value must not fall as the feature rises, -1: not rise, 0:
    # either
    const int8_t[::1] signs,
    const uint8_t[::1] categorical,  # (n_features,), or None: whether any set of bins may go right
    double l2,  # in units of packed sums, as is the next
    double min_hessian,
    int64_t min_rows,  # of a child; with ``counts`` only
    uint64_t[::1] scratch not None,  # room for four times the maximum number of sums of a feature
    double[::1] gains not None,  # twice
    SplitRecord[::1] splits not None,  # out, (n_features,)
):
    """Find the best split of a leaf by each feature. O(n_sums)."""
    cdef int64_t f, n, n_features = offsets.shape[0] - 1
    cdef rc_leaf leaf
    cdef const int32_t *n_rows = NULL
    cdef bint is_set
    cdef bint fits = (
        n_features >= 0
        and leaves.shape[0] == 1
        and splits.shape[0] == n_features
        and offsets[0] >= 0
        and offsets[n_features] <= histogram.shape[0]
        and (counts is None or counts.shape[0] == histogram.shape[0])
        and (allowed is None or allowed.shape[0] == n_features)
        and (signs is None or signs.shape[0] == n_features)
        and (categorical is None or categorical.shape[0] == n_features)
    )
    for f in range(n_features if fits else 0):
        n = offsets[f + 1] - offsets[f]
        fits = fits and 2 <= n and 4 * n <= scratch.shape[0] and 2 * n <= gains.shape[0]
    if not fits:
        raise ValueError("the histogram, features and splits are inconsistent")
    if n_features == 0:
        return
    leaf.packed, leaf.l2, leaf.min_hessian = leaves[0].packed, l2, min_hessian
    leaf.low, leaf.high = leaves[0].low, leaves[0].high
    with nogil:
        for f in range(n_features):
            splits[f].gain = -1.0
            splits[f].packed = 0
            splits[f].bin = -1
            splits[f].missing_right = 0
            if allowed is not None and not allowed[f]:
                continue
            is_set = categorical is not None and categorical[f]
            leaf.sign = 0 if signs is None else signs[f]
            if counts is not None:
                n_rows = &counts[offsets[f]]
            splits[f] = recorded(best_split(
                is_set, &histogram[offsets[f]], n_rows, offsets[f + 1] - offsets[f] - 1, &leaf,
                leaves[0].n_rows, min_rows, &scratch[0], &gains[0],
            ))


def mark_categories(
    const uint64_t[::1] histogram not None,  # (n_bins + 1,): of the leaf and a categorical feature
    int64_t n_right,  # of `find_splits`: ``bin``, the number of categories on the right,
    uint8_t missing_right,  # and the missing direction
    uint64_t[::1] scratch not None,  # twice the size of the histogram
    # out, (n_bins + 1,): by bin, and for missing values: 1 if rows go right. Bins without rows take
    # the missing direction.
    uint8_t[::1] goes_right not None,
):
    """Mark the categories that go right in a split of `find_splits`. O(n_bins log n_bins)."""
    cdef int64_t n = histogram.shape[0]
    if n < 2 or goes_right.shape[0] != n or scratch.shape[0] < 2 * n or missing_right > 1:
        raise ValueError("the histogram and the categories are inconsistent")
    with nogil:
        rc_mark_categories(&histogram[0], n - 1, n_right, missing_right,
                           <rc_category *> &scratch[0], &goes_right[0])


def hessian(uint64_t packed):
    """Return the hessian of a packed sum."""
    return rc_hessian(packed)


def leaf_gain(uint64_t packed, double l2, double low, double high):
    """Return the gain of a leaf, whose value is limited to a range."""
    return rc_leaf_gain(packed, l2, rc_leaf_value(packed, l2, low, high))


def leaf_value(uint64_t packed, double l2, double low, double high):
    """Return Newton's value of a leaf, within a range."""
    return rc_leaf_value(packed, l2, low, high)
