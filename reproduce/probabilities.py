"""Probabilities of ranks and sets of ranks on real data, compared with other tools.

``python -m reproduce.probabilities`` reads ``../shared/data`` or ``$RANKCORE_DATA`` and prints the
ranked probability score on test rows of `CalibratedOrdinal` around `PRank`, with cumulative and
isotonic curves, and of `OrdinalBoost` and `OrdinalLogistic` at their defaults, compared with
scikit-learn's logistic regression, calibrated (CalibratedClassifierCV, five parts) and not, mord's
LogisticAT and skordinal's proportional odds model where these are installed; then the coverage of
sets of ranks. --markdown writes a copy.

Chu and Ghahramani's sets: the first ten published partitions without rows that repeat another,
standardised; of abalone, of which no partitions are stored, ten seeded ones with 1000 rows to learn
from. SST-5 as published, as bag of
words. MovieLens 100k: the published split u1 to u5; a row has a person and a film as two
indicators. Sets of ranks are measured where at least 1000 rows are left to test on: half of the
test rows, in random order, are for `conformalize`.
"""

import argparse
import gzip
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.metrics import ranked_probability_score
from reproduce.cusum_tables import PAPER, data
from reproduce.data import DATA, require
from reproduce.pages import as_row, head
from reproduce.real_ordinal import sst5
from reproduce.sets import distinct

PARTITIONS = 10
TESTED = 1000
COVERAGE = 0.9
Split = tuple[Any, np.ndarray, Any, np.ndarray]


def chu(name: str, bins: int) -> Iterator[Split]:
    """Partitions of a set, standardised; labels that the training part lacks are left out."""
    X, y, parts = data(name, bins)
    kept = distinct(X, y)
    for train, test in parts[:PARTITIONS]:
        train, test = (part[np.isin(part, kept)] for part in (train, test))
        test = test[np.isin(y[test], y[train])]
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def movielens() -> Iterator[Split]:
    """Return the published splits, rows of two indicators."""
    folder = DATA / "movielens-100k"
    with gzip.open(folder / "u.data.tsv.gz", "rt") as stream:
        rows = np.array([line.split("\t")[:3] for line in stream if line[0].isdigit()], dtype=int)
    person, film, stars = rows.T
    n = len(rows)
    columns = np.column_stack([person - 1, person.max() + film - 1]).ravel()
    X = sp.csr_array((np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2)))
    with gzip.open(folder / "splits.tsv.gz", "rt") as stream:
        fold_of = np.array([line.split("\t")[0] for line in stream], dtype=int)
    for fold in range(1, 6):
        test = fold_of == fold
        yield X[~test], stars[~test], X[test], stars[test]


def ours(method: str) -> Callable[[], Any]:
    """Make a calibrated PRank."""
    return lambda: rc.CalibratedOrdinal(rc.PRank(random_state=0), method=method)


def calibrated_logistic() -> Any:
    """scikit-learn's way to probabilities."""
    return CalibratedClassifierCV(LogisticRegression(max_iter=1000), cv=5)


def models() -> dict[str, Callable[[], Any]]:
    """Return the models to compare, by name."""
    found: dict[str, Callable[[], Any]] = {
        "PRank, cumulative": ours("cumulative"),
        "PRank, isotonic": ours("isotonic"),
        "OrdinalBoost": rc.OrdinalBoost,
        "OrdinalLogistic": lambda: rc.OrdinalLogistic(random_state=0),
        "logistic, calibrated": calibrated_logistic,
        "logistic": lambda: LogisticRegression(max_iter=1000),
    }
    try:
        import mord

        found["mord LogisticAT"] = lambda: mord.LogisticAT(alpha=1.0)
    except ImportError as error:
        print(f"mord is missing: {error}")
    try:
        from skordinal.classifiers import POM

        found["skordinal POM"] = POM
    except ImportError as error:
        print(f"skordinal is missing: {error}")
    return found


def score(model: Any, split: Split) -> tuple[float, float]:
    """Return RPS on test rows and processor seconds of a fit; NaN if a tool rejects the rows."""
    X, y, X_test, y_test = split
    labels = np.unique(y)
    start = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, np.searchsorted(labels, y))
        seconds = process_time() - start
        table = model.predict_proba(X_test)
    except (ValueError, TypeError, IndexError):
        return float("nan"), float("nan")
    if table.shape[1] != labels.size or not np.isfinite(table).all():
        return float("nan"), seconds
    table = np.clip(table, 0, None)
    table /= table.sum(axis=1, keepdims=True)
    return ranked_probability_score(y_test, table, labels=labels), seconds


def learning_seconds(split: Split) -> float:
    """Return the cost of the six fits of PRank alone."""
    X, y = split[:2]
    parts = np.array_split(np.random.default_rng(0).permutation(len(y)), 5)
    start = process_time()
    for part in parts:
        kept = np.setdiff1d(np.arange(len(y)), part)
        rc.PRank(random_state=0).fit(X[kept], y[kept], classes=np.unique(y))
    rc.PRank(random_state=0).fit(X, y)
    return process_time() - start


def coverage(split: Split) -> tuple[float, float]:
    """Share of test rows whose rank is in its set, and the mean number of ranks in a set."""
    X, y, X_test, y_test = split
    order = np.random.default_rng(0).permutation(len(y_test))
    first, second = np.array_split(order, 2)
    model = ours("cumulative")().fit(X, y).conformalize(X_test[first], y_test[first])
    low, high = model.predict_set(X_test[second], COVERAGE).T
    inside = (low <= y_test[second]) & (y_test[second] <= high)
    return float(inside.mean()), float((high - low + 1).mean())


def report() -> Iterator[str]:
    """Return the tables, in Markdown."""
    compared = models()
    sets: dict[str, Callable[[], Iterator[Split]]] = {
        f"{name}, {bins} bins": lambda name=name, bins=bins: chu(name, bins)  # type: ignore[misc]
        for name in PAPER
        for bins in (5, 10)
    }
    sets |= {"SST-5": sst5, "MovieLens": movielens}
    yield from head("mean RPS", *compared, "fit / its fits of PRank")
    rivals = ("logistic, calibrated", "logistic")
    wins, counted = dict.fromkeys(rivals, 0), dict.fromkeys(rivals, 0)
    boosted = 0
    covered = []
    for title, splits in sets.items():
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in compared}
        ratios, shares = [], []
        for split in splits():
            for name, make in compared.items():
                found[name].append(score(make(), split))
            ratios.append(found["PRank, cumulative"][-1][1] / learning_seconds(split))
            if len(split[3]) >= 2 * TESTED or (len(split[3]) >= TESTED and title == "SST-5"):
                shares.append(coverage(split))
        means = {name: float(np.mean([rps for rps, _ in both])) for name, both in found.items()}
        for rival in rivals:
            counted[rival] += not np.isnan(means[rival])
            wins[rival] += means["PRank, cumulative"] <= means[rival]
        boosted += means["OrdinalBoost"] <= means["logistic"]
        cells = ["-" if np.isnan(mean) else f"{mean:.4f}" for mean in means.values()]
        yield as_row(title, *cells, f"{np.median(ratios):.1f}")
        if shares:
            covered.append((title, *np.mean(shares, axis=0), *np.ptp(shares, axis=0)[:1]))
    yield ""
    yield (
        "Cumulative curves are at or below calibrated logistic regression on "
        f"{wins[rivals[0]]} of the {counted[rivals[0]]} sets on which it gives a probability to "
        "every rank (its parts must have five rows of each), and at or below logistic regression "
        f"on {wins[rivals[1]]} of {counted[rivals[1]]}; OrdinalBoost is on {boosted}. The last "
        "column is of processor time."
    )
    yield ""
    yield from head(f"sets of ranks, target {COVERAGE:.0%}", "coverage", "ranks in a set")
    for title, share, size, _ in covered:
        yield f"| {title} | {share:.1%} | {size:.2f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    require("sst5", "movielens-100k")
    lines = []
    for line in report():
        print(line, flush=True)
        lines.append(line)
    if arguments.markdown:
        head = "# Probabilities of ranks\n\n`python -m reproduce.probabilities` writes this page.\n"
        arguments.markdown.write_text("\n".join([head, *lines, ""]))


if __name__ == "__main__":
    main()
