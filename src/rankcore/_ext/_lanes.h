/* Many PRanks in vector lanes: draws, scores and updates. Private.
 *
 * Lane j of column f is at f * width + j, lane j of threshold r at r * width + j. The width is a
 * multiple of 4, or 1 where noted. Each lane is bit-identical to a single PRank: its score
 * is summed in the order of rc_dot, and zeros are added to a lane that does not learn, which
 * changes no number (no weight is ever -0).
 *
 * Everything in a lane is a double, counts and integer steps too: far below 2**53 they are exact,
 * and comparisons, sums and products then all have the same number of lanes to a register.
 */
#ifndef RANKCORE_LANES_H
#define RANKCORE_LANES_H

#include "rankcore.h"

#include "_draws.h"
#include "_forgetting.h"
#include "_standardized.h"
#include "rankcore_vectors.h"

/* A unit of processing: four lanes if the compiler has vectors (it splits them for narrower
 * registers), else one. A comparison gives all ones or zeros; RC_IF_ is its second argument if
 * the mask is set, else 0. Macros, as ABIs differ for vector arguments. */
#if defined(__GNUC__)
#define RC_UNIT_ 4
#define RC_LINE_ 8
typedef double rc_unit_ __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t rc_mask_ __attribute__((vector_size(32), aligned(8), may_alias));
typedef double rc_line_ __attribute__((vector_size(64), aligned(8), may_alias));
#define RC_WHERE_(comparison) ((rc_mask_)(comparison))
#define RC_IF_(mask, a) ((rc_unit_)((mask) & (rc_mask_)(a)))
#define RC_ANY_(mask) (((mask)[0] | (mask)[1] | (mask)[2] | (mask)[3]) != 0)
#else
#define RC_UNIT_ 1
#define RC_LINE_ 1
typedef double rc_unit_;
typedef double rc_line_;
typedef int64_t rc_mask_;
#define RC_WHERE_(comparison) (-(rc_mask_)(comparison))
#define RC_IF_(mask, a) ((mask) ? (a) : 0.0)
#define RC_ANY_(mask) ((mask) != 0)
#endif
#define RC_AT_(p) (*(rc_unit_ *)(p))
#define RC_OF_(p) (*(const rc_unit_ *)(p))

/* ------------------------------------------------------------------------ draws */

/* rc_draws_ as a function for other modules. */
RC_CLONES_ static int64_t rc_lane_draws(uint64_t seed, int64_t t, int64_t first, int64_t n,
                                        const uint64_t *cumulative, int64_t n_cumulative,
                                        uint64_t *draws, int64_t *times)
{
    return rc_draws_(seed, t, first, n, cumulative, n_cumulative, draws, times);
}

/* ------------------------------------------------------------------------ rows */

RC_INLINE_ double rc_value_(rc_row x, int64_t i, const int single)
{
    return single ? (double)((const float *)x.data)[i] : ((const double *)x.data)[i];
}

RC_INLINE_ int64_t rc_column_(rc_row x, int64_t i, const int sparse)
{
    return sparse ? x.indices[i] : i;
}

/* Calls an inline function with the kind of row as constants, so that no loop tests it. */
#define RC_BY_KIND_(function, ...)                \
    do {                                          \
        const int single = x.dtype == RC_FLOAT32; \
        if (x.indices && single)                  \
            function(x, 1, 1, __VA_ARGS__);       \
        else if (x.indices)                       \
            function(x, 1, 0, __VA_ARGS__);       \
        else if (single)                          \
            function(x, 0, 1, __VA_ARGS__);       \
        else                                      \
            function(x, 0, 0, __VA_ARGS__);       \
    } while (0)

/* Scores of the neighbouring lanes that one value of TYPE holds: the partial sums stay in
 * registers. And the same lanes of weights += a * x. */
#define RC_LANES_(TYPE, scores_name, axpys_name)                                              \
    RC_INLINE_ void scores_name(rc_row x, const int sparse, const int single,                 \
                                const double *weights, int64_t width, double *scores)         \
    {                                                                                         \
        TYPE s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};                                          \
        int64_t i;                                                                            \
        for (i = 0; i + 4 <= x.n; i += 4) {                                                   \
            if (sparse) { /* as rc_dot does: the row after next, or so */                     \
                RC_FETCH_((uintptr_t)x.data + (single ? 4 : 8) * (uintptr_t)i + 1024);        \
                RC_FETCH_((uintptr_t)x.indices + 4 * (uintptr_t)i + 1024);                    \
            }                                                                                 \
            s0 += rc_value_(x, i, single) *                                                   \
                  *(const TYPE *)(weights + rc_column_(x, i, sparse) * width);                \
            s1 += rc_value_(x, i + 1, single) *                                               \
                  *(const TYPE *)(weights + rc_column_(x, i + 1, sparse) * width);            \
            s2 += rc_value_(x, i + 2, single) *                                               \
                  *(const TYPE *)(weights + rc_column_(x, i + 2, sparse) * width);            \
            s3 += rc_value_(x, i + 3, single) *                                               \
                  *(const TYPE *)(weights + rc_column_(x, i + 3, sparse) * width);            \
        }                                                                                     \
        for (; i < x.n; i++)                                                                  \
            s0 += rc_value_(x, i, single) *                                                   \
                  *(const TYPE *)(weights + rc_column_(x, i, sparse) * width);                \
        *(TYPE *)scores = (s0 + s2) + (s1 + s3);                                              \
    }                                                                                         \
    RC_INLINE_ void axpys_name(rc_row x, const int sparse, const int single, const double *a, \
                               double *weights, int64_t width)                                \
    {                                                                                         \
        const TYPE change = *(const TYPE *)a;                                                 \
        int64_t i;                                                                            \
        for (i = 0; i < x.n; i++)                                                             \
            *(TYPE *)(weights + rc_column_(x, i, sparse) * width) +=                          \
                change * rc_value_(x, i, single);                                             \
    }

RC_LANES_(rc_unit_, rc_unit_scores_, rc_unit_axpys_)
RC_LANES_(rc_line_, rc_line_scores_, rc_line_axpys_)
#undef RC_LANES_

/* Writes the scores of n lanes, a cache line at a time, then the rest. */
RC_INLINE_ void rc_scores_(rc_row x, int64_t n, const double *weights, int64_t width,
                           double *scores)
{
    int64_t j;
    for (j = 0; j + RC_LINE_ <= n; j += RC_LINE_)
        RC_BY_KIND_(rc_line_scores_, weights + j, width, scores + j);
    for (; j < n; j += RC_UNIT_)
        RC_BY_KIND_(rc_unit_scores_, weights + j, width, scores + j);
}

/* Writes the scores of a row in all lanes. O(x.n * width). */
RC_CLONES_ static void rc_lane_scores(rc_row x, const double *weights, int64_t width,
                                      double *scores)
{
    if (width == 1)
        scores[0] = rc_dot(x, weights);
    else
        rc_scores_(x, width, weights, width, scores);
}

/* ------------------------------------------------------------------------ learning */

/* PRanks side by side while they learn. Arrays have one entry per lane unless noted. */
typedef struct rc_lanes {
    double *weights;       /* n_columns * width */
    double *weight_sums;   /* the same, or NULL: sum of changes times examples taken before, or
                              times `past` */
    double *steps;         /* n_ranks - 1 times, integers: a threshold is scale * steps */
    double *late;          /* n_ranks - 1 times, or NULL: sum of steps times `taken` before, or
                              times `past` */
    double *before;        /* examples taken before `taken` began to count; used for the sums */
    double *taken;         /* examples taken */
    double *rank_loss;     /* total rank loss on the examples taken */
    double *mistakes;      /* mistakes on them */
    double *survived;      /* examples ranked correctly since the last mistake */
    int64_t *times;        /* how often the lane takes the example; 0 beyond the last member */
    double *scores;        /* scratch */
    const double *offsets; /* what thresholds have besides multiples of the scale; or NULL */
    double *moves;         /* scratch: 1 if thresholds move, else 0 */
    double *changes;       /* scratch: factor of the example in the change of the weights */
    int64_t *units;        /* scratch: first lane of each unit that changes */
    int64_t n;             /* lanes, a multiple of 4 */
    int64_t width;         /* from one column's weights to the next; of the other arrays it is n */
    double scale;
    double margin;
    double gain; /* of the weight of each row, if averages forget; else 0 */
    double past; /* weight of the rows so far */
    int32_t n_ranks;
    int32_t ties_err;
} rc_lanes;

/* Evaluates the lanes that take the example once more, updates the counts and lists the units
 * with a lane whose thresholds move. Returns their number, or -1 if a score overflowed. */
RC_INLINE_ int64_t rc_lane_judge_(const rc_lanes m, int32_t rank, int64_t round)
{
    const rc_unit_ zero = {0};
    const rc_unit_ one = zero + 1.0;
    /* The thresholds ascend, so the two around the true rank decide. */
    const double *low = rank > 0 ? m.steps + (rank - 1) * m.n : NULL;
    const double *high = rank < m.n_ranks - 1 ? m.steps + rank * m.n : NULL;
    rc_mask_ overflow = {0};
    int64_t j, n_moving = 0;
    for (j = 0; j < m.n; j += RC_UNIT_) {
        const rc_mask_ takes = RC_WHERE_(*(const rc_mask_ *)(m.times + j) > round);
        const rc_unit_ s = RC_OF_(m.scores + j);
        const rc_unit_ took = RC_IF_(takes, one);
        rc_mask_ wrong = {0}, moves = {0};
        if (low) {
            const rc_unit_ b = m.scale * RC_OF_(low + j);
            wrong |= RC_WHERE_(s < b);
            moves |= RC_WHERE_(s < b + m.margin);
        }
        if (high) {
            const rc_unit_ b = m.scale * RC_OF_(high + j);
            wrong |= RC_WHERE_(s >= b);
            moves |= RC_WHERE_(s >= b - m.margin);
        }
        wrong &= takes;
        moves &= takes;
        overflow |= takes & ~RC_WHERE_(s - s == zero);
        RC_AT_(m.moves + j) = RC_IF_(moves, one);
        RC_AT_(m.taken + j) += took;
        RC_AT_(m.mistakes + j) += RC_IF_(wrong, one);
        RC_AT_(m.survived + j) = RC_IF_(~wrong, RC_OF_(m.survived + j) + took);
        /* Written always, kept when it moves: no branch to mispredict. */
        m.units[n_moving] = j;
        n_moving += RC_ANY_(moves);
    }
    return RC_ANY_(overflow) ? -1 : n_moving;
}

/* Moves threshold r of the lanes whose thresholds move, as move_thresholds in _prank.pxd does;
 * returns the sum of the steps. */
RC_INLINE_ int32_t rc_lane_move_(const rc_lanes m, int64_t n_moving, int32_t r, const int above)
{
    const rc_mask_ ties = (rc_mask_){0} - m.ties_err;
    const rc_unit_ zero = {0};
    rc_unit_ total = zero;
    double sums[RC_UNIT_];
    int64_t u;
    for (u = 0; u < n_moving; u++) {
        const int64_t j = m.units[u], at = r * m.n + j;
        const rc_unit_ s = RC_OF_(m.scores + j);
        const rc_unit_ moves = RC_OF_(m.moves + j);
        const rc_unit_ b = m.scale * RC_OF_(m.steps + at);
        const rc_unit_ edge = above ? b + m.margin : b - m.margin;
        rc_unit_ step = RC_IF_(above ? RC_WHERE_(s < edge) : RC_WHERE_(s >= edge), moves);
        RC_AT_(m.rank_loss + j) += RC_IF_(above ? RC_WHERE_(s < b) : RC_WHERE_(s >= b), moves);
        if (above)
            step += RC_IF_(RC_WHERE_(s == edge) & ties, moves);
        else
            step = zero - step;
        RC_AT_(m.steps + at) -= step;
        RC_AT_(m.changes + j) += step;
        total += step;
        if (m.late && m.gain > 0)
            RC_AT_(m.late + at) += m.past * step;
        else if (m.late) /* the example is counted already */
            RC_AT_(m.late + at) += (RC_OF_(m.taken + j) - 1.0) * step;
    }
    RC_AT_(sums) = total;
    for (u = 1; u < RC_UNIT_; u++)
        sums[0] += sums[u];
    return (int32_t)sums[0];
}

/* weights += changes * x in the units listed; neighbours, a line of cache, at once. */
RC_INLINE_ void rc_lane_axpys_(const rc_lanes m, rc_row x, int64_t n_moving, double *weights)
{
    int64_t u;
    for (u = 0; u < n_moving; u++) {
        const int64_t j = m.units[u];
        if (u + 1 < n_moving && m.units[u + 1] == j + RC_UNIT_ && j % RC_LINE_ == 0) {
            RC_BY_KIND_(rc_line_axpys_, m.changes + j, weights + j, m.width);
            u += RC_LINE_ / RC_UNIT_ - 1;
        } else
            RC_BY_KIND_(rc_unit_axpys_, m.changes + j, weights + j, m.width);
    }
}

/* Reads the n lanes of every column once, in order. Rows use columns in random order, and each
 * would wait for memory; sequential reads are prefetched, and bring them into the cache.
 * O(n_columns * n). */
static inline void rc_lane_fetch(const double *weights, int64_t n_columns, int64_t n, int64_t width)
{
    double sum = 0.0;
    volatile double kept; /* prevents the compiler from removing the reads */
    int64_t i, j;
    for (i = 0; i < n_columns; i++)
        for (j = 0; j < n; j += 8)
            sum += weights[i * width + j];
    kept = sum;
    (void)kept;
}

/* Every lane learns the example `times` times, at most `most`; adds the steps of their
 * thresholds to `moved` (n_ranks - 1). Returns 0, or -1 if a score overflowed, which leaves the
 * lanes partly updated. O(most * n * (x.n + n_ranks)). */
RC_INLINE_ int rc_learn_(const rc_lanes m, rc_row x, int32_t rank, int64_t most, int32_t *moved)
{
    int64_t round, j, u, n_moving;
    int32_t r;
    for (round = 0; round < most; round++) {
        rc_scores_(x, m.n, m.weights, m.width, m.scores);
        if (m.offsets)
            for (j = 0; j < m.n; j += RC_UNIT_)
                RC_AT_(m.scores + j) -= RC_OF_(m.offsets + j);
        n_moving = rc_lane_judge_(m, rank, round);
        if (n_moving <= 0) {
            if (n_moving < 0)
                return -1;
            continue;
        }
        for (u = 0; u < n_moving; u++)
            RC_AT_(m.changes + m.units[u]) = (rc_unit_){0};
        for (r = 0; r < rank; r++)
            moved[r] += rc_lane_move_(m, n_moving, r, 1);
        for (; r < m.n_ranks - 1; r++)
            moved[r] += rc_lane_move_(m, n_moving, r, 0);
        rc_lane_axpys_(m, x, n_moving, m.weights);
        if (m.weight_sums) {
            for (u = 0; u < n_moving; u++) { /* the example is counted already */
                j = m.units[u];
                if (m.gain > 0)
                    RC_AT_(m.changes + j) *= m.past;
                else
                    RC_AT_(m.changes + j) *= RC_OF_(m.before + j) + RC_OF_(m.taken + j) - 1.0;
            }
            rc_lane_axpys_(m, x, n_moving, m.weight_sums);
        }
    }
    return 0;
}

/* Rows to learn, and draws of members. */
typedef struct rc_lesson {
    const rc_rows *rows;
    const int32_t *ranks; /* of all rows */
    const int32_t *order; /* row at each position, or NULL for the rows as they come */
    int64_t start, stop;  /* positions */
    int64_t t;            /* examples before `start` */
    uint64_t seed;
    const uint64_t *cumulative; /* see rc_lane_draws */
    int64_t n_cumulative;
    int64_t per_row; /* entries from the table of one row to that of the next; 0: one for all */
    int64_t first;   /* member of the first lane */
    int64_t n;       /* members; the lanes beyond are padding */
    int32_t *moved;  /* (stop - start) * (n_ranks - 1) */
    const rc_units *units; /* in which rows are learned, or NULL for those of the rows */
    double *standardized;  /* scratch: a row in these units */
} rc_lesson;

/* Prefetches the weights of a sparse row's columns while the previous row is being learned. A
 * tile of one line per column does not fit into the nearest cache. */
RC_INLINE_ void rc_lane_ahead_(const rc_lanes m, const rc_lesson *l, int64_t i)
{
    if (m.width <= 8 && l->rows->indices && i < l->stop) {
        const rc_row x = rc_rows_get(l->rows, l->order ? l->order[i] : i);
        int64_t j;
        for (j = 0; j < x.n; j++)
            RC_FETCH_(m.weights + x.indices[j] * m.width);
    }
}

/* Multiplies the sums of all lanes by RC_FADE_. O(n_features * n). */
static inline void rc_lane_fade_(const rc_lanes m, int64_t n_features)
{
    int64_t f, j;
    for (f = 0; f < n_features; f++)
        for (j = 0; j < m.n; j++)
            m.weight_sums[f * m.width + j] *= RC_FADE_;
    for (j = 0; j < (m.n_ranks - 1) * m.n; j++)
        m.late[j] *= RC_FADE_;
}

/* Draws and rows in one loop: a call for each of them cost more than a draw. */
RC_INLINE_ int64_t rc_lesson_(rc_lanes m, const rc_lesson *l)
{
    int64_t i;
    for (i = l->start; i < l->stop; i++) {
        const int64_t row = l->order ? l->order[i] : i;
        const int64_t most = rc_draws_(l->seed, l->t + i - l->start, l->first, l->n,
                                       l->cumulative + row * l->per_row, l->n_cumulative,
                                       (uint64_t *)m.units, m.times);
        if (l->ranks[row] < 0 || l->ranks[row] >= m.n_ranks)
            return i;
        rc_lane_ahead_(m, l, i + 1);
        if (most) {
            rc_row x = rc_rows_get(l->rows, row);
            if (l->units)
                x = rc_standardized(l->units, x, l->standardized);
            if (rc_learn_(m, x, l->ranks[row], most, l->moved + (i - l->start) * (m.n_ranks - 1)) <
                0)
                return i;
        }
        if (m.gain > 0 && rc_outgrown(&m.past, m.gain))
            rc_lane_fade_(m, l->rows->n_features);
    }
    return l->stop;
}

/* The lanes learn the examples that they draw, and add their steps to `moved`. Returns `stop`,
 * or the first position that could not be learned, which is then partly learned. */
RC_CLONES_ static int64_t rc_lane_learn(const rc_lanes *lanes, const rc_lesson *lesson)
{
    rc_lanes m = *lanes; /* a copy: stores cannot alias its pointers */
    if (m.n == 8 && m.width == 8) {
        m.n = m.width = 8; /* a constant: all loops over lanes are unrolled */
        return rc_lesson_(m, lesson);
    }
    return rc_lesson_(m, lesson);
}

#undef RC_BY_KIND_
#undef RC_AT_
#undef RC_OF_
#undef RC_IF_
#undef RC_ANY_
#undef RC_FETCH_
#undef RC_WHERE_

#endif /* RANKCORE_LANES_H */
