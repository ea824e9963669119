"""LETOR text from rows: each feature as `` number:value``, by `_decimal_text.h`."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from rankcore._ext._checked cimport checked_rows
from rankcore.core cimport RC_FLOAT32, rc_row, rc_rows, rc_rows_get

cdef extern from "_decimal_text.h" nogil:
    enum:
        RC_NUMBER_BYTES
        RC_TEN_MIN
        RC_TEN_MAX
        RC_TEN_WORDS

    char *rc_put_whole(char *to, uint64_t number)
    char *rc_put_double(char *to, double value, const uint64_t *tens)
    char *rc_put_float(char *to, float value, const uint64_t *tens)

cdef extern from "Python.h":
    object PyUnicode_DecodeASCII(const char *text, Py_ssize_t size, const char *errors)

cdef enum:
    FEATURE_BYTES = RC_NUMBER_BYTES + 12  # plus a space, a number of ten digits and a colon

cdef uint64_t[RC_TEN_WORDS] TENS  # written once, on import


cdef int _fill_tens(uint64_t *tens) except -1:
    for k in range(RC_TEN_MIN, RC_TEN_MAX + 1):
        power = 10 ** abs(k)
        bits = power.bit_length()
        if k >= 0:
            word = -((-power << 128) >> bits)
        else:
            word = (1 << (bits + 127)) // power + 1
        tens[2 * (k - RC_TEN_MIN)] = word >> 64
        tens[2 * (k - RC_TEN_MIN) + 1] = word & 0xffffffffffffffff
    return 0


_fill_tens(TENS)


cdef char *_put_row(char *to, rc_row x, int64_t first) noexcept nogil:
    """Write the features of a row, finite or NaN; return the end of their text."""
    cdef int64_t i
    cdef double value
    for i in range(x.n):
        to[0] = c" "
        to = rc_put_whole(to + 1, first + (i if x.indices == NULL else x.indices[i]))
        to[0] = c":"
        if x.dtype == RC_FLOAT32:
            value = (<const float *> x.data)[i]
        else:
            value = (<const double *> x.data)[i]
        if value != value:
            memcpy(to + 1, b"nan", 3)
            to += 4
        elif x.dtype == RC_FLOAT32:
            to = rc_put_float(to + 1, (<const float *> x.data)[i], TENS)
        else:
            to = rc_put_double(to + 1, (<const double *> x.data)[i], TENS)
    return to


def row_texts(
    object rows not None,
    int64_t start,  # range of rows
    int64_t stop,
    int64_t first,  # number of the first column
):
    """Return the features of the rows start .. stop - 1 as texts, each feature after a space.

    A float64 has the fewest digits that read back as the number. A float32 has nine: reading rounds
    twice, which is exact for nine digits, but might not be for the fewest. O(values), and 36 bytes
    for each value of the longest row.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef int64_t i, most = 0
    cdef char *text
    cdef char *end
    if not 0 <= start <= stop <= X.n_rows or first < 0:
        raise ValueError("range and rows are inconsistent")
    for i in range(start, stop):
        most = max(most, rc_rows_get(X, i).n)
    text = <char *> malloc(most * FEATURE_BYTES + 1)
    if text == NULL:
        raise MemoryError
    found = []
    try:
        for i in range(start, stop):
            with nogil:
                end = _put_row(text, rc_rows_get(X, i), first)
            found.append(PyUnicode_DecodeASCII(text, end - text, NULL))
    finally:
        free(text)
    return found
