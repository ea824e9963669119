"""The safetensors container: a JSON header and raw little-endian arrays, mapped without a copy.

The format is that of https://github.com/huggingface/safetensors. The tests read and write files
with its library, which is not used here: it copies each array on reading, writes metadata keys in
an order that changes from run to run, and has no wheels for free-threaded Python.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DTYPES = {
    "BOOL": np.dtype("?"),
    **{f"U{8 * size}": np.dtype(f"<u{size}") for size in (1, 2, 4, 8)},
    **{f"I{8 * size}": np.dtype(f"<i{size}") for size in (1, 2, 4, 8)},
    **{f"F{8 * size}": np.dtype(f"<f{size}") for size in (2, 4, 8)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
# Bytes of the length of the header, at the start of the file.
LENGTH_BYTES = 8
# Alignment of the end of the header, where the arrays begin.
ALIGNMENT = 8
# The limit of the format's own library.
LONGEST_HEADER = 100_000_000
METADATA = "__metadata__"
# Supported by every release of NumPy.
MOST_DIMENSIONS = 32


@dataclass(frozen=True, slots=True)
class Tensor:
    """Location of an array in a file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    # Bytes ``first`` to ``last`` of the file.
    first: int
    last: int


def pack(metadata: Mapping[str, str], arrays: Mapping[str, NDArray[Any]]) -> list[bytes]:
    """Return the parts of a file, to be written in order.

    Arrays are sorted by descending item size, for alignment, and then by name: equal
    arrays give equal files.
    """
    header: dict[str, Any] = {METADATA: dict(metadata)}
    parts, end = [b"", b""], 0
    for name, array in sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        dtype = array.dtype.newbyteorder("<")
        if dtype not in NAMES:
            raise TypeError(f"the array {name} has dtype {array.dtype}, which no model file holds")
        parts.append(array.astype(dtype, order="C", copy=False).tobytes())
        offsets = [end, end + len(parts[-1])]
        header[name] = {"dtype": NAMES[dtype], "shape": list(array.shape), "data_offsets": offsets}
        end = offsets[1]
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    parts[:2] = [len(text).to_bytes(LENGTH_BYTES, "little"), text]
    return parts


def unpack(content: Any) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Return metadata of a file and the locations of its arrays; raise if it is invalid."""
    size = len(content)
    n = int.from_bytes(content[:LENGTH_BYTES], "little")
    begin = LENGTH_BYTES + n
    if size < LENGTH_BYTES or begin > size:
        raise ValueError(f"{size} bytes are fewer than the declared length of the header")
    if n > LONGEST_HEADER:
        raise ValueError(f"the header has {n} bytes; at most {LONGEST_HEADER} are supported")
    # The header starts with a brace, by which readers recognise the format.
    if content[LENGTH_BYTES : LENGTH_BYTES + 1] != b"{":
        raise ValueError("the header must begin with a brace")
    header = json.loads(bytes(content[LENGTH_BYTES:begin]), object_pairs_hook=_distinct)
    metadata = header.pop(METADATA, {})
    if not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise ValueError("all metadata must be text")
    tensors = {name: _tensor(name, entry, begin) for name, entry in header.items()}
    end = begin
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].first, item[1].last)):
        if tensor.first != end:
            raise ValueError(f"the array {name} does not start where the one before it ends")
        end = tensor.last
    if end != size:
        raise ValueError(f"the arrays end at byte {end}, and the file at byte {size}")
    return metadata, tensors


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("the header has two entries of one name")
    return entries


def _tensor(name: str, entry: Any, begin: int) -> Tensor:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"the header of the array {name} lacks a dtype, a shape or offsets")
    shape, (first, last) = entry["shape"], entry["data_offsets"]
    if not all(type(number) is int and 0 <= number < 2**63 for number in [*shape, first, last]):
        raise ValueError(f"the shape or the offsets of the array {name} are invalid")
    if len(shape) > MOST_DIMENSIONS:
        raise ValueError(f"the array {name} has {len(shape)} dimensions; at most {MOST_DIMENSIONS}")
    dtype = DTYPES.get(entry["dtype"])
    if dtype is None:
        raise ValueError(f"the array {name} has the unknown dtype {entry['dtype']!r}")
    if math.prod(shape) * dtype.itemsize != last - first:
        raise ValueError(f"the array {name} does not have the length in its header")
    return Tensor(dtype, tuple(shape), begin + first, begin + last)


def view(content: Any, tensor: Tensor) -> NDArray[Any]:
    """Return a read-only view of an array in a file."""
    n = math.prod(tensor.shape)
    if n == 0:
        return np.empty(tensor.shape, tensor.dtype)
    return np.frombuffer(content, tensor.dtype, n, tensor.first).reshape(tensor.shape)
