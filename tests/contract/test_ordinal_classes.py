"""Labels of ordinal learners: where their order comes from, what keeps it, what contradicts it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from declared import ONLINE, first_of_each, walk

WORDS = ["bad", "ok", "good"]
RNG = np.random.default_rng(1)
X = RNG.normal(size=(90, 3))
RANKS = np.digitize(X @ [1.0, 2.0, -1.0], [-1.0, 1.0])
Y = np.array(WORDS)[RANKS]


@walk(first_of_each(ONLINE))
def test_every_learner_keeps_the_order_in_copies_searches_pipelines_and_files(learner, tmp_path):
    name = type(learner).__name__
    numbers = clone(learner).fit(X, RANKS)
    expected = np.array(WORDS)[numbers.predict(X)]
    made = type(learner)(**{**learner.get_params(deep=False), "classes": WORDS})
    assert made.get_params()["classes"] is WORDS
    assert clone(made).classes == WORDS
    assert clone(learner).set_params(classes=WORDS).classes is WORDS
    model = clone(made).fit(X, Y)
    assert model.ranks_.tolist() == WORDS
    assert model.classes_.tolist() == sorted(WORDS)
    assert (model.predict(X) == expected).all()
    # The columns of scikit-learn: those of classes_, whose largest is the prediction.
    values = model.decision_function(X)
    assert (values[:, [0, 2, 1]] == numbers.decision_function(X)).all()
    assert (model.classes_[values.argmax(axis=1)] == expected).all()
    assert model.score(X, Y) == numbers.score(X, RANKS)
    search = GridSearchCV(make_pipeline(StandardScaler(), made), {f"{name.lower()}__max_iter": [1]})
    best = search.fit(X, Y).best_estimator_[-1]
    assert best.ranks_.tolist() == WORDS
    rc.save(model, tmp_path / "words.rankcore")
    loaded = rc.load(tmp_path / "words.rankcore")
    assert loaded.classes == WORDS
    assert loaded.ranks_.tolist() == WORDS
    assert (loaded.predict(X) == expected).all()
    assert (loaded.decision_function(X) == values).all()


@walk(first_of_each(ONLINE))
def test_two_words_in_descending_order_are_ranks(learner):
    labels, ranks = np.array(["poor", "fine"]), (RANKS > 0).astype(int)
    numbers = clone(learner).fit(X, ranks)
    model = clone(learner).set_params(classes=labels).fit(X, labels[ranks])
    assert model.classes_.tolist() == ["fine", "poor"]
    values = model.decision_function(X)
    assert ((values > 0) == (model.predict(X) == "poor")).all()
    sure = numbers.decision_function(X) != np.finfo(float).tiny
    assert (values[sure] == -numbers.decision_function(X)[sure]).all()


def test_calibrated_takes_the_order_of_its_estimator():
    numbers = rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3).fit(X, RANKS)
    table = numbers.predict_proba(X)
    inside = rc.CalibratedOrdinal(rc.PRank(random_state=0, classes=WORDS), cv=3)
    piped = make_pipeline(rc.PRank(random_state=0, classes=WORDS))
    outside = rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3, classes=WORDS)
    for model in (inside, rc.CalibratedOrdinal(piped, cv=3), outside):
        fitted = clone(model).fit(X, Y)
        assert (fitted.predict_proba(X)[:, [0, 2, 1]] == table).all()
        # In the order of the ranks, not of the alphabet.
        below = fitted.predict_cumulative_proba(X)
        assert below.tolist() == numbers.predict_cumulative_proba(X).tolist()
        assert (fitted.predict(X) == np.array(WORDS)[numbers.predict(X)]).all()
        sets = fitted.conformalize(X, Y).predict_set(X, 0.8)
        expected = numbers.conformalize(X, RANKS).predict_set(X, 0.8)
        assert (sets == np.array(WORDS)[expected]).all()
    with pytest.raises(ValueError, match="differ from classes="):
        rc.CalibratedOrdinal(rc.PRank(classes=WORDS), cv=3, classes=sorted(WORDS)).fit(X, Y)


@pytest.mark.parametrize("name", ["multiclass", "frozen"])
def test_calibrated_orders_columns_of_decisions(name):
    """A learner without `project` has a column for each class, in the order of classes_."""
    from sklearn.frozen import FrozenEstimator

    plain, words = (rc.MulticlassPerceptron(random_state=0, classes=c) for c in (None, WORDS))
    if name == "frozen":
        plain, words = FrozenEstimator(plain.fit(X, RANKS)), FrozenEstimator(words.fit(X, Y))
    expected = rc.CalibratedOrdinal(plain, cv=3).fit(X, RANKS).predict_proba(X)
    found = rc.CalibratedOrdinal(words, cv=3).fit(X, Y).predict_proba(X)
    assert (found[:, [0, 2, 1]] == expected).all()


def test_weights_of_classes_are_in_the_order_of_classes():
    numbers = rc.MulticlassPerceptron(random_state=0).fit(X, RANKS)
    model = rc.MulticlassPerceptron(random_state=0, classes=WORDS).fit(X, Y)
    assert (model.coef_[[0, 2, 1]] == numbers.coef_).all()
    assert (model.intercept_[[0, 2, 1]] == numbers.intercept_).all()


def test_error_for_words_without_an_order_quotes_the_parameter():
    with pytest.raises(ValueError, match=r"PRank\(classes=\['bad', 'good', 'ok'\]\)"):
        rc.PRank().fit(X, Y)
    with pytest.raises(ValueError, match=r"CalibratedOrdinal\(classes=\['bad', 'good', 'ok'\]\)"):
        rc.CalibratedOrdinal().fit(X, Y)
    many = np.array([f"word {i:02}" for i in range(90)])
    with pytest.raises(ValueError, match=r"'word 19', \.\.\.\]"):
        rc.PRank().fit(X, many)


def test_contradictory_orders_are_rejected():
    made = rc.PRank(classes=WORDS)
    turned = pd.Series(pd.Categorical(Y, WORDS[::-1], ordered=True))
    for call in (made.fit, made.partial_fit):
        with pytest.raises(ValueError, match="of the constructor"):
            call(X, Y, classes=sorted(WORDS))
        with pytest.raises(ValueError, match="contradict the order of y's categories"):
            call(X, turned)
    made.fit(X, Y, classes=WORDS)
    made.partial_fit(X, Y).partial_fit(X, Y, classes=WORDS)
    with pytest.raises(ValueError, match="contradict|differ"):
        made.partial_fit(X, turned)
    made.set_params(classes=sorted(WORDS))
    with pytest.raises(ValueError, match="differ from those of the first call"):
        made.partial_fit(X, Y)
    with pytest.raises(ValueError, match="must list each label once"):
        rc.PRank(classes=["a", "a"]).fit(X, Y)


def test_numbers_in_place_of_words_are_rejected():
    for model in (rc.PRank(classes=WORDS), rc.CalibratedOrdinal(classes=WORDS)):
        with pytest.raises(ValueError, match="cross_val_predict"):
            model.fit(X, RANKS)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_order_of_a_categorical_is_taken_with_a_warning(kind):
    made = pd.Series(pd.Categorical(Y, WORDS, ordered=True))
    if kind == "polars":
        pl = pytest.importorskip("polars")
        made = pl.Series(Y, dtype=pl.Enum(WORDS))
    for model in (rc.PRank(random_state=0), rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3)):
        with pytest.warns(UserWarning, match=r"\(classes=\['bad', 'ok', 'good'\]\)"):
            fitted = clone(model).fit(X, made)
        assert fitted.ranks_.tolist() == WORDS
        numbers = clone(model).fit(X, RANKS)
        assert (fitted.predict(X) == np.array(WORDS)[numbers.predict(X)]).all()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clone(model).set_params(classes=WORDS).fit(X, made)
            # In alphabetical order nothing can be lost.
            rising = pd.Series(pd.Categorical(np.array(["a", "b", "c"])[RANKS], ordered=True))
            clone(model).fit(X, rising)


def test_held_out_probabilities_of_words_equal_those_of_ranks():
    model = rc.CalibratedOrdinal(rc.PRank(random_state=0), cv=3)
    predict = rc.model_selection.cross_val_predict
    numbers = predict(model, X, RANKS, cv=3, method="predict_proba")
    words = predict(clone(model).set_params(classes=WORDS), X, Y, cv=3, method="predict_proba")
    assert (words[:, [0, 2, 1]] == numbers).all()
    categorical = pd.Categorical(Y, WORDS, ordered=True)
    with pytest.warns(UserWarning, match="order of the ranks"):
        found = predict(model, X, categorical, cv=3, method="predict_proba")
    assert (found == words).all()


def test_held_out_predictions_of_integers_equal_scikit_learn():
    from sklearn.model_selection import ShuffleSplit, cross_val_predict

    model = rc.PRank(random_state=0)
    for method in ("predict", "decision_function"):
        expected = cross_val_predict(model, X, RANKS, cv=4, method=method)
        found = rc.model_selection.cross_val_predict(model, X, RANKS, cv=4, method=method)
        assert (found == expected).all()
    # What the first part is predicted from lacks a class.
    rows = RNG.permutation(90)
    y = RANKS.copy()
    y[rows[:5]] = 3
    parts = [(rows[50:], rows[:50]), (rows[:50], rows[50:])]
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        expected = cross_val_predict(model, X, y, cv=parts, method="decision_function")
    found = rc.model_selection.cross_val_predict(model, X, y, cv=parts, method="decision_function")
    assert (found == expected).all()
    with pytest.raises(ValueError, match="each row in one part"):
        rc.model_selection.cross_val_predict(model, X, RANKS, cv=ShuffleSplit(2, random_state=0))


def test_files_without_the_parameter_load(tmp_path, monkeypatch):
    path = tmp_path / "old.rankcore"
    model = rc.PRank(random_state=0).fit(X, RANKS)
    params = model.get_params(deep=False)
    assert params.pop("classes") is None
    with monkeypatch.context() as patch:
        patch.setattr(rc.PRank, "get_params", lambda self, deep=True: params)
        rc.save(model, path)
    assert b"classes" in path.read_bytes()
    assert b'\\"classes\\": null' not in path.read_bytes()
    loaded = rc.load(path)
    assert loaded.classes is None
    assert (loaded.predict(X) == model.predict(X)).all()
