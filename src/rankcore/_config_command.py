"""Paths for compilers and build systems: `get_include`, and the command ``rankcore-config``."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the directory of ``rankcore.h`` and the other headers, for a compiler.

    ``rankcore-config`` prints it, and the directories of the files for CMake and pkg-config.

    Returns
    -------
    str

    Examples
    --------
    >>> import os, rankcore
    >>> {"rankcore.h", "rankcore_capi.h", "rankcore_model.h"} <= set(os.listdir(
    ...     rankcore.get_include()))
    True
    """
    return str(Path(__file__).parent / "include")


def main(arguments: list[str] | None = None) -> None:
    """Print the selected paths, one per line."""
    import argparse
    from importlib.metadata import version

    package = Path(__file__).parent
    paths = {
        "--includedir": (get_include(), "directory of rankcore.h and the other headers"),
        "--cflags": (f"-I{get_include()} -ffp-contract=off", "options of a C compiler"),
        "--libs": ("-lm", "options of a linker"),
        "--cmakedir": (str(package / "cmake"), "directory of the package for CMake"),
        "--pkgconfigdir": (str(package / "pkgconfig"), "directory of rankcore.pc"),
        "--version": (version("rankcore"), "version of rankcore"),
    }
    parser = argparse.ArgumentParser(
        prog="rankcore-config", description="Where compilers find rankcore."
    )
    for option, (_, text) in paths.items():
        parser.add_argument(option, action="append_const", dest="wanted", const=option, help=text)
    wanted = parser.parse_args(arguments).wanted
    if not wanted:
        parser.error(f"pass one of {', '.join(paths)}")
    for option in wanted:
        print(paths[option][0])
