import numpy as np
from numpy.typing import NDArray

TROUBLES: list[str]
N_COLUMNS: int

def count_pairs(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    rows: NDArray[np.int64] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    counts: NDArray[np.int64],
) -> tuple[int, int]: ...
def margin_losses(
    scores: NDArray[np.float64],
    labels: NDArray[np.float64],
    rows: NDArray[np.int64] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    rho: float,
    values: NDArray[np.float64],
) -> tuple[int, int]: ...
def sort_queries(
    scores: NDArray[np.float64],
    rows: NDArray[np.int64] | None,
    bounds: NDArray[np.int64],
    first: int,
    last: int,
    sorted_rows: NDArray[np.int64],
) -> None: ...
