"""Rows to learn from and rows to measure on."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from rankcore.datasets import load_letor
from reproduce.data import DATA
from reproduce.oap_real import ratings

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


def distinct(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the numbers of rows that do not repeat the features and the label of an earlier one.

    A row in both parts of a split would measure memory.
    """
    _, first = np.unique(np.column_stack([X, y]), axis=0, return_index=True)
    return np.sort(first)


def median_ranks(table: np.ndarray) -> np.ndarray:
    """Return the median of the probabilities of ranks, which minimises the absolute error."""
    return np.asarray((table.cumsum(axis=1) >= 0.5 - 1e-12).argmax(axis=1))


def sst5(part: str) -> Iterator[Split]:
    """Trained on the training part; the development part chooses, the test part is shown."""
    train, test = (
        load_letor(DATA / "sst5" / f"{name}.bow.svm.gz", n_features=19536)
        for name in ("train", part)
    )
    yield {"train": (train.X, train.y.astype(int)), "test": (test.X, test.y.astype(int))}


@cache
def ohsumed_part(kind: str, parts: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and qid of some of OHSUMED's five parts; features normalised by query, or raw."""
    files = [
        load_svmlight_file(str(DATA / "ohsumed-letor3" / f"{kind}.S{k}.txt.gz"), query_id=True)
        for k in parts
    ]
    X = np.vstack([file[0].toarray() for file in files])
    return X, *(np.concatenate([file[i] for file in files]) for i in (1, 2))


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
