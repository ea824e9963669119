"""States of learners: the shared part, and that of online ordinal learners."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankcore._core.model_spec import Field, ModelSpec, array_like, read_fields
from rankcore._core.numbers import Floats

# Maximum count in a model file: more than any run counts, and small enough that further learning
# exceeds neither int64 nor the integers of float64.
MOST_COUNTED = 2**50
# `checkpoints` of most single rows.
NO_MARKS = np.zeros(0, dtype=np.int64)
LANES = 8  # doubles in a line of cache


def widened(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Copy an array and append zeros, which take no memory until they are written."""
    wider = np.zeros(shape, dtype=array.dtype)
    wider[tuple(slice(0, size) for size in array.shape)] = array
    return wider


def zeros_by_line(shape: tuple[int, ...]) -> Floats:
    """Zeros aligned to cache lines; unaligned lanes cost up to twice as much."""
    n = math.prod(shape)
    buffer = np.zeros(n + LANES - 1)
    first = -(buffer.ctypes.data // 8) % LANES
    return buffer[first : first + n].reshape(shape)


@dataclass(kw_only=True)
class LearnerState:
    """State that every learner saves and continues from."""

    # Parameters that are built into the arrays; they must not change while learning continues.
    settings: dict[str, Any]
    log: list[list[Any]] = field(default_factory=list)  # figures of each pass, round or step
    # Values of all measures on held-out rows after each of them.
    validation: dict[str, list[float]] = field(default_factory=dict)
    # Whether the last pass is that of `partial_fit`, which the next call continues.
    streaming: bool = False

    def check_settings(self, settings: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Raise ValueError if a built-in parameter has changed; ``names`` has its public names."""
        for name, value in settings.items():
            known = self.settings[name]
            if value is not known and value != known:
                found = "" if name in names else f"={value!r}"
                begun = "what" if name in names else f"the {known!r}"
                raise ValueError(
                    f"{names.get(name, name)}{found} differs from {begun} this model started with, "
                    "which is built into it; set it back, or call fit"
                )

    def stream(self, figures: Sequence[Any]) -> None:
        """Open a pass with these statistics, unless one of `partial_fit` continues."""
        if not self.streaming:
            self.log.append(list(figures))
            self.streaming = True

    def history(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Return the log by column, with measures."""
        columns = zip(*self.log, strict=True) if self.log else [()] * len(names)
        logged = {name: list(column) for name, column in zip(names, columns, strict=True)}
        return logged | {name: list(values) for name, values in self.validation.items()}

    def forget_after(self, best: int | None) -> None:
        """Remove passes after the best one from the log."""
        if best is not None:
            self.log = self.log[:best]
            self.validation = {name: values[:best] for name, values in self.validation.items()}

    def ensure_writable(self) -> None:
        """Copy read-only arrays, such as those of a model mapped by joblib."""
        for name, value in vars(self).items():
            setattr(self, name, _writable(value))


def _writable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.flags.writeable else value.copy(order="K")
    if isinstance(value, dict):
        return {name: _writable(part) for name, part in value.items()}
    return value._make(map(_writable, value)) if hasattr(value, "_make") else value


def validation_arrays(log: Mapping[str, Sequence[float]]) -> dict[str, NDArray[Any]]:
    """Convert values on held-out rows to arrays of a spec, in the order of the measures."""
    values = enumerate(log.values())
    return {f"validation.{i}": np.array(one, dtype=np.float64) for i, one in values}


def log_array(log: Sequence[Sequence[float]], figures: Sequence[str]) -> Floats:
    """Convert a log of real numbers to an array of a spec."""
    return np.array(log, dtype=np.float64).reshape(-1, len(figures))


def restored_log(spec: ModelSpec, figures: Sequence[str]) -> list[list[Any]]:
    """Restore a log from `log_array`; raise ValueError if it is invalid."""
    arrays = {"log": spec.arrays["log"]}  # never mapped
    form = Field(("iterations", len(figures)), infinite=True)
    return read_fields(arrays, {"log": form})["log"].tolist()


def restored_validation(spec: ModelSpec, n: int) -> dict[str, list[float]]:
    """Restore values on held-out rows; raise ValueError if there are more than n passes."""
    log = {}
    for i, name in enumerate(spec.facts["validation"]):
        values = spec.arrays[f"validation.{i}"]
        whole = values.dtype == np.float64 and values.ndim == 1 and values.size <= n
        if not whole or not np.isfinite(values).all() or str(name) in log:
            raise ValueError(f"the model must have at most {n} finite values of {name}, one a pass")
        log[str(name)] = values.tolist()
    return log


@dataclass(frozen=True)
class OnlineParameters:
    """Copies of the arrays that an `OnlineState` learned up to an iteration."""

    by_feature: dict[str, NDArray[Any]]
    others: dict[str, NDArray[Any]]
    counts: NDArray[np.int64]
    n_curve: int  # length of the loss curve


@dataclass
class OnlineState(LearnerState):
    """State of an online learner of ordered labels."""

    # Arrays of earlier values: once one is not finite, it and its copies stay so.
    earlier: ClassVar[tuple[str, ...]] = ()
    # Kernel arrays with an axis of features: the first, or the second of three (tiles).
    by_feature: dict[str, NDArray[Any]]
    others: dict[str, NDArray[Any]]  # the other kernel arrays
    # (3,): examples seen, their total rank loss, mistakes; also the statistics of a pass.
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    # Examples seen and total rank loss, at the marks of `checkpoints`.
    curve: list[tuple[int, int]] = field(default_factory=list)
    offered: int = 0  # weighted rows passed to `partial_fit`, visited or not
    # Averaged parameters, until the next example is learned.
    averages: Any = field(default=None, repr=False, compare=False)

    @property
    def t(self) -> int:
        """Examples seen."""
        return int(self.counts[0])

    def array(self, name: str) -> NDArray[Any]:
        """Return a kernel array by name."""
        return self.by_feature[name] if name in self.by_feature else self.others[name]

    def mean(self, name: str) -> NDArray[Any]:
        """Return the average of an array over all examples; without ``average``, the array."""
        last = self.array(name)
        return (
            averages(last, self.array(name + "_sums"), self.t) if self.settings["average"] else last
        )

    def averaged(self, compute: Callable[[], Any]) -> Any:
        """Return the result of ``compute``, cached until the next change."""
        if self.averages is None:
            self.averages = compute()
        return self.averages

    def parameters(self) -> OnlineParameters:
        """Copy the learned arrays, for `restore`."""
        return OnlineParameters(
            by_feature={name: one.copy(order="K") for name, one in self.by_feature.items()},
            others={name: one.copy(order="K") for name, one in self.others.items()},
            counts=self.counts.copy(),
            n_curve=len(self.curve),
        )

    def restore(self, parameters: OnlineParameters) -> None:
        """Restore a copy; the log is unchanged."""
        self.by_feature = parameters.by_feature
        self.others = parameters.others
        self.counts = parameters.counts
        del self.curve[parameters.n_curve :]
        self.averages = None

    def ensure_writable(self) -> None:
        """Copy read-only arrays."""
        for arrays in (self.by_feature, self.others):
            for name, array in arrays.items():
                if not array.flags.writeable:
                    arrays[name] = array.copy(order="K")
        if not self.counts.flags.writeable:
            self.counts = self.counts.copy()

    def make_room(self) -> bool:
        """Enlarge the arrays if the kernel stopped for lack of capacity."""
        return False

    def _few(self, columns: NDArray[Any] | None) -> NDArray[Any] | None:
        """Columns, if few enough that checking only them is faster; else None."""
        few = columns is not None and all(
            columns.size < array.shape[feature_axis(array.ndim)]
            for array in self.by_feature.values()
        )
        return columns if few else None

    def is_finite(self, columns: NDArray[Any] | None) -> bool:
        """Whether the parameters are finite, if only those of ``columns`` may have changed."""
        columns = self._few(columns)
        for name in [*self.by_feature, *self.others]:
            array = self.array(name)
            if name in self.earlier or array.dtype.kind != "f":
                continue
            if columns is not None and name in self.by_feature:
                array = array.take(columns, axis=feature_axis(array.ndim))
            if not np.isfinite(array).all():
                return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "averages": None}


def averages(last: NDArray[Any], sums: NDArray[Any], t: Any) -> NDArray[Any]:
    """Compute averages of arrays over t examples, from their lazy sums."""
    t = np.maximum(t, 1)
    if last.dtype.kind == "i":
        # One division of exact integers, so that equal averages are equal and the order is kept.
        return np.asarray((last * t - sums) / t)
    return np.asarray(last - sums / t)


def feature_axis(n_dimensions: int) -> int:
    """Return the axis of features in a by-feature array."""
    return 1 if n_dimensions == 3 else 0


def check_columns(arrays: Any, name: str, n_features: int) -> None:
    """Raise ValueError unless a by-feature array of a spec has n_features columns."""
    shapes = getattr(arrays, "shapes", None)
    shape = arrays[name].shape if shapes is None else shapes[name]  # known before the array is read
    if shape[feature_axis(len(shape)) :][:1] != (n_features,):
        raise ValueError(f"its array {name} has shape {shape} for {n_features} features")


def described(state: OnlineState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the facts and arrays of a spec for `restored_state`."""
    arrays = {f"by_feature.{name}": array for name, array in state.by_feature.items()}
    arrays |= {f"others.{name}": array for name, array in state.others.items()}
    arrays["counts"] = state.counts
    arrays["curve"] = np.array(state.curve, dtype=np.int64).reshape(-1, 2)
    arrays["log"] = np.array(state.log, dtype=np.int64).reshape(-1, 3)
    arrays |= validation_arrays(state.validation)
    facts = {
        "settings": state.settings,
        "streaming": state.streaming,
        "validation": [*state.validation],
        "offered": state.offered,
    }
    return facts, arrays


def are_counts(*arrays: NDArray[np.int64]) -> bool:
    """Whether all numbers are from 0 to `MOST_COUNTED`."""
    return all(((array >= 0) & (array <= MOST_COUNTED)).all() for array in arrays)


def restored_state(spec: ModelSpec, expected: OnlineState) -> OnlineState:
    """Restore the state of a spec into ``expected``, which declares its form.

    Raises ValueError if an array has another form, or counts are impossible.
    """
    arrays, state = spec.arrays, expected
    state.by_feature, state.others = (
        {name: array_like(arrays, f"{part}.{name}", array) for name, array in expected.items()}
        for part, expected in [("by_feature", state.by_feature), ("others", state.others)]
    )
    state.counts = array_like(arrays, "counts", state.counts)
    tables = {"curve": Field(("points", 2), "int64"), "log": Field(("passes", 3), "int64")}
    curve, log = read_fields(arrays, tables).values()
    state.curve, state.log = [tuple(point) for point in curve.tolist()], log.tolist()
    state.streaming, state.offered = bool(spec.facts["streaming"]), int(spec.facts["offered"])
    if state.offered < 0:
        raise ValueError(f"the number of weighted rows must be >= 0; found {state.offered}")
    state.validation = restored_validation(spec, len(log))
    best = spec.facts["best_iteration"]
    if best is not None and not 1 <= int(best) <= len(log):
        raise ValueError(f"the best pass must be in 1 .. {len(log)}; found {best!r}")
    if not are_counts(log, curve, state.counts) or (state.streaming and not state.log):
        raise ValueError(f"its counts must be from 0 to {MOST_COUNTED}, with a pass to continue")
    return state


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


def flat(array: NDArray[Any] | None) -> Any:
    """Flatten an array of several weight vectors to a view, for the kernels."""
    return None if array is None else array.reshape(-1)
