"""Kernel learners: budgets, kernels that are not compiled, faults."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

import rankcore as rc
from kernel_problems import FORMS, KERNELS, LEARNERS, POLICIES, every, form, problem
from reference.ensemble import times
from reference.kernel import kernel_cusum, kernel_oap, kernel_prank, rbf

pytestmark = pytest.mark.kernel

# ------------------------------------------------------------------------ budgets


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_budgets_equal_the_plain_form(policy, epochs, kernel):
    X, y = problem(150)
    plain, params = KERNELS[kernel]
    budget = {"budget": 12, "policy": policy, "decay": 0.02, "tol": 1e-3}
    model = rc.KernelPRank.published(
        **params,
        budget=12,
        budget_policy=policy,
        decay=0.02,
        projection_tol=1e-3,
        max_iter=epochs,
        random_state=5,
    ).fit(X, y)
    seed = model._state.pool.get("evict_seed")
    budget["seed"] = 0 if seed is None else int(seed[0])
    expected = kernel_prank(X, y, 4, plain, epochs=epochs, **budget)
    found = np.array(model.history_["rank_loss"])
    losses = np.abs(expected["predictions"] - np.tile(y, epochs)).reshape(epochs, -1).mean(axis=1)
    assert_array_equal(found, losses)
    pool = expected["pool"]
    order = np.argsort(pool.slots)
    assert_array_equal(model.support_, np.array(pool.names)[order])
    # rounding of inverses and of factors, each fed by those before it
    scale = np.abs(expected["alpha"]).max()
    assert_allclose(model.dual_coef_[0], expected["alpha"][order, 0], rtol=1e-6, atol=1e-6 * scale)
    assert_array_equal(model.thresholds_, expected["b"])
    assert expected["sizes"].max() <= 12
    assert model.support_.size <= 12


@pytest.mark.parametrize("policy", POLICIES)
def test_budgets_of_tasks_and_members_equal_the_plain_form(policy):
    X, y = problem(150)
    budget = {"budget": 15, "policy": policy, "decay": 0.02, "tol": 1e-3}
    params = {"budget": 15, "budget_policy": policy, "decay": 0.02, "projection_tol": 1e-3}
    params |= {"gamma": 0.3, "random_state": 5}
    cusum = rc.KernelCuSumRank.published(**params, margin=0.5).fit(X, y)
    seed = cusum._state.pool.get("evict_seed")
    budget["seed"] = 0 if seed is None else int(seed[0])
    expected = kernel_cusum(X, y, 4, rbf(0.3), margin=0.5, **budget)
    assert cusum.history_["rank_loss"] == [np.abs(expected["predictions"] - y).mean()]
    order = np.argsort(expected["pool"].slots)
    assert_array_equal(cusum.support_, np.array(expected["pool"].names)[order])
    assert_allclose(cusum.dual_coef_, expected["alpha"][order].T, rtol=1e-6, atol=1e-8)
    members = rc.KernelOAPBPM.published(4, 0.5, **params).fit(X, y)
    seed = members._state.pool.get("evict_seed")
    budget["seed"] = 0 if seed is None else int(seed[0])
    seed = int(members._state.model["seed"][0])
    masks = np.array([[times(seed, j, t, 0.5) for t in range(len(X))] for j in range(4)])
    expected = kernel_oap(X, y, 4, rbf(0.3), masks, **budget)
    order = np.argsort(expected["pool"].slots)
    assert_array_equal(members.support_, np.array(expected["pool"].names)[order])
    assert_allclose(
        members.member_dual_coef_.todense(), expected["alpha"][order, :4].T, rtol=1e-6, atol=1e-8
    )
    assert_allclose(members.dual_coef_[0], expected["alpha"][order, 4] / 4, rtol=1e-6, atol=1e-8)
    assert_array_equal(members.member_thresholds_, expected["b"])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_budget_that_is_never_reached_changes_nothing(policy, epochs):
    X, y = problem(200)
    free = rc.KernelPRank.published(gamma=0.3, max_iter=epochs, average=True).fit(X, y)
    held = rc.KernelPRank.published(
        gamma=0.3,
        max_iter=epochs,
        average=True,
        budget=200,
        budget_policy=policy,
        decay=0.0,
        projection_tol=0.0,
    ).fit(X, y)
    assert held.history_ == free.history_
    assert_array_equal(held.support_, free.support_)
    assert_array_equal(held.dual_coef_, free.dual_coef_)
    assert_array_equal(held.thresholds_, free.thresholds_)


@pytest.mark.parametrize(
    "learner",
    [
        rc.KernelPRank.published(average=True),
        rc.KernelPRank.published(kernel="poly", degree=3, coef0=1.0),
        rc.KernelCuSumRank.published(margin=0.5),
        rc.KernelOAPBPM.published(5, 0.6, random_state=0),
        rc.KernelOAPBPM.published(3, sampling="poisson", average_members=True, random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", ["dense64", "csr32"])
def test_block_sums_equal_row_by_row_sums(learner, form):
    # Without a budget the known support vectors are summed ahead, in chunks of 1024; with one, not.
    X, y = problem(3000, d=5, k=5)
    rng = np.random.default_rng(0)
    y = rng.permutation(y)  # noise: most rows become support vectors
    X = FORMS[form](X)
    learner = clone(learner).set_params(gamma=0.3)
    free = clone(learner).fit(X, y)
    held = clone(learner).set_params(budget=3000).fit(X, y)
    assert free.support_.size > 2 * 1024 + 64
    assert_array_equal(free.support_, held.support_)
    assert_array_equal(free.dual_coef_, held.dual_coef_)
    name = "thresholds_" if hasattr(free, "thresholds_") else "intercept_"
    assert_array_equal(getattr(free, name), getattr(held, name))
    assert free.history_ == held.history_
    assert_array_equal(free.predict(X), held.predict(X))


@pytest.mark.parametrize("seed", range(5))
def test_projectron_in_a_space_of_six_dimensions_keeps_six(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((3000, 2))
    y = 1 + np.digitize(
        10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + 0.125 * rng.normal(size=3000), [-1, -0.1, 0.25, 1]
    )
    params = {"kernel": "poly", "gamma": 1.0, "degree": 2, "coef0": 1.0}
    free = rc.KernelPRank.published(**params).fit(X, y)
    held = rc.KernelPRank.published(**params, budget=100, budget_policy="projectron").fit(X, y)
    assert held.support_.size <= 6 < free.support_.size
    assert held.history_ == free.history_
    assert_array_equal(held.predict(X), free.predict(X))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("form", [FORMS["dense32"], FORMS["csr64"]], ids=["dense", "csr"])
def test_memory_is_flat_under_a_budget(policy, form):
    rng = np.random.default_rng(0)
    learner = rc.KernelPRank.published(gamma=0.5, budget=20, budget_policy=policy, random_state=0)
    sizes = []
    for _ in range(40):
        X = rng.normal(size=(100, 6))
        y = 1 + np.digitize(np.sin(3 * X[:, 0]), [-0.5, 0.5])
        learner.partial_fit(form(X), y, classes=[1, 2, 3])
        sizes.append(sum(array.nbytes for array in learner._state.pool.values()))
    assert len(set(sizes[10:])) == 1
    assert learner.support_.size == 20


# ------------------------------------------------------------------------ other kernels


def sines(A, B):
    """Compute the rbf kernel as a user's function."""
    A, B = (M.toarray() if sp.issparse(M) else np.asarray(M, dtype=np.float64) for M in (A, B))
    return rbf_kernel(A, B, gamma=0.3)


@pytest.mark.parametrize(
    "learner",
    [
        rc.KernelPRank.published(average=True),
        rc.KernelCuSumRank.published(update="pa"),
        rc.KernelOAPBPM.published(8, random_state=0),
        rc.KernelPRank.published(budget=20, budget_policy="projectron"),
        rc.KernelPRank.published(budget=20, budget_policy="forgetron"),
    ],
    ids=str,
)
@pytest.mark.parametrize("epochs", [1, 2])
def test_functions_and_precomputed_values_equal_built_in_kernels(learner, epochs):
    X, y = problem(200)
    gram = sines(X, X)
    params = learner.get_params() | {"gamma": 0.3, "max_iter": epochs}
    kind = type(learner)
    named = kind(**params).fit(X, y)
    for kernel, rows in [(sines, X), (sines, sp.csr_array(X)), ("precomputed", gram),
                         ("precomputed", sp.csr_array(gram))]:  # fmt: skip
        other = kind(**params | {"kernel": kernel}).fit(rows, y)
        assert other.history_ == named.history_
        assert_array_equal(other.support_, named.support_)
        # values that round otherwise, in sums of a hundred terms
        assert_allclose(other.dual_coef_, named.dual_coef_, rtol=1e-6, atol=1e-8)
        assert_allclose(other.project(rows), named.project(X), rtol=1e-6, atol=1e-6)
        if epochs == 1:
            chunks = kind(**params | {"kernel": kernel})
            for start in range(0, 200, 50):
                part = slice(start, start + 50)
                chunks.partial_fit(rows[part], y[part], classes=[1, 2, 3, 4])
            assert chunks.history_ == named.history_
            assert_allclose(chunks.dual_coef_, other.dual_coef_, rtol=1e-6, atol=1e-8)


def test_searches_slice_precomputed_values():
    X, y = problem(200)
    gram = rbf_kernel(X, gamma=0.3)
    by_values = cross_val_score(
        rc.KernelPRank.published(kernel="precomputed", max_iter=3), gram, y, cv=4
    )
    by_rows = cross_val_score(rc.KernelPRank.published(gamma=0.3, max_iter=3), X, y, cv=4)
    assert_array_equal(by_values, by_rows)
    search = GridSearchCV(
        rc.KernelPRank.published(kernel="precomputed"), {"max_iter": [1, 3]}, cv=4
    )
    assert search.fit(gram, y).best_estimator_.support_vectors_.shape == (0, 0)


def test_precomputed_values_must_cover_the_rows(tmp_path):
    X, y = problem(40)
    gram = rbf_kernel(X)
    with pytest.raises(ValueError, match="for each learned row, .* got 20 columns for 40 rows"):
        rc.KernelPRank.published(kernel="precomputed").fit(gram[:, :20], y)
    model = rc.KernelPRank.published(kernel="precomputed").fit(gram, y)
    before = model.n_iter_, model.history_
    with pytest.raises(ValueError, match="got 40 columns for 41 rows"):
        model.partial_fit(gram[:1], y[:1])
    assert (model.n_iter_, model.history_) == before
    rc.save(model, tmp_path / "model")
    assert_array_equal(rc.load(tmp_path / "model").predict(gram), model.predict(gram))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.zeros((2, 2)), r"must return an array of shape \(40, 40\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "must return finite values"),
        (lambda A, B: np.full((len(A), len(B)), np.inf), "must return finite values"),
        (lambda A, B: np.full((len(A), len(B)), -np.inf), "must return finite values"),
    ],
    ids=["shape", "nan", "inf", "-inf"],
)
def test_bad_functions_are_rejected(kernel, message):
    X, y = problem(40)
    with pytest.raises(ValueError, match=message):
        rc.KernelPRank.published(kernel=kernel).fit(X, y)


def test_functions_are_not_saved(tmp_path):
    X, y = problem(40)
    model = rc.KernelPRank.published(kernel=sines).fit(X, y)
    with pytest.raises(TypeError, match="save requires a kernel by name"):
        rc.save(model, tmp_path / "model")
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


@form
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
def test_gamma_equals_that_of_svc(form, gamma):
    X, y = problem(60)
    X = form(X)
    # the mean and the variance of float32 are summed in double here
    assert_allclose(
        rc.KernelPRank.published(gamma=gamma).fit(X, y).gamma_,
        SVC(gamma=gamma).fit(X, y)._gamma,
        rtol=1e-5,
    )
    assert rc.KernelPRank.published().fit(np.ones((4, 2)), [1, 2, 1, 2]).gamma_ == 1.0


def test_gamma_half_is_half_of_scale():
    X, y = problem(60)
    for learner in (rc.KernelPRank(), rc.KernelCuSumRank(), rc.KernelOAPBPM(3, gamma="half")):
        assert learner.gamma == "half"
        whole = clone(learner).set_params(gamma="scale").fit(X, y).gamma_
        assert learner.fit(X, y).gamma_ == whole / 2


# ------------------------------------------------------------------------ faults


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"kernel": "sigmoid"}, ValueError, "kernel must be one of 'linear', 'poly', 'rbf'"),
        ({"gamma": "wide"}, ValueError, "gamma must be one of 'scale', 'half', 'auto'"),
        ({"gamma": -1.0}, ValueError, "gamma"),
        ({"degree": 0}, ValueError, "degree"),
        ({"degree": 1.5}, TypeError, "degree"),
        ({"budget": 0}, ValueError, "budget"),
        ({"budget_policy": "newest"}, ValueError, "budget_policy must be one of 'oldest'"),
        ({"decay": 1.5}, ValueError, "decay"),
        ({"projection_tol": -1e-9}, ValueError, "projection_tol"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"average": 1}, TypeError, "average"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(params, error, message):
    X, y = problem(20)
    with pytest.raises(error, match=message):
        rc.KernelPRank.published(**params).fit(X, y)


@every
@pytest.mark.parametrize("form", [FORMS["dense64"], FORMS["csr64"]], ids=["dense", "csr"])
def test_interrupted_partial_fit_has_learned_the_blocks_before(learner, form, monkeypatch):
    from rankcore.progress import watch

    X, y = problem(300)
    monkeypatch.setattr(type(learner), "_block_rows", lambda self, rows, state: 10)
    learner = type(learner)(**learner.get_params() | {"gamma": 0.3})
    model = learner.partial_fit(form(X[:60]), y[:60], classes=[1, 2, 3, 4])
    seen = []

    def interrupt(progress):
        seen.append(progress.done)
        if len(seen) == 15:
            raise KeyboardInterrupt

    with watch(interrupt), pytest.raises(KeyboardInterrupt):
        model.partial_fit(form(X[60:]), y[60:])
    alone = type(learner)(**learner.get_params()).partial_fit(
        form(X[:60]), y[:60], classes=[1, 2, 3, 4]
    )
    alone.partial_fit(form(X[60:210]), y[60:210])
    assert_array_equal(model.project(X), alone.project(X))
    for one in [model, alone]:
        one.partial_fit(form(X[210:]), y[210:])
    assert_array_equal(model.project(X), alone.project(X))


def test_overflow_is_an_error():
    X = np.array([[1e200], [-1e200], [1e200], [1.0]])
    with pytest.raises(ValueError, match="overflowed"):
        rc.KernelPRank.published(kernel="linear").fit(X, [1, 2, 1, 2])
    with pytest.raises(ValueError, match="overflowed"):
        rc.KernelPRank.published(kernel="poly", degree=40, gamma=1.0).fit(
            1e30 * np.arange(1, 5)[:, np.newaxis], [1, 2, 1, 2]
        )


@pytest.mark.parametrize("standardize", [False, "auto"])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize(
    "learner", [*LEARNERS, rc.KernelCuSumRank.published(update="perceptron")], ids=str
)
def test_row_whose_own_kernel_value_overflows_keeps_the_rows_before(
    learner, kernel, standardize, tmp_path
):
    X, y = problem(60)
    X[27] = 1e200
    learner = clone(learner).set_params(kernel=kernel, standardize=standardize)
    errors = []
    for label in (1, 4):  # at least one of them is a mistake
        y[27] = label
        found, expected = (
            clone(learner).partial_fit(X[:20], y[:20], classes=[1, 2, 3, 4]) for _ in range(2)
        )
        try:
            found.partial_fit(X[20:40], y[20:40])
        except ValueError as error:
            errors.append(str(error))
            expected.partial_fit(X[20:27], y[20:27])
            assert_array_equal(found.project(X[:20]), expected.project(X[:20]))
        rc.save(found, tmp_path / "model")
        assert_array_equal(rc.load(tmp_path / "model").project(X[:20]), found.project(X[:20]))
        found.partial_fit(X[40:], y[40:])
    assert errors
    assert all("the score of row 7 overflowed" in message for message in errors)


@pytest.mark.parametrize("form", [FORMS["dense64"], FORMS["csr64"]], ids=["dense", "csr"])
@pytest.mark.parametrize("budget", [None, 20])
def test_threads_may_predict_while_one_learns(form, budget):
    from threading import Thread

    X, y = problem(2000)
    learner = rc.KernelPRank.published(gamma=0.3, budget=budget)
    model = clone(learner).partial_fit(form(X[:50]), y[:50], classes=[1, 2, 3, 4])
    expected, seen, failed = {0: model.project(X[:30])}, [], []
    alone = clone(learner).partial_fit(form(X[:50]), y[:50], classes=[1, 2, 3, 4])
    for start in range(50, 2000, 50):
        alone.partial_fit(form(X[start : start + 50]), y[start : start + 50])
        expected[start] = alone.project(X[:30])
    answers = {scores.tobytes() for scores in expected.values()}

    def look():
        try:
            while len(seen) < 10**6 and not done:
                seen.append(model.project(X[:30]).tobytes())
        except BaseException as error:  # reported below, in the thread of the test
            failed.append(error)

    done = []
    threads = [Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for start in range(50, 2000, 50):
        model.partial_fit(form(X[start : start + 50]), y[start : start + 50])
    done.append(True)
    for thread in threads:
        thread.join()
    assert failed == []
    assert seen
    assert set(seen) <= answers


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("slots", lambda a: a.fill(10**6)),
        ("slots", lambda a: a.fill(0)),
        ("sizes", lambda a: a.fill(10**6)),
        ("starts", lambda a: a.fill(10**6)),
        ("lengths", lambda a: a.fill(-1)),
        ("indices", lambda a: a.fill(10**6)),
        ("support", lambda a: a.fill(-1)),
        ("book", lambda a: a.fill(10**6)),
        ("steps", lambda a: a.__setitem__(0, 10**6)),
    ],
)
def test_load_rejects_indices_out_of_range(name, spoil):
    X, y = problem(100)
    model = rc.KernelPRank.published(gamma=0.3).fit(sp.csr_array(X), y)
    spec = model._spec()
    arrays = {key: array.copy() for key, array in spec.arrays.items()}
    again = rc.KernelPRank.published(gamma=0.3)
    again._restore(replace(spec, arrays=arrays))
    assert_array_equal(again.project(X), model.project(X))
    spoil(arrays[name])
    with pytest.raises(
        ValueError, match=r"out of range|in the order|within|columns of support vectors|ascend"
    ):
        rc.KernelPRank.published(gamma=0.3)._restore(replace(spec, arrays=arrays))


@pytest.mark.parametrize("learner", [rc.KernelPRank, rc.KernelCuSumRank, rc.KernelOAPBPM])
def test_budgets_up_to_int64_are_accepted(learner):
    X, y = [[0.0], [1.0], [2.0]], [1, 2, 3]
    made = {"n_estimators": 2} if learner is rc.KernelOAPBPM else {}
    assert learner(**made, budget=2**63 - 1).fit(X, y).support_.size <= 3
    with pytest.raises(
        ValueError, match=rf"budget must be an integer in \[1, {2**63 - 1}\] or None; got {2**63}"
    ):
        learner(**made, budget=2**63).fit(X, y)
