/* rankcore_calibration.h - probabilities of ranks from a score. Part of rankcore_model.h, and the
 * arithmetic of Python's CalibratedOrdinal. C99 (and C++11), header only. */
#ifndef RANKCORE_CALIBRATION_H
#define RANKCORE_CALIBRATION_H

#include <math.h>

#include "rankcore.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Curves from a score to probabilities. With n_knots == 0 cumulative logits,
 * P(rank <= r) = 1 / (1 + exp(slope * z - curves[r])), where z = (score - center) / scale;
 * otherwise P(rank > r) is linear between knots, curves[j * (n_ranks - 1) + r] at knots[j], and
 * constant beyond the first and the last. */
typedef struct rc_calibration {
    int32_t n_ranks;
    int64_t n_knots;
    const double *curves; /* ascending thresholds; or by knot, descending by rank */
    const double *knots;  /* ascending */
    double slope;
    double center;
    double scale;
    const double *costs; /* (n_ranks, n_ranks): of a prediction (column) for a true rank (row) */
} rc_calibration;

#define RC_CALIBRATION_EQUAL_ (1.0 / 1099511627776.0) /* 2**-40: far above rounding */

/* Returns 1 / (1 + exp(-x)) by rc_kernel_exp, whose bits do not depend on the C library. */
static inline double rc_logistic_(double x)
{
    const double e = rc_kernel_exp(x < 0.0 ? x : -x);
    return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

/* Writes rc_logistic_ of x and of -x, bit-identical, with one exponential. */
static inline void rc_both_tails_(double x, double *over, double *under)
{
    const double e = rc_kernel_exp(x < 0.0 ? x : -x);
    const double small = e / (1.0 + e), large = 1.0 / (1.0 + e);
    *over = x < 0.0 ? small : large;
    *under = x < 0.0 ? large : small;
}

/* Returns the probability of the logistic distribution between bounds: differences of small
 * numbers, not of numbers close to 1, in both tails. */
static inline double rc_logistic_between_(double upper, double lower)
{
    if (lower > 0.0)
        return rc_logistic_(-lower) - rc_logistic_(-upper);
    return rc_logistic_(upper) - rc_logistic_(lower);
}

/* Returns the last knot at or below z, limited to the first and the last but one. */
static inline int64_t rc_calibration_knot_(const rc_calibration *c, double z)
{
    int64_t low = 0, high = c->n_knots - 1; /* the knot is in low .. high - 1 */
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (c->knots[middle] <= z)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Returns P(rank > r) at z, between knots j and j + 1. */
static inline double rc_calibration_above_(const rc_calibration *c, int64_t j, double z, int32_t r)
{
    const double *curve = c->curves + r;
    const int64_t k = c->n_ranks - 1, last = c->n_knots - 1;
    if (z <= c->knots[0])
        return curve[0];
    if (z >= c->knots[last])
        return curve[last * k];
    if (z != z)
        return z; /* overflow; there may be no second knot */
    return curve[j * k] + (curve[(j + 1) * k] - curve[j * k]) *
                              ((z - c->knots[j]) / (c->knots[j + 1] - c->knots[j]));
}

/* Writes the probability of each rank, p[0 .. n_ranks - 1], which add up to 1. O(n_ranks + log
 * n_knots). */
static inline void rc_calibration_probabilities(const rc_calibration *c, double score, double *p)
{
    const double z = (score - c->center) / c->scale;
    const int64_t j = c->n_knots > 1 ? rc_calibration_knot_(c, z) : 0;
    const int32_t k = c->n_ranks;
    double total = 0.0, before = c->n_knots ? 1.0 : -(double)INFINITY;
    int32_t r;
    for (r = 0; r < k; r++) {
        double next;
        if (c->n_knots) {
            next = r < k - 1 ? rc_calibration_above_(c, j, z, r) : 0.0;
            p[r] = before > next ? before - next : 0.0; /* equal curves may cross by rounding */
        } else {
            next = r < k - 1 ? c->curves[r] - c->slope * z : (double)INFINITY;
            p[r] = rc_logistic_between_(next, before);
        }
        before = next;
        total += p[r];
    }
    for (r = 0; r < k; r++)
        p[r] /= total;
}

/* Returns the rank of minimum expected cost, 0 .. n_ranks - 1; the lowest of ranks whose costs are
 * equal up to rounding: if an isotonic curve is flat at one half, two ranks have the same cost, and
 * the last bit of a score must not decide. O(n_ranks^2). */
static inline int32_t rc_calibration_rank(const rc_calibration *c, const double *p)
{
    int32_t r, t, best = c->n_ranks - 1;
    double least = 0.0;
    for (r = c->n_ranks - 1; r >= 0; r--) {
        double cost = 0.0;
        for (t = 0; t < c->n_ranks; t++)
            cost += p[t] * c->costs[(int64_t)t * c->n_ranks + r];
        if (r == c->n_ranks - 1 || !(cost > least + fabs(least) * RC_CALIBRATION_EQUAL_))
            best = r;
        if (r == c->n_ranks - 1 || cost < least)
            least = cost;
    }
    return best;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_CALIBRATION_H */
