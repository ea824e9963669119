"""Memory of fits from a row cache by learners that use all rows at once.

``RANKCORE_CACHE_MB`` sets the size of the cache (default 500; 3000 is the figure of the
documentation), of 136 dense features. Memory is the maximum of what the system cannot reclaim:
anonymous pages, and pages of files that are not yet written. Pages of the cache that are only
mapped are shown beside it. Linux only.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.measure import machine, show, sized
from benchmarks.streams import write
from rankcore.datasets import open_rows

FITS = {
    "RankBoost, 30 stumps": ("rc.RankBoost(30)", 400),
    "RankBoost, a tree of 31 leaves": ("rc.RankBoost(1, max_leaf_nodes=31)", 400),
    "RankSVM": ("rc.RankSVM(random_state=0)", 300),
}
CODE = "import rankcore as rc; {}.fit(rc.datasets.open_rows({!r}))"
# Bytes of text for a byte of its cache.
TEXT_SHARE = 1.065
KINDS = ("Private", "Shared")


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "rows.txt", Path(folder) / "rows"
        write(text, round(int(os.environ.get("RANKCORE_CACHE_MB", sized(500, 2))) * TEXT_SHARE))
        rows = open_rows(text, cache=cache)
        text.unlink()
        print(f"a row cache of {rows.size / 1e6:.0f} MB, {rows.stats().n_rows:,} rows\n")
        show([row for name in FITS for row in figures(name, cache)])


def figures(name: str, cache: Path) -> list[tuple[str, str, str]]:
    """Memory and time of one fit, in a process of its own."""
    made, goal = FITS[name]
    start = time.perf_counter()
    held, mapped = peaks(CODE.format(made, str(cache)))
    seconds = time.perf_counter() - start
    return [
        (f"{name}: memory", f"{held / 1e6:.0f} MB", f"at most {goal} MB"),
        ("  with mapped pages", f"{mapped / 1e6:.0f} MB", ""),
        ("  elapsed", f"{seconds:.0f} s", ""),
    ]


def peaks(code: str) -> tuple[int, int]:
    """Most bytes of a process that are not reclaimable, and that are resident."""
    command = [sys.executable, "-W", "ignore", "-c", code]
    held = resident = 0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            with suppress(OSError):
                text = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="utf-8")
                sizes = dict(line.split(":") for line in text.splitlines()[1:])
                dirty = [1024 * int(sizes[f"{kind}_Dirty"].split()[0]) for kind in KINDS]
                held = max(held, sum(dirty))
                resident = max(resident, 1024 * int(sizes["Rss"].split()[0]))
            time.sleep(0.1)  # the tables of pages are long
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
    return held, resident
