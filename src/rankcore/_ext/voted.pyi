from typing import Any, final

import numpy as np
from numpy.typing import NDArray

@final
class Voted:
    def __init__(
        self,
        weights: NDArray[np.float64],
        steps: NDArray[np.int64],
        thresholds: NDArray[np.float64],
        hypotheses: NDArray[np.float64],
        cuts: NDArray[np.float64],
        votes: NDArray[np.int64],
        born: NDArray[np.int64],
        progress: NDArray[np.int64],
        scale: float,
        strict: bool,
        first_vote: int,
        capped: bool,
    ) -> None: ...
    @property
    def capsule(self) -> Any: ...
    def end_hypothesis(self) -> None: ...
