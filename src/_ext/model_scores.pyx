"""Scores, ranks and probabilities by a model file, without its learner: rankcore_model.h.

Rows in; scores (n_rows,), ranks (n_rows,) or probabilities (n_rows, n_ranks) out. Costs are those
of the model's form, see rankcore.h.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from rankcore._ext._checked cimport checked_rows
from rankcore.core cimport rc_rows

cdef extern from "rankcore_model.h" nogil:
    enum:
        RC_MODEL_OK
        RC_MODEL_NONE
        RC_MODEL_UNSUPPORTED
        RC_MODEL_MEMORY
        RC_MODEL_STUMPS
        RC_MODEL_TREES
        RC_MODEL_ORDINAL_TREES

    ctypedef struct rc_model_text:
        const char *first
        int64_t n

    ctypedef struct rc_model:
        int32_t form
        int32_t n_ranks
        int64_t n_features
        rc_model_text reason
        const double *center
        const double *shift
        char error[160]

    int32_t rc_model_open(rc_model *model, const void *bytes, size_t size)
    void rc_model_close(rc_model *model)
    int32_t rc_model_has_probabilities_(const rc_model *model)
    size_t rc_model_room_(const rc_model *model, int64_t n_rows)
    int32_t rc_model_answer_(
        const rc_model *model, const rc_rows *X, double *scores, int32_t *ranks,
        double *probabilities, void *room, int32_t check,
    )


cdef class Model:
    """An open model file. It is read-only: any number of threads may score with it concurrently."""

    cdef rc_model model
    cdef const unsigned char[::1] content
    cdef readonly int32_t n_ranks
    cdef readonly int64_t n_features
    cdef readonly bint takes_nan
    cdef readonly bint takes_sparse
    cdef readonly bint has_probabilities
    cdef readonly str reason  # why it has no scores; empty if it has scores

    # ``content``: the file's bytes, which begin at a multiple of 8.
    def __cinit__(self, const unsigned char[::1] content not None):
        cdef int32_t code
        self.content = content
        with nogil:
            code = rc_model_open(&self.model, &content[0], <size_t> content.shape[0])
        if code != RC_MODEL_OK:
            raise ValueError(self.model.error.decode())
        self.n_ranks = self.model.n_ranks
        self.n_features = self.model.n_features
        self.takes_nan = self.model.form in (
            RC_MODEL_STUMPS, RC_MODEL_TREES, RC_MODEL_ORDINAL_TREES
        )
        # Centering or shifting would turn implicit zeros into other values.
        self.takes_sparse = self.model.center == NULL and self.model.shift == NULL
        self.has_probabilities = rc_model_has_probabilities_(&self.model)
        self.reason = ""
        if self.model.form == RC_MODEL_NONE and self.model.reason.first != NULL:
            self.reason = PyBytes_FromStringAndSize(
                self.model.reason.first, self.model.reason.n
            ).decode()

    def __dealloc__(self):
        rc_model_close(&self.model)

    cdef int _answer(
        self, object rows, double *scores, int32_t *ranks, double *probabilities
    ) except -1:
        cdef const rc_rows *X = checked_rows(rows)
        cdef int32_t code = RC_MODEL_MEMORY
        cdef void *room
        with nogil:
            room = malloc(rc_model_room_(&self.model, X.n_rows))
            if room != NULL:
                code = rc_model_answer_(&self.model, X, scores, ranks, probabilities, room, 0)
                free(room)
        if code == RC_MODEL_MEMORY:
            raise MemoryError("not enough memory for the scores of a row")
        if code != RC_MODEL_OK:
            raise ValueError("the rows and the model are inconsistent")
        return 0

    def scores(self, object rows not None, double[::1] out not None):
        """Write the score of each row."""
        if out.shape[0] != rows.n_rows:
            raise ValueError("there must be one score for each row")
        if out.shape[0]:
            self._answer(rows, &out[0], NULL, NULL)

    def ranks(self, object rows not None, int32_t[::1] out not None):
        """Write the rank of each row, from 0."""
        if out.shape[0] != rows.n_rows:
            raise ValueError("there must be one rank for each row")
        if out.shape[0]:
            self._answer(rows, NULL, &out[0], NULL)

    def probabilities(self, object rows not None, double[:, ::1] out not None):
        """Write the probability of each rank, a row for each row."""
        if out.shape[0] != rows.n_rows or out.shape[1] != self.n_ranks:
            raise ValueError("there must be one probability for each row and rank")
        if out.shape[0]:
            self._answer(rows, NULL, NULL, &out[0, 0])
