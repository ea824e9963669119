/* Score many rows at a time by a sum of trees. Include rankcore.h for the form of the trees. */
#ifndef RANKCORE_TREES_H
#define RANKCORE_TREES_H

#include "rankcore_tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the scores of rows X by a sum of trees, scores[0 .. n_rows - 1], bit-identical to
 * rc_trees_score. `room` is sizeof(rc_tiles_) bytes, or NULL if there are fewer rows than
 * RC_TILED_ROWS_: these are walked. */
static inline void rc_trees_scores_in_(const rc_trees *model, const rc_rows *X, double *scores,
                                       rc_tiles_ *room)
{
    int64_t i, t = 0, next;
    for (i = 0; i < X->n_rows; i++)
        scores[i] = 0.0;
    while (t < model->n_trees) {
        next = t + (room ? rc_trees_add_tiled_(model, 1, t, model->n_trees, X, scores, room) : 0);
        if (next == t) {
            for (next++; next < model->n_trees && !(room && rc_trees_tile_(model, next)); next++)
                ;
            rc_trees_add(model, t, next, X, scores);
        }
        t = next;
    }
}

/* Adds to the scores of rows the values of all trees of n_sums sums that rc_trees_alike_ accepts,
 * bit-identical to rc_trees_sums_. Scores of the second sum follow those of the first. `sums`
 * is n_sums doubles; `room` as for rc_trees_scores_in_. O(n_rows * (nodes of one sum + values of
 * a leaf in all trees)). */
static inline void rc_trees_add_sums_(const rc_trees *model, int32_t n_sums, const rc_rows *X,
                                      double *scores, double *sums, rc_tiles_ *room)
{
    const int64_t n = X->n_rows, last = model->n_trees / n_sums;
    const int32_t tiled = room && n_sums <= RC_TILED_SUMS_;
    int64_t i, t = 0, next;
    int32_t j;
    while (t < last) {
        next = t + (tiled ? rc_trees_add_tiled_(model, n_sums, t, last, X, scores, room) : 0);
        if (next == t) {
            for (next++; next < last && !(tiled && rc_trees_tile_(model, next)); next++)
                ;
            for (i = 0; i < n; i++) {
                for (j = 0; j < n_sums; j++)
                    sums[j] = scores[j * n + i];
                rc_trees_sums_(model, n_sums, t, next, rc_rows_get(X, i), sums);
                for (j = 0; j < n_sums; j++)
                    scores[j * n + i] = sums[j];
            }
        }
        t = next;
    }
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_TREES_H */
