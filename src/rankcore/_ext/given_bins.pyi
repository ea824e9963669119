import numpy as np
from numpy.typing import NDArray

from rankcore._ext.rows import Rows

def distinct(
    values: NDArray[np.float64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.int64],
    zeros: NDArray[np.int64],
    missing: NDArray[np.int64],
) -> None: ...
def join_neighbours(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.int64],
    shifts: NDArray[np.int64],
    most: int,
) -> None: ...
def cut_groups(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    counts: NDArray[np.int64],
    bounds: NDArray[np.int64],
    zero: NDArray[np.uint8],
    max_bins: int,
    cuts: NDArray[np.float64],
    cut_bounds: NDArray[np.int64],
) -> None: ...
def place(
    rows: Rows,
    taken: NDArray[np.int64],
    places: NDArray[np.int32],
    n_rows: int,
    cuts: NDArray[np.float64],
    cut_bounds: NDArray[np.int64],
    zero_missing: bool,
    codes: NDArray[np.uint8],
    cursors: NDArray[np.int64] | None,
    entries: NDArray[np.int32] | None,
) -> None: ...
