# The public Cython face of rankcore: what rankcore.h and rankcore_capi.h declare, nothing else.
# The headers document each name. Compile with include_dirs=[rankcore.get_include()].
from libc.stdint cimport int32_t, int64_t, uint32_t


cdef extern from "rankcore.h" nogil:
    enum:
        RANKCORE_ABI
        RC_FLOAT64
        RC_FLOAT32

    ctypedef struct rc_row:
        const void *data
        const int32_t *indices
        int64_t n
        int32_t dtype

    ctypedef struct rc_rows:
        const void *data
        const int32_t *indices
        const int64_t *indptr
        int64_t stride
        int64_t n_rows
        int64_t n_features
        int32_t dtype

    ctypedef struct rc_prank:
        const double *weights
        const double *thresholds
        int64_t n_features
        int32_t n_ranks

    rc_row rc_row_f64(const double *data, const int32_t *indices, int64_t n) noexcept
    rc_row rc_row_f32(const float *data, const int32_t *indices, int64_t n) noexcept
    rc_row rc_rows_get(const rc_rows *X, int64_t i) noexcept
    double rc_dot(rc_row x, const double *w) noexcept
    void rc_axpy(rc_row x, double a, double *w) noexcept
    int32_t rc_rank(const double *thresholds, int32_t n_ranks, double score) noexcept
    double rc_prank_score(const rc_prank *model, rc_row x) noexcept
    int32_t rc_prank_rank(const rc_prank *model, rc_row x) noexcept


cdef extern from "rankcore_capi.h" nogil:
    enum:
        RC_CAPI_VERSION
        RC_TIE_CRAMMER
        RC_TIE_STRICT

    ctypedef struct rc_prank_state:
        double *weights
        int64_t *steps
        double *thresholds
        double *weight_sums
        int64_t *step_sums
        double scale
        int64_t t
        int64_t rank_loss
        int64_t mistakes
        int64_t n_features
        int32_t n_ranks
        int32_t tie

    ctypedef struct rc_capi:
        uint32_t version
        uint32_t size
        int32_t (*prank_update)(rc_prank_state *, rc_row, int32_t) noexcept
        void (*prank_average)(const rc_prank_state *, double *, double *) noexcept

    int32_t rc_prank_update(rc_prank_state *state, rc_row x, int32_t rank) noexcept
    void rc_prank_average(
        const rc_prank_state *state, double *weights, double *thresholds
    ) noexcept
    rc_prank rc_prank_view(const rc_prank_state *state) noexcept


# Apart from the others: this one needs the GIL, and so must not compile inside `with nogil`.
cdef extern from "rankcore_capi.h":
    int rc_import() except -1
