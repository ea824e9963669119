"""Learning to rank: exact, online, sparse-native.

Names are imported on first use, so that ``import rankcore`` is fast; ``__init__.pyi`` lists them.
"""

from importlib import import_module
from typing import Any

from rankcore._core.public_names import MODULE_OF

__all__ = sorted(MODULE_OF)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("rankcore")
    if name not in MODULE_OF:
        raise AttributeError(f"module 'rankcore' has no attribute {name!r}{_meant(name)}")
    if MODULE_OF[name] == "rankcore":
        return import_module(f"rankcore.{name}")
    value = getattr(import_module(MODULE_OF[name]), name)
    globals()[name] = value
    return value


def _meant(name: str) -> str:
    """Hint with the most similar public name; empty for names that tools look up."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    by_letters = {name.lower(): name for name in __all__}
    near = get_close_matches(name.lower(), by_letters, n=1, cutoff=0.75)
    return f": did you mean {by_letters[near[0]]}?" if near else ""


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
