# Stable argsort of float64 numbers by a few radix passes. Private.
#
# `descending_key` maps a number to an integer; `order` sorts the indices of n such keys. Radix
# passes are O(n); each pass reads 8 n bytes and writes as many.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset


cdef enum:
    SMALL = 24  # up to this number, insertion is faster than clearing and summing the counts
    DIGIT = 11  # widest digit of a radix pass: its counts fill half of a 16 KB cache way
    PASSES = 3
    N_COUNTS = PASSES << DIGIT


cdef inline uint64_t descending_key(double x) noexcept nogil:
    """Map x to an integer that decreases as x increases; -0.0 and 0.0 have the same."""
    cdef uint64_t bits = 0
    x += 0.0
    memcpy(&bits, &x, sizeof(bits))
    # The bits of negative numbers grow as they fall, those of the others as they rise.
    return bits if bits >> 63 else ~bits & ~(<uint64_t> 1 << 63)


cdef inline int _bit_length(uint64_t x) noexcept nogil:
    cdef int length = 0
    while x:
        x >>= 1
        length += 1
    return length


cdef inline bint _insertion(const uint64_t *key, uint32_t *place, int64_t n) noexcept nogil:
    cdef int64_t i, j
    cdef uint32_t moved
    cdef uint64_t value
    cdef bint ties = False
    for i in range(1, n):
        moved = place[i]
        value = key[moved]
        j = i
        while j > 0 and key[place[j - 1]] > value:
            place[j] = place[j - 1]
            j -= 1
        place[j] = moved
        ties |= j > 0 and key[place[j - 1]] == value
    return ties


cdef inline bint order(
    const uint64_t *key,
    uint32_t *place,
    int64_t n,
    uint64_t *packed,
    uint64_t *spare,
    uint32_t *counts,
) noexcept nogil:
    """Sort `place`, (n,), by `key`, ascending and stable; return whether there are equal keys.

    Radix passes sort by the leading bits of where a key lies between the minimum and the maximum,
    as many bits as make it unlikely that two of n keys share them; keys that share them are
    sorted again by the bits that follow. Each level settles at least 8 bits, so there are at most
    8 levels.

    `packed` and `spare` are scratch of n numbers each, `counts` of N_COUNTS.
    """
    cdef uint64_t low, high, element
    cdef uint64_t *swapped
    cdef uint32_t *count
    cdef uint32_t total, here, mask
    cdef int64_t i, start, stop
    cdef int digit, passes, shift, p, length
    cdef bint ties = False
    if n <= SMALL:
        return _insertion(key, place, n)
    low = high = key[place[0]]
    for i in range(1, n):  # one comparison each if already in order
        element = key[place[i]]
        if element < high:
            break
        ties |= element == high
        high = element
    else:
        return ties
    ties = False
    for i in range(i, n):
        element = key[place[i]]
        if element < low:
            low = element
        if element > high:
            high = element
    length = _bit_length(n)
    digit = min(DIGIT, length)
    passes = 2 if length <= 14 else PASSES
    shift = max(0, _bit_length(high - low) - min(32, passes * digit))
    mask = (<uint32_t> 1 << digit) - 1
    memset(counts, 0, (<size_t> passes << DIGIT) * sizeof(uint32_t))
    for i in range(n):
        element = (key[place[i]] - low) >> shift
        packed[i] = element << 32 | place[i]
        for p in range(passes):
            counts[(p << DIGIT) + ((element >> (p * digit)) & mask)] += 1
    for p in range(passes):
        count = counts + (p << DIGIT)
        total = 0
        for i in range(mask + 1):
            here = count[i]
            count[i] = total
            total += here
        for i in range(n):
            element = packed[i]
            here = (element >> (32 + p * digit)) & mask
            spare[count[here]] = element
            count[here] += 1
        swapped = packed
        packed = spare
        spare = swapped
    for i in range(n):
        place[i] = <uint32_t> packed[i]
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and packed[stop] >> 32 == packed[start] >> 32:
            stop += 1
        if stop - start > 1:
            if shift == 0:
                ties = True
            else:
                ties |= order(
                    key, place + start, stop - start, packed + start, spare + start, counts
                )
        start = stop
    return ties
