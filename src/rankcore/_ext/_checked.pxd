# Access of kernels to rows that rows.pyx has checked. Private.
from cpython.pycapsule cimport PyCapsule_GetPointer

from rankcore.core cimport rc_rows


cdef inline const rc_rows *checked_rows(object rows) except NULL:
    """Return the C rows inside a ``Rows``, which live as long as it does."""
    return <const rc_rows *> PyCapsule_GetPointer(rows.capsule, "rankcore.rows")
