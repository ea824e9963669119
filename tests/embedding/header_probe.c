/* The functions of rankcore.h behind symbols that a test can load. C99 and C++11, no Python. */
#include "rankcore.h"

#ifdef __cplusplus
extern "C" {
#endif

void probe_dot(const rc_rows *X, const double *w, double *out)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        out[i] = rc_dot(rc_rows_get(X, i), w);
}

void probe_axpy(const rc_rows *X, int64_t i, double a, double *w)
{
    rc_axpy(rc_rows_get(X, i), a, w);
}

void probe_rank(const double *thresholds, int32_t n_ranks, const double *scores, int64_t n,
                int32_t *out)
{
    int64_t i;
    for (i = 0; i < n; i++)
        out[i] = rc_rank(thresholds, n_ranks, scores[i]);
}

void probe_prank(const rc_prank *model, const rc_rows *X, double *scores, int32_t *ranks)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++) {
        scores[i] = rc_prank_score(model, rc_rows_get(X, i));
        ranks[i] = rc_prank_rank(model, rc_rows_get(X, i));
    }
}

/* One row, not part of a matrix. */
double probe_row_f64(const double *data, const int32_t *indices, int64_t n, const double *w)
{
    return rc_dot(rc_row_f64(data, indices, n), w);
}

double probe_row_f32(const float *data, const int32_t *indices, int64_t n, const double *w)
{
    return rc_dot(rc_row_f32(data, indices, n), w);
}

#ifdef __cplusplus
}
#endif
