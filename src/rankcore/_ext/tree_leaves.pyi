import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns

def divide(
    columns: Columns,
    feature: int,
    bin: int,
    side: int,
    of_code: NDArray[np.uint8] | None,
    least: int,
    fires: NDArray[np.uint8],
    rows: NDArray[np.int32],
    words: NDArray[np.uint64],
    spare_rows: NDArray[np.int32],
    spare_words: NDArray[np.uint64],
) -> int: ...
def label(rows: NDArray[np.int32], leaf: int, leaf_of: NDArray[np.int32]) -> None: ...
def weigh(
    leaf_of: NDArray[np.int32],
    won: NDArray[np.float64],
    lost: NDArray[np.float64],
    taken: NDArray[np.uint8] | None,
    wins: NDArray[np.float64],
    losses: NDArray[np.float64],
    gains: NDArray[np.float64],
) -> None: ...
