# Sums of float64 numbers to twice their precision (Dekker 1971). Private.
#
# They require that each operation is rounded separately: no contraction, no -ffast-math.


cdef struct Double:
    double high
    double low


cdef inline void add(Double *total, double x) noexcept nogil:
    """Add x, and keep the error of the rounded sum."""
    cdef double s = total.high + x
    cdef double shown = s - total.high
    cdef double error = (total.high - (s - shown)) + (x - shown) + total.low
    total.high = s + error
    total.low = error - (total.high - s)


cdef inline void add_product(Double *total, double x, double y) noexcept nogil:
    """Add x y, as the rounded product and its error; |x| and |y| are below 1e300."""
    cdef double product = x * y
    cdef double a = 134217729.0 * x, b = 134217729.0 * y
    cdef double x_high = a - (a - x), y_high = b - (b - y)
    cdef double x_low = x - x_high, y_low = y - y_high
    cdef double error = ((x_high * y_high - product) + x_high * y_low + x_low * y_high)
    add(total, product)
    add(total, error + x_low * y_low)
