/* Random order of the pairs of a query, without storing them. Private.
 *
 * Documents are numbered by descending label. A winner is paired with all documents of lower
 * label, which are the last ones: with labels 2, 1, 1, 0 document 0 has the losers 1, 2, 3 and
 * documents 1 and 2 have the loser 3. Pairs are numbered winner by winner: (0, 1), (0, 2), (0, 3),
 * (1, 3), (2, 3) are the pairs 0 to 4. Winners of one label have equally many losers, so that the
 * pair of a number follows by one division. A walk visits all numbers in equal steps modulo n. */
#ifndef RANKCORE_WALK_H
#define RANKCORE_WALK_H

#include "_docs.h"
#include "rankcore_random.h"

/* Pairs of a query up to this number are listed by each visit: a list of 128 KiB fits into the
 * second-level cache. */
enum { RC_LISTED = 1 << 15 };

/* Winners of one label: pairs from first_pair on, `width` losers each, which are the documents up
 * to the last. Pair number k is of winner (k - origin) / width, rounded down. */
typedef struct rc_level {
    double first_pair;
    double width;
    double inverse; /* 1 / width */
    double origin;  /* first_pair - (first winner) * width */
} rc_level;

/* A walk over n pair numbers in equal steps modulo n, eight at a time. Numbers are doubles,
 * exact to 2^53 and fast to divide. */
typedef struct rc_walk {
    double n;
    double stride; /* of eight steps, modulo n */
    double next[RC_PANEL];
} rc_walk;

static inline uint64_t rc_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Steps of about n / golden ratio spread successive pairs over all winners and losers; a step
 * coprime to n visits every number once. */
static void rc_walk_start(rc_walk *walk, uint64_t n, uint64_t *state)
{
    uint64_t step = (uint64_t)((0.6180339887498949 + rc_unit(state) / 16) * (double)n) % n;
    uint64_t k;
    int lane;
    while (rc_gcd(step, n) != 1)
        step = (step + 1) % n;
    k = (uint64_t)(rc_unit(state) * (double)n) % n;
    for (lane = 0; lane < RC_PANEL; lane++) {
        walk->next[lane] = (double)(int64_t)k;
        k = (k + step) % n;
    }
    walk->n = (double)(int64_t)n;
    walk->stride = (double)(int64_t)(step * RC_PANEL % n);
}

/* Writes the next RC_BATCH numbers (more than n: they repeat, the caller stops after n). */
RC_CLONES_ static void rc_walk_numbers(rc_walk *walk, double *numbers)
{
    const double n = walk->n, stride = walk->stride;
    double k[RC_PANEL];
    int64_t t;
    int lane;
    memcpy(k, walk->next, sizeof k);
    for (t = 0; t < RC_BATCH; t += RC_PANEL)
        for (lane = 0; lane < RC_PANEL; lane++) {
            numbers[t + lane] = k[lane];
            k[lane] += stride;
            k[lane] -= k[lane] >= n ? n : 0.0;
        }
    memcpy(walk->next, k, sizeof k);
}

/* Lists the pairs of n documents by number, each as 65536 * winner + loser. `names` has the index
 * of each document in the query, as those of one label are shuffled before they are numbered. */
RC_CLONES_ static void rc_walk_list(const rc_level *levels, int64_t n_levels, int64_t n,
                                    const int32_t *names, uint32_t *pairs)
{
    int64_t l, i, j;
    for (l = 0; l < n_levels; l++) {
        const int64_t width = (int64_t)levels[l].width, first_loser = n - width;
        const double first_winner = (levels[l].first_pair - levels[l].origin) / levels[l].width;
        for (i = (int64_t)first_winner; i < first_loser; i++, pairs += width)
            for (j = 0; j < width; j++)
                pairs[j] = (uint32_t)names[i] << 16 | (uint32_t)names[first_loser + j];
    }
}

/* Writes winners and losers of the next RC_BATCH pairs of a list; fewer than 2^30 pairs. */
RC_CLONES_ static void rc_walk_listed(rc_walk *walk, const uint32_t *pairs, int32_t *winners,
                                      int32_t *losers)
{
    const int32_t n = (int32_t)walk->n, stride = (int32_t)walk->stride;
    int32_t numbers[RC_BATCH + RC_PANEL];
    int64_t t;
    int lane;
    for (lane = 0; lane < RC_PANEL; lane++)
        numbers[lane] = (int32_t)walk->next[lane];
    for (t = 0; t < RC_BATCH; t += RC_PANEL) {
#if defined(__GNUC__)
        rc_eight_i32 k;
        RC_LOAD_(k, numbers + t);
        k += stride;
        k -= (k >= n) & n;
        RC_STORE_(numbers + t + RC_PANEL, k);
#else
        for (lane = 0; lane < RC_PANEL; lane++) {
            const int32_t k = numbers[t + lane] + stride;
            numbers[t + lane + RC_PANEL] = k - (k >= n ? n : 0);
        }
#endif
    }
    for (lane = 0; lane < RC_PANEL; lane++)
        walk->next[lane] = (double)numbers[RC_BATCH + lane];
    for (t = 0; t < RC_BATCH; t++) {
        const uint32_t pair = pairs[(uint32_t)numbers[t]];
        winners[t] = (int32_t)(pair >> 16);
        losers[t] = (int32_t)(pair & 65535);
    }
}

#if defined(__GNUC__)
#define RC_SPREAD_(x) ((rc_four){x, x, x, x})
#define RC_SELECT_(flags, yes, no) \
    ((rc_four)(((rc_four_flags)(yes) & (flags)) | ((rc_four_flags)(no) & ~(flags))))

/* Turns RC_BATCH pair numbers into winners and losers among n documents, by `few` levels: a
 * constant, so that the compiler unrolls them. */
RC_INLINE_ void rc_walk_levels_(const double *numbers, const rc_level *levels, const int few,
                                double n, int32_t *winners, int32_t *losers)
{
    int t, l;
    for (t = 0; t < RC_BATCH; t += 4) {
        rc_four k, origin = RC_SPREAD_(levels[0].origin), width = RC_SPREAD_(levels[0].width);
        rc_four inverse = RC_SPREAD_(levels[0].inverse);
        rc_four_i32 winner, loser;
        RC_LOAD_(k, numbers + t);
        for (l = 1; l < few; l++) {
            const rc_four_flags here = k >= RC_SPREAD_(levels[l].first_pair);
            origin = RC_SELECT_(here, RC_SPREAD_(levels[l].origin), origin);
            width = RC_SELECT_(here, RC_SPREAD_(levels[l].width), width);
            inverse = RC_SELECT_(here, RC_SPREAD_(levels[l].inverse), inverse);
        }
        k -= origin;
        winner = __builtin_convertvector((k + 0.5) * inverse, rc_four_i32);
        k -= __builtin_convertvector(winner, rc_four) * width;
        loser = __builtin_convertvector((n - width) + k, rc_four_i32);
        RC_STORE_(winners + t, winner);
        RC_STORE_(losers + t, loser);
    }
}
#endif

/* Turns RC_BATCH pair numbers into winners and losers among n documents. Levels are followed by
 * others whose first_pair is infinite, to 4 or 8 in all.
 *
 * Multiplying by an inverse is exact: its relative error is below 2^-52, and (k - origin + 1/2) /
 * width is at least 1 / (2 * width) away from the next integer, for fewer than 2^50 pairs. */
RC_CLONES_ static void rc_walk_pairs(const double *numbers, const rc_level *levels,
                                     int64_t n_levels, int64_t n, int32_t *winners, int32_t *losers)
{
    int64_t t;
#if defined(__GNUC__)
    if (n_levels == 1) {
        rc_walk_levels_(numbers, levels, 1, (double)n, winners, losers);
        return;
    }
    if (n_levels <= 4) {
        rc_walk_levels_(numbers, levels, 4, (double)n, winners, losers);
        return;
    }
    if (n_levels <= 8) {
        rc_walk_levels_(numbers, levels, 8, (double)n, winners, losers);
        return;
    }
#endif
    for (t = 0; t < RC_BATCH; t++) {
        int64_t low = 0, high = n_levels;
        double within;
        while (high - low > 1) {
            const int64_t middle = (low + high) / 2;
            if (numbers[t] >= levels[middle].first_pair)
                low = middle;
            else
                high = middle;
        }
        within = numbers[t] - levels[low].origin;
        winners[t] = (int32_t)((within + 0.5) * levels[low].inverse);
        within -= (double)winners[t] * levels[low].width;
        losers[t] = (int32_t)(((double)n - levels[low].width) + within);
    }
}

#endif /* RANKCORE_WALK_H */
