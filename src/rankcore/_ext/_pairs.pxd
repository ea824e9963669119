# The vector loops of pairwise perceptrons, see the headers. Private.
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from rankcore.core cimport rc_row, rc_rows


cdef extern from "_docs.h" nogil:
    enum:
        RC_PANEL
        RC_DEPTH
        RC_BATCH

    void rc_add_docs(
        const rc_rows *X, const int64_t *docs, const double *by, int64_t n, double *w
    ) noexcept


cdef extern from "_pairs.h" nogil:
    void rc_score_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, const double *w, double *scores
    ) noexcept
    void rc_add_difference(
        double *weights, const double *x, const double *y, double a, int64_t n
    ) noexcept
    void rc_unfold_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, const double *scale, int64_t width,
        double *unfolded,
    ) noexcept
    void rc_add_scaled(rc_row x, double a, const double *factors, double *w) noexcept
    int64_t rc_next_wrong(
        const double *unfolded, int64_t width, const double *weights, const int32_t *winners,
        const int32_t *losers, int64_t at, int64_t stop, double margin,
    ) noexcept


cdef extern from "_gram.h" nogil:
    ctypedef struct rc_ahead:
        const char *next
        const char *stop

    ctypedef struct rc_gram_visit:
        double *scores
        const double *G
        int64_t padded
        double *alpha
        double *beta
        double margin
        double streak
        double total
        double unit
        double gain
        double past
        int64_t faded
        int64_t run
        int64_t right
        int64_t mistakes
        double judge_above
        int32_t judged
        rc_ahead gram_ahead
        rc_ahead rows_ahead

    void rc_pack_docs(
        const rc_rows *X, const int64_t *docs, int64_t n, const double *scale, int64_t first,
        int64_t depth, double *panels,
    ) noexcept
    void rc_gram_panel(
        const double *panels, int64_t p, int64_t n_padded, int64_t depth, double *G
    ) noexcept
    void rc_mirror_panel(double *G, int64_t p, int64_t n_padded) noexcept
    int64_t rc_gram_batch(
        rc_gram_visit *visit, const int32_t *winners, const int32_t *losers, const double *steps,
        double eta, int64_t at, int64_t stop,
    ) noexcept
    int64_t rc_gram_scan(
        rc_gram_visit *visit, const double *labels, const double *weights, double eta, int64_t i,
        int64_t j, int64_t *seen,
    ) noexcept


cdef extern from "rankcore_random.h" nogil:
    uint64_t rc_stream(uint64_t seed, uint64_t visit) noexcept
    int64_t rc_below(uint64_t *state, int64_t n) noexcept


cdef extern from "_walk.h" nogil:
    enum:
        RC_LISTED

    ctypedef struct rc_level:
        double first_pair
        double width
        double inverse
        double origin

    ctypedef struct rc_walk:
        double n

    void rc_walk_start(rc_walk *walk, uint64_t n, uint64_t *state) noexcept
    void rc_walk_numbers(rc_walk *walk, double *numbers) noexcept
    void rc_walk_list(
        const rc_level *levels, int64_t n_levels, int64_t n, const int32_t *names, uint32_t *pairs
    ) noexcept
    void rc_walk_listed(
        rc_walk *walk, const uint32_t *pairs, int32_t *winners, int32_t *losers
    ) noexcept
    void rc_walk_pairs(
        const double *numbers, const rc_level *levels, int64_t n_levels, int64_t n,
        int32_t *winners, int32_t *losers,
    ) noexcept
