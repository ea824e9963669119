"""Contents of model files: checked metadata and arrays, before they become a model."""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Iterator, Mapping
from copy import copy
from typing import BinaryIO, TypeAlias

import numpy as np

from rankcore.io import safetensors, text_arrays

Content: TypeAlias = bytes | memoryview | mmap.mmap

FORMAT = "rankcore model"
# Increases when readers of the old version would misread new files.
VERSION = 1
# Larger files are memory-mapped, and arrays are read on use.
LARGE = 2**26
# The last array of a file: CRC-32 of all bytes before it, least significant byte first.
CHECKSUM = "~crc32"
# Maximum characters of the reason in an error.
LONGEST_MESSAGE = 500


def is_read_whole(content: Content) -> bool:
    """Return whether a file is small enough to be read and verified, not mapped."""
    return len(content) <= LARGE


def unpacked(content: Content, verify: bool) -> tuple[dict[str, str], Arrays]:
    """Return metadata and arrays of a file; raise ValueError if it is no valid model file."""
    try:
        metadata, tensors = safetensors.unpack(content)
        if metadata.get("format") != FORMAT:
            raise ValueError(f"the metadata lack the format {FORMAT!r}")
        version = int(metadata["version"])
        last = tensors.pop(CHECKSUM, None)
        if last is None and "checksum" in metadata:
            raise ValueError("the checksum is missing")
        if last is not None and (last.dtype, last.shape) != (np.dtype(np.uint8), (4,)):
            raise ValueError("the checksum must have 4 bytes")
        if verify and last is not None:
            _check_sum(content, last)
    except Exception as error:  # parsers of invalid bytes may raise almost any exception
        raise ValueError(
            f"is not a rankcore model file, or it is damaged: {_shortened(error)}"
        ) from error
    if version > VERSION:
        raise ValueError(
            f"has format version {version}; this rankcore reads up to {VERSION}: upgrade rankcore"
        )
    try:
        texts = json.loads(metadata["labels"])
        if not isinstance(texts, dict) or not all(isinstance(kind, str) for kind in texts.values()):
            raise ValueError("the kinds of arrays of text must be an object of names")
        return metadata, Arrays(content, tensors, texts, mapped=not verify)
    except Exception as error:  # crafted documents can raise any exception
        raise damaged(error) from error


def damaged(error: Exception) -> ValueError:
    """Return the error for a file whose parts contradict each other."""
    return ValueError(f"is damaged: {_shortened(error)}")


def content_of(stream: BinaryIO) -> bytes | mmap.mmap:
    """Read a file; large files are memory-mapped."""
    if os.fstat(stream.fileno()).st_size <= LARGE:
        return stream.read()
    return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def _shortened(error: Exception) -> str:
    """Return the message of an error, truncated because it may quote a whole file."""
    text = str(error)
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]} ..."


def _check_sum(content: Content, last: safetensors.Tensor) -> None:
    """Raise ValueError unless the checksum at the end of a file matches its content."""
    checksum, step = 0, 2**24
    with memoryview(content) as whole:
        if last.last != len(whole):
            raise ValueError("the checksum must be the last array")
        for start in range(0, last.first, step):
            checksum = zlib.crc32(whole[start : min(start + step, last.first)], checksum)
        if checksum.to_bytes(4, "little") != bytes(whole[last.first :]):
            raise ValueError("the checksum does not match the content; copy or save the file again")


class Arrays(Mapping[str, np.ndarray]):
    """The arrays of a model file by name, read on access; their shapes are known before.

    ``mapped`` is whether the file is memory-mapped.
    """

    def __init__(
        self,
        content: Content,
        tensors: Mapping[str, safetensors.Tensor],
        texts: Mapping[str, str],
        *,
        mapped: bool,
    ) -> None:
        self._content, self._tensors, self._texts = content, tensors, texts
        self._read: set[str] = set()
        self._prefix, self.mapped = "", mapped
        self.shapes = {name: tensor.shape for name, tensor in tensors.items()}
        for name in texts:  # as many strings as ends
            if f"{name}{text_arrays.ENDS}" in tensors:
                self.shapes[name] = self.shapes.pop(f"{name}{text_arrays.ENDS}")

    def under(self, prefix: str) -> Arrays:
        """Return the arrays whose names have a prefix, by their names without it."""
        part = copy(self)
        part._prefix = self._prefix + prefix
        part.shapes = {
            name.removeprefix(prefix): shape
            for name, shape in self.shapes.items()
            if name.startswith(prefix)
        }
        return part

    def __contains__(self, name: object) -> bool:
        return name in self.shapes

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def _view(self, name: str) -> np.ndarray:
        if name not in self._tensors:
            raise ValueError(f"the array {name} is missing")
        self._read.add(name)
        array = safetensors.view(self._content, self._tensors[name])
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        # Arrays of a file that was read belong to the model, as those of a fit.
        return array if isinstance(self._content, mmap.mmap) else array.copy()

    def __getitem__(self, name: str) -> np.ndarray:
        name = self._prefix + name
        if name in self._texts:
            return text_arrays.decode(name, self._texts[name], self._view)
        return self._view(name)

    def check_all_read(self, others: set[str]) -> None:
        """Raise if there is an array that the learner did not read, except those in `others`."""
        unknown = self._tensors.keys() - self._read - others
        if unknown:
            raise ValueError(f"no learner of this kind has the arrays {sorted(unknown)}")
