"""Scales of features of a linear ranker: powers of two, so that scaled values are exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankcore._core.inputs import as_rows
from rankcore._core.kernels import csr_in_place
from rankcore._core.numbers import Floats
from rankcore._core.scales import SPARSE
from rankcore._core.sources import MemoryRows
from rankcore._ext.rows import Rows

# Ratio of deviations from which features are scaled: features that are normalised by query have
# ratios of 2 to 7, raw ones of 500 to 9,000. reproduce/defaults.md has the study.
WIDE = 64.0
# Between these limits scaled values and weights neither overflow nor underflow, in float32 too.
SAFE = (2.0**-60, 2.0**60)

NONE = np.empty(0)  # features are used as they are


def feature_scale(deviations: Callable[[], Floats], share: float) -> Floats:
    """Factors of the features, or none if their deviations are similar; constant ones have 1.

    ``share`` is that of values that are not 0. Rare features of sparse rows deviate little because
    they are rare: they are not scaled, and their deviations are not computed.
    """
    if share <= SPARSE:
        return NONE
    of_all = deviations()
    found = of_all[of_all > 0]
    if found.size == 0 or found.max() < WIDE * found.min():
        return NONE
    if not (found.min() >= SAFE[0] and found.max() <= SAFE[1]):
        return NONE
    factors = np.ones(of_all.size)
    factors[of_all > 0] = np.exp2(-np.rint(np.log2(found)))
    return factors


def fix_feature_scale(
    state: Any, deviations: Callable[[], Floats], share: Callable[[], float]
) -> None:
    """Set the factors of a state, if unknown, by the first rows."""
    if state.scale is None:
        state.scale = feature_scale(deviations, share())


def rows_of_pass(state: Any, rows: Rows, weighted: Rows | None = None) -> Rows:
    """Rows to learn from; those ``weighted``, all by default, fix unknown factors."""
    source = MemoryRows(None, rows if weighted is None else weighted, None)
    fix_feature_scale(state, source.deviations, source.share_of_nonzero)
    return scaled_rows(rows, state.scale)


def scaled_rows(rows: Rows, factors: Floats) -> Rows:
    """Copies of rows with scaled features; without factors the rows themselves."""
    if not factors.size:
        return rows
    kept: Any = factors.astype(rows.arrays[0].dtype)
    if rows.columns is None:
        return as_rows(rows.arrays[0] * kept)
    data, columns = (array[: rows.n_values] for array in rows.arrays[:2])
    starts = rows.arrays[2]
    return as_rows(csr_in_place(data * kept[columns], columns, starts, rows.n_features))
