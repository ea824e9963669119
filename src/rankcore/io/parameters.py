"""Parameters of estimators as JSON values, and classes of learners by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from rankcore._core.model_spec import has_description
from rankcore._core.preprocessing import is_frozen
from rankcore._core.public_names import MODULE_OF
from rankcore.io.scaled import describe_scaled, is_scaler, restore_scaled, split_front
from rankcore.io.steps import with_learner, without_learner


def check_params(model: Any) -> None:
    """Raise TypeError if parameters of an estimator cannot be stored in a model file."""
    encode_params(model, [])


def learner_named(name: Any) -> Any:
    """Return the public class of this name that supports model files, or None."""
    home = MODULE_OF.get(name)
    kind: Any = getattr(import_module(home), name) if home else None
    return kind if has_description(kind) and not kind._no_file else None


def check_learner(model: Any) -> None:
    """Raise TypeError unless `load` can find the class of a model."""
    if learner_named(type(model).__name__) is type(model):  # or a subclass
        return
    reason = getattr(type(model), "_no_file", "")
    if reason:
        raise TypeError(f"{type(model).__name__} cannot be saved: {reason}")
    chosen = ", or save its best_estimator_" if hasattr(model, "best_estimator_") else ""
    raise TypeError(
        f"save takes a rankcore learner; got {type(model).__name__}; use pickle for others{chosen}"
    )


def encode_params(model: Any, pipelines: list[Any]) -> dict[str, Any]:
    """Encode the parameters of an estimator as JSON values; see `encode_param`.

    Pipelines of an unfitted estimator are added to ``pipelines``, without their learner.
    """
    return {
        name: _encode_estimator(value, pipelines)
        if name == "estimator"
        else encode_param(name, value)
        for name, value in model.get_params(deep=False).items()
    }


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
        return [encode_param(f"an entry of {name}", entry) for entry in value]
    if isinstance(value, dict) and name in ("class_weight", "monotonic_cst"):
        of = f"an entry of {name}"
        return {"mapping": [[encode_param(of, item) for item in pair] for pair in value.items()]}
    raise TypeError(
        f"the parameter {name}={value!r} cannot be written to a model file; replace it with "
        "set_params before saving"
    )


def _encode_estimator(whole: Any, pipelines: list[Any]) -> Any:
    """Encode an unfitted estimator as a parameter; a frozen one is only marked."""
    if whole is None:
        return None
    if is_frozen(whole):
        return {"frozen": "estimator"}
    front, learner = split_front(whole)
    check_learner(learner)
    encoded: dict[str, Any] = {
        "learner": type(learner).__name__,
        "parameters": encode_params(learner, pipelines),
    }
    if is_scaler(front):
        encoded["scaler"], _ = describe_scaled(whole, fitted=False)
    elif whole is not learner:
        encoded["steps"] = len(pipelines)
        pipelines.append(without_learner(whole))
    return {"estimator": encoded}


def decode_learner(kind: Any, encoded: dict[str, Any], pipelines: Sequence[Any]) -> Any:
    """Return a learner with the parameters of a file, and with pipelines of its archive."""
    return kind(**{name: _decode_param(value, pipelines) for name, value in encoded.items()})


def _decode_param(value: Any, pipelines: Sequence[Any]) -> Any:
    """Decode a parameter from the result of `encode_params`."""
    if not isinstance(value, dict):
        return value
    if value.keys() == {"frozen"}:
        from sklearn.frozen import FrozenEstimator

        return FrozenEstimator(None)  # `_restore` of the model sets the fitted one
    if value.keys() == {"estimator"}:
        return _decode_estimator(value["estimator"], pipelines)
    if value.keys() == {"mapping"}:
        return dict(value["mapping"])
    raise ValueError(f"a parameter is of an unknown kind: {sorted(value)}")


def _decode_estimator(encoded: dict[str, Any], pipelines: Sequence[Any]) -> Any:
    kind = learner_named(encoded["learner"])
    if kind is None:
        raise ValueError(f"the learner {encoded['learner']!r} of a parameter is unknown")
    learner = decode_learner(kind, encoded["parameters"], pipelines)
    if "scaler" in encoded:
        return restore_scaled(encoded["scaler"], None, learner)
    return with_learner(pipelines, encoded["steps"], learner) if "steps" in encoded else learner
