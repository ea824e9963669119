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

/* Prefetch distance in rows: the codes of a deep leaf's rows are far apart. */
enum { RC_ROWS_AHEAD = 24 };

/* Columns side by side in a block. A row of 16 codes is a quarter of a line of the cache, which
 * comes whole: rows that are far apart cost half of what they do with 8. The sums of 16 columns
 * just fit the first-level cache; those of 24 do not, and take half as long again. */
enum { RC_TREE_LANES = 16, RC_EIGHT = 8 };

/* Eight codes of a row in one word, the first in its lowest byte, and the sums of each apart. */
static inline void rc_add_eight_(const uint8_t *codes, uint64_t weight, uint64_t *sums)
{
    uint64_t word;
    memcpy(&word, codes, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    sums[0 * RC_CODES + (word & 255)] += weight;
    sums[1 * RC_CODES + (word >> 8 & 255)] += weight;
    sums[2 * RC_CODES + (word >> 16 & 255)] += weight;
    sums[3 * RC_CODES + (word >> 24 & 255)] += weight;
    sums[4 * RC_CODES + (word >> 32 & 255)] += weight;
    sums[5 * RC_CODES + (word >> 40 & 255)] += weight;
    sums[6 * RC_CODES + (word >> 48 & 255)] += weight;
    sums[7 * RC_CODES + (word >> 56)] += weight;
}

/* sums[lane * RC_CODES + code] += weights[i] for the codes of row rows[i]. A function for each
 * width, so that the distances are constants. */
#define RC_DEFINE_SUM_BLOCK_(NAME, WIDTH)                                                       \
    static inline void NAME(const uint8_t *codes, const int32_t *rows, const uint64_t *weights, \
                            int64_t n, uint64_t *sums)                                          \
    {                                                                                           \
        const int follow = n > 0 && (int64_t)rows[n - 1] - rows[0] == n - 1;                    \
        int64_t i;                                                                              \
        int lane;                                                                               \
        for (i = 0; i < n; i++) {                                                               \
            const uint8_t *const row = codes + (int64_t)rows[i] * (WIDTH);                      \
            if (!follow && i + RC_ROWS_AHEAD < n)                                               \
                RC_FETCH_(codes + (int64_t)rows[i + RC_ROWS_AHEAD] * (WIDTH));                  \
            for (lane = 0; lane < (WIDTH); lane += RC_EIGHT)                                    \
                rc_add_eight_(row + lane, weights[i], sums + lane * RC_CODES);                  \
        }                                                                                       \
    }

RC_DEFINE_SUM_BLOCK_(rc_sum_sixteen_, RC_TREE_LANES)
RC_DEFINE_SUM_BLOCK_(rc_sum_eight_, RC_EIGHT)

/* Sums of a block of `width` columns: RC_TREE_LANES, or RC_EIGHT. */
static inline void rc_sum_block(const uint8_t *codes, int width, const int32_t *rows,
                                const uint64_t *weights, int64_t n, uint64_t *sums)
{
    if (width == RC_TREE_LANES)
        rc_sum_sixteen_(codes, rows, weights, n, sums);
    else
        rc_sum_eight_(codes, rows, weights, n, sums);
}

#undef RC_DEFINE_SUM_BLOCK_

#endif /* RANKCORE_TREE_SUMS_H */
