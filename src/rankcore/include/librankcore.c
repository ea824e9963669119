/* The shared library, see librankcore.h. Compile with -ffp-contract=off. */

#include "librankcore.h"

#include "rankcore_model.h"

struct rankcore_model {
    rc_model model;
};

static rankcore_model *opened(rankcore_model *found, int32_t code, char *error, size_t size)
{
    if (code == RC_MODEL_OK)
        return found;
    if (error && size)
        snprintf(error, size, "%s", found ? found->model.error : rankcore_message(code));
    free(found);
    return NULL;
}

rankcore_model *rankcore_open(const char *path, char *error, size_t size)
{
    rankcore_model *found = (rankcore_model *)malloc(sizeof *found);
    const int32_t code = found ? rc_model_open_file(&found->model, path) : RC_MODEL_MEMORY;
    return opened(found, code, error, size);
}

rankcore_model *rankcore_open_bytes(const void *bytes, size_t n, char *error, size_t size)
{
    rankcore_model *found = (rankcore_model *)malloc(sizeof *found);
    const int32_t code = found ? rc_model_open(&found->model, bytes, n) : RC_MODEL_MEMORY;
    return opened(found, code, error, size);
}

void rankcore_close(rankcore_model *model)
{
    if (model)
        rc_model_close(&model->model);
    free(model);
}

int32_t rankcore_verify(const rankcore_model *model)
{
    rc_model copy = model->model; /* a failure is written to it */
    return rc_model_verify(&copy);
}

int64_t rankcore_n_features(const rankcore_model *model) { return model->model.n_features; }

int32_t rankcore_n_ranks(const rankcore_model *model) { return model->model.n_ranks; }

static int64_t copied(rc_model_text text, char *to, size_t size)
{
    if (!text.first)
        return -1;
    if (to && size)
        snprintf(to, size, "%.*s", text.n < INT_MAX ? (int)text.n : INT_MAX, text.first);
    return text.n;
}

int64_t rankcore_learner(const rankcore_model *model, char *name, size_t size)
{
    return copied(model->model.learner, name, size);
}

int64_t rankcore_feature(const rankcore_model *model, int64_t column, char *name, size_t size)
{
    return copied(rc_model_feature(&model->model, column), name, size);
}

int64_t rankcore_label(const rankcore_model *model, int32_t rank, char *label, size_t size)
{
    const rc_model_text text = rc_model_label(&model->model, rank);
    char digits[40];
    if (text.first)
        return copied(text, label, size);
    if (rank < 0 || rank >= model->model.n_ranks)
        return -1;
    {
        const double number = rc_model_label_number(&model->model, rank);
        const int n = number == number ? snprintf(digits, sizeof digits, "%.17g", number) : -1;
        if (n > 0 && label && size)
            snprintf(label, size, "%s", digits);
        return n;
    }
}

static int32_t answered(const rankcore_model *model, const void *values, const int32_t *columns,
                        const int64_t *offsets, int64_t n_rows, int64_t stride, int32_t dtype,
                        double *scores, int32_t *ranks, double *probabilities)
{
    rc_rows X;
    void *room = malloc(rc_model_room_(&model->model, n_rows));
    int32_t code = RC_MODEL_MEMORY;
    X = rc_rows_csr(values, columns, offsets, dtype, n_rows, model->model.n_features);
    X.stride = stride;
    if (room)
        code = rc_model_answer_(&model->model, &X, scores, ranks, probabilities, room, 1);
    free(room);
    return code;
}

int32_t rankcore_dense(const rankcore_model *model, const double *values, int64_t n_rows,
                       int64_t stride, double *scores, int32_t *ranks)
{
    return answered(model, values, NULL, NULL, n_rows, stride, RC_FLOAT64, scores, ranks, NULL);
}

int32_t rankcore_dense_f32(const rankcore_model *model, const float *values, int64_t n_rows,
                           int64_t stride, double *scores, int32_t *ranks)
{
    return answered(model, values, NULL, NULL, n_rows, stride, RC_FLOAT32, scores, ranks, NULL);
}

int32_t rankcore_csr(const rankcore_model *model, const double *values, const int32_t *columns,
                     const int64_t *offsets, int64_t n_rows, double *scores, int32_t *ranks)
{
    return answered(model, values, columns, offsets, n_rows, 0, RC_FLOAT64, scores, ranks, NULL);
}

int32_t rankcore_csr_f32(const rankcore_model *model, const float *values, const int32_t *columns,
                         const int64_t *offsets, int64_t n_rows, double *scores, int32_t *ranks)
{
    return answered(model, values, columns, offsets, n_rows, 0, RC_FLOAT32, scores, ranks, NULL);
}

int32_t rankcore_dense_probabilities(const rankcore_model *model, const double *values,
                                     int64_t n_rows, int64_t stride, double *probabilities)
{
    return answered(model, values, NULL, NULL, n_rows, stride, RC_FLOAT64, NULL, NULL,
                    probabilities);
}

int32_t rankcore_dense_f32_probabilities(const rankcore_model *model, const float *values,
                                         int64_t n_rows, int64_t stride, double *probabilities)
{
    return answered(model, values, NULL, NULL, n_rows, stride, RC_FLOAT32, NULL, NULL,
                    probabilities);
}

int32_t rankcore_csr_probabilities(const rankcore_model *model, const double *values,
                                   const int32_t *columns, const int64_t *offsets, int64_t n_rows,
                                   double *probabilities)
{
    return answered(model, values, columns, offsets, n_rows, 0, RC_FLOAT64, NULL, NULL,
                    probabilities);
}

int32_t rankcore_csr_f32_probabilities(const rankcore_model *model, const float *values,
                                       const int32_t *columns, const int64_t *offsets,
                                       int64_t n_rows, double *probabilities)
{
    return answered(model, values, columns, offsets, n_rows, 0, RC_FLOAT32, NULL, NULL,
                    probabilities);
}

const char *rankcore_message(int32_t code)
{
    static const char *const words[] = {
        "no error",
        "the file cannot be read",
        "the model file is damaged",
        "the model file was written by a newer version",
        ("this model does not answer that: no score of a row (after preprocessing steps other than "
         "one scaler, which only rankcore.load in Python opens, or of ranks within queries), no "
         "ranks, no probabilities, or sparse rows behind a scaler that moves zeros"),
        "the rows have other columns than the model, or columns that do not ascend",
        "no memory",
    };
    return code >= 0 && code <= RC_MODEL_MEMORY ? words[code] : "no such code";
}
