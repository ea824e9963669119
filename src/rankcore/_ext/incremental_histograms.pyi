import numpy as np
from numpy.typing import NDArray

from rankcore._ext.columns import Columns
from rankcore._ext.rows import Rows

SLAB: int

def count(columns: Columns, features: NDArray[np.int32], counts: NDArray[np.int32]) -> None: ...
def pack(
    columns: Columns,
    features: NDArray[np.int32],
    cursors: NDArray[np.int32],
    cells: NDArray[np.uint16],
) -> None: ...
def fill(
    starts: NDArray[np.int32],
    cells: NDArray[np.uint16],
    factors: NDArray[np.float64],
    n_winning: int,
    sums: NDArray[np.float64],
) -> None: ...
def walk(
    columns: Columns,
    feature: int,
    changed: NDArray[np.uint8],
    starts: NDArray[np.int32],
    cells: NDArray[np.uint16],
    factors: NDArray[np.float64],
    n_winning: int,
    by: float,
    sums: NDArray[np.float64],
) -> None: ...
def spread(
    columns: Columns,
    rows: Rows,
    taken: NDArray[np.int64],
    feature: int,
    changed: NDArray[np.uint8],
    factors: NDArray[np.float64],
    n_winning: int,
    by: float,
    winning: NDArray[np.float64],
    losing: NDArray[np.float64],
) -> None: ...
def evaluate(
    columns: Columns,
    features: NDArray[np.int32],
    sums: NDArray[np.float64],
    winning: float,
    losing: float,
    edges: NDArray[np.float64],
) -> None: ...
def bound(
    features: NDArray[np.int32],
    edges: NDArray[np.float64],
    masses: NDArray[np.float64],
    then: NDArray[np.float64],
    now: NDArray[np.float64],
    added: NDArray[np.float64],
    taken: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None: ...
