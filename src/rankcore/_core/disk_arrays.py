"""Arrays in temporary files that are mapped into memory.

Work beside rows of a mapped file, which may be larger than memory, uses such arrays: the system
writes their pages to disk, and removes them from memory, when it needs room.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Allocate = Callable[[int, DTypeLike], NDArray[Any]]
# Arrays of fewer bytes are in memory.
SMALL = 1 << 22


def allocator_beside(array: NDArray[Any]) -> Allocate:
    """Return `disk_array` if an array is in a mapped file, else ``numpy.empty``."""
    return np.empty if _map_of(array) is None else disk_array


def disk_array(size: int, dtype: DTypeLike) -> NDArray[Any]:
    """Create zeros in a temporary file that is deleted with the array; in memory if small.

    Raises OSError if the disk of the temporary folder has too little room.
    """
    kind = np.dtype(dtype)
    n_bytes = int(size) * kind.itemsize
    if n_bytes < SMALL:
        return np.zeros(size, kind)
    with tempfile.TemporaryFile() as file:
        # Room is reserved now: without it, a write to a page would end the process.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            zeros = bytes(SMALL)
            for _ in range(math.ceil(n_bytes / SMALL)):
                file.write(zeros)
            file.flush()
        return np.frombuffer(mmap.mmap(file.fileno(), n_bytes), kind)


def release(*arrays: NDArray[Any] | None) -> None:
    """Write changes of arrays in mapped files to disk, and drop their pages from memory.

    A later access maps them again. Does nothing for arrays in memory.
    """
    for array in arrays:
        if array is None or not array.size or not hasattr(mmap, "MADV_DONTNEED"):
            continue
        mapped = _map_of(array)
        if mapped is None:
            continue
        start = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
        first = start // mmap.PAGESIZE * mmap.PAGESIZE
        size = start + array.nbytes - first
        mapped.flush(first, size)  # nothing if it was mapped for reading
        mapped.madvise(mmap.MADV_DONTNEED, first, size)


def _map_of(array: NDArray[Any]) -> mmap.mmap | None:
    """Return the mapped file that a contiguous array is in."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) else None
