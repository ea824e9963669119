"""LETOR and svmlight text: blocks of whole lines to arrays.

A line is ``label qid:id number:value ... # comment``; qid, features and comment may be missing.
``parse`` reads a block in one pass into arrays that the caller provides, so that each byte is read
once and nothing is allocated: O(bytes). Rows are written as CSR: ends of rows, columns and values.
Numbers are the nearest doubles (see ``_decimal.h``). Words of the text (query ids, comments) are
written as offsets into it, for ``tokens.pyx``.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memchr, memcmp, memset

from rankcore._ext._text cimport (
    RC_DECIMAL_FINITE,
    RC_DECIMAL_INFINITE,
    RC_DECIMAL_NAN,
    RC_DECIMAL_NONE,
    RC_DECIMAL_UNDECIDED,
    RC_POWER_WORDS,
    exact_value,
    fill_powers,
    is_space,
    rc_decimal,
    rc_whole,
)

ctypedef fused real:
    float
    double

cdef uint64_t[RC_POWER_WORDS] POWERS  # written once, on import
fill_powers(POWERS)

# Both indices and the number of columns are 32-bit.
cdef int64_t LAST_COLUMN = 2**31 - 2

cdef enum:
    RUN_FIELDS = 6  # of one run of rows with the same query id

cdef enum Fault:
    FAILED = -1  # an exception is set
    FINE
    ROOM
    NUL
    LABEL
    LABEL_NOT_FINITE
    QID
    QID_MISSING
    QID_UNEXPECTED
    FEATURE
    VALUE
    ZERO
    LARGE
    ORDER
    NOT_FINITE
    FLOAT32

cdef struct Rules:
    int64_t first_number  # of the first column: 0 or 1
    bint zero_allowed  # though first_number is 1
    bint nan_allowed
    bint inf_allowed

# Position of a scan, counts so far, and the place of a fault.
cdef struct Scan:
    const uint8_t *at
    const uint8_t *stop  # past the newline that ends the text
    const uint8_t *line
    const uint8_t *token  # the word with the fault
    int64_t number, previous  # the feature with the fault, and the feature before it
    int64_t n_lines, n_rows, n_values, n_runs, max_rows
    int64_t first_row_line, largest, largest_line
    bint has_qid, has_zero


cdef inline bint ends_token(uint8_t c) noexcept nogil:
    return c == c' ' or c == c'\n' or is_space(c) or c == c'#'


cdef inline const uint8_t *token_end(const uint8_t *p) noexcept nogil:
    while not ends_token(p[0]):
        p += 1
    return p


cdef inline const uint8_t *line_end(const uint8_t *p, const uint8_t *stop) noexcept nogil:
    """Return the newline at or after p."""
    return <const uint8_t *> memchr(p, c'\n', stop - p)


cdef inline int read_number(
    const uint8_t **at, const uint8_t *stop, double *value
) except? -1 nogil:
    cdef const uint8_t *start = at[0]
    cdef int kind = rc_decimal(at, stop, POWERS, value)
    if kind == RC_DECIMAL_UNDECIDED:
        value[0] = exact_value(start, at[0] - start)
        kind = RC_DECIMAL_FINITE
        if value[0] - value[0] != 0:
            kind = RC_DECIMAL_INFINITE
    if kind != RC_DECIMAL_NONE and not ends_token(at[0][0]):
        kind = RC_DECIMAL_NONE
    return kind


cdef inline int read_features(
    Scan *scan, const Rules *rules, int32_t *columns, real *values
) except? -1 nogil:
    """Read the features from scan.at to the end of the line or its comment; return a Fault."""
    cdef const uint8_t *p = scan.at
    cdef const uint8_t *token = p
    cdef int64_t n = scan.n_values, number = -1, previous = -1
    cdef double value
    cdef int kind, fault = Fault.FINE
    while True:
        while is_space(p[0]):
            p += 1
        if p[0] == c'\n' or p[0] == c'#':
            break
        token = p
        number = rc_whole(&p)
        if p[0] != c':' or p == token:
            fault = Fault.FEATURE
            break
        if number < 0 or number - rules.first_number > LAST_COLUMN:
            fault = Fault.LARGE
            break
        if number <= previous:
            fault = Fault.ORDER
            break
        if number < rules.first_number and not rules.zero_allowed:
            fault = Fault.ZERO
            break
        p += 1
        kind = read_number(&p, scan.stop, &value)
        if kind != RC_DECIMAL_FINITE:
            if kind < 0 or kind == RC_DECIMAL_NONE:
                fault = Fault.FAILED if kind < 0 else Fault.VALUE
                break
            if not (rules.nan_allowed if kind == RC_DECIMAL_NAN else rules.inf_allowed):
                fault = Fault.NOT_FINITE
                break
        columns[n] = <int32_t> (number - rules.first_number)
        values[n] = <real> value
        if real is float and values[n] - values[n] != 0 and value - value == 0:
            if not rules.inf_allowed:
                fault = Fault.FLOAT32
                break
        previous = number
        n += 1
    if fault:
        scan.token = token
        scan.number = number
        scan.previous = previous
        return fault
    if n > scan.n_values and columns[scan.n_values] + rules.first_number == 0:
        scan.has_zero = True
    if previous > scan.largest:
        scan.largest = previous
        scan.largest_line = scan.n_lines
    scan.n_values = n
    scan.at = p
    return Fault.FINE


cdef inline int read_qid(Scan *scan, const uint8_t *text, int64_t *runs) noexcept nogil:
    """Read the query id at scan.at, if there is one; rows with the same id form one run."""
    cdef const uint8_t *p = scan.at
    cdef bint has_qid = p[0] == c'q' and p[1] == c'i' and p[2] == c'd' and p[3] == c':'
    cdef int64_t *run = runs + RUN_FIELDS * scan.n_runs  # the next one
    cdef int64_t *before = run - RUN_FIELDS if scan.n_runs else NULL
    cdef int64_t n
    scan.token = p
    if scan.n_rows == 0:
        scan.has_qid = has_qid
    elif has_qid != scan.has_qid:
        return Fault.QID_UNEXPECTED if has_qid else Fault.QID_MISSING
    if not has_qid:
        return Fault.FINE
    p += 4
    scan.at = token_end(p)
    n = scan.at - p
    if n == 0:
        return Fault.QID
    if memchr(p, 0, n) != NULL:
        return Fault.NUL
    if before != NULL and before[2] - before[1] == n and memcmp(text + before[1], p, n) == 0:
        return Fault.FINE
    scan.n_runs += 1
    run[0] = scan.n_rows
    run[1] = p - text
    run[2] = run[1] + n
    run[4] = scan.n_lines
    run[5] = read_integer(p, scan.at, scan.stop, run + 3)
    return Fault.FINE


cdef inline int64_t read_integer(
    const uint8_t *p, const uint8_t *end, const uint8_t *stop, int64_t *number
) noexcept nogil:
    """Read a 64-bit integer; return 0 for other text, 1 if str() writes it alike, 2 otherwise."""
    cdef bint negative = p[0] == c'-'
    cdef bint plain = p[0] != c'+'
    cdef const uint8_t *digits = p + (negative or not plain)
    p = digits
    number[0] = rc_whole(&p)
    if p != end or p == digits or number[0] < 0:
        number[0] = 0
        return 0
    if negative:
        number[0] = -number[0]
    if digits[0] == c'0' and (negative or p - digits > 1):
        plain = False
    return 1 if plain else 2


cdef int read_rows(
    const uint8_t *text, Scan *scan, const Rules *rules,
    double *labels, int64_t *ends, int32_t *columns, real *values,
    int64_t *runs, int64_t *comments,  # NULL: not wanted
) except? -1 nogil:
    """Read the rows from scan.at to scan.stop, or to a fault."""
    cdef const uint8_t *p
    cdef int fault
    while scan.at < scan.stop:
        scan.line = scan.at
        scan.n_lines += 1
        while is_space(scan.at[0]):
            scan.at += 1
        if scan.at[0] != c'\n' and scan.at[0] != c'#':
            if scan.n_rows == scan.max_rows:
                return Fault.ROOM
            scan.token = scan.at
            fault = read_number(&scan.at, scan.stop, labels + scan.n_rows)
            if fault != RC_DECIMAL_FINITE:
                if fault < 0 or fault == RC_DECIMAL_NONE:
                    return Fault.FAILED if fault < 0 else Fault.LABEL
                if not rules.inf_allowed:
                    return Fault.LABEL_NOT_FINITE
            while is_space(scan.at[0]):
                scan.at += 1
            fault = read_qid(scan, text, runs)
            if fault == Fault.FINE:
                fault = read_features(scan, rules, columns, values)
            if fault != Fault.FINE:
                return fault
            if scan.n_rows == 0:
                scan.first_row_line = scan.n_lines
            ends[scan.n_rows] = scan.n_values
            if comments != NULL:
                comments[2 * scan.n_rows] = comments[2 * scan.n_rows + 1] = -1
            scan.n_rows += 1
            if scan.at[0] == c'#' and comments != NULL:
                keep_comment(scan, text, comments + 2 * (scan.n_rows - 1))
        if scan.at[0] == c'#':
            p = line_end(scan.at, scan.stop)
            if memchr(scan.at, 0, p - scan.at) != NULL:
                scan.token = scan.at
                return Fault.NUL
            scan.at = p
        scan.at += 1
    return Fault.FINE


cdef inline void keep_comment(Scan *scan, const uint8_t *text, int64_t *span) noexcept nogil:
    """Write the start and end of the comment at scan.at, without surrounding spaces."""
    cdef const uint8_t *p = scan.at + 1
    cdef const uint8_t *end = line_end(p, scan.stop)
    while is_space(p[0]):
        p += 1
    while end > p and is_space((end - 1)[0]):
        end -= 1
    span[0] = p - text
    span[1] = end - text


def parse(
    const uint8_t[::1] text not None,  # n bytes: empty, or ending in a newline
    str name not None,  # name of the file in errors
    int64_t first_line,  # number of the text's first line in the file
    int first_number,  # the number that column 0 has in the text, 0 or 1
    bint zero_allowed,  # whether 0 may occur though ``first_number`` is 1; its column is then -1
    # whether values may be NaN, or infinite. Labels may be both with ``inf_allowed``.
    bint nan_allowed,
    bint inf_allowed,
    # out, (max_rows,): a label a row. There are no more rows than lines.
    double[::1] labels not None,
    int64_t[::1] ends not None,  # out, like labels: values up to and with each row
    int32_t[::1] columns not None,  # out, (>= n // 4,): each value's column, ascending in a row
    # out, like columns: the nearest doubles, rounded once more for float32
    real[::1] values not None,
    # out, (max_rows, 6): neighbouring rows with one query id: first row, start and stop of the id
    # in the text, the id as an integer, line of the first row, kind of id (0 no 64-bit integer, 1
    # one as Python writes it, 2 one with a plus or leading zeros)
    int64_t[:, ::1] runs not None,
    # out, (max_rows, 2), or None: start and stop of each row's comment, without surrounding spaces;
    # -1 without a comment
    int64_t[:, ::1] comments,
):
    """Read a block of whole lines.

    Returns the numbers of rows, values and runs written, whether the rows have query ids, the line
    of the first row, whether a feature has the number 0, the largest number of a feature (-1
    without features) and its line. Raises ValueError if a line is malformed, naming file, line,
    what was found and what is accepted. O(n), one pass, no allocation.
    """
    cdef int64_t n = text.shape[0], max_rows = labels.shape[0]
    cdef Scan scan
    cdef Rules rules
    cdef int fault = Fault.FINE
    if (
        ends.shape[0] != max_rows
        or columns.shape[0] < n // 4
        or values.shape[0] < n // 4
        or runs.shape[0] != max_rows
        or runs.shape[1] != RUN_FIELDS
        or (comments is not None and (comments.shape[0] != max_rows or comments.shape[1] != 2))
        or not 0 <= first_number <= 1
    ):
        raise ValueError(f"the arrays do not match a text of {n} bytes")
    if n and text[n - 1] != c'\n':
        raise ValueError("the text does not end in a newline")
    memset(&scan, 0, sizeof(scan))
    scan.largest = -1
    rules.first_number = first_number
    rules.zero_allowed = zero_allowed
    rules.nan_allowed = nan_allowed
    rules.inf_allowed = inf_allowed
    scan.max_rows = max_rows
    if n and max_rows:
        scan.at = &text[0]
        scan.stop = scan.at + n
        with nogil:
            fault = read_rows(
                &text[0], &scan, &rules, &labels[0], &ends[0],
                &columns[0] if n >= 4 else NULL, &values[0] if n >= 4 else NULL,
                &runs[0, 0], &comments[0, 0] if comments is not None else NULL,
            )
    if fault == Fault.ROOM or (n and not max_rows):
        raise ValueError(f"the arrays have room for {max_rows} rows, the text has more")
    if fault:
        raise ValueError(
            f"{name}, line {first_line + scan.n_lines - 1}: {_what_is_wrong(fault, &scan, &rules)}"
        )
    return (
        scan.n_rows, scan.n_values, scan.n_runs, scan.has_qid,
        first_line + scan.first_row_line - 1, scan.has_zero, scan.largest,
        first_line + scan.largest_line - 1,
    )


cdef str _text(const uint8_t *start, const uint8_t *end, Py_ssize_t most):
    """Return up to ``most`` characters of the file, for a message."""
    text = (<const char *> start)[:end - start].decode("utf-8", "replace").strip()
    return repr(text if len(text) <= most else text[:most] + "...")


cdef str _what_is_wrong(int fault, const Scan *scan, const Rules *rules):
    cdef const uint8_t *end = line_end(scan.line, scan.stop)
    word = _text(scan.token, min(token_end(scan.token), end), 40)
    if fault == Fault.NUL:
        return f"found a NUL byte in {_text(scan.token, end, 40)}: is this a text file?"
    if fault == Fault.LABEL_NOT_FINITE:
        return f"label {word}; a label must be a finite number"
    if fault == Fault.QID:
        return "found 'qid:' without an id; expected qid:id"
    if fault == Fault.QID_MISSING:
        return "the row has no qid:, while the rows before it have; expected one in all or in none"
    if fault == Fault.QID_UNEXPECTED:
        return "the row has a qid:, while the rows before it have none; expected one in all or none"
    if fault == Fault.FEATURE and scan.token[0] == c'-' and c'0' <= scan.token[1] <= c'9':
        return f"a feature has a negative number: {word}"
    if fault == Fault.LARGE:
        return (
            f"a feature number is too large: {word}; at most {LAST_COLUMN + rules.first_number} "
            "is supported"
        )
    if fault == Fault.ZERO:
        return (
            "feature 0, but features count from 1; if here they count from 0, say "
            "zero_based=True (--zero-based)"
        )
    if fault == Fault.ORDER:
        return (
            f"feature numbers must ascend and not repeat; got {scan.number} after "
            f"{scan.previous}"
        )
    if fault == Fault.NOT_FINITE:
        return f"found {word}; every value must be finite"
    if fault == Fault.FLOAT32:
        return f"found {word}, which float32 cannot hold; read it with dtype=float64"
    wanted = "a label first, a number" if fault == Fault.LABEL else "number:value"
    line = _text(scan.line, end, 60)
    if fault == Fault.LABEL and ("," in line or ";" in line):
        wanted += " (the command line reads CSV from a file named .csv or .tsv; convert other "
        wanted += "tables to Parquet, as by pandas.read_json(...).to_parquet(...))"
    return f"cannot read {line}: expected {wanted}; got {word}"


def scatter(
    const int64_t[::1] ends not None,  # (n,): where each row's values end
    const int32_t[::1] columns not None,  # each (n_values,)
    const real[::1] values not None,
    int64_t start,  # where the first row's values begin
    int32_t shift,  # offset of the columns
    # out, of the dtype of values, (n, n_columns): zeros where nothing is stored
    real[:, ::1] out not None,
):
    """Write sparse rows into a dense matrix. O(n * n_columns)."""
    cdef int64_t n = ends.shape[0], n_columns = out.shape[1], i, j, column, first = start
    if out.shape[0] != n or columns.shape[0] != values.shape[0]:
        raise ValueError("rows and out are inconsistent")
    with nogil:
        for i in range(n):
            for j in range(n_columns):
                out[i, j] = 0
            if first < 0 or not first <= ends[i] <= values.shape[0]:
                with gil:
                    raise ValueError(f"row {i} ends at {ends[i]} after {first}")
            for j in range(first, ends[i]):
                column = <int64_t> columns[j] + shift
                if not 0 <= column < n_columns:
                    with gil:
                        raise ValueError(f"row {i} has column {column} of {n_columns}")
                out[i, column] = values[j]
            first = ends[i]
