/* Scores of several rows at a time by trees. Private. */
#ifndef RANKCORE_TREE_SCORES_H
#define RANKCORE_TREE_SCORES_H

#include "rankcore.h"

/* Number of rows that descend a tree in parallel, as each step of a row depends on the previous
 * one; and number of rows that all trees score before the next rows, so that they stay in the
 * cache. */
enum { RC_TREE_LANES = 8, RC_TREE_ROWS = 64 };

/* Child of a node for a value: without and with categories. */
#define RC_ABOVE_(NODE, V) (((V) > thresholds[NODE]) | (((V) != (V)) & missing[NODE]))
#define RC_FIRES_(NODE, V)                                           \
    (model->sets[offset + (NODE)] < model->sets[offset + (NODE) + 1] \
         ? (missing[NODE] ^ rc_trees_has(model, offset + (NODE), V)) \
         : RC_ABOVE_(NODE, V))

#define RC_TREES_ADD_(NAME, TYPE, FIRES)                                                     \
    static inline void NAME(const rc_trees *model, int64_t first, int64_t last,              \
                            const int32_t *depths, const TYPE *x, int64_t stride, int64_t n, \
                            double *scores)                                                  \
    {                                                                                        \
        int64_t t, i;                                                                        \
        for (t = first; t < last; t++) {                                                     \
            const int64_t offset = model->offsets[t];                                        \
            const int32_t *features = model->features + offset;                              \
            const int32_t *children = model->children + 2 * offset;                          \
            const uint8_t *missing = model->missing + offset;                                \
            const double *thresholds = model->thresholds + offset;                           \
            const double *values = model->values + offset + t;                               \
            const int32_t depth = depths[t];                                                 \
            for (i = 0; i + RC_TREE_LANES <= n; i += RC_TREE_LANES) {                        \
                int32_t at[RC_TREE_LANES], step, lane;                                       \
                for (lane = 0; lane < RC_TREE_LANES; lane++)                                 \
                    at[lane] = depth ? 0 : -1;                                               \
                for (step = 0; step < depth; step++)                                         \
                    for (lane = 0; lane < RC_TREE_LANES; lane++) {                           \
                        const int32_t here = at[lane];                                       \
                        const int32_t node = here < 0 ? 0 : here;                            \
                        const double v = (double)x[(i + lane) * stride + features[node]];    \
                        const int32_t fires = FIRES(node, v);                                \
                        const int32_t next = children[2 * node + fires];                     \
                        at[lane] = here < 0 ? here : next;                                   \
                    }                                                                        \
                for (lane = 0; lane < RC_TREE_LANES; lane++)                                 \
                    scores[i + lane] += values[~at[lane]];                                   \
            }                                                                                \
            for (; i < n; i++) {                                                             \
                int32_t at = depth ? 0 : -1;                                                 \
                while (at >= 0) {                                                            \
                    const double v = (double)x[i * stride + features[at]];                   \
                    at = children[2 * at + FIRES(at, v)];                                    \
                }                                                                            \
                scores[i] += values[~at];                                                    \
            }                                                                                \
        }                                                                                    \
    }

RC_TREES_ADD_(rc_trees_add_f32, float, RC_ABOVE_)
RC_TREES_ADD_(rc_trees_add_f64, double, RC_ABOVE_)
RC_TREES_ADD_(rc_trees_add_sets_f32, float, RC_FIRES_)
RC_TREES_ADD_(rc_trees_add_sets_f64, double, RC_FIRES_)

#undef RC_TREES_ADD_
#undef RC_ABOVE_
#undef RC_FIRES_

#endif /* RANKCORE_TREE_SCORES_H */
