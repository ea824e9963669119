"""RankBoost's part of the experiment on OHSUMED; ``python -m reproduce.letor`` runs it."""

from time import perf_counter

import numpy as np

import rankcore as rc
from reproduce.ohsumed import METRICS, PUBLISHED, SHOWN, measured, number
from reproduce.pages import table

ROUNDS = 300
MODELS = {
    "RankBoost": rc.RankBoost(ROUNDS),
    "RankBoost, pairs alike": rc.RankBoost(ROUNDS, balance=None),
    "RankBoost, discrete": rc.RankBoost(ROUNDS, step="discrete"),
    "RankBoost, discrete, by normalizer": rc.RankBoost(
        ROUNDS, step="discrete", select="normalizer"
    ),
    "BipartiteRankBoost, third": rc.BipartiteRankBoost(ROUNDS, step="third", rel=1),
    "BipartiteRankBoost, exact": rc.BipartiteRankBoost(ROUNDS, step="exact", rel=1),
    "BipartiteRankBoost, mohri": rc.BipartiteRankBoost(ROUNDS, step="mohri", rel=1),
}


def best_rounds(model, train, held, test):
    """Test measures and validation MAP at the best round, and that round."""
    model.fit(*train[:2], qid=train[2])
    values = [measured(held, scores, ["map"])[0] for scores in model.staged_predict(held[0])]
    best = int(np.argmax(values))
    scores = list(model.staged_predict(test[0]))[best]
    return [*measured(test, scores), values[best], best + 1]


def boosting(folds):
    """Lines of Markdown; MAP and NDCG@10 of every model."""
    found, seconds = {}, {}
    for name, model in MODELS.items():
        found[name] = np.array([best_rounds(model, *fold) for fold in folds])
        times = []
        for train, _, _ in folds:
            start = perf_counter()
            model.fit(*train[:2], qid=train[2])
            times.append(perf_counter() - start)
        seconds[name] = np.median(times)
    where = [METRICS.index(name) for name in SHOWN]
    rows = [
        [
            name,
            *(number(part[:, k].mean()) for k in where),
            number(part[:, -2].mean()),
            " ".join(f"{rounds:.0f}" for rounds in part[:, -1]),
            f"{seconds[name]:.2f}",
        ]
        for name, part in found.items()
    ]
    published = "RankBoost (published)"
    rows.append([published, *map(number, PUBLISHED[published]), "", "", ""])
    shown = [name.upper() if name == "map" else name.replace("ndcg", "NDCG") for name in SHOWN]
    head = ["", *shown, "validation MAP", "rounds", f"seconds for {ROUNDS}"]
    at = [0, METRICS.index("ndcg@10")]
    return table(rows, head), {name: part[:, at].mean(axis=0) for name, part in found.items()}
