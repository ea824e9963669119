"""Model files taken apart and put together again, with a checksum that fits."""

import json
import zlib

import numpy as np

from rankcore.io import safetensors

CHECKSUM = "~crc32"
DOCUMENTS = ("n_features", "parameters", "facts", "scaler", "steps", "labels")


def taken_apart(content):
    """Return the metadata of a model file, JSON decoded, and its arrays except the checksum."""
    metadata, tensors = safetensors.unpack(content)
    document = {k: json.loads(v) if k in DOCUMENTS else v for k, v in metadata.items()}
    arrays = {name: safetensors.view(content, one).copy() for name, one in tensors.items()}
    return document, {name: array for name, array in arrays.items() if name != CHECKSUM}


def put_together(document, arrays):
    metadata = {k: json.dumps(v) if k in DOCUMENTS else v for k, v in document.items()}
    parts = safetensors.pack(metadata, {**arrays, CHECKSUM: np.zeros(4, dtype=np.uint8)})
    return signed(b"".join(parts))


def signed(content):
    """Return the bytes with a valid checksum in the last four."""
    return content[:-4] + zlib.crc32(content[:-4]).to_bytes(4, "little")


def rewrite(path, edit=None, arrays=None):
    """Change the metadata, by a function, or arrays (None: drop) of a model file."""
    document, found = taken_apart(path.read_bytes())
    if edit is not None:
        edit(document)
    found |= arrays or {}
    found = {name: array for name, array in found.items() if array is not None}
    path.write_bytes(put_together(document, found))


def set_in(*keys, value):
    """Return an edit that replaces an entry of the metadata, possibly a nested one."""

    def edit(document):
        for key in keys[:-1]:
            document = document[key]
        document[keys[-1]] = value

    return edit
