# How a kernel receives trees that trees.pyx has checked: as the capsule of a Trees object. Private.
from cpython.pycapsule cimport PyCapsule_GetPointer

from rankcore.core cimport rc_trees


cdef inline const rc_trees *trees_of(object trees) except NULL:
    """The C trees inside a ``Trees``; they live as long as it does."""
    return <const rc_trees *> PyCapsule_GetPointer(trees.capsule, "rankcore.trees")
