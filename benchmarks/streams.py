"""Learning from files larger than memory: speed beside reading alone, and memory.

``RANKCORE_STREAM_MB`` sets the size of the LETOR text (default 200); 2000 is the figure of the
documentation.
"""

import os
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import pyarrow
import pyarrow.parquet
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from benchmarks.measure import machine, processor_seconds, show, sized
from rankcore.datasets import LetorData, dump_letor, iter_letor, load_letor, make_letor, open_rows

N_FEATURES = 136
CLASSES = [0, 1, 2, 3, 4]
IDLE = "import rankcore as rc; rc.PRank; rc.datasets.open_rows; "
# Not ru_maxrss, which begins with that of the process that starts this one.
PEAK = "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
FIT = (
    "rc.PRank(max_iter=1).fit(rc.datasets.open_rows({path!r}, n_features=136), "
    "classes=[0, 1, 2, 3, 4]); "
)
FIT_CACHE = "rc.PRank(max_iter=2).fit(rc.datasets.open_rows({path!r})); "


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine())
    warnings.simplefilter("ignore")  # the features are not on one scale
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "rows.txt", Path(folder) / "rows"
        write(text, int(os.environ.get("RANKCORE_STREAM_MB", sized(200, 2))))
        open_rows(text, cache=cache)
        size = text.stat().st_size
        print(f"{size / 1e6:.0f} MB of text, {open_rows(cache).size / 1e6:.0f} MB of row cache\n")
        show(speed(text, cache, size, repeat) + memory(text, cache))


def write(path: Path, megabytes: int) -> None:
    """Rows of `make_letor`, again and again under other query ids."""
    X, y, qid = make_letor(sized(200, 5), 120, random_state=0)
    part = path.with_name("part.txt")
    dump_letor(X, y, part, qid=qid)
    lines = part.read_bytes().splitlines(keepends=True)
    with open(path, "wb") as file:
        copy = 0
        while file.tell() < megabytes * 1e6:
            for line, query in zip(lines, qid.tolist(), strict=True):
                label, _, rest = line.split(b" ", 2)
                file.write(b"%s qid:%d %s" % (label, query + 1000 * copy, rest))
            copy += 1


def write_parquet(data: LetorData, path: Path) -> None:
    """Return the same rows as a table."""
    columns = {f"feature {j}": data.X[:, [j]].toarray().ravel() for j in range(N_FEATURES)}
    table = pyarrow.table({"label": data.y, "qid": data.qid, **columns})
    pyarrow.parquet.write_table(table, path)


def speed(text: Path, cache: Path, size: int, repeat: int) -> list[tuple[str, str, str]]:
    """Time passes over text, over the cache and over Parquet, in processor time."""
    data = load_letor(text)
    models = {shuffle: rc.PRank(max_iter=1, shuffle=shuffle) for shuffle in [False, True]}
    rows = open_rows(cache)
    rc.PRank(max_iter=1).fit(rows)  # all checksums are compared

    def passes(model: rc.PRank, n: int, *args: object) -> None:
        model.set_params(max_iter=n).fit(*args)

    table = text.with_name("rows.parquet")
    write_parquet(data, table)

    seconds = processor_seconds(
        repeat,
        read=lambda: [None for _ in iter_letor(text, n_features=N_FEATURES, docid=False)],
        stream=lambda: rc.PRank(max_iter=1).fit(
            open_rows(text, n_features=N_FEATURES), classes=CLASSES
        ),
        survey=lambda: open_rows(text).stats(),
        scaled=lambda: passes(
            models[False],
            1,
            open_rows(text, n_features=N_FEATURES, scaler=StandardScaler()),
        ),
        ordered=lambda: passes(models[False], 1, open_rows(text)),
        parquet5=lambda: passes(models[False], 5, open_rows(table)),
        parquet1=lambda: passes(models[False], 1, open_rows(table)),
        first=lambda: rc.PRank(max_iter=1, shuffle=False).fit(open_rows(cache)),
        **{
            f"{name}{n}{suffix}": partial(passes, models[suffix == "s"], n, *given)
            for suffix in ("", "s")
            for name, given in {"memory": (data.X, data.y), "cache": (rows,)}.items()
            for n in (5, 1)
        },
    )

    def ratio(one: str, other: str) -> str:
        return f"{seconds[one] / seconds[other]:.2f}"

    def in_memory(source: str, shuffled: str = "") -> str:
        """Ratio of times of 4 more passes, so that what a fit does once is not counted."""
        of, beside = (
            seconds[f"{name}5{shuffled}"] - seconds[f"{name}1{shuffled}"]
            for name in (source, "memory")
        )
        return f"{of / beside:.2f}"

    return [
        ("reading alone, iter_letor", f"{size / seconds['read'] / 1e6:.0f} MB/s", ""),
        ("a survey", f"{size / seconds['survey'] / 1e6:.0f} MB/s", ""),
        ("one pass from text, standardised / not", ratio("scaled", "ordered"), ""),
        ("averaged PRank from text / reading alone", ratio("read", "stream"), "at least 0.80"),
        ("a pass from the cache / in memory", in_memory("cache"), "at most 2"),
        ("the same, shuffled", in_memory("cache", "s"), "at most 2"),
        ("a pass from Parquet / in memory", in_memory("parquet"), ""),
        ("a first pass, checksums compared / in memory", ratio("first", "memory1"), ""),
    ]


def memory(text: Path, cache: Path) -> list[tuple[str, str, str]]:
    """Peak memory beyond that of an idle interpreter."""
    idle = peak(IDLE)
    found = [("text", FIT, text), ("the cache", FIT_CACHE, cache)]
    return [
        (
            f"peak memory of a shuffled fit from {name}, beyond idle",
            f"{(peak(IDLE + code.format(path=str(path))) - idle) / 1e6:.0f} MB",
            "under 150 MB",
        )
        for name, code, path in found
    ]


def peak(code: str) -> int:
    """Most memory that a process has resident, in bytes."""
    command = [sys.executable, "-W", "ignore", "-c", code + PEAK]
    return 1024 * int(subprocess.run(command, check=True, capture_output=True).stdout)
