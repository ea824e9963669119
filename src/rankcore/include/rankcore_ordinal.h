/* rankcore_ordinal.h - probabilities of ranks from the scores of tasks. Part of rankcore_model.h,
 * and the arithmetic of Python's OrdinalBoost. C99 (and C++11), header only. */
#ifndef RANKCORE_ORDINAL_H
#define RANKCORE_ORDINAL_H

#include "rankcore_calibration.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Task j, 1 .. n_ranks - 1, decides whether the rank is at least j. Its score is s_j = f - b_j, of
 * one score f that all tasks share, or s_j = g_j - b_j, of a score for each task. With adjacent
 * categories, log(p[j] / p[j - 1]) = s_j; with cumulative logits, for a shared score and ascending
 * biases only, P(rank >= j) = 1 / (1 + exp(-s_j)). */
typedef struct rc_tasks {
    const double *biases; /* (n_ranks - 1) */
    int32_t n_ranks;
    int32_t shared; /* whether the tasks share one score */
    int32_t cumulative;
} rc_tasks;

/* As rc_tasks_probabilities, by sums of few non-negative terms, so that results are monotone. */
static inline void rc_tasks_adjacent_(const rc_tasks *tasks, const double *scores, int64_t apart,
                                      double *p, double *above, double *below)
{
    const int32_t k = tasks->n_ranks;
    double most = 0.0, total = 0.0, sum = 0.0;
    int32_t j;
    p[0] = 0.0;
    for (j = 1; j < k; j++) {
        const double bias = tasks->biases[j - 1];
        if (tasks->shared)
            p[j] = p[j - 1] + (scores[0] - bias);
        else
            p[j] = p[j - 1] - bias + scores[(j - 1) * apart];
        most = p[j] > most ? p[j] : most;
    }
    for (j = k - 1; j >= 0; j--) {
        p[j] = rc_kernel_exp(p[j] - most);
        total += p[j];
        if (above)
            above[j] = total;
    }
    for (j = 0; j < k; j++) {
        if (above) {
            above[j] /= total;
            below[j] = 1.0 < sum / total ? 1.0 : sum / total;
            sum += p[j];
        }
        p[j] /= total;
    }
}

/* As rc_tasks_probabilities, by differences of small numbers in both tails. */
static inline void rc_tasks_cumulative_(const rc_tasks *tasks, const double *scores, double *p,
                                        double *above, double *below)
{
    const int32_t k = tasks->n_ranks;
    double total = 0.0, over = 1.0, under = 0.0;
    int32_t j;
    for (j = 1; j <= k; j++) {
        const double s = j < k ? scores[0] - tasks->biases[j - 1] : 0.0;
        double next_over = 0.0, next_under = 0.0;
        if (j < k)
            rc_both_tails_(s, &next_over, &next_under);
        next_over = next_over < over ? next_over : over;
        next_under = next_under > under ? next_under : under;
        /* Rank j - 1 has the probability between the scores of two tasks. */
        p[j - 1] = s > 0.0 ? next_under - under : over - next_over;
        total += p[j - 1];
        if (above) {
            above[j - 1] = over;
            below[j - 1] = under;
        }
        over = next_over;
        under = next_under;
    }
    for (j = 0; j < k; j++)
        p[j] /= total;
}

/* Writes the probability of each rank, for scores that are `apart` doubles apart: p[0 .. n_ranks -
 * 1], which add up to 1, and, unless they are NULL, above[0 .. n_ranks - 1], P(rank >= j), and
 * below[0 .. n_ranks - 1], P(rank < j). O(n_ranks). */
static inline void rc_tasks_probabilities(const rc_tasks *tasks, const double *scores,
                                          int64_t apart, double *p, double *above, double *below)
{
    if (tasks->cumulative)
        rc_tasks_cumulative_(tasks, scores, p, above, below);
    else
        rc_tasks_adjacent_(tasks, scores, apart, p, above, below);
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_ORDINAL_H */
