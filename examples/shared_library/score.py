"""Score rows with librankcore from Python, without rankcore or NumPy.

    python score.py LIBRARY MODEL < rows.svm

Prints the label, or the score of a ranker, of each line of svmlight text.
"""

import sys
from array import array
from ctypes import (
    CDLL,
    POINTER,
    byref,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
    create_string_buffer,
)


def load(path):
    library = CDLL(path)
    library.rankcore_open.restype = c_void_p
    library.rankcore_open.argtypes = [c_char_p, c_char_p, c_size_t]
    library.rankcore_close.argtypes = [c_void_p]
    library.rankcore_n_ranks.argtypes = [c_void_p]
    library.rankcore_label.restype = c_int64
    library.rankcore_label.argtypes = [c_void_p, c_int32, c_char_p, c_size_t]
    library.rankcore_message.restype = c_char_p
    library.rankcore_csr.argtypes = [
        *(c_void_p, POINTER(c_double), POINTER(c_int32), POINTER(c_int64), c_int64),
        *(POINTER(c_double), POINTER(c_int32)),
    ]
    return library


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: score.py LIBRARY MODEL < rows.svm")
    library = load(sys.argv[1])
    error = create_string_buffer(200)
    model = library.rankcore_open(sys.argv[2].encode(), error, len(error))
    if not model:
        sys.exit(f"{sys.argv[2]}: {error.value.decode()}")
    ordinal = library.rankcore_n_ranks(model) > 0
    label, score, rank = create_string_buffer(200), c_double(), c_int32()
    for line in sys.stdin:
        items = line.split("#")[0].split()
        if not items:
            continue
        pairs = [item.split(":") for item in items[1:] if item[:4] != "qid:"]
        columns = array("i", [int(column) - 1 for column, _ in pairs])
        values = array("d", [float(value) for _, value in pairs])
        n = len(pairs)
        code = library.rankcore_csr(
            model,
            (c_double * n).from_buffer(values),
            (c_int32 * n).from_buffer(columns),
            (c_int64 * 2)(0, n),
            1,
            byref(score),
            byref(rank) if ordinal else None,
        )
        if code:
            sys.exit(library.rankcore_message(code).decode())
        if ordinal:
            library.rankcore_label(model, rank, label, len(label))
            print(label.value.decode())
        else:
            print(repr(score.value))
    library.rankcore_close(model)


main()
