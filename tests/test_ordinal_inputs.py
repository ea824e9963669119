"""Labels, classes, parameters and streams of learners of ordered labels, by PRank."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.metrics import rank_loss


def ordinal_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X @ [1, 2, -1, 0] + rng.normal(size=n), [-2, 0, 2])


def test_pipelines_searches_and_pickles_accept_learners():
    X, y = ordinal_data()
    pipeline = make_pipeline(StandardScaler(), rc.PRank())
    search = GridSearchCV(pipeline, {"prank__max_iter": [1, 5]}, cv=3).fit(X, y)
    assert search.best_score_ < 0  # negated loss on noisy data
    constant = -rank_loss(y, np.full(len(y), np.median(y)))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > constant
    model = search.best_estimator_[-1]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    assert not hasattr(clone(model), "classes_")


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"tie": "left"}, ValueError, "tie must be one of 'crammer', 'strict'; got 'left'"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"max_iter": 1.5}, TypeError, "max_iter"),
        ({"average": "yes"}, TypeError, "average must be True or False"),
        ({"threshold_scale": 0}, ValueError, "threshold_scale"),
        ({"threshold_scale": np.nan}, ValueError, "threshold_scale"),
        ({"tol": -1}, ValueError, "tol"),
        ({"tol": float("nan")}, ValueError, "tol"),
        ({"verbose": -1}, ValueError, "verbose"),
        ({"shuffle": None}, TypeError, "shuffle"),
    ],
)
def test_bad_parameters_are_named(params, error, message):
    X, y = ordinal_data()
    for method in ["fit", "partial_fit"]:
        with pytest.raises(error, match=message):
            getattr(rc.PRank.published(**params), method)(X, y)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (rc.CuSumRank(), "tie_break"),
        (rc.CuSumRank(), "decision"),
        (rc.VotedPRank(), "output"),
        (rc.OAPBagging(n_estimators=2), "output"),
        (rc.OAPVoting(n_estimators=2), "weight"),
    ],
    ids=str,
)
def test_options_set_after_the_fit_are_checked_too(learner, name):
    X, y = ordinal_data()
    learner = clone(learner).fit(X, y).set_params(**{name: "other"})
    for call in [learner.predict, lambda X: learner.score(X, y)]:
        with pytest.raises(ValueError, match=f"{name} must be one of .*; got 'other'"):
            call(X)


def test_string_labels_need_an_order():
    X = [[0.0], [1.0], [2.0], [3.0]]
    y = ["bad", "good", "fair", "good"]
    with pytest.raises(ValueError, match="pass classes=, lowest rank first"):
        rc.PRank.published().fit(X, y)
    order = ["bad", "fair", "good"]
    model = rc.PRank.published(max_iter=50).fit(X, y, classes=order)
    assert model.classes_.tolist() == order
    numbers = rc.PRank.published(max_iter=50).fit(X, [0, 2, 1, 2])
    assert model.predict(X).tolist() == [order[i] for i in numbers.predict(X)]
    with pytest.raises(ValueError, match="'great' at row 1"):
        model.partial_fit(X[:2], ["bad", "great"])


def test_ordered_categories_define_the_order():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    order = ["low", "mid", "high"]
    labels = ["mid", "low", "high"]
    for y in [
        pd.Series(pd.Categorical(labels, categories=order, ordered=True)),
        pd.Categorical(labels, categories=order, ordered=True),
        pl.Series(labels, dtype=pl.Enum(order)),
    ]:
        with pytest.warns(UserWarning, match="order of the ranks is that of y's categories"):
            assert rc.PRank.published().fit(np.eye(3), y).ranks_.tolist() == order
    unordered = pd.Series(pd.Categorical(labels))
    with pytest.raises(ValueError, match="classes="):
        rc.PRank.published().fit(np.eye(3), unordered)


def test_labels_of_numpys_string_type_are_learned():
    strings = np.dtypes.StringDType()
    y, order = np.array(["mid", "low", "high"], dtype=strings), ["low", "mid", "high"]
    for labels, classes in [(y, order), (y.tolist(), np.array(order, dtype=strings))]:
        model = rc.PRank.published(max_iter=50).fit(np.eye(3), labels, classes=classes)
        assert model.partial_fit(np.eye(3), labels, classes=classes).ranks_.tolist() == order
        assert model.predict(np.eye(3)).tolist() == ["mid", "low", "high"]


def test_classes_are_copied():
    classes = np.array([1, 2, 3])
    model = rc.PRank.published().fit(np.eye(3), [1, 2, 3], classes=classes)
    classes[:] = 7
    assert model.classes_.tolist() == [1, 2, 3]
    ensemble = rc.OAPBPM(n_estimators=2).fit(np.eye(3), [1, 2, 3])
    ensemble.estimators_[0].ranks_[:] = 7
    assert ensemble.classes_.tolist() == [1, 2, 3]


def test_integers_beyond_float64_are_distinct_labels():
    labels = [2**60, 2**60 + 1]
    model = rc.PRank.published().fit(np.eye(2), labels, classes=labels)
    assert model.partial_fit(np.eye(2), labels, classes=labels).classes_.tolist() == labels


@pytest.mark.parametrize(
    "labels",
    [
        [0.5, 1.0, 4.5],
        [-3, 0, 10],
        [False, True, True],
        np.array(["2020", "2021", "2022"], dtype="datetime64[Y]"),
        np.array([3, 1, 2], dtype=object),
        np.array([1, 2, 3], dtype=np.uint8),
    ],
)
def test_any_ordered_labels_are_learned(labels):
    model = rc.PRank.published(max_iter=100).fit(np.eye(3), labels)
    assert (model.classes_ == np.unique(labels)).all()
    assert (model.predict(np.eye(3)) == np.array(labels)).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y"),
        ([1, 2], "inconsistent numbers of samples: 3 rows and 2 labels"),
        ([1, 1, 1], "only one class"),
        ([1.0, np.nan, 2.0], "contains NaN"),
        ([1.0, np.inf, 2.0], "contains infinity"),
        (np.array([1, None, 2], dtype=object), "contains None in row 1"),
        (np.array([1, "a", 2], dtype=object), "mixes strings"),
        (np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()), "string labels have no order"),
        (np.array(["2020", "NaT", "2021"], dtype="datetime64[Y]"), "contains NaT"),
        (np.zeros(3, dtype="i4,i4"), "labels of type tuple are not supported"),
        (np.array([[1], [2], [3], None], dtype=object)[:3], "labels of type list are not"),
        (np.array([1, 2, 3j]), "Complex"),
    ],
)
def test_bad_labels_are_rejected(y, message):
    with pytest.raises(ValueError, match=message):
        rc.PRank.published().fit(np.eye(3), y)


def test_continuous_target_is_rejected_but_half_stars_are_not():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    with pytest.raises(ValueError, match="Unknown label type: continuous.*bin y first"):
        rc.PRank.published().fit(X, rng.normal(size=200))
    stars = rng.integers(1, 11, size=200) / 2
    assert rc.PRank.published().fit(X, stars).classes_.tolist() == (np.arange(1, 11) / 2).tolist()
    many = np.arange(200.0)  # whole numbers of type float
    assert rc.PRank.published().fit(X, many).classes_.tolist() == many.tolist()


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ([1], "at least two"),
        ([1, 2, 2], "list each label once"),
        ([3, 2, 1], "must ascend"),
        ([1, 2, np.inf], "classes contains infinity"),
        ([1, 2, np.nan], "classes contains NaN"),
        ([1, 2, 3j], "must have an order"),
        ([1, 2, None], "classes contains None in row 2"),
        ([[1, 2]], "at least two"),
        (["a", "b"], "of the type of the classes .*; got int64"),
    ],
)
def test_bad_classes_are_rejected(classes, message):
    with pytest.raises(ValueError, match=message):
        rc.PRank.published().fit(np.eye(2), [1, 2], classes=classes)


def test_partial_fit_rejects_incompatible_rows_and_parameters():
    X, y = ordinal_data()
    model = rc.PRank.published().partial_fit(X, y)
    before = model.coef_, model.thresholds_, model.history_
    with pytest.raises(ValueError, match="classes=.*differ"):
        model.partial_fit(X, y, classes=[0, 1, 2, 3, 4])
    with pytest.raises(ValueError, match="label 9 at row 1"):
        model.partial_fit(X[:2], [1, 9])
    with pytest.raises(ValueError, match="X has 3 features, but PRank is expecting 4"):
        model.partial_fit(X[:, :3], y)
    with pytest.raises(ValueError, match="contains NaN at row 0, column 1"):
        model.partial_fit([[0, np.nan, 0, 0]], [1])
    for name, value in [("average", True), ("threshold_scale", 2.0)]:
        with pytest.raises(ValueError, match=f"{name}={value}.*set it back"):
            clone_with_state(model, **{name: value}).partial_fit(X, y)
    after = model.coef_, model.thresholds_, model.history_
    np.testing.assert_equal(after, before)
    assert model.tie == "crammer"
    clone_with_state(model, tie="strict").partial_fit(X, y)  # not built into the model


def clone_with_state(model, **params):
    return pickle.loads(pickle.dumps(model)).set_params(**params)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_score_that_overflows_is_an_error_and_not_learned(form):
    # Two equal rows of 1e308: a mistake on the first makes the weight as large, so that the score
    # of the second overflows.
    X = np.zeros((4, 40))
    X[:, 0] = [1, 1, 1e308, 1e308]
    y = [1, 2, 1, 2]
    with pytest.raises(ValueError, match="the score of row 3 overflowed.*scale X"):
        rc.PRank.published().fit(form(X), y)
    model = rc.PRank.published().fit(form(X[:3]), y[:3])
    before = model.coef_, model.thresholds_, model.t_, model.history_
    with pytest.raises(ValueError, match="overflowed"):
        model.fit(form(X), y)
    with pytest.raises(ValueError, match="overflowed"):
        model.partial_fit(form(X[3:]), y[3:])
    np.testing.assert_equal((model.coef_, model.thresholds_, model.t_, model.history_), before)
    fresh = rc.PRank.published()
    with pytest.raises(ValueError, match="overflowed"):
        fresh.partial_fit(form(X), y)
    assert not hasattr(fresh, "classes_")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("average", [False, True])
def test_interrupted_fit_changes_nothing_and_partial_fit_keeps_blocks(monkeypatch, form, average):
    from rankcore.progress import watch

    X, y = ordinal_data()
    X = form(X)
    monkeypatch.setattr(rc.PRank, "_block_values", 40)
    model = rc.PRank.published(average=average).fit(X, y)
    before = pickle.dumps(model._state)
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert seen == [10, 20, 30]
    np.testing.assert_equal(vars(model._state), vars(pickle.loads(before)))
    seen.clear()
    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, y)
    expected = rc.PRank.published(average=average).fit(X, y).partial_fit(X[:30], y[:30])
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.thresholds_, expected.thresholds_)
    assert model.history_ == expected.history_


def test_feature_names_are_checked():
    pd = pytest.importorskip("pandas")
    X, y = ordinal_data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = rc.PRank.published().fit(frame, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_array_equal(model.coef_, rc.PRank.published().fit(X, y).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("abdc")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


def test_predict_before_fit_is_an_error():
    from sklearn.exceptions import NotFittedError

    for method in ["predict", "decision_function"]:
        with pytest.raises(NotFittedError):
            getattr(rc.PRank.published(), method)([[1.0]])
    for name in ["coef_", "thresholds_", "t_", "history_", "update_loss_curve_", "n_iter_"]:
        assert not hasattr(rc.PRank.published(), name)
