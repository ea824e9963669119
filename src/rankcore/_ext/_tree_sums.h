/* Sums of pair weights by bin for the rows of one leaf. Private.
 *
 * The weight of a row is one word, with the won weight in the upper 32 bits and the lost weight in
 * the lower. Sums of words have no carry between the halves, so that one addition sums both
 * exactly, in any order, and the sums of a sibling are a difference.
 *
 * A value costs one load, one addition and one store, and a core stores once per cycle to lines of
 * its first-level cache. To stay near that bound, the codes of a row are side by side, since the
 * rows of a deep leaf are far apart and come by whole lines; RC_CHUNK rows at a time are copied
 * into blocks of RC_TREE_LANES columns, while the next ones are fetched. The sums of 16 columns
 * just fit the cache; those of 24 do not, and take twice as long. */
#ifndef RANKCORE_TREE_SUMS_H
#define RANKCORE_TREE_SUMS_H

#include <stdint.h>
#include <string.h>

#include "_histograms.h"

/* Prefetch distance in rows; columns of a block, and minimum of the last one; rows that are
 * copied at a time, and maximum width of a panel of columns: together they fit into the
 * second-level cache. */
enum { RC_ROWS_AHEAD = 24, RC_TREE_LANES = 16, RC_EIGHT = 8, RC_CHUNK = 1024, RC_PANEL = 256 };
enum { RC_LINE = 64 };

/* Eight codes of a row in one word, the first in its lowest byte, with separate sums. */
RC_INLINE_ void rc_add_eight_(const uint8_t *codes, uint64_t weight, uint64_t *sums)
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

/* Rows of codes that are `width` apart, and the next one to copy. */
typedef struct rc_next_rows_ {
    const uint8_t *codes;
    int64_t width;
    const int32_t *rows;
    int64_t n;
} rc_next_rows_;

/* Copy rows into blocks of RC_TREE_LANES columns, and their words. */
static inline void rc_copy_rows_(const rc_next_rows_ *from, int fetched, const uint64_t *words,
                                 uint8_t *blocks, uint64_t *weights)
{
    const int64_t width = from->width, whole = width / RC_TREE_LANES * RC_TREE_LANES, n = from->n;
    int64_t i, b;
    for (i = 0; i < n; i++) {
        const uint8_t *const row = from->codes + from->rows[i] * width;
        uint8_t *to = blocks + i * RC_TREE_LANES;
        if (!fetched && i + RC_ROWS_AHEAD < n)
            for (b = 0; b < width; b += RC_LINE)
                RC_FETCH_(from->codes + from->rows[i + RC_ROWS_AHEAD] * width + b);
        for (b = 0; b < whole; b += RC_TREE_LANES) {
            memcpy(to, row + b, RC_TREE_LANES);
            to += n * RC_TREE_LANES;
        }
        if (whole < width)
            memcpy(blocks + whole * n + i * RC_EIGHT, row + whole, RC_EIGHT);
        weights[i] = words[from->rows[i]];
    }
}

/* Add the block at column b, of RC_TREE_LANES or RC_EIGHT. Also prefetch the next rows into the
 * second-level cache, which the passes over the columns of a line share. */
RC_INLINE_ void rc_add_block_(const uint8_t *block, int lanes, const uint64_t *weights, int64_t n,
                              const rc_next_rows_ *next, int64_t b, uint64_t *sums)
{
    const int64_t line = b / RC_LINE * RC_LINE, left = next->width - line;
    const int64_t columns = left < RC_LINE ? left : RC_LINE;
    const int64_t passes = (columns + RC_TREE_LANES - 1) / RC_TREE_LANES;
    const uint64_t *const end = weights + n;
    int64_t ahead = (b - line) / RC_TREE_LANES, until = ahead;
    for (; weights < end; weights++, block += lanes) {
        if (until-- == 0) {
            if (ahead < next->n)
                RC_FETCH_SECOND_(next->codes + next->rows[ahead] * next->width + line);
            ahead += passes;
            until = passes - 1;
        }
        rc_add_eight_(block, *weights, sums);
        if (lanes > RC_EIGHT)
            rc_add_eight_(block + RC_EIGHT, *weights, sums + RC_EIGHT * RC_CODES);
    }
}

/* sums[column * RC_CODES + code] += words[row] for the codes of n rows. A row of codes has `width`
 * of them, a multiple of RC_EIGHT and at most RC_PANEL; blocks has room for RC_CHUNK rows. */
static inline void rc_sum_panel(const uint8_t *codes, int64_t width, const int32_t *rows,
                                const uint64_t *words, int64_t n, uint8_t *blocks, uint64_t *sums)
{
    uint64_t weights[RC_CHUNK];
    rc_next_rows_ next = {codes, width, rows, n < RC_CHUNK ? n : RC_CHUNK};
    int64_t start, m, b;
    for (start = 0; start < n; start += m) {
        rc_copy_rows_(&next, start > 0, words, blocks, weights);
        m = next.n;
        next.rows += m;
        next.n = n - start - m < RC_CHUNK ? n - start - m : RC_CHUNK;
        for (b = 0; b + RC_TREE_LANES <= width; b += RC_TREE_LANES)
            rc_add_block_(blocks + b * m, RC_TREE_LANES, weights, m, &next, b, sums + b * RC_CODES);
        if (b < width)
            rc_add_block_(blocks + b * m, RC_EIGHT, weights, m, &next, b, sums + b * RC_CODES);
    }
}

#endif /* RANKCORE_TREE_SUMS_H */
