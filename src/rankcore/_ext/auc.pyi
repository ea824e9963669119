import numpy as np
from numpy.typing import NDArray

N_SPLITTERS: int
COLUMNS: int

def sum_pairs(
    scores: NDArray[np.float64],
    marks: NDArray[np.int8] | NDArray[np.float64],
    rows: NDArray[np.int64] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    sums: NDArray[np.float64],
) -> int: ...
def count_buckets(
    scores: NDArray[np.float64], splitters: NDArray[np.float64], counts: NDArray[np.int64]
) -> bool: ...
def deal(
    scores: NDArray[np.float64],
    marks: NDArray[np.int8] | NDArray[np.float64],
    splitters: NDArray[np.float64],
    places: NDArray[np.int64],
    dealt_scores: NDArray[np.float64],
    dealt_marks: NDArray[np.int8] | NDArray[np.float64],
    tied: NDArray[np.float64],
) -> None: ...
