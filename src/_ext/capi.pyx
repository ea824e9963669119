"""The C function table of rankcore_capi.h, filled from the kernel modules.

Each kernel module exports its C functions in ``c_functions``, one capsule per function, so that C
programs and estimators run the same update. To add one: append a field to ``rc_capi``, raise
``RC_CAPI_VERSION``, and fill the field here.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int32_t

from rankcore.core cimport (
    RC_CAPI_VERSION,
    rc_capi,
    rc_cusum_state,
    rc_lms_state,
    rc_mcp_state,
    rc_pair_state,
    rc_prank_state,
    rc_row,
)

from rankcore._ext.ordinal import c_functions as ordinal
from rankcore._ext.pair_model import c_functions as pairs

ctypedef int32_t (*prank_update_t)(rc_prank_state *, rc_row, int32_t) noexcept nogil
ctypedef int32_t (*prank_margin_update_t)(
    rc_prank_state *, rc_row, int32_t, double
) noexcept nogil
ctypedef int32_t (*cusum_update_t)(rc_cusum_state *, rc_row, int32_t) noexcept nogil
ctypedef int32_t (*lms_update_t)(rc_lms_state *, rc_row, int32_t) noexcept nogil
ctypedef int32_t (*mcp_update_t)(rc_mcp_state *, rc_row, int32_t) noexcept nogil
ctypedef int32_t (*pair_update_t)(
    rc_pair_state *, rc_row, rc_row, double, double
) noexcept nogil
ctypedef int32_t (*pair_mean_t)(const rc_pair_state *, double *) noexcept nogil
ctypedef void (*prank_average_t)(const rc_prank_state *, double *, double *) noexcept nogil


cdef void *_function(dict functions, str name) except NULL:
    return PyCapsule_GetPointer(functions[name], name.encode())


cdef rc_capi _table
_table.version = RC_CAPI_VERSION
_table.size = sizeof(rc_capi)
_table.prank_update = <prank_update_t> _function(ordinal, "prank_update")
_table.prank_average = <prank_average_t> _function(ordinal, "prank_average")
_table.cusum_update = <cusum_update_t> _function(ordinal, "cusum_update")
_table.lms_update = <lms_update_t> _function(ordinal, "lms_update")
_table.mcp_update = <mcp_update_t> _function(ordinal, "mcp_update")
_table.pair_update = <pair_update_t> _function(pairs, "pair_update")
_table.pair_average = <pair_mean_t> _function(pairs, "pair_average")
_table.pair_committee = <pair_mean_t> _function(pairs, "pair_committee")
_table.prank_margin_update = <prank_margin_update_t> _function(
    ordinal, "prank_margin_update"
)

table = PyCapsule_New(&_table, "rankcore._ext.capi.table", NULL)
