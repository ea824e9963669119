# Access of kernels to trees that trees.pyx has checked, by the capsule of a Trees object. Private.
from cpython.pycapsule cimport PyCapsule_GetPointer

from rankcore.core cimport rc_trees


cdef inline const rc_trees *trees_of(object trees) except NULL:
    """Return the C trees inside a ``Trees``, which live as long as it does."""
    return <const rc_trees *> PyCapsule_GetPointer(trees.capsule, "rankcore.trees")
