# Shared by readers of text: spaces, and decimals as the nearest doubles (_decimal.h). Private.
from libc.stdint cimport int64_t, uint8_t, uint64_t


cdef extern from "_decimal.h" nogil:
    enum:
        RC_DECIMAL_FINITE
        RC_DECIMAL_INFINITE
        RC_DECIMAL_NAN
        RC_DECIMAL_UNDECIDED
        RC_DECIMAL_NONE
        RC_POWER_MIN
        RC_POWER_MAX
        RC_POWER_WORDS

    int64_t rc_whole(const uint8_t **at)
    int rc_decimal(
        const uint8_t **at, const uint8_t *stop, const uint64_t *powers, double *value
    )


cdef inline bint is_space(uint8_t c) noexcept nogil:
    """Return whether a byte separates words within a line."""
    return c == c' ' or c == c'\t' or c == c'\r' or c == 11 or c == 12


cdef inline int fill_powers(uint64_t *powers) except -1:
    """Compute the table that rc_decimal reads; for a module to call once, when it is loaded."""
    # Below 5^-27 the reciprocals are cut off, above they are rounded up, as the proof assumes.
    for q in range(RC_POWER_MIN, RC_POWER_MAX + 1):
        power = 5 ** abs(q)
        bits = power.bit_length()
        if q >= 0:
            word = (power << 128) >> bits
        else:
            word = (1 << (bits + 127)) // power + (q >= -27)
        powers[2 * (q - RC_POWER_MIN)] = word >> 64
        powers[2 * (q - RC_POWER_MIN) + 1] = word & 0xffffffffffffffff
    return 0


cdef inline double exact_value(const uint8_t *text, Py_ssize_t n) except? -1.0 with gil:
    """Return the nearest double of a number that rc_decimal leaves undecided."""
    return float((<const char *> text)[:n])
