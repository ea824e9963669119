/* Prefetching of the rows that a shuffled pass visits next. Private. */
#ifndef RANKCORE_AHEAD_H
#define RANKCORE_AHEAD_H

#include <stdint.h>

#include "rankcore.h"
#include "rankcore_vectors.h"

/* Bytes of a row that are prefetched; rc_dot prefetches the rest. */
enum { RC_AHEAD_BYTES = 1024, RC_LINE_BYTES = 64 };

/* Inlined, because GCC removes calls of a function that only prefetches. */
RC_INLINE_ void rc_fetch_bytes_(const void *from, int64_t n)
{
    int64_t k;
    for (k = 0; k < n && k < RC_AHEAD_BYTES; k += RC_LINE_BYTES)
        RC_FETCH_((const char *)from + k);
}

/* Prefetches the row of the visit after position i (of order[0 .. stop - 1]), and the location
 * of the one after it. The CPU prefetches consecutive rows, but not those in random order.
 * Invalid rows are detected by the visit. */
RC_INLINE_ void rc_fetch_next(const rc_rows *X, const int32_t *order, int64_t i, int64_t stop)
{
    const int64_t size = X->dtype == RC_FLOAT32 ? 4 : 8;
    const int64_t next = i + 1 < stop ? order[i + 1] : -1;
    const int64_t after = i + 2 < stop ? order[i + 2] : -1;
    if (X->indptr && after >= 0 && after < X->n_rows)
        RC_FETCH_(X->indptr + after);
    if (next >= 0 && next < X->n_rows) {
        const int64_t first = X->indptr ? X->indptr[next] : next * X->stride;
        const int64_t n = X->indptr ? X->indptr[next + 1] - first : X->n_features;
        rc_fetch_bytes_((const char *)X->data + first * size, n * size);
        if (X->indices)
            rc_fetch_bytes_(X->indices + first, n * 4);
    }
}

#endif /* RANKCORE_AHEAD_H */
