"""Pictures: what they show is what was computed."""

import builtins
import sys

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
    plot_contribution,
    plot_query_differences,
    plot_roc,
    plot_scores_by_rank,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
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


def test_forest_of_contrasts(ax):
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
    assert [text.get_text() for text in ax.texts] == [f"p = {c.p_holm:.4f}" for c in FOUND]
    assert "95%" in ax.get_xlabel()


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


def test_bars_of_queries(ax):
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
    with pytest.raises(IndexError):
        plot_query_differences(FOUND, 9, ax=ax)


def test_roc_with_its_band(ax):
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
    assert labels == [f"ranks AUC {half:.4f}", f"ties: {low:.4f} to {high:.4f}"]


def test_roc_without_ties_has_no_band(ax):
    plot_roc([0, 1, 0, 2], [0.1, 0.4, 0.35, 0.8], rel=2, ax=ax)
    assert not ax.patches
    with pytest.raises(ValueError, match="one is missing"):
        plot_roc([0, 0], [1, 2], ax=ax)


@pytest.mark.parametrize(
    "learner", [rc.PRank.published(max_iter=5), rc.OAPBPM.published(n_estimators=5)]
)
def test_scores_between_thresholds(ax, learner):
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
    with pytest.raises(ValueError, match="200 rows, y has shape"):
        plot_scores_by_rank(model, X, y[:5], ax=ax)


def test_scores_of_pipelines_and_searches(ax):
    X = RNG.normal(size=(60, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    pipeline = make_pipeline(StandardScaler(), rc.PRank.published())
    search = GridSearchCV(pipeline, {"prank__max_iter": [1, 2]}, cv=2).fit(X, y)
    plot_scores_by_rank(search, X[:1], y[:1], ax=ax)  # one row, too
    levels = [line.get_ydata()[0] for line in ax.lines]
    assert levels == search.best_estimator_[-1].thresholds_.tolist()
    with pytest.raises(ValueError, match="y has 7, which is not among the ranks 0, 1, 2"):
        plot_scores_by_rank(pipeline.fit(X, y), X, np.where(y == 1, 7, y), ax=ax)


def test_models_that_have_no_line_of_scores(ax):
    X = RNG.normal(size=(20, 2))
    y = np.arange(20) % 3
    for model in (rc.CuSumRank.published(), rc.MulticlassPerceptron.published()):
        with pytest.raises(TypeError, match="not one score a row with thresholds"):
            plot_scores_by_rank(model.fit(X, y), X, y, ax=ax)


def test_what_a_feature_adds(ax):
    X = RNG.normal(size=(80, 3)).round(1)
    X[::7, 1] = np.nan
    y = (X[:, 0] > 0.3) + (np.nan_to_num(X[:, 1]) > 0)
    model = rc.RankBoost(30).fit(X, y)
    plot_contribution(model, 1, ax=ax)
    (stairs,) = ax.patches
    values, edges, _ = stairs.get_data()
    for value, low, high in zip(values, edges[:-1], edges[1:], strict=True):
        middle = (low + high) / 2
        changed = model.predict([[0.0, middle, 0.0], [0.0, np.nan, 0.0]])
        (missing,) = set(ax.lines[0].get_ydata())
        assert value - missing == pytest.approx(changed[0] - changed[1], abs=1e-12)
    assert edges[1:-1].tolist() == sorted(
        set(model.estimators_["threshold"][model.estimators_["feature"] == 1]) - {-np.inf}
    )


def test_what_a_named_feature_adds(ax):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(RNG.normal(size=(40, 2)), columns=["age", "size"])
    model = make_pipeline(rc.RankBoost(5)).fit(X, X["size"])
    plot_contribution(model, "size", ax=ax)
    assert ax.get_xlabel() == "size"
    assert np.ptp(ax.patches[0].get_data().values) > 0
    plot_contribution(model, "age", ax=ax)  # no stump is needed
    with pytest.raises(ValueError, match="no feature 'weight'; names are age, size"):
        plot_contribution(model, "weight", ax=ax)
    with pytest.raises(ValueError, match="X had no named columns"):
        plot_contribution(rc.RankBoost(1).fit(X.to_numpy(), X["size"]), "size", ax=ax)
    with pytest.raises(ValueError, match="feature == 2"):
        plot_contribution(model, 2, ax=ax)
    with pytest.raises(TypeError, match="PRank has no stumps"):
        plot_contribution(rc.PRank.published(), 0, ax=ax)


def test_new_axes_and_missing_matplotlib(monkeypatch):
    from matplotlib import pyplot

    ax = plot_comparison(FOUND)
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)

    def refuse(name, *rest):
        if name.startswith("matplotlib"):
            raise ModuleNotFoundError("none", name="matplotlib")
        return imported(name, *rest)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refuse)
    for name in [name for name in sys.modules if name.startswith("matplotlib")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rankcore\[plot\]'"):
        plot_comparison(FOUND)


def test_reliability_of_probabilities(ax):
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
