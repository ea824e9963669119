# Dense columns of byte codes, the codes of a row side by side in panels (n_rows, width): which
# column is in which panel, for histogram_layout and histograms. Private.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t


cdef extern from "_row_histograms.h" nogil:
    enum:
        RC_EIGHT
        RC_CODES
        RC_CHUNK
        RC_PANEL

    void rc_sum_panel(
        const uint8_t *codes, int64_t width, const int32_t *rows, const uint64_t *packed, int64_t n,
        uint8_t *blocks, uint64_t *histogram
    ) noexcept


cdef inline int64_t panel_width(int64_t first, int64_t padded) noexcept nogil:
    """Return the columns of the panel that begins with this one: a multiple of 16, or the last."""
    cdef int64_t n = (padded + RC_PANEL - 1) // RC_PANEL
    cdef int64_t width = ((padded + n - 1) // n + 15) // 16 * 16
    return min(width, padded - first)
