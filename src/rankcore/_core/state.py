"""The shared part of the states of learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, ModelSpec, read_fields
from rankcore._core.numbers import Floats

# `checkpoints` of most single rows.
NO_MARKS = np.zeros(0, dtype=np.int64)


def widened(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Copy an array and append zeros, which take no memory until they are written."""
    wider = np.zeros(shape, dtype=array.dtype)
    wider[tuple(slice(0, size) for size in array.shape)] = array
    return wider


@dataclass(kw_only=True)
class LearnerState:
    """State that all learners have, which files store and later fits continue."""

    # Parameters that are built into the arrays; they must not change while learning continues.
    settings: dict[str, Any]
    log: list[list[Any]] = field(default_factory=list)  # statistics of each pass, round or step
    # Values of all measures on held-out rows after each of them.
    validation: dict[str, list[float]] = field(default_factory=dict)
    # Whether the last pass is that of `partial_fit`, which the next call continues.
    streaming: bool = False

    def check_settings(self, settings: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Raise ValueError if a built-in parameter has changed; ``names`` has its public names."""
        for name, value in settings.items():
            setting = self.settings[name]
            if value is not setting and value != setting:
                shown = "" if name in names else f"={value!r}"
                begun = "what" if name in names else f"the {setting!r}"
                raise ValueError(
                    f"{names.get(name, name)}{shown} differs from {begun} this model started with: "
                    "set it back, or call fit for a new model"
                )

    def stream(self, statistics: Sequence[Any]) -> None:
        """Open a pass with these statistics, unless a stream of `partial_fit` has one open."""
        if not self.streaming:
            self.log.append(list(statistics))
            self.streaming = True

    def history(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the log and the held-out measures as lists by name."""
        columns = zip(*self.log, strict=True) if self.log else [()] * len(names)
        logged = {name: list(column) for name, column in zip(names, columns, strict=True)}
        return logged | {name: list(values) for name, values in self.validation.items()}

    def forget_after(self, best: int | None) -> None:
        """Remove passes after the best one from the log."""
        if best is not None:
            self.log = self.log[:best]
            self.validation = {name: values[:best] for name, values in self.validation.items()}


def validation_arrays(log: Mapping[str, Sequence[float]]) -> dict[str, NDArray[Any]]:
    """Convert values on held-out rows to arrays of a spec, in the order of the measures."""
    values = enumerate(log.values())
    return {f"validation.{i}": np.array(numbers, dtype=np.float64) for i, numbers in values}


def log_array(log: Sequence[Sequence[float]], statistics: Sequence[str]) -> Floats:
    """Convert a log of real numbers to an array of a spec."""
    return np.array(log, dtype=np.float64).reshape(-1, len(statistics))


def restored_log(spec: ModelSpec, statistics: Sequence[str]) -> list[list[Any]]:
    """Restore a log from `log_array`; raise ValueError if it is invalid."""
    arrays = {"log": spec.arrays["log"]}  # never mapped
    form = Field(("iterations", len(statistics)), infinite=True)
    return read_fields(arrays, {"log": form})["log"].tolist()


def restored_validation(spec: ModelSpec, n: int) -> dict[str, list[float]]:
    """Restore values on held-out rows; raise ValueError if there are more than n passes."""
    log = {}
    for i, name in enumerate(spec.facts["validation"]):
        values = spec.arrays[f"validation.{i}"]
        whole = values.dtype == np.float64 and values.ndim == 1 and values.size <= n
        if not whole or not np.isfinite(values).all() or str(name) in log:
            raise ValueError(
                f"the model must have at most {n} finite values of {name}, one per pass"
            )
        log[str(name)] = values.tolist()
    return log


def checkpoints(t: int, n: int) -> NDArray[np.int64]:
    """List the example counts in t + 1 .. t + n that have at most two significant digits.

    They space a loss curve evenly on a logarithmic axis, with 90 points per decade, and do not
    depend on the division of a stream into calls.
    """
    marks: list[int] = []
    last = t + n
    while True:
        step = 10 ** max(0, len(str(t)) - 2)
        t = (t // step + 1) * step
        if t > last:
            return np.array(marks, dtype=np.int64) if marks else NO_MARKS
        marks.append(t)
