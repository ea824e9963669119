"""Model files: one file per model, nothing in it that could run.

A model file is a zip archive without compression. ``model.json`` says what it is: the format and
its version, the learner's name, its parameters and settings. ``arrays/NAME.npy`` hold the numbers
in NumPy's own format, which any tool can read. Everything is checked on the way in: names and sizes
before an entry is read, so that no entry takes more memory than it has bytes in the file.
"""

from __future__ import annotations

import errno
import io
import json
import math
import os
import secrets
import stat
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from rankcore._core.concurrency import unchanging
from rankcore._core.model_spec import ModelSpec, Specified
from rankcore._core.public_names import HOME
from rankcore._core.random_state import decode_generator, encode_generator
from rankcore.io.scaled import describe_scaler, restore_scaled, split_scaler

FORMAT = "rankcore model"
# Raised when a reader of the old version would misread the new file.
VERSION = 1


def save(
    model: Any,
    path: str | os.PathLike[str],
) -> None:
    """Write a fitted model to one file.

    The file appears whole or not at all: a crash while writing leaves an older file of that name
    as it was. What is written is the model between two calls of ``partial_fit``, which wait
    meanwhile, and is read back and checked before it replaces an older file, whose mode it keeps.

    Parameters
    ----------
    model : a fitted learner, or a pipeline of StandardScaler or MaxAbsScaler and a learner
    path : str or path-like

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the model is not fitted.
    TypeError
        If a parameter cannot be written without pickling.
    RuntimeError
        If it is called while the model is learning, from a callback.
    OSError, ValueError
        If there is no such folder, no room, or ``path`` is a device or folder; or if the model's
        arrays were edited so that no file of them could be loaded.

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

    whole, (scaler, model) = model, split_scaler(model)
    if _learner(type(model).__name__) is not type(model):  # nor a subclass: load has to find it
        chosen = ", or save its best_estimator_" if hasattr(model, "best_estimator_") else ""
        raise TypeError(
            f"save takes a rankcore learner, found {type(model).__name__}; use pickle for "
            f"others{chosen}"
        )
    check_is_fitted(model)
    target = _writable_target(path)
    if scaler is not None:
        check_is_fitted(scaler)
    with unchanging(model):
        content = _pack(model, None if scaler is None else describe_scaler(whole, scaler))
    try:
        _read(content)
    except ValueError as error:
        raise ValueError(
            f"this {type(model).__name__} cannot be saved, because its file could not be loaded: "
            f"{error}"
        ) from error
    _write_atomically(target, content)


def check_params(model: Any) -> None:
    """Raise unless a model file can hold the parameters of an estimator, fitted or not.

    Parameters
    ----------
    model : estimator

    Raises
    ------
    TypeError
        If a parameter cannot be written without pickling.
    """
    for name, value in model.get_params(deep=False).items():
        _encode_param(name, value)


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
        return _read(content)
    except ValueError as error:
        raise ValueError(f"{path} {error}") from error


def _read(content: bytes) -> Any:
    """The model in the bytes of a file; ValueError says what the file is instead."""
    try:
        document, arrays = _unpack(content)
    except Exception as error:  # the readers of bytes that are not theirs raise almost anything
        raise ValueError(f"is not a rankcore model file, or it is damaged: {error}") from error
    if document["version"] > VERSION:
        raise ValueError(
            f"has format version {document['version']}; this rankcore reads up to {VERSION}: "
            "upgrade rankcore"
        )
    try:
        model = _rebuild(document, arrays)
        arrays.check_all_read()
    except Exception as error:  # as does what a crafted document asks for
        raise ValueError(f"is damaged: {error}") from error
    return model


def _pack(model: Specified, scaler: tuple[dict[str, Any], dict[str, Any]] | None) -> bytes:
    spec = model._spec()
    params: dict[str, Any] = model.get_params(deep=False)  # type: ignore[attr-defined]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "learner": type(model).__name__,
        "params": {name: _encode_param(name, value) for name, value in params.items()},
        "n_features": spec.n_features,
        "feature_names": spec.feature_names,
        **spec.facts,
    }
    arrays = dict(spec.arrays)
    if scaler is not None:
        document["scaler"] = scaler[0]
        arrays |= scaler[1]
    content = io.BytesIO()
    # Entries of no date: equal models have equal files.
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo("model.json"), json.dumps(document, indent=1))
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"arrays/{name}.npy")
            with archive.open(info, "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
    return content.getvalue()


def _unpack(content: bytes) -> tuple[dict[str, Any], Arrays]:
    archive = zipfile.ZipFile(io.BytesIO(content))
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names):
        raise ValueError("it has two entries of one name")
    if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
        raise ValueError("it has a compressed entry; entries are stored as they are")
    if sum(max(entry.file_size, entry.compress_size) for entry in entries) > len(content):
        raise ValueError("its entries claim to be larger than the file")
    document = json.loads(archive.read("model.json"))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"its model.json does not say {FORMAT!r}")
    if not isinstance(document.get("version"), int):
        raise ValueError("its model.json has no version")
    return document, Arrays(archive)


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of a model file by name, each read when it is asked for.

    Attributes
    ----------
    shapes : dict
        Shapes by name, known before an array is read.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._read: set[str] = set()
        self.shapes = {}
        for entry in archive.infolist():
            if entry.filename == "model.json":
                continue
            name = entry.filename.removeprefix("arrays/").removesuffix(".npy")
            if entry.filename != f"arrays/{name}.npy":
                raise ValueError(f"it has an entry {entry.filename!r} that no model has")
            self.shapes[name] = self._header(name)[0]

    def _header(self, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
        """Shape, whether columns come first, dtype and where the numbers begin."""
        entry = self._archive.getinfo(f"arrays/{name}.npy")
        with self._archive.open(entry) as stream, warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy reads headers of Python 2 with one
            if np.lib.format.read_magic(stream) != (1, 0):
                raise ValueError(f"the array {name} has another version of NumPy's format")
            shape, by_column, dtype = np.lib.format.read_array_header_1_0(stream)
            begin = stream.tell()
        if dtype.kind not in "fiubUSmM" or dtype.fields is not None:
            raise ValueError(f"the array {name} has dtype {dtype}")
        if begin + math.prod(shape) * dtype.itemsize != entry.file_size:
            raise ValueError(f"the array {name} is not as long as its header says")
        return shape, by_column, dtype, begin

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self.shapes:
            raise ValueError(f"it has no array {name}")
        shape, by_column, dtype, begin = self._header(name)
        self._read.add(name)
        values = np.frombuffer(self._archive.read(f"arrays/{name}.npy"), dtype, offset=begin)
        return values.reshape(shape, order="F" if by_column else "C").copy(order="K")

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def check_all_read(self) -> None:
        """Raise if there is an array that the learner did not ask for."""
        unknown = self.shapes.keys() - self._read
        if unknown:
            raise ValueError(f"it has arrays that its learner does not have: {sorted(unknown)}")


def _learner(name: Any) -> Any:
    """The public class of this name whose models have files; None if there is none."""
    kind = getattr(import_module(HOME[name]), name) if name in HOME else None
    if not (isinstance(kind, type) and issubclass(kind, Specified)):
        return None
    return None if kind._describe is Specified._describe else kind  # RankSVMCV has a model


def _rebuild(document: dict[str, Any], arrays: Arrays) -> Any:
    known = {"format", "version", "learner", "params", "n_features", "feature_names", "scaler"}
    learner, names = document["learner"], document["feature_names"]
    kind = _learner(learner)
    if kind is None:
        raise ValueError(f"its learner {learner!r} is unknown here; a newer rankcore may know it")
    model = kind(**{name: _decode_param(value) for name, value in document["params"].items()})
    model._check_params()
    facts = {name: value for name, value in document.items() if name not in known}
    model._restore(ModelSpec(facts, arrays, document["n_features"], names))
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
        if model.feature_names_in_.shape != (document["n_features"],):
            raise ValueError("its feature names do not fit its features")
    if "scaler" in document:
        return restore_scaled(document["scaler"], arrays, model)
    return model


def _encode_param(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return encode_generator(value)
    # Names of measures, or one value for each feature.
    named = name in ("eval_metric", "monotonic_cst", "categorical_features")
    if named and (isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1):
        return [_encode_param(f"an entry of {name}", one) for one in value]
    if isinstance(value, dict) and name in ("class_weight", "monotonic_cst"):
        pairs = [
            [_encode_param(f"an entry of {name}", one) for one in pair] for pair in value.items()
        ]
        return {"mapping": pairs}
    raise TypeError(
        f"the parameter {name}={value!r} cannot be written to a model file; replace it with "
        "set_params before saving"
    )


def _decode_param(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"mapping"}:
        return {_decode_param(key): _decode_param(one) for key, one in value["mapping"]}
    return decode_generator(value) if isinstance(value, dict) else value


def _writable_target(path: str | os.PathLike[str]) -> Path:
    """Where a file of this path will be, all links followed; raise if none can be there."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a file: a model needs one of its own")
    return target


def _write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path`` by a whole file: write beside it, flush to disk, then rename."""
    temporary = path.with_name(f".{secrets.token_hex(8)}.rankcore")
    # As readable as any other new file, which tempfile's are not.
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    handle = os.open(temporary, flags, 0o666 if mode is None else mode & 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:  # narrower until the content is whole, never wider
            os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
