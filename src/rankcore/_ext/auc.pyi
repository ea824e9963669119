import numpy as np
from numpy.typing import NDArray

N_SPLITTERS: int
N_CELLS: int
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
def place_splitters(
    values: NDArray[np.float64], starts: NDArray[np.uint16], low: float, cells_each: float
) -> int: ...
def count_buckets(
    scores: NDArray[np.float64],
    values: NDArray[np.float64],
    starts: NDArray[np.uint16],
    low: float,
    cells_each: float,
    half: int,
    counts: NDArray[np.int64],
) -> bool: ...
def deal(
    scores: NDArray[np.float64],
    marks: NDArray[np.int8] | NDArray[np.float64],
    values: NDArray[np.float64],
    starts: NDArray[np.uint16],
    low: float,
    cells_each: float,
    half: int,
    places: NDArray[np.int64],
    dealt_scores: NDArray[np.float64],
    dealt_marks: NDArray[np.int8] | NDArray[np.float64],
    tied: NDArray[np.float64],
) -> None: ...
