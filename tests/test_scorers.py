"""Measures as scorers of scikit-learn's searches, with queries routed to them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from rankcore.metrics import accuracy_within, evaluate, make_scorer, ndcg_score, rank_loss

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
QID = RNG.integers(0, 24, 240)
Y = np.digitize(X @ [1, 0.5, 0, 0] + 0.4 * RNG.normal(size=240), [-1, 0, 1])


class OneColumn(BaseEstimator):
    """Ranks by a column, and notes the queries it was fitted with."""

    def __init__(self, column=0):
        self.column = column

    def fit(self, X, y, qid=None):
        self.qid_ = np.asarray(qid)
        assert self.qid_.shape == (X.shape[0],)
        return self

    def predict(self, X):
        return X[:, self.column]


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_grid_searches_pass_queries_to_scorers():
    search = GridSearchCV(
        OneColumn().set_fit_request(qid=True),
        {"column": [3, 0, 1]},
        scoring=make_scorer("ndcg@5"),
        cv=GroupKFold(3),
    ).fit(X, Y, qid=QID, groups=QID)
    assert search.best_params_ == {"column": 0}
    folds = list(GroupKFold(3).split(X, Y, QID))
    for column, mean in zip([3, 0, 1], search.cv_results_["mean_test_score"], strict=True):
        expected = [ndcg_score(Y[test], X[test, column], qid=QID[test], k=5) for _, test in folds]
        assert mean == np.mean(expected)
    # The search itself scores with the queries it is given.
    assert search.score(X, Y, qid=QID) == ndcg_score(Y, X[:, 0], qid=QID, k=5)


@pytest.mark.usefixtures("routing")
def test_an_ordinal_learner_is_scored_by_several_measures():
    learner = make_pipeline(StandardScaler(), rc.PRank(max_iter=3, random_state=0))
    scoring = {
        "ndcg": make_scorer("ndcg@5", convention="lightgbm"),
        "misranking": make_scorer("misranking"),
        "loss": make_scorer("rank_loss"),
        "near": make_scorer("accuracy_within"),
    }
    params = {"qid": QID, "groups": QID}
    found = cross_validate(learner, X, Y, cv=GroupKFold(3), scoring=scoring, params=params)
    for fold, (train, test) in enumerate(GroupKFold(3).split(X, Y, QID)):
        model = clone(learner).fit(X[train], Y[train])
        scaled, predicted = model[:-1].transform(X[test]), model.predict(X[test])
        scores = model[-1].project(scaled)
        expected = evaluate(Y[test], scores, qid=QID[test], metrics=["ndcg@5", "misranking"])
        assert found["test_misranking"][fold] == -expected["misranking"]
        assert found["test_loss"][fold] == -rank_loss(Y[test], predicted)
        assert found["test_near"][fold] == accuracy_within(Y[test], predicted)
        expected = ndcg_score(Y[test], scores, qid=QID[test], k=5, convention="lightgbm")
        assert found["test_ndcg"][fold] == expected


def test_missing_queries_are_requested():
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        make_scorer("ndcg@5")(OneColumn(), X, Y)
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        cross_val_score(rc.PRank(), X, Y, scoring=make_scorer("map"), error_score="raise", cv=3)


def test_learners_with_several_scores_per_row_rank_by_predictions():
    model = rc.MulticlassPerceptron().fit(X, Y)
    expected = ndcg_score(Y, model.predict(X), qid=QID)
    assert make_scorer("ndcg")(model, X, Y, qid=QID) == expected


def test_scorers_are_copied_and_pickled():
    scorer = make_scorer("P(rel=2)@3", convention="trec_eval")
    for copied in (copy.deepcopy(scorer), pickle.loads(pickle.dumps(scorer))):
        assert copied(OneColumn(), X, Y, qid=QID) == scorer(OneColumn(), X, Y, qid=QID)
        assert copied == scorer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "ndgc@5"}, "did you mean 'ndcg@5'"),
        ({"metric": "P.5,10"}, "must name one measure"),
        ({"metric": "ndcg", "convention": "trek"}, "trec"),
        ({"metric": "rank_loss", "convention": "trec"}, "ranking measures only; got rank_loss"),
        ({"metric": "neg_quadratic_weighted_kappa"}, "is not a loss"),
        ({"metric": "neg_ndcg@5"}, "no measure 'neg_ndcg@5'"),
    ],
)
def test_bad_names_are_rejected(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_scorer(**arguments)


def test_negated_names_of_losses_are_scorers():
    model = rc.PRank().fit(X, Y)
    expected = -rank_loss(Y, model.predict(X))
    assert make_scorer("neg_rank_loss")(model, X, Y) == expected
    assert make_scorer("rank_loss")(model, X, Y) == expected
    by_query = make_scorer("neg_misranking")(model, X, Y, qid=QID)
    assert by_query == make_scorer("misranking")(model, X, Y, qid=QID) < 0
    with pytest.raises(TypeError, match="the name of a measure"):
        make_scorer(["map", "mrr"])


@pytest.mark.usefixtures("routing")
def test_rankers_that_vote_by_query_are_given_the_queries():
    ranker = rc.PairwisePerceptron(
        variant="committee", combine="rank", committee_size=5, max_iter=3, random_state=0
    ).set_fit_request(qid=True)
    piped = make_pipeline(StandardScaler(), clone(ranker).set_predict_request(qid=True))
    scorer = make_scorer("ndcg@5")
    options = {"cv": GroupKFold(3), "params": {"qid": QID, "groups": QID}}
    plain = cross_val_score(ranker, X, Y, scoring=scorer, **options)
    scaled = cross_val_score(piped, X, Y, scoring=scorer, **options)
    votes_matter = False
    for fold, (train, test) in enumerate(GroupKFold(3).split(X, Y, QID)):
        model = clone(ranker).fit(X[train], Y[train], qid=QID[train])
        by_query = model.predict(X[test], qid=QID[test])
        assert plain[fold] == ndcg_score(Y[test], by_query, qid=QID[test], k=5)
        with pytest.warns(UserWarning, match="qid"):
            of_all = model.predict(X[test])
        votes_matter |= plain[fold] != ndcg_score(Y[test], of_all, qid=QID[test], k=5)
        scaler = StandardScaler().fit(X[train])
        model.fit(scaler.transform(X[train]), Y[train], qid=QID[train])
        by_query = model.predict(scaler.transform(X[test]), qid=QID[test])
        assert scaled[fold] == ndcg_score(Y[test], by_query, qid=QID[test], k=5)
    assert votes_matter  # without the queries other ranks are voted on


def test_message_without_routing_does_not_depend_on_weights():
    scoring = {"a": make_scorer("map"), "b": make_scorer("ndcg")}
    search = GridSearchCV(
        Lasso(), {"alpha": [1]}, scoring=scoring, refit="a", cv=2, error_score="raise"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some releases say that scorers ignore the weights
        with pytest.raises(ValueError, match="enable_metadata_routing"):
            search.fit(X, Y, sample_weight=np.ones(Y.size))
