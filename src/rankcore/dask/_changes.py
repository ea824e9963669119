"""Compact form of models for sending: only the features that differ from a known state."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.state import OnlineState
from rankcore.ranking._perceptron_state import PairwiseState

# Arrays of a pairwise state whose axis is that of the features.
PAIRWISE = ("weights", "sums")
State = OnlineState | PairwiseState


@dataclass(frozen=True)
class Change:
    """Difference of a state from one that the receiver has; exact to the bit.

    Values are those of the state, not differences, which would be rounded. Values are compared by
    their bits, so that negative zeros are kept.
    """

    rest: Any  # all but its arrays by feature
    n_features: int
    # Features for which any array has changed: as indices or as a bit mask, whichever is shorter.
    # None for all.
    places: NDArray[Any] | None
    rows: dict[str, NDArray[Any]]  # new values of the arrays for these features

    @classmethod
    def of(cls, state: State, base: Change | None = None) -> Change:
        """Difference of a state from ``base``, by default from zeros.

        The whole state if that is not longer. O(n_features).
        """
        arrays = _by_feature(state)
        n_features = len(next(iter(arrays.values())))
        changed = np.zeros(n_features, dtype=bool)
        known = None if base is None else base.changed()
        for name, array in arrays.items():
            bits = _bits(array)
            if base is None:
                changed |= bits.any(axis=1)
            elif known is None:
                changed |= (bits != _bits(base.rows[name])).any(axis=1)
            else:
                differs = np.asarray(bits.any(axis=1))
                differs[known] = (bits[known] != _bits(base.rows[name])).any(axis=1)
                changed |= differs
        places = _packed(changed)
        rest = copy(state)
        _put(rest, {})
        whole = cls(rest, n_features, None, arrays)
        n_bytes = sum(array.nbytes for array in arrays.values())
        if np.count_nonzero(changed) * (n_bytes // n_features) + places.nbytes >= n_bytes:
            return whole
        return cls(rest, n_features, places, {name: a[changed] for name, a in arrays.items()})

    def onto(self, base: Change | None = None) -> Any:
        """Restore the state, with its own arrays; ``base`` as in `of`."""
        state, changed, arrays = deepcopy(self.rest), self.changed(), {}
        known = None if base is None else base.changed()
        for name, rows in self.rows.items():
            if changed is None:
                arrays[name] = rows.copy()
                continue
            array = np.zeros((self.n_features, *rows.shape[1:]), rows.dtype)
            if base is not None:
                array[slice(None) if known is None else known] = base.rows[name]
            array[changed] = rows
            arrays[name] = array
        _put(state, arrays)
        return state

    def changed(self) -> NDArray[Any] | None:
        """Indices of changed features; None for all."""
        if self.places is None or self.places.dtype == np.uint32:
            return self.places
        return np.flatnonzero(np.unpackbits(self.places, count=self.n_features))

    def __sizeof__(self) -> int:
        n_bytes = sum(rows.nbytes for rows in self.rows.values())
        return n_bytes + (0 if self.places is None else self.places.nbytes)


def _by_feature(state: State) -> dict[str, NDArray[Any]]:
    if isinstance(state, OnlineState):
        return state.by_feature
    return {name: getattr(state, name) for name in PAIRWISE}


def _put(state: State, arrays: dict[str, NDArray[Any]]) -> None:
    """Set the by-feature arrays of a state."""
    if isinstance(state, OnlineState):
        state.by_feature = arrays
        return
    for name in PAIRWISE:
        setattr(state, name, arrays.get(name))


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """Values as integers with the same bits, one row per feature."""
    whole = np.ascontiguousarray(array).view(f"u{array.itemsize}")
    return whole.reshape(len(array), prod(array.shape[1:]))


def _packed(changed: NDArray[np.bool_]) -> NDArray[Any]:
    """The indices of true entries, or all entries as bits, whichever is shorter."""
    if 4 * np.count_nonzero(changed) < changed.size / 8:
        return np.flatnonzero(changed).astype(np.uint32)
    return np.packbits(changed)
