"""Tiles: the weights of some members of an ensemble side by side, as vector lanes read them."""

from __future__ import annotations

import math

import numpy as np

from rankcore._core.state import OnlineState, averages

# A tile visits all its members for each example, so its weights should stay in the nearest caches:
# at most this number of bytes, unless the tile has the fewest members, a line of cache. One wide
# tile costs less than two: what an example costs beside its members is paid for each tile.
TILE_BYTES = 2**16
LANES = 8  # doubles in a line of cache
MAX_WIDTH = 128


def zeros_by_line(shape: tuple[int, int, int]) -> np.ndarray:
    """Zeros aligned to cache lines; eight lanes across two lines cost twice as much."""
    n = math.prod(shape)
    buffer = np.zeros(n + LANES - 1)
    first = -(buffer.ctypes.data // 8) % LANES
    return buffer[first : first + n].reshape(shape)


def tile_width(n_features: int, n_members: int) -> int:
    """Number of members in a tile: as many as fit into a cache, in fours, of about equal tiles."""
    width = max(LANES, min(MAX_WIDTH, TILE_BYTES // (8 * n_features)))
    n_tiles = math.ceil(n_members / width)
    return 4 * math.ceil(n_members / n_tiles / 4)


def member_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Weights and thresholds that the members predict with, in tiles."""
    weights, thresholds = state.by_feature["weights"], state.others["thresholds"]
    if not state.settings["average_members"]:
        return weights, thresholds
    n_tiles, _, width = weights.shape
    t = state.others["seen"][:, 0].reshape(n_tiles, 1, width)
    steps = averages(state.others["steps"], state.others["steps_sums"], t)
    scale = float(state.others["scale"][0])
    return averages(weights, state.by_feature["weights_sums"], t), scale * steps


def mean_parameters(state: OnlineState) -> tuple[np.ndarray, np.ndarray]:
    """Means of the members' parameters, summed in the order of the members."""
    weights, thresholds = (
        array.transpose(1, 0, 2).reshape(array.shape[1], -1)[:, : state.settings["n_estimators"]]
        for array in member_parameters(state)
    )
    return weights.copy().mean(axis=1), thresholds.copy().mean(axis=1)
