"""Quality after each pass when a perceptron learns in shards that are mixed.

``python -m reproduce.shards --png reproduce/shards.png --markdown reproduce/shards.md``

Averaged PRank on generated sparse rows and on SST-5 (bag of words, train and test as published),
and the averaged pairwise perceptron on OHSUMED (five folds), by `rankcore.dask` on two threads of
one process: 1, 2, 4 and 8 shards of equal length. One shard is the ordinary learner.
Measured on held-out rows. An averaged model is the mean over all examples so far, so that its
curves are smooth.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from dask import delayed
from distributed import Client

import rankcore.dask as rd
from rankcore.datasets import make_ordinal
from reproduce.data import require
from reproduce.ohsumed import FOLDS, load, measured
from reproduce.pages import publish, table
from reproduce.real_ordinal import sst5

SHARDS = [1, 2, 4, 8]
EPOCHS = 8


def ordinal(X, y, X_test, y_test, seeds):
    """Rank loss after each pass, shape (shards, epochs)."""
    values = np.zeros((len(SHARDS), EPOCHS))
    order = np.random.default_rng(0).permutation(len(y))
    for i, n in enumerate(SHARDS):
        parts = np.array_split(order, n)
        bX, by = [delayed(X[part]) for part in parts], [delayed(y[part]) for part in parts]
        for seed in range(seeds):
            for epoch in range(EPOCHS):  # each fit repeats the passes of the one before it
                model = rd.PRank(max_iter=epoch + 1, average=True, random_state=seed)
                local = model.fit(bX, by, n_shards=n).to_local()
                values[i, epoch] -= local.score(X_test, y_test) / seeds
    return values


def ohsumed(seeds):
    """NDCG@10 after each pass, the mean of the folds."""
    values = np.zeros((len(SHARDS), EPOCHS))
    for train, _, test in FOLDS:
        X, y, qid = load(train)
        rows = load(test)
        for i, n in enumerate(SHARDS):
            ids = np.array_split(np.unique(qid), n)
            parts = [np.flatnonzero(np.isin(qid, some)) for some in ids]
            blocks = [[delayed(one[part]) for part in parts] for one in (X, y, qid)]
            for seed in range(seeds):
                for epoch in range(EPOCHS):
                    model = rd.PairwisePerceptron("averaged", max_iter=epoch + 1, random_state=seed)
                    local = model.fit(*blocks[:2], qid=blocks[2], n_shards=n).to_local()
                    found = measured(rows, local.predict(rows[0]), ["ndcg@10"])[0]
                    values[i, epoch] += found / seeds / len(FOLDS)
    return values


def draw(path, found):
    """One panel a set."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axes, (name, (measure, values)) in zip(
        figure.subplots(1, len(found)), found.items(), strict=True
    ):
        for n, line in zip(SHARDS, values, strict=True):
            axes.plot(range(1, EPOCHS + 1), line, "o-", markersize=3, label=f"{n} shards")
        axes.set(title=name, xlabel="passes", ylabel=measure)
        axes.grid(alpha=0.3)
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce.shards", description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="orders of the rows (default: 3)")
    parser.add_argument("--rows", type=int, default=60_000, help="generated (default: 60000)")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    require("ohsumed-letor3")
    X, y = make_ordinal(options.rows, random_state=101)
    n = options.rows * 3 // 4
    with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"):
        found = {
            f"{n} generated rows": ("rank loss", ordinal(X[:n], y[:n], X[n:], y[n:], 1)),
            "SST-5": ("rank loss", ordinal(*next(sst5()), options.seeds)),
            "OHSUMED": ("NDCG@10", ohsumed(options.seeds)),
        }
    lines = [
        "# Perceptrons in shards that are mixed",
        "",
        f"    python -m reproduce.shards {' '.join(sys.argv[1:])}".rstrip(),
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {version('numpy')}, "
        f"{options.seeds} seeds (of the generated rows, 1).",
        "",
    ]
    for name, (measure, values) in found.items():
        rows = [
            [str(n), *(f"{value:.4f}" for value in line)]
            for n, line in zip(SHARDS, values, strict=True)
        ]
        lines += [f"## {name}: {measure} after each pass", ""]
        lines += [*table(rows, ["shards", *map(str, range(1, EPOCHS + 1))]), ""]
    if options.png:
        draw(options.png, found)
        lines += [f"![Quality after each pass]({options.png.name})", ""]
    text = "\n".join(lines)
    publish(text, options.markdown)


if __name__ == "__main__":
    main()
