"""JSON of untrusted files, read in memory in proportion to its text."""

from __future__ import annotations

import json
import re
from typing import Any

# Shorter texts take little memory for any contents.
SHORT = 2**16
# Minimum characters of a longer text per list; twice as many per object and key, which take
# the most memory in Python.
CHARACTERS = 8

# A string that does not end goes to the end of the text, or each of its quotes would be tried.
_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|([\[{:])', re.S)


def read_json(text: str) -> Any:
    """Parse a JSON text.

    Raises ValueError if it is invalid, or has so many lists and objects that it takes many times
    the memory of its text.
    """
    if len(text) > SHORT:
        most = len(text) // CHARACTERS
        for mark in _STRUCTURE.finditer(text):
            most -= 0 if mark[1] is None else 1 if mark[1] == "[" else 2
            if most < 0:
                raise ValueError(
                    f"a text of {len(text)} characters in the metadata is nearly all lists and "
                    "objects"
                )
    return json.loads(text)
