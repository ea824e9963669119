/* What .Call needs between R and librankcore: R CMD SHLIB compiles it, see README.md. */
#include <R.h>
#include <Rinternals.h>
#include <stdlib.h>

#include "librankcore.h"

static const rankcore_model *model_of(SEXP handle)
{
    const rankcore_model *model = R_ExternalPtrAddr(handle);
    if (!model)
        error("the model is closed");
    return model;
}

static void close_model(SEXP handle)
{
    rankcore_close(R_ExternalPtrAddr(handle));
    R_ClearExternalPtr(handle);
}

/* R gives the memory of the model back with its handle. */
SEXP r_open(SEXP path)
{
    char message[200];
    const char *name = CHAR(STRING_ELT(path, 0));
    rankcore_model *model = rankcore_open(name, message, sizeof message);
    SEXP handle;
    if (!model)
        error("%s: %s", name, message);
    handle = PROTECT(R_MakeExternalPtr(model, R_NilValue, R_NilValue));
    R_RegisterCFinalizerEx(handle, close_model, TRUE);
    UNPROTECT(1);
    return handle;
}

SEXP r_labels(SEXP handle)
{
    const rankcore_model *model = model_of(handle);
    const int n = rankcore_n_ranks(model);
    SEXP labels = PROTECT(allocVector(STRSXP, n));
    char text[200];
    for (int rank = 0; rank < n; rank++) {
        rankcore_label(model, rank, text, sizeof text);
        SET_STRING_ELT(labels, rank, mkCharCE(text, CE_UTF8));
    }
    UNPROTECT(1);
    return labels;
}

/* The nearest doubles: as.numeric may miss them by a bit. */
SEXP r_numbers(SEXP words)
{
    SEXP numbers = PROTECT(allocVector(REALSXP, XLENGTH(words)));
    for (R_xlen_t i = 0; i < XLENGTH(words); i++)
        REAL(numbers)[i] = strtod(CHAR(STRING_ELT(words, i)), NULL);
    UNPROTECT(1);
    return numbers;
}

/* A list of scores, ranks from 0 and a column of probabilities for each row; NULL of what the model
 * does not have. Columns count from 0; offsets are doubles, for R has no integers of 64 bits. */
SEXP r_answer(SEXP handle, SEXP values, SEXP columns, SEXP offsets)
{
    const rankcore_model *model = model_of(handle);
    const R_xlen_t n = XLENGTH(offsets) - 1;
    const int k = rankcore_n_ranks(model);
    int64_t *ends = (int64_t *)R_alloc((size_t)n + 1, sizeof *ends);
    SEXP found = PROTECT(allocVector(VECSXP, 3));
    int32_t code;
    for (R_xlen_t i = 0; i <= n; i++)
        ends[i] = (int64_t)REAL(offsets)[i];
    SET_VECTOR_ELT(found, 0, allocVector(REALSXP, n));
    if (k) {
        SET_VECTOR_ELT(found, 1, allocVector(INTSXP, n));
        SET_VECTOR_ELT(found, 2, allocMatrix(REALSXP, k, (int)n));
    }
    code = rankcore_csr(model, REAL(values), INTEGER(columns), ends, n, REAL(VECTOR_ELT(found, 0)),
                        k ? INTEGER(VECTOR_ELT(found, 1)) : NULL);
    if (code)
        error("%s", rankcore_message(code));
    if (k && rankcore_csr_probabilities(model, REAL(values), INTEGER(columns), ends, n,
                                        REAL(VECTOR_ELT(found, 2))))
        SET_VECTOR_ELT(found, 2, R_NilValue);
    UNPROTECT(1);
    return found;
}
