"""Standardised columns: moments in one pass over rows, and the units that follow from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore._core.scales import SPARSE
from rankcore._ext.moments import add_rows, standardize
from rankcore._ext.rows import Rows

# Deviations below this fraction of the mean are rounding errors: the column is constant.
LEAST_DEVIATION = 1e-14
# Squares of smaller values lose digits, or are 0.
LEAST_VALUE = 1e-150


@dataclass(frozen=True)
class Units:
    """Units of columns: standardised values are ``(X - center) / deviation``.

    Attributes
    ----------
    center, deviation : ndarray of float64, shape (n_features,)
    """

    center: Floats
    deviation: Floats

    @classmethod
    def raw(cls, n_features: int) -> Self:
        """Return the units that leave rows as they are."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def of_rows(cls, array: Floats) -> Self:
        """Make units of an array of shape (2, n_features): centers and deviations."""
        return cls(center=array[0], deviation=array[1])

    @property
    def are_raw(self) -> bool:
        """Whether these units leave rows as they are."""
        return not self.center.any() and bool((self.deviation == 1).all())

    def standardize(self, rows: Rows, order: NDArray[np.int32] | None = None) -> Floats:
        """Return the standardised rows, dense: all, or those of ``order``.

        A row of CSR has the same bits as a dense one.
        """
        out = np.empty((rows.n_rows if order is None else order.size, rows.n_features))
        factor = 1 / self.deviation
        standardize(rows, order, self.center, factor, (0 - self.center) * factor, out)
        return out


class Moments:
    """Weighted moments of columns, added up row by row or part by part.

    They are collected from the values that are not 0, so that CSR costs O(values) and dense rows
    and CSR of the same values have the same moments, bit for bit. Adding rows in several calls is
    the same, bit for bit, as in one.

    Parameters
    ----------
    n_features : int
    columns : ndarray of float64, shape (4, n_features), optional
        The state, with ``totals``, to go on from; it is changed in place. New by default.
    totals : ndarray of float64, shape (3,), optional

    Attributes
    ----------
    columns : ndarray of float64, shape (4, n_features)
        Of the values of each column that are not 0: their weight, an origin, and the weighted sums
        of their differences from it and of the squares of these.
    totals : ndarray of float64, shape (3,)
        Rows of positive weight, their total weight, and their values that are not 0.
    """

    def __init__(
        self, n_features: int, columns: Floats | None = None, totals: Floats | None = None
    ) -> None:
        self.columns = np.zeros((4, n_features)) if columns is None else columns
        self.totals = np.zeros(3) if totals is None else totals

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return int(self.totals[0])

    @property
    def sparse(self) -> bool:
        """Whether at most an eighth of all values are not 0, so that rows are left alone."""
        return bool(self.totals[2] <= SPARSE * self.totals[0] * self.columns.shape[1])

    @property
    def finite(self) -> bool:
        """Whether no value was so large that its square overflowed."""
        known = (self.columns, self.totals, self.variances())
        return all(bool(np.isfinite(one).all()) for one in known)

    def vanishing(self) -> NDArray[np.intp]:
        """Return the columns whose values vary so little that the squares vanish.

        They count as constant, but are not.
        """
        means, deviations = np.abs(self.means()), np.sqrt(self.variances())
        vary = (means < LEAST_VALUE) | (deviations > LEAST_DEVIATION * means)
        return np.flatnonzero((self.columns[0] > 0) & (deviations < LEAST_VALUE) & vary)

    def add(
        self, rows: Rows, weights: Floats | None = None, start: int = 0, stop: int | None = None
    ) -> Self:
        """Add the rows from ``start`` up to ``stop``; rows of weight 0 add nothing."""
        last = rows.n_rows if stop is None else stop
        add_rows(rows, weights, start, last, self.columns, self.totals)
        return self

    def combine(self, other: Moments, sign: int = 1) -> Self:
        """Add the moments of other rows; with ``sign=-1`` remove them."""
        weights, origins, sums, squares = self.columns
        more, theirs, of_sums, of_squares = other.columns
        with np.errstate(over="ignore", invalid="ignore"):  # see `finite`
            np.copyto(origins, theirs, where=weights == 0)
            moved = np.where(more > 0, theirs - origins, 0.0)
            sums += sign * (of_sums + more * moved)
            squares += sign * (of_squares + moved * (2 * of_sums + more * moved))
            weights += sign * more
            self.totals += sign * other.totals
        gone = weights <= 0
        self.columns[:, gone] = 0
        np.maximum(squares, 0, out=squares)
        return self

    def copy(self) -> Moments:
        """Return an independent copy."""
        return Moments(self.columns.shape[1], self.columns.copy(), self.totals.copy())

    def means(self) -> Floats:
        """Return the weighted mean of each column, its zeros included."""
        weights, origins, sums, _ = self.columns
        with np.errstate(invalid="ignore"):  # see `finite`
            of_values = origins + sums / np.where(weights > 0, weights, 1)
            return np.asarray(weights / self._weight * of_values)

    def variances(self) -> Floats:
        """Return the weighted variance of each column about its mean, its zeros included."""
        weights, origins, sums, squares = self.columns
        nonzero_weights = np.where(weights > 0, weights, 1)
        means = origins + sums / nonzero_weights
        nonzero = weights / self._weight
        zero = np.maximum(self._weight - weights, 0) / self._weight  # exactly 0 without zeros
        apart = np.where(zero > 0, means, 0)  # a square that overflows times 0 would be NaN
        with np.errstate(over="ignore", invalid="ignore"):  # see `finite`
            within = np.maximum(squares - sums / nonzero_weights * sums, 0) / self._weight
            return np.asarray(within + apart**2 * nonzero * zero)

    @property
    def _weight(self) -> float:
        return float(self.totals[1]) or 1.0

    def constant(self) -> NDArray[np.bool_]:
        """Return whether each column counts as constant: it varies by rounding errors at most."""
        return _constant(self.means(), np.sqrt(self.variances()))

    def units(self, centered: bool = True) -> Units:
        """Return the units in which these rows have mean 0 and variance 1.

        Rows are left alone if at most an eighth of their values are not 0. So are columns that
        have only values of 0 and 1. Other constant columns are centred and keep their scale: they
        are 0 for every row, as after scikit-learn's ``StandardScaler``. Left alone, they would be
        large numbers that dominate the others, and all columns are constant in the first row of a
        stream. Those that vary by rounding errors only are divided by their mean, so that these
        stay as small as they are.

        Without ``centered``, for a model without an intercept, the center is 0 and the deviation
        is that from 0, the root mean square, for the same reason: constants become 1 or -1.
        """
        n_features = self.columns.shape[1]
        if self.sparse:
            return Units.raw(n_features)
        weights, origins, sums, squares = self.columns
        alone = (weights == 0) | ((origins == 1) & (sums == 0) & (squares == 0))
        means, variances = self.means(), self.variances()
        if centered:
            center = np.where(alone, 0.0, means)
            deviation = np.sqrt(variances)
            alone |= deviation == 0
            noise = ~alone & _constant(means, deviation)
            deviation[noise] = np.abs(means[noise])
            alone |= deviation < LEAST_VALUE
        else:
            center = np.zeros(n_features)
            deviation = np.hypot(np.sqrt(variances), means)
            alone |= deviation < LEAST_VALUE
        return Units(center, np.where(alone, 1.0, deviation))

    def mean_square(self, units: Units) -> float:
        """Return the mean squared length of the rows in some units."""
        means = (self.means() - units.center) / units.deviation
        return float(np.sum(self.variances() / units.deviation**2 + means**2))


def _constant(means: Floats, deviations: Floats) -> NDArray[np.bool_]:
    return (deviations < LEAST_VALUE) | (deviations <= LEAST_DEVIATION * np.abs(means))
