import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def stumps(
    rows: Rows,
    offsets: NDArray[np.int64],
    thresholds: NDArray[np.float64],
    values: NDArray[np.float64],
    missing: NDArray[np.float64],
    at_zero: NDArray[np.float64],
    reference: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
def directions(
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
    out: NDArray[np.uint8],
) -> None: ...
def interventional(
    rows: NDArray[np.uint8],
    others: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    columns: NDArray[np.int32],
    children: NDArray[np.int32],
    values: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
