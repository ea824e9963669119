/* The best split of a leaf by one column, from the sums of its bins. Private.
 *
 * Let W and L be the weights of the pairs that a set of rows wins and loses. A leaf with the value
 * (W - L) / (W + L + l2) reduces the weight, to second order, by (W - L)^2 / (W + L + l2) / 2.
 *
 * Alternatively, rows have the negative slope A of a loss and its curvature H: then A replaces W
 * - L and H replaces W + L. The halves of a word are W and L, or A, which may be negative, and
 * H. */
#ifndef RANKCORE_TREE_SPLITS_H
#define RANKCORE_TREE_SPLITS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rankcore_vectors.h"

typedef struct rc_leaf {
    uint64_t word; /* sum of the words of its rows: won << 32 | lost */
    double l2;     /* in units of the words, as is the next */
    double least;  /* minimum W + L of a child, at least 1 */
    int32_t sign;  /* of the value where the split fires less that where it does not; 0: either */
    double low, high; /* range of the values of the children */
    int32_t slopes;   /* whether words hold a slope and a curvature */
} rc_leaf;

typedef struct rc_split {
    double gain;   /* negative: there is none */
    uint64_t word; /* sum of the words of the rows that fire */
    int32_t bin;
    uint8_t side;
} rc_split;

/* An integer below 2^52 as a double, with baseline vector instructions. */
RC_INLINE_ double rc_as_double(uint64_t x)
{
    double y;
    x |= UINT64_C(0x4330000000000000);
    memcpy(&y, &x, sizeof y);
    return y - 4503599627370496.0;
}

RC_INLINE_ double rc_won(uint64_t word) { return rc_as_double(word >> 32); }

RC_INLINE_ double rc_lost(uint64_t word) { return rc_as_double(word & UINT64_C(0xffffffff)); }

/* W - L, or A. */
RC_INLINE_ double rc_slope(uint64_t word, int slopes)
{
    if (slopes)
        return rc_as_double((word >> 32) ^ UINT64_C(0x80000000)) - 2147483648.0;
    return rc_won(word) - rc_lost(word);
}

/* W + L, or H. */
RC_INLINE_ double rc_mass(uint64_t word, int slopes)
{
    return slopes ? rc_lost(word) : rc_won(word) + rc_lost(word);
}

/* Gain of a leaf of won and lost weights by its value. */
RC_INLINE_ double rc_worth(uint64_t word, double l2)
{
    const double a = rc_slope(word, 0), h = rc_mass(word, 0) + l2;
    return h > 0.0 ? a * a / h : 0.0;
}

/* The same for both children, given the firing rows of a cut; negative if one is below the
 * minimum weight. */
RC_INLINE_ double rc_worth_of_cut_(uint64_t firing, const rc_leaf *leaf, int slopes)
{
    const uint64_t rest = leaf->word - firing;
    const double a = rc_slope(firing, slopes), h = rc_mass(firing, slopes);
    const double b = rc_slope(rest, slopes), g = rc_mass(rest, slopes);
    const double worth = a * a / (h + leaf->l2) + b * b / (g + leaf->l2);
    const double lighter = h < g ? h : g;
    return lighter >= leaf->least ? worth : -1.0;
}

enum { RC_CUTS = 8 }; /* side by side */

/* Worths of n cuts, and their maximum, 0 if none is positive. */
RC_INLINE_ double rc_worths_in_(const uint64_t *firing, int64_t n, const rc_leaf *given,
                                double *worths, int slopes)
{
    const rc_leaf leaf = *given; /* a copy that the worths do not overlap */
    double most[RC_CUTS];
    int64_t i, k;
    for (k = 0; k < RC_CUTS; k++)
        most[k] = 0.0;
    for (i = 0; i + RC_CUTS <= n; i += RC_CUTS)
        for (k = 0; k < RC_CUTS; k++) {
            const double worth = rc_worth_of_cut_(firing[i + k], &leaf, slopes);
            worths[i + k] = worth;
            most[k] = worth > most[k] ? worth : most[k];
        }
    for (; i < n; i++) {
        worths[i] = rc_worth_of_cut_(firing[i], &leaf, slopes);
        most[0] = worths[i] > most[0] ? worths[i] : most[0];
    }
    for (k = 1; k < RC_CUTS; k++)
        most[0] = most[k] > most[0] ? most[k] : most[0];
    return most[0];
}

/* One loop per meaning of the words, without a branch on it inside. */
RC_CLONES_ static double rc_worths(const uint64_t *firing, int64_t n, const rc_leaf *leaf,
                                   double *worths)
{
    if (leaf->slopes)
        return rc_worths_in_(firing, n, leaf, worths, 1);
    return rc_worths_in_(firing, n, leaf, worths, 0);
}

/* The maximum of n worths, 0 if none is positive. */
static inline double rc_most(const double *worths, int64_t n)
{
    double most = 0.0;
    int64_t i;
    for (i = 0; i < n; i++)
        most = worths[i] > most ? worths[i] : most;
    return most;
}

/* Value of a leaf, within a range. */
RC_INLINE_ double rc_value(uint64_t word, double l2, double low, double high, int slopes)
{
    const double h = rc_mass(word, slopes) + l2;
    const double value = h > 0.0 ? rc_slope(word, slopes) / h : 0.0;
    return value < low ? low : value > high ? high : value;
}

/* Gain of a leaf with a given value, which need not be optimal. */
RC_INLINE_ double rc_worth_of(uint64_t word, double l2, double value, int slopes)
{
    const double a = rc_slope(word, slopes), h = rc_mass(word, slopes) + l2;
    return (2.0 * a - h * value) * value;
}

/* The same for a column or leaf whose values are constrained. */
static inline void rc_constrained_worths(const uint64_t *firing, int64_t n, const rc_leaf *leaf,
                                         double *worths)
{
    const int slopes = leaf->slopes;
    int64_t i;
    for (i = 0; i < n; i++) {
        const uint64_t rest = leaf->word - firing[i];
        const double h = rc_mass(firing[i], slopes), g = rc_mass(rest, slopes);
        const double a = rc_value(firing[i], leaf->l2, leaf->low, leaf->high, slopes);
        const double b = rc_value(rest, leaf->l2, leaf->low, leaf->high, slopes);
        worths[i] = -1.0;
        if (h >= leaf->least && g >= leaf->least && (double)leaf->sign * (a - b) >= 0.0)
            worths[i] = rc_worth_of(firing[i], leaf->l2, a, slopes) +
                        rc_worth_of(rest, leaf->l2, b, slopes);
    }
}

/* Find the cut of maximum gain; ties go to the highest, and to firing on missing values. sums
 * has n_bins + 1 sums, the last of missing values; scratch has room for 2 * n_bins words and as
 * many doubles. */
static inline rc_split rc_best_cut(const uint64_t *sums, const int32_t *counts, int64_t n_bins,
                                   const rc_leaf *leaf, int64_t n_rows, int64_t least_rows,
                                   uint64_t *firing, double *worths)
{
    const uint64_t missing = sums[n_bins];
    const int64_t n_missing = counts ? counts[n_bins] : 0;
    uint64_t above = 0;
    int64_t b, i, n = 0, n_above = 0, at = 0;
    double best = -1.0; /* to be found */
    rc_split found = {-1.0, 0, -1, 0};
    for (b = n_bins - 1; b > 0; b--) {
        above += sums[b];
        if (missing)
            firing[n++] = above + missing;
        firing[n++] = above;
    }
    if (missing)
        firing[n++] = above + sums[0];
    if (leaf->sign || leaf->low > -1e300 || leaf->high < 1e300)
        rc_constrained_worths(firing, n, leaf, worths);
    else
        best = rc_worths(firing, n, leaf, worths);
    if (counts) {
        for (i = 0; i < n; i++) {
            int64_t m;
            b = n_bins - 1 - (missing ? i / 2 : i);
            if (!missing || i % 2 == 0)
                n_above += counts[b];
            m = n_above + (missing && i % 2 == 0 && b > 0 ? n_missing : 0);
            if (m < least_rows || n_rows - m < least_rows)
                worths[i] = -1.0;
        }
    }
    if (counts || best < 0.0)
        best = rc_most(worths, n);
    if (!(best > 0.0))
        return found;
    while (worths[at] != best)
        at++;
    found.gain = best;
    found.word = firing[at];
    found.bin = (int32_t)(n_bins - 1 - (missing ? at / 2 : at));
    found.side = missing && at % 2 == 0 && found.bin > 0;
    return found;
}

/* A category, and the sum of the words of its rows. */
typedef struct rc_category {
    uint64_t word;
    uint64_t code;
} rc_category;

/* By W / (W + L), then by code. The products are of 32-bit integers: exact. */
static inline int rc_by_rate(const void *left, const void *right)
{
    const rc_category *a = (const rc_category *)left, *b = (const rc_category *)right;
    const uint64_t x = (a->word >> 32) * (b->word & UINT64_C(0xffffffff));
    const uint64_t y = (b->word >> 32) * (a->word & UINT64_C(0xffffffff));
    if (x != y)
        return x < y ? -1 : 1;
    return (a->code > b->code) - (a->code < b->code);
}

/* By A / H, then by code: exact, too. No category of some rows has H = 0. */
static inline int rc_by_slope(const void *left, const void *right)
{
    const rc_category *a = (const rc_category *)left, *b = (const rc_category *)right;
    const int64_t of_a = (int64_t)(a->word >> 32 ^ UINT64_C(0x80000000)) - INT64_C(0x80000000);
    const int64_t of_b = (int64_t)(b->word >> 32 ^ UINT64_C(0x80000000)) - INT64_C(0x80000000);
    const int64_t x = of_a * (int64_t)(b->word & UINT64_C(0xffffffff));
    const int64_t y = of_b * (int64_t)(a->word & UINT64_C(0xffffffff));
    if (x != y)
        return x < y ? -1 : 1;
    return (a->code > b->code) - (a->code < b->code);
}

/* Categories with positive weight, in that order, including "missing" (n_bins); returns how
 * many. */
static inline int64_t rc_sort_categories(const uint64_t *sums, int64_t n_bins, int slopes,
                                         rc_category *order)
{
    int64_t b, n = 0;
    for (b = 0; b <= n_bins; b++)
        if (sums[b]) {
            order[n].word = sums[b];
            order[n++].code = (uint64_t)b;
        }
    qsort(order, (size_t)n, sizeof *order, slopes ? rc_by_slope : rc_by_rate);
    return n;
}

/* Side of missing values, and of categories without weight, if the last n_firing of n fire. `at`
 * is the place of "missing" among the n; if it is absent, they go to the child of larger weight. */
static inline uint8_t rc_side_of_missing(int64_t at, int64_t n, int64_t n_firing, uint64_t firing,
                                         const rc_leaf *leaf)
{
    if (at >= 0)
        return at >= n - n_firing;
    return rc_mass(firing, leaf->slopes) > rc_mass(leaf->word - firing, leaf->slopes);
}

/* Find the set of categories of maximum gain, see rc_best_cut; bin is the number of firing ones,
 * the last ones of rc_sort_categories. The gain of both children is convex in W and L of one:
 * its maximum is at an extreme point of the possible sums of sets, which are prefixes in the
 * order of W / (W + L) and their complements (Fisher 1958; Breiman et al. 1984, section 4.2), or
 * the empty set, for which no split gains. Ties go to the set with the fewest firing categories.
 * order has n_bins + 1 entries. */
static inline rc_split rc_best_set(const uint64_t *sums, const int32_t *counts, int64_t n_bins,
                                   const rc_leaf *leaf, int64_t n_rows, int64_t least_rows,
                                   rc_category *order, uint64_t *firing, double *worths)
{
    const int64_t n = rc_sort_categories(sums, n_bins, leaf->slopes, order);
    uint64_t above = 0;
    int64_t i, k, n_above = 0, n_light = 0, missing = n, at = -1;
    double best = 0.0;
    rc_split found = {-1.0, 0, -1, 0};
    for (i = 0; i + 1 < n; i++)
        firing[i] = above += order[n - 1 - i].word;
    do
        missing--;
    while (missing >= 0 && order[missing].code != (uint64_t)n_bins);
    if (leaf->low > -1e300 || leaf->high < 1e300)
        rc_constrained_worths(firing, n - 1, leaf, worths);
    else
        rc_worths(firing, n - 1, leaf, worths);
    if (counts) {
        for (k = 0; k <= n_bins; k++)
            n_light += sums[k] ? 0 : counts[k];
        for (i = 0; i + 1 < n; i++) {
            const uint8_t side = rc_side_of_missing(missing, n, i + 1, firing[i], leaf);
            int64_t m;
            n_above += counts[order[n - 1 - i].code];
            m = n_above + (side ? n_light : 0);
            if (m < least_rows || n_rows - m < least_rows)
                worths[i] = -1.0;
        }
    }
    for (i = 0; i + 1 < n; i++)
        if (worths[i] > best) {
            best = worths[i];
            at = i;
        }
    if (at < 0)
        return found;
    found.gain = best;
    found.word = firing[at];
    found.bin = (int32_t)(at + 1);
    found.side = rc_side_of_missing(missing, n, at + 1, firing[at], leaf);
    return found;
}

/* Codes that fire in the set found by rc_best_set. */
static inline void rc_mark_set(const uint64_t *sums, int64_t n_bins, int slopes, int64_t n_firing,
                               uint8_t side, rc_category *order, uint8_t *fires)
{
    const int64_t n = rc_sort_categories(sums, n_bins, slopes, order);
    int64_t i;
    memset(fires, side, (size_t)n_bins + 1);
    for (i = 0; i < n; i++)
        fires[order[i].code] = i >= n - n_firing;
}

/* Upper bound of the worth of cuts of entries with total weights W and L: the worth is convex,
 * so that its maximum is where all that win fire, or all that lose, or all. */
static inline double rc_most_worth(uint64_t entries, uint64_t word, double l2)
{
    const uint64_t winners = entries & ~UINT64_C(0xffffffff), losers = entries ^ winners;
    double most = rc_worth(winners, l2) + rc_worth(word - winners, l2), worth;
    worth = rc_worth(losers, l2) + rc_worth(word - losers, l2);
    most = worth > most ? worth : most;
    worth = rc_worth(entries, l2) + rc_worth(word - entries, l2);
    most = worth > most ? worth : most;
    worth = rc_worth(word, l2);
    return worth > most ? worth : most;
}

#endif /* RANKCORE_TREE_SPLITS_H */
