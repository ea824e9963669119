"""``rankcore-config``: paths for compilers and build systems."""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path


def main(arguments: list[str] | None = None) -> None:
    """Print the selected paths, one per line."""
    package = Path(__file__).parent
    found = {
        "--includedir": (str(package / "include"), "directory of rankcore.h and the other headers"),
        "--cflags": (f"-I{package / 'include'} -ffp-contract=off", "options of a C compiler"),
        "--libs": ("-lm", "options of a linker"),
        "--cmakedir": (str(package / "cmake"), "directory of the package for CMake"),
        "--pkgconfigdir": (str(package / "pkgconfig"), "directory of rankcore.pc"),
        "--version": (version("rankcore"), "version of rankcore"),
    }
    parser = argparse.ArgumentParser(
        prog="rankcore-config", description="Where compilers find rankcore."
    )
    for option, (_, text) in found.items():
        parser.add_argument(option, action="append_const", dest="wanted", const=option, help=text)
    wanted = parser.parse_args(arguments).wanted
    if not wanted:
        parser.error(f"pass one of {', '.join(found)}")
    for option in wanted:
        print(found[option][0])
