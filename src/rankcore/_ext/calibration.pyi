import numpy as np
from numpy.typing import NDArray

def probabilities(
    scores: NDArray[np.float64],
    curves: NDArray[np.float64],
    knots: NDArray[np.float64],
    slope: float,
    found: NDArray[np.float64],
) -> None: ...
def cheapest_ranks(
    table: NDArray[np.float64], costs: NDArray[np.float64], found: NDArray[np.int32]
) -> None: ...
