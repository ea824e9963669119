/* What model files answer through librankcore.h, to the bit. C99 and C++11.
 *
 *     answers ROWS MODELS...
 *
 * ROWS begins with the numbers of rows, of columns and of stored values, and has for each row its
 * number of stored values and for each of these its column and its bits, in hexadecimal digits.
 * Prints a line for each model, as "model PRank 5 4 damaged 0", then one for each form of rows with
 * the code it got, and with code 0 what it got: bits of scores, ranks, bits of probabilities. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "librankcore.h"

typedef struct matrix {
    int64_t n_rows, n_features, n_stored;
    int64_t *offsets;
    int32_t *columns;
    double *stored, *dense;
    float *stored_f32, *dense_f32;
} matrix;

static void *block(int64_t n, size_t size)
{
    void *found = calloc((size_t)n + 1, size);
    if (!found)
        abort();
    return found;
}

static double number(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value == value ? bits : 0x7ff8000000000000u; /* one NaN for all */
}

static int read_rows(matrix *X, FILE *file)
{
    int64_t i, k, n, column, at = 0;
    uint64_t bits;
    if (fscanf(file, "%" SCNd64 "%" SCNd64 "%" SCNd64, &X->n_rows, &X->n_features, &X->n_stored) !=
        3)
        return 0;
    X->offsets = (int64_t *)block(X->n_rows, sizeof *X->offsets);
    X->columns = (int32_t *)block(X->n_stored, sizeof *X->columns);
    X->stored = (double *)block(X->n_stored, sizeof *X->stored);
    X->stored_f32 = (float *)block(X->n_stored, sizeof *X->stored_f32);
    X->dense = (double *)block(X->n_rows * X->n_features, sizeof *X->dense);
    X->dense_f32 = (float *)block(X->n_rows * X->n_features, sizeof *X->dense_f32);
    for (i = 0; i < X->n_rows; i++) {
        if (fscanf(file, "%" SCNd64, &n) != 1)
            return 0;
        for (k = 0; k < n; k++, at++) {
            if (fscanf(file, "%" SCNd64 "%" SCNx64, &column, &bits) != 2)
                return 0;
            X->columns[at] = (int32_t)column;
            X->stored[at] = X->dense[i * X->n_features + column] = number(bits);
            X->stored_f32[at] = (float)X->stored[at];
            X->dense_f32[i * X->n_features + column] = (float)X->stored[at];
        }
        X->offsets[i + 1] = at;
    }
    return 1;
}

static void print(const char *what, int32_t code, const double *numbers, const int32_t *ranks,
                  int64_t n)
{
    int64_t i;
    printf("%s %d", what, (int)code);
    for (i = 0; code == 0 && i < n; i++)
        if (numbers)
            printf(" %016" PRIx64, bits_of(numbers[i]));
        else
            printf(" %d", (int)ranks[i]);
    printf("\n");
}

/* Form 0 dense, 1 dense of single precision, 2 and 3 the same sparse. */
static int32_t answer(const rankcore_model *model, const matrix *X, int form, double *scores,
                      int32_t *ranks)
{
    switch (form) {
    case 0:
        return rankcore_dense(model, X->dense, X->n_rows, X->n_features, scores, ranks);
    case 1:
        return rankcore_dense_f32(model, X->dense_f32, X->n_rows, X->n_features, scores, ranks);
    case 2:
        return rankcore_csr(model, X->stored, X->columns, X->offsets, X->n_rows, scores, ranks);
    default:
        return rankcore_csr_f32(model, X->stored_f32, X->columns, X->offsets, X->n_rows, scores,
                                ranks);
    }
}

static int32_t probable(const rankcore_model *model, const matrix *X, int form, double *table)
{
    switch (form) {
    case 0:
        return rankcore_dense_probabilities(model, X->dense, X->n_rows, X->n_features, table);
    case 1:
        return rankcore_dense_f32_probabilities(model, X->dense_f32, X->n_rows, X->n_features,
                                                table);
    case 2:
        return rankcore_csr_probabilities(model, X->stored, X->columns, X->offsets, X->n_rows,
                                          table);
    default:
        return rankcore_csr_f32_probabilities(model, X->stored_f32, X->columns, X->offsets,
                                              X->n_rows, table);
    }
}

static void tell(const rankcore_model *model, const matrix *X)
{
    const int32_t n_ranks = rankcore_n_ranks(model);
    double *scores = (double *)block(X->n_rows, sizeof *scores);
    double *table = (double *)block(X->n_rows * (n_ranks + 1), sizeof *table);
    int32_t *ranks = (int32_t *)block(X->n_rows, sizeof *ranks);
    char text[200];
    int32_t rank;
    int form;
    rankcore_learner(model, text, sizeof text);
    printf("model %s %d %d damaged %d\n", text, (int)rankcore_n_features(model), (int)n_ranks,
           (int)rankcore_verify(model));
    printf("labels");
    for (rank = 0; rank < n_ranks; rank++)
        printf(" %s", rankcore_label(model, rank, text, sizeof text) < 0 ? "-" : text);
    printf("\n");
    for (form = 0; form < 4; form++) {
        const int32_t code = answer(model, X, form, scores, NULL);
        print("scores", code, scores, NULL, X->n_rows);
        print("ranks", answer(model, X, form, NULL, ranks), NULL, ranks, X->n_rows);
        print("probabilities", probable(model, X, form, table), table, NULL, X->n_rows * n_ranks);
    }
    free(scores);
    free(table);
    free(ranks);
}

int main(int argc, char **argv)
{
    FILE *file = argc > 2 ? fopen(argv[1], "r") : NULL;
    matrix X;
    int k;
    if (!file || !read_rows(&X, file))
        return 1;
    fclose(file);
    for (k = 2; k < argc; k++) {
        char error[200];
        rankcore_model *model = rankcore_open(argv[k], error, sizeof error);
        if (model)
            tell(model, &X);
        else
            printf("error %s\n", error);
        rankcore_close(model);
    }
    return 0;
}
