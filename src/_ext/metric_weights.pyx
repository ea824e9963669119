"""Weights of pairs by the change of a measure when the two rows are swapped.

The pair of a winner i and a loser j weighs c_q * a_i * a_j * exp(F_j - F_i) * |change|, where F are
scores, a weights of rows and the change is that of the query's NDCG at k, or average precision, if
both rows swapped their places in the order by F (Burges, "From RankNet to LambdaRank to LambdaMART:
an overview", 2010, section 4 has it for NDCG with a logistic loss).

There is no product form: all pairs with a row in the first k are visited, O(n_rows * k) for queries
longer than k. Arrays are by row, (n_rows,), or by query; results are gradients and hessians by row,
or weights between leaves, (n_leaves, n_leaves).
"""

from libc.math cimport exp, fabs
from libc.stdint cimport int32_t, int64_t

# Differences of scores are clipped to this.
cdef double WIDEST = 60.0


cdef inline double _precision_change(
    int64_t winner, int64_t loser, const double *relevant, const double *inverse,
) noexcept nogil:
    """Return the change of the sum of precisions if two rows swap their places.

    Places count from 1; counts of relevant rows and sums of 1 / place include each place.
    """
    cdef double at_winner = relevant[winner] / winner
    if winner > loser:
        return (relevant[loser] + 1) / loser - at_winner + inverse[winner - 1] - inverse[loser]
    return at_winner - relevant[loser] / loser + inverse[loser] - inverse[winner]


def weigh(
    # (n_rows,): rows query by query, those of a query by descending label
    const double[::1] scores not None,
    const int32_t[::1] order not None,  # (n_rows,): the rows of each query by descending score
    const int64_t[::1] queries not None,  # (n_queries + 1,): where the rows of each query begin
    # (n_rows,): where the rows with lower labels than each row's begin; without any, the end of
    # its query
    const int64_t[::1] levels not None,
    # (n_rows,): of the labels; for average precision, above 0 if relevant
    const double[::1] gains not None,
    const double[::1] discounts,  # or None: by place from 0; 0 beyond. None: average precision.
    const double[::1] row_weights,  # (n_rows,), or None
    # (n_queries,): c_q over the ideal DCG, or over the number of relevant rows
    const double[::1] scales not None,
    const int32_t[::1] leaf_of,  # (n_rows,), or None: the leaf of each row, for ``between``
    # out, each (n_rows,), or None: weights of the pairs that each row wins minus those it loses,
    # and of both
    double[::1] gradients,
    double[::1] hessians,
    # out, (n_leaves, n_leaves), or None: ``between[a, b]`` is of winners in leaf a and losers in
    # leaf b
    double[:, ::1] between,
    int64_t[::1] places not None,  # (n_rows,): scratch
    double[:, ::1] room not None,  # (2, n_rows + 1): scratch
):
    """Sum the weights of the pairs by row, or by leaves.

    Returns the sum of all weights. The weights written are not divided by it. O(pairs), or O(n_rows
    * discounts) if there are fewer of these than rows in a query.
    """
    cdef int64_t n = scores.shape[0], n_queries = queries.shape[0] - 1, q, i, j, first, last, a, b
    cdef int64_t k = 0 if discounts is None else discounts.shape[0]
    cdef double total = 0.0, change, w, one, other
    cdef bint fits = (
        n_queries >= 0
        and order.shape[0] == levels.shape[0] == gains.shape[0] == places.shape[0] == n
        and (row_weights is None or row_weights.shape[0] == n)
        and scales.shape[0] == n_queries
        and (gradients is None) == (hessians is None)
        and (gradients is None or gradients.shape[0] == hessians.shape[0] == n)
        and (between is None) == (leaf_of is None)
        and (between is None or between.shape[0] == between.shape[1])
        and (leaf_of is None or leaf_of.shape[0] == n)
        and room.shape[0] == 2
        and room.shape[1] == n + 1
        and queries[0] == 0
        and queries[n_queries] == n
    )
    if fits:
        for q in range(n_queries):
            fits = fits and queries[q] <= queries[q + 1]
    if fits:
        for q in range(n_queries):
            for i in range(queries[q], queries[q + 1]):
                fits = (
                    fits
                    and queries[q] <= order[i] < queries[q + 1]
                    and i < levels[i] <= queries[q + 1]
                    and (leaf_of is None or 0 <= leaf_of[i] < between.shape[0])
                )
    if not fits:
        raise ValueError("the rows, queries and leaves are inconsistent")
    with nogil:
        if gradients is not None:
            for i in range(n):
                gradients[i] = hessians[i] = 0.0
        if between is not None:
            for a in range(between.shape[0]):
                for b in range(between.shape[0]):
                    between[a, b] = 0.0
        for q in range(n_queries):
            first = queries[q]
            last = queries[q + 1]
            room[0, 0] = room[1, 0] = 0.0
            for i in range(last - first):
                j = order[first + i]
                places[j] = i + 1
                room[0, i + 1] = room[0, i] + (gains[j] > 0)
                room[1, i + 1] = room[1, i] + (gains[j] > 0) / <double> (i + 1)
            for i in range(first, last):
                one = scales[q] * (1.0 if row_weights is None else row_weights[i])
                for j in range(levels[i], last):
                    a = places[i]
                    b = places[j]
                    if discounts is None:
                        if gains[i] <= 0 or gains[j] > 0:
                            continue
                        change = _precision_change(a, b, &room[0, 0], &room[1, 0])
                    else:
                        if a > k and b > k:
                            continue
                        change = (gains[i] - gains[j]) * fabs(
                            (discounts[a - 1] if a <= k else 0.0)
                            - (discounts[b - 1] if b <= k else 0.0)
                        )
                    other = 1.0 if row_weights is None else row_weights[j]
                    w = min(max(scores[j] - scores[i], -WIDEST), WIDEST)
                    w = one * other * change * exp(w)
                    total += w
                    if gradients is not None:
                        gradients[i] += w
                        gradients[j] -= w
                        hessians[i] += w
                        hessians[j] += w
                    if between is not None:
                        between[leaf_of[i], leaf_of[j]] += w
    return total
