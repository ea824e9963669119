"""One scan of rows: labels, magnitudes and deviations of features, norms, non-zero values."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import power_of_two
from rankcore._core.scales import LEAST_SHIFT, deviations_of
from rankcore._core.sources import Facts
from rankcore._ext.survey import add_moments, raise_sizes, sum_squares


class Surveyor:
    """Collects facts about rows, block by block."""

    def __init__(self, n_features: int | None) -> None:
        self._n_features = n_features  # None: one more than the maximum column index
        self._counts: Counter[float] = Counter()
        self._n_rows = self._n_columns = self._n_values = self._n_nonzero = 0
        self._sizes = np.zeros(n_features or 1)
        self._moments = np.zeros((2, n_features or 1))  # sums, and sums of squares
        self._square, self._shift = 0.0, -2000  # the sum of squares is square * 2 ** (2 * shift)

    def add(self, labels: NDArray[Any], columns: NDArray[Any], values: NDArray[Any]) -> None:
        """Add the labels and the stored values of some rows."""
        found, counts = np.unique(labels, return_counts=True)
        for label, count in zip(found.tolist(), counts.tolist(), strict=True):
            self._counts[label] += count
        self._n_rows += labels.size
        self._n_values += values.size
        self._n_nonzero += int(np.count_nonzero(values))
        if values.size == 0:
            return
        largest = int(columns.max())
        self._n_columns = max(self._n_columns, largest + 1)
        if largest >= self._sizes.size:
            more = max(largest + 1, 2 * self._sizes.size) - self._sizes.size
            self._sizes = np.pad(self._sizes, (0, more))
            self._moments = np.pad(self._moments, ((0, 0), (0, more)))
        add_moments(columns, values, self._moments)
        self._add_squares(values, raise_sizes(columns, values, self._sizes))

    def _add_squares(self, values: NDArray[Any], largest: float) -> None:
        """Add the squares of values of this maximum magnitude."""
        if 0 < largest < math.inf:  # learners reject others
            # Scaled, so that squares do not overflow or underflow.
            shift = max(self._shift, math.frexp(largest)[1], LEAST_SHIFT)
            before = math.ldexp(self._square, 2 * (self._shift - shift))
            self._square = before + sum_squares(values, math.ldexp(1.0, -shift))
            self._shift = shift

    def finish(self, in_queries: bool, name: str) -> Facts:
        """The result; raise ValueError if there were no rows."""
        if self._n_rows == 0:
            raise ValueError(f"{name} holds no examples")
        labels = np.array(sorted(self._counts), dtype=np.float64)
        counts = np.array([self._counts[label] for label in labels.tolist()], dtype=np.int64)
        if (labels == np.floor(labels)).all() and np.abs(labels).max(initial=0) < 2**53:
            labels = labels.astype(np.int64)
        n_features = self._n_features or max(1, self._n_columns)
        sizes, deviations = np.zeros(n_features), np.zeros(n_features)
        sizes[: self._sizes.size] = self._sizes[:n_features]
        found = deviations_of(self._moments, self._n_rows)
        deviations[: found.size] = found[:n_features]
        return Facts(
            self._n_rows,
            n_features,
            self._n_values,
            self._n_nonzero,
            labels,
            counts,
            power_of_two(self._square / self._n_rows, 2 * self._shift),
            sizes,
            deviations,
            in_queries,
        )
