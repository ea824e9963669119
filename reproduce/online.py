"""A ranker that learns from the clicks on its own lists, compared with learners from labels.

``python -m reproduce.online --markdown reproduce/online.md``

A user of `reproduce.clicks` examines position p of a list of ten with probability p^-eta, and
clicks an examined document with probability .1 + .9 (2^label - 1) / (2^top - 1). Queries are drawn
from the training queries; the ranker starts without knowledge and learns from each impression
(`PairwiseGradientRanker` with its defaults). OHSUMED (train S1 to S3, test S4 and S5) and
`make_letor`. NDCG@10 by labels on test queries, by the convention of LETOR 3.0; "lists" is that of
the last thousand lists that users saw.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import rankcore as rc
from rankcore.clicks import PairwiseGradientRanker
from rankcore.metrics import ndcg_score
from reproduce.clicks import NOISE, letor
from reproduce.data import require
from reproduce.ohsumed import load, measured, number
from reproduce.pages import publish, table

ETAS = [0.0, 1.0]
LAST = 1000


def learned(train, test, eta, stops, seed):
    """NDCG@10 after these numbers of impressions, and of the last lists."""
    X, y, qid = train
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    rows = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    documents = [X[of] for of in rows]
    gain = 2.0**y - 1
    attraction = NOISE + (1 - NOISE) * gain / gain.max()
    rng, ranker = np.random.default_rng(seed), PairwiseGradientRanker()
    found, lists = [], []
    for impression in range(max(stops)):
        q = rng.integers(len(rows))
        shown = ranker.rank(documents[q], seed=int(rng.integers(2**63)))
        examined = np.arange(1.0, shown.size + 1) ** -eta
        clicked = rng.random(shown.size) < attraction[rows[q][shown]] * examined
        ranker.partial_fit(documents[q], shown, clicked)
        if impression >= max(stops) - LAST:
            scores = np.zeros(len(rows[q]))
            scores[shown] = np.arange(shown.size, 0, -1)
            lists.append(ndcg_score(y[rows[q]], scores, k=10))
        if impression + 1 in stops:
            found += measured(test, ranker.predict(test[0]), ["ndcg@10"])
    return [*found, float(np.mean(lists))]


def labels(train, test):
    """NDCG@10 of rankers that learn from the labels of the training queries."""
    X, y, qid = train
    for learner in (rc.RankSVM(C=0.1, random_state=0), rc.PairwisePerceptron(random_state=0)):
        yield measured(test, learner.fit(X, y, qid=qid).predict(test[0]), ["ndcg@10"])[0]


def main():
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="of users and lists (default: 3)")
    parser.add_argument("--impressions", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    require("ohsumed-letor3")
    stops = sorted(arguments.impressions)
    rows = []
    for name, (train, test) in {
        "OHSUMED": (load("123"), load("45")),
        "make_letor": letor(),
    }.items():
        given = [number(value) for value in labels(train, test)]
        for eta in ETAS:
            found = []
            for seed in range(arguments.seeds):
                found.append(learned(train, test, eta, stops, seed))
                print(name, eta, seed, found[-1], file=sys.stderr, flush=True)
            mean, worst = np.mean(found, axis=0), np.min(found, axis=0)
            rows.append(
                [
                    name,
                    f"{eta:g}",
                    *given,
                    *map(number, mean[:-1]),
                    number(worst[-2]),
                    number(mean[-1]),
                ]
            )
    header = ["set", "eta", "labels: RankSVM", "labels: PairwisePerceptron"]
    header += [f"{stop:,} impressions" for stop in stops] + ["lowest seed", "lists"]
    text = "\n".join(
        [
            "# Learning from the clicks on its own lists",
            "",
            f"    python -m reproduce.online {' '.join(sys.argv[1:])}",
            "",
            *__doc__.split("\n\n", 2)[2].strip().splitlines(),
            "",
            f"Means of {arguments.seeds} seeds.",
            "",
            *table(rows, header),
            "",
        ]
    )
    publish(text, arguments.markdown)


if __name__ == "__main__":
    main()
