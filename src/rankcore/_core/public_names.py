"""The public names and their modules, as ``rankcore/__init__.pyi`` lists them."""

from __future__ import annotations

import ast
from os.path import dirname, join  # `pathlib` takes longer to import than all else here


def _listed() -> dict[str, str]:
    with open(join(dirname(dirname(__file__)), "__init__.pyi"), encoding="utf-8") as stub:
        statements = ast.parse(stub.read()).body
    return {
        alias.name: node.module
        for node in statements
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


# Modules by public name; that of a module is `rankcore`.
MODULE_OF = _listed()
