import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns

BOUNDED: int

def search(
    columns: Columns,
    features: NDArray[np.int32],
    offsets: NDArray[np.int64],
    whole: NDArray[np.uint8] | None,
    allowed: NDArray[np.uint8] | None,
    signs: NDArray[np.int8] | None,
    categorical: NDArray[np.uint8] | None,
    sums: NDArray[np.uint64],
    less: NDArray[np.uint64] | None,
    leaves: NDArray[np.void],
    l2: float,
    least: float,
    leaf_of: NDArray[np.int32] | None,
    row_words: NDArray[np.uint64] | None,
    least_rows: int,
    scratch: NDArray[np.uint64],
    room: NDArray[np.float64],
    counts: NDArray[np.int32],
    worths: NDArray[np.float64],
    bins: NDArray[np.int32],
    sides: NDArray[np.uint8],
) -> None: ...
def search_counted(
    columns: Columns,
    feature: int,
    sign: int,
    categorical: bool,
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    word: int,
    l2: float,
    least: float,
    least_rows: int,
    low: float,
    high: float,
    leaf_of: NDArray[np.int32] | None,
    leaf: int,
    row_words: NDArray[np.uint64] | None,
    scratch: NDArray[np.uint64],
    room: NDArray[np.float64],
    counts: NDArray[np.int32],
) -> tuple[float, int, int]: ...
def mark_set(
    columns: Columns,
    feature: int,
    n_firing: int,
    side: int,
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    word: int,
    leaf_of: NDArray[np.int32] | None,
    leaf: int,
    row_words: NDArray[np.uint64] | None,
    scratch: NDArray[np.uint64],
    counts: NDArray[np.int32],
    fires: NDArray[np.uint8],
) -> None: ...
def worth(word: int, l2: float, low: float, high: float) -> float: ...
def value(word: int, l2: float, low: float, high: float) -> float: ...
