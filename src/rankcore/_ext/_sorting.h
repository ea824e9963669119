/* Sorting the values of a column, and finding each one's place among its thresholds. Private. */
#ifndef RANKCORE_SORTING_H
#define RANKCORE_SORTING_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { RC_DIGIT = 11, RC_DIGITS = 6, RC_RADIX = 1 << RC_DIGIT };

/* Order of doubles as order of integers; NaN is greatest, whatever its sign. */
static inline uint64_t rc_key(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return UINT64_MAX;
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static inline double rc_unkey(uint64_t key)
{
    const uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Sort doubles, NaN last; writes both arrays and counts[RC_DIGITS * RC_RADIX]. Digit by digit, and
 * those that are the same in all values are passed over: four of six are left of float32 data.
 * O(n + RC_RADIX). */
static inline void rc_sort(double *values, uint64_t *keys, uint64_t *spare, int64_t *counts,
                           int64_t n)
{
    int64_t i, digit;
    memset(counts, 0, RC_DIGITS * RC_RADIX * sizeof counts[0]);
    for (i = 0; i < n; i++) {
        const uint64_t key = keys[i] = rc_key(values[i]);
        for (digit = 0; digit < RC_DIGITS; digit++)
            counts[digit * RC_RADIX + (int64_t)(key >> digit * RC_DIGIT & (RC_RADIX - 1))]++;
    }
    for (digit = 0; digit < RC_DIGITS; digit++) {
        int64_t *const starts = counts + digit * RC_RADIX;
        const int64_t shift = digit * RC_DIGIT;
        int64_t sum = 0;
        uint64_t *swap;
        if (n == 0 || starts[keys[0] >> shift & (RC_RADIX - 1)] == n)
            continue;
        for (i = 0; i < RC_RADIX; i++) {
            const int64_t count = starts[i];
            starts[i] = sum;
            sum += count;
        }
        for (i = 0; i < n; i++)
            spare[starts[keys[i] >> shift & (RC_RADIX - 1)]++] = keys[i];
        swap = keys;
        keys = spare;
        spare = swap;
    }
    for (i = 0; i < n; i++)
        values[i] = keys[i] == UINT64_MAX ? (double)NAN : rc_unkey(keys[i]);
}

/* places[k] = how many of n_cuts ascending thresholds are below values[k], for eight values at a
 * time: their searches do not wait for each other, and which half is next is not a branch. */
static inline void rc_places(const double values[8], const double *cuts, int64_t n_cuts,
                             int64_t places[8])
{
    int64_t left = n_cuts;
    int k;
    for (k = 0; k < 8; k++)
        places[k] = 0;
    while (left > 1) {
        const int64_t half = left >> 1;
        for (k = 0; k < 8; k++)
            places[k] += half & -(int64_t)(cuts[places[k] + half - 1] < values[k]);
        left -= half;
    }
    if (left == 1)
        for (k = 0; k < 8; k++)
            places[k] += cuts[places[k]] < values[k];
}

#endif /* RANKCORE_SORTING_H */
