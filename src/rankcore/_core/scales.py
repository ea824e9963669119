"""Whether features are on one scale, as learners with one step size need them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.warning import warn

# A feature is off the scale if it is so many times as large as half of the others.
ORDERS = 1000.0


def sizes_differ(sizes: NDArray[np.float64]) -> bool:
    """Whether these maximum magnitudes differ by orders."""
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return False
    middle = (sizes.size - 1) // 2
    return bool(sizes.max() / ORDERS > np.partition(sizes, middle)[middle])


def warn_of_sizes(sizes: NDArray[np.float64], learner: str) -> None:
    """Warn of features whose maximum magnitudes differ by orders of magnitude, naming the cure."""
    if not sizes_differ(sizes):
        return
    # No figures of these rows: a search, which fits many times, is to warn once.
    warn(
        f"the features differ in scale by orders of magnitude, column {sizes.argmax()} "
        f"being the largest, and large ones drown the others: put {learner} behind a scaler, as in "
        f"make_pipeline(StandardScaler(), {learner}()), or train with --scale auto"
    )
