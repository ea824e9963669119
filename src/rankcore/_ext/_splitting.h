/* Find the best split of a leaf by one feature, from the leaf's histogram. Private.
 *
 * Rows have a gradient (minus the first derivative of their loss) and a hessian (its second
 * derivative). With the sums G and H of a leaf's rows, its value is G / (H + l2), which reduces the
 * loss, to second order, by G^2 / (H + l2) / 2. The gain of a split is twice the reduction by both
 * children.
 *
 * A packed sum holds both as integers: G in the upper 32 bits, in two's complement, and H in the
 * lower 32 bits. One addition sums both, exactly and in any order. Gains are computed from packed
 * sums in a fixed way, so that equal sums give equal splits on every machine.
 *
 * Cost: O(n_bins) for a numeric feature, O(n_bins log n_bins) for a categorical one. Candidates are
 * written first and evaluated RC_CUTS at a time, in vector instructions. */
#ifndef RANKCORE_SPLITTING_H
#define RANKCORE_SPLITTING_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rankcore_vectors.h"

/* A leaf to split, and constraints on its children. Hessians are in units of packed sums. */
typedef struct rc_leaf {
    uint64_t packed; /* sum over its rows */
    double l2;
    double min_hessian; /* of a child; at least 1 */
    double low, high;   /* range of the values of children */
    int32_t sign;       /* of the right child's value less the left one's; 0: either */
} rc_leaf;

/* Rows of the bin and of those above go to the right child; those with missing values if
 * missing_right. For a categorical feature, bin is the number of categories on the right. */
typedef struct rc_split {
    double gain;     /* of both children, without subtracting that of the leaf; < 0: no split */
    uint64_t packed; /* sum over the rows of the right child */
    int32_t bin;
    uint8_t missing_right;
} rc_split;

/* Convert an integer below 2^52 to a double, with baseline vector instructions. */
RC_INLINE_ double rc_as_double(uint64_t x)
{
    double y;
    x |= UINT64_C(0x4330000000000000);
    memcpy(&y, &x, sizeof y);
    return y - 4503599627370496.0;
}

RC_INLINE_ double rc_gradient(uint64_t packed)
{
    return rc_as_double((packed >> 32) ^ UINT64_C(0x80000000)) - 2147483648.0;
}

RC_INLINE_ double rc_hessian(uint64_t packed)
{
    return rc_as_double(packed & UINT64_C(0xffffffff));
}

/* Return Newton's value of a leaf, within a range. */
RC_INLINE_ double rc_leaf_value(uint64_t packed, double l2, double low, double high)
{
    const double h = rc_hessian(packed) + l2;
    const double value = h > 0.0 ? rc_gradient(packed) / h : 0.0;
    return value < low ? low : value > high ? high : value;
}

/* Return the gain of a leaf with a given value, which need not be Newton's. */
RC_INLINE_ double rc_leaf_gain(uint64_t packed, double l2, double value)
{
    const double g = rc_gradient(packed), h = rc_hessian(packed) + l2;
    return (2.0 * g - h * value) * value;
}

/* Return the gain of a leaf with Newton's value. */
RC_INLINE_ double rc_newton_gain_(double gradient, double hessian, double l2)
{
    const double h = hessian + l2;
    return h > 0.0 ? gradient * gradient / h : 0.0;
}

/* Return the gain of both children; negative if the hessian of one is too small. */
RC_INLINE_ double rc_split_gain_(uint64_t right, const rc_leaf *leaf)
{
    const uint64_t left = leaf->packed - right;
    const double a = rc_gradient(right), h = rc_hessian(right);
    const double b = rc_gradient(left), g = rc_hessian(left);
    const double gain = a * a / (h + leaf->l2) + b * b / (g + leaf->l2);
    const double smaller = h < g ? h : g;
    return smaller >= leaf->min_hessian ? gain : -1.0;
}

enum { RC_CUTS = 8 }; /* candidates side by side */

/* Write the gains of n candidate splits; return their maximum, 0 if none is positive. */
RC_CLONES_ static double rc_split_gains(const uint64_t *right, int64_t n, const rc_leaf *given,
                                        double *gains)
{
    const rc_leaf leaf = *given; /* a copy: stores to gains cannot alias it */
    double best[RC_CUTS];
    int64_t i, k;
    for (k = 0; k < RC_CUTS; k++)
        best[k] = 0.0;
    for (i = 0; i + RC_CUTS <= n; i += RC_CUTS)
        for (k = 0; k < RC_CUTS; k++) {
            const double gain = rc_split_gain_(right[i + k], &leaf);
            gains[i + k] = gain;
            best[k] = gain > best[k] ? gain : best[k];
        }
    for (; i < n; i++) {
        gains[i] = rc_split_gain_(right[i], &leaf);
        best[0] = gains[i] > best[0] ? gains[i] : best[0];
    }
    for (k = 1; k < RC_CUTS; k++)
        best[0] = best[k] > best[0] ? best[k] : best[0];
    return best[0];
}

/* As rc_split_gains, for values in a range and a monotone constraint. */
static inline double rc_constrained_gains(const uint64_t *right, int64_t n, const rc_leaf *leaf,
                                          double *gains)
{
    double best = 0.0;
    int64_t i;
    for (i = 0; i < n; i++) {
        const uint64_t left = leaf->packed - right[i];
        const double h = rc_hessian(right[i]), g = rc_hessian(left);
        const double a = rc_leaf_value(right[i], leaf->l2, leaf->low, leaf->high);
        const double b = rc_leaf_value(left, leaf->l2, leaf->low, leaf->high);
        gains[i] = -1.0;
        if (h >= leaf->min_hessian && g >= leaf->min_hessian && (double)leaf->sign * (a - b) >= 0.0)
            gains[i] = rc_leaf_gain(right[i], leaf->l2, a) + rc_leaf_gain(left, leaf->l2, b);
        best = gains[i] > best ? gains[i] : best;
    }
    return best;
}

static inline double rc_gains_of_(const uint64_t *right, int64_t n, const rc_leaf *leaf,
                                  double *gains)
{
    if (leaf->sign || leaf->low > -1e300 || leaf->high < 1e300)
        return rc_constrained_gains(right, n, leaf, gains);
    return rc_split_gains(right, n, leaf, gains);
}

/* Return the maximum of n gains, 0 if none is positive. */
static inline double rc_max_gain_(const double *gains, int64_t n)
{
    double best = 0.0;
    int64_t i;
    for (i = 0; i < n; i++)
        best = gains[i] > best ? gains[i] : best;
    return best;
}

/* Find the best split of a numeric feature; ties go to the highest bin, and to missing values on
 * the right. The histogram has n_bins + 1 packed sums, the last of missing values; counts, if not
 * NULL, has the number of rows of each, and both children then have at least min_rows of n_rows.
 * Scratch: right and gains have room for 2 * n_bins candidates. */
static inline rc_split rc_best_threshold(const uint64_t *histogram, const int32_t *counts,
                                         int64_t n_bins, const rc_leaf *leaf, int64_t n_rows,
                                         int64_t min_rows, uint64_t *right, double *gains)
{
    const uint64_t missing = histogram[n_bins];
    const int64_t n_missing = counts ? counts[n_bins] : 0;
    uint64_t above = 0;
    int64_t b, i, n = 0, n_above = 0, at = 0;
    double best;
    rc_split split = {-1.0, 0, -1, 0};
    for (b = n_bins - 1; b > 0; b--) {
        above += histogram[b];
        if (missing)
            right[n++] = above + missing;
        right[n++] = above;
    }
    if (missing)
        right[n++] = above + histogram[0];
    best = rc_gains_of_(right, n, leaf, gains);
    if (counts) {
        for (i = 0; i < n; i++) {
            int64_t m;
            b = n_bins - 1 - (missing ? i / 2 : i);
            if (!missing || i % 2 == 0)
                n_above += counts[b];
            m = n_above + (missing && i % 2 == 0 && b > 0 ? n_missing : 0);
            if (m < min_rows || n_rows - m < min_rows)
                gains[i] = -1.0;
        }
        best = rc_max_gain_(gains, n);
    }
    if (!(best > 0.0))
        return split;
    while (gains[at] != best)
        at++;
    split.gain = best;
    split.packed = right[at];
    split.bin = (int32_t)(n_bins - 1 - (missing ? at / 2 : at));
    split.missing_right = missing && at % 2 == 0 && split.bin > 0;
    return split;
}

/* A category, and the packed sum of its rows. */
typedef struct rc_category {
    uint64_t packed;
    uint64_t code;
} rc_category;

/* Compare by G / H, then by code. Products of 32-bit integers are exact; no category of some rows
 * has H = 0. */
static inline int rc_by_value_(const void *left, const void *right)
{
    const rc_category *a = (const rc_category *)left, *b = (const rc_category *)right;
    const int64_t of_a = (int64_t)(a->packed >> 32 ^ UINT64_C(0x80000000)) - INT64_C(0x80000000);
    const int64_t of_b = (int64_t)(b->packed >> 32 ^ UINT64_C(0x80000000)) - INT64_C(0x80000000);
    const int64_t x = of_a * (int64_t)(b->packed & UINT64_C(0xffffffff));
    const int64_t y = of_b * (int64_t)(a->packed & UINT64_C(0xffffffff));
    if (x != y)
        return x < y ? -1 : 1;
    return (a->code > b->code) - (a->code < b->code);
}

/* Sort the categories of some rows, "missing" (n_bins) among them; return how many. */
static inline int64_t rc_sort_categories_(const uint64_t *histogram, int64_t n_bins,
                                          rc_category *order)
{
    int64_t b, n = 0;
    for (b = 0; b <= n_bins; b++)
        if (histogram[b]) {
            order[n].packed = histogram[b];
            order[n++].code = (uint64_t)b;
        }
    qsort(order, (size_t)n, sizeof *order, rc_by_value_);
    return n;
}

/* Return the child of missing values, and of categories without rows, if the last n_right of n
 * categories go right. `at` is the place of "missing" among the n; if it is absent, they go to the
 * child of larger hessian. */
static inline uint8_t rc_missing_right_(int64_t at, int64_t n, int64_t n_right, uint64_t right,
                                        const rc_leaf *leaf)
{
    if (at >= 0)
        return at >= n - n_right;
    return rc_hessian(right) > rc_hessian(leaf->packed - right);
}

/* Find the best split of a categorical feature, see rc_best_threshold; bin is the number of
 * categories on the right, the last ones of rc_sort_categories_. The gain of both children is
 * convex in G and H of one: its maximum is at an extreme point of the possible sums of sets, which
 * are prefixes in the order of G / H and their complements (Fisher 1958; Breiman et al. 1984,
 * section 4.2), or the empty set, for which no split gains. Ties go to the set with the fewest
 * categories on the right. Scratch: order has room for n_bins + 1 categories. */
static inline rc_split rc_best_categories(const uint64_t *histogram, const int32_t *counts,
                                          int64_t n_bins, const rc_leaf *given, int64_t n_rows,
                                          int64_t min_rows, rc_category *order, uint64_t *right,
                                          double *gains)
{
    const int64_t n = rc_sort_categories_(histogram, n_bins, order);
    rc_leaf leaf = *given;
    uint64_t above = 0;
    int64_t i, k, n_above = 0, n_absent = 0, missing = n, at = -1;
    double best = 0.0;
    rc_split split = {-1.0, 0, -1, 0};
    leaf.sign = 0;
    for (i = 0; i + 1 < n; i++)
        right[i] = above += order[n - 1 - i].packed;
    do
        missing--;
    while (missing >= 0 && order[missing].code != (uint64_t)n_bins);
    rc_gains_of_(right, n - 1, &leaf, gains);
    if (counts) {
        for (k = 0; k <= n_bins; k++)
            n_absent += histogram[k] ? 0 : counts[k];
        for (i = 0; i + 1 < n; i++) {
            const uint8_t side = rc_missing_right_(missing, n, i + 1, right[i], &leaf);
            int64_t m;
            n_above += counts[order[n - 1 - i].code];
            m = n_above + (side ? n_absent : 0);
            if (m < min_rows || n_rows - m < min_rows)
                gains[i] = -1.0;
        }
    }
    for (i = 0; i + 1 < n; i++)
        if (gains[i] > best) {
            best = gains[i];
            at = i;
        }
    if (at < 0)
        return split;
    split.gain = best;
    split.packed = right[at];
    split.bin = (int32_t)(at + 1);
    split.missing_right = rc_missing_right_(missing, n, at + 1, right[at], &leaf);
    return split;
}

/* Write which of the n_bins + 1 codes go right in a split of rc_best_categories. */
static inline void rc_mark_categories(const uint64_t *histogram, int64_t n_bins, int64_t n_right,
                                      uint8_t missing_right, rc_category *order,
                                      uint8_t *goes_right)
{
    const int64_t n = rc_sort_categories_(histogram, n_bins, order);
    int64_t i;
    memset(goes_right, missing_right, (size_t)n_bins + 1);
    for (i = 0; i < n; i++)
        goes_right[order[i].code] = i >= n - n_right;
}

/* Bound the gain of all splits that part some rows from the others, from the sum over these rows
 * alone, if no row's |gradient| exceeds its hessian: the gain is convex in G and H of a child,
 * which lie between corners where all of positive gradient go right, or all of negative, or all, or
 * none. */
static inline double rc_gain_bound(uint64_t some, const rc_leaf *leaf)
{
    const double g = rc_gradient(leaf->packed), h = rc_hessian(leaf->packed);
    const double a = rc_gradient(some), c = rc_hessian(some);
    const double up = 0.5 * (c + a), down = 0.5 * (c - a);
    const double corners[3][2] = {{up, up}, {-down, down}, {a, c}};
    double bound = rc_newton_gain_(g, h, leaf->l2);
    int k;
    for (k = 0; k < 3; k++) {
        const double gain = rc_newton_gain_(corners[k][0], corners[k][1], leaf->l2) +
                            rc_newton_gain_(g - corners[k][0], h - corners[k][1], leaf->l2);
        bound = gain > bound ? gain : bound;
    }
    return bound;
}

#endif /* RANKCORE_SPLITTING_H */
