"""RankSVM's part of the experiment on OHSUMED; ``python -m reproduce.letor`` runs it."""

from time import perf_counter

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.svm import LinearSVC

import rankcore as rc
from reproduce.ohsumed import METRICS, PUBLISHED, SHOWN, measured, number
from reproduce.pages import table

# Powers of ten: of queries that count alike, and of pairs, some 3,500 in a query, that do.
QUERIES, PAIRS = np.logspace(-4, 2, 12), np.logspace(-7, -1, 12)
WIDTHS = [0.02, 0.1, 0.5]
COMMITTEE = {"variant": "committee", "committee_size": 20, "max_iter": 50, "random_state": 0}
LISTED = {"C": 1e-4, "fit_intercept": False, "random_state": 0}
MODELS = {
    "RankSVM": ({}, PAIRS, None),
    "RankSVM, queries alike": ({"balance": "query"}, QUERIES, None),
    "RankSVM, hinge": ({"loss": "hinge"}, PAIRS * 3, None),
    "RankSVM, rbf through Nystroem": ({}, PAIRS, WIDTHS),
}


def best_on_path(fold, params, Cs, widths):
    """Test measures and validation MAP at the best C (and width), and that C; seconds of paths."""
    train, held, test = fold
    options, start = [], perf_counter()
    for width in widths or [None]:
        maps = Nystroem(gamma=width, n_components=300, random_state=0) if width else None
        parts = [maps.fit_transform(train[0]) if maps else train[0]]
        parts += [maps.transform(part[0]) if maps else part[0] for part in (held, test)]
        # The features are normalised within queries.
        given = {"balance": None, "standardize": False, "random_state": 0, **params}
        path = rc.ranksvm_path(parts[0], train[1], qid=train[2], Cs=Cs, **given)
        for C, one in zip(path.Cs, path.estimators, strict=True):
            value = measured(held, one.predict(parts[1]), ["map"])[0]
            options.append((value, C, one, parts[2]))
    seconds = perf_counter() - start
    value, C, one, rows = max(options, key=lambda option: option[0])
    return [*measured(test, one.predict(rows)), value, C, seconds]


def ranksvm(folds):
    """Lines of Markdown; MAP and NDCG@10 of every model."""
    found = {
        name: np.array([best_on_path(fold, *options) for fold in folds])
        for name, options in MODELS.items()
    }
    where = [METRICS.index(name) for name in SHOWN]
    rows = [
        [
            name,
            *(number(part[:, k].mean()) for k in where),
            number(part[:, -3].mean()),
            " ".join(f"{C:.0e}" for C in part[:, -2]),
            f"{part[:, -1].sum():.2f}",
        ]
        for name, part in found.items()
    ]
    published = "RankSVM (published)"
    rows.append([published, *map(number, PUBLISHED[published]), "", "", ""])
    shown = [name.upper() if name == "map" else name.replace("ndcg", "NDCG") for name in SHOWN]
    head = ["", *shown, "validation MAP", "C, fold by fold", "seconds, all folds and C"]
    at = [0, METRICS.index("ndcg@10")]
    reached = {name: part[:, at].mean(axis=0) for name, part in found.items()}
    return [*table(rows, head), "", *headline(folds)], reached


def headline(folds):
    """Compare training times with RankSVM's, as in the Committee Perceptron paper."""
    seconds = {}
    for train, _, _ in folds:
        i, j = listed(train)
        sign = np.where(np.arange(i.size) % 2, 1.0, -1.0)
        models = {
            "committee of 20, 50 epochs": rc.PairwisePerceptron(**COMMITTEE),
            "RankSVM, C = 1e-4": rc.RankSVM(1e-4, balance=None, standardize=False, random_state=0),
            "LinearSVC on listed pairs, primal Newton": LinearSVC(**LISTED, dual=False),
            "LinearSVC on listed pairs, dual descent": LinearSVC(**LISTED, dual=True),
        }
        for name, model in models.items():
            start = perf_counter()
            if name.endswith(("Newton", "descent")):
                model.fit(sign[:, None] * (train[0][i] - train[0][j]), sign)
            else:
                model.fit(*train[:2], qid=train[2])
            seconds.setdefault(name, []).append(perf_counter() - start)
    committee = np.median(seconds["committee of 20, 50 epochs"])
    rows = [
        [name, f"{np.median(times):.3f} s", f"{np.median(times) / committee:.2f}"]
        for name, times in seconds.items()
    ]
    return [
        f"Training time of the median fold, {i.size:,} pairs in the last:",
        "",
        *table(rows, ["", "seconds", "to the committee's"]),
        "",
        "The committee was published as a fast alternative to RankSVM, whose tools listed pairs.",
        "Against a solver that lists them it is; against one that sorts scores it is not.",
    ]


def listed(train):
    """Winners and losers of all pairs."""
    _, y, qid = train
    winners, losers = [], []
    for q in np.unique(qid):
        rows = np.flatnonzero(qid == q)
        i, j = np.nonzero(y[rows, None] > y[rows])
        winners.append(rows[i])
        losers.append(rows[j])
    return np.concatenate(winners), np.concatenate(losers)
