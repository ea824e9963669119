"""OHSUMED of LETOR 3.0: the folds, the measures and the published figures."""

import numpy as np
from sklearn.datasets import load_svmlight_file

from rankcore.metrics import evaluate
from reproduce.data import DATA

FOLDS = [
    ("123", "4", "5"),
    ("234", "5", "1"),
    ("345", "1", "2"),
    ("451", "2", "3"),
    ("512", "3", "4"),
]
CUTS = range(1, 11)
METRICS = ["map", *(f"ndcg@{k}" for k in CUTS), *(f"P@{k}" for k in CUTS)]
SHOWN = ["map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "P@1", "P@3", "P@5", "P@10"]
# As published with LETOR 3.0, quoted at second hand: not run here.
PUBLISHED = {
    "RankSVM (published)": [0.433, 0.496, 0.421, None, 0.414, 0.597, 0.543, None, 0.486],
    "RankBoost (published)": [0.441, 0.463, 0.456, None, 0.430, 0.558, 0.561, None, 0.497],
}


def load(name):
    """X, y and qid of some of the five parts."""
    parts = [
        load_svmlight_file(str(DATA / "ohsumed-letor3" / f"norm.S{k}.txt.gz"), query_id=True)
        for k in name
    ]
    X = np.vstack([part[0].toarray() for part in parts])
    return X, *(np.concatenate([part[i] for part in parts]) for i in (1, 2))


def measured(rows, scores, metrics=METRICS):
    """Values of the measures."""
    found = evaluate(rows[1], scores, qid=rows[2], metrics=metrics, convention="letor3")
    return [found[name] for name in metrics]


def number(value):
    return "" if value is None else f"{value:.4f}".removeprefix("0")
