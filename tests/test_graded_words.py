"""Grades of documents in words: where their order comes from, and what keeps it."""

import json
import warnings
from inspect import signature

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import rankcore as rc
from declared import QID, RANKERS, X, first_of_each, learns_from, walk
from model_files import rewrite, set_in

pandas = pytest.importorskip("pandas")

EVERY = first_of_each(RANKERS)
FIVE = ["bad", "fair", "good", "excellent", "perfect"]
GRADES = np.clip(np.rint(X @ [1.0, 0.5, -0.5, 0.0, 0.2] + 2), 0, 4).astype(int)


def words_for(ranker):
    """Return the words of a ranker's grades, these grades, and both as labels."""
    two = learns_from(ranker) == "binary queries"
    words = ["other", "hit"] if two else FIVE  # not in alphabetical order
    grades = (GRADES > 2).astype(int) if two else GRADES
    return words, grades, np.array(words)[grades]


def ranker_of(learner, **params):
    """Return a copy of a learner with other parameters."""
    seed = {"random_state": 0} if "random_state" in learner.get_params() else {}
    return clone(learner).set_params(**seed, **params)


def held_out(ranker, y):
    """Return rows held out of a fit, if the ranker takes some."""
    if "eval_set" not in signature(ranker.fit).parameters:
        return {}
    return {"eval_set": (X, y), "eval_qid": QID}


def ordered(labels, words):
    """Return labels as an ordered categorical."""
    return pandas.Series(pandas.Categorical(labels, categories=words, ordered=True))


def equal_models(one, other):
    """Return whether two rankers score alike, with the same history."""
    return np.array_equal(one.predict(X, qid=QID), other.predict(X, qid=QID)) and repr(
        one.history_
    ) == repr(other.history_)


@walk(EVERY)
def test_words_have_grades_by_their_positions(learner):
    words, grades, labels = words_for(learner)
    expected = ranker_of(learner).fit(X, grades, qid=QID, **held_out(learner, grades))
    for found in (
        ranker_of(learner, classes=words).fit(X, labels, qid=QID, **held_out(learner, labels)),
        ranker_of(learner).fit(X, ordered(labels, words), qid=QID, **held_out(learner, labels)),
        clone(ranker_of(learner, classes=words)).fit(
            X, labels.tolist(), qid=QID, **held_out(learner, labels.tolist())
        ),
    ):
        assert equal_models(found, expected)
        assert found.grades_.tolist() == words
        assert found.score(X, labels, qid=QID) == expected.score(X, grades, qid=QID)
        assert found.score(X, ordered(labels, words), qid=QID) == found.score(X, labels, qid=QID)
    assert not hasattr(expected, "grades_")


@walk(EVERY)
def test_files_and_copies_keep_the_words(learner, tmp_path):
    words, _, labels = words_for(learner)
    assert ranker_of(learner, classes=words).get_params()["classes"] == words
    for classes, y in ((words, labels), (None, ordered(labels, words))):
        model = ranker_of(learner, classes=classes).fit(X, y, qid=QID)
        saved = getattr(model, "best_estimator_", model)
        rc.save(saved, tmp_path / "model")
        found = rc.load(tmp_path / "model")
        assert found.grades_.tolist() == words
        assert found.classes == classes
        assert found.score(X, labels, qid=QID) == model.score(X, labels, qid=QID)
        expected = rc.Predictor(tmp_path / "model")
        assert np.array_equal(expected.predict(X), found.predict(X))


@walk(EVERY)
def test_words_without_an_order_name_the_parameter(learner):
    words, _, labels = words_for(learner)
    listed = ", ".join(map(repr, sorted(words)))
    name = type(learner).__name__
    with pytest.raises(ValueError, match=rf"pass classes=.*{name}\(classes=\[{listed}\]\)"):
        ranker_of(learner).fit(X, labels, qid=QID)


@walk(EVERY)
def test_unknown_words_are_named_with_the_known_ones(learner):
    words, _, labels = words_for(learner)
    odd = labels.astype(object)
    odd[7] = "awful"
    ranker = ranker_of(learner, classes=words)
    with pytest.raises(ValueError, match=rf"'awful' at row 7.*{words[0]}.*{words[-1]}"):
        ranker.fit(X, odd, qid=QID)
    if held_out(learner, odd):
        with pytest.raises(ValueError, match="'awful' at row 7"):
            ranker.fit(X, labels, qid=QID, **held_out(learner, odd))
    ranker.fit(X, labels, qid=QID)
    with pytest.raises(ValueError, match="'awful' at row 7"):
        ranker.score(X, odd, qid=QID)


@walk(EVERY)
def test_numbers_are_rejected_in_place_of_words(learner):
    words, grades, labels = words_for(learner)
    with pytest.raises(ValueError, match="are words: pass y as these words"):
        ranker_of(learner, classes=words).fit(X, grades, qid=QID)
    with pytest.raises(ValueError, match="are words: pass y as these words"):
        ranker_of(learner, classes=words).fit(X, labels, qid=QID).score(X, grades, qid=QID)
    with pytest.raises(ValueError, match="numbers are grades themselves, so leave it out"):
        ranker_of(learner, classes=[0, 1, 2]).fit(X, grades, qid=QID)
    with pytest.raises(ValueError, match="contradict the order of y's categories"):
        ranker_of(learner, classes=words[::-1]).fit(X, ordered(labels, words), qid=QID)


@walk([one for one in EVERY if held_out(one, GRADES)])
def test_held_out_words_with_numeric_labels_are_rejected(learner):
    words, grades, labels = words_for(learner)
    given = held_out(learner, ordered(labels, words[::-1]))  # an order of its own
    with pytest.raises(ValueError, match="labels of the eval_set must be numbers, as y's are"):
        ranker_of(learner).fit(X, grades, qid=QID, **given)


@walk(EVERY)
def test_unordered_numeric_categories_are_rejected(learner):
    _, grades, _ = words_for(learner)
    numbers = np.unique(grades).tolist()
    turned = ordered(grades, numbers[::-1])
    with pytest.raises(ValueError, match="the categories of y must ascend if they are numbers"):
        ranker_of(learner).fit(X, turned, qid=QID)
    expected = ranker_of(learner).fit(X, grades, qid=QID)
    found = ranker_of(learner).fit(X, ordered(grades, [*numbers, 9]), qid=QID)
    assert equal_models(found, expected)
    with pytest.raises(ValueError, match="the categories of y must ascend if they are numbers"):
        found.score(X, turned, qid=QID)
    with pytest.raises(ValueError, match="the categories of y must ascend if they are numbers"):
        rc.metrics.evaluate(turned, X[:, 0], qid=QID)


WARM = [one for one in EVERY if "warm_start" in one.get_params()]


@walk(WARM)
def test_continued_fits_keep_the_words(learner):
    words, grades, labels = words_for(learner)
    found, expected = (ranker_of(learner, warm_start=True) for _ in range(2))
    found.fit(X, ordered(labels, words), qid=QID)
    expected.fit(X, grades, qid=QID)
    if "n_estimators" in found.get_params():
        for one in (found, expected):
            one.set_params(n_estimators=one.n_estimators_ + 2)
    with pytest.raises(ValueError, match="are words"):
        found.fit(X, grades, qid=QID)
    with pytest.raises(ValueError, match="continues a model whose labels are numbers"):
        clone(expected).fit(X, grades, qid=QID).fit(X, ordered(labels, words), qid=QID)
    found.fit(X, labels, qid=QID)
    expected.fit(X, grades, qid=QID)
    assert equal_models(found, expected)
    assert found.grades_.tolist() == words


@walk([one for one in EVERY if hasattr(one, "partial_fit")])
def test_streams_keep_the_words_of_the_first_call(learner):
    words, grades, labels = words_for(learner)
    found, expected = ranker_of(learner), ranker_of(learner)
    found.partial_fit(X[:50], ordered(labels[:50], words), qid=QID[:50])
    found.partial_fit(X[50:], labels[50:], qid=QID[50:])
    expected.partial_fit(X[:50], grades[:50], qid=QID[:50])
    expected.partial_fit(X[50:], grades[50:], qid=QID[50:])
    assert equal_models(found, expected)
    assert found.grades_.tolist() == words
    with pytest.raises(ValueError, match="are words"):
        found.partial_fit(X[:50], grades[:50], qid=QID[:50])
    with pytest.raises(ValueError, match="continues a model whose labels are numbers"):
        expected.partial_fit(X[:50], ordered(labels[:50], words), qid=QID[:50])


def test_a_fit_to_numbers_forgets_the_words():
    ranker = rc.RankSVM().fit(X, ordered(np.array(FIVE)[GRADES], FIVE), qid=QID)
    assert not hasattr(ranker.fit(X, GRADES, qid=QID), "grades_")


def test_listed_pairs_need_no_labels():
    pairs = np.array([[0, 1], [2, 3], [10, 11]])
    model = rc.RankSVM(classes=FIVE).fit(X, pairs=pairs, qid=QID)
    labels = np.array(FIVE)[GRADES]
    expected = rc.RankSVM().fit(X, pairs=pairs, qid=QID).score(X, GRADES, qid=QID)
    assert model.score(X, labels, qid=QID) == expected


def test_a_path_takes_words():
    labels = np.array(FIVE)[GRADES]
    given = {"qid": QID, "Cs": [0.1, 1.0], "eval_qid": QID}
    found = rc.ranksvm_path(X, labels, eval_set=(X, labels), classes=FIVE, **given)
    expected = rc.ranksvm_path(X, GRADES, eval_set=(X, GRADES), **given)
    assert np.array_equal(found.values, expected.values)
    for one, other in zip(found.estimators, expected.estimators, strict=True):
        assert one.score(X, labels, qid=QID) == other.score(X, GRADES, qid=QID)


def test_frames_of_other_libraries_declare_an_order():
    polars = pytest.importorskip("polars")
    labels = np.array(FIVE)[GRADES]
    expected = rc.RankSVM().fit(X, GRADES, qid=QID).coef_
    y = polars.Series(labels.tolist(), dtype=polars.Enum(FIVE))
    assert np.array_equal(rc.RankSVM().fit(X, y, qid=QID).coef_, expected)


# ------------------------------------------------------------------------------ measures


SCORES = np.random.default_rng(3).normal(size=GRADES.size)
LABELS = np.array(FIVE)[GRADES]
METRICS = ["ndcg@10", "map", "auc", "misranking", "ERR@5", "P(rel=2)@5"]


def test_measures_accept_words():
    expected = rc.metrics.evaluate(GRADES, SCORES, qid=QID, metrics=METRICS)
    for y, classes in ((LABELS, FIVE), (ordered(LABELS, FIVE), None), (LABELS.tolist(), FIVE)):
        found = rc.metrics.evaluate(y, SCORES, qid=QID, metrics=METRICS, labels=classes)
        assert dict(found) == dict(expected)
    categories = ordered(LABELS, FIVE)
    for function, more in (
        (rc.metrics.ndcg_score, {}),
        (rc.metrics.average_precision, {}),
        (rc.metrics.auc_score, {"rel": 3}),
        (rc.metrics.pairwise_misranking, {}),
        (rc.metrics.margin_loss, {"rho": 1.0}),
    ):
        found = function(categories, SCORES, qid=QID, **more)
        assert found == function(GRADES, SCORES, qid=QID, **more)


def evaluated(y, **more):
    return rc.metrics.evaluate(y, SCORES, qid=QID, **more)


def compared(y, **more):
    return rc.metrics.compare({"a": SCORES, "b": -SCORES}, y, qid=QID, **more)


@pytest.mark.parametrize("measured", [evaluated, compared])
def test_errors_of_words_name_the_parameter_that_takes_their_order(measured):
    with pytest.raises(ValueError, match=r"pass labels=.*\(labels=\["):
        measured(LABELS)
    with pytest.raises(ValueError, match=r"not among labels=\['bad', 'good'\]"):
        measured(LABELS, labels=["bad", "good"])
    with pytest.raises(ValueError, match=r"and labels=\['bad', 'good'\] are words"):
        measured(GRADES, labels=["bad", "good"])
    with pytest.raises(ValueError, match=r"^labels=.* contradict the order of y's categories"):
        measured(ordered(LABELS, FIVE), labels=FIVE[::-1])
    with pytest.raises(ValueError, match="^labels must be words"):
        measured(LABELS, labels=[1, 2])


def test_measures_without_labels_ask_for_an_ordered_categorical():
    with pytest.raises(ValueError, match="pass an ordered pandas categorical"):
        rc.metrics.ndcg_score(LABELS, SCORES, qid=QID)


def test_comparisons_take_words():
    systems = {"a": SCORES, "b": SCORES[::-1]}
    expected = rc.metrics.compare(systems, GRADES, qid=QID)
    found = rc.metrics.compare(systems, LABELS, qid=QID, labels=FIVE)
    assert list(found) == list(expected)
    assert found.query_frame().equals(expected.query_frame())


@pytest.mark.parametrize("by_dtype", [True, False])
def test_cross_validation_takes_words(by_dtype):
    learner = rc.RankBoost(5, classes=None if by_dtype else FIVE)
    y = ordered(LABELS, FIVE) if by_dtype else LABELS
    found = rc.model_selection.cross_validate_queries(learner, X, y, QID, cv=3)
    expected = rc.model_selection.cross_validate_queries(rc.RankBoost(5), X, GRADES, QID, cv=3)
    assert np.array_equal(found.values, expected.values)
    if by_dtype:
        plain = rc.model_selection.cross_validate_queries(learner, X, y.array, QID, cv=3)
        assert np.array_equal(plain.values, expected.values)
        folds = rc.model_selection.QueryKFold(3, stratify=True)
        for one, other in zip(
            folds.split(X, y, qid=QID), folds.split(X, GRADES, qid=QID), strict=True
        ):
            assert np.array_equal(one[1], other[1])


def test_rankers_of_other_packages_get_grades():
    class ByGroup(BaseEstimator):
        """A ranker that takes numbers, and the sizes of queries, as LightGBM's does."""

        def fit(self, X, y, group=None):
            """Keep the direction of the labels."""
            self.coef_ = X.T @ (np.asarray(y, dtype=float) - np.mean(y))
            return self

        def predict(self, X):
            """Project rows."""
            return X @ self.coef_

    y = ordered(LABELS, FIVE)
    found = rc.model_selection.cross_validate_queries(ByGroup(), X, y, QID, cv=3)
    expected = rc.model_selection.cross_validate_queries(ByGroup(), X, GRADES, QID, cv=3)
    assert np.array_equal(found.values, expected.values)


def test_searches_take_words():
    import sklearn
    from sklearn.model_selection import GridSearchCV

    with sklearn.config_context(enable_metadata_routing=True):
        found, expected = (
            GridSearchCV(
                rc.RankSVM(classes=classes),
                {"C": [0.01, 1.0]},
                scoring=rc.metrics.make_scorer("ndcg@5"),
                cv=rc.model_selection.QueryKFold(3),
            ).fit(X, y, qid=QID)
            for classes, y in ((FIVE, LABELS), (None, GRADES))
        )
    for name in ("mean_test_score", "std_test_score"):
        assert np.array_equal(found.cv_results_[name], expected.cv_results_[name])


def test_ordinal_learners_are_measured_by_the_order_of_their_words():
    model = rc.PRank(classes=FIVE, random_state=0).fit(X, LABELS)
    numbers = rc.PRank(random_state=0).fit(X, GRADES)
    scorer = rc.metrics.make_scorer("ndcg@5")
    assert scorer(model, X, LABELS, qid=QID) == scorer(numbers, X, GRADES, qid=QID)


def test_explanations_take_words():
    model = rc.RankBoost(5, classes=FIVE).fit(X, LABELS, qid=QID)
    numbers = rc.RankBoost(5).fit(X, GRADES, qid=QID)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = rc.explain.permutation_importance(model, X, LABELS, qid=QID, n_repeats=1)
        of_dtype = rc.explain.permutation_importance(
            numbers, X, ordered(LABELS, FIVE), qid=QID, n_repeats=1
        )
    expected = rc.explain.permutation_importance(numbers, X, GRADES, qid=QID, n_repeats=1)
    assert np.array_equal(found.changes, expected.changes)
    assert np.array_equal(of_dtype.changes, expected.changes)
    shown = rc.explain.query(model, X, QID, which=QID[0], y=LABELS)
    assert shown.labels.tolist() == LABELS[shown.rows].tolist()


# ------------------------------------------------------------------------------ files


def test_damaged_words_are_rejected(tmp_path):
    path = tmp_path / "model"
    rc.save(rc.RankSVM(classes=FIVE).fit(X, LABELS, qid=QID), path)
    rewrite(path, set_in("grades", value=json.dumps(["bad", "bad"])))
    with pytest.raises(ValueError, match="each label once"):
        rc.load(path)


def test_rows_on_disk_have_grades(tmp_path):
    path = tmp_path / "rows.txt"
    rc.datasets.dump_letor(X, GRADES, path, qid=QID)
    rows = rc.datasets.open_rows(path)
    with pytest.raises(ValueError, match="labels of rows on disk are numbers"):
        rc.PairwisePerceptron(classes=FIVE).fit(rows)


def test_streams_are_measured_by_the_order_of_words():
    parts = [slice(start, start + 30) for start in (0, 30, 60)]
    found, expected = (
        rc.online.evaluate(
            rc.PairwisePerceptron(classes=classes, random_state=0),
            [rc.online.Chunk(X[part], y[part], QID[part]) for part in parts],
            window=3,
        )
        for classes, y in ((FIVE, LABELS), (None, GRADES))
    )
    assert [one.latest for one in found.windows[1:]] == [one.latest for one in expected.windows[1:]]
    assert len(found.windows) == 3
