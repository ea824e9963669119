"""PairwisePerceptron on features of different deviations: as given, scaled by itself, standardised.

``python -m reproduce.pairwise_scales --markdown PATH`` reads OHSUMED of ``../shared/data``
or ``$RANKCORE_DATA`` and generates the sets of `make_letor`. It prints NDCG at
10 and MAP of held-out queries, and the processor time of fits, for ``feature_scale=None``, "auto"
and rows that are standardised beforehand. Differences are those to ``None``, with a 95 % interval
over splits, each the mean of the seeds.
"""

import argparse
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.datasets import make_letor
from rankcore.metrics import evaluate
from reproduce.data import require
from reproduce.pages import head, stream
from reproduce.sets import Split, ohsumed

SEEDS = 2
WAYS = ("None", '"auto"', "standardised")
METRICS = ["ndcg@10", "map"]


def letor(n_queries: int, n_docs: int) -> Iterator[Split]:
    """Sets of `make_letor`, of which half of the queries train."""
    for seed in range(5):
        X, y, qid = make_letor(2 * n_queries, n_docs, random_state=seed)
        n = n_queries * n_docs
        yield {"train": (X[:n], y[:n], qid[:n]), "test": (X[n:], y[n:], qid[n:])}


def sets() -> dict[str, Any]:
    """Sets of queries by name."""
    return {
        "OHSUMED, normalised by query": partial(ohsumed, "norm", False, 5),
        "OHSUMED, raw": partial(ohsumed, "min", False, 5),
        "make_letor, 50 queries of 40": partial(letor, 50, 40),
        "make_letor, 200 queries of 20": partial(letor, 200, 20),
    }


def fitted(way: str, split: Split, seed: int) -> list[float]:
    """NDCG at 10, MAP, and the seconds of a fit."""
    (X, y, qid), (X_test, y_test, qid_test) = split["train"], split["test"]
    if way == "standardised":
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    scale = "auto" if way == '"auto"' else None
    model = rc.PairwisePerceptron(random_state=seed, feature_scale=scale)
    begin = process_time()
    model.fit(X, y, qid=qid)
    seconds = process_time() - begin
    found = evaluate(y_test, model.predict(X_test), qid=qid_test, metrics=METRICS)
    return [*(found[name] for name in METRICS), seconds]


def rows_of(name: str, splits: list[Split]) -> Iterator[str]:
    """Rows of the table for a set."""
    deviations = [split["train"][0].std(axis=0, dtype=np.float64) for split in splits]
    ratio = np.median([one[one > 0].max() / one[one > 0].min() for one in deviations])
    table = np.array(
        [
            [np.mean([fitted(way, one, seed) for seed in range(SEEDS)], axis=0) for one in splits]
            for way in WAYS
        ]
    )
    half = t.ppf(0.975, len(splits) - 1) / np.sqrt(len(splits))
    for way, values in zip(WAYS, table, strict=True):
        gains = values - table[0]
        cells = [
            f"{values[:, k].mean():.4f}"
            + (
                f" ({gains[:, k].mean():+.4f} ± {half * gains[:, k].std(ddof=1):.4f})"
                if gains[:, k].any()
                else ""
            )
            for k in range(len(METRICS))
        ]
        times = f"{values[:, 2].mean() / table[0][:, 2].mean():.2f}"
        yield f"| {name} | {ratio:.3g} | {way} | {' | '.join(cells)} | {times} |"


def report() -> Iterator[str]:
    """The page."""
    yield from (
        "# Pairwise perceptrons on features of different deviations",
        "",
        f"`python -m reproduce.pairwise_scales`, {SEEDS} seeds. Differences in brackets are "
        "those to `None`, with a 95 %",
        'interval over splits. `"auto"` scales features whose deviations differ by a factor of 64 '
        "or more; the time is",
        "relative to `None`.",
        "",
    )
    scaled = "`feature_scale`, or rows"
    yield from head("set", "ratio of deviations", scaled, "NDCG@10", "MAP", "time of a fit")
    for name, make in sets().items():
        yield from rows_of(name, list(make()))


def main() -> None:
    """Print the page, and write it if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    require("ohsumed-letor3")
    warnings.simplefilter("ignore")
    stream(report(), args.markdown)


if __name__ == "__main__":
    main()
