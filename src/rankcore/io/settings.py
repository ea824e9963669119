"""JSON in model files: parameters of steps, and texts read in memory in proportion to them."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from rankcore.io.text_arrays import LARGEST, TIMES

_BUILTIN = {"float": float, "int": int, "bool": bool}


def encode_setting(owner: str, name: str, value: Any) -> Any:
    """Encode a parameter of a step of the class ``owner``; TypeError if that requires pickling."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value

    def each(values: Any) -> list[Any]:
        return [encode_setting(owner, name, one) for one in values]

    if isinstance(value, list):
        return each(value)
    if isinstance(value, tuple):
        return {"tuple": each(value)}
    if isinstance(value, set | frozenset):
        return {type(value).__name__: each(sorted(value, key=repr))}
    if isinstance(value, slice):
        return {"slice": each([value.start, value.stop, value.step])}
    if isinstance(value, np.ndarray) and value.ndim <= 1 and value.dtype.kind in "biufOU":
        return {"array": each(value.tolist()), "dtype": value.dtype.str.lstrip("<>|=")}
    if isinstance(value, dict) and name == "transformer_weights":
        return {"dict": [each(pair) for pair in value.items()]}
    if isinstance(value, np.dtype) and value.kind in "biuf":
        return {"dtype": value.newbyteorder("=").name}
    if name == "dtype" and isinstance(value, type):
        if value in _BUILTIN.values():
            return {"type": f"builtin {value.__name__}"}
        if issubclass(value, np.generic) and np.dtype(value).kind in "biuf":
            return {"type": np.dtype(value).name}
    what = f"{owner}({name}={value!r})"
    if callable(value):
        raise TypeError(
            f"{what} is code, which model files do not hold: use a setting that is none, or save "
            "with pickle or joblib"
        )
    raise TypeError(f"{what} cannot be written to a model file: use pickle or joblib")


def decode_setting(value: Any) -> Any:
    """Decode a parameter from the result of `encode_setting`; raise for other values."""
    if isinstance(value, list):
        return [decode_setting(one) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"array", "dtype"}:
        kind = np.dtype(value["dtype"])
        found = decode_setting(value["array"])
        # NumPy strings are all as wide as the longest: check that this is not many times the text.
        if kind.kind not in "biufOU" or (
            kind.kind == "U" and kind.itemsize * len(found) > LARGEST + TIMES * sum(map(len, found))
        ):
            raise ValueError(f"its setting is an array of {value['dtype']!r}")
        return np.array(found, dtype=kind)
    ((name, inside),) = value.items()
    if name == "number":
        return float(inside)
    if name in ("dtype", "type"):
        if name == "type" and inside.startswith("builtin "):
            return _BUILTIN[inside.removeprefix("builtin ")]
        dtype = np.dtype(inside)
        if dtype.kind not in "biuf":
            raise ValueError(f"its setting is the type {inside!r}")
        return dtype if name == "dtype" else dtype.type
    parts = [decode_setting(one) for one in inside]
    if name == "dict":
        return {key: one for key, one in parts}
    make: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
    return slice(*parts) if name == "slice" else make[name](parts)


# Shorter texts take little memory for any contents.
SHORT = 2**16
# Minimum characters of a longer text per list; twice as many per object and key, which take
# the most memory in Python.
CHARACTERS = 8

_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{:])')


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises ValueError if it is invalid, or has so many lists and objects that it takes many times
    the memory of its text.
    """
    if len(text) > SHORT:
        most = len(text) // CHARACTERS
        for mark in _STRUCTURE.finditer(text):
            most -= 0 if mark[1] is None else 1 if mark[1] == "[" else 2
            if most < 0:
                raise ValueError(
                    f"its metadata hold a text of {len(text)} characters that is nearly all lists "
                    "and objects"
                )
    return json.loads(text)
