"""Pictures: what they show is what was computed."""

import builtins
import sys
from itertools import pairwise

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.metrics import auc_score, compare, evaluate
from rankcore.plotting import (
    BLUE,
    ORANGE,
    plot_comparison,
    plot_contributions,
    plot_query_differences,
    plot_roc,
    plot_scores_by_rank,
)

matplotlib = pytest.importorskip("matplotlib")
RNG = np.random.default_rng(0)
QID = np.repeat(np.arange(30), 12)
Y = RNG.integers(0, 3, QID.size)
SYSTEMS = {
    "baseline": Y + 3 * RNG.normal(size=QID.size),
    "better": Y + 0.5 * RNG.normal(size=QID.size),
    "equal": Y + 3 * RNG.normal(size=QID.size),
}
FOUND = compare(SYSTEMS, Y, qid=QID, metrics=["map", "ndcg@5"])


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    figure = Figure(layout="constrained")
    yield figure.subplots()
    figure.canvas.draw()  # what cannot be drawn fails here


def test_contrasts_are_drawn_with_their_intervals(ax):
    assert plot_comparison(FOUND, ax=ax) is ax
    lines = [line.get_xydata().tolist() for line in ax.lines]
    for i, c in enumerate(FOUND):
        place = 6 - i
        assert lines[2 * i] == [[c.low, place], [c.high, place]]
        assert lines[2 * i + 1] == [[c.difference, place]]
        filled = ax.lines[2 * i + 1].get_markerfacecolor() != "white"
        assert filled == (c.p_holm < 0.05)
    assert {filled for filled in (c.p_holm < 0.05 for c in FOUND)} == {True, False}
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[0] == "better - baseline, map"
    *values, heading = [text.get_text() for text in ax.texts]
    assert heading == "p (Holm)"
    for text, c in zip(values, FOUND, strict=True):
        if c.p_holm < 0.001:
            assert text == "< .001"
        else:
            assert float(text) == pytest.approx(c.p_holm, abs=0.0005)
            assert not text.startswith("0")
    assert "95%" in ax.get_xlabel()
    assert "filled: p < .05 after Holm" in ax.get_xlabel()


def test_smaller_losses_have_the_colour_of_the_better_system(ax):
    found = compare(SYSTEMS, Y, qid=QID, metrics=["auc", "misranking"], baseline="baseline")
    plot_comparison(found, ax=ax)
    assert [c.p_holm < 0.05 for c in found] == [True, False, True, False]
    assert [ax.lines[i].get_color() for i in (0, 4)] == [BLUE, BLUE]
    ax.clear()
    plot_query_differences(found, 3, ax=ax)
    colours = [matplotlib.colors.to_hex(bar.get_facecolor()) for bar in ax.patches]
    heights = [bar.get_height() for bar in ax.patches]
    assert {c for c, h in zip(colours, heights, strict=True) if h > 0} == {ORANGE}
    assert {c for c, h in zip(colours, heights, strict=True) if h < 0} == {BLUE}
    won = sum(height < 0 for height in heights)
    assert f"queries: {won} won by equal" in ax.get_xlabel()


def test_bars_show_the_values_of_queries(ax):
    plot_query_differences(FOUND, 3, ax=ax)
    c = FOUND[3]
    values = {
        name: evaluate(Y, s, qid=QID, metrics="ndcg@5").per_query["ndcg@5"]
        for name, s in SYSTEMS.items()
    }
    expected = sorted(values[c.b] - values[c.a], reverse=True)
    assert [bar.get_height() for bar in ax.patches] == expected
    assert (
        ax.get_xlabel()
        == f"queries: {c.wins} won by better, {c.ties} tied, {c.losses} won by baseline"
    )
    # Up to 40 queries have their ids under the bars.
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert names == [
        str(q) for q in QID[::12][np.argsort(-(values[c.b] - values[c.a]), kind="stable")]
    ]
    with pytest.raises(IndexError):
        plot_query_differences(FOUND, 9, ax=ax)


def test_many_queries_have_whole_ticks_and_two_ids(ax):
    qid = np.repeat(np.arange(100, 160), 6)
    found = compare(
        {n: s[: qid.size] for n, s in SYSTEMS.items()}, Y[: qid.size], qid=qid, metrics=["map"]
    )
    plot_query_differences(found, ax=ax)
    assert all(tick == int(tick) for tick in ax.get_xticks())
    differences, ids = found.differences(), found.queries()
    assert ids.shape == differences.shape == (found[0].n,)
    assert [text.get_text() for text in ax.texts] == [
        f"query {ids[differences.argmax()]}",
        f"query {ids[differences.argmin()]}",
    ]


def test_roc_has_a_band_of_ties(ax):
    y = np.array([1, 1, 0, 1, 0, 0, 1, 0])
    s = np.array([4, 3, 3, 3, 2, 1, 1, 1.0])
    plot_roc(y, s, name="ranks", ax=ax)
    # One positive above all; two positives and a negative tied; a negative; one and two tied.
    curve = [[0, 0], [0, 0.25], [0.25, 0.75], [0.5, 0.75], [1, 1]]
    assert ax.lines[0].get_xydata().tolist() == curve
    half, low, high = (auc_score(y, s, ties=t) for t in ("half", "pessimistic", "optimistic"))
    assert np.trapezoid(*np.array(curve).T[::-1]) == pytest.approx(half)
    corners = ax.patches[0].get_xy()
    x, height = corners[:, 0], corners[:, 1]
    area = 0.5 * abs(np.dot(x, np.roll(height, 1)) - np.dot(height, np.roll(x, 1)))
    assert area == pytest.approx(high - low)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == [f"ranks AUC {half:.4f}, all rows pooled", f"ties: {low:.4f} to {high:.4f}"]


def test_roc_averages_queries(ax):
    plot_roc(Y, SYSTEMS["better"], qid=QID, name="better:", ax=ax)
    areas = auc_score(Y, SYSTEMS["better"], qid=QID, per_query=True)[1]
    areas = areas[~np.isnan(areas)]
    (label,) = [text.get_text() for text in ax.get_legend().get_texts()]
    assert label == f"better: mean of {areas.size} queries, AUC {areas.mean():.4f}"
    thin = ax.lines[1:-1]
    assert len(thin) == areas.size
    for line, area in zip(thin, areas, strict=True):
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(area)
    x, y = ax.lines[0].get_data()
    # 201 heights of a curve of steps: each step is off by half a place of 1/200 on average.
    assert np.trapezoid(y, x) == pytest.approx(areas.mean(), abs=0.005)
    with pytest.raises(ValueError, match="each query lacks positive or negative"):
        plot_roc([1, 0], [1, 2], qid=[1, 2], ax=ax)


def test_roc_without_ties_has_no_band(ax):
    plot_roc([0, 1, 0, 2], [0.1, 0.4, 0.35, 0.8], rel=2, ax=ax)
    assert not ax.patches
    with pytest.raises(ValueError, match="one kind is missing"):
        plot_roc([0, 0], [1, 2], ax=ax)


@pytest.mark.parametrize(
    "learner", [rc.PRank.published(max_iter=5), rc.OAPBPM.published(n_estimators=5)]
)
def test_scores_are_drawn_between_thresholds(ax, learner):
    X = RNG.normal(size=(200, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5]) + 1
    model = learner.fit(X, y)
    plot_scores_by_rank(model, X[y != 2], y[y != 2], ax=ax)
    levels = [line.get_ydata()[0] for line in ax.lines]
    assert levels == model.thresholds_.tolist()
    bodies = [c for c in ax.collections if hasattr(c, "get_paths") and c.get_facecolor().size]
    spans = [body.get_paths()[0].get_extents() for body in bodies[:2]]
    for rank, span in zip([1, 3], spans, strict=True):
        scores = model.project(X[y == rank])
        assert (span.y0, span.y1) == pytest.approx((scores.min(), scores.max()))
    with pytest.raises(ValueError, match="each of 200 rows; got shape"):
        plot_scores_by_rank(model, X, y[:5], ax=ax)


def test_scores_of_pipelines_and_searches_are_drawn(ax):
    X = RNG.normal(size=(60, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    pipeline = make_pipeline(StandardScaler(), rc.PRank.published())
    search = GridSearchCV(pipeline, {"prank__max_iter": [1, 2]}, cv=2).fit(X, y)
    plot_scores_by_rank(search, X[:1], y[:1], ax=ax)  # one row, too
    levels = [line.get_ydata()[0] for line in ax.lines]
    assert levels == search.best_estimator_[-1].thresholds_.tolist()
    with pytest.raises(ValueError, match="y has 7, which is not among the ranks 0, 1, 2"):
        plot_scores_by_rank(pipeline.fit(X, y), X, np.where(y == 1, 7, y), ax=ax)


def test_models_without_scores_have_no_plot(ax):
    X = RNG.normal(size=(20, 2))
    y = np.arange(20) % 3
    for model in (rc.CuSumRank.published(), rc.MulticlassPerceptron.published()):
        with pytest.raises(TypeError, match="lacks one score per row with thresholds"):
            plot_scores_by_rank(model.fit(X, y), X, y, ax=ax)


def test_contributions_step_at_the_thresholds_of_stumps(ax):
    X = RNG.normal(size=(80, 3)).round(1)
    X[::7, 1] = np.nan
    y = (X[:, 0] > 0.3) + (np.nan_to_num(X[:, 1]) > 0)
    model = rc.RankBoost(30).fit(X, y, qid=np.zeros(80))
    plot_contributions(model, X, [1], axes=[ax])
    x, height = ax.lines[0].get_data()
    missing = next(line for line in ax.lines if line.get_label() == "missing").get_ydata()[0]
    changed = np.zeros((x.size, 3))
    changed[:, 1] = x
    without = model.predict([[0.0, np.nan, 0.0]])[0]
    np.testing.assert_allclose(height - missing, model.predict(changed) - without, atol=1e-12)
    known = X[~np.isnan(X[:, 1]), 1]
    rug = np.sort(ax.lines[1].get_xdata())
    assert set(rug.tolist()) <= set(known.tolist())
    assert (rug[0], rug[-1]) == (x[0], x[-1]) == (known.min(), known.max())
    cuts = model.estimators_["threshold"][model.estimators_["feature"] == 1]
    inside = {cut for cut in cuts.tolist() if known.min() <= cut < known.max()}
    assert inside <= set(x.tolist())


def test_contributions_are_chosen_by_name_or_number(ax):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["age", "size"])
    model = make_pipeline(StandardScaler(), rc.RankBoost(5))
    model.fit(X, X["size"], rankboost__qid=np.zeros(40))
    plot_contributions(model, X, ["size"], axes=[ax])
    assert ax.get_xlabel() == "size"
    x, height = ax.lines[0].get_data()
    assert (x[0], x[-1]) == pytest.approx((X["size"].min(), X["size"].max()))
    assert np.ptp(height) > 0
    plot_contributions(model, X, [0], axes=[ax])  # no stump is needed
    with pytest.raises(ValueError, match="no feature 'weight'; names are age, size"):
        plot_contributions(model, X, ["weight"], axes=[ax])
    with pytest.raises(ValueError, match="numbers from 0 to 1; got 2"):
        plot_contributions(model, X, [2], axes=[ax])
    votes = rc.VotedPRank().fit(X.to_numpy(), X["size"] > 0)
    with pytest.raises(TypeError, match="VotedPRank votes"):
        plot_contributions(votes, X.to_numpy(), axes=[ax])


def test_contributions_are_drawn_for_each_rank(ax):
    X = RNG.normal(size=(90, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = rc.MulticlassPerceptron(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="requires output="):
        plot_contributions(model, X, axes=[ax])
    plot_contributions(model, X, [0], output=2, axes=[ax])
    x, height = ax.lines[0].get_data()
    np.testing.assert_allclose(height, model.coef_[2, 0] * (x - X[:, 0].mean()), atol=1e-12)


def test_axes_are_created_and_missing_matplotlib_is_named(monkeypatch):
    from matplotlib import pyplot

    ax = plot_comparison(FOUND)
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)

    def reject(name, *rest):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("none", name="matplotlib")
        return imported(name, *rest)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", reject)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rankcore\[plot\]'"):
        plot_comparison(FOUND)


def test_reliability_of_probabilities_is_drawn(ax):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = np.clip(np.round(X.sum(axis=1) + rng.normal(size=600)) + 3, 1.0, 5.0)
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[:300], y[:300])
    rc.plotting.plot_reliability(
        y[300:], model.predict_proba(X[300:]), labels=model.classes_, ax=ax
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        f"above {r}" for r in range(1, 5)
    ]
    for line in ax.get_lines()[1:]:
        called, share = line.get_data()
        assert np.abs(np.asarray(called) - share).max() < 0.25


def test_thresholds_and_ranks_have_names(ax):
    X = RNG.normal(size=(200, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5]) + 1.0
    model = rc.PRank(random_state=0).fit(X, y)
    plot_scores_by_rank(model, X, y, ax=ax)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "3"]
    assert [text.get_text() for text in ax.texts] == ["1 | 2", "2 | 3"]
    assert [text.xy[1] for text in ax.texts] == model.thresholds_.tolist()


def test_confusion_of_ranks_is_drawn(ax):
    y, predicted = [1.0, 1, 2, 3, 3, 3], [1.0, 2, 2, 3, 3, 1]
    rc.plotting.plot_confusion(y, predicted, ax=ax)
    table = rc.metrics.confusion_by_rank(y, predicted)
    for text in ax.texts:
        j, i = (int(place) for place in text.get_position())
        assert float(text.get_text()) == table[i, j]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["1", "2", "3"]
    assert ax.get_ylim()[0] < ax.get_ylim()[1]  # the lowest rank is at the bottom
    shares = np.asarray(ax.images[0].get_array())
    assert shares.sum(axis=1) == pytest.approx(np.ones(3))


def test_learning_curves_are_drawn(ax):
    X = RNG.normal(size=(120, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = rc.PRank(max_iter=6, early_stopping_rounds=3, random_state=0)
    model.fit(X[:80], y[:80], eval_set=(X[80:], y[80:]))
    rc.plotting.plot_learning_curve(model, ax=ax)
    assert ax.lines[0].get_ydata().tolist() == model.history_["valid_rank_loss"]
    assert ax.lines[1].get_xdata()[0] == model.best_iteration_
    assert all(tick == int(tick) for tick in ax.get_xticks())
    qid = np.repeat(np.arange(12), 10)
    learners = [
        (rc.RankBoost(5), "bound", "round"),
        (rc.PairwisePerceptron(max_iter=3, random_state=0), "mistakes", "pass"),
        (rc.RankSVM(), "objective", "step"),
        (rc.OrdinalBoost(5), "log_loss", "round"),
    ]
    for learner, figure, unit in learners:
        ax.clear()
        given = {} if figure == "log_loss" else {"qid": qid}
        rc.plotting.plot_learning_curve(learner.fit(X, y, **given), ax=ax)
        expected = np.array(learner.history_[figure], dtype=float)
        if figure == "mistakes":
            expected /= learner.history_["pairs"]
        assert ax.lines[0].get_ydata().tolist() == expected.tolist()
        assert ax.get_xlabel() == unit
    with pytest.raises(ValueError, match="history_ has no 'loss'; it has edge"):
        rc.plotting.plot_learning_curve(learners[0][0], figures="loss", ax=ax)
    with pytest.raises(TypeError, match="not fitted"):
        rc.plotting.plot_learning_curve(rc.PRank(), ax=ax)


def test_streams_have_a_line_for_each_learner(ax):
    X, y = rc.datasets.make_drift(400, 3, random_state=0)
    chunks = [(X[i : i + 20], y[i : i + 20]) for i in range(0, 400, 20)]
    results = {
        str(learner): rc.online.evaluate(
            learner, chunks, metrics=["rank_loss", "rps"], window=100, classes=range(1, 6)
        )
        for learner in (rc.OrdinalLogistic(), rc.OrdinalLogistic(average=False))
    }
    assert rc.plotting.plot_stream(results, metric="rps", ax=ax) is ax
    for line, (name, found) in zip(ax.lines, results.items(), strict=True):
        assert line.get_label() == name
        assert line.get_xdata().tolist() == [100, 200, 300, 400]
        assert line.get_ydata().tolist() == [one.latest["rps"] for one in found.windows]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("rows of the stream", "rps")
    ax.clear()
    rc.plotting.plot_stream(found, ax=ax)
    overall, latest = (line.get_ydata().tolist() for line in ax.lines)
    assert overall == [one.overall["rank_loss"] for one in found.windows]
    assert latest == [one.latest["rank_loss"] for one in found.windows]
    with pytest.raises(ValueError, match="metric must be .*: rank_loss, rps; got 'accuracy'"):
        rc.plotting.plot_stream(found, metric="accuracy", ax=ax)
    with pytest.raises(ValueError, match="its stream was empty"):
        rc.plotting.plot_stream(rc.online.evaluate(rc.PRank(), []), ax=ax)


def test_importances_leave_unused_features_out(ax):
    X = RNG.normal(size=(80, 4))
    qid = np.repeat(np.arange(8), 10)
    model = rc.RankBoost(9).fit(X, (X[:, 1] > 0).astype(int), qid=qid)
    used = np.flatnonzero(model.feature_importances_)
    assert used.size < 4
    rc.plotting.plot_importances(model, ax=ax)
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(model.feature_importances_[used], reverse=True)
    assert ax.get_yticklabels()[0].get_text() == "column 1"
    assert ax.get_xlabel() == "share of all |alpha|"
    y = (X[:, 1] > 0).astype(int)
    for trees in (
        rc.RankBoost(3, max_leaf_nodes=4).fit(X, y, qid=np.zeros(len(y))),
        rc.OrdinalBoost(3, min_samples_leaf=5).fit(X, y),
    ):
        ax.clear()
        rc.plotting.plot_importances(trees, ax=ax)
        assert ax.get_xlabel() == "share of all gains"
        assert ax.patches[0].get_width() == trees.feature_importances_.max()
    ax.clear()
    found = rc.explain.global_importance(model, X, qid=qid)
    found.plot(ax=ax, max_features=1)
    assert [bar.get_width() for bar in ax.patches] == [found.importances.max()]
    ax.clear()
    shuffled = rc.explain.permutation_importance(model, X, X[:, 1] > 0, qid=qid, metric="auc")
    shuffled.plot(ax=ax)
    assert ax.lines[0].get_xdata().tolist() == [shuffled.low[1], shuffled.high[1]]
    with pytest.raises(TypeError, match="PRank has no feature_importances_.*global_importance"):
        rc.plotting.plot_importances(rc.PRank(), ax=ax)


def test_weights_are_drawn_by_rank(ax):
    X = RNG.normal(size=(120, 4))
    y = np.digitize(X[:, 2], [-0.5, 0.5])
    rc.plotting.plot_weights(rc.PRank(random_state=0).fit(X, y), ax=ax)
    assert ax.get_yticklabels()[0].get_text() == "column 2"
    for learner, labels in (
        (rc.CuSumRank(random_state=0), ["0 | 1", "1 | 2"]),
        (rc.MulticlassPerceptron(random_state=0), ["0", "1", "2"]),
    ):
        model = learner.fit(X, y)
        own = rc.plotting.plot_weights(model, max_features=2)
        shown = own.images[0].get_array()
        assert [text.get_text() for text in own.get_xticklabels()] == labels
        names = [int(text.get_text().split()[1]) for text in own.get_yticklabels()]
        assert shown.tolist() == model.coef_[:, names].T.tolist()
        matplotlib.pyplot.close(own.figure)
    words = np.array(["low", "mid", "high"])
    for learner, labels in (
        (rc.CuSumRank(random_state=0), ["low | mid", "mid | high"]),  # in the order of ranks
        (rc.MulticlassPerceptron(random_state=0), ["high", "low", "mid"]),  # of classes_
    ):
        own = rc.plotting.plot_weights(learner.fit(X, words[y], classes=words))
        assert [text.get_text() for text in own.get_xticklabels()] == labels
        assert own.get_xlabel() == ("threshold" if "|" in labels[0] else "rank")
        matplotlib.pyplot.close(own.figure)


def test_contributions_share_an_axis():
    X = RNG.normal(size=(80, 4))
    qid = np.repeat(np.arange(8), 10)
    y = (X[:, 1] > 0) + (X[:, 3] > 0.5)
    model = rc.RankBoost(20).fit(X, y, qid=qid)
    axes = rc.plotting.plot_contributions(model, X)
    assert len({ax.get_ylim() for ax in axes}) == 1
    assert {ax.get_xlabel() for ax in axes} <= {f"column {j}" for j in range(4)}
    used = np.flatnonzero(model.feature_importances_)
    assert len(axes) <= used.size
    assert not any("missing" in ax.get_legend_handles_labels()[1] for ax in axes)
    matplotlib.pyplot.close(axes[0].figure)
    linear = rc.RankSVM().fit(X, y, qid=qid)
    (ax,) = rc.plotting.plot_contributions(linear, X, [1])
    x, height = ax.lines[0].get_data()
    assert height == pytest.approx(linear.coef_[1] * (np.asarray(x) - X[:, 1].mean()))
    matplotlib.pyplot.close(ax.figure)


def test_waterfall_shows_the_features_of_a_pair(ax):
    X = RNG.normal(size=(80, 6))
    qid = np.repeat(np.arange(8), 10)
    model = rc.RankSVM().fit(X, X[:, 1] > 0, qid=qid)
    why = rc.explain.pair(model, X[0], X[1], names=("first", "second"))
    why.plot(ax=ax, max_features=3)
    bars = [(bar.get_x(), bar.get_width()) for bar in ax.patches if bar.get_width()]
    assert bars[0][0] == pytest.approx(why.score_b)
    for (x, width), (after, _) in pairwise(bars):
        assert x + width == pytest.approx(after)
    assert sum(bars[-1]) == pytest.approx(why.score_a)
    assert len(bars) == 4
    assert ax.get_yticklabels()[-1].get_text() == "3 others"


def test_documents_are_drawn_by_features(ax):
    X = RNG.normal(size=(40, 6))
    qid = np.repeat(["a", "b"], 20)
    model = rc.RankSVM().fit(X, X[:, 1] > 0, qid=qid)
    found = rc.explain.query(model, X, qid, which="b", y=(X[:, 1] > 0) + 0.0, top_k=5)
    found.plot(ax=ax, max_features=2, max_documents=8)
    shown = np.asarray(ax.images[0].get_array())
    assert shown.shape == (8, 3)
    assert shown.sum(axis=1) == pytest.approx(found.contributions[:8].sum(axis=1))
    lines = [text.get_text() for text in ax.get_yticklabels()]
    assert lines[0] == f"1.  {found.names[0]}  [{found.labels[0]:g}]"
    assert "query b" in ax.get_title("left")
    assert "12 more" in ax.get_title("left")
    scores = [text.get_text() for text in ax.texts if text.get_position()[0] == 1.02]
    assert scores == [*(f"{score:.3f}" for score in found.scores[:8]), "score"]


def test_a_row_is_drawn_among_thresholds(ax):
    X = RNG.normal(size=(120, 4))
    y = np.digitize(X[:, 2], [-0.5, 0.5])
    for learner, n_lines in ((rc.PRank(random_state=0), 2), (rc.CuSumRank(random_state=0), 1)):
        ax.clear()
        why = rc.explain.rank(learner.fit(X, y), X[0], background=X)
        why.plot(ax=ax)
        assert sum("|" in text.get_text() for text in ax.texts) == n_lines
        bars = [bar for bar in ax.patches if bar.get_width()]
        assert bars[0].get_x() == pytest.approx(why.bases[why.nearest()])
        end = bars[-1].get_x() + bars[-1].get_width()
        assert end == pytest.approx(why.distances[why.nearest()])


def test_plots_keep_the_style_and_axes_of_users():
    assert rc.plotting.STYLE.is_file()
    before = dict(matplotlib.rcParams)
    ax = plot_comparison(FOUND)
    assert dict(matplotlib.rcParams) == before
    assert not ax.spines["top"].get_visible()
    matplotlib.pyplot.close(ax.figure)


# A formula that Matplotlib cannot parse, two prices that it takes for one, and a long document.
ODD = ["$\\nope$", "costs $5 or $10", "a line\nand another", "long " * 40]


def shown(axis):
    """Return the labels of ticks as Matplotlib draws them."""
    from matplotlib.cbook import is_math_text

    texts = [text.get_text() for text in axis.get_ticklabels()]
    assert not any(map(is_math_text, texts))
    return [text.replace(r"\$", "$") for text in texts]


def test_names_are_drawn_as_they_are(ax):
    ratings = rc.preference.rate([ODD[0], ODD[1], ODD[2]], ODD[1:])
    rc.plotting.plot_place_intervals(ratings, ax=ax)
    assert shown(ax.yaxis) == [*ODD[:2], "a line and another", ("long " * 40)[:59] + "…"]


def test_names_of_features_documents_and_systems_are_drawn_as_they_are():
    from matplotlib import pyplot

    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(RNG.normal(size=(60, 4)), columns=ODD)
    y = (X[ODD[0]] > 0).astype(int) + (X[ODD[1]] > 0)
    qid = np.repeat(np.arange(6), 10)
    learner = rc.PRank(random_state=0).fit(X, y)
    ranker = rc.RankBoost(5).fit(X, y, qid=qid)
    names = [f"{ODD[0]} {row}" for row in range(10)]
    found = rc.explain.query(ranker, X[:10], qid[:10], which=0, docid=names)
    compared = compare({ODD[0]: SYSTEMS["baseline"], ODD[1]: SYSTEMS["better"]}, Y, qid=QID)
    drawn = [
        rc.plotting.plot_weights(learner),
        rc.plotting.plot_importances(ranker),
        rc.plotting.plot_query(found),
        rc.plotting.plot_pair(rc.explain.pair(ranker, X.iloc[:1], X.iloc[1:2], names=ODD[:2])),
        rc.plotting.plot_comparison(compared),
        rc.plotting.plot_query_differences(compared),
        *plot_contributions(ranker, X),
    ]
    for ax in drawn:
        ax.figure.canvas.draw()
    assert ODD[1] in shown(drawn[1].yaxis)
    pyplot.close("all")


@pytest.mark.parametrize(("ratings", "top"), [([1, 2], None), ("ratings", 0)])
def test_place_intervals_name_the_wrong_argument(ratings, top):
    if ratings == "ratings":
        ratings = rc.preference.rate(["a", "b"], ["b", "a"])
    what = "ratings must be Ratings" if top is None else "top must be"
    with pytest.raises((TypeError, ValueError), match=what):
        rc.plotting.plot_place_intervals(ratings, top=top)
