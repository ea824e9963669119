import numpy as np
from numpy.typing import NDArray

def raise_sizes(
    columns: NDArray[np.int32],
    values: NDArray[np.float32] | NDArray[np.float64],
    sizes: NDArray[np.float64],
) -> float: ...
def sum_squares(values: NDArray[np.float32] | NDArray[np.float64], factor: float) -> float: ...
