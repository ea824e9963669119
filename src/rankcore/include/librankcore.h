/* librankcore.h - the shared library: model files scored from any language that calls C.
 *
 * CMakeLists.txt in this folder builds it. An open model is read-only: any number of threads may
 * score with it concurrently. Rows are validated. Functions that return int32_t return 0, or an
 * error code; see rankcore_message.
 */
#ifndef LIBRANKCORE_H
#define LIBRANKCORE_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(LIBRANKCORE_BUILD)
#define RANKCORE_API __declspec(dllexport)
#elif defined(__GNUC__)
#define RANKCORE_API __attribute__((visibility("default")))
#else
#define RANKCORE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rankcore_model rankcore_model;

/* Opens a file written by rankcore.save; close it with rankcore_close. On failure returns NULL
 * and writes a message to `error` (unless NULL), of `size` bytes. */
RANKCORE_API rankcore_model *rankcore_open(const char *path, char *error, size_t size);

/* The same for the bytes of a file, which must be aligned to 8 bytes and outlive the model. */
RANKCORE_API rankcore_model *rankcore_open_bytes(const void *bytes, size_t n, char *error,
                                                 size_t size);

/* Closes a model; NULL is allowed. No thread may be using it. */
RANKCORE_API void rankcore_close(rankcore_model *model);

/* Verifies the checksum of a file; opening verifies only files up to 64 MiB. */
RANKCORE_API int32_t rankcore_verify(const rankcore_model *model);

RANKCORE_API int64_t rankcore_n_features(const rankcore_model *model);

/* Returns the number of ranks; 0 for a model that has only scores. */
RANKCORE_API int32_t rankcore_n_ranks(const rankcore_model *model);

/* Copies the UTF-8 name of the learner or of a feature, or the label of a rank, with a
 * terminating zero byte, truncated to `size`. Returns its length, or -1 if there is none.
 * Numeric labels are written with 17 digits. */
RANKCORE_API int64_t rankcore_learner(const rankcore_model *model, char *name, size_t size);
RANKCORE_API int64_t rankcore_feature(const rankcore_model *model, int64_t column, char *name,
                                      size_t size);
RANKCORE_API int64_t rankcore_label(const rankcore_model *model, int32_t rank, char *label,
                                    size_t size);

/* Writes scores and ranks (either may be NULL) of n_rows dense rows, `stride` values apart. If the
 * code is not 0, the outputs of only some rows are written. */
RANKCORE_API int32_t rankcore_dense(const rankcore_model *model, const double *values,
                                    int64_t n_rows, int64_t stride, double *scores, int32_t *ranks);
RANKCORE_API int32_t rankcore_dense_f32(const rankcore_model *model, const float *values,
                                        int64_t n_rows, int64_t stride, double *scores,
                                        int32_t *ranks);

/* The same for CSR rows: row i has the values offsets[i] .. offsets[i + 1] - 1, at ascending
 * columns; if no row has values, values and columns may be NULL. */
RANKCORE_API int32_t rankcore_csr(const rankcore_model *model, const double *values,
                                  const int32_t *columns, const int64_t *offsets, int64_t n_rows,
                                  double *scores, int32_t *ranks);
RANKCORE_API int32_t rankcore_csr_f32(const rankcore_model *model, const float *values,
                                      const int32_t *columns, const int64_t *offsets,
                                      int64_t n_rows, double *scores, int32_t *ranks);

/* Writes the probability of each rank, n_ranks for each row, for a CalibratedOrdinal or
 * OrdinalBoost. */
RANKCORE_API int32_t rankcore_dense_probabilities(const rankcore_model *model, const double *values,
                                                  int64_t n_rows, int64_t stride,
                                                  double *probabilities);
RANKCORE_API int32_t rankcore_dense_f32_probabilities(const rankcore_model *model,
                                                      const float *values, int64_t n_rows,
                                                      int64_t stride, double *probabilities);
RANKCORE_API int32_t rankcore_csr_probabilities(const rankcore_model *model, const double *values,
                                                const int32_t *columns, const int64_t *offsets,
                                                int64_t n_rows, double *probabilities);
RANKCORE_API int32_t rankcore_csr_f32_probabilities(const rankcore_model *model,
                                                    const float *values, const int32_t *columns,
                                                    const int64_t *offsets, int64_t n_rows,
                                                    double *probabilities);

/* Returns the message of a code. */
RANKCORE_API const char *rankcore_message(int32_t code);

#ifdef __cplusplus
}
#endif

#endif /* LIBRANKCORE_H */
