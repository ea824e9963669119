"""Arithmetic of engines that compute in single precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankcore._core.numbers import Floats
from rankcore.exporters.reduced import Refused

LARGEST = float(np.finfo(np.float32).max)
# Added by Solr to each threshold, in single precision.
SLACK = np.float32(1e-6)


def single(value: float, what: str) -> float:
    """Nearest single-precision number, as a double; raise Refused if there is none."""
    return float(singles(np.array([value]), what)[0])


def singles(values: Floats, what: str) -> Floats:
    """As `single`, for an array."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float32).astype(np.float64)
    beyond = ~np.isfinite(found)
    if beyond.any():
        value = float(values[beyond][0])
        raise Refused(f"{what} is {value!r}, beyond the range of single precision")
    return found


def next_above(values: Floats) -> Floats:
    """Next larger single-precision numbers: x < result is equivalent to x <= `values`."""
    with np.errstate(over="ignore"):
        return np.nextafter(values.astype(np.float32), np.float32(np.inf)).astype(np.float64)


def before_slack(thresholds: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Thresholds that Solr's tolerance maps to the wanted ones, exactly, and a mask of success.

    All are single-precision numbers. There may be none if numbers a millionth below are spaced
    more widely than at the threshold, as around zero, or if their sums with the tolerance are
    ties, as for about half of those between 2.9e-6 and 3.8e-6.
    """
    wanted = thresholds.astype(np.float32)
    found = (wanted - SLACK).astype(np.float32)
    for direction in (np.float32(-np.inf), np.float32(np.inf)):
        candidate = (wanted - SLACK).astype(np.float32)
        for _ in range(4):
            found = np.where(found + SLACK == wanted, found, candidate)
            candidate = np.nextafter(candidate, direction)
    return found.astype(np.float64), found + SLACK == wanted
