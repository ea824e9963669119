"""Sums of threshold stumps: the model of boosting with stumps.

`StumpSum` is the list of stumps that rounds add to. Merged by column to a step function of each
feature, it is scored (by the kernel `rankcore._ext.stumps`), explained and exported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, read_fields
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring
from rankcore._ext import stumps as kernels
from rankcore._ext.rows import Rows


class Contribution(NamedTuple):
    """Shape function of a feature: a step function of its value, added to the score.

    Attributes
    ----------
    thresholds : ndarray of float64, shape (n_thresholds,)
        Thresholds, ascending.
    values : ndarray of float64, shape (n_thresholds + 1,)
        ``values[j]`` is added if j thresholds are below the feature's value.
    missing : float
        Added if the value is missing.
    """

    thresholds: NDArray[np.float64]
    values: NDArray[np.float64]
    missing: float


class Merged(NamedTuple):
    """Contributions of all columns, in the layout of ``rc_stumps`` in rankcore.h."""

    offsets: NDArray[np.int64]
    thresholds: Floats
    values: Floats
    missing: Floats
    at_zero: Floats
    base: float


# Arrays of a model file.
FIELDS = {
    "features": Field(("stumps",), "int32"),
    "thresholds": Field(("stumps",), infinite=True),
    "sides": Field(("stumps",), "uint8"),
    "alphas": Field(("stumps",)),
}


@dataclass
class StumpSum:
    """Stumps in order of rounds."""

    n_features: int
    zero_missing: bool  # whether 0 is missing, as NaN is
    # A stump adds alpha where the feature is above the threshold and, if its side is 1, where the
    # value is missing.
    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    sides: list[int] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    _merged: tuple[int, Merged] | None = field(default=None, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.alphas)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_merged": None}

    def add(self, feature: int, threshold: float, side: int, alpha: float) -> None:
        """Add a stump."""
        self.features.append(feature)
        self.thresholds.append(threshold)
        self.sides.append(side)
        self.alphas.append(alpha)

    def first(self, n: int) -> StumpSum:
        """Return a copy of the first n stumps."""
        return replace(
            self,
            features=self.features[:n],
            thresholds=self.thresholds[:n],
            sides=self.sides[:n],
            alphas=self.alphas[:n],
            _merged=None,
        )

    def merged(self) -> Merged:
        """Merge stumps by column. O(n_features + stumps * log(stumps))."""
        if self._merged is None or self._merged[0] != len(self):
            self._merged = len(self), self._merge()
        return self._merged[1]

    def _merge(self) -> Merged:
        d = self.n_features
        features = np.array(self.features, dtype=np.int64)
        thresholds, alphas = np.array(self.thresholds), np.array(self.alphas)
        order = np.lexsort((thresholds, features))
        new = np.ones(order.size, dtype=bool)
        f, t = features[order], thresholds[order]
        new[1:] = (f[1:] != f[:-1]) | (t[1:] != t[:-1])
        offsets = np.concatenate([[0], np.cumsum(np.bincount(f[new], minlength=d))])
        steps = np.zeros(int(new.sum()))
        np.add.at(steps, np.cumsum(new) - 1, alphas[order])
        missing = np.zeros(d)
        np.add.at(missing, features, alphas * np.array(self.sides, dtype=np.float64))
        values = np.zeros(steps.size + d)
        at_zero = missing.copy() if self.zero_missing else np.zeros(d)
        cuts = t[new]
        for column in np.flatnonzero(np.diff(offsets)).tolist():
            first, last = int(offsets[column]), int(offsets[column + 1])
            curve = np.concatenate([[0.0], np.cumsum(steps[first:last])])
            values[first + column : last + column + 1] = curve
            if not self.zero_missing:
                at_zero[column] = curve[np.searchsorted(cuts[first:last], 0.0)]
        return Merged(offsets.astype(np.int64), cuts, values, missing, at_zero, at_zero.sum())

    def zeros(self, n_rows: int) -> Floats:
        """Return the scores of rows before the first round."""
        return np.zeros(n_rows)

    def score(self, rows: Rows) -> Floats:
        """Score rows by the merged stumps."""
        scores = np.empty(rows.n_rows)
        merged = self.merged()
        kernels.score(
            rows,
            merged.offsets,
            merged.thresholds,
            merged.values,
            merged.missing,
            merged.at_zero,
            merged.base,
            scores,
        )
        return scores

    def fire(self, i: int, rows: Rows, fires: NDArray[np.uint8]) -> None:
        """Write the mask of the rows where stump i fires."""
        kernels.fire(
            rows, self.features[i], self.thresholds[i], self.sides[i], self.zero_missing, fires
        )

    def add_member(self, i: int, rows: Rows, scores: Floats) -> None:
        """Add stump i to the scores of rows."""
        fires = np.empty(rows.n_rows, dtype=np.uint8)
        self.fire(i, rows, fires)
        scores += self.alphas[i] * fires

    def records(self) -> NDArray[np.void]:
        """Return the stumps as a structured array."""
        kinds = [("feature", np.int32), ("threshold", np.float64)]
        records = np.empty(len(self), dtype=[*kinds, ("missing", np.uint8), ("alpha", np.float64)])
        records["feature"], records["threshold"] = self.features, self.thresholds
        records["missing"], records["alpha"] = self.sides, self.alphas
        return records

    def contribution(self, feature: int) -> Contribution:
        """Return the shape function of a feature."""
        merged = self.merged()
        first, last = merged.offsets[feature : feature + 2].tolist()
        return Contribution(
            merged.thresholds[first:last].copy(),
            merged.values[first + feature : last + feature + 1].copy(),
            float(merged.missing[feature]),
        )

    def importances(self) -> Floats:
        """Return the fraction of each feature in the sum of |alpha|."""
        sums = np.bincount(self.features, np.abs(self.alphas), minlength=self.n_features)
        total = sums.sum()
        return np.asarray(sums / total if total > 0 else sums, dtype=np.float64)

    def scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form."""
        parts = self.merged()._asdict()
        return Scoring("stumps", parts | {"base": np.array([parts["base"]])})

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        return {
            name: np.array(getattr(self, name), dtype=field.dtype) for name, field in FIELDS.items()
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], n_features: int, zero_missing: bool
    ) -> StumpSum:
        """Restore from the arrays of a model file; raise ValueError if they are invalid."""
        arrays = read_fields({**arrays}, FIELDS)
        features = arrays["features"]
        if features.size and not 0 <= features.min() <= features.max() < n_features:
            raise ValueError(f"features of stumps must be below {n_features}")
        if (arrays["sides"] > 1).any():
            raise ValueError("sides of stumps must be 0 or 1")
        return cls(
            n_features,
            zero_missing,
            arrays["features"].tolist(),
            arrays["thresholds"].tolist(),
            arrays["sides"].tolist(),
            arrays["alphas"].tolist(),
        )
