"""Pipelines of texts and of tables: what they take, calibration, explanations and plots take."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)

import rankcore as rc
from rankcore.explain import global_importance, pair, permutation_importance, query, rank
from texts import TEXTS, Y, table

FORMS = [list, tuple, np.array, lambda texts: np.array(texts, dtype=object)]


def stars(*front):
    return make_pipeline(*front, rc.PRank(random_state=0))


@pytest.fixture(scope="module")
def fitted():
    return stars(TfidfVectorizer()).fit(TEXTS, Y)


@pytest.fixture(scope="module")
def frame():
    return table()


@pytest.fixture(scope="module")
def mixed(frame):
    """Return a model of a text, two scaled columns and a category."""
    return stars(
        ColumnTransformer(
            [
                ("words", TfidfVectorizer(), "text"),
                ("age", StandardScaler(), ["age"]),
                ("length", MinMaxScaler(), ["length"]),
                ("kind", OneHotEncoder(handle_unknown="ignore"), ["kind"]),
            ]
        )
    ).fit(frame, Y)


# ------------------------------------------------------------------------ ranks, pairs, queries


def test_single_text_is_accepted_in_any_form(fitted):
    expected = fitted.predict(TEXTS[:1])[0]
    for text in (TEXTS[0], [TEXTS[0]], (TEXTS[0],), np.array(TEXTS[:1])):
        why = rank(fitted, text)
        assert why.label == expected
        score = fitted[-1].project(fitted[0].transform(TEXTS[:1]))[0]
        assert why.distances == pytest.approx(score - fitted[-1].thresholds_)
        counts = fitted[0].transform(TEXTS[:1]).toarray()[0]
        assert why.values.tolist() == ["present" if one else "absent" for one in counts]
    with pytest.raises(ValueError, match="x must be one row; got 3"):
        rank(fitted, TEXTS[:3])


def test_words_name_features(fitted):
    words = fitted[0].get_feature_names_out().tolist()
    assert rank(fitted, TEXTS[0]).feature_names == words
    assert global_importance(fitted, TEXTS).feature_names == words
    assert pair(fitted, TEXTS[0], TEXTS[1]).feature_names == words
    assert query(fitted, TEXTS[:6], top_k=2).feature_names == words


def test_pairs_and_queries_of_texts_are_explained(fitted):
    pd = pytest.importorskip("pandas")
    inner = fitted[0].transform(TEXTS[:6]).toarray()
    scores = fitted[-1].project(inner)
    why = pair(fitted, TEXTS[0], [TEXTS[1]])
    assert why.difference == pytest.approx(scores[0] - scores[1])
    assert ((why.values_a == "present") == (inner[0] > 0)).all()
    for texts in (*(form(TEXTS[:6]) for form in FORMS), pd.Series(TEXTS[:6], index=list("uvwxyz"))):
        top = query(fitted, texts, top_k=2)
        assert top.scores == pytest.approx(np.sort(scores)[::-1])
        assert ((top.values == "present") == (inner[np.argsort(-scores, kind="stable")] > 0)).all()
    by_query = global_importance(fitted, TEXTS[:6], qid=[0, 0, 1, 1, 2, 2])
    assert by_query.per_query


def test_names_follow_columns_through_a_selection():
    X = np.random.default_rng(0).normal(size=(len(Y), 5))
    X[:, 3] += Y
    chosen = stars(StandardScaler(), SelectKBest(k=1)).fit(X, Y)
    why = rank(chosen, X[0])
    assert why.feature_names == ["column 3"]
    assert why.values == pytest.approx(X[0, [3]])


def test_importance_of_texts_needs_no_dense_matrix_of_all(fitted, monkeypatch):
    from rankcore.explain import _importance

    whole = global_importance(fitted, TEXTS).importances
    monkeypatch.setattr(_importance, "_VALUES", 7 * whole.size)
    np.testing.assert_allclose(global_importance(fitted, TEXTS).importances, whole, rtol=1e-12)


def test_shuffled_words_measure_importance(fitted):
    found = permutation_importance(fitted, TEXTS, Y, metric="ndcg@10", n_repeats=1, features=[0, 1])
    assert found.feature_names == fitted[0].get_feature_names_out()[:2].tolist()


# ------------------------------------------------------------------------ tables


def test_table_shows_the_values_of_the_input(mixed, frame):
    why = rank(mixed, frame.iloc[[3]])
    at = why.feature_names.index
    assert why.values[at("age")] == frame["age"][3]
    assert why.values[at("length")] == frame["length"][3]
    assert why.values[at("kind")] == frame["kind"][3]
    tokens = TfidfVectorizer().build_analyzer()(TEXTS[3])
    assert why.values[at(f"text: {tokens[0]}")] == "present"
    lacking = next(one for one in ("superb", "boring", "fine", "actor") if one not in tokens)
    assert why.values[at(f"text: {lacking}")] == "absent"
    assert why.label == mixed.predict(frame.iloc[[3]])[0]


def test_suggested_values_of_a_table_change_the_rank(mixed, frame):
    moved = 0
    for i in range(0, 60, 7):
        why = rank(mixed, frame.iloc[[i]], background=frame)
        for column in ("age", "length"):
            j = why.feature_names.index(column)
            for value, sign in ((why.up[j], 1), (why.down[j], -1)):
                if np.isfinite(value):
                    changed = frame.iloc[[i]].copy()
                    changed[column] = changed[column].astype(float)
                    changed.loc[changed.index[0], column] = value
                    assert sign * (int(mixed.predict(changed)[0]) - int(why.label)) > 0
                    moved += 1
    assert moved > 10


def test_rows_of_a_table_may_have_any_form(mixed, frame):
    whole = rank(mixed, frame.iloc[[3]])
    for row in (frame.iloc[3], frame[["kind", "length", "age", "text"]].iloc[[3]]):
        other = rank(mixed, row)
        np.testing.assert_array_equal(other.values, whole.values)
        assert list(map(str, other.up)) == list(map(str, whole.up))
    missing = frame.iloc[[3]].astype({"kind": object})
    missing.loc[missing.index[0], "kind"] = None
    found = rank(mixed, missing.iloc[0])
    assert found.values[found.feature_names.index("kind")] is None


def test_columns_by_number_and_a_remainder_are_named(frame):
    model = stars(
        ColumnTransformer(
            [
                ("words", CountVectorizer(), 0),
                ("n", make_pipeline(StandardScaler(), MaxAbsScaler()), [1]),
            ],
            remainder="passthrough",
        )
    )
    rows = frame[["text", "age", "length"]]
    for X, one in ((rows, rows.iloc[[2]]), (rows.to_numpy(), rows.to_numpy()[[2]])):
        why = rank(model.fit(X, Y), one)
        age, length = why.values[-2:]
        assert (age, length) == (rows["age"][2], rows["length"][2])
    # Columns that are selected by number from a frame whose columns are in another order.
    why = rank(model.fit(rows, Y), rows[["length", "text", "age"]].iloc[[2]])
    assert why.values[-2:].tolist() == [rows["age"][2], rows["length"][2]]


def test_passthrough_steps_change_nothing(frame):
    X = frame[["age", "length"]].to_numpy(dtype=float)
    model = make_pipeline("passthrough", FunctionTransformer(), rc.PRank(random_state=0)).fit(X, Y)
    assert rank(model, X[0]).values.tolist() == X[0].tolist()


# ------------------------------------------------------------------------ calibration


def test_probabilities_of_texts_are_explained():
    pd = pytest.importorskip("pandas")
    whole = None
    for form in (*FORMS[:1], *FORMS[2:], pd.Series):
        model = rc.CalibratedOrdinal(stars(TfidfVectorizer())).fit(form(TEXTS), Y)
        found = model.predict_proba(form(TEXTS[:20]))
        whole = found if whole is None else whole
        np.testing.assert_array_equal(found, whole)
    assert not hasattr(model, "n_features_in_")
    assert (model.predict(TEXTS) == Y).mean() > 0.5
    assert model.conformalize(TEXTS, Y).predict_set(TEXTS[:3]).shape == (3, 2)
    words = model.estimator_[0].get_feature_names_out().tolist()
    assert pair(model, TEXTS[0], TEXTS[1]).feature_names == words
    assert global_importance(model, TEXTS).feature_names == words
    search = GridSearchCV(
        rc.CalibratedOrdinal(stars(TfidfVectorizer())),
        {"estimator__tfidfvectorizer__min_df": [1, 2]},
        cv=2,
    )
    assert search.fit(TEXTS, Y).best_estimator_.predict(TEXTS[:1]).shape == (1,)


def test_probabilities_of_a_table_are_explained(mixed, frame):
    model = rc.CalibratedOrdinal(mixed).fit(frame, Y)
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    assert model.predict_proba(frame).shape == (len(Y), 4)
    why = pair(model, frame.iloc[[0]], frame.iloc[[1]])
    assert why.values_a[why.feature_names.index("age")] == frame["age"][0]
    scores = model.project(frame.iloc[:2])
    assert why.difference == pytest.approx(scores[0] - scores[1])


def test_texts_without_a_pipeline_are_rejected():
    with pytest.raises(ValueError, match="two dimensions"):
        rc.CalibratedOrdinal(rc.PRank()).fit(TEXTS, Y)
    with pytest.raises(ValueError, match="119"):
        rc.CalibratedOrdinal(stars(TfidfVectorizer())).fit(TEXTS, Y[:-1])


# ------------------------------------------------------------------------ plots


def test_plots_name_words(fitted, mixed):
    plotting = pytest.importorskip("rankcore.plotting")
    pyplot = pytest.importorskip("matplotlib.pyplot")

    def labels(ax):
        return [one.get_text() for one in ax.get_yticklabels()]

    words = fitted[0].get_feature_names_out()
    largest = words[np.argsort(-np.abs(fitted[-1].coef_.ravel()), kind="stable")[:15]].tolist()
    assert labels(plotting.plot_weights(fitted)) == largest
    named = [f"word {j}" for j in range(words.size)]
    assert set(labels(plotting.plot_weights(fitted, feature_names=named))) <= set(named)
    with pytest.raises(ValueError, match="one name for each of"):
        plotting.plot_weights(fitted, feature_names=named[1:])
    assert all("__" in one for one in labels(plotting.plot_weights(mixed)))
    boosted = make_pipeline(CountVectorizer(), rc.RankBoost(10)).fit(
        TEXTS, Y, rankboost__qid=np.zeros(len(Y))
    )
    words = set(boosted[0].get_feature_names_out())
    assert set(labels(plotting.plot_importances(boosted))) <= words
    one = labels(plotting.plot_importances(boosted))[0]
    (ax,) = plotting.plot_contributions(boosted, TEXTS, [one])
    assert ax.get_xlabel() == one
    pyplot.close("all")
