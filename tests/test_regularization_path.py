"""The path over C, and the choice of C by cross-validation."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import _num_samples

import rankcore as rc
from rankcore.metrics import evaluate, ndcg_score
from rankcore.progress import watch

X, Y, QID = rc.datasets.make_letor(40, 20, random_state=0)
X = (X - X.mean(axis=0)) / X.std(axis=0)
TRAIN = QID <= 30
CS = [0.001, 0.1, 10.0]


@pytest.mark.parametrize(
    "params", [{}, {"loss": "hinge", "tol": 1e-6}, {"kernel": "linear"}], ids=str
)
def test_a_path_has_the_models_of_single_fits(params):
    params = {"tol": 1e-10, **params}
    path = rc.ranksvm_path(X[TRAIN], Y[TRAIN], qid=QID[TRAIN], Cs=CS[::-1], **params)
    np.testing.assert_array_equal(path.Cs, CS)
    assert np.all(np.diff(path.lengths) > 0)
    for C, one, length in zip(CS, path.estimators, path.lengths, strict=True):
        alone = rc.RankSVM(C, **params).fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN])
        assert (one.C, one.get_params()["loss"]) == (C, alone.loss)
        assert one.objective_ == pytest.approx(
            alone.objective_, rel=2e-6 if "loss" in params else 1e-9
        )
        if "loss" not in params:
            np.testing.assert_allclose(one.predict(X), alone.predict(X), atol=1e-4)
            unit = 1.0 if "kernel" in params else X[TRAIN].std(axis=0)
            assert length == pytest.approx(np.linalg.norm(alone.coef_ * unit), rel=1e-4)
        assert len(one.history_["objective"]) == one.n_iter_
    assert path.measure is None
    assert path.best is None


def test_held_out_rows_choose_and_stop_the_path():
    held = {"eval_set": (X[~TRAIN], Y[~TRAIN]), "eval_qid": QID[~TRAIN]}
    Cs = np.logspace(-5, 3, 9)
    whole = rc.ranksvm_path(X[TRAIN], Y[TRAIN], qid=QID[TRAIN], Cs=Cs, eval_metric="map", **held)
    expected = [
        evaluate(Y[~TRAIN], one.predict(X[~TRAIN]), qid=QID[~TRAIN], metrics=["map"])["map"]
        for one in whole.estimators
    ]
    np.testing.assert_array_equal(whole.values, expected)
    assert whole.best == int(np.argmax(expected))
    stopped = rc.ranksvm_path(
        X[TRAIN],
        Y[TRAIN],
        qid=QID[TRAIN],
        Cs=Cs,
        eval_metric="map",
        early_stopping_rounds=1,
        **held,
    )
    falls = np.flatnonzero(np.maximum.accumulate(expected)[:-1] >= expected[1:])
    assert len(stopped.Cs) == falls[0] + 2 < len(Cs)
    lines = str(whole).splitlines()
    assert lines[0].split() == ["C", "objective", "gap", "|w|", "steps", "map"]
    assert [line.endswith("*") for line in lines[1:-1]] == [k == whole.best for k in range(9)]


def test_cross_validation_leaves_whole_queries_out():
    model = rc.RankSVMCV(CS, cv=4, scoring="ndcg@5", tol=1e-10, random_state=0).fit(X, Y, qid=QID)
    numbers = QID - 1  # in order of first appearance
    for row, (train, test) in zip(model.scores_, GroupKFold(4).split(X, Y, numbers), strict=True):
        for value, C in zip(row, CS, strict=True):
            one = rc.RankSVM(C, tol=1e-10).fit(X[train], Y[train], qid=QID[train])
            wanted = ndcg_score(Y[test], one.predict(X[test]), qid=QID[test], k=5)
            assert value == pytest.approx(wanted, abs=2e-3)  # a swap of scores that all but tie
    best = int(model.scores_.mean(axis=0).argmax())
    assert CS[best] == model.C_
    alone = rc.RankSVM(model.C_, tol=1e-10).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert model.score(X, Y, qid=QID) == pytest.approx(alone.score(X, Y, qid=QID), abs=1e-3)
    assert model.n_iter_ == model.best_estimator_.n_iter_


def test_own_folds_weights_and_kernels_are_accepted():
    folds = list(GroupKFold(2).split(X, Y, QID))
    weights = np.random.default_rng(0).random(40)
    one = rc.RankSVMCV([0.1], cv=folds, tol=1e-10, standardize=False).fit(
        X, Y, qid=QID, sample_weight=weights
    )
    two = rc.RankSVM(0.1, tol=1e-10, standardize=False).fit(X, Y, qid=QID, sample_weight=weights)
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-6)
    linear = rc.RankSVMCV([0.1], cv=folds, kernel="precomputed", tol=1e-10, standardize=False)
    linear.fit(X @ X.T, Y, qid=QID, sample_weight=weights)
    np.testing.assert_allclose(linear.scores_, one.scores_, atol=1e-3)
    sparse = rc.RankSVMCV([0.1], cv=folds, tol=1e-10, standardize=False).fit(
        sp.csr_array(X), Y, qid=QID
    )
    assert sparse.scores_.shape == (2, 1)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"Cs": [0.0, 1.0]}, "Cs must list finite numbers > 0"),
        ({"Cs": []}, "Cs must list"),
        ({"Cs": 0}, "Cs"),
        ({"Cs": True}, "Cs must list"),
        ({"Cs": [[0.1, 1.0]]}, "Cs must list"),
        ({"Cs": "auto"}, "Cs must list"),
        ({"cv": 1}, "cv must be from 2 to the number of queries, 40; got 1"),
        ({"cv": 41}, "got 41"),
        ({"cv": list(KFold(3).split(X[:790]))}, "cv must keep the rows of a query together"),
        ({"scoring": "ndgc"}, "ndcg"),
        ({"loss": "log"}, "loss must be one of"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        rc.RankSVMCV(**params).fit(X, Y, qid=QID)


def test_a_path_and_its_folds_report_progress(capsys):
    seen = []
    with watch(seen.append):
        path = rc.ranksvm_path(X, Y, qid=QID, Cs=CS, verbose=1)
    printed = capsys.readouterr().out.splitlines()
    steps = [one.n_iter_ for one in path.estimators]
    assert len(printed) == len(seen) == sum(steps)
    assert printed[0].startswith("[RankSVM] C=0.001, step 1: objective ")
    expected = [(k, 3, n) for k in (1, 2, 3) for n in range(1, steps[k - 1] + 1)]
    assert [(p.epoch, p.n_epochs, p.done) for p in seen] == expected
    seen.clear()
    with watch(seen.append):
        model = rc.RankSVMCV(CS, cv=2, verbose=1).fit(X, Y, qid=QID)
    assert len(capsys.readouterr().out.splitlines()) == len(seen)
    assert sorted({p.epoch for p in seen}) == list(range(1, 8))
    assert {p.n_epochs for p in seen} == {7}
    assert model.history_ == model.best_estimator_.history_
    assert len(model.history_["objective"]) == model.n_iter_


def test_interrupt_does_not_change_the_chosen_model():
    model = rc.RankSVMCV(CS, cv=2).fit(X, Y, qid=QID)
    before = vars(model).copy()

    def interrupt(p):
        if p.epoch == 5:
            raise KeyboardInterrupt

    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], Y, qid=QID)
    assert vars(model) == before


def test_paths_reject_wrong_arguments():
    with pytest.raises(TypeError, match="requires the values of C as Cs; got C"):
        rc.ranksvm_path(X, Y, qid=QID, C=1.0)
    with pytest.raises(ValueError, match="requires eval_set"):
        rc.ranksvm_path(X, Y, qid=QID, early_stopping_rounds=2)
    with pytest.raises(AttributeError, match="not fitted"):
        _ = rc.RankSVMCV().coef_


class OfTwoQueries(rc.RankSVMCV):
    """Every second row is of another query, for checks that know of none."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, qid=np.arange(_num_samples(X)) % 2, sample_weight=sample_weight)

    def score(self, X, y, sample_weight=None):
        qid = np.arange(_num_samples(X)) % 2
        return super().score(X, y, sample_weight, qid=qid)


REPEATED = "repeated rows are of other queries here"
DIFFERENCES = {
    "check_sample_weight_equivalence_on_dense_data": REPEATED,
    "check_sample_weight_equivalence_on_sparse_data": REPEATED,
    "check_estimators_dtypes": "its labels alternate, as the queries do",
}


@parametrize_with_checks(
    [OfTwoQueries([0.1, 1.0], cv=2, scoring="misranking")],
    expected_failed_checks=lambda _: DIFFERENCES,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ranksvm_cv_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernel_scales_of_paths_and_folds_ignore_rows_of_weight_zero(kernel):
    few = QID <= 12
    there = np.random.default_rng(0).random(few.sum()) < 0.7
    rows = np.where(there[:, None], X[few], 1000.0)
    given = {"qid": QID[few], "sample_weight": there.astype(float)}
    params = {"kernel": kernel, "degree": 2, "tol": 1e-8}
    expected = rc.RankSVM(0.1, **params).fit(rows[there], Y[few][there], qid=QID[few][there])
    path = rc.ranksvm_path(rows, Y[few], Cs=[0.1], **given, **params)
    chosen = rc.RankSVMCV([0.1], cv=2, **params).fit(rows, Y[few], **given)
    for found in (path.estimators[0], chosen):
        np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-4)
