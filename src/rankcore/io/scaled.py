"""Scalers before a learner in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Arrays that each scaler learns.
LEARNED = {
    "StandardScaler": ("mean_", "var_", "scale_"),
    "MaxAbsScaler": ("max_abs_", "scale_"),
    "MinMaxScaler": ("data_min_", "data_max_", "data_range_", "scale_", "min_"),
}


def with_scaler(scaler: Any, learner: Any) -> Any:
    """A pipeline of both; the learner alone if there is no scaler."""
    if scaler is None:
        return learner
    from sklearn.pipeline import make_pipeline

    return make_pipeline(scaler, learner)


def split_front(model: Any) -> tuple[Any, Any]:
    """The scaler, the pipeline of other steps or None, and the learner after it."""
    if type(model).__name__ != "Pipeline":
        return None, model
    front, learner = model.steps[:-1], model.steps[-1][1]
    if len(front) == 1 and is_scaler(front[0][1]):
        return front[0][1], learner
    return (model[:-1] if front else None), learner


def is_scaler(front: Any) -> bool:
    """Whether a step before a learner is a scaler."""
    return type(front).__name__ in LEARNED


def split_scaler(model: Any) -> tuple[Any, Any]:
    """The scaler, or None, and the learner of a loaded model; raise for other steps."""
    front, learner = split_front(model)
    if front is not None and not is_scaler(front):
        raise ValueError(
            f"a {' and '.join(type(step).__name__ for _, step in front.steps)} is in front of the "
            "learner of this model; commands support one scaler: use rankcore.load in Python"
        )
    return front, learner


def describe_scaler(scaler: Any, prefix: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a fitted scaler, under names with a prefix."""
    arrays = {
        f"{prefix}{name}": np.asarray(getattr(scaler, name))
        for name in LEARNED[type(scaler).__name__]
        if getattr(scaler, name, None) is not None
    }
    seen = np.asarray(scaler.n_samples_seen_).astype(np.int64).tolist()
    return {"n_samples_seen": seen}, arrays


def restore_scaler(
    scaler: Any, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], prefix: str
) -> int:
    """Restore the state from the result of `describe_scaler`; return the number of columns."""
    d, listed = scaler.n_features_in_, facts.get("arrays", arrays)
    for attribute in LEARNED[type(scaler).__name__]:
        key = f"{prefix}{attribute}"
        if key not in listed:
            if getattr(scaler, "with_mean" if attribute == "mean_" else "with_std", True):
                raise ValueError(f"it has no array {key}")
            setattr(scaler, attribute, None)
            continue
        array = arrays[key]
        if array.shape != (d,) or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"its array {key} is not that of a scaler of {d} features")
        setattr(scaler, attribute, array)
    scaler.n_samples_seen_ = np.array(facts["n_samples_seen"], dtype=np.int64)[()]
    return int(d)


def scaler_scoring(facts: Mapping[str, Any]) -> dict[str, str]:
    """Numeric form of a described scaler, for readers of a model file without scikit-learn.

    ``scaler`` and, if present, the arrays that are subtracted from a value (``center``) before it
    is divided (``scale``); for MinMaxScaler the factor (``scale``), the offset (``shift``) and the
    ``bounds`` for clipping.
    """
    params, arrays = facts["params"], facts["arrays"]
    kinds = {"StandardScaler": "standard", "MaxAbsScaler": "max_abs", "MinMaxScaler": "min_max"}
    kind = kinds[facts["class"]]
    found = {"scaler": f"{kind}_clipped" if params.get("clip", False) else kind}
    if kind == "min_max":
        found |= {"scale": "scaler.scale_", "shift": "scaler.min_"}
        return found | ({"bounds": "scaler.bounds"} if params["clip"] else {})
    if params.get("with_mean", False):
        found["center"] = "scaler.mean_"
    if "scaler.scale_" in arrays:
        found["scale"] = "scaler.scale_"
    return found
