import numpy as np
from numpy.typing import NDArray

def split(
    text: bytes | memoryview,
    name: str,
    first_line: int,
    wanted: str,
    spans: NDArray[np.int64],
    lines: NDArray[np.int64],
    more: bool = False,
) -> int: ...
def find_docids(
    text: bytes | memoryview, comments: NDArray[np.int64], spans: NDArray[np.int64]
) -> int: ...
def take(text: bytes | memoryview, spans: NDArray[np.int64], out: NDArray[np.uint32]) -> bool: ...
def numbers(
    text: bytes | memoryview, spans: NDArray[np.int64], out: NDArray[np.float64]
) -> int: ...
def first_equal(
    codes: NDArray[np.int64],
    words: NDArray[np.uint32],
    table: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None: ...
