"""The state of an online learner of ordered labels, and the marks of its loss curve."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rankcore._core.concurrency import Versioned
from rankcore._core.model_spec import ModelSpec, array_like, integer_table

# Epochs in a row that may fail to improve by `tol` before a fit stops.
PATIENCE = 5


@dataclass
class OnlineState(Versioned):
    """All that a learner knows: what is saved, resumed and scored with.

    Attributes
    ----------
    by_feature : dict of ndarray
        Kernel arrays with an axis of features: the first, or the second of three (tiles).
    others : dict of ndarray
        The other kernel arrays.
    settings : dict
        Hyper-parameters built into the arrays, which may not change while learning goes on.
    counts : ndarray of int64, shape (3,)
        Examples seen, their total rank loss, mistakes.
    curve : list of (int, int)
        Examples seen and total rank loss, at the marks of `checkpoints`.
    epochs : list of [int, int, int]
        Per pass: examples, total rank loss, mistakes.
    streaming : bool
        Whether the last pass is one of `partial_fit`, which the next call continues.
    averaged_at : (int, object) or None
        Averaged parameters, and the version they are of: kept, so that predicting again does not
        average again.
    """

    by_feature: dict[str, np.ndarray]
    others: dict[str, np.ndarray]
    settings: dict[str, Any]
    counts: np.ndarray = field(default_factory=lambda: np.zeros(3, np.int64))
    curve: list[tuple[int, int]] = field(default_factory=list)
    epochs: list[list[int]] = field(default_factory=list)
    streaming: bool = False
    averaged_at: tuple[int, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def t(self) -> int:
        """Examples seen."""
        return int(self.counts[0])

    def _few(self, columns: np.ndarray | None) -> bool:
        """Whether columns are fewer than the features, so that looking at them alone pays."""
        return columns is not None and all(
            columns.size < array.shape[feature_axis(array.ndim)]
            for array in self.by_feature.values()
        )

    def is_finite(self, columns: np.ndarray | None, append_only: tuple[str, ...]) -> bool:
        """Whether the parameters are numbers, if only those of ``columns`` may have changed."""
        columns = columns if self._few(columns) else None
        arrays = [
            *((name, array[_place(array, columns)]) for name, array in self.by_feature.items()),
            *self.others.items(),
        ]
        return all(
            bool(np.isfinite(array).all()) for name, array in arrays if name not in append_only
        )

    def own(self) -> None:
        """Copy arrays that are read-only, as those of a model that joblib mapped from a file."""
        for arrays in [self.by_feature, self.others]:
            for name, array in arrays.items():
                arrays[name] = array if array.flags.writeable else array.copy(order="K")
        if not self.counts.flags.writeable:
            self.counts = self.counts.copy()

    def array(self, name: str) -> np.ndarray:
        """A kernel array by name."""
        return self.by_feature[name] if name in self.by_feature else self.others[name]

    def mean(self, name: str) -> np.ndarray:
        """The average of an array over all examples, from its lazy sums."""
        return self.array(name) - self.array(name + "_sums") / max(self.t, 1)

    def averaged(self, compute: Callable[[], Any]) -> Any:
        """What ``compute`` returns, kept until the next change."""
        kept, version = self.averaged_at, self.version
        if kept is None or kept[0] != version:
            kept = version, compute()
            if version % 2 == 0:
                self.averaged_at = kept
        return kept[1]

    def snapshot(
        self,
        columns: np.ndarray | None,
        append_only: tuple[str, ...],
        overwritten: tuple[str, ...],
    ) -> Callable[[], None]:
        """A function that puts the present state back.

        ``columns`` are those the coming examples touch (None: all), so that a small batch costs
        its own size and not the model's; but the arrays ``overwritten`` change elsewhere too.
        Arrays of which only a free end is written need no copy.
        """
        columns = columns if self._few(columns) else None
        by_feature, others = dict(self.by_feature), dict(self.others)
        touched = {name: None if name in overwritten else columns for name in by_feature}
        saved = {
            name: array.copy(order="K") if touched[name] is None else array[_place(array, columns)]
            for name, array in by_feature.items()
            if name not in append_only
        }
        saved_others = {
            name: array.copy() for name, array in others.items() if name not in append_only
        }
        counts, n_curve, streaming = self.counts.copy(), len(self.curve), self.streaming
        epochs = [list(epoch) for epoch in self.epochs]

        def restore() -> None:
            self.by_feature, self.others = by_feature, others  # in place of any that grew
            for name, array in saved.items():
                by_feature[name][_place(by_feature[name], touched[name])] = array
            for name, array in saved_others.items():
                others[name][...] = array
            self.counts[:] = counts
            del self.curve[n_curve:]
            self.epochs, self.streaming = epochs, streaming

        return restore

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "averaged_at": None}


def feature_axis(n_dimensions: int) -> int:
    """The axis of a by-feature array that the features are on."""
    return 1 if n_dimensions == 3 else 0


def _place(array: np.ndarray, columns: np.ndarray | None) -> Any:
    """What to index a by-feature array with to get at columns; None for all."""
    if columns is None:
        return slice(None)
    return (slice(None), columns) if feature_axis(array.ndim) else columns


def check_columns(arrays: Any, name: str, n_features: int) -> None:
    """Raise ValueError unless a by-feature array of a spec has as many columns as features."""
    shapes = getattr(arrays, "shapes", None)
    shape = arrays[name].shape if shapes is None else shapes[name]  # a file tells it unread
    if shape[feature_axis(len(shape)) :][:1] != (n_features,):
        raise ValueError(f"its array {name} has shape {shape} for {n_features} features")


def restored_state(spec: ModelSpec, expected: OnlineState) -> OnlineState:
    """The state that a spec describes, of the form of another.

    Raises
    ------
    ValueError
        If an array has another form, or what was counted is impossible.
    """
    arrays = spec.arrays
    state = OnlineState(
        {n: array_like(arrays, f"by_feature.{n}", a) for n, a in expected.by_feature.items()},
        {n: array_like(arrays, f"others.{n}", a) for n, a in expected.others.items()},
        expected.settings,
        array_like(arrays, "counts", expected.counts),
        [tuple(point) for point in integer_table(arrays, "curve", 2)],
        integer_table(arrays, "epochs", 3),
        bool(spec.facts["streaming"]),
    )
    epochs = np.array(state.epochs, dtype=np.int64).reshape(-1, 3)
    curve = np.array([(0, 0), *state.curve], dtype=np.int64)
    if (
        (epochs < 0).any()
        or (epochs[:, 0] < np.maximum(epochs[:, 2], 1)).any()
        or not np.array_equal(epochs.sum(axis=0), state.counts)
        or (state.streaming and not state.epochs)
        or (np.diff(curve[:, 0]) < 1).any()
        or (np.diff(curve[:, 1]) < 0).any()
        or (curve[-1] > state.counts[:2]).any()
    ):
        raise ValueError("what it has counted is impossible")
    return state


def checkpoints(t: int, n: int) -> np.ndarray:
    """The example counts in t + 1 .. t + n that have at most two significant digits.

    They space a loss curve evenly on a logarithmic axis, 90 points a decade, and do not depend
    on how a stream is cut into calls.
    """
    marks: list[int] = []
    last = t + n
    while True:
        step = 10 ** max(0, len(str(t)) - 2)
        t = (t // step + 1) * step
        if t > last:
            return np.array(marks, dtype=np.int64)
        marks.append(t)


def flat(array: np.ndarray | None) -> Any:
    """A view of one axis, as the kernels take arrays of several weight vectors."""
    return None if array is None else array.reshape(-1)
