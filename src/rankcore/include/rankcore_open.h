/* rankcore_open.h - open a model from the bytes of its file: header, checksum, scoring form,
 * scaler, labels. Part of rankcore_model.h. O(bytes) with the checksum, O(bytes of the arrays)
 * without. */
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

/* ------------------------------------------------------------------------ names */

/* Returns the name of a feature, without terminating zero byte; empty if the model has no names.
 * O(1). */
static inline rc_model_text rc_model_feature(const rc_model *model, int64_t column)
{
    rc_model_text name = {NULL, 0};
    if (model->name_ends && column >= 0 && column < model->n_features) {
        const int64_t first = column ? model->name_ends[column - 1] : 0;
        name.first = model->names.first + first;
        name.n = model->name_ends[column] - first;
    }
    return name;
}

/* Returns the label of a rank, if labels are text, without terminating zero byte. O(1). */
static inline rc_model_text rc_model_label(const rc_model *model, int32_t rank)
{
    rc_model_text label = {NULL, 0};
    if (model->class_ends && rank >= 0 && rank < model->n_ranks) {
        const int64_t first = rank ? model->class_ends[rank - 1] : 0;
        label.first = (const char *)model->classes.data + first;
        label.n = model->class_ends[rank] - first;
    }
    return label;
}

/* Returns the label of a rank, if labels are numbers of 4 or 8 bytes; NaN if they are not. O(1). */
static inline double rc_model_label_number(const rc_model *model, int32_t rank)
{
    if (!model->class_ends && rank >= 0 && rank < model->n_ranks)
        switch (model->classes.dtype) {
        case RC_MODEL_F64:
            return ((const double *)model->classes.data)[rank];
        case RC_MODEL_F32:
            return (double)((const float *)model->classes.data)[rank];
        case RC_MODEL_I64:
            return (double)((const int64_t *)model->classes.data)[rank];
        case RC_MODEL_I32:
            return (double)((const int32_t *)model->classes.data)[rank];
        case RC_MODEL_U8:
            return (double)((const unsigned char *)model->classes.data)[rank];
        case RC_MODEL_U32:
            return (double)((const uint32_t *)model->classes.data)[rank];
        default:
            break;
        }
    return NAN;
}

/* ------------------------------------------------------------------------ around the form */

static inline int32_t rc_model_read_scaler_(rc_model *model, const rc_model_file_ *file)
{
    const rc_model_text scaler = rc_model_fact_(file, "scoring.scaler");
    const int32_t centers = rc_model_fact_(file, "scoring.center").first != NULL;
    const int32_t divides = rc_model_fact_(file, "scoring.scale").first != NULL;
    const int32_t shifts = rc_model_fact_(file, "scoring.shift").first != NULL;
    const int32_t bounded = rc_model_fact_(file, "scoring.bounds").first != NULL;
    const double *bounds = rc_model_doubles_(file, "scoring.bounds", 2, 0);
    const int64_t d = model->n_features;
    if (!scaler.first)
        return !centers && !divides && !shifts && !bounded;
    if (rc_model_is_(scaler, "min_max") || rc_model_is_(scaler, "min_max_clipped")) {
        model->scales = 3;
        model->clips = rc_model_is_(scaler, "min_max_clipped");
        model->shift = rc_model_doubles_(file, "scoring.shift", d, 0);
        if (centers || !divides || !model->shift || bounded != model->clips || (bounded && !bounds))
            return 0;
        model->low = bounded ? bounds[0] : 0.0;
        model->high = bounded ? bounds[1] : 0.0;
    } else {
        model->clips = rc_model_is_(scaler, "max_abs_clipped");
        model->low = -1.0;
        model->high = 1.0;
        model->scales = model->clips || rc_model_is_(scaler, "max_abs") ? 2 : centers || divides;
        if (shifts || bounded ||
            (model->scales == 2 ? centers || !divides : !rc_model_is_(scaler, "standard")))
            return 0;
    }
    model->center = rc_model_doubles_(file, "scoring.center", d, 0);
    model->scale = rc_model_doubles_(file, "scoring.scale", d, 0);
    return (!centers || model->center) && (!divides || model->scale);
}

static inline int32_t rc_model_read_names_(rc_model *model, const rc_model_file_ *file)
{
    rc_model_array ends, names = rc_model_named_(file, "feature_names");
    ends = rc_model_named_(file, "feature_names.ends");
    if (!ends.data) {
        names = rc_model_named_(file, "scaler.feature_names");
        ends = rc_model_named_(file, "scaler.feature_names.ends");
    }
    if (ends.data) {
        if (names.dtype != RC_MODEL_U8 || names.n_axes != 1 || ends.dtype != RC_MODEL_I64 ||
            ends.n_axes != 1 || !rc_model_has_(ends, model->n_features, 0, 0) ||
            !rc_model_ends_((const int64_t *)ends.data, ends.size, names.size))
            return 0;
        model->names.first = (const char *)names.data;
        model->names.n = names.size;
        model->name_ends = (const int64_t *)ends.data;
    }
    model->classes = rc_model_named_(file, "classes");
    ends = rc_model_named_(file, "classes.ends");
    model->n_ranks = 0;
    if (!model->classes.data)
        return 1;
    if (ends.data) {
        if (model->classes.dtype != RC_MODEL_U8 || ends.dtype != RC_MODEL_I64 || ends.n_axes != 1 ||
            !rc_model_ends_((const int64_t *)ends.data, ends.size, model->classes.size))
            return 0;
        model->class_ends = (const int64_t *)ends.data;
    }
    if ((ends.data ? ends.size : model->classes.size) >= INT32_MAX)
        return 0;
    model->n_ranks = (int32_t)(ends.data ? ends.size : model->classes.size);
    return model->classes.n_axes == 1 && model->n_ranks >= 2;
}

/* ------------------------------------------------------------------------ the file */

/* Returns whether the byte order of this machine differs from that of files. */
static inline int32_t rc_model_swaps_(void)
{
    const uint32_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return first != 1;
}

/* Redirects the multi-byte arrays of a located file to copies in native byte order, at the same
 * offsets in `swapped`; with `writes` creates them. */
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
        "scoring.curves",  "scoring.knots",      "scoring.moments",   "scoring.costs",
        "scoring.biases",  "scoring.means",      "scoring.factors"};
    size_t i;
    int32_t axes;
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        for (axes = 1; axes <= 3; axes++) {
            const rc_model_array array = rc_model_part_(file, keys[i], RC_MODEL_F64, axes);
            /* Thresholds of stumps and trees may be infinite. */
            const int32_t open =
                i == 1 && (model->form == RC_MODEL_STUMPS || model->form == RC_MODEL_TREES ||
                           model->form == RC_MODEL_ORDINAL_TREES);
            if (array.data && !open && !rc_model_finite_((const double *)array.data, array.size))
                return 0;
        }
    return 1;
}

/* Verifies the checksum of an open model's file, and checks its numbers for NaN and infinities,
 * as rc_model_open does for files up to RC_MODEL_LARGE. O(bytes of the file). */
static inline int32_t rc_model_verify(rc_model *model)
{
    rc_model_file_ file;
    rc_model_array sum;
    if (!rc_model_locate_(model->bytes, model->size, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "the header is damaged");
    if (model->swapped)
        rc_model_swap_(&file, model->swapped, 0);
    sum = rc_model_named_(&file, "~crc32");
    if (!sum.data && rc_model_fact_(&file, "checksum").first)
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "the checksum is missing");
    if (sum.data) {
        const unsigned char *last = model->bytes + model->size - 4;
        const uint32_t crc = rc_crc32_(model->bytes, model->size - 4);
        if (sum.dtype != RC_MODEL_U8 || sum.size != 4 || sum.data != (const void *)last ||
            crc != ((uint32_t)last[0] | (uint32_t)last[1] << 8 | (uint32_t)last[2] << 16 |
                    (uint32_t)last[3] << 24))
            return rc_model_fail_(model, RC_MODEL_DAMAGED,
                                  "the checksum does not match the content");
    }
    if (!rc_model_numbers_are_finite_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED,
                              "the numbers must be finite; got NaN or infinity");
    return RC_MODEL_OK;
}

/* As rc_model_open, without releasing the resources of a failed model. */
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
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "not a rankcore model file, or damaged");
    if (rc_model_swaps_()) {
        model->swapped = (unsigned char *)malloc((size_t)file.n_data + 1);
        if (!model->swapped)
            return rc_model_fail_(model, RC_MODEL_MEMORY, "no memory");
        rc_model_swap_(&file, model->swapped, 1);
    }
    version = rc_model_integer_(rc_model_fact_(&file, "version"));
    if (version > 1)
        return rc_model_fail_(model, RC_MODEL_NEWER,
                              "format version %ld; this rankcore_model.h reads up to 1",
                              (long)version);
    model->n_features = rc_model_integer_(rc_model_fact_(&file, "n_features"));
    model->learner = rc_model_fact_(&file, "learner");
    if (version < 1 || model->n_features < 1 || model->n_features > INT32_MAX)
        return rc_model_fail_(model, RC_MODEL_DAMAGED,
                              "the version or the number of features is impossible");
    if (!rc_model_read_names_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED,
                              "the names or labels do not match the model");
    if (!rc_model_read_form_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "the scoring is damaged");
    if (!rc_model_read_calibration_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "the probabilities are damaged");
    if (!rc_model_read_scaler_(model, &file))
        return rc_model_fail_(model, RC_MODEL_DAMAGED, "the scaler is damaged");
    return size <= RC_MODEL_LARGE ? rc_model_verify(model) : RC_MODEL_OK;
}

/* Releases the resources of the model. It must not be used again until it is opened. */
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

/* Opens the bytes of a file, which must be aligned to 8 bytes and not change while the model is
 * used; writes model. O(header), and O(bytes) up to RC_MODEL_LARGE or on big-endian machines;
 * for stumps, trees and sparse support vectors also the cost of bounds checks. On big-endian
 * machines the model must be closed. */
static inline int32_t rc_model_open(rc_model *model, const void *bytes, size_t size)
{
    const int32_t code = rc_model_read_(model, bytes, size);
    if (code != RC_MODEL_OK)
        rc_model_close(model);
    return code;
}

/* Reads a whole file; NULL if it is empty, shorter than `size` or cannot be read. */
static inline void *rc_model_bytes_(FILE *file, size_t size)
{
    void *bytes = size ? malloc(size) : NULL;
    if (bytes && fread(bytes, 1, size, file) != size) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

/* Opens a file; writes model. A file up to RC_MODEL_LARGE is read. A larger one is mapped, or read
 * where files cannot be mapped: replace it by renaming another file to its path, because a program
 * that overwrites or truncates a mapped file changes the model, or ends the process. After
 * success, close the model with rc_model_close; after failure that is not needed. Cost as
 * rc_model_open. */
static inline int32_t rc_model_open_file(rc_model *model, const char *path)
{
    FILE *file = fopen(path, "rb");
    void *bytes = NULL;
    size_t size = 0;
    int32_t code, owned = 2;
    long end;
    memset(model, 0, sizeof *model);
    if (file && fseek(file, 0, SEEK_END) == 0 && (end = ftell(file)) > 0 &&
        fseek(file, 0, SEEK_SET) == 0)
        size = (size_t)end;
#ifdef RC_MODEL_MAPS_
    if (size > RC_MODEL_LARGE) {
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
    } else
#endif
        bytes = file ? rc_model_bytes_(file, size) : NULL;
    if (file)
        fclose(file);
    if (!bytes)
        return rc_model_fail_(model, RC_MODEL_NO_FILE, "the file cannot be read, or is empty");
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
