"""Model files: one file per model, without executable code, readable from any language.

A model file is a safetensors file: a JSON header, then raw arrays. ``docs/model_file.md`` describes
its contents. Loading checks everything: names and sizes before arrays are read, so memory is
proportional to the size of the file.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankcore._core import scoring as forms
from rankcore._core.concurrency import read_model
from rankcore._core.files import atomic_write, file_target
from rankcore._core.labels import check_words
from rankcore._core.model_spec import ModelSpec, check_n_features
from rankcore._core.preprocessing import split_pipeline
from rankcore._core.scoring import Scoring, no_scoring
from rankcore.boosting.stump_model import StumpSum
from rankcore.io import safetensors, text_arrays
from rankcore.io.contents import (
    CHECKSUM,
    FORMAT,
    VERSION,
    Arrays,
    content_of,
    damaged,
    is_read_whole,
    unpacked,
)
from rankcore.io.parameters import check_learner, decode_learner, encode_params, learner_named
from rankcore.io.scaled import (
    describe_scaled,
    is_scaler,
    restore_scaled,
    scaler_scoring,
    split_front,
)
from rankcore.io.steps import (
    SKOPS,
    Trusted,
    names_of_steps,
    pack_steps,
    unpack_steps,
    with_learner,
    without_learner,
)

# Metadata keys, except those of the scoring.
METADATA = ("format", "version", "labels", "checksum")
# Keys of a model; those of a contained model have its name as a prefix.
OF_A_MODEL = (
    "learner", "n_features", "parameters", "facts", "scaler", "steps", "query_column", "grades"
)  # fmt: skip
SCORING = "scoring"
# Maximum difference of scoring arrays and those of the learner, in units of the largest number.
ROUNDING = 1e-9


def save(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file.

    Writing is atomic: a crash leaves an existing file unchanged, and its mode is kept. Concurrent
    calls of ``partial_fit`` wait until the model is in memory in the form of the file.

    Parameters
    ----------
    model : a fitted learner, or a pipeline that ends in one
        One scaler (StandardScaler, MaxAbsScaler, MinMaxScaler) before it is saved as arrays, which
        C and other readers use, too. Any other steps are saved by skops
        (``pip install 'rankcore[skops]'``), for `load` alone.
    path : str or path-like

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    TypeError
        If a step or a parameter cannot be written without pickling, such as a lambda or a
        generator of random numbers.
    ImportError
        If the steps of a pipeline require skops, and it is not installed.
    RuntimeError
        If called from a callback of the model's fit.
    OSError, ValueError
        If the folder does not exist, the disk is full, or ``path`` is a device or folder.

    Examples
    --------
    >>> import os, tempfile, rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1]], [3, 1, 2]
    >>> path = os.path.join(tempfile.mkdtemp(), "stars.rankcore")
    >>> rc.save(rc.PRank(max_iter=1).fit(X, y), path)
    >>> rc.load(path).partial_fit([[2, 0]], [3]).t_
    4
    """
    from sklearn.utils.validation import check_is_fitted

    whole, (_, model) = model, split_front(model)
    check_learner(model)
    check_is_fitted(model)
    target = file_target(path)
    for step in split_pipeline(whole)[0]:
        # A stateless step requires no fit, which older releases of scikit-learn do not report.
        if type(step).__name__ != "HashingVectorizer":
            check_is_fitted(step)
    parts = read_model("save", model, lambda: _pack(whole, model._spec()))

    with atomic_write(target) as stream:
        stream.writelines(parts)


def load(path: str | os.PathLike[str], *, verify: bool | None = None, trusted: Trusted = ()) -> Any:
    """Read a model written by `save`.

    Nothing in the file is executed, and every array is checked before use. Preprocessing steps of
    scikit-learn are loaded by skops, which accepts the classes of scikit-learn and no function but
    those of numbers (ufuncs): see `Untrusted input
    <https://rankcore.github.io/rankcore/safety.html#untrusted-input>`_. A file above 64 MB is
    memory-mapped: its arrays are shared by all processes that load it, and read on use. Do not
    overwrite such a file in place (`save` replaces it by a new one).

    Parameters
    ----------
    path : str or path-like
    verify : bool, optional
        Read the whole file, to compare its checksum, to check for NaN, and to compare the arrays
        that other readers score with to those of the learner. By default only files up to 64 MB are
        verified.
    trusted : sequence of str or type, default=()
        Further types and functions that preprocessing steps may contain, such as
        ``["my_package.MyStep"]``. They may run code: check the names first.

    Returns
    -------
    estimator
        Equal to the saved one to the bit; ``partial_fit`` continues its training.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a rankcore model, is damaged, was written by a newer version, or has
        preprocessing steps with types that are not trusted, which the error lists.
    ImportError
        If it has preprocessing steps that require skops, and that is not installed.
    """
    with open(path, "rb") as stream:
        content = content_of(stream)
    try:
        return _read(content, is_read_whole(content) if verify is None else verify, trusted)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def is_model_file(path: Path) -> bool:
    """Return whether a file looks like a model file, by its first bytes."""
    with open(path, "rb") as stream:
        return stream.read(9)[8:] == b"{"


def _read(content: bytes | mmap.mmap, verify: bool, trusted: Trusted) -> Any:
    """Return the model in the bytes of a file; raise ValueError if it is not a valid one."""
    metadata, arrays = unpacked(content, verify)
    pipelines = unpack_steps(arrays[SKOPS], trusted) if SKOPS in arrays else []
    try:
        model, known_keys = _rebuild_model(metadata, arrays, pipelines)
        scoring = {name for name in metadata if name.split(".")[0] == SCORING}
        unknown = metadata.keys() - known_keys - scoring - {*METADATA}
        if unknown:
            raise ValueError(f"no model has the metadata {sorted(unknown)}")
        arrays.check_all_read(_scored_with(metadata, arrays))
        if verify:
            _check_scoring(metadata, arrays, model)
    except Exception as error:  # crafted documents can raise any exception
        raise damaged(error) from error
    return model


def _pack(model: Any, spec: ModelSpec) -> list[bytes]:
    """Return the parts of a model file, in their order."""
    metadata, arrays = _described(model, spec)
    arrays, texts = text_arrays.encode(arrays)
    metadata["labels"], metadata["checksum"] = json.dumps(texts), CHECKSUM
    arrays[CHECKSUM] = np.zeros(4, dtype=np.uint8)
    parts, checksum = safetensors.pack(metadata, arrays), 0
    for part in parts[:-1]:
        checksum = zlib.crc32(part, checksum)
    parts[-1] = checksum.to_bytes(4, "little")
    return parts


@dataclass
class _Contents:
    """Contents of a model file while it is described."""

    native_scaler: bool  # whether a scaler is the only preprocessing step of the model
    metadata: dict[str, str]
    arrays: dict[str, Any] = field(default_factory=dict)
    pipelines: list[Any] = field(default_factory=list)  # of the archive of skops
    steps: list[str] = field(default_factory=list)  # classes of the steps in these

    def add_model(self, prefix: str, whole: Any, spec: ModelSpec) -> None:
        """Add the description of a model; a contained model has its name as a prefix."""
        front, model = split_front(whole)
        description = {
            "learner": type(model).__name__,
            "n_features": str(spec.n_features),
            "parameters": json.dumps(encode_params(model, self.pipelines)),
            "facts": json.dumps(spec.facts),
        }
        own = dict(spec.arrays)
        if is_scaler(front) and self.native_scaler:
            facts, learned = describe_scaled(whole)
            description["scaler"] = json.dumps(facts)
            own |= learned
        elif whole is not model:
            classes = names_of_steps(whole)
            description["steps"] = json.dumps({"pipeline": len(self.pipelines), "classes": classes})
            self.pipelines.append(without_learner(whole))
            self.steps += classes
        if hasattr(model, "query_column_"):
            description["query_column"] = json.dumps(model.query_column_)
        if hasattr(model, "grades_"):
            description["grades"] = json.dumps(model.grades_.tolist())
        if spec.feature_names is not None:
            own["feature_names"] = np.array(spec.feature_names, dtype=object)
        self.metadata.update({prefix + name: value for name, value in description.items()})
        self.arrays.update({prefix + name: array for name, array in own.items()})
        for name, (part, its_spec) in spec.parts.items():
            assert its_spec is not None
            check_learner(split_front(part)[1])
            self.add_model(f"{prefix}{name}.", part, its_spec)


def _described(model: Any, spec: ModelSpec) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the metadata and arrays of a model file, without those of its container."""
    assert spec.scoring is not None
    fronts = [front for front in _fronts(model, spec) if front is not None]
    scaled = len(fronts) == 1 and is_scaler(fronts[0])
    contents = _Contents(scaled, {"format": FORMAT, "version": str(VERSION)})
    contents.add_model("", model, spec)
    metadata, arrays, scoring = contents.metadata, contents.arrays, spec.scoring
    if contents.pipelines:
        arrays[SKOPS] = pack_steps(contents.pipelines)
    if contents.steps:
        scoring = no_scoring(
            f"the preprocessing steps ({', '.join(contents.steps)}) are objects of Python, which "
            "only rankcore.load opens"
        )
    metadata |= _describe_scoring(scoring, arrays)
    for name in [name for name in metadata if name.split(".")[-1] == "scaler"]:
        prefix = name.removesuffix("scaler")
        for key, of in scaler_scoring(json.loads(metadata[name])).items():
            metadata[f"{SCORING}.{key}"] = of if key == "scaler" else prefix + of
    return metadata, arrays


def _fronts(whole: Any, spec: ModelSpec) -> Iterator[Any]:
    """Return the preprocessing and the contained models of a model; None if there is neither."""
    yield split_front(whole)[0]
    for part, its_spec in spec.parts.values():
        assert its_spec is not None
        yield from _fronts(part, its_spec)


def _describe_scoring(scoring: Scoring, arrays: dict[str, Any]) -> dict[str, str]:
    """Return metadata of the scoring form; add the arrays that ``arrays`` lacks."""
    metadata = {SCORING: scoring.form}
    metadata |= {f"{SCORING}.{name}": str(fact) for name, fact in scoring.facts.items()}
    name_of = {_where(array): name for name, array in arrays.items()}
    for name, array in scoring.arrays.items():
        of = f"{SCORING}.{name}"
        if _where(array) in name_of:
            metadata[of] = name_of[_where(array)]
        else:
            metadata[of], arrays[of] = of, array
    return metadata


def _scored_with(metadata: Mapping[str, str], arrays: Mapping[str, np.ndarray]) -> set[str]:
    """Return the names of the arrays that readers need for scoring.

    They are derived from the learner's arrays, and only read to verify them.
    """
    names = set()
    for key, value in metadata.items():
        part = key.removeprefix(f"{SCORING}.")
        if part == key or part in forms.FACTS:
            continue
        if part not in forms.ARRAYS:
            raise ValueError(f"no model has the metadata {key}")
        if value not in arrays:
            raise ValueError(f"the array {value} is missing")
        names.add(value)
    return names


def _check_scoring(metadata: Mapping[str, str], arrays: Arrays, model: Any) -> None:
    """Raise ValueError unless the scoring form is that of the learner."""
    if metadata[SCORING] == "none":  # they reject the file
        return
    learner = split_front(model)[1]
    boosted = getattr(getattr(learner, "_state", None), "model", None)
    offsets = arrays.shapes.get(metadata.get(f"{SCORING}.offsets", ""))
    # The form of stumps has arrays of all features, whose memory the file must have, too.
    if isinstance(boosted, StumpSum) and offsets != (learner.n_features_in_ + 1,):
        raise ValueError(f"{SCORING}.offsets must be that of the learner")
    expected, computed = _described(model, learner._spec())
    keys = {key for key in (*metadata, *expected) if key.split(".")[0] == SCORING}
    for key in sorted(keys - {f"{SCORING}.reason"}):  # wording
        value, wanted = metadata.get(key, ""), expected.get(key, "")
        same = value == wanted and (key in metadata) == (key in expected)
        if value in arrays and wanted in computed:
            same = _is_near(arrays[value], computed[wanted])
        if not same:
            raise ValueError(
                f"{key} must be that of the learner; other readers would score otherwise"
            )


def _is_near(actual: NDArray[Any], expected: NDArray[Any]) -> bool:
    """Return whether arrays are equal up to rounding: sums depend on the machine."""
    if expected.dtype.kind != "f" or not expected.size or actual.shape != expected.shape:
        return np.array_equal(actual, expected)
    largest = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    return np.allclose(actual, expected, rtol=0.0, atol=ROUNDING * largest)


def _where(array: np.ndarray) -> tuple[Any, ...]:
    """Return address and layout of an array: equal for views of the same memory."""
    return array.ctypes.data, array.shape, array.strides, array.dtype.str


def _rebuild_model(
    metadata: dict[str, str], arrays: Arrays, pipelines: Sequence[Any]
) -> tuple[Any, set[str]]:
    """Build a model; return also the metadata keys that it and contained models have read."""
    kind = learner_named(metadata["learner"])
    if kind is None:
        raise ValueError(
            f"the learner {metadata['learner']!r} is unknown; a newer rankcore may have it"
        )
    keys, parts = set(OF_A_MODEL), {}
    for name in kind._PARTS:
        prefix = f"{name}."
        under = {k.removeprefix(prefix): v for k, v in metadata.items() if k.startswith(prefix)}
        part, its_names = _rebuild_model(under, arrays.under(prefix), pipelines)
        keys |= {prefix + key for key in its_names}
        parts[name] = (part, None)
    params = json.loads(metadata["parameters"])
    model = decode_learner(kind, params, pipelines)
    model._check_params()
    n_features = check_n_features(json.loads(metadata["n_features"]))
    names = None
    if "feature_names" in arrays:
        names = arrays["feature_names"]
    listed = None if names is None else names.tolist()
    facts = json.loads(metadata["facts"])
    model._restore(ModelSpec(facts, arrays, n_features, listed, parts=parts))
    if names is not None:
        if names.shape != (n_features,):
            raise ValueError(
                f"feature_names must have a name for each of {n_features} features; got "
                f"{names.size}"
            )
        model.feature_names_in_ = names
    if "query_column" in metadata:
        column = json.loads(metadata["query_column"])
        if not isinstance(column, str):
            raise ValueError(f"query_column must be the name of a column; got {column!r}")
        model.query_column_ = column
    if "grades" in metadata:
        model.grades_ = check_words(json.loads(metadata["grades"]), "grades")
    if "scaler" in metadata:
        model = restore_scaled(json.loads(metadata["scaler"]), arrays, model)
    elif "steps" in metadata:
        model = with_learner(pipelines, json.loads(metadata["steps"])["pipeline"], model)
    return model, keys
