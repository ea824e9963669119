"""Opening of files without leaks by signals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rankcore._ext.held_signals import signals_held


@contextmanager
def opened(path: str | os.PathLike[str], mode: str = "rb", buffering: int = -1) -> Iterator[Any]:
    """As ``open``, in a ``with`` statement.

    ``with open(path)`` leaks an open file if a signal handler raises before the block starts;
    Python closes it later, with a ResourceWarning.
    """
    stream = None
    try:
        with signals_held():
            stream = open(path, mode, buffering)  # noqa: SIM115
        yield stream
    finally:
        if stream is not None:
            stream.close()
