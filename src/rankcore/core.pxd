# The public Cython interface of rankcore: the declarations of rankcore.h and rankcore_capi.h. The
# headers document each name. Compile with include_dirs=[rankcore.get_include()].
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t


cdef extern from "rankcore.h" nogil:
    enum:
        RANKCORE_ABI
        RC_FLOAT64
        RC_FLOAT32
        RC_TIE_HIGH
        RC_TIE_LOW

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

    ctypedef struct rc_linear:
        const double *weights
        double intercept
        int64_t n_features

    ctypedef struct rc_cusum:
        const double *weights
        const double *thresholds
        int64_t n_features
        int32_t n_ranks
        int32_t tie

    ctypedef struct rc_stumps:
        const int64_t *offsets
        const double *thresholds
        const double *values
        const double *missing
        const double *at_zero
        double base
        int64_t n_features

    ctypedef struct rc_trees:
        const int64_t *offsets
        const int32_t *features
        const int32_t *children
        const uint8_t *missing
        const double *thresholds
        const double *values
        int64_t n_trees
        int64_t n_features
        int32_t zero_missing
        const int64_t *sets
        const uint32_t *words

    rc_row rc_row_f64(const double *data, const int32_t *indices, int64_t n) noexcept
    rc_row rc_row_f32(const float *data, const int32_t *indices, int64_t n) noexcept
    rc_rows rc_rows_dense(
        const void *data, int32_t dtype, int64_t n_rows, int64_t n_features
    ) noexcept
    rc_rows rc_rows_csr(
        const void *data, const int32_t *indices, const int64_t *indptr, int32_t dtype,
        int64_t n_rows, int64_t n_features,
    ) noexcept
    rc_row rc_rows_get(const rc_rows *X, int64_t i) noexcept
    double rc_dot(rc_row x, const double *w) noexcept
    void rc_axpy(rc_row x, double a, double *w) noexcept
    void rc_dots(rc_row x, const double *w, int32_t k, double *out) noexcept
    void rc_axpys(
        rc_row x, double a, double *w, int32_t k, int32_t first, int32_t stop
    ) noexcept
    double rc_norm2(rc_row x) noexcept
    int32_t rc_rank(const double *thresholds, int32_t n_ranks, double score) noexcept
    double rc_prank_score(const rc_prank *model, rc_row x) noexcept
    int32_t rc_prank_rank(const rc_prank *model, rc_row x) noexcept
    double rc_linear_score(const rc_linear *model, rc_row x) noexcept
    double rc_stumps_value(const rc_stumps *model, int64_t f, double x) noexcept
    double rc_stumps_score(const rc_stumps *model, rc_row x) noexcept
    double rc_row_value(rc_row x, int64_t column) noexcept
    int32_t rc_trees_has(const rc_trees *model, int64_t node, double value) noexcept
    int32_t rc_trees_leaf(const rc_trees *model, int64_t t, rc_row x) noexcept
    double rc_trees_sum(
        const rc_trees *model, int64_t first, int64_t last, rc_row x
    ) noexcept
    double rc_trees_score(const rc_trees *model, rc_row x) noexcept
    void rc_trees_add(
        const rc_trees *model, int64_t first, int64_t last, const rc_rows *X, double *scores
    ) noexcept
    void rc_trees_scores(const rc_trees *model, const rc_rows *X, double *scores) noexcept
    void rc_cusum_scores(const rc_cusum *model, rc_row x, double *scores) noexcept
    int32_t rc_best(const double *scores, int32_t n, int32_t tie) noexcept
    int32_t rc_cusum_rank(const rc_cusum *model, rc_row x, double *scores) noexcept

    enum:
        RC_KERNEL_LINEAR
        RC_KERNEL_POLY
        RC_KERNEL_RBF

    ctypedef struct rc_kernel:
        double gamma
        double coef0
        int32_t kind
        int32_t degree

    ctypedef struct rc_kernel_model:
        rc_kernel kernel
        rc_rows support
        const double *norms
        const double *coefs
        const double *thresholds
        int32_t n_outputs
        int32_t n_ranks
        int32_t tie

    double rc_kernel_exp(double x) noexcept
    double rc_kernel_value(
        const rc_kernel *kernel, double dot, double norm_x, double norm_z
    ) noexcept
    void rc_standardize(
        rc_row x, const double *means, const double *factors, int64_t n_features, double *z
    ) noexcept
    double rc_row_dot(rc_row x, rc_row z) noexcept
    void rc_kernel_outputs(const rc_kernel_model *model, rc_row x, double *outputs) noexcept
    int32_t rc_kernel_prank_rank(
        const rc_kernel_model *model, rc_row x, double *outputs
    ) noexcept
    int32_t rc_kernel_cusum_rank(
        const rc_kernel_model *model, rc_row x, double *scores
    ) noexcept


cdef extern from "rankcore_capi.h" nogil:
    enum:
        RC_CAPI_VERSION
        RC_TIE_CRAMMER
        RC_TIE_STRICT
        RC_UPDATE_PERCEPTRON
        RC_UPDATE_PA
        RC_UPDATE_PA1
        RC_UPDATE_PA2

    ctypedef struct rc_counts:
        int64_t t
        int64_t rank_loss
        int64_t mistakes

    ctypedef struct rc_forgetting:
        double gain
        double past

    ctypedef struct rc_prank_state:
        double *weights
        int64_t *steps
        double *thresholds
        double *weight_sums
        int64_t *step_sums
        double *real_step_sums
        double scale
        rc_forgetting forgetting
        int64_t n_features
        int32_t n_ranks
        int32_t tie
        rc_counts seen

    ctypedef struct rc_cusum_state:
        double *weights
        double *thresholds
        double *weight_sums
        double *threshold_sums
        double *scores
        double C
        double delta
        double margin
        double scale
        rc_forgetting forgetting
        int64_t n_features
        int32_t n_ranks
        int32_t tie
        int32_t update
        int32_t zero_one
        rc_counts seen

    ctypedef struct rc_lms_state:
        double *weights
        double *intercept
        double *weight_sums
        double *intercept_sums
        double eta
        double scale
        rc_forgetting forgetting
        int64_t n_features
        int32_t n_ranks
        int32_t normalized
        rc_counts seen

    ctypedef struct rc_mcp_state:
        double *weights
        double *intercepts
        double *weight_sums
        double *intercept_sums
        double *scores
        double scale
        rc_forgetting forgetting
        int64_t n_features
        int32_t n_ranks
        int32_t uniform
        rc_counts seen

    ctypedef struct rc_pair_state:
        double *weights
        double *weight_sums
        double *members
        double *successes
        int64_t *born
        int64_t capacity
        int64_t n_features
        double margin
        rc_forgetting forgetting
        int64_t kept
        double streak
        double total
        double unit
        int64_t run
        int64_t right
        int64_t n_pairs
        int64_t n_mistakes

    ctypedef struct rc_capi:
        uint32_t version
        uint32_t size
        int32_t (*prank_update)(rc_prank_state *, rc_row, int32_t) noexcept
        void (*prank_average)(const rc_prank_state *, double *, double *) noexcept
        int32_t (*cusum_update)(rc_cusum_state *, rc_row, int32_t) noexcept
        int32_t (*lms_update)(rc_lms_state *, rc_row, int32_t) noexcept
        int32_t (*mcp_update)(rc_mcp_state *, rc_row, int32_t) noexcept
        int32_t (*pair_update)(rc_pair_state *, rc_row, rc_row, double, double) noexcept
        int32_t (*pair_average)(const rc_pair_state *, double *) noexcept
        int32_t (*pair_committee)(const rc_pair_state *, double *) noexcept
        int32_t (*prank_margin_update)(rc_prank_state *, rc_row, int32_t, double) noexcept

    int32_t rc_prank_update(rc_prank_state *state, rc_row x, int32_t rank) noexcept
    int32_t rc_prank_margin_update(
        rc_prank_state *state, rc_row x, int32_t rank, double margin
    ) noexcept
    void rc_prank_average(
        const rc_prank_state *state, double *weights, double *thresholds
    ) noexcept
    int32_t rc_cusum_update(rc_cusum_state *state, rc_row x, int32_t rank) noexcept
    int32_t rc_lms_update(rc_lms_state *state, rc_row x, int32_t rank) noexcept
    int32_t rc_mcp_update(rc_mcp_state *state, rc_row x, int32_t rank) noexcept
    int32_t rc_pair_update(
        rc_pair_state *state, rc_row winner, rc_row loser, double step, double unit
    ) noexcept
    int32_t rc_pair_average(const rc_pair_state *state, double *weights) noexcept
    int32_t rc_pair_committee(const rc_pair_state *state, double *weights) noexcept
    rc_prank rc_prank_view(const rc_prank_state *state) noexcept


# Apart from the others: this one needs the GIL, and so must not compile inside `with nogil`.
cdef extern from "rankcore_capi.h":
    int rc_import() except -1
