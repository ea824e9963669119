"""The pictures of docs/gallery.md, on data that everybody has.

    python -m reproduce.gallery

Ranks are fifths of the progression of diabetes in 442 patients, which scikit-learn ships; queries
are generated. Takes half a minute.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

import rankcore as rc
from rankcore.preference import Indexed

FOLDER = Path(__file__).parents[1] / "docs" / "gallery"
# In inches: on a phone, text of 9 points is then 9 pixels high.
WIDTH = 4.6
# Heights of figures that need more than their own one, at this width.
HEIGHTS = {
    "learning_curve": 4.6,
    "query": 5.6,
    "contributions": 6.2,
    "pair": 4.4,
    "rank": 4.4,
    "comparison": 2.9,
}


def ordinal_data():
    data = load_diabetes(as_frame=True, scaled=False)
    fifths = np.quantile(data.target, [0.2, 0.4, 0.6, 0.8])
    y = np.digitize(data.target, fifths) + 1
    return train_test_split(data.data, y, test_size=0.5, random_state=0)


def ordinal_pictures():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, X_test, y, y_test = ordinal_data()
    scaler = StandardScaler().set_output(transform="pandas")
    prank = make_pipeline(scaler, rc.PRank(random_state=0)).fit(X, y)
    cusum = make_pipeline(scaler, rc.CuSumRank(random_state=0)).fit(X, y)
    plots = rc.plotting
    yield "scores_by_rank", plots.plot_scores_by_rank(prank, X_test, y_test)
    yield "confusion", plots.plot_confusion(y_test, prank.predict(X_test))
    yield "weights", plots.plot_weights(prank)
    yield "weights_by_rank", plots.plot_weights(cusum)
    yield "rank", rc.explain.rank(prank, X_test.iloc[3], background=X).plot()
    model = rc.PRank(max_iter=30, early_stopping_rounds=15, random_state=0)
    held_out = scaler.transform(X_test), y_test
    model.fit(scaler.transform(X), y, eval_set=held_out)
    yield "learning_curve", plots.plot_learning_curve(model, figures=["rank_loss", *held(model)])
    probable = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(scaler.transform(X), y)
    yield (
        "reliability",
        plots.plot_reliability(
            y_test,
            probable.predict_proba(scaler.transform(X_test)),
            labels=probable.classes_,
            n_bins=6,
        ),
    )


def stream_pictures():
    X, y = rc.datasets.make_drift(20_000, random_state=0)
    learners = {"average": rc.PRank(), "last parameters": rc.PRank(average=False)}
    found = {}
    for name, learner in learners.items():
        chunks = ((X[i : i + 50], y[i : i + 50]) for i in range(0, y.size, 50))
        found[name] = rc.online.evaluate(learner, chunks, classes=range(1, 6))
    yield "stream", rc.plotting.plot_stream(found)


def rating_pictures():
    rng = np.random.default_rng(0)
    places = rng.permutation(30)

    def judge(i, j):
        return (places[i] < places[j]) ^ (rng.random(i.size) < 0.15)

    ranker = rc.PreferenceRanker(Indexed(judge), method="rating", max_calls=400, random_state=0)
    ranker.rank(np.arange(30))
    yield "place_intervals", rc.plotting.plot_place_intervals(ranker.ratings_, top=15)


def held(model):
    return [name for name in model.history_ if name.startswith("valid")]


def ranking_pictures():
    X, y, qid = rc.datasets.make_letor(200, 30, random_state=0)
    train, test = qid <= 120, qid > 120
    boost = rc.RankBoost(150).fit(X[train], y[train], qid=qid[train])
    trees = rc.RankBoost(40, max_leaf_nodes=8, learning_rate=0.3)
    trees.fit(X[train], y[train], qid=qid[train])
    svm = rc.RankSVM().fit(X[train] / X[train].std(axis=0), y[train], qid=qid[train])
    X_test, y_test, qid_test = X[test], y[test], qid[test]
    scores = {
        "RankSVM": svm.predict(X_test / X[train].std(axis=0)),
        "stumps": boost.predict(X_test),
        "trees": trees.predict(X_test),
    }
    plots = rc.plotting
    found = rc.metrics.compare(scores, y_test, qid=qid_test, metrics=["ndcg@10", "map"])
    yield "comparison", plots.plot_comparison(found)
    yield "query_differences", plots.plot_query_differences(found, 1)
    few = np.isin(qid_test, np.unique(qid_test)[:25])
    part = {name: one[few] for name, one in scores.items()}
    found = rc.metrics.compare(part, y_test[few], qid=qid_test[few], metrics=["ndcg@10"])
    yield "few_queries", plots.plot_query_differences(found, 1)
    yield "roc", plots.plot_roc(y_test, scores["stumps"], qid=qid_test, name="stumps:")
    ranks = rc.PRank(random_state=0).fit(X[train], y[train]).predict(X_test)
    yield "roc_pooled", plots.plot_roc(y_test, ranks, name="ranks:")
    importance = rc.explain.global_importance(boost, X_test, qid=qid_test)
    yield "importances", importance.plot(max_features=12)
    top = np.argsort(-importance.importances)[:12]
    shuffled = rc.explain.permutation_importance(boost, X_test, y_test, qid=qid_test, features=top)
    yield "permutation", shuffled.plot()
    some = X_test.copy()
    some[::9, top[0]] = np.nan
    with_holes = X[train].copy()
    with_holes[::7, top[0]] = np.nan
    holes = rc.RankBoost(150).fit(with_holes, y[train], qid=qid[train])
    with pyplot.style.context(plots.STYLE):
        _, axes = pyplot.subplots(3, 2, sharey=True)
    yield "contributions", plots.plot_contributions(holes, some, axes=axes)[0]
    one = qid_test[0]
    why = rc.explain.query(trees, X_test, qid_test, which=one, y=y_test, top_k=5)
    yield "query", why.plot(max_documents=15)
    a, b = why.rows[0], why.rows[7]
    yield (
        "pair",
        rc.explain.pair(trees, X_test[a], X_test[b], names=("document 1", "document 8")).plot(),
    )
    path = rc.RankSVMCV(cv=3).fit(X[train][:1500], y[train][:1500], qid=qid[train][:1500])
    yield "ranksvm_path", plots.plot_ranksvm_path(path)


def main() -> None:
    wanted = set(sys.argv[1:])
    FOLDER.mkdir(exist_ok=True)
    for pictures in (ordinal_pictures, stream_pictures, ranking_pictures, rating_pictures):
        for name, ax in pictures():
            if not wanted or name in wanted:
                width, height = ax.figure.get_size_inches()
                ax.figure.set_size_inches(min(width, WIDTH), HEIGHTS.get(name, height))
                ax.figure.savefig(FOLDER / f"{name}.png", dpi=110, bbox_inches="tight")
                print(name)
            pyplot.close(ax.figure)


if __name__ == "__main__":
    main()
