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

void probe_dots(const rc_rows *X, const double *w, int32_t k, double *out)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        rc_dots(rc_rows_get(X, i), w, k, out + i * k);
}

void probe_axpys(const rc_rows *X, int64_t i, double a, double *w, int32_t k, int32_t first,
                 int32_t stop)
{
    rc_axpys(rc_rows_get(X, i), a, w, k, first, stop);
}

void probe_norm2(const rc_rows *X, double *out)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        out[i] = rc_norm2(rc_rows_get(X, i));
}

void probe_linear(const rc_linear *model, const rc_rows *X, double *scores)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++)
        scores[i] = rc_linear_score(model, rc_rows_get(X, i));
}

/* n_rows times n scores. */
void probe_best(const double *scores, int64_t n_rows, int32_t n, int32_t tie, int32_t *out)
{
    int64_t i;
    for (i = 0; i < n_rows; i++)
        out[i] = rc_best(scores + i * n, n, tie);
}

/* Scores from either function, which shall agree. */
void probe_cusum(const rc_cusum *model, const rc_rows *X, double *scores, double *scores_of_ranks,
                 int32_t *ranks)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++) {
        const rc_row x = rc_rows_get(X, i);
        rc_cusum_scores(model, x, scores + i * model->n_ranks);
        ranks[i] = rc_cusum_rank(model, x, scores_of_ranks + i * model->n_ranks);
    }
}

/* Outputs or scores, and ranks, of a learner in dual form: CuSum Rank if it has a task per step. */
void probe_kernel(const rc_kernel_model *model, const rc_rows *X, int32_t cusum, double *out,
                  int32_t *ranks)
{
    int64_t i;
    for (i = 0; i < X->n_rows; i++) {
        const rc_row x = rc_rows_get(X, i);
        if (cusum)
            ranks[i] = rc_kernel_cusum_rank(model, x, out + i * model->n_ranks);
        else
            ranks[i] = rc_kernel_prank_rank(model, x, out + i);
    }
}

void probe_kernel_values(const rc_kernel *kernel, const rc_rows *X, const rc_rows *Z, double *out)
{
    int64_t i, j;
    for (i = 0; i < X->n_rows; i++)
        for (j = 0; j < Z->n_rows; j++) {
            const rc_row x = rc_rows_get(X, i), z = rc_rows_get(Z, j);
            out[i * Z->n_rows + j] =
                rc_kernel_value(kernel, rc_row_dot(x, z), rc_norm2(x), rc_norm2(z));
        }
}

double probe_kernel_exp(double x) { return rc_kernel_exp(x); }

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
