# Check that the arrays of a pairwise perceptron's queries fit together. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t

from rankcore._ext._pairs cimport RC_PANEL
from rankcore._ext._visit cimport GRAM, PACKED
from rankcore.core cimport rc_rows


cdef inline int check_queries(
    bint canonical,
    const rc_rows *X,
    const int64_t[::1] docs,
    const int64_t[::1] bounds,
    const double[::1] labels,
    const double[::1] doc_weights,
    const int64_t[::1] pair_bounds,
    const int32_t[::1] winners,
    const int32_t[::1] losers,
    const double[::1] pair_weights,
    const int64_t[::1] n_pairs,
    const uint8_t[::1] ways,
    const int64_t[::1] cached,
    int64_t room,
    bint lexicographic,
) except -1:
    """Raise ValueError unless the arrays of ``PairData`` fit together; ``room`` is of its cache."""
    cdef int64_t n_docs = docs.shape[0], n_queries = bounds.shape[0] - 1
    cdef int64_t q, k, n, n_listed = 0
    cdef bint good = (
        canonical
        and n_queries >= 0
        and bounds[0] == 0
        and bounds[n_queries] == n_docs
        and labels.shape[0] == n_docs
        and n_pairs.shape[0] == n_queries
        and ways.shape[0] == n_queries
        and cached.shape[0] == n_queries
        and (doc_weights is None or doc_weights.shape[0] == n_docs)
    )
    if winners is not None:
        n_listed = winners.shape[0]
        good = good and (
            losers is not None
            and pair_bounds is not None
            and losers.shape[0] == n_listed
            and pair_bounds.shape[0] == n_queries + 1
            and pair_bounds[0] == 0
            and pair_bounds[n_queries] == n_listed
            and (pair_weights is None or pair_weights.shape[0] == n_listed)
        )
    if not good:
        raise ValueError("the arrays of the queries are inconsistent")
    for k in range(n_docs):
        good = good and 0 <= docs[k] < X.n_rows
    for q in range(n_queries):
        n = bounds[q + 1] - bounds[q]
        # The bounds come first, as the other checks read between them.
        good = good and 0 <= bounds[q] and bounds[q + 1] <= n_docs and 0 <= n < 2**31
        good = good and ways[q] <= GRAM and (ways[q] != PACKED or X.indptr == NULL)
        k = (n + RC_PANEL - 1) // RC_PANEL * RC_PANEL
        good = good and -1 <= cached[q] <= room
        if good and cached[q] >= 0:
            good = cached[q] + k * k <= room
        if good and winners is not None:
            good = 0 <= pair_bounds[q] <= pair_bounds[q + 1] <= n_listed and (
                n_pairs[q] == pair_bounds[q + 1] - pair_bounds[q]
            )
            if good:
                for k in range(pair_bounds[q], pair_bounds[q + 1]):
                    good = good and 0 <= winners[k] < n and 0 <= losers[k] < n
        elif good and not lexicographic:  # otherwise pairs are counted during the visit
            good = n_pairs[q] == _count_pairs(labels, bounds[q], bounds[q + 1])
    if not good:
        raise ValueError("the queries name documents or pairs that do not exist")
    return 0


cdef inline int64_t _count_pairs(
    const double[::1] labels, int64_t first, int64_t stop
) except -1:
    """Return the number of pairs of a query, given labels in descending order."""
    cdef int64_t k, start = first, total = 0
    for k in range(first + 1, stop):
        if labels[k] > labels[k - 1]:
            raise ValueError("labels must descend for a walk over their pairs")
        if labels[k] < labels[k - 1]:
            total += (k - start) * (stop - k)
            start = k
    return total
