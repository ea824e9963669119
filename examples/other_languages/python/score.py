"""Score rows with librankcore from Python, without rankcore or NumPy.

    python score.py LIBRARY MODEL < rows.svm

Prints the score, the label and the probabilities of each line of svmlight text; of the latter two
what the model has.
"""

import sys
from array import array
from ctypes import (
    CDLL,
    POINTER,
    c_char_p,
    c_double,
    c_int32,
    c_int64,
    c_size_t,
    c_void_p,
    create_string_buffer,
)

UNSUPPORTED = 4


def load(path):
    library = CDLL(path)
    library.rankcore_open.restype = c_void_p
    library.rankcore_open.argtypes = [c_char_p, c_char_p, c_size_t]
    library.rankcore_close.argtypes = [c_void_p]
    library.rankcore_n_ranks.argtypes = [c_void_p]
    library.rankcore_label.restype = c_int64
    library.rankcore_label.argtypes = [c_void_p, c_int32, c_char_p, c_size_t]
    library.rankcore_message.restype = c_char_p
    rows = [c_void_p, c_void_p, c_void_p, c_void_p, c_int64]
    library.rankcore_csr.argtypes = [*rows, POINTER(c_double), POINTER(c_int32)]
    library.rankcore_csr_probabilities.argtypes = [*rows, POINTER(c_double)]
    return library


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: score.py LIBRARY MODEL < rows.svm")
    library = load(sys.argv[1])
    error = create_string_buffer(200)
    model = library.rankcore_open(sys.argv[2].encode(), error, len(error))
    if not model:
        sys.exit(f"{sys.argv[2]}: {error.value.decode()}")
    n_ranks = library.rankcore_n_ranks(model)
    values, columns, offsets = array("d"), array("i"), array("q", [0])
    for line in sys.stdin:
        items = line.split("#")[0].split()
        pairs = [item.split(":") for item in items[1:] if item[:4] != "qid:"]
        columns.extend(int(column) - 1 for column, _ in pairs)
        values.extend(float(value) for _, value in pairs)
        if items:
            offsets.append(len(values))
    n = len(offsets) - 1
    rows = [column.buffer_info()[0] for column in (values, columns, offsets)]
    scores, ranks, table = (c_double * n)(), (c_int32 * n)(), (c_double * (n * n_ranks))()
    code = library.rankcore_csr(model, *rows, n, scores, ranks if n_ranks else None)
    if code == 0:
        code = library.rankcore_csr_probabilities(model, *rows, n, table)
    if code not in (0, UNSUPPORTED):  # not every model has probabilities
        sys.exit(library.rankcore_message(code).decode())
    label = create_string_buffer(200)
    for i in range(n):
        if n_ranks:
            library.rankcore_label(model, ranks[i], label, len(label))
        row = table[i * n_ranks : (i + 1) * n_ranks] if code == 0 else []
        print(scores[i], label.value.decode() if n_ranks else "-", *row)
    library.rankcore_close(model)


main()
