/* rankcore_open.h - a model, from the bytes of its file. Part of rankcore_model.h. */
#ifndef RANKCORE_OPEN_H
#define RANKCORE_OPEN_H

#include <stdio.h>
#include <stdlib.h>

#include "rankcore_forms.h"

#if defined(__unix__) || defined(__APPLE__)
#define RC_MODEL_MAPS_ 1
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Whether numbers of this machine have their bytes in another order than those of a file. */
static inline int32_t rc_model_swaps_(void)
{
    const uint32_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first != 1;
}

/* Leads the wide arrays of a located file to copies in this machine's order of bytes, which lie in
 * `swapped` as the arrays lie in the file; with `writes` makes them. Bytes stay where they are. */
static inline void rc_model_swap_(rc_model_file_ *file, unsigned char *swapped, int32_t writes)
{
    int32_t k;
    for (k = 0; k < RC_MODEL_KEYS_ + RC_MODEL_NAMES_; k++) {
        rc_model_array *array =
            k < RC_MODEL_KEYS_ ? file->parts + k : file->named + (k - RC_MODEL_KEYS_);
        const int32_t eight = array->dtype == RC_MODEL_F64 || array->dtype == RC_MODEL_I64;
        const int32_t four = array->dtype == RC_MODEL_F32 || array->dtype == RC_MODEL_I32 ||
                             array->dtype == RC_MODEL_U32;
        const int64_t item = eight ? 8 : 4;
        const unsigned char *from = (const unsigned char *)array->data;
        unsigned char *to;
        int64_t i;
        if (!from || !(eight || four))
            continue;
        to = swapped + (from - file->data);
        for (i = 0; writes && i < array->size * item; i++)
            to[i] = from[i / item * item + (item - 1 - i % item)];
        array->data = to;
    }
}

static inline int32_t rc_model_numbers_are_finite_(const rc_model *model,
                                                   const rc_model_file_ *file)
{
    static const char *const keys[] = {
        "scoring.weights", "scoring.thresholds", "scoring.intercept", "scoring.intercepts",
        "scoring.values",  "scoring.missing",    "scoring.at_zero",   "scoring.base",
        "scoring.vectors", "scoring.norms",      "scoring.coefs",     "scoring.constants",
        "scoring.curves",  "scoring.knots",      "scoring.moments",   "scoring.costs"};
    size_t i;
    int32_t axes;
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        for (axes = 1; axes <= 3; axes++) {
            const rc_model_array array = rc_model_part_(file, keys[i], RC_MODEL_F64, axes);
            /* Thresholds of stumps and trees may be infinite. */
            const int32_t open =
                i == 1 && (model->form == RC_MODEL_STUMPS || model->form == RC_MODEL_TREES);
            if (array.data && !open && !rc_model_finite_((const double *)array.data, array.size))
                return 0;
        }
    return 1;
}

/* Compares the checksum of an open model's file, and looks for NaN and infinities among its
 * numbers, as rc_model_open does for files up to RC_MODEL_LARGE. O(bytes of the file). */
static inline int32_t rc_model_verify(rc_model *model)
{
    rc_model_file_ file;
    rc_model_array sum;
    if (!rc_model_locate_(model->bytes, model->size, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its header is damaged");
    if (model->swapped)
        rc_model_swap_(&file, model->swapped, 0);
    sum = rc_model_named_(&file, "~crc32");
    if (!sum.data && rc_model_fact_(&file, "checksum").first)
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its checksum is lost");
    if (sum.data) {
        const unsigned char *last = model->bytes + model->size - 4;
        const uint32_t crc = rc_crc32_(model->bytes, model->size - 4);
        if (sum.dtype != RC_MODEL_U8 || sum.size != 4 || sum.data != (const void *)last ||
            crc != ((uint32_t)last[0] | (uint32_t)last[1] << 8 | (uint32_t)last[2] << 16 |
                    (uint32_t)last[3] << 24))
            return rc_model_fail_(model, RC_MODEL_DAMAGED, "its checksum is not that of its bytes");
    }
    if (!rc_model_numbers_are_finite_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its numbers hold NaN or infinity");
    return RC_MODEL_OK;
}

/* rc_model_open, but for giving back what a model that failed holds. */
static inline int32_t rc_model_read_(rc_model *model, const void *bytes, size_t size)
{
    rc_model_file_ file;
    int64_t version;
    memset(model, 0, sizeof *model);
    model->bytes = (const unsigned char *)bytes;
    model->size = size;
    if ((uintptr_t)bytes % 8)
        return rc_model_fail_(model, RC_MODEL_DAMAGED,
                              "the bytes of a model must begin at a multiple of 8");
    if (!rc_model_locate_(model->bytes, size, &file) ||
        !rc_model_is_(rc_model_fact_(&file, "format"), "rankcore model"))
        return rc_model_fail_(model, RC_MODEL_DAMAGED,
                              "it is not a rankcore model file, or it is damaged");
    if (rc_model_swaps_()) {
        model->swapped = (unsigned char *)malloc((size_t)file.n_data + 1);
        if (!model->swapped)
            return rc_model_fail_(model, RC_MODEL_MEMORY, "no memory");
        rc_model_swap_(&file, model->swapped, 1);
    }
    version = rc_model_integer_(rc_model_fact_(&file, "version"));
    if (version > 1)
        return rc_model_fail_(model, RC_MODEL_NEWER,
                              "it has format version %ld; this rankcore_model.h reads up to 1",
                              (long)version);
    model->n_features = rc_model_integer_(rc_model_fact_(&file, "n_features"));
    model->learner = rc_model_fact_(&file, "learner");
    if (version < 1 || model->n_features < 1 || model->n_features > INT32_MAX)
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its version or features are impossible");
    if (!rc_model_read_names_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its names or labels do not fit");
    if (!rc_model_read_form_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its scoring is damaged");
    if (!rc_model_read_calibration_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its probabilities are damaged");
    if (!rc_model_read_scaler_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "its scaler is damaged");
    return size <= RC_MODEL_LARGE ? rc_model_verify(model) : RC_MODEL_OK;
}

/* Gives back what the model holds. It may not be used again until it is opened. */
static inline void rc_model_close(rc_model *model)
{
#ifdef RC_MODEL_MAPS_
    if (model->owned == 1)
        munmap((void *)(uintptr_t)model->bytes, model->size);
#endif
    if (model->owned == 2)
        free((void *)(uintptr_t)model->bytes);
    free(model->swapped);
    model->swapped = NULL;
    model->bytes = NULL;
    model->owned = 0;
    model->form = RC_MODEL_NONE;
}

/* Opens the bytes of a file, which must begin at a multiple of 8 and stay as they are while the
 * model is used; writes model. O(header), and O(bytes) up to RC_MODEL_LARGE or on big-endian
 * machines; of stumps, trees and sparse support vectors also what it takes to see that nothing
 * leads beyond an array. Close the model where it may have been swapped. */
static inline int32_t rc_model_open(rc_model *model, const void *bytes, size_t size)
{
    const int32_t code = rc_model_read_(model, bytes, size);
    if (code != RC_MODEL_OK)
        rc_model_close(model);
    return code;
}

/* Opens a file: maps it, or reads it where files cannot be mapped; writes model. Close the model
 * with rc_model_close when it was opened; one that failed needs none. Costs as rc_model_open. */
static inline int32_t rc_model_open_file(rc_model *model, const char *path)
{
    void *bytes = NULL;
    size_t size = 0;
    int32_t code, owned = 0;
    memset(model, 0, sizeof *model);
#ifdef RC_MODEL_MAPS_
    {
        struct stat status;
        const int handle = open(path, O_RDONLY);
        if (handle >= 0 && fstat(handle, &status) == 0 && status.st_size > 0) {
            size = (size_t)status.st_size;
            bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, handle, 0);
            bytes = bytes == MAP_FAILED ? NULL : bytes;
            owned = 1;
        }
        if (handle >= 0)
            close(handle);
    }
#else
    {
        FILE *file = fopen(path, "rb");
        long end;
        if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 &&
            fseek(file, 0, SEEK_SET) == 0 && (bytes = malloc((size_t)end)) != NULL) {
            size = (size_t)end;
            owned = 2;
            if (fread(bytes, 1, size, file) != size) {
                free(bytes);
                bytes = NULL;
            }
        }
        if (file)
            fclose(file);
    }
#endif
    if (!bytes)
        return rc_model_fail_(model, RC_MODEL_NO_FILE, "it cannot be read, or is empty");
    code = rc_model_read_(model, bytes, size);
    model->owned = owned;
    if (code != RC_MODEL_OK)
        rc_model_close(model);
    return code;
}

#ifdef __cplusplus
}
#endif

#endif /* RANKCORE_OPEN_H */
