/* rankcore_rows.h - fast validation of sparse rows from outside. Part of rankcore_model.h. C99
 * (and C++11), header only. */
#ifndef RANKCORE_ROWS_H
#define RANKCORE_ROWS_H

#include "rankcore.h"

#include "rankcore_vectors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns whether columns[0 .. n - 1] ascend, without a branch for each. With compiler vectors,
 * eight at a time, at a fraction of the cost of a product with weights. */
static inline int32_t rc_columns_ascend_(const int32_t *columns, int64_t n)
{
    int64_t at = 1;
    int32_t good = -1; /* all bits, or none */
#if defined(RC_COMPARES_VECTORS_)
    rc_four_i32 a, b, c, d, low = {-1, -1, -1, -1}, high = {-1, -1, -1, -1};
    for (; at + 8 <= n; at += 8) {
        memcpy(&a, columns + at - 1, sizeof a);
        memcpy(&b, columns + at, sizeof b);
        memcpy(&c, columns + at + 3, sizeof c);
        memcpy(&d, columns + at + 4, sizeof d);
        low &= a < b;
        high &= c < d;
    }
    low &= high;
    good = low[0] & low[1] & low[2] & low[3];
#endif
    for (; at < n; at++)
        good &= -(columns[at - 1] < columns[at]);
    return good != 0;
}

/* Returns whether the columns of row i ascend and are below n_features. */
static inline int32_t rc_rows_ascend_(const rc_rows *rows, int64_t i)
{
    const int64_t n = rows->indptr[i + 1] - rows->indptr[i];
    const int32_t *columns = rows->indices + rows->indptr[i];
    return n <= 0 ||
           (columns[0] >= 0 && columns[n - 1] < rows->n_features && rc_columns_ascend_(columns, n));
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_ROWS_H */
