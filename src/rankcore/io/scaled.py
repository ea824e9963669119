"""A scaler in front of a learner, in one model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# What each scaler learns, besides counts.
LEARNED = {"StandardScaler": ("mean_", "var_", "scale_"), "MaxAbsScaler": ("max_abs_", "scale_")}


def with_scaler(scaler: Any, learner: Any) -> Any:
    """A pipeline of both; the learner alone if there is no scaler."""
    if scaler is None:
        return learner
    from sklearn.pipeline import make_pipeline

    return make_pipeline(scaler, learner)


def split_scaler(model: Any) -> tuple[Any, Any]:
    """The scaler, or None, and the learner in a result of `rankcore.load`.

    Raises
    ------
    TypeError
        If a pipeline has other steps.
    """
    if type(model).__name__ != "Pipeline":
        return None, model
    steps = [step for _, step in model.steps]
    if len(steps) != 2 or type(steps[0]).__name__ not in LEARNED:
        raise TypeError(
            "save takes a learner, or a pipeline of a StandardScaler or MaxAbsScaler and a "
            f"learner; found a pipeline of {', '.join(type(step).__name__ for step in steps)}: "
            "use pickle or joblib"
        )
    return steps[0], steps[1]


def describe_scaler(model: Any, scaler: Any) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays of a fitted scaler and of the pipeline it is in."""
    learner = model[-1]
    if scaler.n_features_in_ != learner.n_features_in_:
        raise ValueError(
            f"the scaler has {scaler.n_features_in_} features and the learner "
            f"{learner.n_features_in_}: keep a column of queries out of the scaler"
        )
    names = getattr(scaler, "feature_names_in_", None)
    arrays = {
        f"scaler.{name}": np.asarray(getattr(scaler, name))
        for name in LEARNED[type(scaler).__name__]
        if getattr(scaler, name, None) is not None
    }
    if names is not None:
        arrays["scaler.feature_names"] = np.array([*map(str, names)], dtype=object)
    seen = scaler.n_samples_seen_
    facts = {
        "class": type(scaler).__name__,
        "steps": [name for name, _ in model.steps],
        "params": scaler.get_params(),
        "n_samples_seen": np.asarray(seen).astype(np.int64).tolist(),
        "arrays": sorted(arrays),
    }
    return facts, arrays


def scaler_scoring(facts: Mapping[str, Any]) -> dict[str, str]:
    """Numeric form of a scaler, for readers of a model file without scikit-learn.

    Parameters
    ----------
    facts : mapping
        Of `describe_scaler`.

    Returns
    -------
    dict of str to str
        ``scaler``, and the arrays that are taken from a value (``center``) before it is divided
        (``scale``), where there are any.
    """
    params, arrays = facts["params"], facts["arrays"]
    kind = {"StandardScaler": "standard", "MaxAbsScaler": "max_abs"}[facts["class"]]
    found = {"scaler": f"{kind}_clipped" if params.get("clip", False) else kind}
    if params.get("with_mean", False):
        found["center"] = "scaler.mean_"
    if "scaler.scale_" in arrays:
        found["scale"] = "scaler.scale_"
    return found


def restore_scaled(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], learner: Any
) -> Any:
    """Restore the pipeline from the result of `describe_scaler`, around its learner.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the facts or arrays are not those of a scaler.
    """
    pipeline = scaled_pipeline(facts, facts["steps"], learner)
    scaler, d = pipeline[0], learner.n_features_in_
    for attribute in LEARNED[facts["class"]]:
        key = f"scaler.{attribute}"
        if key not in facts["arrays"]:
            setattr(scaler, attribute, None)
            continue
        array = arrays[key]
        if array.shape != (d,) or array.dtype.kind != "f" or not np.isfinite(array).all():
            raise ValueError(f"its array {key} is not that of a scaler of {d} features")
        setattr(scaler, attribute, array)
    seen = facts["n_samples_seen"]
    scaler.n_samples_seen_ = np.array(seen, dtype=np.int64)[()]
    scaler.n_features_in_ = d
    if "scaler.feature_names" in arrays:
        scaler.feature_names_in_ = arrays["scaler.feature_names"]
        if scaler.feature_names_in_.shape != (d,):
            raise ValueError("its feature names do not fit its scaler")
    return pipeline


def scaled_pipeline(facts: Mapping[str, Any], steps: Sequence[Any], learner: Any) -> Any:
    """A scaler that is not fitted, of a class and parameters, in front of a learner.

    Raises
    ------
    ValueError, KeyError, TypeError
        If there is no such scaler, or the names of the steps are not two.
    """
    from sklearn import preprocessing
    from sklearn.pipeline import Pipeline

    name = facts["class"]
    if name not in LEARNED:
        raise ValueError(f"its scaler {name!r} is unknown")
    scaler = getattr(preprocessing, name)(**facts["params"])
    first, second = map(str, steps)
    return Pipeline([(first, scaler), (second, learner)])
