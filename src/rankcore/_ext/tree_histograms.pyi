import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns

LANES: int
CODES: int

def quantise(
    won: NDArray[np.float64],
    lost: NDArray[np.float64],
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
) -> float: ...
def lay_out(columns: Columns, features: NDArray[np.int32], blocks: NDArray[np.uint8]) -> None: ...
def sum_blocks(
    blocks: NDArray[np.uint8],
    n_rows: int,
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    sums: NDArray[np.uint64],
) -> None: ...
def sum_columns(
    columns: Columns,
    features: NDArray[np.int32],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    sums: NDArray[np.uint64],
) -> None: ...
def lay_out_cells(
    columns: Columns,
    features: NDArray[np.int32],
    offsets: NDArray[np.int64],
    whole: NDArray[np.uint8],
    bounds: NDArray[np.int64],
    cells: NDArray[np.int32] | None,
) -> None: ...
def sum_cells(
    bounds: NDArray[np.int64],
    cells: NDArray[np.int32],
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    sums: NDArray[np.uint64],
) -> None: ...
