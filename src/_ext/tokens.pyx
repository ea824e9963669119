"""Words of text: splitting lines, ids in comments, numbers, and repeated words.

A word is a span, ``(start, stop)`` of offsets into the bytes of a block of text; functions read
spans of shape ``(n, 2)`` and allocate nothing. Each is one pass over the bytes of its words.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memchr, memcmp

from rankcore._ext._text cimport (
    RC_DECIMAL_FINITE,
    RC_DECIMAL_UNDECIDED,
    RC_POWER_WORDS,
    exact_value,
    fill_powers,
    is_space,
    rc_decimal,
)

cdef uint64_t[RC_POWER_WORDS] POWERS  # written once, on import
fill_powers(POWERS)

cdef enum Fault:
    FINE
    NUL
    COUNT


# Position of a scan.
cdef struct Scan:
    const uint8_t *line
    int64_t n_lines, n_rows
    int64_t n_words  # of the current line


cdef Fault split_lines(
    const uint8_t *text, const uint8_t *stop, int64_t n_words, bint more,
    int64_t *spans, int64_t *lines, Scan *scan,
) noexcept nogil:
    cdef const uint8_t *p = text
    cdef const uint8_t *start
    cdef int64_t *span
    cdef int64_t n
    while p < stop:
        scan.line = p
        scan.n_lines += 1
        span = spans + 2 * n_words * scan.n_rows
        n = 0
        while True:
            while is_space(p[0]):
                p += 1
            if p[0] == c'\n':
                break
            if n == 0 and p[0] == c'#':
                p = <const uint8_t *> memchr(p, c'\n', stop - p)
                break
            start = p
            while p[0] != c'\n' and not is_space(p[0]):
                if p[0] == 0:
                    return Fault.NUL
                p += 1
            if n < n_words:
                span[2 * n] = start - text
                span[2 * n + 1] = p - text
            n += 1
        scan.n_words = n
        if n == n_words or (more and n > n_words):
            lines[scan.n_rows] = scan.n_lines
            scan.n_rows += 1
        elif n:
            return Fault.COUNT
        p += 1
    return Fault.FINE


def split(
    const uint8_t[::1] text not None,  # n bytes: empty, or ending in a newline
    # for errors: the file, the number of its first line here, what a line should be
    str name not None,
    int64_t first_line,
    str wanted not None,
    # out, (> n // (2 * n_words), n_words, 2): start and stop of each word in the text
    int64_t[:, :, ::1] spans not None,
    # out, (> n // (2 * n_words),): number of each row's line in the file
    int64_t[::1] lines not None,
    bint more=False,  # whether a line may have further words
):
    """Find the words of a block of whole lines, the same number in each.

    Lines whose first word begins with # are comments.

    Returns the number of rows: lines that are neither empty nor comments. Raises ValueError if a
    line has more or fewer words, or a NUL byte in one. O(n).
    """
    cdef int64_t n = text.shape[0], n_words = spans.shape[1], i
    cdef Scan scan = Scan(NULL, 0, 0, 0)
    cdef Fault fault
    if (
        n_words < 1
        or spans.shape[0] <= n // (2 * n_words)
        or spans.shape[2] != 2
        or lines.shape[0] <= n // (2 * n_words)
    ):
        raise ValueError(f"the arrays do not match a text of {n} bytes")
    if n == 0:
        return 0
    if text[n - 1] != c'\n':
        raise ValueError("the text does not end in a newline")
    with nogil:
        fault = split_lines(
            &text[0], &text[0] + n, n_words, more, &spans[0, 0, 0], &lines[0], &scan
        )
        for i in range(scan.n_rows):
            lines[i] += first_line - 1
    if fault == Fault.FINE:
        return scan.n_rows
    line = _start(scan.line, &text[0] + n)
    if fault == Fault.NUL:
        problem = f"found a NUL byte in {line}: is this a text file?"
    else:
        words = "1 word" if scan.n_words == 1 else f"{scan.n_words} words"
        problem = f"cannot read {line}: found {words}, expected {wanted}"
    raise ValueError(f"{name}, line {first_line + scan.n_lines - 1}: {problem}")


cdef str _start(const uint8_t *line, const uint8_t *stop):
    """Return the beginning of a line, for an error message."""
    cdef const uint8_t *end = <const uint8_t *> memchr(line, c'\n', stop - line)
    return repr((<const char *> line)[:min(end - line, 60)].decode("utf-8", "replace").strip())


cdef inline bint is_key(uint8_t c) noexcept nogil:
    return (
        c'a' <= (c | 32) <= c'z' or c'0' <= c <= c'9' or c == c'_' or c == c'-' or c == c'.'
        or c >= 128
    )


cdef inline bint is_docid(const uint8_t *p, const uint8_t *end) noexcept nogil:
    return (
        end - p == 5 and (p[0] | 32) == c'd' and (p[1] | 32) == c'o' and (p[2] | 32) == c'c'
        and (p[3] | 32) == c'i' and (p[4] | 32) == c'd'
    )


cdef void find_docid(const uint8_t *p, const uint8_t *end, const uint8_t **docid) noexcept nogil:
    """Find start and stop of the document id in the comment from p to end; equal without one."""
    cdef const uint8_t *key
    cdef const uint8_t *key_end
    cdef bint first = True, wanted
    docid[0] = docid[1] = end
    while p < end:
        key = p
        while p < end and is_key(p[0]):
            p += 1
        key_end = p
        wanted = is_docid(key, key_end)
        while p < end and is_space(p[0]):
            p += 1
        if key_end > key and p < end and (p[0] == c'=' or (wanted and p[0] == c':')):
            p += 1
            while p < end and is_space(p[0]):
                p += 1
        elif first:
            wanted = True  # the first word is the id, if no key precedes it
            p = key
        else:
            wanted = False
        key = p
        while p < end and not is_space(p[0]):
            p += 1
        if wanted:
            docid[0] = key
            docid[1] = p
            return
        first = False
        while p < end and is_space(p[0]):
            p += 1


def find_docids(
    const uint8_t[::1] text not None,
    # (n, 2): start and stop of each comment in the text, as from `parse`
    const int64_t[:, ::1] comments not None,
    int64_t[:, ::1] spans not None,  # out, (n, 2): start and stop of each id; equal without an id
):
    """Find the document ids in comments: after ``docid =``, or else a first word that is no key.

    Returns the length of the longest id. O(length of the comments).
    """
    cdef int64_t n = comments.shape[0], i, longest = 0
    cdef const uint8_t *docid[2]
    if comments.shape[1] != 2 or spans.shape[0] != n or spans.shape[1] != 2:
        raise ValueError("comments and spans are inconsistent")
    if n and text.shape[0] == 0:
        raise ValueError("the text is empty")
    with nogil:
        for i in range(n):
            spans[i, 0] = spans[i, 1] = 0
            if not 0 <= comments[i, 0] <= comments[i, 1] <= text.shape[0]:
                continue
            find_docid(&text[0] + comments[i, 0], &text[0] + comments[i, 1], docid)
            spans[i, 0] = docid[0] - &text[0]
            spans[i, 1] = docid[1] - &text[0]
            longest = max(longest, spans[i, 1] - spans[i, 0])
    return longest


def take(
    const uint8_t[::1] text not None,
    const int64_t[:, :] spans not None,  # (n, 2): start and stop of each word
    uint32_t[:, ::1] out not None,  # out, (n, width): no word may be longer than ``width``
):
    """Copy words of the text into rows, one letter per entry, padded with zeros.

    Returns whether all words are ASCII; if not, ``out`` has bytes, not letters. O(n * width).
    """
    cdef int64_t n = spans.shape[0], width = out.shape[1], i, j, start, length
    cdef uint32_t bits = 0
    if spans.shape[1] != 2 or out.shape[0] != n:
        raise ValueError("spans and out are inconsistent")
    with nogil:
        for i in range(n):
            start = spans[i, 0]
            length = spans[i, 1] - start
            if start < 0 or not 0 <= length <= width or spans[i, 1] > text.shape[0]:
                with gil:
                    raise ValueError(f"word {i}, at {start} of {length} bytes, is out of range")
            for j in range(length):
                out[i, j] = text[start + j]
                bits |= out[i, j]
            for j in range(length, width):
                out[i, j] = 0
    return bits < 128


def numbers(
    const uint8_t[::1] text not None,  # ends in a newline
    const int64_t[:, :] spans not None,  # (n, 2): start and stop of each word, as from `split`
    double[::1] out not None,  # out, (n,)
):
    """Read words as numbers: the nearest doubles.

    Returns n, or the first row whose word is no finite number. O(length of the words).
    """
    cdef int64_t n = spans.shape[0], size = text.shape[0], i = 0
    cdef const uint8_t *p
    cdef int kind
    if spans.shape[1] != 2 or out.shape[0] != n or (n and (size == 0 or text[size - 1] != c'\n')):
        raise ValueError("spans, out and text are inconsistent")
    with nogil:
        while i < n:
            if not 0 <= spans[i, 0] <= spans[i, 1] < size:
                break
            p = &text[0] + spans[i, 0]
            kind = rc_decimal(&p, &text[0] + size, POWERS, &out[i])
            if kind == RC_DECIMAL_UNDECIDED:
                out[i] = exact_value(&text[0] + spans[i, 0], p - (&text[0] + spans[i, 0]))
                kind = RC_DECIMAL_FINITE
            if (
                kind != RC_DECIMAL_FINITE
                or p != &text[0] + spans[i, 1]
                or out[i] - out[i] != 0
            ):
                break
            i += 1
    return i


cdef inline uint64_t hash_of(int64_t code, const uint32_t *word, int64_t width) noexcept nogil:
    cdef uint64_t h = (<uint64_t> code + 1) * <uint64_t> 0x9e3779b97f4a7c15
    cdef int64_t i = 0
    while i < width and word[i]:
        h = (h ^ word[i]) * <uint64_t> 0x100000001b3
        i += 1
    h = (h ^ h >> 32) * <uint64_t> 0x9e3779b97f4a7c15
    return h ^ h >> 29


def first_equal(
    const int64_t[::1] codes not None,  # (n,)
    const uint32_t[:, ::1] words not None,  # (n, width): letters, padded with zeros
    int64_t[::1] table not None,  # (size,), a power of two > n: a hash table, overwritten
    int64_t[::1] out not None,  # out, (n,): the first equal row, possibly the row itself
):
    """Find for each row the first row with the same code and word. O(n * width) expected."""
    cdef int64_t n = codes.shape[0], width = words.shape[1], size = table.shape[0], i, other
    cdef uint64_t mask = <uint64_t> size - 1, slot
    cdef const uint32_t *letters = &words[0, 0] if n and width else NULL
    if words.shape[0] != n or out.shape[0] != n or size <= n or size & (size - 1):
        raise ValueError("codes, words, table and out are inconsistent")
    with nogil:
        for i in range(size):
            table[i] = -1
        for i in range(n):
            slot = hash_of(codes[i], letters + i * width, width) & mask
            while True:
                other = table[slot]
                if other < 0:
                    table[slot] = out[i] = i
                    break
                if codes[other] == codes[i] and (
                    width == 0
                    or memcmp(letters + other * width, letters + i * width, 4 * width) == 0
                ):
                    out[i] = other
                    break
                slot = (slot + 1) & mask
