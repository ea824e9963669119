"""The passes of an online learner of ordered labels: its log, loss curve and model."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import uninterrupted
from rankcore._core.model_spec import Field, ModelSpec, read_fields
from rankcore._core.state import LearnerState, restored_validation, validation_arrays
from rankcore._ext.online_model import MOST_COUNTED, are_counts


@dataclass(kw_only=True)
class OnlineRecord(LearnerState):
    """An online learner's model and passes."""

    model: Any  # an ``OnlineModel`` of ``_ext/online_model``
    # Examples seen and total rank loss, at the marks of `checkpoints`.
    curve: list[tuple[int, int]] = field(default_factory=list)
    offered: int = 0  # weighted rows passed to `partial_fit`, visited or not

    @property
    def t(self) -> int:
        """Examples seen."""
        return int(self.model.t)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Examples seen, their total rank loss, mistakes; also the statistics of a pass."""
        counts: NDArray[np.int64] = self.model["counts"]
        return counts

    def check_settings(self, settings: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Raise ValueError if a built-in parameter has changed, but for one number of half-life."""
        known = self.settings.get("half_life")
        if isinstance(settings.get("half_life"), float) and isinstance(known, float):
            settings = {**settings, "half_life": known}
        super().check_settings(settings, names)

    def follow_half_life(self, half_life: Any) -> None:
        """Let averages forget at a rate that `check_settings` allows."""
        if half_life != self.settings.get("half_life"):
            with uninterrupted():
                self.settings = {**self.settings, "half_life": half_life}
                self.model.set_half_life(half_life)

    def parameters(self) -> tuple[Any, int]:
        """Copy the learned parameters, for `restore`."""
        return self.model.copy(), len(self.curve)

    def restore(self, parameters: tuple[Any, int]) -> None:
        """Restore a copy; the log is unchanged."""
        self.model, n_curve = parameters
        del self.curve[n_curve:]

    def grown(self, n_features: int, below: int, above: int) -> Self:
        """Return a record of more features or ranks, apart from this one."""
        made = copy(self)
        made.model = self.model.copy().wider(n_features, below, above)
        made.log = [list(statistics) for statistics in self.log]
        made.curve = list(self.curve)
        return made

    def ensure_writable(self) -> None:
        """Copy read-only arrays."""
        self.model.ensure_writable()


def described(record: OnlineRecord) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the metadata and arrays of a spec for `restored`."""
    arrays: dict[str, NDArray[Any]] = record.model.saved()
    arrays["curve"] = np.array(record.curve, dtype=np.int64).reshape(-1, 2)
    arrays["log"] = np.array(record.log, dtype=np.int64).reshape(-1, 3)
    arrays |= validation_arrays(record.validation)
    facts = {
        "settings": record.settings,
        "streaming": record.streaming,
        "validation": [*record.validation],
        "offered": record.offered,
    }
    return facts, arrays


def restored(spec: ModelSpec, record: OnlineRecord) -> OnlineRecord:
    """Restore the record of a spec, whose model is restored already.

    Raises ValueError if an array has another form, or values are impossible.
    """
    if not getattr(spec.arrays, "mapped", False):  # values are read when they are needed
        for name, array in record.model.saved().items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"the array {name} must be finite; got NaN or infinity")
    record.model.check()
    record.model.check_past()
    record.model.check_units()
    tables = {"curve": Field(("points", 2), "int64"), "log": Field(("passes", 3), "int64")}
    curve, log = read_fields(spec.arrays, tables).values()
    record.curve, record.log = [tuple(point) for point in curve.tolist()], log.tolist()
    record.streaming, record.offered = bool(spec.facts["streaming"]), int(spec.facts["offered"])
    if record.offered < 0:
        raise ValueError(f"the number of weighted rows must be >= 0; got {record.offered}")
    record.validation = restored_validation(spec, len(log))
    best = spec.facts["best_iteration"]
    if best is not None and not 1 <= int(best) <= len(log):
        raise ValueError(f"the best pass must be in 1 .. {len(log)}; got {best!r}")
    if not are_counts(log, curve, record.counts) or (record.streaming and not record.log):
        raise ValueError(f"counts must be from 0 to {MOST_COUNTED}, with a pass to continue")
    return record
