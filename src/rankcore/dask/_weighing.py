"""Weights of the rows of all shards, by sample and by class, as in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import encode
from rankcore.dask._shards import Shard
from rankcore.ordinal._weights import WeightFacts


@dataclass(frozen=True)
class Weighing:
    """Weight of a row."""

    known: NDArray[Any]  # the classes
    of_classes: NDArray[np.float64] | None  # what the weight of a row is multiplied by
    mean: float = 1.0  # what weights that are shares are divided by

    def of(self, shard: Shard) -> NDArray[np.float64]:
        """The weights of the rows of a shard, in the steps of `row_weights`."""
        weights = shard.weights
        if self.of_classes is not None:
            of_rows = self.of_classes[encode(shard.y, self.known)]
            weights = of_rows if weights is None else weights * of_rows
        assert weights is not None
        return weights / self.mean


def facts_of(shard: Shard, weighing: Weighing) -> WeightFacts:
    """Facts that decide how the weights of a shard are taken."""
    return WeightFacts.of(weighing.of(shard))
