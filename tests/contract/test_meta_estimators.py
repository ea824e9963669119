"""Every learner inside every tool of scikit-learn that takes it: quality, not only no error."""

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import DecisionBoundaryDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    DetCurveDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
    get_scorer,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    LearningCurveDisplay,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    ValidationCurveDisplay,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import rankcore as rc
from declared import ONLINE, SAVED_RANKERS, name_of, walk, with_defaults

LEARNERS = with_defaults(ONLINE)
for one in LEARNERS:
    if hasattr(one, "n_estimators"):
        one.set_params(n_estimators=20)
every = walk(LEARNERS)
# For tools that call what the others call, and slowly: every third learner, of each family one.
some = walk(LEARNERS[::3])
# Two classes and four in turn.
by_classes = pytest.mark.parametrize(
    ("learner", "k"),
    [
        pytest.param(learner, 2 if i % 2 else 4, id=f"{type(learner).__name__}-{2 if i % 2 else 4}")
        for i, learner in enumerate(LEARNERS[::2])
    ],
)
# What a constant answer reaches on data() with as many rows in each class.
CUTS = {2: [0.0], 4: [-1.5, 0.0, 1.5]}


def data(k, n=320, seed=0):
    """Rows with a direction and noise; classes of nearly equal sizes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.digitize(X @ [1, 1, -1, 0] + 0.4 * rng.normal(size=n), CUTS[k])


@pytest.fixture
def pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield
    pyplot.close("all")


def halves(k):
    X, y = data(k)
    return X[:200], y[:200], X[200:], y[200:]


def accuracy(model, k):
    X, y, X_test, y_test = halves(k)
    predicted = model.fit(X, y).predict(X_test)
    assert predicted.dtype == y.dtype
    constant = np.bincount(y_test).max() / y_test.size
    return (predicted == y_test).mean(), constant


def assert_beats_the_constant(model, k, share=0.5):
    """Return the fraction of the way from the best constant to a perfect answer."""
    found, constant = accuracy(model, k)
    assert found > constant + share * (1 - constant) * (0.5 if k > 2 else 1), (found, constant)


WRAPPERS = {
    "calibrated-sigmoid": lambda one: CalibratedClassifierCV(one, cv=3),
    "calibrated-isotonic": lambda one: CalibratedClassifierCV(one, method="isotonic", cv=3),
    "one-vs-rest": OneVsRestClassifier,
    "one-vs-one": OneVsOneClassifier,
    "output-code": lambda one: OutputCodeClassifier(one, code_size=4, random_state=0),
    "bagging": lambda one: BaggingClassifier(one, n_estimators=5, random_state=0),
    "adaboost": lambda one: AdaBoostClassifier(one, n_estimators=3, random_state=0),
    "voting-hard": lambda one: VotingClassifier([("a", one), ("b", LogisticRegression())]),
    "stacking": lambda one: StackingClassifier([("a", one)], LogisticRegression(), cv=3),
    "pipeline": lambda one: make_pipeline(StandardScaler(), one),
    "grid": lambda one: GridSearchCV(one, {"max_iter": [2, 10]}, cv=3),
    "halving": lambda one: HalvingGridSearchCV(
        one, {"max_iter": [2, 10]}, cv=3, random_state=0, min_resources=80
    ),
    "random": lambda one: RandomizedSearchCV(
        one, {"max_iter": [2, 5, 10]}, n_iter=2, cv=3, random_state=0
    ),
    "rfe-free": lambda one: make_pipeline(
        SequentialFeatureSelector(one, n_features_to_select=3, cv=3), clone(one)
    ),
    "self-training": lambda one: SelfTrainingClassifier(
        CalibratedClassifierCV(one, cv=3, ensemble=False)
    ),
}


def pairs():
    """Each wrapper with the learners in turn, one half of them with two classes."""
    for i, wrapper in enumerate(WRAPPERS):
        learner, k = LEARNERS[i % len(LEARNERS)], 2 if i % 2 else 4
        yield pytest.param(learner, wrapper, k, id=f"{type(learner).__name__}-{wrapper}-{k}")


@pytest.mark.parametrize(("learner", "wrapper", "k"), [*pairs()])
@pytest.mark.filterwarnings("ignore::UserWarning:sklearn")
@pytest.mark.filterwarnings("ignore:the mean weight is below")  # AdaBoost's sum to 1
def test_wrapped_learners_beat_a_constant_prediction(learner, wrapper, k):
    # A middle rank against the rest lies on no side of one direction.
    split_up = k > 2 and wrapper in ("one-vs-rest", "output-code")
    share = 0.05 if split_up else 0.4
    assert_beats_the_constant(WRAPPERS[wrapper](clone(learner)), k, share)


@some
def test_calibrated_classifiers_give_probabilities(learner):
    X, y, X_test, y_test = halves(4)
    for method in ["sigmoid", "isotonic"]:
        model = CalibratedClassifierCV(clone(learner), method=method, cv=3).fit(X, y)
        found = model.predict_proba(X_test)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found.sum(axis=1), 1)
        loss = -np.log(np.maximum(found[np.arange(len(y_test)), y_test], 1e-6)).mean()
        shares = np.bincount(y, minlength=4) / len(y)
        assert loss < -np.log(shares[y_test]).mean()  # better than the shares of the classes


SCORERS = {
    2: ["accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision", "matthews_corrcoef"],
    4: ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "neg_mean_absolute_error"],
}


@by_classes
def test_scorers_of_scikit_learn_accept_ordinal_learners(learner, k):
    X, y = data(k)
    constant = sklearn.dummy.DummyClassifier(strategy="most_frequent")
    for name in SCORERS[k]:
        found = cross_val_score(clone(learner), X, y, cv=3, scoring=name, error_score="raise")
        assert np.isfinite(found).all()
        assert found.mean() > cross_val_score(constant, X, y, cv=3, scoring=name).mean(), name
    assert np.isfinite(get_scorer("accuracy")(clone(learner).fit(X, y), X, y))


@some
def test_every_kind_of_cross_validation_runs(learner):
    X, y = data(4)
    folds = StratifiedKFold(3)
    found = cross_validate(
        clone(learner), X, y, cv=folds, return_train_score=True, error_score="raise"
    )
    constant = -np.abs(y - np.median(y)).mean()
    assert (found["test_score"] > constant).all()
    assert (found["train_score"] > constant).all()
    assert (cross_val_predict(clone(learner), X, y, cv=folds) == y).mean() > 0.5
    decisions = cross_val_predict(clone(learner), X, y, cv=folds, method="decision_function")
    assert decisions.shape == (len(y), 4)
    assert (decisions.argmax(axis=1) == y).mean() > 0.5
    _, _, scores = learning_curve(
        clone(learner), X, y, cv=3, train_sizes=[0.3, 1.0], shuffle=True, random_state=0,
        error_score="raise",
    )  # fmt: skip
    assert scores.mean(axis=1)[-1] > constant
    _, scores = validation_curve(
        clone(learner), X, y, param_name="max_iter", param_range=[1, 10], cv=3
    )
    assert np.isfinite(scores).all()
    score, _, p_value = permutation_test_score(
        clone(learner), X, y, cv=3, n_permutations=5, random_state=0
    )
    assert score > constant
    assert p_value < 0.2


@every
def test_searches_accept_a_class_that_a_fold_lacks(learner):
    X, y = data(4)
    order = np.argsort(y, kind="stable")  # folds in this order lack whole classes
    search = GridSearchCV(clone(learner), {"max_iter": [2, 5]}, cv=4, error_score="raise")
    folds = sklearn.model_selection.KFold(4)
    search.set_params(cv=folds).fit(X[order], y[order])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every
def test_tuned_and_fixed_thresholds_predict(learner):
    X, y, X_test, y_test = halves(2)
    tuned = TunedThresholdClassifierCV(
        clone(learner), scoring="balanced_accuracy", thresholds=20, cv=3
    )
    assert (tuned.fit(X, y).predict(X_test) == y_test).mean() > 0.75
    fixed = FixedThresholdClassifier(
        clone(learner), threshold=0.0, response_method="decision_function"
    ).fit(X, y)
    plain = clone(learner).fit(X, y)
    decisions = plain.decision_function(X_test)
    assert (fixed.predict(X_test) == plain.predict(X_test))[decisions != 0].all()


@some
@pytest.mark.usefixtures("pictures")
def test_displays_of_scikit_learn_are_drawn(learner):
    X, y = data(2)
    model = clone(learner).fit(X, y)
    assert RocCurveDisplay.from_estimator(model, X, y).roc_auc > 0.85
    assert PrecisionRecallDisplay.from_estimator(model, X, y).average_precision > 0.85
    DetCurveDisplay.from_estimator(model, X, y)
    ConfusionMatrixDisplay.from_estimator(model, X, y)
    calibrated = CalibratedClassifierCV(clone(learner), cv=3).fit(X, y)
    CalibrationDisplay.from_estimator(calibrated, X, y)
    LearningCurveDisplay.from_estimator(clone(learner), X, y, cv=3, train_sizes=[0.5, 1.0])
    ValidationCurveDisplay.from_estimator(
        clone(learner), X, y, param_name="max_iter", param_range=[1, 3], cv=3
    )
    for k in (2, 4):
        X, y = data(k)
        model = clone(learner).fit(X[:, :2], y)
        DecisionBoundaryDisplay.from_estimator(
            model, X[:, :2], response_method="predict", grid_resolution=8
        )


@by_classes
def test_inspection_tools_accept_ordinal_learners(learner, k):
    X, y = data(k)
    model = clone(learner).fit(X, y)
    importances = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importances[:3].min() > importances[3]  # the last feature says nothing
    found = partial_dependence(
        model, X, [0], response_method="decision_function", grid_resolution=5
    )["average"]
    assert np.isfinite(found).all()
    assert found.shape == ((1 if k == 2 else 4), 5)
    assert found[-1][-1] > found[-1][0]  # the highest rank gains with the feature


@pytest.mark.parametrize(
    "learner",
    [one for one in LEARNERS if hasattr(type(one), "coef_")],
    ids=name_of,
)
def test_features_are_selected_by_weights(learner):
    X, y = data(4)
    chosen = SelectFromModel(clone(learner), max_features=3, threshold=-np.inf).fit(X, y)
    assert chosen.get_support().tolist() == [True, True, True, False]
    if clone(learner).fit(X, y).coef_.ndim == 2:
        ranking = RFE(clone(learner), n_features_to_select=3).fit(X, y).ranking_
        assert ranking.tolist() == [1, 1, 1, 2]


@every
def test_multi_output_wrappers_fit_each_output(learner):
    X, y = data(2)
    other = np.digitize(X[:, 3], [0.0])
    Y = np.column_stack([y, other])
    for wrapper in (MultiOutputClassifier(clone(learner)), ClassifierChain(clone(learner), cv=3)):
        predicted = wrapper.fit(X, Y).predict(X)
        assert (predicted == Y).mean(axis=0).min() > 0.75


RANKERS = [
    *(one for one in with_defaults(SAVED_RANKERS)),
    rc.RankBoost(20, max_leaf_nodes=4, learning_rate=0.3),
]
rankers = pytest.mark.parametrize("ranker", RANKERS, ids=name_of)


def queries(n_queries=36, seed=0):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), 12)
    X = rng.normal(size=(qid.size, 4))
    # Each query has a level of its own, which says nothing about the order in it.
    y = np.digitize(X @ [1, 1, -1, 0] + 0.3 * rng.normal(size=qid.size), [-1, 0.5, 2])
    return X, y, qid


def random_order(y, qid):
    return rc.metrics.ndcg_score(y, np.random.default_rng(5).random(y.size), qid=qid, k=10)


@pytest.mark.parametrize(
    ("ranker", "piped"),
    [
        pytest.param(ranker, bool(i % 2), id=f"{type(ranker).__name__}{'-piped' * (i % 2)}")
        for i, ranker in enumerate([*RANKERS, rc.RankSVM(random_state=0)])
    ],
)
def test_searches_over_rankers_use_queries(ranker, piped):
    X, y, qid = queries()
    learner = make_pipeline(StandardScaler(), clone(ranker)) if piped else clone(ranker)
    name = "balance"
    grid = {f"{type(ranker).__name__.lower()}__{name}" if piped else name: ["query", None]}
    folds = rc.model_selection.QueryKFold(3)
    chance = random_order(y, qid)
    # Before 1.7 scikit-learn passed no metadata on to the default score of a pipeline.
    scoring = rc.metrics.make_scorer("ndcg@10") if piped else None
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        for search in [
            GridSearchCV(learner, grid, cv=folds, scoring=scoring, error_score="raise"),
            HalvingGridSearchCV(
                learner, grid, cv=folds, scoring=scoring, error_score="raise", min_resources=150
            ),
        ]:
            search.fit(X, y, qid=qid)
            assert search.best_score_ > chance + 0.2 * (1 - chance)
        found = cross_validate(
            learner, X, y, cv=folds, params={"qid": qid}, scoring=scoring, error_score="raise"
        )["test_score"]
        assert found.min() > chance + 0.2 * (1 - chance)
        _, _, scores = learning_curve(
            learner,
            X,
            y,
            cv=folds,
            params={"qid": qid},
            train_sizes=[1.0],
            scoring=scoring,
            error_score="raise",
        )
        assert scores.mean() > chance + 0.2 * (1 - chance)


@rankers
def test_frames_carry_their_queries_through_searches(ranker):
    pd = pytest.importorskip("pandas")
    X, y, qid = queries()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(ranker).fit(frame, y)
        plain = clone(ranker).fit(frame[list("abcd")], y, qid=qid)
        np.testing.assert_array_equal(model.predict(frame), plain.predict(frame[list("abcd")]))
        assert model.feature_names_in_.tolist() == list("abcd")
        assert model.score(frame, y) == plain.score(frame[list("abcd")], y, qid=qid)
        np.testing.assert_array_equal(
            model.predict_rank(frame), plain.predict_rank(frame[list("abcd")], qid=qid)
        )
        search = GridSearchCV(
            clone(ranker), {"balance": ["query", None]}, error_score="raise",
            cv=rc.model_selection.QueryKFold(3),
        ).fit(frame, y)  # fmt: skip
        assert search.best_score_ > random_order(y, qid)
        importances = permutation_importance(model, frame, y, n_repeats=2, random_state=0)
    assert importances.importances_mean[:3].min() > importances.importances_mean[3]


@rankers
def test_rankers_are_inspected_as_regressors(ranker):
    X, y, qid = queries()
    model = clone(ranker).fit(X, y, qid=qid)
    found = partial_dependence(model, X, [0], grid_resolution=5)["average"][0]
    assert found[-1] > found[0]
    assert sklearn.base.is_regressor(model)
    importances = permutation_importance(
        model, X, y, n_repeats=2, random_state=0,
        scoring=lambda one, X, y: one.score(X, y, qid=qid),
    ).importances_mean  # fmt: skip
    assert importances[:3].min() > importances[3]
