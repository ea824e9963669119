"""The sets of `reproduce.settings`: rows to learn from and rows to measure on."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.preprocessing import StandardScaler

from rankcore.datasets import load_letor
from reproduce.cusum_tables import data
from reproduce.data import DATA
from reproduce.oap_real import cystic_fibrosis, movielens, ratings
from reproduce.ohsumed import FOLDS

CHU = [
    "pyrimidines",
    "machinecpu",
    "bostonhousing",
    "abalone",
    "triazines",
    "wisconsin",
    "autompg",
    "stocks",
    "diabetes",
]
# The folders with all of these sets.
FOLDERS = [f"chu-{name}" for name in CHU]
FOLDERS += ["sst5", "cystic-fibrosis", "movielens-100k", "ohsumed-letor3"]
Split = dict[str, Any]


def chu(name: str, bins: int, scaled: bool, n: int) -> Iterator[Split]:
    """Some of the 20 partitions; abalone's are seeded."""
    X, y, parts = data(name, bins)
    for train, test in parts[: n if len(y) < 2000 else 2]:
        scaler = StandardScaler(with_mean=scaled, with_std=scaled).fit(X[train])
        yield {
            "train": (scaler.transform(X[train]), y[train]),
            "test": (scaler.transform(X[test]), y[test]),
        }


def sst5(part: str) -> Iterator[Split]:
    """Trained on the training part; the development part chooses, the test part is shown."""
    train, test = (
        load_letor(DATA / "sst5" / f"{name}.bow.svm.gz", n_features=19536)
        for name in ("train", part)
    )
    yield {"train": (train.X, train.y.astype(int)), "test": (test.X, test.y.astype(int))}


def trials(task: Callable[[int], Any], n: int) -> Iterator[Split]:
    """Splits of one of the tasks of `reproduce.oap_real`."""
    for seed in range(n):
        X, y, X_test, y_test = task(seed)
        yield {"train": (X, y), "test": (X_test, y_test)}


def ordinal_sets(n: int) -> dict[str, Callable[[], Iterator[Split]]]:
    """Sets of ordered labels by name."""
    sets: dict[str, Callable[[], Iterator[Split]]] = {}
    for bins in (5, 10):
        for name in CHU:
            for scaled in (True, False):
                label = f"chu-{name} {bins}{'' if scaled else ' raw'}"
                sets[label] = partial(chu, name, bins, scaled, n)
    sets["sst5 dev"] = partial(sst5, "dev")
    sets["cystic-fibrosis"] = partial(trials, partial(cystic_fibrosis, shift=1.0), n // 2)
    sets["movielens"] = partial(trials, movielens, 2 * n)
    return sets


@cache
def ohsumed_part(kind: str, parts: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and qid of some of OHSUMED's five parts; features normalised by query, or raw."""
    files = [
        load_svmlight_file(str(DATA / "ohsumed-letor3" / f"{kind}.S{k}.txt.gz"), query_id=True)
        for k in parts
    ]
    X = np.vstack([file[0].toarray() for file in files])
    return X, *(np.concatenate([file[i] for file in files]) for i in (1, 2))


def ohsumed(kind: str, scaled: bool, n: int) -> Iterator[Split]:
    """Some of LETOR's five folds; the validation part is measured."""
    for train, valid, _ in FOLDS[:n]:
        rows = {
            "train": ohsumed_part(kind, train),
            "test": ohsumed_part(kind, valid),
        }
        if scaled:
            scaler = StandardScaler().fit(rows["train"][0])
            rows = {part: (scaler.transform(X), *rest) for part, (X, *rest) in rows.items()}
        yield rows


def movielens_queries(n: int) -> Iterator[Split]:
    """People as queries, the films they rated as documents; half of the people train.

    The features are of the films alone, by the ratings of people who are in neither part.
    """
    table = ratings()
    for seed in range(n):
        rng = np.random.default_rng(seed)
        people = rng.permutation(len(table))
        known, others = people[:500], people[500:]
        seen = table[known] > 0
        centred = np.where(seen, table[known] - 3.0, 0.0)
        _, scale, films = np.linalg.svd(centred, full_matrices=False)
        features = np.column_stack(
            [
                np.log1p(seen.sum(axis=0)),
                centred.sum(axis=0) / np.maximum(seen.sum(axis=0), 1),
                films[:20].T * scale[:20],
            ]
        )
        parts = {}
        for part, chosen in (("train", others[:220]), ("test", others[220:])):
            rows = [
                (features[np.flatnonzero(table[one])], table[one][table[one] > 0]) for one in chosen
            ]
            sizes = [y.size for _, y in rows]
            parts[part] = (
                np.vstack([X for X, _ in rows]),
                np.concatenate([y for _, y in rows]),
                np.repeat(np.arange(len(rows)), sizes),
            )
        yield parts


def ranking_sets(n: int) -> dict[str, Callable[[], Iterator[Split]]]:
    """Sets of queries by name."""
    return {
        "ohsumed": partial(ohsumed, "norm", False, n),
        "ohsumed standardised": partial(ohsumed, "norm", True, n),
        "ohsumed raw": partial(ohsumed, "min", False, n),
        "ohsumed raw standardised": partial(ohsumed, "min", True, n),
        "movielens people": partial(movielens_queries, 2),
    }
