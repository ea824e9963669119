"""Preferences that are learned, and the ranker they make."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import rankcore as rc
from rankcore.datasets import make_letor
from rankcore.metrics import ndcg_score
from rankcore.preference import PairwisePreference, quicksort_rank, sort_by_degree

X, y, qid = make_letor(30, 12, random_state=0)
X = StandardScaler().fit_transform(X).astype(float)
X_TEST, Y_TEST, QID_TEST = X[qid > 20], y[qid > 20], qid[qid > 20]
X, y, qid = X[qid <= 20], y[qid <= 20], qid[qid <= 20]
CHANCE = np.mean(
    [
        ndcg_score(Y_TEST, np.random.default_rng(s).random(Y_TEST.size), qid=QID_TEST, k=10)
        for s in range(50)
    ]
)
ESTIMATORS = {
    "probabilities": LogisticRegression(C=0.01),
    "decisions": Perceptron(random_state=0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "kernel": SVC(kernel="rbf"),
    "ordinal perceptron": rc.PRank.published(average=True),
    "kernel perceptron": rc.KernelPRank.published(
        kernel="poly", degree=3, gamma=0.05, average=True, max_iter=5
    ),
    "ranker": rc.PairwisePerceptron(random_state=0),
    "kernel ranker": rc.RankSVM(0.1, kernel="rbf", gamma=0.01),
}


def products(U, V):
    return np.hstack([U - V, U * V])


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("features", ["difference", "concatenation", products])
def test_it_is_consistent_and_ranks(name, features):
    model = PairwisePreference(ESTIMATORS[name], features=features, max_pairs=40, random_state=0)
    assert model.fit(X, y, qid=qid) is model
    h = model.comparator(X_TEST[:12])
    i, j = np.triu_indices(12, 1)
    forth, back = h.degrees(i, j), h.degrees(j, i)
    np.testing.assert_allclose(forth + back, 1.0, atol=1e-12)
    np.testing.assert_allclose(h.degrees(i, i), 0.5)
    assert model.degree(X_TEST[3], X_TEST[8]) == pytest.approx(
        float(h.degrees(*np.array([[3], [8]]))[0])
    )
    learned = ndcg_score(Y_TEST, model.predict(X_TEST, qid=QID_TEST), qid=QID_TEST, k=10)
    assert model.score(X_TEST, Y_TEST, qid=QID_TEST) == pytest.approx(learned)
    if features == "difference":
        assert learned > CHANCE + 0.1


def test_predictions_are_the_orders_of_the_second_stage():
    model = PairwisePreference(LogisticRegression(C=0.01), random_state=0)
    model.fit(X, y, qid=qid)
    # Queries whose rows are scattered, and one of a single row.
    mixed = np.random.default_rng(1).permutation(41)
    rows, queries = X[mixed], np.append(np.repeat([3, 1, 2, 0], 10), 9)[mixed]
    scores = model.predict(rows, qid=queries)
    for query in range(4):
        mine = np.flatnonzero(queries == query)
        h = model.comparator(rows[mine])
        assert mine[np.argsort(-scores[mine], kind="stable")].tolist() == sort_by_degree(
            mine.tolist(), h
        )
    assert scores[queries == 9] == 0.5


def test_a_scorer_prefers_by_its_scores():
    model = PairwisePreference(rc.RankBoost(10)).fit(X, y, qid=qid)
    rows = X_TEST[:12]
    scores = model.estimator_.predict(rows)
    h = model.comparator(rows)
    i, j = np.indices((12, 12)).reshape(2, -1)
    expected = np.where(scores[i] == scores[j], 0.5, scores[i] > scores[j])
    np.testing.assert_array_equal(h.degrees(i, j), expected)
    assert model.n_pairs_ == 0
    first = quicksort_rank(np.arange(12), h, top_k=1, random_state=0)
    assert scores[first[0]] == scores.max()


def test_a_scorer_scores_rows_once(monkeypatch):
    model = PairwisePreference(rc.RankBoost(10), random_state=0).fit(X, y, qid=qid)
    scored = []
    whole = rc.RankBoost.predict
    monkeypatch.setattr(
        rc.RankBoost, "predict", lambda self, X: scored.append(len(X)) or whole(self, X)
    )
    model.predict(X_TEST, qid=QID_TEST)
    quicksort_rank(range(12), model.comparator(X_TEST[:12]), random_state=0)
    assert scored == [len(X_TEST), 12]
    with pytest.raises(ValueError, match="the preference has 12 items; got 13 items"):
        quicksort_rank(range(13), model.comparator(X_TEST[:12]))


def test_a_failed_fit_leaves_the_preference_as_it_was():
    model = PairwisePreference(LogisticRegression(C=0.01), random_state=0).fit(X, y, qid=qid)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="nothing to learn"):
        model.fit(X[:, :3], np.ones(len(X)), qid=qid)
    assert vars(model) == before


def test_what_is_learned_from():
    asked = []

    class Spy(GaussianNB):
        def fit(self, X, y):
            asked.append((X.copy(), y.copy()))
            return super().fit(X, y)

    rows = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
    model = PairwisePreference(Spy(), max_pairs=None)
    model.fit(rows, [1, 0, 0, 5, 5], qid=["a", "a", "a", "b", "b"])
    ((features, classes),) = asked
    assert model.n_pairs_ == 2  # none of a query of one label
    assert sorted(zip(features[:, 0], classes, strict=True)) == [(-3, 1), (-1, 1), (1, 0), (3, 0)]
    asked.clear()
    PairwisePreference(Spy(), features="concatenation").fit(rows, [1, 0, 0, 5, 5], group=[3, 2])
    assert sorted(map(tuple, asked[0][0])) == [(1, 2), (1, 4), (2, 1), (4, 1)]
    limited = PairwisePreference(GaussianNB(), max_pairs=7, random_state=0).fit(X, y, qid=qid)
    grades = [y[qid == query] for query in np.unique(qid)]
    n_pairs = [int((one[:, None] > one).sum()) for one in grades]
    assert limited.n_pairs_ == sum(min(7, n) for n in n_pairs)


@pytest.mark.parametrize("features", ["difference", "concatenation"])
def test_sparse_rows(features):
    sparse = sp.csr_array(X * (X > 0.5))
    model = PairwisePreference(LogisticRegression(C=0.01), features=features, random_state=0)
    dense = clone(model).fit(sparse.toarray(), y, qid=qid).predict(sparse.toarray(), qid=qid)
    np.testing.assert_allclose(model.fit(sparse, y, qid=qid).predict(sparse, qid=qid), dense)


def test_pairs_of_more_than_a_block(monkeypatch):
    model = PairwisePreference(LogisticRegression(C=0.01), random_state=0).fit(X, y, qid=qid)
    whole = model.predict(X, qid=qid)
    monkeypatch.setattr("rankcore.preference.learned._BLOCK", 7)
    np.testing.assert_allclose(model.predict(X, qid=qid), whole)


def test_in_pipelines():
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=0.01))
    inside = PairwisePreference(estimator, random_state=0).fit(X, y, qid=qid)
    assert inside.score(X_TEST, Y_TEST, qid=QID_TEST) > CHANCE + 0.1
    around = make_pipeline(StandardScaler(), PairwisePreference(GaussianNB(), random_state=0))
    around.fit(X, y, pairwisepreference__qid=qid)
    assert around.predict(X_TEST).shape == Y_TEST.shape


@pytest.mark.parametrize(
    ("params", "labels", "what"),
    [
        ({"features": "product"}, y, "features must be"),
        ({"max_pairs": 0}, y, "max_pairs must be an integer >= 1"),
        ({}, np.zeros(y.size), "nothing to learn"),
    ],
)
def test_wrong_arguments_are_refused(params, labels, what):
    with pytest.raises(ValueError, match=what):
        PairwisePreference(GaussianNB(), **params).fit(X, labels, qid=qid)
