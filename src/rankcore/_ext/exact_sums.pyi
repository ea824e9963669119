import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns
from rankcore._ext.rows import Rows

def to_fixed(values: NDArray[np.float64], exponent: int, words: NDArray[np.int64]) -> int: ...
def bin_sums(
    columns: Columns,
    words: NDArray[np.int64],
    bounds: NDArray[np.int64],
    sums: NDArray[np.int64],
) -> None: ...
def feature_sums(
    rows: Rows,
    docs: NDArray[np.int64],
    by: NDArray[np.float64],
    scales: NDArray[np.float64],
    sums: NDArray[np.int64],
) -> None: ...
