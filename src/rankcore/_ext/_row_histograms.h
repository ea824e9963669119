/* Add packed gradients and hessians to histograms, for rows of one-byte codes. Private.
 *
 * histogram[column * RC_CODES + code] += packed[row], for each row of a leaf and each column of a
 * panel: codes (n_rows, width), rows (n,), packed (n_rows,), histogram (width, RC_CODES).
 *
 * A value costs one load, one addition and one store, and a core stores once per cycle to lines of
 * its first-level cache. To stay near that bound, the codes of a row are side by side, since the
 * rows of a deep leaf are far apart and come by whole lines; RC_CHUNK rows at a time are copied
 * into blocks of RC_BLOCK columns, while the next ones are prefetched. The histograms of 16 columns
 * just fit the cache; those of 24 do not, and take twice as long. */
#ifndef RANKCORE_ROW_HISTOGRAMS_H
#define RANKCORE_ROW_HISTOGRAMS_H

#include <stdint.h>
#include <string.h>

#include "_column_histograms.h"

/* Prefetch distance in rows; columns of a block, and minimum of the last one; rows that are
 * copied at a time, and maximum width of a panel of columns: together they fit into the
 * second-level cache. */
enum { RC_ROWS_AHEAD = 24, RC_BLOCK = 16, RC_EIGHT = 8, RC_CHUNK = 1024, RC_PANEL = 256 };
enum { RC_LINE = 64 };

/* Read eight codes of a row as one integer, the first in its lowest byte. */
RC_INLINE_ void rc_add_eight_(const uint8_t *codes, uint64_t weight, uint64_t *sums)
{
    uint64_t eight;
    memcpy(&eight, codes, sizeof eight);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    sums[0 * RC_CODES + (eight & 255)] += weight;
    sums[1 * RC_CODES + (eight >> 8 & 255)] += weight;
    sums[2 * RC_CODES + (eight >> 16 & 255)] += weight;
    sums[3 * RC_CODES + (eight >> 24 & 255)] += weight;
    sums[4 * RC_CODES + (eight >> 32 & 255)] += weight;
    sums[5 * RC_CODES + (eight >> 40 & 255)] += weight;
    sums[6 * RC_CODES + (eight >> 48 & 255)] += weight;
    sums[7 * RC_CODES + (eight >> 56)] += weight;
}

/* Rows of codes that are `width` apart, and the next one to copy. */
typedef struct rc_next_rows_ {
    const uint8_t *codes;
    int64_t width;
    const int32_t *rows;
    int64_t n;
} rc_next_rows_;

/* Copy rows into blocks of RC_BLOCK columns, and their packed values. */
static inline void rc_copy_rows_(const rc_next_rows_ *from, int fetched, const uint64_t *packed,
                                 uint8_t *blocks, uint64_t *weights)
{
    const int64_t width = from->width, whole = width / RC_BLOCK * RC_BLOCK, n = from->n;
    int64_t i, b;
    for (i = 0; i < n; i++) {
        const uint8_t *const row = from->codes + from->rows[i] * width;
        uint8_t *to = blocks + i * RC_BLOCK;
        if (!fetched && i + RC_ROWS_AHEAD < n)
            for (b = 0; b < width; b += RC_LINE)
                RC_FETCH_(from->codes + from->rows[i + RC_ROWS_AHEAD] * width + b);
        for (b = 0; b < whole; b += RC_BLOCK) {
            memcpy(to, row + b, RC_BLOCK);
            to += n * RC_BLOCK;
        }
        if (whole < width)
            memcpy(blocks + whole * n + i * RC_EIGHT, row + whole, RC_EIGHT);
        weights[i] = packed[from->rows[i]];
    }
}

/* Add the block at column b, of RC_BLOCK or RC_EIGHT. Also prefetch the next rows into the
 * second-level cache, which the passes over the columns of a line share. */
RC_INLINE_ void rc_add_block_(const uint8_t *block, int lanes, const uint64_t *weights, int64_t n,
                              const rc_next_rows_ *next, int64_t b, uint64_t *sums)
{
    const int64_t line = b / RC_LINE * RC_LINE, left = next->width - line;
    const int64_t columns = left < RC_LINE ? left : RC_LINE;
    const int64_t passes = (columns + RC_BLOCK - 1) / RC_BLOCK;
    const uint64_t *const end = weights + n;
    int64_t ahead = (b - line) / RC_BLOCK, until = ahead;
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

/* histogram[column * RC_CODES + code] += packed[row] for n rows. A row of codes has `width`
 * of them, a multiple of RC_EIGHT and at most RC_PANEL; blocks has room for RC_CHUNK rows. */
static inline void rc_sum_panel(const uint8_t *codes, int64_t width, const int32_t *rows,
                                const uint64_t *packed, int64_t n, uint8_t *blocks, uint64_t *sums)
{
    uint64_t weights[RC_CHUNK];
    rc_next_rows_ next = {codes, width, rows, n < RC_CHUNK ? n : RC_CHUNK};
    int64_t start, m, b;
    for (start = 0; start < n; start += m) {
        rc_copy_rows_(&next, start > 0, packed, blocks, weights);
        m = next.n;
        next.rows += m;
        next.n = n - start - m < RC_CHUNK ? n - start - m : RC_CHUNK;
        for (b = 0; b + RC_BLOCK <= width; b += RC_BLOCK)
            rc_add_block_(blocks + b * m, RC_BLOCK, weights, m, &next, b, sums + b * RC_CODES);
        if (b < width)
            rc_add_block_(blocks + b * m, RC_EIGHT, weights, m, &next, b, sums + b * RC_CODES);
    }
}

#endif /* RANKCORE_ROW_HISTOGRAMS_H */
