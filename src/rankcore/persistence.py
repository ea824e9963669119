"""Model files: one file a model, nothing in it that could run.

A model file is a zip archive. ``model.json`` says what it is: the format and its version, the
learner's name, its parameters and settings. ``arrays/NAME.npy`` hold the numbers in NumPy's own
format, which any tool can read. Everything is checked on the way in.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from rankcore.base import OnlineOrdinalClassifier, OnlineState, feature_axis
from rankcore.inputs import check_classes
from rankcore.pairstate import PairwiseState
from rankcore.pairwise import PairwisePerceptron
from rankcore.stumpboosting import FIGURES, StumpBoosting
from rankcore.stumpmodel import StumpSum
from rankcore.svm import RankSVM
from rankcore.svm._files import rebuild, to_arrays

FORMAT = "rankcore model"
# Raised when a reader of the old version would misread the new file.
VERSION = 1


def save(
    model: OnlineOrdinalClassifier | PairwisePerceptron | StumpBoosting | RankSVM,
    path: str | os.PathLike[str],
) -> None:
    """Write a fitted model to one file.

    The file appears whole or not at all: a crash while writing leaves an older file of that name
    as it was.

    Parameters
    ----------
    model : a fitted learner
    path : str or path-like

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    TypeError
        If a parameter cannot be written without pickling.
    OSError, ValueError
        If there is no such folder, no room, or ``path`` is a device or folder.

    Examples
    --------
    >>> import os, tempfile, rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1]], [3, 1, 2]
    >>> path = os.path.join(tempfile.mkdtemp(), "stars.rankcore")
    >>> rc.save(rc.PRank().fit(X, y), path)
    >>> rc.load(path).partial_fit([[2, 0]], [3]).t_
    4
    """
    from sklearn.utils.validation import check_is_fitted

    if _learner(type(model).__name__) is not type(model):  # nor a subclass: load has to find it
        raise TypeError(
            f"save takes a rankcore learner, found {type(model).__name__}; use pickle for others"
        )
    check_is_fitted(model)
    names = getattr(model, "feature_names_in_", None)
    settings: dict[str, Any] = {}
    streaming = False
    if isinstance(model, StumpBoosting):
        arrays, settings = model._state.to_arrays(), {"zero_missing": model._state.zero_missing}
        facts = {"with_qid": model._with_qid, "history": model.history_}
    elif isinstance(model, RankSVM):
        arrays, facts = to_arrays(model)
    elif isinstance(model, PairwisePerceptron):
        arrays, facts = model._state.to_arrays(), {"seed": model._state.seed}
        facts |= {"with_qid": model._with_qid, "measure": model._state.measure}
    else:
        arrays, facts = _ordinal_arrays(model), {}
    if not isinstance(model, OnlineOrdinalClassifier):
        facts["best_iteration"] = getattr(model, "best_iteration_", None)
    if not isinstance(model, StumpBoosting | RankSVM):
        settings, streaming = model._state.settings, model._state.streaming
    document = {
        "format": FORMAT,
        "version": VERSION,
        "learner": type(model).__name__,
        "params": {
            name: _encode_param(name, value) for name, value in model.get_params(deep=False).items()
        },
        "settings": settings,
        "streaming": streaming,
        **facts,
        "n_features": model.n_features_in_,
        "feature_names": None if names is None else [str(name) for name in names],
    }
    _write_atomically(Path(path).resolve(), _pack(document, arrays))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Nothing in the file is executed, and every array is checked against the learner before it is
    used.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    estimator
        Equal to the saved one to the bit, ready to predict and to go on with ``partial_fit``.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is not a rankcore model, is damaged, or was written by a newer version.
    """
    content = Path(path).read_bytes()
    try:
        document, arrays = _unpack(content)
    except Exception as error:  # the readers of bytes that are not theirs raise almost anything
        raise ValueError(
            f"{path} is not a rankcore model file, or it is damaged: {error}"
        ) from error
    if document["version"] > VERSION:
        raise ValueError(
            f"{path} has format version {document['version']}; this rankcore reads up to "
            f"{VERSION}: upgrade rankcore"
        )
    try:
        return _rebuild(document, arrays)
    except Exception as error:  # as does what a crafted document asks for
        raise ValueError(f"{path} is damaged: {error}") from error


def _ordinal_arrays(model: OnlineOrdinalClassifier) -> dict[str, np.ndarray]:
    state = model._state
    arrays = {f"by_feature.{name}": array for name, array in state.by_feature.items()}
    arrays |= {f"others.{name}": array for name, array in state.others.items()}
    arrays["counts"] = state.counts
    arrays["curve"] = np.array(state.curve, dtype=np.int64).reshape(-1, 2)
    arrays["epochs"] = np.array(state.epochs, dtype=np.int64).reshape(-1, 3)
    arrays["classes"] = model.classes_
    return arrays


def _pack(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("model.json", json.dumps(document, indent=1))
        for name, array in arrays.items():
            with archive.open(f"arrays/{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def _unpack(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        document = json.loads(archive.read("model.json"))
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ValueError(f"its model.json does not say {FORMAT!r}")
        if not isinstance(document.get("version"), int):
            raise ValueError("its model.json has no version")
        arrays = {}
        for entry in archive.namelist():
            if entry.startswith("arrays/"):
                with archive.open(entry) as stream:
                    name = entry.removeprefix("arrays/").removesuffix(".npy")
                    arrays[name] = np.lib.format.read_array(stream, allow_pickle=False)
                    if stream.read(1):  # also makes zipfile compare the checksum
                        raise ValueError(f"{entry} has data after its array")
    return document, arrays


def _learner(name: Any) -> Any:
    """The public class of this name whose models have files; None if there is none."""
    import rankcore

    kind = getattr(rankcore, name) if name in rankcore.__all__ else None
    known = OnlineOrdinalClassifier | PairwisePerceptron | StumpBoosting | RankSVM
    return kind if isinstance(kind, type) and issubclass(kind, known) else None


def _rebuild(document: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    learner = document["learner"]
    kind = _learner(learner)
    if kind is None:
        raise ValueError(f"its learner {learner!r} is unknown here; a newer rankcore may know it")
    model = kind(**{name: _decode_param(value) for name, value in document["params"].items()})
    model._check_params()
    if isinstance(model, StumpBoosting):
        _rebuild_boosting(model, document, arrays)
    elif isinstance(model, RankSVM):
        rebuild(model, document, arrays)
    elif isinstance(model, PairwisePerceptron):
        _rebuild_pairwise(model, document, arrays)
    else:
        _rebuild_ordinal(model, document, arrays)
    if document["feature_names"] is not None:
        model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
        if model.feature_names_in_.shape != (document["n_features"],):
            raise ValueError("its feature names do not fit its features")
    return model


def _rebuild_pairwise(
    model: PairwisePerceptron, document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    settings, n_features = document["settings"], document["n_features"]
    if not isinstance(n_features, int) or n_features < 1:
        raise ValueError(f"it has {n_features!r} features")
    if settings.keys() != model._settings().keys():
        raise ValueError(f"its settings {settings} are not those of {document['learner']}")
    capacity, seed = settings["capacity"], document["seed"]
    if not (capacity is None or (isinstance(capacity, int) and capacity > 0)):
        raise ValueError(f"its committee has {capacity!r} members")
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(f"its seed is {seed!r}")
    measure, best = document["measure"], document["best_iteration"]
    if not (isinstance(measure, str) if arrays["validation"].size else measure is None):
        raise ValueError(f"its validation is of {measure!r}")
    if not (best is None or 1 <= int(best) <= arrays["validation"].size):
        raise ValueError(f"its best pass is {best!r}")
    model._state = PairwiseState.from_arrays(
        arrays, n_features, seed, settings, bool(document["streaming"]), _like
    )
    model._state.measure = measure
    model.n_features_in_ = n_features
    model._with_qid = bool(document["with_qid"])
    if best is not None:
        model.best_iteration_ = int(best)


def _rebuild_boosting(
    model: StumpBoosting, document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    n_features, history = document["n_features"], document["history"]
    best = document["best_iteration"]
    if not isinstance(n_features, int) or n_features < 1:
        raise ValueError(f"it has {n_features!r} features")
    zero_missing = document["settings"].get("zero_missing")
    if not isinstance(zero_missing, bool) or len(document["settings"]) != 1:
        raise ValueError(f"its settings {document['settings']} are not those of a boosted model")
    state = StumpSum.from_arrays(arrays, n_features, zero_missing)
    lengths = {len(values) for values in history.values()}
    if not set(FIGURES) <= history.keys() or len(lengths) != 1:
        raise ValueError("its history is not that of a boosted model")
    n_rounds = lengths.pop()
    if len(state) > n_rounds or not (best is None or 0 <= int(best) <= n_rounds):
        raise ValueError("it has more stumps than rounds")
    numbers = np.array([values for values in history.values()], dtype=np.float64)
    if np.isnan(numbers).any():
        raise ValueError("its history holds NaN")
    model._state, model._history = (
        state,
        {name: list(map(float, history[name])) for name in history},
    )
    model.n_features_in_, model._with_qid = n_features, bool(document["with_qid"])
    if best is not None:
        model.best_iteration_ = int(best)


def _rebuild_ordinal(
    model: OnlineOrdinalClassifier, document: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    classes, n_features = check_classes(arrays["classes"]), document["n_features"]
    for name, array in arrays.items():
        if name.startswith("by_feature.") and array.shape[feature_axis(array) :][:1] != (
            n_features,
        ):
            raise ValueError(f"its array {name} has shape {array.shape} for {n_features} features")
    # A fresh state says which arrays there must be, of which types and shapes.
    settings = document["settings"]
    for name, value in settings.items():
        model.set_params(**{name: value})
    model._check_params()
    expected = OnlineState(*model._like_saved(n_features, classes.size, arrays), model._settings())
    if settings != expected.settings:
        raise ValueError(f"its settings {settings} are not those of {document['learner']}")
    state = OnlineState(
        {name: _like(arrays, f"by_feature.{name}", a) for name, a in expected.by_feature.items()},
        {name: _like(arrays, f"others.{name}", a) for name, a in expected.others.items()},
        expected.settings,
        _like(arrays, "counts", expected.counts),
        [tuple(point) for point in _table(arrays, "curve", 2)],
        _table(arrays, "epochs", 3),
        bool(document["streaming"]),
    )
    _check_counts(state)
    model._check_state(state, classes.size)
    model.set_params(**{n: _decode_param(v) for n, v in document["params"].items()})
    model.classes_, model.n_features_in_, model._state = classes, n_features, state


def _check_counts(state: OnlineState) -> None:
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


def _like(arrays: dict[str, np.ndarray], name: str, expected: np.ndarray) -> np.ndarray:
    array = arrays[name]
    if array.shape != expected.shape or array.dtype != expected.dtype:
        raise ValueError(
            f"its array {name} has shape {array.shape} and dtype {array.dtype}; expected "
            f"{expected.shape} and {expected.dtype}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"its array {name} holds NaN or infinity")
    return np.ascontiguousarray(array)


def _table(arrays: dict[str, np.ndarray], name: str, n_columns: int) -> list[Any]:
    table = arrays[name]
    if table.ndim != 2 or table.shape[1] != n_columns or table.dtype != np.int64:
        raise ValueError(f"its table {name} has shape {table.shape} and dtype {table.dtype}")
    return table.tolist()


def _encode_param(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        kind = type(value).__name__
        bits: Any = getattr(value, "bit_generator", None) or value._bit_generator  # type: ignore[union-attr]
        state = json.loads(json.dumps(bits.state, default=lambda array: array.tolist()))
        return {"random": kind, "bit_generator": type(bits).__name__, "state": state}
    raise TypeError(
        f"the parameter {name}={value!r} cannot be written to a model file; replace it with "
        "set_params before saving"
    )


def _decode_param(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value["bit_generator"] not in {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}:
        raise ValueError(f"its bit generator {value['bit_generator']!r} is not one of NumPy's")
    bits = getattr(np.random, value["bit_generator"])()
    bits.state = _with_arrays(value["state"])
    if value["random"] == "RandomState":
        return np.random.RandomState(bits)
    return np.random.Generator(bits)


def _with_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_arrays(item) for name, item in value.items()}
    return np.array(value, dtype=np.uint64) if isinstance(value, list) else value


def _write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by a whole file: write beside it, flush to disk, then rename."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a file: a model needs one of its own")
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    # As readable as any other new file, which tempfile's are not.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
