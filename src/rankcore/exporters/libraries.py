"""Optional libraries of targets, imported on use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def library(module: str, package: str) -> Any:
    """Import a module of an optional library, or raise an error that says what to install."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this needs {package}: pip install {package} (ONNX: 'rankcore[export]')",
            name=error.name,
        ) from error
