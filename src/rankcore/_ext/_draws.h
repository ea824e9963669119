/* Draws of examples for the members of an ensemble: a pure function of seed, member and time.
 * Private.
 */
#ifndef RANKCORE_DRAWS_H
#define RANKCORE_DRAWS_H

#include <stdint.h>

#include "rankcore_random.h"
#include "rankcore_vectors.h"

/* Writes how many times each of the members first .. first + n - 1 takes the example at time t:
 * the number of entries of `cumulative` (at most 2**32) that its 32-bit draw reaches. Two
 * members share the 64 bits of one hash; `first` is even. Writes an even number of members;
 * `draws` is scratch of the same size. Returns the maximum number of times. O(n * n_cumulative). */
RC_INLINE_ int64_t rc_draws_(uint64_t seed, int64_t t, int64_t first, int64_t n,
                             const uint64_t *cumulative, int64_t n_cumulative, uint64_t *draws,
                             int64_t *times)
{
    const uint64_t key = rc_mix(seed + UINT64_C(0x9E3779B97F4A7C15) * (uint64_t)(t + 1));
    int64_t p, i, j, most = 0;
    for (p = 0; p < (n + 1) / 2; p++) {
        const uint64_t pair = (uint64_t)(first / 2 + p + 1);
        const uint64_t bits = rc_mix(key ^ (UINT64_C(0xD1342543DE82EF95) * pair));
        draws[2 * p] = bits & UINT32_MAX;
        draws[2 * p + 1] = bits >> 32;
        times[2 * p] = times[2 * p + 1] = 0;
    }
    /* Both are at most 2**32, so that a difference below zero has the highest bit set. */
    for (i = 0; i < n_cumulative; i++)
        for (j = 0; j < n; j++)
            times[j] += (int64_t)(~(draws[j] - cumulative[i]) >> 63);
    for (j = 0; j < n; j++)
        most |= times[j];
    if (most > 1) /* several bits at least: find the largest itself */
        for (most = 1, j = 0; j < n; j++)
            most = times[j] > most ? times[j] : most;
    return most;
}

#endif /* RANKCORE_DRAWS_H */
