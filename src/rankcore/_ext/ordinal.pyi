from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

# The C functions as capsules, for capi.pyx.
c_functions: dict[str, Any]

def prank_learn(
    rows: Rows,
    ranks: NDArray[np.int32],
    order: NDArray[np.int32] | None,
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    steps: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    weight_sums: NDArray[np.float64] | None,
    step_sums: NDArray[np.int64] | None,
    counts: NDArray[np.int64],
    scale: float,
    strict: bool,
    marks: NDArray[np.int64],
    losses: NDArray[np.int64],
) -> int: ...
def prank_mean(
    weights: NDArray[np.float64],
    steps: NDArray[np.int64],
    weight_sums: NDArray[np.float64],
    step_sums: NDArray[np.int64],
    t: int,
    scale: float,
    mean_weights: NDArray[np.float64],
    mean_thresholds: NDArray[np.float64],
) -> None: ...
def threshold_ranks(
    scores: NDArray[np.float64], thresholds: NDArray[np.float64], out: NDArray[np.int32]
) -> None: ...
