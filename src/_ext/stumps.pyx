"""Find the best threshold stump of each column, apply stumps, and score rows by a sum of them.

The potential (gradient) of a row is the weight of the pairs it wins minus that of the pairs it
loses; the edge of a stump is the sum of the potentials of the rows where it fires (Freund, Iyer,
Schapire and Singer, "An efficient boosting algorithm for combining preferences", JMLR 4, 2003).
`evaluate` sums potentials (n_rows,) by bin, eight dense columns at a time so that additions do not
wait for each other, and sweeps the bins, highest first, over all stumps of the column. Potentials
sum to 0, so that the sum over rows without an entry follows from the entries, which alone are
visited. O(entries of the columns).

The sums of a column are formed in the order of the rows, independently of other columns: the result
does not depend on the division of columns among threads.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from rankcore._ext._checked cimport checked_rows
from rankcore._ext._columns cimport Binned, binned_of, code_t, sweep, value_at
from rankcore._ext._stump_arrays cimport bind_stumps
from rankcore.core cimport rc_row, rc_rows, rc_rows_get, rc_stumps, rc_stumps_score


cdef extern from "_column_histograms.h" nogil:
    enum:
        RC_LANES
        RC_CODES

    void rc_sum_lanes(
        const uint8_t **columns, const double *values, int64_t n, double *sums
    ) noexcept

LANES = RC_LANES
CODES = RC_CODES


cdef void _sum_sparse(
    const Binned *columns, const code_t *codes, int64_t feature, const double *potentials,
    int64_t n_winning, double *sums, double *won, double *lost,
) noexcept nogil:
    """Sum potentials by bin, and |potentials| of winning and of losing rows with an entry."""
    cdef int64_t k, b, first = columns.bounds[feature], last = columns.bounds[feature + 1]
    cdef int64_t n_bins = columns.n_bins[feature]
    cdef const int32_t *rows = columns.rows
    cdef double held = 0.0, winning = 0.0
    memset(sums, 0, (n_bins + 1) * sizeof(double))
    k = first
    if n_winning > 0:
        while k < last and rows[k] < n_winning:
            sums[codes[k]] += potentials[rows[k]]
            k += 1
        for b in range(n_bins + 1):
            winning += sums[b]
    while k < last:
        sums[codes[k]] += potentials[rows[k]]
        k += 1
    for b in range(n_bins + 1):
        held += sums[b]
    if last - first < columns.n_rows:
        sums[columns.zero_bin[feature]] -= held
    won[0] = winning
    lost[0] = winning - held


cdef void _sum_dense(
    const Binned *columns, const code_t *codes, const int32_t *features, int64_t n,
    const double *potentials, double *sums, int64_t stride,
) noexcept nogil:
    """Sum up to RC_LANES columns, ``stride`` apart, or one column with wide codes."""
    cdef int64_t i, lane, n_rows = columns.n_rows
    cdef const code_t *column
    cdef const uint8_t *narrow[RC_LANES]
    for lane in range(n):
        memset(sums + lane * stride, 0, (columns.n_bins[features[lane]] + 1) * sizeof(double))
    if code_t is uint8_t and n == RC_LANES and stride == RC_CODES:
        for lane in range(n):
            narrow[lane] = <const uint8_t *> codes + features[lane] * n_rows
        rc_sum_lanes(narrow, potentials, n_rows, sums)
        return
    for lane in range(n):
        column = codes + features[lane] * n_rows
        for i in range(n_rows):
            sums[lane * stride + column[i]] += potentials[i]


cdef void _evaluate(
    const Binned *columns, const code_t *codes, const double *potentials,
    const int32_t *features, int64_t n, double *scratch, int64_t stride,
    int64_t n_winning, double *masses,
    double *edges, int32_t *bins, uint8_t *fires_missing,
) noexcept nogil:
    cdef int64_t i = 0, lane, width
    cdef double won = 0.0, lost = 0.0
    while i < n:
        width = 1
        if columns.bounds != NULL:
            _sum_sparse(
                columns, codes, features[i], potentials, n_winning, scratch, &won, &lost
            )
            if masses != NULL:
                masses[i] = won
                masses[n + i] = lost
        else:
            if code_t is uint8_t:
                width = min(RC_LANES, n - i)
            _sum_dense(columns, codes, features + i, width, potentials, scratch, stride)
        for lane in range(width):
            sweep(
                scratch + lane * stride, columns.n_bins[features[i]],
                columns.has_missing[features[i]], &edges[i], &bins[i], &fires_missing[i],
            )
            i += 1


def evaluate(
    object columns not None,
    const double[::1] potentials not None,  # (n_rows,): of sum 0
    const int32_t[::1] features not None,  # (n,): the columns to evaluate
    # maximum number of bins of a column plus one; for one-byte codes LANES times as much, fastest
    # with CODES for each
    double[::1] scratch not None,
    double[::1] edges not None,  # out, (n,)
    # out, (n,): the stump fires in this bin and those above; -1 if the column has no threshold
    int32_t[::1] bins not None,
    uint8_t[::1] fires_missing not None,  # out, (n,): whether it fires where the value is missing
    # number of leading rows with potentials >= 0; the other rows have potentials <= 0
    int64_t n_winning=0,
    # out, (2, n), optional: sums of the |potentials| of both kinds of rows that have an entry in
    # sparse columns
    double[:, ::1] masses=None,
):
    """Find the stump of maximum |edge| in each of some columns. O(entries of the columns)."""
    cdef const Binned *binned = binned_of(columns)
    cdef int64_t i, n = features.shape[0]
    cdef int64_t stride = scratch.shape[0] // (RC_LANES if binned.width == 1 else 1)
    if (
        potentials.shape[0] != binned.n_rows
        or edges.shape[0] != n
        or bins.shape[0] != n
        or fires_missing.shape[0] != n
        or (masses is not None and (
            masses.shape[0] != 2 or masses.shape[1] != n or binned.bounds == NULL
        ))
    ):
        raise ValueError("the arrays do not match the columns")
    for i in range(n):
        if not 0 <= features[i] < binned.n_features:
            raise IndexError(f"there is no column {features[i]}")
        if binned.n_bins[features[i]] + 1 > stride:
            raise ValueError("scratch is too small for the bins")
    if n == 0 or binned.n_rows == 0:
        return
    cdef double *mass = NULL if masses is None else &masses[0, 0]
    with nogil:
        if binned.width == 1:
            _evaluate(binned, <const uint8_t *> binned.codes, &potentials[0], &features[0], n,
                      &scratch[0], stride, n_winning, mass, &edges[0], &bins[0], &fires_missing[0])
        else:
            _evaluate(binned, <const int32_t *> binned.codes, &potentials[0], &features[0], n,
                      &scratch[0], stride, n_winning, mass, &edges[0], &bins[0], &fires_missing[0])


cdef void _mark(
    const Binned *columns, const code_t *codes, int64_t feature, int64_t bin, bint fires_missing,
    uint8_t *fires,
) noexcept nogil:
    cdef int64_t k, first, last, missing = columns.n_bins[feature]
    if columns.bounds == NULL:
        codes += feature * columns.n_rows
        for k in range(columns.n_rows):
            fires[k] = fires_missing if codes[k] == missing else codes[k] >= bin
        return
    k = columns.zero_bin[feature]
    memset(fires, fires_missing if k == missing else k >= bin, columns.n_rows)
    first = columns.bounds[feature]
    last = columns.bounds[feature + 1]
    for k in range(first, last):
        fires[columns.rows[k]] = fires_missing if codes[k] == missing else codes[k] >= bin


def mark(
    object columns not None,
    int64_t feature,
    int64_t bin,  # it fires in this bin and those above
    bint fires_missing,  # whether it fires where the value is missing
    uint8_t[::1] fires not None,  # out, (n_rows,)
):
    """Write where a stump fires."""
    cdef const Binned *binned = binned_of(columns)
    if fires.shape[0] != binned.n_rows:
        raise ValueError("fires does not match the columns")
    if not 0 <= feature < binned.n_features:
        raise IndexError(f"there is no column {feature}")
    with nogil:
        if binned.width == 1:
            _mark(binned, <const uint8_t *> binned.codes, feature, bin, fires_missing, &fires[0])
        else:
            _mark(binned, <const int32_t *> binned.codes, feature, bin, fires_missing, &fires[0])


def fire(
    object rows not None,
    int64_t feature,
    double threshold,  # the stump fires above it
    bint fires_missing,  # whether it fires where the value is missing
    bint zero_missing,  # whether 0 is missing, as NaN is
    uint8_t[::1] fires not None,  # out, (n_rows,)
):
    """Write where a stump fires, for rows that are not binned.

    O(n_rows), times a search in each row if they are sparse.
    """
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_row x
    cdef int64_t i
    cdef double value
    if fires.shape[0] != X.n_rows or not rows.canonical:
        raise ValueError("fires does not match the rows")
    if not 0 <= feature < X.n_features:
        raise IndexError(f"there is no column {feature}")
    with nogil:
        for i in range(X.n_rows):
            x = rc_rows_get(X, i)
            value = value_at(&x, feature)
            if value != value or (zero_missing and value == 0):
                fires[i] = fires_missing
            else:
                fires[i] = value > threshold


def score(
    object rows not None,
    const int64_t[::1] offsets not None,  # as for ``rc_stumps`` in rankcore.h
    const double[::1] thresholds not None,
    const double[::1] values not None,
    const double[::1] missing not None,
    const double[::1] at_zero not None,
    double base,
    double[::1] out not None,  # (n_rows,)
):
    """Score rows by a merged sum of stumps. O(n_values * log thresholds of a column)."""
    cdef const rc_rows *X = checked_rows(rows)
    cdef rc_stumps model
    cdef int64_t i
    if out.shape[0] != X.n_rows or not bind_stumps(
        &model, X.n_features, base, offsets, thresholds, values, missing, at_zero
    ):
        raise ValueError("the rows and the arrays of the model are inconsistent")
    with nogil:
        for i in range(X.n_rows):
            out[i] = rc_stumps_score(&model, rc_rows_get(X, i))
