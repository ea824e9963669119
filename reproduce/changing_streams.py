"""Averages, last parameters and a monitor on streams that change: table and picture of the guide.

    python -m reproduce.changing_streams

Prints the table of docs/changing_streams.md and writes its picture. Takes half a minute.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")


import rankcore as rc

PICTURE = Path(__file__).parents[1] / "docs" / "changing_streams.png"
DRIFTS = ("abrupt", "gradual", "returning", None)


def learners() -> dict[str, Any]:
    return {
        "averaged": rc.PRank(),
        "last parameters": rc.PRank(average=False),
        "half-life of 100 rows": rc.PRank(half_life=100),
        "half-life chosen": rc.PRank(half_life="auto"),
        "averaged, monitored": rc.online.DriftMonitor(rc.PRank()),
    }


def chunks(drift: Any) -> Iterator[tuple[Any, Any]]:
    X, y = rc.datasets.make_drift(20_000, drift=drift, random_state=3)
    for start in range(0, y.size, 50):
        yield X[start : start + 50], y[start : start + 50]


def main() -> None:
    losses: dict[str, list[str]] = {name: [] for name in learners()}
    for drift in DRIFTS:
        found = {}
        for name, learner in learners().items():
            found[name] = rc.online.evaluate(learner, chunks(drift), classes=range(1, 6))
            losses[name].append(f"{found[name].overall['rank_loss']:.3f}".lstrip("0"))
        if drift == "returning":
            ax = rc.plotting.plot_stream(found)
            ax.set_ylim(0, None)
            ax.figure.savefig(PICTURE, dpi=110, bbox_inches="tight")
    for name, values in losses.items():
        print(f"| {name} | {' | '.join(values)} |")


if __name__ == "__main__":
    main()
