/* Sums of pair weights by bin, of the rows of one leaf. Private.
 *
 * A row's weight is one word: what it wins with in the upper 32 bits, what it loses with in the
 * lower. The words of all rows add up without a carry between the halves, so that one addition
 * sums both, in any order and to the bit, and a sibling is a difference. */
#ifndef RANKCORE_TREE_SUMS_H
#define RANKCORE_TREE_SUMS_H

#include <stdint.h>
#include <string.h>

#include "_histograms.h"

/* Rows ahead whose codes are asked for: those of a deep leaf are far apart. */
enum { RC_ROWS_AHEAD = 24 };

/* Eight codes of a row in one word, and the sums of each code apart. Byte order only decides which
 * column is read first. */
#define RC_ADD_LANES_(CODES, WEIGHT)                  \
    do {                                              \
        const uint8_t *const c = (CODES);             \
        const uint64_t w = (WEIGHT);                  \
        uint64_t word;                                \
        memcpy(&word, c, sizeof word);                \
        sums[0 * RC_CODES + (word & 255)] += w;       \
        sums[1 * RC_CODES + (word >> 8 & 255)] += w;  \
        sums[2 * RC_CODES + (word >> 16 & 255)] += w; \
        sums[3 * RC_CODES + (word >> 24 & 255)] += w; \
        sums[4 * RC_CODES + (word >> 32 & 255)] += w; \
        sums[5 * RC_CODES + (word >> 40 & 255)] += w; \
        sums[6 * RC_CODES + (word >> 48 & 255)] += w; \
        sums[7 * RC_CODES + (word >> 56)] += w;       \
    } while (0)

/* sums[lane * RC_CODES + code] += weights[i] for the eight codes of row rows[i]. */
static inline void rc_sum_blocks(const uint8_t *codes, const int32_t *rows, const uint64_t *weights,
                                 int64_t n, uint64_t *sums)
{
    int64_t i = 0;
    if (n > 0 && (int64_t)rows[n - 1] - rows[0] == n - 1) { /* rows that follow each other */
        codes += (int64_t)rows[0] * RC_LANES;
        for (; i < n; i++)
            RC_ADD_LANES_(codes + i * RC_LANES, weights[i]);
        return;
    }
    for (; i + RC_ROWS_AHEAD < n; i++) {
        RC_FETCH_(codes + (int64_t)rows[i + RC_ROWS_AHEAD] * RC_LANES);
        RC_ADD_LANES_(codes + (int64_t)rows[i] * RC_LANES, weights[i]);
    }
    for (; i < n; i++)
        RC_ADD_LANES_(codes + (int64_t)rows[i] * RC_LANES, weights[i]);
}

#undef RC_ADD_LANES_

#endif /* RANKCORE_TREE_SUMS_H */
