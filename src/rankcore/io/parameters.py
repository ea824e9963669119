"""Parameters of estimators as JSON values, and classes of learners by name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from rankcore._core.front import is_frozen
from rankcore._core.model_spec import Specified
from rankcore._core.public_names import HOME, IN_ROOMS
from rankcore.io.scaled import is_scaler, split_front
from rankcore.io.steps import describe_front, describe_scaled, restore_front, restore_scaled


def check_params(model: Any) -> None:
    """Raise TypeError if parameters of an estimator cannot be stored in a model file."""
    for name, value in model.get_params(deep=False).items():
        encode_param(name, value)


def learner_named(name: Any) -> Any:
    """Public class of this name that supports model files; None if there is none."""
    home = HOME.get(name) or IN_ROOMS.get(name)
    kind = getattr(import_module(home), name) if home else None
    if not (isinstance(kind, type) and issubclass(kind, Specified)) or kind._no_file:
        return None
    return None if kind._describe is Specified._describe else kind  # RankSVMCV has a model's


def check_learner(model: Any) -> None:
    """Raise TypeError unless `load` can find the class of a model."""
    if learner_named(type(model).__name__) is type(model):  # or a subclass
        return
    reason = getattr(type(model), "_no_file", "")
    if reason:
        raise TypeError(f"{type(model).__name__} cannot be saved: {reason}")
    chosen = ", or save its best_estimator_" if hasattr(model, "best_estimator_") else ""
    raise TypeError(
        f"save takes a rankcore learner, found {type(model).__name__}; use pickle for "
        f"others{chosen}"
    )


def encode_param(name: str, value: Any) -> Any:
    """Encode a parameter as a JSON value; raise TypeError if that requires pickling."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        raise TypeError(
            f"the parameter {name}={value!r} cannot be written to a model file, because the state "
            f"of a generator is not saved: pass a seed, or set_params({name}=0) before saving"
        )
    # Names of measures, one value per feature, or labels.
    named = name in ("eval_metric", "monotonic_cst", "categorical_features", "classes")
    if named and (isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) == 1):
        return [encode_param(f"an entry of {name}", one) for one in value]
    if isinstance(value, dict) and name in ("class_weight", "monotonic_cst"):
        of = f"an entry of {name}"
        return {"mapping": [[encode_param(of, one) for one in pair] for pair in value.items()]}
    if name == "estimator":
        return _encode_estimator(value)
    raise TypeError(
        f"the parameter {name}={value!r} cannot be written to a model file; replace it with "
        "set_params before saving"
    )


def _encode_estimator(whole: Any) -> dict[str, Any]:
    """An unfitted estimator as a parameter; a frozen one is only marked."""
    if is_frozen(whole):
        return {"frozen": "estimator"}
    front, learner = split_front(whole)
    check_learner(learner)
    params = learner.get_params(deep=False)
    found = {
        "learner": type(learner).__name__,
        "parameters": {name: encode_param(name, value) for name, value in params.items()},
    }
    if front is None:
        return {"estimator": found}
    if is_scaler(front):
        facts, _ = describe_scaled(whole.steps, fitted=False)
        names = facts.pop("steps")
        found |= {"scaler": facts, "steps": names}
    else:
        found["front"] = describe_front(whole.steps, fitted=False)[0]
    return {"estimator": found}


def _decode_estimator(found: dict[str, Any]) -> Any:
    kind = learner_named(found["learner"])
    if kind is None:
        raise ValueError(f"its learner {found['learner']!r} is unknown here")
    learner = decode_learner(kind, found["parameters"])
    if "front" in found:
        return restore_front(found["front"], None, learner)
    if "scaler" not in found:
        return learner
    return restore_scaled({**found["scaler"], "steps": found["steps"]}, None, learner)


def decode_learner(kind: Any, found: dict[str, Any]) -> Any:
    """A learner with the parameters of a file."""
    return kind(**{name: decode_param(value) for name, value in found.items()})


def decode_param(value: Any) -> Any:
    """Decode a parameter from the result of `encode_param`."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"frozen"}:
        from sklearn.frozen import FrozenEstimator

        return FrozenEstimator(None)  # `_restore` of the model sets the fitted one
    if value.keys() == {"estimator"}:
        return _decode_estimator(value["estimator"])
    if value.keys() == {"mapping"}:
        return {decode_param(key): decode_param(one) for key, one in value["mapping"]}
    raise ValueError(f"a parameter is of an unknown kind: {sorted(value)}")
