"""Preprocessing steps in model files: the fitted state of each class, without code.

Only settings, words and numbers are written. Other attributes of scikit-learn are recomputed from
them, so files do not depend on its release.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankcore.io.learned_steps import (
    as_given,
    describe_encoder,
    describe_tfidf,
    describe_vectorizer,
    given_terms,
    restore_encoder,
    restore_tfidf,
    restore_vectorizer,
)
from rankcore.io.scaled import LEARNED, describe_scaler, restore_scaler
from rankcore.io.settings import decode_setting, encode_setting

Arrays = Mapping[str, NDArray[Any]]
# Maximum number of steps of a file, including nested ones: each takes more memory than its bytes.
MOST_STEPS = 1000
NAMES = "feature_names"
# Prefix of the arrays of a single scaler before a learner.
SCALER = "scaler."
# Parameters of some releases of scikit-learn, without effect.
_PASSING = ("force_int_remainder_cols",)


class Restored(NamedTuple):
    """A step and its number of output columns."""

    step: Any
    width: int


def _nothing(step: Any, prefix: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    return {}, {}


def _keeps_width(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    return int(step.n_features_in_)


def _hashed_width(step: Any, facts: Any, arrays: Arrays, prefix: str) -> int:
    if type(step.n_features) is not int or not 1 <= step.n_features < 2**31:
        raise ValueError(f"its HashingVectorizer has n_features={step.n_features!r}")
    return step.n_features


Describe = Callable[[Any, str], tuple[dict[str, Any], dict[str, NDArray[Any]]]]
Restore = Callable[[Any, Any, Arrays, str], int]
# Module and functions that describe and restore the state of each class; the latter returns its
# number of output columns.
_KINDS: dict[str, tuple[str, Describe, Restore]] = {
    **{name: ("preprocessing", describe_scaler, restore_scaler) for name in LEARNED},
    "OneHotEncoder": ("preprocessing", describe_encoder, restore_encoder),
    "FunctionTransformer": ("preprocessing", _nothing, _keeps_width),
    "CountVectorizer": ("feature_extraction.text", describe_vectorizer, restore_vectorizer),
    "TfidfVectorizer": ("feature_extraction.text", describe_vectorizer, restore_vectorizer),
    "HashingVectorizer": ("feature_extraction.text", _nothing, _hashed_width),
    "TfidfTransformer": ("feature_extraction.text", describe_tfidf, restore_tfidf),
}
KEPT = (*_KINDS, "ColumnTransformer", "Pipeline")
_TEXTS = ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer")


def class_of(name: Any) -> Any:
    """The class of a step by its name; None if model files do not support it."""
    from importlib import import_module

    homes = {kind: module for kind, (module, _, _) in _KINDS.items()}
    homes |= {"ColumnTransformer": "compose", "Pipeline": "pipeline"}
    return getattr(import_module(f"sklearn.{homes[name]}"), name) if name in homes else None


def names_of_steps(facts: Any) -> list[str]:
    """Classes in the description of steps, including nested ones."""
    if isinstance(facts, str):
        return []
    found = [facts["class"]] if facts["class"] != "Pipeline" else []
    inside = [one[1] for one in (*facts.get("steps", ()), *facts.get("transformers", ()))]
    for one in (*inside, facts.get("remainder", "drop")):
        found += names_of_steps(one)
    return found


# ------------------------------------------------------------------------ describing


def describe_step(
    step: Any, prefix: str, arrays: dict[str, Any], *, fitted: bool = True
) -> dict[str, Any] | str:
    """Facts of a step as JSON values; its arrays are added under names with a prefix.

    Unless ``fitted``, its fitted state is omitted. Raises TypeError for unsupported classes and for
    parameters that cannot be written without pickling.
    """
    if step is None or isinstance(step, str):
        return step or "passthrough"
    name = type(step).__name__
    if class_of(name) is not type(step):  # or a subclass
        raise TypeError(
            f"save takes pipelines of {', '.join(KEPT)} and a learner; found {name}: use pickle or "
            "joblib"
        )
    facts: dict[str, Any] = {"class": name}
    params = dict(step.get_params(deep=False))
    if name == "Pipeline":
        facts["steps"] = _described(params.pop("steps"), prefix, arrays, fitted)
        del params["memory"]  # a path on this machine
    elif name == "ColumnTransformer":
        facts |= _describe_columns(step, prefix, arrays, fitted)
        del params["transformers"], params["remainder"]
    elif name in _TEXTS and params["input"] != "content":
        raise TypeError(
            f"{name}(input={params['input']!r}) reads files by name, which loaded models must "
            "not: use input='content'"
        )
    own = _described_vocabulary(step, params, fitted)
    facts["params"] = {key: encode_setting(name, key, value) for key, value in params.items()}
    output = getattr(step, "_sklearn_output_config", {}).get("transform")
    if output is not None:
        facts["output"] = output
    if not fitted:
        return facts | own
    if hasattr(step, "n_features_in_") and name != "Pipeline":
        facts["n_features"] = int(step.n_features_in_)
    if NAMES + "_in_" in vars(step):
        arrays[prefix + NAMES] = np.array([*map(str, step.feature_names_in_)], dtype=object)
    if name in _KINDS:
        learned, numbers = _KINDS[name][1](step, prefix)
        facts |= learned
        arrays |= numbers
    return facts | own


def _described(
    steps: Sequence[tuple[str, Any]], prefix: str, arrays: dict[str, Any], fitted: bool
) -> list[Any]:
    """Names and facts of successive steps."""
    return [
        [name, describe_step(step, f"{prefix}{i}.", arrays, fitted=fitted)]
        for i, (name, step) in enumerate(steps)
    ]


def _described_vocabulary(step: Any, params: dict[str, Any], fitted: bool) -> dict[str, Any]:
    """A vocabulary parameter, which must equal that of the fitted step."""
    if params.get("vocabulary") is None:
        return {}
    kind, terms = given_terms(params.pop("vocabulary"))
    if not fitted:
        return {"vocabulary": kind, "terms": terms}
    if terms != sorted(step.vocabulary_, key=step.vocabulary_.__getitem__):
        raise TypeError(f"{type(step).__name__}(vocabulary=) is not the one it was fitted with")
    return {"vocabulary": kind}


# ------------------------------------------------------------------------ restoring


def restore_step(facts: Any, arrays: Arrays | None, prefix: str, left: list[int]) -> Restored:
    """Restore a step from the result of `describe_step`; without arrays it is not fitted.

    ``left`` counts down the steps still allowed.
    """
    left[0] -= 1
    if left[0] < 0:
        raise ValueError(f"it has more than {MOST_STEPS} steps")
    if isinstance(facts, str):
        if facts not in ("passthrough", "drop"):
            raise ValueError(f"its step {facts!r} is unknown")
        return Restored(facts, -1)
    name = facts["class"]
    kind = class_of(name)
    if kind is None:
        raise ValueError(f"its step {name!r} is unknown; a newer rankcore may have it")
    parts: list[Restored] = []
    if name == "Pipeline":
        steps, width = _chain(facts["steps"], arrays, prefix, left)
        found = Restored(kind(steps, **_params(kind, facts)), width)
    elif name == "ColumnTransformer":
        given, parts = _restored_parts(facts, arrays, prefix, left)
        step = kind(given[:-1], remainder=given[-1][1], **_params(kind, facts))
        found = Restored(step, sum(width for _, width in parts if width > 0))
    else:
        step = kind(**_params(kind, facts))
        if name in _TEXTS and step.input != "content":
            raise ValueError(f"its {name} reads files")
        found = Restored(step, -1)
        if "vocabulary" in facts and arrays is None:
            step.vocabulary = as_given(facts["vocabulary"], facts["terms"])
    if "output" in facts:
        found.step.set_output(transform=facts["output"])
    if arrays is None or name == "Pipeline":
        return found
    step = found.step
    if "n_features" in facts:
        step.n_features_in_ = _count(facts["n_features"])
    if prefix + NAMES in arrays:
        step.feature_names_in_ = arrays[prefix + NAMES]
        if step.feature_names_in_.shape != (step.n_features_in_,):
            raise ValueError(f"its feature names do not match its {name}")
    if name == "ColumnTransformer":
        _restore_columns(step, parts, facts, arrays, prefix)
        return found
    width = _KINDS[name][2](step, facts, arrays, prefix)
    return Restored(step, width)


def _params(kind: Any, facts: Any) -> dict[str, Any]:
    params = {key: decode_setting(one) for key, one in facts["params"].items()}
    code = [key for key, one in params.items() if callable(one) and key != "dtype"]
    if code:
        raise ValueError(f"its {facts['class']} has code as its parameter {code[0]}")
    known = kind._get_param_names()
    for key in _PASSING:
        if key not in known:
            params.pop(key, None)
    unknown = sorted(params.keys() - known)
    if unknown:
        raise ValueError(
            f"its {facts['class']} has the parameter {unknown[0]}, which this scikit-learn does "
            "not have"
        )
    return params


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**31:
        raise ValueError(f"one of its steps has {value!r} features")
    return value


def _chain(
    listed: Any, arrays: Arrays | None, prefix: str, left: list[int]
) -> tuple[list[tuple[str, Any]], int]:
    """Successive steps, and the number of output columns of the last."""
    steps, width = [], -1
    for i, (name, one) in enumerate(listed):
        step, width = _next(one, arrays, f"{prefix}{i}.", left, width)
        steps.append((str(name), step))
    return steps, width


def _next(facts: Any, arrays: Arrays | None, prefix: str, left: list[int], width: int) -> Restored:
    """A step after another one with ``width`` output columns, -1 if unknown."""
    found = restore_step(facts, arrays, prefix, left)
    if isinstance(found.step, str):
        return Restored(found.step, width)
    takes, name = getattr(found.step, "n_features_in_", width), type(found.step).__name__
    if width >= 0 and (takes != width or name in _TEXTS):
        raise ValueError(f"its {name} does not accept the {width} columns of the previous step")
    return found


# ------------------------------------------------------------------------ columns


def _describe_columns(
    step: Any, prefix: str, arrays: dict[str, Any], fitted: bool
) -> dict[str, Any]:
    """The parts of a ColumnTransformer, and the input columns of each."""
    parts = {name: part for name, part, _ in step.transformers_} if fitted else {}
    described: dict[str, Any] = {}
    listed = [*step.transformers, ("remainder", step.remainder, None)]
    for i, (name, given, _) in enumerate(listed):
        part, under = parts.get(name, given), f"{prefix}{i}."
        inputs = step._transformer_to_input_indices[name] if fitted else ()
        if not isinstance(given, str):
            # A part without columns was not fitted.
            learned = name in parts and len(inputs) > 0
            described[name] = describe_step(part, under, arrays, fitted=learned)
        elif given == "passthrough" and not isinstance(part, str):
            inside: Any = describe_step(part, under, arrays)
            described[name] = {**inside, "passthrough": True}
        else:
            described[name] = given
        if fitted:
            arrays[f"{under}inputs"] = np.array(inputs, dtype=np.int64)
    transformers = [
        [name, described[name], encode_setting(f"ColumnTransformer's {name!r}", "columns", of)]
        for name, _, of in step.transformers
    ]
    found = {"transformers": transformers, "remainder": described["remainder"]}
    return found | ({"sparse_output": bool(step.sparse_output_)} if fitted else {})


def _restored_parts(
    facts: Any, arrays: Arrays | None, prefix: str, left: list[int]
) -> tuple[list[Any], list[Restored]]:
    """Parameters and fitted parts of a ColumnTransformer, those of the remainder last."""
    from sklearn.base import clone

    given, parts = [], []
    listed = [*facts["transformers"], ["remainder", facts["remainder"], None]]
    for i, (name, one, columns) in enumerate(listed):
        # A part without columns has no inputs and no state.
        under = f"{prefix}{i}."
        fitted = arrays is not None and arrays[f"{under}inputs"].size > 0
        part, width = restore_step(one, arrays if fitted else None, under, left)
        through = isinstance(one, dict) and one.get("passthrough") is True
        plain = "passthrough" if through else part if isinstance(part, str) else clone(part)
        given.append((str(name), plain, decode_setting(columns)))
        parts.append(Restored(part, width))
    return given, parts


def _restore_columns(
    step: Any, parts: list[Restored], facts: Any, arrays: Arrays, prefix: str
) -> None:
    """Put fitted parts into a ColumnTransformer; raise if they do not match its columns."""
    names = [name for name, _, _ in step.transformers]
    if len({*names, "remainder"}) <= len(names):
        raise ValueError("parts of its ColumnTransformer have one name")
    n = step.n_features_in_
    inputs = [arrays[f"{prefix}{i}.inputs"] for i in range(len(parts))]
    for one in inputs:
        if one.ndim != 1 or one.dtype != np.int64 or ((one < 0) | (one >= n)).any():
            raise ValueError("the inputs of its ColumnTransformer are not columns")
    # Each column is listed, which bounds their number by the size of the file.
    if np.unique(np.concatenate(inputs)).size != n:
        raise ValueError(f"the inputs of its ColumnTransformer are not {n} columns")
    for (part, _), one in zip(parts, inputs, strict=True):
        if not isinstance(part, str) and getattr(part, "n_features_in_", one.size) != one.size:
            raise ValueError(f"its {type(part).__name__} does not take {one.size} columns")
    step._columns = [columns for _, _, columns in step.transformers]
    step._transformer_to_input_indices = {
        name: one.tolist() for name, one in zip(names, inputs[:-1], strict=True)
    }
    step._validate_remainder(None)
    if step._transformer_to_input_indices["remainder"] != inputs[-1].tolist():
        raise ValueError(
            "the remainder of its ColumnTransformer does not have the remaining columns"
        )
    taken = [
        part
        for (part, _), one in zip(parts, inputs, strict=True)
        if one.size and not (isinstance(part, str) and part == "drop")
    ]
    if any(isinstance(part, str) for part in taken):
        raise ValueError("a part of its ColumnTransformer was not fitted")
    step._update_fitted_transformers(taken)
    step.sparse_output_ = facts["sparse_output"] is True
    widths = [width for (_, width), one in zip(parts, inputs, strict=True) if one.size]
    step._record_output_indices([np.empty((0, width)) for width in widths if width >= 0])


# ------------------------------------------------------------------------ all steps of a pipeline


def describe_front(
    steps: Sequence[tuple[str, Any]], *, fitted: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of preprocessing steps, and the name of the learner's step."""
    arrays: dict[str, Any] = {}
    facts = _described(steps[:-1], "steps.", arrays, fitted)
    return {"steps": facts, "learner": steps[-1][0]}, arrays


def restore_front(facts: Any, arrays: Arrays | None, learner: Any) -> Any:
    """The pipeline from the result of `describe_front`; raise if its parts do not match."""
    from sklearn.pipeline import Pipeline

    steps, width = _chain(facts["steps"], arrays, "steps.", [MOST_STEPS])
    takes = getattr(learner, "n_features_in_", width)
    if arrays is not None and 0 <= width != takes:
        raise ValueError(f"{width} columns result from its steps, but its learner requires {takes}")
    return Pipeline([*steps, (str(facts["learner"]), learner)])


# ------------------------------------------------------------------------ one scaler


def describe_scaled(
    steps: Sequence[tuple[str, Any]], *, fitted: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and arrays of a scaler before a learner, and the names of both steps."""
    (_, scaler), (_, learner) = steps
    takes = getattr(learner, "n_features_in_", None)
    if fitted and scaler.n_features_in_ != takes:
        raise ValueError(
            f"the scaler has {scaler.n_features_in_} features and the learner "
            f"{takes}: keep a column of queries out of the scaler"
        )
    arrays: dict[str, Any] = {}
    found: Any = describe_step(scaler, SCALER, arrays, fitted=fitted)
    names = [name for name, _ in steps]
    facts = {"class": found["class"], "steps": names, "params": found["params"]}
    if fitted:
        if facts["class"] == "MinMaxScaler" and scaler.clip:  # for readers that only score
            arrays[f"{SCALER}bounds"] = np.array(scaler.feature_range, dtype=np.float64)
        facts |= {"n_samples_seen": found["n_samples_seen"], "arrays": sorted(arrays)}
    return facts, arrays


def restore_scaled(facts: Any, arrays: Arrays | None, learner: Any) -> Any:
    """The pipeline from the result of `describe_scaled`; without arrays it is not fitted."""
    from sklearn.pipeline import Pipeline

    if facts["class"] not in LEARNED:
        raise ValueError(f"its scaler {facts['class']!r} is unknown")
    known = facts if arrays is None else {**facts, "n_features": learner.n_features_in_}
    scaler = restore_step(known, arrays, SCALER, [1]).step
    first, second = map(str, facts["steps"])
    return Pipeline([(first, scaler), (second, learner)])
