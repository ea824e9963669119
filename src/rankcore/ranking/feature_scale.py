"""Scales of features of a linear ranker: powers of two, so that scaled values are exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankcore._core.numbers import Floats
from rankcore._core.scales import SPARSE
from rankcore._core.sources import MemoryRows
from rankcore._ext.online_model import UNKNOWN
from rankcore._ext.pair_model import PairModel
from rankcore._ext.rows import Rows

# Ratio of deviations from which features are scaled: features that are normalised by query have
# ratios of 2 to 7, raw ones of 500 to 9,000. reproduce/defaults.md has the study.
WIDE = 64.0
# Between these limits scaled values and weights neither overflow nor underflow, in float32 too.
SAFE = (2.0**-60, 2.0**60)

NONE = np.empty(0)  # features are used as they are


def feature_scale(deviations: Callable[[], Floats], share: float) -> Floats:
    """Return factors of the features, none if their deviations are similar.

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
    model: PairModel, deviations: Callable[[], Floats], share: Callable[[], float]
) -> None:
    """Set the factors of a model, if unknown, by the first rows."""
    if model["scale"][0] == UNKNOWN:
        factors = feature_scale(deviations, share())
        model["scale"][...] = factors if factors.size else 1.0


def fix_by_rows(model: PairModel, rows: Rows) -> None:
    """Set the factors of a model, if unknown, by these rows."""
    source = MemoryRows(None, rows, None)
    fix_feature_scale(model, source.deviations, source.share_of_nonzero)
