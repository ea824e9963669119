"""Run a benchmark by name."""

import argparse
import os
from importlib import import_module
from pathlib import Path

from benchmarks.measure import SMALL

NAMES = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if path.stem not in {"__init__", "__main__", "against", "measure"}
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument(
        "--repeat", type=int, default=11, help="timings a figure (default: %(default)s)"
    )
    parser.add_argument(
        "--small", action="store_true", help="small data, seconds: does it run? Figures say nothing"
    )
    arguments = parser.parse_args()
    if arguments.small:
        os.environ[SMALL] = "1"  # before sizes are read; processes that it starts see it too
    import_module(f"benchmarks.{arguments.name}").run(arguments.repeat)


main()
