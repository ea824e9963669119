/* Random forests and rows: rc_trees_scores gives each row the bits that rc_trees_score gives it, as
 * rc_trees_scores_in_ does by tiles, and they touch nothing else. So do rc_trees_sums_ and
 * rc_trees_add_sums_ for several sums of trees that differ in their values only. Blocks have
 * exactly the size that is needed, for sanitizers. C99 and C++11.
 *
 *     tree_rows TRIALS SEED
 *
 * Exit status: 0, or 1 after a difference, which it describes. */
#include <stdio.h>
#include <stdlib.h>

#include "rankcore_trees.h"

enum { MAX_TREES = 5, MAX_NODES = 80, WIDTH = 6, SETS = 3 };

static uint64_t state;

static int32_t draw(int32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)((state >> 33) % (uint64_t)n);
}

/* Thresholds and values are often equal, missing, zero of either sign, or infinite. */
static double number(void)
{
    static const double odd[] = {0.0, -0.0, 1.0, 2.0, 33.0, -1.0, 0.5, 1e-40, -1e-40, 3e38, 1e300};
    const double zero = 0.0;
    switch (draw(8)) {
    case 0:
        return zero / zero;
    case 1:
        return draw(2) ? 1.0 / zero : -1.0 / zero;
    case 2:
        return (draw(2001) - 1000) * 1e-3;
    default:
        return odd[draw(11)];
    }
}

static void *block(size_t n, size_t size)
{
    void *found = malloc(n * size);
    if (n && !found)
        exit(2);
    return found;
}

/* A copy in a block of exactly its size; NULL if it is empty, as arrays of programs often are. */
static void *exact(const void *from, int64_t n, size_t size)
{
    void *to = n ? block((size_t)n, size) : NULL;
    if (n)
        memcpy(to, from, (size_t)n * size);
    return to;
}

static void grow(rc_trees *model, int32_t categories)
{
    int64_t offsets[MAX_TREES + 1] = {0}, sets[MAX_TREES * MAX_NODES + 1] = {0}, n = 0, t,
                                words = 0;
    int32_t features[MAX_TREES * MAX_NODES], children[2 * MAX_TREES * MAX_NODES];
    uint8_t missing[MAX_TREES * MAX_NODES];
    uint32_t bits[SETS * MAX_TREES * MAX_NODES];
    double thresholds[MAX_TREES * MAX_NODES], values[MAX_TREES * (MAX_NODES + 1)];
    const int32_t chain = draw(4) == 0;
    model->n_trees = draw(MAX_TREES + 1);
    model->n_features = 1 + draw(WIDTH);
    model->zero_missing = draw(2);
    for (t = 0; t < model->n_trees; t++) {
        const int32_t size = draw(3) ? draw(MAX_NODES + 1) : draw(2);
        int32_t node, leaf = 0, made = size > 0, side, open = 1;
        /* Nodes in order; each of their children is a leaf or the next node. */
        for (node = 0; node < size; node++, n++) {
            double cut = number();
            features[n] = draw((int32_t)model->n_features);
            missing[n] = (uint8_t)draw(2);
            thresholds[n] = cut == cut ? cut : 0.25;
            open--;
            for (side = 0; side < 2; side++) {
                const int32_t must = !open && side && made < size;
                const int32_t may = made < size && !(chain && open) && draw(2);
                children[2 * n + side] = must || may ? made++ : -1 - leaf++;
                open += must || may;
            }
            if (categories)
                for (side = draw(SETS + 1); side > 0; side--)
                    bits[words++] = (uint32_t)draw(1 << 16) * 65537u;
            sets[n + 1] = words;
        }
        offsets[t + 1] = n;
    }
    for (t = 0; t < n + model->n_trees; t++)
        values[t] = draw(9) ? (draw(2001) - 1000) / 7.0 : -0.0;
    model->offsets = (const int64_t *)exact(offsets, model->n_trees + 1, sizeof *offsets);
    model->features = (const int32_t *)exact(features, n, sizeof *features);
    model->children = (const int32_t *)exact(children, 2 * n, sizeof *children);
    model->missing = (const uint8_t *)exact(missing, n, sizeof *missing);
    model->thresholds = (const double *)exact(thresholds, n, sizeof *thresholds);
    model->values = (const double *)exact(values, n + model->n_trees, sizeof *values);
    model->sets = categories ? (const int64_t *)exact(sets, n + 1, sizeof *sets) : NULL;
    model->words = (const uint32_t *)exact(bits, words, sizeof *bits);
}

static void fell(const rc_trees *model)
{
    const void *blocks[8];
    size_t i;
    blocks[0] = model->offsets, blocks[1] = model->features, blocks[2] = model->children;
    blocks[3] = model->missing, blocks[4] = model->thresholds, blocks[5] = model->values;
    blocks[6] = model->sets, blocks[7] = model->words;
    for (i = 0; i < 8; i++)
        free((void *)(uintptr_t)blocks[i]);
}

/* Dense rows, the last of them without what lies between rows; or, sparse, what is not zero. */
static int compared(const rc_trees *model, int64_t n, int32_t single, int64_t gap, int32_t sparse)
{
    rc_tiles_ *room = n >= RC_TILED_ROWS_ ? (rc_tiles_ *)block(1, sizeof *room) : NULL;
    const int64_t d = model->n_features, stride = d + gap, size = n ? (n - 1) * stride + d : 0;
    double *data = (double *)block((size_t)size, sizeof *data);
    float *half = (float *)block((size_t)size, sizeof *half);
    double *scores = (double *)block((size_t)n, sizeof *scores);
    int32_t *columns = (int32_t *)block((size_t)(n * d), sizeof *columns);
    int64_t *ends = (int64_t *)block((size_t)n + 1, sizeof *ends), i, stored = 0;
    rc_rows X = rc_rows_dense(single ? (const void *)half : (const void *)data,
                              single ? RC_FLOAT32 : RC_FLOAT64, n, d);
    int status = 0;
    X.stride = stride;
    for (i = 0; i < size; i++) {
        const double value = number();
        data[i] = value;
        half[i] = value > 3e38 ? 3e38f : value < -3e38 ? -3e38f : (float)value;
    }
    if (sparse) {
        ends[0] = 0;
        for (i = 0; i < n * d; i++) {
            if (draw(2)) {
                columns[stored] = (int32_t)(i % d);
                data[stored] = data[i];
                half[stored++] = half[i];
            }
            ends[i / d + 1] = stored;
        }
        X = rc_rows_csr(X.data, columns, ends, X.dtype, n, d);
    }
    for (i = 0; i < 2 * n && !status; i++) {
        const int64_t row = i % n;
        const double expected = rc_trees_score(model, rc_rows_get(&X, row));
        if (i == 0)
            rc_trees_scores(model, &X, scores);
        if (i == n)
            rc_trees_scores_in_(model, &X, scores, room);
        if (memcmp(&expected, scores + row, sizeof expected) != 0) {
            printf("%s, row %d of %d, %s, stride %d, %d columns, %d trees, zero_missing %d: "
                   "%.17g instead of %.17g\n",
                   i < n ? "walked" : "tiled", (int)row, (int)n,
                   sparse   ? "sparse"
                   : single ? "float32"
                            : "float64",
                   (int)stride, (int)d, (int)model->n_trees, (int)model->zero_missing, scores[row],
                   expected);
            status = 1;
        }
    }
    free(room);
    free(data);
    free(half);
    free(scores);
    free(columns);
    free(ends);
    return status;
}

/* `n` items, m times over, each time more by `more`; with their last item at the end. */
static int64_t *repeated(const int64_t *from, int64_t n, int32_t m, int64_t more)
{
    int64_t *to = (int64_t *)block((size_t)(m * n + 1), sizeof *to), i;
    for (i = 0; i <= m * n; i++)
        to[i] = i < m * n ? from[i % n] + i / n * more : m * more;
    return to;
}

static void *times(const void *from, int64_t n, int32_t m, size_t size)
{
    char *to = n ? (char *)block((size_t)n, size * (size_t)m) : NULL;
    int32_t j;
    for (j = 0; j < m && n; j++)
        memcpy(to + (size_t)j * (size_t)n * size, from, (size_t)n * size);
    return to;
}

/* The trees m times, with other values each time. */
static rc_trees multiplied(const rc_trees *one, int32_t m)
{
    const int64_t n = one->n_trees, nodes = one->offsets[n],
                  words = one->sets ? one->sets[nodes] : 0;
    rc_trees many = *one;
    int64_t i;
    double *values = (double *)block((size_t)(m * (nodes + n)), sizeof *values);
    for (i = 0; i < m * (nodes + n); i++)
        values[i] = draw(9) ? (draw(2001) - 1000) / 7.0 : -0.0;
    many.n_trees = m * n;
    many.offsets = repeated(one->offsets, n, m, nodes);
    many.features = (const int32_t *)times(one->features, nodes, m, 4);
    many.children = (const int32_t *)times(one->children, 2 * nodes, m, 4);
    many.missing = (const uint8_t *)times(one->missing, nodes, m, 1);
    many.thresholds = (const double *)times(one->thresholds, nodes, m, 8);
    many.values = values;
    many.sets = one->sets ? repeated(one->sets, nodes, m, words) : NULL;
    many.words = (const uint32_t *)times(one->words, words, m, 4);
    return many;
}

/* Whether one change of the nodes of a second or later sum is noticed. */
static int noticed(const rc_trees *many, int32_t m)
{
    const int64_t each = many->n_trees / m, nodes = many->offsets[each];
    const int64_t at = m > 1 && nodes ? nodes + draw((int32_t)((m - 1) * nodes)) : 0;
    const int64_t words = many->sets ? many->sets[nodes] : 0;
    unsigned char *byte = NULL;
    int found;
    if (!at)
        return 1;
    switch (draw(5)) {
    case 0:
        byte = (unsigned char *)(uintptr_t)(many->features + at);
        break;
    case 1:
        byte = (unsigned char *)(uintptr_t)(many->children + 2 * at + draw(2));
        break;
    case 2:
        byte = (unsigned char *)(uintptr_t)(many->missing + at);
        break;
    case 3:
        byte = (unsigned char *)(uintptr_t)(many->thresholds + at);
        break;
    default:
        if (words)
            byte = (unsigned char *)(uintptr_t)(many->words + words + draw((int32_t)words));
    }
    if (!byte)
        return 1;
    *byte = (unsigned char)(*byte ^ 1u);
    found = !rc_trees_alike_(many, m);
    *byte = (unsigned char)(*byte ^ 1u);
    return found;
}

/* Several sums of trees of one structure: as rc_trees_sum for each of them. */
static int summed(const rc_trees *one, int64_t n, int32_t single, int32_t m)
{
    const rc_trees many = multiplied(one, m);
    rc_tiles_ *room = n >= RC_TILED_ROWS_ ? (rc_tiles_ *)block(1, sizeof *room) : NULL;
    const int64_t d = one->n_features, each = one->n_trees;
    double *data = (double *)block((size_t)(n * d), sizeof *data);
    float *half = (float *)block((size_t)(n * d), sizeof *half);
    double *scores = (double *)block((size_t)(m * n), sizeof *scores);
    double *sums = (double *)block((size_t)m, sizeof *sums);
    const rc_rows X = rc_rows_dense(single ? (const void *)half : (const void *)data,
                                    single ? RC_FLOAT32 : RC_FLOAT64, n, d);
    int64_t i, j;
    int status = !rc_trees_alike_(&many, m) || !noticed(&many, m);
    for (i = 0; i < n * d; i++) {
        data[i] = number();
        half[i] = data[i] > 3e38 ? 3e38f : data[i] < -3e38 ? -3e38f : (float)data[i];
    }
    for (i = 0; i < m * n; i++)
        scores[i] = 0.0;
    rc_trees_add_sums_(&many, m, &X, scores, sums, room);
    for (i = 0; i < n && !status; i++) {
        for (j = 0; j < m; j++)
            sums[j] = 0.0;
        rc_trees_sums_(&many, m, 0, each, rc_rows_get(&X, i), sums);
        for (j = 0; j < m; j++) {
            const double expected =
                rc_trees_sum(&many, j * each, (j + 1) * each, rc_rows_get(&X, i));
            status |= memcmp(&expected, scores + j * n + i, sizeof expected) != 0;
            status |= memcmp(&expected, sums + j, sizeof expected) != 0;
        }
    }
    if (status)
        printf("%d sums of %d trees for %d rows\n", (int)m, (int)each, (int)n);
    fell(&many);
    free(room);
    free(data);
    free(half);
    free(scores);
    free(sums);
    return status;
}

int main(int argc, char **argv)
{
    static const int64_t many[] = {63, 64, 65, 71, 72, 73, 127, 128, 136, 137, 200};
    int trials = argc == 3 ? atoi(argv[1]) : 0, status = trials == 0;
    int64_t n;
    state = argc == 3 ? (uint64_t)strtoul(argv[2], NULL, 10) : 0;
    while (trials-- > 0 && !status) {
        rc_trees model;
        grow(&model, draw(4) == 0);
        for (n = 0; n < 18 && !status; n++)
            status = compared(&model, n, draw(2), draw(3) * draw(3), 0);
        status = status || compared(&model, many[draw(11)], draw(2), draw(3), 0) ||
                 compared(&model, draw(18), draw(2), 0, 1) ||
                 compared(&model, many[draw(11)], draw(2), 0, 1) ||
                 summed(&model, draw(2) ? draw(9) : many[draw(11)], draw(2),
                        1 + (draw(9) ? draw(12) : draw(80)));
        fell(&model);
    }
    return status;
}
