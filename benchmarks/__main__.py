"""Run a benchmark by name."""

import argparse
from importlib import import_module
from pathlib import Path

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
    arguments = parser.parse_args()
    import_module(f"benchmarks.{arguments.name}").run(arguments.repeat)


main()
