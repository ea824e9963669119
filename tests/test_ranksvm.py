"""RankSVM against other solvers of the same objective, and the theorems that hold for it."""

import pickle
import signal
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import rankcore as rc
from checks_in_turn import checks_in_turn
from rankcore.progress import watch
from rankcore.ranking.svm.spaces import Sample
from reference import pair_loss as plain

pytestmark = pytest.mark.kernel

LOSSES = [("squared_hinge", 2), ("hinge", 1)]
KERNELS = [{}, {"kernel": "linear"}, {"kernel": "rbf", "gamma": 0.3}]
# The objective in closed form by hand: SPEC-sized example of three documents.
X3, Y3 = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([2, 0, 1])


def data(seed=0, n=60, d=4, queries=5, levels=3, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    s = X @ rng.normal(size=d) + noise * rng.normal(size=n)
    y = np.digitize(s, np.quantile(s, np.arange(1, levels) / levels))
    return X, y, rng.integers(0, queries, n)


def pairs_of(y, qid, balance="query", weights=None):
    pairs = plain.pairs_of(y, qid, weights)
    return pairs if balance is None else plain.balanced(pairs, qid, weights)


def differences(X, pairs):
    return np.array([X[i] - X[j] for i, j, _ in pairs]), np.array([v for _, _, v in pairs])


# ---------------------------------------------------------------- the optimum


def optimum(Z, c, loss):
    """Minimum of |w|^2 / 2 + sum of c (1 - Z w)_+^p in units in which Z is of size 1, by scipy."""
    s = np.abs(Z).max()
    Z = Z / s
    if loss == "hinge":  # the dual, divided by s^2 and sum(c)

        def dual(a):
            w = a @ Z
            return 0.5 * s**2 * (w @ w) - a.sum(), s**2 * (Z @ w) - 1.0

        found = scipy.optimize.minimize(
            dual, 0.5 * c, jac=True, bounds=[(0, one) for one in c], method="L-BFGS-B",
            options={"maxiter": 20000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
        )  # fmt: skip
        return s * (found.x @ Z)

    def primal(u):  # w = s u; the loss without its value at w = 0, divided by s^2
        d = Z @ u
        t = np.minimum(s**2 * d, 1.0)
        lost = np.where(s**2 * d < 1.0, -2.0 * d + t * d, -1.0 / s**2)
        return 0.5 * (u @ u) + c @ lost, u - 2.0 * ((c * (1.0 - t)) @ Z)

    found = scipy.optimize.minimize(
        primal, np.zeros(Z.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}
    )
    return s * found.x


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("balance", ["query", None])
@pytest.mark.parametrize("kernel", [None, "linear"])
@pytest.mark.parametrize("scale", [1e-10, 1e-6, 1e-4, 1e-2, 1e-1, 1.0])
def test_features_of_any_scale_are_learned(loss, balance, kernel, scale):
    """The minimum may be close to w = 0 as the objective is, but it is not w = 0."""
    X, y, qid = data(n=40)
    pairs = pairs_of(y, qid, balance)
    expected = optimum(*differences(scale * X, pairs), loss)
    model = rc.RankSVM(loss=loss, balance=balance, kernel=kernel, tol=1e-8, standardize=False)
    found = model.fit(scale * X, y, qid=qid).coef_
    assert np.linalg.norm(found - expected) < 1e-3 * np.linalg.norm(expected)
    rough = clone(model).set_params(tol=1e-4).fit(scale * X, y, qid=qid).coef_
    assert np.linalg.norm(rough - expected) < 0.1 * np.linalg.norm(expected)
    # With C in proportion, the objective is the same but for a factor.
    alike = clone(model).set_params(C=scale**-2).fit(scale * X, y, qid=qid).coef_
    whole = clone(model).fit(X, y, qid=qid).coef_
    np.testing.assert_allclose(scale * alike, whole, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("shape", [(60, 4), (60, 1500)], ids=["steps", "draft"])
def test_small_features_are_learned_from_any_start(shape):
    X, y, qid = data(n=shape[0], d=shape[1])
    cold = rc.RankSVM().fit(1e-6 * X, y, qid=qid)
    warm = rc.RankSVM(warm_start=True).fit(X, y, qid=qid).fit(1e-6 * X, y, qid=qid)
    other = rc.RankSVM(tol=1e-10).fit(1e-6 * X, y, qid=qid).coef_
    for one in (cold, warm):
        assert np.linalg.norm(one.coef_ - other) < 0.02 * np.linalg.norm(other)


def test_three_documents_have_the_minimum_by_hand():
    # s = (.5, .25, .75) at w = (.5, .25): hinges 0.75, 1.25, 0.5 of the pairs (0,1), (0,2), (2,1).
    pairs = plain.pairs_of(Y3, np.zeros(3))
    assert plain.objective(np.array([0.5, 0.25]), X3, pairs, 1.0, 1) == 2.65625
    model = rc.RankSVM(loss="hinge", balance=None, tol=1e-10).fit(X3, Y3, qid=np.zeros(len(Y3)))
    np.testing.assert_allclose(model.coef_, [1, -1], atol=1e-4)
    assert model.objective_ == pytest.approx(1.0, rel=1e-10)
    # By symmetry w = (a, -a) and the distances are 2a, a, a: minimise a^2 + (1-2a)^2 + 2 (1-a)^2.
    squared = rc.RankSVM(balance=None, tol=1e-14).fit(X3, Y3, qid=np.zeros(len(Y3)))
    # Only the distances a < 1 and 2a > 1 remain: a^2 + 2 (1 - a)^2, at a = 2/3.
    np.testing.assert_allclose(squared.coef_, [2 / 3, -2 / 3], rtol=1e-10)
    assert squared.objective_ == pytest.approx(2 / 3, rel=1e-12)


@pytest.mark.parametrize(("loss", "power"), LOSSES)
@pytest.mark.parametrize("balance", ["query", None])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_no_solver_on_listed_differences_is_lower(loss, power, balance, C):
    for seed in range(3):
        X, y, qid = data(seed, n=30, queries=3, levels=2 + seed)
        pairs = pairs_of(y, qid, balance)
        Z, v = differences(X, pairs)
        signs = np.where(np.arange(len(Z)) % 2, 1.0, -1.0)
        other = LinearSVC(C=C, loss=loss, fit_intercept=False, tol=1e-8, max_iter=20_000, dual=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # its best is a bound all the same
            other.fit(signs[:, None] * Z, signs, sample_weight=v)
        lowest = plain.objective(other.coef_[0], X, pairs, C, power)
        model = rc.RankSVM(C, loss=loss, balance=balance, tol=3e-7, standardize=False).fit(
            X, y, qid=qid
        )
        reached = plain.objective(model.coef_, X, pairs, C, power)
        assert model.objective_ == pytest.approx(reached, rel=1e-12)
        assert reached <= lowest * (1 + 1e-6)
        assert model.gap_ <= 3e-7
        # And the certificate is true: nothing is below what it says, but for rounding.
        assert lowest >= reached * (1 - model.gap_ - 1e-12)


@pytest.mark.parametrize(("loss", "power"), LOSSES)
@pytest.mark.parametrize("gamma", [0.1, 1.0])
def test_kernel_form_equals_an_svm_on_the_kernel_of_pairs(loss, power, gamma):
    X, y, qid = data(3, n=16, queries=2)
    pairs = pairs_of(y, qid, None)
    i, j = np.array([(i, j) for i, j, _ in pairs]).T
    K = rbf_kernel(X, gamma=gamma)
    of_pairs = K[i][:, i] + K[j][:, j] - K[i][:, j] - K[j][:, i]
    C = 0.7
    # Each pair also the other way round, with the other sign: the intercept is then 0.
    signs = np.repeat([1.0, -1.0], len(i))
    gram = np.tile(of_pairs, (2, 2)) * np.outer(signs, signs)
    if power == 1:
        machine = SVC(C=C / 2, kernel="precomputed", tol=1e-7, max_iter=500_000).fit(gram, signs)
    else:  # the squared hinge is a hard margin on the kernel plus 1 / (2 C) on its diagonal
        ridge = np.eye(len(signs)) / C
        machine = SVC(C=1e8, kernel="precomputed", tol=1e-7, max_iter=500_000).fit(
            gram + ridge, signs
        )
    alpha = np.zeros(len(signs))
    alpha[machine.support_] = machine.dual_coef_[0]
    # dual_coef_ is alpha times the label, and a pair's image is the label times its difference.
    beta = _beta(alpha, i, j, len(X))
    model = rc.RankSVM(
        C, loss=loss, balance=None, kernel="rbf", gamma=gamma, tol=1e-9, max_iter=2000
    )
    model.fit(X, y, qid=qid)
    np.testing.assert_allclose(_centred(model.predict(X), qid), _centred(K @ beta, qid), atol=2e-4)
    s = K @ beta
    other = 0.5 * beta @ s + C * plain.loss_of(s, pairs, power)
    assert model.objective_ <= other * (1 + 1e-7)


def _beta(alpha, i, j, n):
    half = len(i)
    beta = np.zeros(n)
    np.add.at(beta, i, alpha[:half] - alpha[half:])
    np.add.at(beta, j, alpha[half:] - alpha[:half])
    return beta


def _centred(s, qid):
    s = s.copy()
    for q in np.unique(qid):
        s[qid == q] -= s[qid == q].mean()
    return s


@pytest.mark.parametrize(("loss", "power"), LOSSES)
def test_the_linear_kernel_equals_the_linear_form(loss, power):
    X, y, qid = data(5)
    models = [
        rc.RankSVM(2.0, loss=loss, tol=1e-8, max_iter=1000, **params, standardize=False).fit(
            form(X), y, qid=qid
        )
        for params, form in [
            ({}, np.asarray),
            ({"kernel": "linear"}, np.asarray),
            ({"kernel": "linear"}, sp.csr_array),
            ({"kernel": "precomputed"}, lambda X: X @ X.T),
            ({"kernel": lambda a, b: a @ b.T}, np.asarray),
        ]
    ]
    expected = models[0].predict(X)
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=2e-8)
        found = model.predict(X @ X.T if model.kernel == "precomputed" else X)
        np.testing.assert_allclose(found, expected, atol=2e-3 if power == 1 else 1e-5)
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, atol=2e-3)


@pytest.mark.parametrize("params", KERNELS, ids=str)
def test_optimum_does_not_depend_on_the_start(params):
    X, y, qid = data(6, n=80)
    tight = {"tol": 1e-12, **params}
    cold = rc.RankSVM(1.0, **tight).fit(X, y, qid=qid)
    for C in [1e-3, 1e3]:
        warm = rc.RankSVM(C, warm_start=True, **tight).fit(X, y, qid=qid)
        warm.set_params(C=1.0).fit(X, y, qid=qid)
        np.testing.assert_allclose(warm.predict(X), cold.predict(X), atol=1e-5)
    again = rc.RankSVM(1.0, warm_start=True, **tight).fit(X, y, qid=qid)
    steps = again.n_iter_
    assert steps > 1
    assert again.fit(X, y, qid=qid).n_iter_ == 0
    for seed in range(3):
        other = rc.RankSVM(1.0, random_state=seed, **tight).fit(X, y, qid=qid)
        np.testing.assert_allclose(other.predict(X), cold.predict(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_threads_change_no_bit(loss):
    X, y, qid = data(7, n=2000, d=6, queries=90)
    fits = [rc.RankSVM(loss=loss, n_jobs=n, random_state=0).fit(X, y, qid=qid) for n in (1, 2, 4)]
    for other in fits[1:]:
        np.testing.assert_array_equal(other.coef_, fits[0].coef_)
        assert other.history_["objective"] == fits[0].history_["objective"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_float32_give_the_same_model(dtype):
    X, y, qid = data(8)
    X = (X * (np.abs(X) > 0.5)).astype(dtype)
    dense = rc.RankSVM(tol=1e-12, random_state=0).fit(X, y, qid=qid)
    sparse = rc.RankSVM(tol=1e-12, random_state=0).fit(sp.csr_array(X), y, qid=qid)
    double = rc.RankSVM(tol=1e-12, random_state=0).fit(X.astype(np.float64), y, qid=qid)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9)
    np.testing.assert_allclose(double.coef_, dense.coef_, rtol=1e-9)


def test_more_features_than_the_preconditioner_takes_converge():
    rng = np.random.default_rng(0)
    X = sp.random(300, 1500, density=0.05, random_state=0, format="csr")
    y = rng.integers(0, 3, 300)
    wide = rc.RankSVM(10.0, tol=1e-10).fit(X, y, qid=np.zeros(len(y)))
    kernel = rc.RankSVM(10.0, tol=1e-10, kernel="linear").fit(X, y, qid=np.zeros(len(y)))
    assert wide.objective_ == pytest.approx(kernel.objective_, rel=1e-9)


def test_sparse_rows_have_a_preconditioner_only_if_it_saves_work():
    """At most as many multiplications as 1024 for each stored value and eight products."""
    sizes, d = np.full(500, 20), 600
    n_docs = 20 * int(np.ceil((64 * d + 1) / 20))
    for n_values, first in [(10_000 * d, True), (10_000 * 10, False)]:
        sample = Sample(sizes, d, np.random.default_rng(0), n_values)
        assert (sample.draw(0) is not None) == first
    found = [sample.draw(8) for _ in range(500)]
    products = 8 * (1 + next(i for i, some in enumerate(found) if some is not None))
    cost = min(n_docs, 10_000) * d * d
    assert 1024 * 100_000 * (products - 8) / 8 < cost <= 1024 * 100_000 * products / 8
    assert all(some is not None for some in found[products // 8 - 1 :])


def test_ill_conditioned_sparse_rows_have_the_minimum_of_dense_ones():
    rng = np.random.default_rng(0)
    X = sp.random(2000, 60, density=0.1, random_state=0, format="csr")
    X = (X @ sp.diags(np.exp(2.0 * rng.normal(size=60)))).tocsr()
    y = (X @ rng.normal(size=60) > 0).astype(int)
    sparse = rc.RankSVM(1e3, tol=1e-8).fit(X, y, qid=np.arange(2000) // 20)
    dense = rc.RankSVM(1e3, tol=1e-8).fit(X.toarray(), y, qid=np.arange(2000) // 20)
    assert max(sparse.gap_, dense.gap_) <= 1e-8
    assert sparse.objective_ == pytest.approx(dense.objective_, rel=2e-8)


# ---------------------------------------------------------------- what it learns from


def test_row_weights_equal_repeated_rows():
    X, y, qid = data(9)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    # Without balance, or of one query, which then has all of the weight.
    for balance, of in [("query", np.zeros(len(y))), (None, qid)]:
        # Rounding ends the cutting planes of the hinge loss near 1e-9, with some NumPy above it.
        for loss, tol in [("squared_hinge", 1e-9), ("hinge", 1e-8)]:
            model = rc.RankSVM(loss=loss, balance=balance, tol=tol, max_iter=1000)
            weighted = model.fit(X, y, qid=of, sample_weight=times).objective_
            rows = np.repeat(np.arange(len(y)), times)
            repeated = model.fit(X[rows], y[rows], qid=of[rows]).objective_
            assert weighted == pytest.approx(repeated, rel=2 * tol)


@pytest.mark.parametrize("spread", [1e8, 1e14, 1e20])
def test_large_weights_of_one_query_do_not_round_those_of_another(spread):
    X, y, qid = data(9, queries=2)
    weights = np.random.default_rng(0).random(len(y)) * np.where(qid == 0, spread, 1.0)
    model = rc.RankSVM(tol=1e-10, standardize=False).fit(X, y, qid=qid, sample_weight=weights)
    expected = plain.objective(model.coef_, X, pairs_of(y, qid, "query", weights), 1.0, 2)
    assert model.objective_ == pytest.approx(expected, rel=1e-12)


def test_losses_below_the_range_of_float64_are_zero():
    X, y, qid = data()
    for loss in ["squared_hinge", "hinge"]:
        model = rc.RankSVM(loss=loss, balance=None)
        with pytest.warns(UserWarning, match="the mean weight is below 0.01"):
            model.fit(X, y, qid=qid, sample_weight=np.full(len(y), 1e-200))
        assert (model.objective_, model.gap_) == (0.0, 0.0)
        np.testing.assert_array_equal(model.coef_, 0.0)


def test_weights_of_queries_multiply_their_losses():
    X, y, qid = data(10)
    ids = list(dict.fromkeys(qid.tolist()))
    of_queries = np.arange(len(ids), dtype=float)
    model = rc.RankSVM(2.0, tol=1e-12, standardize=False).fit(
        X, y, qid=qid, sample_weight=of_queries
    )
    of_rows = np.array([of_queries[ids.index(one)] for one in qid])
    mean = of_rows[of_rows > 0].mean()
    pairs = [(i, j, v * of_rows[i] / mean) for i, j, v in pairs_of(y, qid)]
    assert model.objective_ == pytest.approx(
        plain.objective(model.coef_, X, pairs, 2.0, 2), rel=1e-12
    )
    slopes = plain.slopes_of(X @ model.coef_, pairs, 2)
    np.testing.assert_allclose(model.coef_, -2.0 * X.T @ slopes, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_listed_pairs_of_labels_give_the_same_result(loss):
    X, y, qid = data(11)
    listed = [(i, j) for i, j, _ in plain.pairs_of(y, qid)]
    params = {"loss": loss, "balance": None, "tol": 1e-8, "max_iter": 1000}
    by_label = rc.RankSVM(**params, standardize=False).fit(X, y, qid=qid)
    by_list = rc.RankSVM(**params, standardize=False).fit(X, pairs=listed, qid=qid)
    assert by_list.objective_ == pytest.approx(by_label.objective_, rel=2e-8)
    weights = np.linspace(0, 1, len(listed))
    model = rc.RankSVM(tol=1e-12, balance=None, standardize=False).fit(
        X, pairs=listed, pairs_weight=weights, qid=qid
    )
    pairs = [(i, j, v) for (i, j), v in zip(listed, weights, strict=True)]
    np.testing.assert_allclose(
        model.coef_, -X.T @ plain.slopes_of(X @ model.coef_, pairs, 2), atol=1e-5
    )


def test_real_labels_any_order_and_groups_give_the_same_model():
    X, _, qid = data(12)
    y = np.random.default_rng(1).normal(size=len(qid))
    one = rc.RankSVM(tol=1e-12).fit(X, y, qid=qid)
    order = np.argsort(qid, kind="stable")
    sizes = np.unique(qid, return_counts=True)[1]
    two = rc.RankSVM(tol=1e-12).fit(X[order], y[order], group=sizes)
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-6)
    names = np.array(["a", "b", "c", "d", "e"])[qid]
    three = rc.RankSVM(tol=1e-12).fit(X, y * 3 - 7, qid=names)
    np.testing.assert_allclose(three.coef_, one.coef_, atol=1e-6)


def test_fit_of_equal_documents_ends():
    with pytest.warns(UserWarning, match="RankSVM learned nothing"):
        model = rc.RankSVM().fit(np.zeros((4, 2)), [0, 1, 1, 0], qid=[0] * 4)
    assert model.n_iter_ == 0
    np.testing.assert_array_equal(model.coef_, [0, 0])
    with pytest.raises(ValueError, match="no query has two documents of different label"):
        rc.RankSVM().fit(X3, [1, 1, 1], qid=[0] * 3)


# ---------------------------------------------------------------- what it says


def test_history_certificate_and_progress_are_recorded():
    X, y, qid = data(13)
    seen, reports = [], []
    with watch(reports.append):
        model = rc.RankSVM(tol=1e-10).fit(
            X,
            y,
            qid=qid,
            eval_set=(X, y),
            eval_qid=qid,
            callbacks=[lambda now: seen.append(now.model.coef_)],
        )
    history = model.history_
    assert len(seen) == len(reports) == model.n_iter_ == len(history["objective"])
    assert np.all(np.diff(history["objective"]) < 0)
    assert history["gap"][-1] == model.gap_ <= 1e-10
    lowest = history["objective"][-1]
    for objective, gap in zip(history["objective"], history["gap"], strict=True):
        assert objective * (1 - gap) <= lowest * (1 + 1e-12)
    np.testing.assert_array_equal(seen[-1], model.coef_)
    assert history["valid_ndcg@10"][-1] == pytest.approx(model.score(X, y, qid=qid), rel=1e-12)


def test_a_callback_ends_the_fit_and_too_few_steps_warn(capsys):
    X, y, qid = data(14)
    stopped = rc.RankSVM(tol=1e-12, verbose=1).fit(X, y, qid=qid, callbacks=[lambda m: True])
    assert stopped.n_iter_ == 1
    assert "step 1: objective" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning, match="increase max_iter"):
        rc.RankSVM(tol=1e-12, max_iter=1).fit(X, y, qid=qid)
    with pytest.warns(ConvergenceWarning, match="float64 allows no further progress"):
        rc.RankSVM(1e12, balance=None, tol=1e-300).fit(X, y, qid=qid)


def test_failed_fit_does_not_change_the_model():
    X, y, qid = data(15)
    model = rc.RankSVM().fit(X, y, qid=qid)
    before = pickle.dumps(model)

    def fail(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.fit(X[::-1], y, qid=qid, callbacks=[fail])
    assert pickle.dumps(model) == before
    copy = pickle.loads(before)
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("params", [{"n_jobs": 1}, {"n_jobs": 2}, {"kernel": "rbf"}], ids=str)
def test_ctrl_c_ends_a_long_fit(params):
    X, y, qid = data(15, n=1500, d=30, queries=40)
    model = rc.RankSVM(loss="hinge", **params).fit(X[:100], y[:100], qid=qid[:100])
    before, threads = pickle.dumps(model), threading.active_count()

    def interrupt(*_):
        raise KeyboardInterrupt

    def fit_for_ever():
        while True:
            clone(model).set_params(C=1e4, tol=1e-8).fit(X, y, qid=qid)

    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for seconds in (0.02, 0.1, 0.3):
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with pytest.raises(KeyboardInterrupt):
                fit_for_ever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert pickle.dumps(model) == before
    assert threading.active_count() == threads


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_float32_is_not_copied(form, n_jobs):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(4000, 1100)).astype(np.float32)
    X, y, qid = form(dense), rng.integers(0, 3, 4000), np.arange(4000) // 40
    size = dense.nbytes if form is np.asarray else X.data.nbytes + X.indices.nbytes
    model = rc.RankSVM(n_jobs=n_jobs)
    model.fit(X[:40], y[:40], qid=np.zeros(40))  # imports
    tracemalloc.start()
    try:
        model.fit(X, y, qid=qid)
        model.predict(X)
        assert tracemalloc.get_traced_memory()[1] < size / 4
    finally:
        tracemalloc.stop()


def test_rows_of_a_cache_are_not_copied(tmp_path):
    rng = np.random.default_rng(0)
    n = 12_000
    X, y, qid = rng.normal(size=(n, 60)), rng.integers(0, 3, n), np.arange(n) // 40
    rc.datasets.dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    rows = rc.datasets.open_rows(tmp_path / "rows.txt", cache=tmp_path / "rows")
    rc.RankSVM().fit(X[:40], y[:40], qid=qid[:40])  # imports
    tracemalloc.start()
    try:
        model = rc.RankSVM(random_state=0).fit(rows)
        # Not even the columns, at 4 bytes for each value.
        assert tracemalloc.get_traced_memory()[1] < 4 * X.size
    finally:
        tracemalloc.stop()
    expected = rc.RankSVM(random_state=0).fit(sp.csr_array(X), y, qid=qid)
    assert np.array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"C": 0}, ValueError, r"C must be a number in \(0, .*; got 0"),
        ({"C": np.inf}, ValueError, "C"),
        ({"tol": 0.0}, ValueError, "tol must be a number in "),
        ({"loss": "logistic"}, ValueError, "loss must be one of"),
        ({"balance": "pair"}, ValueError, "balance must be 'query' or None"),
        ({"kernel": "sigmoid"}, ValueError, "kernel must be one of"),
        ({"kernel": "rbf", "gamma": -1.0}, ValueError, "gamma"),
        ({"kernel": "rbf", "gamma": "large"}, ValueError, "gamma must be one of"),
        ({"kernel": "poly", "degree": 0}, ValueError, "degree"),
        (
            {"kernel": "rbf", "memory_limit": 100},
            ValueError,
            r"Nystroem\(\), RankSVM\(\)\) for documents .* PRank\(\) instead .* ordered labels",
        ),
        ({"kernel": "precomputed"}, ValueError, "must be square; got 60 rows and 4 columns"),
        ({"kernel": lambda a, b: np.zeros(3)}, ValueError, "must return"),
        ({"kernel": lambda a, b: -(a @ b.T)}, ValueError, "not an inner product"),
        ({"kernel": euclidean_distances}, ValueError, "negative eigenvalues"),
        (
            {"n_jobs": 0},
            ValueError,
            "n_jobs must be an integer >= 1, an integer <= -1 or None; got 0",
        ),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"warm_start": 1}, TypeError, "warm_start must be True or False"),
    ],
)
def test_bad_parameters_are_named(params, error, message):
    X, y, qid = data()
    with pytest.raises(error, match=message):
        rc.RankSVM(**params).fit(X, y, qid=qid)


def test_overflow_and_missing_attributes_are_errors():
    X, y, qid = data()
    with pytest.raises(ValueError, match="scale X"):
        rc.RankSVM(1e100).fit(X * 1e150, y, qid=qid)
    for kernel in ["linear", "rbf", "poly"]:
        with pytest.raises(ValueError, match="scale X"):
            rc.RankSVM(kernel=kernel).fit(X * 1e160, y, qid=qid)
    # Infinity is noticed where it arises, as much as NaN.
    with pytest.raises(ValueError, match="variance of X, which overflowed"):
        rc.RankSVM(kernel="rbf").fit(X * 1e160, y, qid=qid)
    with pytest.raises(ValueError, match="kernel values must be finite"):
        rc.RankSVM(kernel="poly", gamma=1.0).fit(np.abs(X) * 1e120, y, qid=qid)
    with pytest.raises(AttributeError, match="use coef_"):
        _ = rc.RankSVM().fit(X, y, qid=qid).dual_coef_
    with pytest.raises(AttributeError, match="use dual_coef_"):
        _ = rc.RankSVM(kernel="rbf").fit(X, y, qid=qid).coef_
    with pytest.raises(AttributeError, match="not fitted"):
        _ = rc.RankSVM().coef_
    model = rc.RankSVM(kernel="rbf").fit(X, y, qid=qid)
    np.testing.assert_allclose(
        model.predict(X),
        rbf_kernel(X, X[model.support_], gamma=1 / (4 * X.var())) @ model.dual_coef_,
    )


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernels", [("rbf", None), (None, "rbf")], ids=str)
def test_parameters_that_are_set_later_do_not_change_a_fitted_model(kernels, form):
    X, y, qid = data()
    model = rc.RankSVM(kernel=kernels[0]).fit(form(X), y, qid=qid)
    before = model.predict(form(X))
    model.set_params(kernel=kernels[1], C=3.0, gamma=7.0, degree=5)
    np.testing.assert_array_equal(model.predict(form(X)), before)
    assert model.fit(form(X), y, qid=qid).predict(form(X)).tolist() != before.tolist()


# ---------------------------------------------------------------- in scikit-learn

# The checks compare models with weights to those with repeated rows, digit by digit.
VARIANTS = [
    rc.RankSVM(balance=None, tol=1e-14, random_state=0),
    rc.RankSVM(loss="hinge", tol=1e-3),
    # gamma="scale" is by the variance of X, which repeating rows changes.
    rc.RankSVM(kernel="rbf", gamma=0.5, tol=1e-14),
    rc.RankSVM(kernel="precomputed", tol=1e-14),
]
NO_KERNEL = {
    "check_positive_only_tag_during_fit": "a kernel matrix less its mean is no kernel matrix",
}


def differences_of(estimator):
    return NO_KERNEL if estimator.kernel == "precomputed" else {}


@checks_in_turn(VARIANTS, differences_of)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:fit found no qid")  # the checks know of no queries
def test_variants_pass_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_searches_slice_the_queries():
    X, y, qid = data(16, n=200, queries=20)
    with sklearn.config_context(enable_metadata_routing=True):
        model = rc.RankSVM(random_state=0).set_fit_request(qid=True).set_score_request(qid=True)
        search = GridSearchCV(model, {"C": [0.01, 1.0]}, cv=GroupKFold(4))
        search.fit(X, y, qid=qid, groups=qid)
        found = cross_val_score(
            search.best_estimator_, X, y, cv=GroupKFold(4), params={"qid": qid, "groups": qid}
        )
        pipeline = make_pipeline(StandardScaler(), model).fit(X, y, qid=qid)
    expected = []
    for train, test in GroupKFold(4).split(X, y, groups=qid):
        fitted = clone(search.best_estimator_).fit(X[train], y[train], qid=qid[train])
        expected.append(fitted.score(X[test], y[test], qid=qid[test]))
    np.testing.assert_array_equal(found, expected)
    assert pipeline.predict(X).shape == (200,)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scale", [1e6, 1e9, 1e12, 1e50])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_raw_large_features_are_learned(loss, scale):
    """The second derivatives of large features with an offset may be indefinite by rounding."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(300, 5))
    y = (plain.sum(axis=1) + rng.normal(size=300) > 0).astype(int)
    qid = np.arange(300) // 10
    expected = rc.RankSVM(loss=loss).fit(plain, y, qid=qid).score(plain, y, qid=qid)
    raw = scale * (plain + 1)
    assert rc.RankSVM(loss=loss).fit(raw, y, qid=qid).score(raw, y, qid=qid) > expected - 0.03
