"""Rankers from clicks: naive, with propensities, with effects of positions, and other tools.

``python -m reproduce.clicks --png reproduce/clicks.png --markdown reproduce/clicks.md``

Clicks are simulated: a ranking SVM that saw the labels of few training queries orders their
documents, the first 30 of which are shown; a user examines position p with probability p^-eta, and
clicks an examined document with probability .1 + .9 (2^label - 1) / (2^top - 1). In a tenth of the
sessions the first document changes places with one drawn from the list, from which the propensities
are estimated by "em"; "known" are the true ones. Learned from clicks alone, and measured by labels
on other queries: OHSUMED (train S1 to S3, test S4 and S5) and `make_letor`.

Between clicks as they are and labels lies the bias of positions and the noise of clicks. Known
propensities leave the noise alone: what they lack of labels no estimate of propensities can give.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

import rankcore as rc
from rankcore.clicks import User, click_pairs, propensities, simulate_clicks, simulate_sessions
from rankcore.datasets import make_letor
from reproduce.data import require
from reproduce.ohsumed import load, measured, number
from reproduce.pages import publish, table

DEPTH = 30
NOISE = 0.1
SWAP = 0.1
ETAS = [0.0, 0.5, 1.0, 2.0]
# Where other tools learn, too.
SHOWN_ETAS = [0.0, 1.0]
CLICKS = [10_000, 100_000]
# Sessions whose impressions are rows of a fit, for learners that take no pairs.
SESSIONS = 2_000
METHODS = {
    "labels": "RankSVM, labels",
    "naive": "RankSVM, clicks as they are",
    "estimated": "RankSVM, propensities by em",
    "known": "RankSVM, propensities known",
    "boosted labels": "RankBoost, labels",
    "boosted": "RankBoost, propensities known",
    "joint": "RankSVM, position=",
    "lightgbm": "LightGBM, position=",
    "xgboost": "XGBoost, lambdarank_unbiased",
}


def letor():
    """Generate rows, standardised within queries, as those of OHSUMED are."""
    X, y, qid = make_letor(110, 60, random_state=0)
    for q in np.unique(qid):
        rows = X[qid == q].astype(np.float64)
        spread = np.ptp(rows, axis=0)
        X[qid == q] = (rows - rows.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    train = qid <= 60
    return (X[train], y[train], qid[train]), (X[~train], y[~train], qid[~train])


class Clicks:
    """Clicks on the rankings of a ranker that knows little."""

    def __init__(self, train, eta, n_clicks, seed):
        self.X, self.y, self.qid = train
        self.docid, self.n_clicks = np.arange(self.qid.size), n_clicks
        self.eta = eta
        self.theta = np.arange(1, DEPTH + 1) ** -eta
        few = np.isin(self.qid, np.random.default_rng(seed).choice(np.unique(self.qid), 3, False))
        known = rc.RankSVM(C=0.1).fit(self.X[few], self.y[few], qid=self.qid[few])
        self.scores = known.predict(self.X)
        pilot, _ = self.sessions(2_000, seed)
        rate = np.count_nonzero(pilot.clicked) / (pilot.bounds.size - 1)
        self.log, self.row = self.sessions(int(n_clicks / rate), seed)

    def sessions(self, n, seed):
        """Return a log, and the row of each impression."""
        options = {"depth": DEPTH, "swap": SWAP, "random_state": seed}
        log, row = simulate_sessions(self.qid, self.docid, self.scores, n, **options)
        gain = 2.0**self.y - 1
        attraction = (NOISE + (1 - NOISE) * gain / gain.max())[row]
        user = User(examination=self.theta)
        return simulate_clicks(log, attraction, user=user, random_state=seed + 1), row

    def pairs(self, theta, learner):
        """Return a learner, fitted on weighted pairs of documents."""
        pairs, weights = click_pairs(self.log, self.qid, self.docid, theta)
        return learner.fit(self.X, qid=self.qid, pairs=pairs, pairs_weight=weights)

    def impressions(self):
        """Rows, clicks, sessions and positions of some sessions."""
        stop = self.log.bounds[min(SESSIONS, self.log.bounds.size - 1)]
        log = self.log
        return (
            self.X[self.row[:stop]],
            log.clicked[:stop].astype(int),
            log.session[:stop],
            log.position[:stop].astype(np.int64),
        )

    def models(self):
        """Scorers of rows by method."""
        svm = rc.RankSVM(C=0.1, tol=1e-6, random_state=0)
        yield "labels", svm.fit(self.X, self.y, qid=self.qid).predict
        yield "naive", self.pairs(np.ones(DEPTH), svm).predict
        try:
            found = propensities(self.log, "em")
        except ValueError:  # too few clicks at the end of the list
            found = None
        if found is not None:
            yield "estimated", self.pairs(found, svm).predict
        yield "known", self.pairs(self.theta, svm).predict
        boost = rc.RankBoost(100).fit(self.X, self.y, qid=self.qid)
        yield "boosted labels", boost.predict
        yield "boosted", self.pairs(self.theta, rc.RankBoost(100)).predict
        if self.n_clicks > CLICKS[0]:
            return
        X, clicked, session, position = self.impressions()
        yield "joint", svm.fit(X, clicked, qid=session, position=position).predict
        if self.eta not in SHOWN_ETAS:
            return
        sizes = np.unique(session, return_counts=True)[1]
        import lightgbm

        data = lightgbm.Dataset(X, clicked, group=sizes, position=position - 1)
        settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1, "seed": 0}
        yield "lightgbm", lightgbm.train(settings, data, 30).predict
        import xgboost

        settings = {
            "objective": "rank:ndcg",
            "lambdarank_unbiased": True,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": DEPTH,
            "nthread": 1,
            "seed": 0,
        }
        data = xgboost.DMatrix(X, clicked, qid=session)
        booster = xgboost.train(settings, data, 30)
        yield "xgboost", lambda rows: booster.predict(xgboost.DMatrix(rows))


def study(sets, seeds, numbers):
    """Mean NDCG@10 by set, number of clicks, eta and method."""
    found = {}
    for name, (train, test) in sets.items():
        for n_clicks in numbers:
            for eta in ETAS:
                for seed in range(seeds):
                    clicks = Clicks(train, eta, n_clicks, 100 * seed)
                    print(name, n_clicks, eta, seed, file=sys.stderr, flush=True)
                    for method, score in clicks.models():
                        (value,) = measured(test, score(test[0]), ["ndcg@10"])
                        key = name, n_clicks, eta, method
                        found.setdefault(key, []).append(value)
    # Means; none where a seed's log does not identify the propensities.
    return {key: np.mean(values) for key, values in found.items() if len(values) == seeds}


def draw(path, sets, found, n_clicks):
    """One panel a set: NDCG@10 by eta, of one number of clicks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(sets)), sets, strict=True):
        for method, label in METHODS.items():
            values = [found.get((name, n_clicks, eta, method), np.nan) for eta in ETAS]
            style = "--" if method.endswith("labels") else "o-"
            axes.plot(ETAS, values, style, markersize=3, label=label)
        axes.set(title=name, xlabel="eta: how steep the bias is", ylabel="NDCG@10")
        axes.grid(alpha=0.3)
    figure.axes[0].legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main():
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3, help="of clicks (default: 3)")
    parser.add_argument("--clicks", type=int, nargs="+", default=CLICKS, help="numbers of clicks")
    parser.add_argument("--png", type=Path)
    parser.add_argument("--markdown", type=Path)
    arguments = parser.parse_args()
    require("ohsumed-letor3")
    sets = {"OHSUMED": (load("123"), load("45")), "make_letor": letor()}
    found = study(sets, arguments.seeds, arguments.clicks)
    lines = [
        "# Rankers from clicks",
        "",
        f"    python -m reproduce.clicks {' '.join(sys.argv[1:])}",
        "",
        *__doc__.split("\n\n", 2)[2].strip().splitlines(),
        "",
        f"Columns after RankBoost's learn from the impressions of the first {SESSIONS} sessions,",
        "each a row, where there are 10,000 clicks; the others from pairs of documents of all.",
        "LightGBM and XGBoost make 30 trees with their defaults; they see no propensities.",
        "Blank: not run, or the log does not identify propensities at the end of lists.",
        "",
        f"{platform.machine()}, Python {platform.python_version()}, NumPy {version('numpy')}, "
        f"LightGBM {version('lightgbm')}, XGBoost {version('xgboost-cpu')}, "
        f"{arguments.seeds} seeds. NDCG@10 on test queries, by the convention of LETOR 3.0.",
    ]
    for name in sets:
        for n_clicks in arguments.clicks:
            rows = [
                [f"{eta:g}", *(number(found.get((name, n_clicks, eta, one))) for one in METHODS)]
                for eta in ETAS
            ]
            lines += ["", f"## {name}, {n_clicks:,} clicks", ""]
            lines += table(rows, ["eta", *METHODS.values()])
    if arguments.png:
        draw(arguments.png, sets, found, arguments.clicks[0])
        lines += ["", f"![NDCG@10 by eta]({arguments.png.name})"]
    text = "\n".join(lines) + "\n"
    publish(text, arguments.markdown)


if __name__ == "__main__":
    main()
