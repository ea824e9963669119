"""JSON in the metadata of model files, read in memory that is in proportion to its text."""

from __future__ import annotations

import json
import re
from typing import Any

# Shorter texts take little memory whatever they hold.
SHORT = 2**16
# Characters of a longer text for each list; twice as many for each object and each of its names,
# of which Python makes the most.
CHARACTERS = 8

_STRUCTURE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([\[{:])')


def read_json(text: str) -> Any:
    """The value of a JSON text.

    Raises ValueError if it is none, or has so many lists and objects that it takes many times the
    memory of its text.
    """
    if len(text) > SHORT:
        most = len(text) // CHARACTERS
        for mark in _STRUCTURE.finditer(text):
            most -= 0 if mark[1] is None else 1 if mark[1] == "[" else 2
            if most < 0:
                raise ValueError(
                    f"its metadata hold a text of {len(text)} characters that is "
                    f"nearly all lists and objects"
                )
    return json.loads(text)
