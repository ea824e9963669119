/* Sum potentials by bin, for eight columns of one-byte codes at a time. Private.
 *
 * columns has eight pointers to the codes (n,) of a column each; values (n,); sums (8, RC_CODES).
 * In C, so that the distance between histograms is a constant: in a register it would leave too
 * few for the columns, and the loop would take 1.7 times as long. Each addition depends on the
 * previous one in the same bin; eight columns at a time hide this latency. O(8 n). */
#ifndef RANKCORE_COLUMN_HISTOGRAMS_H
#define RANKCORE_COLUMN_HISTOGRAMS_H

#include <stdint.h>

#include "rankcore_vectors.h"

enum { RC_LANES = 8, RC_CODES = 256 };

/* sums[lane * RC_CODES + code] += values[i] for the code of each row i in eight columns. */
static inline void rc_sum_lanes(const uint8_t *const columns[RC_LANES], const double *values,
                                int64_t n, double *sums)
{
    const uint8_t *const c0 = columns[0], *const c1 = columns[1];
    const uint8_t *const c2 = columns[2], *const c3 = columns[3];
    const uint8_t *const c4 = columns[4], *const c5 = columns[5];
    const uint8_t *const c6 = columns[6], *const c7 = columns[7];
    int64_t i;
    for (i = 0; i < n; i++) {
        const double value = values[i];
        sums[c0[i]] += value;
        sums[RC_CODES + c1[i]] += value;
        sums[2 * RC_CODES + c2[i]] += value;
        sums[3 * RC_CODES + c3[i]] += value;
        sums[4 * RC_CODES + c4[i]] += value;
        sums[5 * RC_CODES + c5[i]] += value;
        sums[6 * RC_CODES + c6[i]] += value;
        sums[7 * RC_CODES + c7[i]] += value;
    }
}

#endif /* RANKCORE_COLUMN_HISTOGRAMS_H */
