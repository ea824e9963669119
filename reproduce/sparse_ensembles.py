"""Ensembles of PRanks on sparse rows: scales of thresholds, 20 seeds.

``python -m reproduce.sparse_ensembles --markdown PATH`` reads SST-5 and MovieLens of
``../shared/data`` or ``$RANKCORE_DATA``. It prints mean absolute errors of ranks on held-out rows:
of `PRank`, and of ensembles whose thresholds have twice the length of rows as their scale, the
choice of "auto" before, and once the length, that on rows of which at most an eighth of the values
are not 0. Differences to `PRank` have 95 % intervals of Student's t over seeds, of MovieLens also
over people; a seed at which an ensemble is better is a win.
"""

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

import rankcore as rc
from reproduce.data import require
from reproduce.oap_real import movielens
from reproduce.pages import head, stream
from reproduce.sets import sst5

SEEDS = 20
ENSEMBLES = (rc.OAPBPM, rc.OAPBagging, rc.OAPVoting)
Rows = tuple[Any, Any]


def texts(seed: int, cache: dict[str, Any]) -> tuple[Rows, dict[str, Rows]]:
    """Training part of SST-5, and its other parts."""
    if not cache:
        cache |= {part: next(sst5(part)) for part in ("dev", "test")}
    return cache["dev"]["train"], {f"SST-5, {part}": cache[part]["test"] for part in cache}


def films(seed: int, cache: dict[str, Any]) -> tuple[Rows, dict[str, Rows]]:
    """Ratings of a film by some people, by those of others."""
    X, y, X_test, y_test = movielens(seed)
    return (X, y), {"MovieLens": (X_test, y_test)}


def models(train: Rows, seed: int, both: bool) -> Iterator[tuple[str, Any]]:
    """Fitted learners by name."""
    yield "PRank", rc.PRank(random_state=seed).fit(*train)
    for learner in ENSEMBLES if both else ENSEMBLES[:1]:
        now = learner(random_state=seed).fit(*train)
        yield f"{learner.__name__}, once the length", now
        before = learner(random_state=seed, threshold_scale=2 * now.threshold_scale_)
        yield f"{learner.__name__}, twice the length", before.fit(*train)


def table(
    made: Callable[[int, dict[str, Any]], tuple[Rows, dict[str, Rows]]], both: bool
) -> Iterator[str]:
    """Rows of the table for some sets."""
    found: dict[str, dict[str, list[float]]] = {}
    cache: dict[str, Any] = {}
    for seed in range(SEEDS):
        train, parts = made(seed, cache)
        for name, model in models(train, seed, both):
            for part, rows in parts.items():
                losses = found.setdefault(part, {}).setdefault(name, [])
                losses.append(-float(model.score(*rows)))
    for part, by_name in found.items():
        base = np.array(by_name["PRank"])
        for name, losses in by_name.items():
            gains = np.array(losses) - base
            half = t.ppf(0.975, SEEDS - 1) * gains.std(ddof=1) / np.sqrt(SEEDS)
            wins, defeats = (gains < 0).sum(), (gains > 0).sum()
            versus = "" if name == "PRank" else f"{gains.mean():+.4f} ± {half:.4f}"
            counted = "" if name == "PRank" else f"{wins} : {defeats}"
            yield f"| {part} | {name} | {np.mean(losses):.4f} | {versus} | {counted} |"


def report() -> Iterator[str]:
    """The page."""
    yield from (
        "# Ensembles of PRanks on sparse rows",
        "",
        f"`python -m reproduce.sparse_ensembles`, {SEEDS} seeds. Mean absolute errors of ranks on "
        "held-out rows, the",
        "difference to `PRank` with a 95 % interval, and seeds at which the ensemble is better and "
        "worse.",
        "",
    )
    learner = "learner, scale of its thresholds"
    yield from head("set", learner, "error", "difference", "wins : losses")
    for made, both in ((texts, False), (films, True)):
        yield from table(made, both)


def main() -> None:
    """Print the page, and write it if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    require("sst5", "movielens-100k")
    warnings.simplefilter("ignore")
    stream(report(), args.markdown)


if __name__ == "__main__":
    main()
