import numpy as np
from numpy.typing import NDArray

def weigh(
    scores: NDArray[np.float64],
    order: NDArray[np.int32],
    queries: NDArray[np.int64],
    levels: NDArray[np.int64],
    gains: NDArray[np.float64],
    discounts: NDArray[np.float64] | None,
    row_weights: NDArray[np.float64] | None,
    scales: NDArray[np.float64],
    leaf_of: NDArray[np.int32] | None,
    won: NDArray[np.float64] | None,
    lost: NDArray[np.float64] | None,
    between: NDArray[np.float64] | None,
    places: NDArray[np.int64],
    room: NDArray[np.float64],
) -> float: ...
