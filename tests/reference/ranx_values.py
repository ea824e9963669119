"""Measures by ranx 0.3.21 of random judged queries: writes ranx_values.json beside this file.

Run ``pip install ranx==0.3.21 && python -m tests.reference.ranx_values`` to make the file again.
ranx compiles its measures with Numba for half a minute, so that the tests read the values instead.
"""

import json
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_suffix(".json")
# The names that its documentation has. "recall" without a cut-off is trec_eval's nine here.
NAMES = [
    *["ndcg", "ndcg@5", "ndcg_burges", "ndcg_burges@5", "dcg", "dcg@5", "dcg_burges"],
    *["dcg_burges@5", "map", "map@5", "mrr", "mrr@2", "precision", "precision@5", "recall@5"],
    *["f1", "f1@5", "r-precision", "hit_rate", "hit_rate@1", "hit_rate@5", "hits", "hits@5"],
    *["rbp.95", "rbp.5", "precision@5-l2", "f1@5-l2", "hits-l3", "map-l2"],
]
# Its sort keeps the order of the rows for up to 15 documents.
LONGEST = 15


def judged(seed, tied):
    """Labels, some of them negative, scores and sizes of queries."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[1, 1, 2, LONGEST], rng.integers(1, LONGEST + 1, 30)])
    n = int(sizes.sum())
    labels = rng.integers(0, 5, n) * rng.integers(0, 2, n)
    labels[rng.random(n) < 0.05] = -1
    ends = np.cumsum(sizes)
    for query in rng.choice(np.arange(4, sizes.size), 5, replace=False):
        labels[ends[query] - sizes[query] : ends[query]] = 0
    scores = rng.integers(0, 8, n) / 4 if tied else rng.normal(size=n)
    return labels.tolist(), scores.tolist(), sizes.tolist()


def measured(labels, scores, sizes):
    """Values of the measures for every query, by ranx."""
    import ranx

    qid = np.repeat(np.arange(len(sizes)), sizes)
    qrels = {f"q{q:03}": {} for q in qid}
    run = {f"q{q:03}": {} for q in qid}
    for d, (q, label, score) in enumerate(zip(qid, labels, scores, strict=True)):
        qrels[f"q{q:03}"][f"d{d}"] = label
        run[f"q{q:03}"][f"d{d}"] = score
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Numba on ranx's casts
        found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), NAMES, return_mean=False)
    return {name: np.asarray(found[name]).tolist() for name in NAMES}


def main():
    cases = []
    for seed in range(4):
        for tied in (True, False):
            labels, scores, sizes = judged(seed, tied)
            values = measured(labels, scores, sizes)
            case = {"labels": labels, "scores": scores, "sizes": sizes, "values": values}
            cases.append(case)
    document = {"ranx": version("ranx"), "cases": cases}
    FILE.write_text(json.dumps(document, indent=None) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
