"""The shared library of rankcore_model.h, compiled once, and its models through ctypes."""

import ctypes
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc

CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(
    sys.platform == "win32" or CC is None, reason="no C compiler that takes the options of Unix"
)
STRICT = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wdouble-promotion",
    "-pedantic",
    "-Werror",
]
FLAGS = [*STRICT, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden"]
OK, NO_FILE, DAMAGED, NEWER, UNSUPPORTED, ROWS = range(6)
POINTER = {np.dtype(t): ctypes.POINTER(c) for t, c in [
    ("f8", ctypes.c_double), ("f4", ctypes.c_float), ("i4", ctypes.c_int32), ("i8", ctypes.c_int64),
]}  # fmt: skip


def pointer(array):
    return None if array is None else array.ctypes.data_as(POINTER[array.dtype])


def compile_library(path):
    """Compile the shared library, and return it with the types of what it returns."""
    source = f"{rc.get_include()}/librankcore.c"
    subprocess.run([CC, *FLAGS, "-o", path, source, "-lm"], check=True)
    found = ctypes.CDLL(str(path))
    found.rankcore_open.restype = found.rankcore_open_bytes.restype = ctypes.c_void_p
    found.rankcore_n_features.restype = found.rankcore_feature.restype = ctypes.c_int64
    found.rankcore_label.restype = found.rankcore_learner.restype = ctypes.c_int64
    found.rankcore_message.restype = ctypes.c_char_p
    return found


class Model:
    """A model of the shared library, in as few lines as ctypes takes; from a file or its bytes."""

    def __init__(self, library, source):
        error, size = ctypes.create_string_buffer(200), ctypes.c_size_t(200)
        self.library = library
        if isinstance(source, bytes):
            length = ctypes.c_size_t(len(source))
            self.handle = library.rankcore_open_bytes(source, length, error, size)
        else:
            self.handle = library.rankcore_open(str(source).encode(), error, size)
        if not self.handle:
            raise ValueError(error.value.decode())
        self.handle = ctypes.c_void_p(self.handle)

    def close(self):
        self.library.rankcore_close(self.handle)

    def call(self, rows, what, *outputs):
        """Call the function of the shared library for the form and type of the rows."""
        values = rows.data if sp.issparse(rows) else rows
        kind = "_f32" if values.dtype == np.float32 else ""
        form = "csr" if sp.issparse(rows) else "dense"
        given = [pointer(values), ctypes.c_int64(rows.shape[0]), ctypes.c_int64(rows.shape[1])]
        if sp.issparse(rows):
            parts = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int64)
            given = [*map(pointer, parts), ctypes.c_int64(rows.shape[0])]
        function = getattr(self.library, f"rankcore_{form}{kind}{what}")
        return function(self.handle, *given, *map(pointer, outputs))

    def answer(self, rows, ranks=True):
        n = rows.shape[0]
        scores, found = np.zeros(n), np.zeros(n, dtype=np.int32) if ranks else None
        return self.call(rows, "", scores, found), scores, found

    def probabilities(self, rows):
        found = np.full((rows.shape[0], self.library.rankcore_n_ranks(self.handle)), np.nan)
        code = self.call(rows, "_probabilities", found)
        if code != OK:
            raise ValueError(self.library.rankcore_message(code).decode())
        return found

    def text(self, function, number=None):
        buffer = ctypes.create_string_buffer(100)
        size = ctypes.c_size_t(100)
        number = () if number is None else (number,)
        n = getattr(self.library, function)(self.handle, *number, buffer, size)
        return None if n < 0 else buffer.value.decode()
