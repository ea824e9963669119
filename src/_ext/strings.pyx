"""Lists of strings as NumPy arrays of code points, (n, width). One pass over the characters."""

from libc.stdint cimport uint32_t

cdef extern from "Python.h":
    Py_ssize_t PyUnicode_GetLength(object text) except -1
    Py_UCS4 PyUnicode_ReadChar(object text, Py_ssize_t index) except? 0
    Py_UCS4 *PyUnicode_AsUCS4(
        object text, Py_UCS4 *buffer, Py_ssize_t size, bint copy_null) except NULL


def measure(list values not None):
    """Return the maximum and the sum of lengths of strings, and whether NumPy can store them.

    NumPy drops zero characters at the end. Returns None if a value is not a string. O(n).
    """
    cdef Py_ssize_t length, longest = 0, total = 0
    cdef bint kept = True
    for value in values:
        if not isinstance(value, str):
            return None
        length = PyUnicode_GetLength(value)
        longest = max(longest, length)
        total += length
        if length and not PyUnicode_ReadChar(value, length - 1):
            kept = False
    return longest, total, kept


def fill(list values not None, uint32_t[:, ::1] out not None):
    """Copy strings to the rows of ``out``, which is zero and at least as wide as the longest."""
    cdef Py_ssize_t i = 0, length, width = out.shape[1]
    if len(values) != out.shape[0]:
        raise ValueError("values and out are inconsistent")
    for value in values:
        length = PyUnicode_GetLength(value)
        if i >= out.shape[0] or length > width:
            raise ValueError("values and out are inconsistent")
        if length:
            PyUnicode_AsUCS4(value, <Py_UCS4 *> &out[i, 0], width, False)
        i += 1
