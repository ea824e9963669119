"""Timing and memory, measured in the same way for every tool."""

import os
import platform
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from rankcore.progress import Progress, watch

SMALL = "RANKCORE_BENCHMARK_SMALL"


def sized(full: Any, small: Any) -> Any:
    """Return the first of two sizes, or the second after ``python -m benchmarks NAME --small``."""
    return small if os.environ.get(SMALL) == "1" else full


def medians(repeat: int, **tasks: Callable[[], Any]) -> dict[str, float]:
    """Return median seconds of each task, timed in turn so that other load affects all tasks."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def seconds_between(fit: Callable[[], Any]) -> float:
    """Median seconds from the end of a pass or round to that of the next, in one fit."""
    ends = []

    def note(now: Progress) -> None:
        if now.n_epochs and now.done == now.total:
            ends.append(time.perf_counter())

    with watch(note):
        fit()
    return float(np.median(np.diff(ends)))


def seconds_per_round(fit: Callable[[], Any]) -> float:
    """Seconds of a round of one fit, which may report many rounds together."""
    times = []

    def note(now: Progress) -> None:
        times.append(time.perf_counter())

    with watch(note):
        fit()
    gaps = np.diff(times)
    together = np.flatnonzero(gaps > 0.1)
    if not together.size:
        return float(np.median(gaps))
    # From when the first of them were heard of to when the last were.
    return (times[together[-1] + 1] - times[0]) / (len(times) - 1 - int(together[0]))


def processor_seconds(repeat: int, **tasks: Callable[[], Any]) -> dict[str, float]:
    """Return the minimum processor time of each task, timed in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeat):
        for name, task in tasks.items():
            start = time.process_time()
            task()
            seconds[name].append(time.process_time() - start)
    return {name: min(times) for name, times in seconds.items()}


def worker_seconds(client: Any, task: Callable[[], Any]) -> float:
    """Return the processor time of a task on the busiest worker of a Dask client."""
    before = client.run(time.process_time)
    task()
    after = client.run(time.process_time)
    return max(after[name] - before[name] for name in before)


def seconds_each(seconds: Callable[[int], float], n: int) -> float:
    """Seconds of one of n further passes or rounds, of a function of their number."""
    first = seconds(1)
    return (seconds(n + 1) - first) / n


def peak_bytes(task: Callable[[], Any]) -> int:
    """Return the peak memory of Python and NumPy minus the memory before."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def process_seconds(code: str, repeat: int) -> float:
    """Median seconds of a fresh interpreter that runs ``code``."""
    command = [sys.executable, "-c", code]
    return medians(repeat, run=lambda: subprocess.run(command, check=True))["run"]


def show(rows: list[tuple[str, str, str]]) -> None:
    """Print figures with their targets."""
    width = [max(len(row[i]) for row in rows) for i in range(2)]
    for what, figure, target in rows:
        print(f"{what:<{width[0]}}  {figure:>{width[1]}}  {target}".rstrip())


def machine(*peers: str) -> str:
    """Date, machine and versions of the measurement; peers that are missing are left out."""
    names = ["rankcore", "numpy", "scipy", "scikit-learn"]
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    for name in peers:
        with suppress(PackageNotFoundError):
            versions += f", {name} {version(name)}"
    today = datetime.now(UTC).date().isoformat()
    cores = f"{os.cpu_count()} cores"
    return f"{today}, {processor()}, {cores}, Python {platform.python_version()}, {versions}"


def processor() -> str:
    """Return the processor's model as Linux names it, elsewhere its architecture."""
    architecture = platform.machine()
    with suppress(FileNotFoundError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, model = line.partition(":")
            if key.strip() == "model name" and model.strip():
                return f"{model.strip()} ({architecture})"
    return architecture
