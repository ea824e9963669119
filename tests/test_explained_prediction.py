"""Explanations are of the model's own prediction, in the columns of its input: brute force."""

import warnings
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

import rankcore as rc
from declared import ORDINAL as ORDINAL_LEARNERS
from declared import SAVED_RANKERS, adds_up, first_of_each
from reference.shapley import shapley_values

pd = pytest.importorskip("pandas")

SMOKER, BRAND = ["never", "former", "current"], ["ash", "birch", "cedar", "oak"]
NUMBERS, WORDS = ["age", "size"], ["smoker", "brand"]
NAMES = NUMBERS + WORDS
RNG = np.random.default_rng(5)
N = 240
CODES = np.column_stack(
    [
        RNG.integers(18, 80, N),
        RNG.normal(size=N).round(1),
        RNG.integers(0, 3, N),
        RNG.choice(4, N, p=[0.5, 0.3, 0.15, 0.05]),
    ]
).astype(np.float64)
LATENT = CODES[:, 0] / 20 + 2 * (CODES[:, 2] == 2) * (CODES[:, 1] > 0) + (CODES[:, 3] == 1)
Y = np.digitize(LATENT + 0.4 * RNG.normal(size=N), [2, 3, 4]) + 1
QID = np.repeat(np.arange(24), 10)
HOLES = CODES.copy()
HOLES[::7, 1] = np.nan


def frame(codes):
    """Rows as a user has them: numbers, and words for codes of categories."""
    codes = np.atleast_2d(codes)
    data = {"age": codes[:, 0], "size": codes[:, 1]}
    for column, labels in ((2, SMOKER), (3, BRAND)):
        words = np.array(labels, dtype=object)[codes[:, column].astype(int)]
        data[WORDS[column - 2]] = pd.Categorical(words, labels)
    return pd.DataFrame(data)


def encoded(one_hot, learner, *after):
    parts = [("numbers", StandardScaler(), NUMBERS), ("words", one_hot, WORDS)]
    return make_pipeline(ColumnTransformer(parts, sparse_threshold=0), *after, learner)


ONE_HOT = OneHotEncoder()
IMPUTED = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
PRANK = rc.PRank(random_state=0)
BOOST = {"n_estimators": 8, "max_leaf_nodes": 6, "min_samples_leaf": 5}
LEARNERS = first_of_each(filter(adds_up, ORDINAL_LEARNERS))
RANKERS = [
    *first_of_each(one for one in SAVED_RANKERS if adds_up(one) or hasattr(one, "max_leaf_nodes")),
    rc.RankBoost(**BOOST),
]
TREES = {
    "vector": rc.OrdinalBoost(**BOOST),
    "shared": rc.OrdinalBoost(**BOOST, tasks="shared"),
    "cumulative": rc.OrdinalBoost(**BOOST, tasks="shared", link="cumulative"),
    "no interactions": rc.OrdinalBoost(**BOOST | {"max_leaf_nodes": 2}),
    "zero_one": rc.OrdinalBoost(**BOOST, loss="zero_one"),
}
FROZEN = encoded(ONE_HOT, rc.PRank(random_state=0)).fit(frame(CODES[:120]), Y[:120])
CALIBRATED = {
    f"calibrated, {method}, {loss}": rc.CalibratedOrdinal(
        encoded(ONE_HOT, PRANK), method=method, loss=loss
    )
    for method, loss in (
        ("cumulative", "absolute"),
        ("cumulative", "kappa"),
        ("isotonic", "zero_one"),
        ("isotonic", "squared"),
    )
} | {
    "calibrated sums": rc.CalibratedOrdinal(encoded(ONE_HOT, rc.CuSumRank(random_state=0))),
    "calibrated frozen": rc.CalibratedOrdinal(FrozenEstimator(FROZEN)),
    "steps before calibrated": encoded(ONE_HOT, rc.CalibratedOrdinal(PRANK)),
}
ORDINAL = {
    **{f"{type(one).__name__} {i}": encoded(ONE_HOT, one) for i, one in enumerate(LEARNERS)},
    "scaled after one-hot": encoded(ONE_HOT, PRANK, StandardScaler()),
    "dropped": encoded(OneHotEncoder(drop="first"), PRANK, MinMaxScaler()),
    "infrequent": encoded(OneHotEncoder(min_frequency=30), PRANK),
    "numbered": encoded(OrdinalEncoder(categories=[SMOKER, BRAND]), PRANK),
    "imputed": encoded(IMPUTED, PRANK),
    "selected": encoded(ONE_HOT, PRANK, SelectKBest(f_classif, k=7)),
    "search": GridSearchCV(encoded(ONE_HOT, PRANK), {"prank__max_iter": [2, 3]}, cv=2),
    **CALIBRATED,
    **TREES,
    "trees behind one-hot": encoded(ONE_HOT, rc.OrdinalBoost(**BOOST)),
}
MODELS = {
    **ORDINAL,
    **{f"{type(one).__name__} {i}": encoded(ONE_HOT, one) for i, one in enumerate(RANKERS)},
    "RankBoost of categories": rc.RankBoost(**BOOST),
    "RankBoost without interactions": rc.RankBoost(**BOOST | {"max_leaf_nodes": 2, "weak": "tree"}),
}


@dataclass
class Served:
    """A fitted model, and its rows as codes."""

    name: str
    model: Any
    codes: Any
    y: Any

    def predict(self, codes):
        return self.model.predict(frame(codes))

    def score(self, codes):
        """Compute the explained score by public methods of the whole model."""
        rows, model = frame(codes), self.model
        model = getattr(model, "best_estimator_", model)
        last = model[-1] if hasattr(model, "steps") else model
        if isinstance(last, rc.OrdinalBoost):
            table = model.predict_proba(rows)
            if last.link == "cumulative":
                return np.log(table[:, 1:].sum(axis=1) / table[:, 0])
            rank = 1 if last.tasks == "shared" else table.shape[1] - 1
            return np.log(table[:, rank] / table[:, 0])
        if hasattr(last, "project"):
            rows = model[:-1].transform(rows) if hasattr(model, "steps") else rows
            return last.project(rows)
        return model.predict(rows)


FITTED: dict[str, Served] = {}


def served(name):
    if name not in FITTED:
        model = clone(MODELS[name])
        codes = HOLES if isinstance(model, rc.OrdinalBoost | rc.RankBoost) else CODES
        given, y = {}, Y
        if name.startswith(("RankBoost", "RankSVM", "Pairwise")):
            last = model.steps[-1][0] + "__" if hasattr(model, "steps") else ""
            given = {f"{last}qid": QID}
        if name.startswith("Bipartite"):
            y = (Y > 2).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FITTED[name] = Served(name, model.fit(frame(codes), y, **given), codes, y)
    return FITTED[name]


@pytest.fixture(params=MODELS)
def any_model(request):
    return served(request.param)


@pytest.fixture(params=ORDINAL)
def ordinal(request):
    return served(request.param)


def shapley(score, rows, background):
    """Shapley values of rows, of which the model predicts all changes in one call."""
    asked = []

    def note(changed):
        asked.append(changed)
        return np.zeros(len(changed))

    def values(of):
        return np.array([shapley_values(of, row, background) for row in rows])

    values(note)
    ends = np.cumsum([len(changed) for changed in asked])
    answers = iter(np.split(score(np.concatenate(asked)), ends[:-1]))
    return values(lambda changed: next(answers))


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * (1 + np.abs(expected).max()))


def shown(codes):
    """Values of rows, as users know them."""
    table = frame(codes)
    return [[*row[:2], str(row[2]), str(row[3])] for row in table.itertuples(index=False)]


def assert_shown(found, codes, name):
    for row, expected in zip(found.tolist(), shown(codes), strict=True):
        assert row[:3] == pytest.approx(expected[:3], nan_ok=True)
        rare = {"oak": "infrequent"} if name == "infrequent" else {}
        merged = {"other"} if name == "selected" else set()
        assert row[3] in {rare.get(expected[3], expected[3])} | merged


def test_pair_has_shapley_values_of_the_input(any_model):
    a, b = any_model.codes[3], any_model.codes[9]
    why = rc.explain.pair(any_model.model, frame(a), frame(b))
    assert why.feature_names == NAMES
    close(why.contributions, shapley(any_model.score, [a], b[None])[0])
    assert_shown(np.array([why.values_a, why.values_b]), np.array([a, b]), any_model.name)


def test_query_has_shapley_values_of_the_input(any_model):
    rows = any_model.codes[20:25]
    found = rc.explain.query(any_model.model, frame(rows), top_k=2)
    close(found.contributions, shapley(any_model.score, rows[found.rows], rows))
    assert_shown(found.values, rows[found.rows], any_model.name)
    for name, *means, _ in found.tables()[0].rows:
        if name in WORDS:
            assert {one.split(" (")[0] for one in means} <= {*SMOKER, *BRAND, "infrequent", "other"}


def test_importance_is_of_the_input(any_model):
    rows, background = any_model.codes[:4], any_model.codes[50:53]
    found = rc.explain.global_importance(any_model.model, frame(rows), background=frame(background))
    each = shapley(any_model.score, rows, background)
    assert found.feature_names == NAMES
    close(found.importances, np.abs(each).mean(axis=0))


def test_permutation_shuffles_the_input(any_model):
    found = rc.explain.permutation_importance(
        any_model.model, frame(any_model.codes), any_model.y, n_repeats=2, n_resamples=10
    )
    y = any_model.y
    if any_model.name in ORDINAL:
        assert found.measure == "rank_loss"

        def measured(codes):
            return rc.metrics.rank_loss(y, any_model.predict(codes))
    else:
        assert found.measure == "ndcg@10"

        def measured(codes):
            scores = any_model.score(codes)
            return rc.metrics.evaluate(y, scores, qid=np.zeros(N), metrics=["ndcg@10"])["ndcg@10"]

    before = measured(any_model.codes)
    assert found.baseline == pytest.approx(before)
    for j in range(4):
        after = []
        for r in range(2):
            codes = any_model.codes.copy()
            codes[:, j] = codes[np.argsort(np.random.default_rng([0, j, r]).random(N)), j]
            after.append(measured(codes))
        assert found.changes[j] == pytest.approx(np.mean(after) - before, abs=1e-12)


def test_explained_rank_is_the_predicted_one(ordinal):
    rows = ordinal.codes[::120]
    for row, label in zip(rows, ordinal.predict(rows), strict=True):
        why = rc.explain.rank(ordinal.model, frame(row), background=frame(ordinal.codes))
        assert why.label == label
        assert why.nearest() in (why.rank - 1, why.rank)
        beside = [t for t in (why.rank - 1, why.rank) if 0 <= t < 3]
        assert abs(why.distances[why.nearest()]) == abs(why.distances[beside]).min()
        finite = np.isfinite(why.distances)
        sums = why.bases[finite] + why.contributions[:, finite].sum(axis=0)
        np.testing.assert_allclose(sums, why.distances[finite], rtol=1e-7, atol=1e-9)
        if not why.log_odds and not ordinal.name.startswith(("CuSum", "KernelCuSum", "cumulative")):
            assert (why.distances >= 0).sum() == why.rank
        if why.probabilities is not None:
            table = ordinal.model.predict_proba(frame(row))
            np.testing.assert_allclose(why.probabilities, table[0], rtol=1e-12)


def test_rank_at_thresholds_has_shapley_values_of_the_input(ordinal):
    row, background = ordinal.codes[11], ordinal.codes[60:63]
    why = rc.explain.rank(ordinal.model, frame(row), background=frame(background))
    if why.log_odds:
        for t in range(3):

            def odds(codes, t=t):
                table = ordinal.model.predict_proba(frame(codes))
                return np.log(table[:, t + 1] / table[:, t])

            close(why.contributions[:, t], shapley(odds, [row], background)[0])
    elif not ordinal.name.startswith(("CuSum", "KernelCuSum")):
        expected = shapley(ordinal.score, [row], background)[0]
        for t in range(3):
            close(why.contributions[:, t], expected)


def further(values):
    """Values of a number within its range: those that occur, and others between them."""
    known = np.unique(values[~np.isnan(values)])
    return np.unique(np.concatenate([known, np.linspace(known[0], known[-1], 300)]))


# A row with a missing value, where models take some, and one without, in turn.
@pytest.mark.parametrize(("name", "place"), [*zip(ORDINAL, cycle([7, 206]), strict=False)])
def test_reported_changes_of_a_row_change_its_predicted_rank(name, place):
    ordinal = served(name)
    row = ordinal.codes[place]
    why = rc.explain.rank(ordinal.model, frame(row), background=frame(ordinal.codes))
    now = ordinal.predict(row)[0]

    def predicted(j, values):
        codes = np.repeat(row[None], len(values), axis=0)
        codes[:, j] = values
        return ordinal.predict(codes)

    for moved, sign in ((why.up, 1), (why.down, -1)):
        for j in (0, 1):
            grid = further(ordinal.codes[:, j])
            if np.isnan(row[j]):
                known = np.unique(ordinal.codes[:, j][~np.isnan(ordinal.codes[:, j])])
                moving = known[sign * (predicted(j, known) - now) > 0]
                if moving.size:
                    far = np.abs(moving - np.median(known))
                    assert abs(moved[j] - np.median(known)) == far.min()
                else:
                    assert moved[j] != moved[j]
            elif np.isnan(moved[j]):
                assert (sign * (predicted(j, grid) - now) <= 0).all()
            else:
                assert grid[0] <= moved[j] <= grid[-1]
                away = moved[j] - row[j]
                assert sign * (predicted(j, [moved[j]])[0] - now) > 0
                nearer = grid[np.abs(grid - row[j]) < np.abs(away) * (1 - 1e-7)]
                assert nearer.size == 0 or (sign * (predicted(j, nearer) - now) <= 0).all()
        for j, labels in ((2, SMOKER), (3, BRAND)):
            if j == 3 and ordinal.name in ("selected", "infrequent"):
                continue  # some categories are one, see below
            moving = sign * (predicted(j, range(len(labels))) - now) > 0
            expected = [label for label, moves in zip(labels, moving, strict=True) if moves]
            if not expected:
                assert moved[j] != moved[j]
            elif ordinal.name in TREES or ordinal.name == "numbered":
                assert moved[j] == expected[0]
            else:  # a OneHotEncoder sorts its categories
                assert moved[j] == min(expected)


@pytest.mark.parametrize("name", ["trees", "scaled", "linear"])
def test_integers_and_booleans_move_to_values_of_the_background(name):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"visits": rng.poisson(6, 400), "insured": rng.random(400) < 0.4})
    y = np.digitize(rows["visits"] + 4 * rows["insured"] + rng.normal(size=400), [5, 8, 11])
    learner = rc.OrdinalBoost(30) if name == "trees" else rc.PRank(random_state=0)
    model = make_pipeline(StandardScaler(), learner) if name == "scaled" else learner
    model.fit(rows, y)
    n_moved = 0
    for i in range(0, 400, 20):
        row = rows.iloc[[i]]
        why = rc.explain.rank(model, row, background=rows)
        for column, moves in zip(rows, zip(why.up, why.down, strict=True), strict=True):
            others = np.unique(rows[column])
            changed = pd.concat([row.assign(**{column: value}) for value in others])
            change = model.predict(changed) - model.predict(row)[0]
            for moved, sign in zip(moves, (1, -1), strict=True):
                moving = others[sign * change > 0].astype(float)
                if moving.size:
                    n_moved += 1
                    distances = np.abs(moving - float(row[column].iloc[0]))
                    assert moved == moving[distances.argmin()]
                else:
                    assert moved != moved
    assert n_moved > 20


def test_rank_without_background_is_not_limited():
    model = rc.PRank(random_state=0).fit(CODES[:, :2], Y)
    found = [rc.explain.rank(model, row) for row in CODES[:40, :2]]
    assert not any(why.limited for why in found)
    ups = np.array([why.up[1] for why in found])
    low, high = CODES[:, 1].min(), CODES[:, 1].max()
    inside = (ups >= low) & (ups <= high)
    assert inside.any()
    assert not inside[np.isfinite(ups)].all()
    limited = [rc.explain.rank(model, row, background=CODES[:, :2]) for row in CODES[:40, :2]]
    kept = np.array([why.up[1] for why in limited])
    np.testing.assert_array_equal(kept, np.where(inside, ups, np.nan))
    assert "within the range of the background" in str(limited[0])


def test_categories_that_do_not_occur_in_the_background_are_not_proposed():
    one = served("vector")
    some = one.codes[one.codes[:, 2] != 2]
    for row in some[:30]:
        why = rc.explain.rank(one.model, frame(row), background=frame(some))
        assert why.up[2] != "current"
        assert why.down[2] != "current"


def test_unnamed_categories_are_shown_as_numbers():
    model = rc.OrdinalBoost(**BOOST, categorical_features=[2, 3]).fit(HOLES, Y)
    why = rc.explain.rank(model, HOLES[0])
    assert why.values[2:].tolist() == HOLES[0, 2:].tolist()
    for j in (2, 3):
        for moved, sign in ((why.up, 1), (why.down, -1)):
            changed = np.repeat(HOLES[:1], 4, axis=0)
            changed[:, j] = range(4)
            moving = np.flatnonzero(sign * (model.predict(changed) - why.label) > 0)
            assert moved[j] in moving.tolist() if moving.size else moved[j] != moved[j]


# The values are those of the tests above: a picture of each third model shows them.
@pytest.mark.parametrize("name", [*MODELS][::3])
def test_plot_of_contributions_shows_shapley_values(name):
    matplotlib = pytest.importorskip("matplotlib")
    one = served(name)
    codes = one.codes[:8]  # two of them with a missing value, where there are some
    if name == "infrequent":
        codes = codes[codes[:, 3] != 3]  # whose bar would be that of the others
    axes = rc.plotting.plot_contributions(one.model, frame(codes), NAMES)
    axes[0].figure.canvas.draw()
    expected = shapley(one.score, codes, codes)
    scale = 1e-7 * (1 + np.abs(expected).max())
    for j, ax in enumerate(axes):
        assert ax.get_xlabel() == NAMES[j]
        points = [line for line in ax.lines if line.get_marker() == "."]
        if j < 2 and points:
            drawn = np.concatenate([line.get_ydata() for line in points])
            missing = np.isnan(codes[:, j])
            order = np.concatenate([np.flatnonzero(~missing), np.flatnonzero(missing)])
            np.testing.assert_allclose(drawn, expected[order, j], atol=scale)
            known = points[0].get_xdata()
            np.testing.assert_allclose(known, codes[~missing, j], rtol=1e-12)
            assert (len(points) == 2) == missing.any()
        elif j < 2:
            x, height = ax.lines[0].get_data()
            assert (x[0], x[-1]) == pytest.approx((np.nanmin(codes[:, j]), np.nanmax(codes[:, j])))
            for i, row in enumerate(codes):
                if np.isnan(row[j]):
                    assert ax.lines[-2].get_ydata()[0] == pytest.approx(expected[i, j], abs=scale)
                else:
                    # The curve, at both sides of a step; scaling back rounds.
                    near = np.interp([row[j] - 1e-9, row[j], row[j] + 1e-9], x, height)
                    assert np.abs(near - expected[i, j]).min() < scale
        elif name != "selected":
            labels = [text.get_text() for text in ax.get_xticklabels()]
            called = [row[j] for row in shown(codes)]
            assert set(labels) == set(called)
            if ax.patches:
                drawn = [bar.get_height() for bar in ax.patches]
                each = [expected[called.index(label), j] for label in labels]
                np.testing.assert_allclose(drawn, each, atol=scale)
            else:
                for line in points:
                    label = labels[int(line.get_xdata()[0])]
                    own = [i for i, one in enumerate(called) if one == label]
                    np.testing.assert_allclose(line.get_ydata(), expected[own, j], atol=scale)
    matplotlib.pyplot.close(axes[0].figure)


def test_explanations_are_converted_to_frames():
    one = served("vector")
    X = frame(one.codes)
    why = rc.explain.rank(one.model, frame(one.codes[7]), background=X)
    table = why.to_frame()
    assert table.index.tolist() == why.feature_names
    for t, name in enumerate(why.threshold_names):
        np.testing.assert_array_equal(table[name], why.contributions[:, t])
    assert list(map(str, table["up"])) == list(map(str, why.up))
    whole = rc.explain.global_importance(one.model, X)
    ordered = whole.to_frame()["importance"]
    assert (np.diff(ordered) <= 0).all()
    assert ordered[whole.feature_names].tolist() == whole.importances.tolist()
    shuffled = rc.explain.permutation_importance(one.model, X, Y)
    table = shuffled.to_frame()
    assert (np.diff(table["change"]) <= 0).all()  # of a loss
    np.testing.assert_array_equal(table.loc[shuffled.feature_names, "low"], shuffled.low)
