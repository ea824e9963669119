import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def measure_depths(
    offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    children: NDArray[np.int32],
    sides: NDArray[np.uint8],
    thresholds: NDArray[np.float64],
    values: NDArray[np.float64],
    sets: NDArray[np.int64],
    words: NDArray[np.uint32],
    n_features: int,
    depths: NDArray[np.int32],
) -> None: ...
def add_scores(
    rows: Rows,
    offsets: NDArray[np.int64],
    features: NDArray[np.int32],
    children: NDArray[np.int32],
    sides: NDArray[np.uint8],
    thresholds: NDArray[np.float64],
    values: NDArray[np.float64],
    sets: NDArray[np.int64],
    words: NDArray[np.uint32],
    zero_missing: bool,
    first: int,
    last: int,
    scores: NDArray[np.float64],
) -> None: ...
