"""One scaler before a learner in model files: arrays that C and other readers use, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Prefix of the arrays of a scaler; its feature names, and the range to which it clips.
SCALER = "scaler."
NAMES, BOUNDS = f"{SCALER}feature_names", f"{SCALER}bounds"
# Arrays that each scaler learns.
LEARNED = {
    "StandardScaler": ("mean_", "var_", "scale_"),
    "MaxAbsScaler": ("max_abs_", "scale_"),
    "MinMaxScaler": ("data_min_", "data_max_", "data_range_", "scale_", "min_"),
}


def with_scaler(scaler: Any, learner: Any) -> Any:
    """Return a pipeline of scaler and learner; the learner alone if there is no scaler."""
    if scaler is None:
        return learner
    from sklearn.pipeline import make_pipeline

    return make_pipeline(scaler, learner)


def split_front(model: Any) -> tuple[Any, Any]:
    """Return the scaler, the pipeline of other steps (each may be None), and the learner."""
    if type(model).__name__ != "Pipeline":
        return None, model
    front, learner = model.steps[:-1], model.steps[-1][1]
    if len(front) == 1 and is_scaler(front[0][1]):
        return front[0][1], learner
    return (model[:-1] if front else None), learner


def is_scaler(front: Any) -> bool:
    """Return whether a step is a scaler of scikit-learn that is saved as arrays."""
    kind = type(front)
    return kind.__name__ in LEARNED and kind.__module__ == "sklearn.preprocessing._data"


def split_scaler(model: Any) -> tuple[Any, Any]:
    """Return the scaler, or None, and the learner of a loaded model; raise for other steps."""
    front, learner = split_front(model)
    if front is not None and not is_scaler(front):
        raise ValueError(
            f"commands support one scaler before the learner; got "
            f"{' and '.join(type(step).__name__ for _, step in front.steps)}: use rankcore.load "
            "in Python"
        )
    return front, learner


def describe_scaled(
    pipeline: Any, *, fitted: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return metadata and arrays of the scaler before a learner, and the names of both steps."""
    (_, scaler), (_, learner) = pipeline.steps
    facts: dict[str, Any] = {
        "class": type(scaler).__name__,
        "steps": [name for name, _ in pipeline.steps],
        "params": {name: _as_json(value) for name, value in scaler.get_params().items()},
    }
    output = getattr(scaler, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        facts["output"] = output
    if not fitted:
        return facts, {}
    takes = getattr(learner, "n_features_in_", None)
    if scaler.n_features_in_ != takes:
        raise ValueError(
            f"the scaler has {scaler.n_features_in_} features and the learner "
            f"{takes}: keep a column of queries out of the scaler"
        )
    arrays = {
        f"{SCALER}{name}": np.asarray(getattr(scaler, name))
        for name in LEARNED[facts["class"]]
        if getattr(scaler, name, None) is not None
    }
    if hasattr(scaler, "feature_names_in_"):
        names = [*map(str, scaler.feature_names_in_)]
        arrays[NAMES] = np.array(names, dtype=object)
    if facts["params"].get("clip", False) and facts["class"] == "MinMaxScaler":
        # For readers that only score.
        arrays[BOUNDS] = np.array(scaler.feature_range, dtype=np.float64)
    seen = np.asarray(scaler.n_samples_seen_).astype(np.int64).tolist()
    return facts | {"n_samples_seen": seen, "arrays": sorted(arrays)}, arrays


def restore_scaled(facts: Any, arrays: Mapping[str, NDArray[Any]] | None, learner: Any) -> Any:
    """Return the pipeline of a scaler from `describe_scaled`; without arrays it is not fitted."""
    from sklearn import preprocessing
    from sklearn.pipeline import Pipeline

    if facts["class"] not in LEARNED:
        raise ValueError(f"the scaler {facts['class']!r} is unknown; a newer rankcore may have it")
    params = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in facts["params"].items()
    }
    scaler = getattr(preprocessing, facts["class"])(**params)
    if "output" in facts:
        scaler.set_output(transform=facts["output"])
    if arrays is not None:
        _restore_fitted(scaler, facts, arrays, learner.n_features_in_)
    first, second = map(str, facts["steps"])
    return Pipeline([(first, scaler), (second, learner)])


def _restore_fitted(
    scaler: Any, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_features: int
) -> None:
    """Set the fitted attributes of a scaler; raise ValueError unless they fit its features."""
    scaler.n_features_in_ = n_features
    scaler.n_samples_seen_ = np.array(facts["n_samples_seen"], dtype=np.int64)[()]
    for attribute in LEARNED[facts["class"]]:
        key = f"{SCALER}{attribute}"
        if key not in facts["arrays"]:
            if getattr(scaler, "with_mean" if attribute == "mean_" else "with_std", True):
                raise ValueError(f"the array {key} is missing")
            setattr(scaler, attribute, None)
            continue
        array = arrays[key]
        if array.shape != (n_features,) or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(
                f"the array {key} must have a finite number for each of {n_features} features"
            )
        setattr(scaler, attribute, array)
    if NAMES in arrays:
        scaler.feature_names_in_ = arrays[NAMES]
        if scaler.feature_names_in_.shape != (n_features,):
            raise ValueError(f"{NAMES} must have one name for each of {n_features} features")


def _as_json(value: Any) -> Any:
    """Return a parameter of a scaler: a number, a boolean, or a range of two numbers."""
    if isinstance(value, tuple | list):
        return [_as_json(number) for number in value]
    return value.item() if isinstance(value, np.generic) else value


def scaler_scoring(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the arrays of a scaler, for readers of model files without scikit-learn.

    ``scaler`` and, if present, the arrays that are subtracted from a value (``center``) before it
    is divided (``scale``); for MinMaxScaler the factor (``scale``), the offset (``shift``) and the
    ``bounds`` for clipping.
    """
    params, arrays = facts["params"], facts["arrays"]
    kinds = {"StandardScaler": "standard", "MaxAbsScaler": "max_abs", "MinMaxScaler": "min_max"}
    kind = kinds[facts["class"]]
    written = {"scaler": f"{kind}_clipped" if params.get("clip", False) else kind}
    if kind == "min_max":
        written |= {"scale": "scaler.scale_", "shift": "scaler.min_"}
        return written | ({"bounds": "scaler.bounds"} if params["clip"] else {})
    if params.get("with_mean", False):
        written["center"] = "scaler.mean_"
    if "scaler.scale_" in arrays:
        written["scale"] = "scaler.scale_"
    return written
