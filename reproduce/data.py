"""Where the data of reproductions are."""

import os
import sys
from pathlib import Path

DATA = Path(os.environ.get("RANKCORE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def require(*names: str) -> None:
    """End the program, saying what to do, unless all these sets are there."""
    absent = [name for name in names if not (DATA / name).is_dir()]
    if absent:
        sys.exit(
            f"no data in {DATA / absent[0]}: set RANKCORE_DATA to the folder that holds "
            f"{absent[0]}, or run python -m reproduce.fetch {' '.join(absent)}; docs/data.md says "
            "where data come from"
        )
