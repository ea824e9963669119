"""The structured perceptron in dual form: parity, primal and dual, budgets, streams, errors."""

import pickle
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankcore as rc
from kernel_problems import FORMS, KERNELS, POLICIES, problem
from kernel_structured_problems import (
    COSTS,
    PROBLEMS,
    KernelCuSum,
    KernelRanking,
    Multiclass,
    Tagging,
    known,
    plain,
    rows,
    sentences,
)
from rankcore.ordinal.kernel import dual
from rankcore.structured import KernelStructuredPerceptron, KernelTask, StructuredPerceptron, Task
from reference.kernel import rbf
from strategies import examples, ordinal_problems

# -------------------------------------------------------------------- parity


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("update", "margin"),
    [("perceptron", 0.0), ("perceptron", 0.7), ("pa", 0.7), ("pa1", 0.0), ("pa2", 0.7)],
)
def test_kernel_learner_equals_the_plain_form(name, kernel, update, margin):
    task, (X, Y) = PROBLEMS[name]
    function, params = KERNELS[kernel]
    rule = {"update": update, "C": 0.3, "margin": margin}
    expected = plain(task, X, Y, function, epochs=2, **rule)
    model = KernelStructuredPerceptron(task, **params, **rule, max_iter=2).fit(X, Y)
    losses = expected["losses"].reshape(2, -1).mean(axis=1)
    assert_allclose(model.history_["loss"], losses, rtol=1e-15)
    assert expected["losses"].any()
    first = np.cumsum([0, *(np.reshape(x, (-1, np.shape(X[-1])[-1])).shape[0] for x in X)])
    names = [first[i] + p for i, p in expected["pool"].names]
    assert_array_equal(model.support_, names)
    # steps that are quotients are formed in another order, each fed by those before it
    exact = update == "perceptron"
    check = assert_array_equal if exact else lambda a, b: assert_allclose(a, b, 1e-7, 1e-9)
    check(model.dual_coef_, expected["alpha"].T)
    check(model.coef_, expected["w"])
    mean = clone(model).set_params(average=True).fit(X, Y)
    assert_allclose(mean.dual_coef_, expected["alpha_mean"].T, rtol=1e-7, atol=1e-9)
    assert_allclose(mean.coef_, expected["w_mean"], rtol=1e-7, atol=1e-9)
    assert mean.history_ == model.history_


def test_predictions_follow_from_the_attributes():
    task, (X, Y) = PROBLEMS["sentences"]
    model = KernelStructuredPerceptron(task, gamma=0.3, average=True, max_iter=3).fit(X, Y)
    for x, found in zip(X, model.predict(X), strict=True):
        if len(x):
            table = rbf_kernel(x, model.support_vectors_, gamma=0.3) @ model.dual_coef_.T
            best = max(
                sum(table[p, a] for p, a in enumerate(z))
                + sum(model.coef_[3 * a + b] for a, b in pairwise(z))
                for z in task.candidates(x)
            )
            score = table[np.arange(len(x)), list(found)].sum()
            score += sum(model.coef_[3 * a + b] for a, b in pairwise(found))
            assert_allclose(score, best, rtol=1e-9, atol=1e-9)
        else:
            assert found == ()
    assert -0.5 < model.score(X, Y) <= 0
    assert model.gamma_ == 0.3


# -------------------------------------------------------------------- primal = dual


@dataclass(frozen=True)
class Primal(Task):
    """The linear twin of a task: a block of weights for each label, then the plain features."""

    dual: KernelTask
    map: object  # of parts to explicit features

    def n_parameters(self, X):
        n = max(self.map(self.dual.parts(x)).shape[1] for x in X)
        return self.dual.n_labels(X) * n + self.dual.n_parameters(X)

    def candidates(self, x):
        return self.dual.candidates(x)

    def features(self, x, y):
        vectors = self.map(self.dual.parts(x))
        parts, labels = self.dual.atoms(x, y)
        n = vectors.shape[1]
        indices = [label * n + np.arange(n) for label in labels]
        indices, values = self.dual.features(x, y)
        blocks = [label * n + np.arange(n) for label in labels]
        offset = self.dual.n_labels([x]) * n
        return (
            np.concatenate([*blocks, np.array(indices, dtype=int) + offset]).astype(int),
            np.concatenate([*(vectors[part] for part in parts), values]),
        )

    def loss(self, y, z):
        return self.dual.loss(y, z)


def quadratic(X):
    """Return the features of (x.z + 1)**2 in two dimensions."""
    x1, x2 = np.reshape(X, (-1, 2)).T
    root = np.sqrt(2)
    columns = [np.ones_like(x1), root * x1, root * x2, x1**2, root * x1 * x2, x2**2]
    return np.column_stack(columns)


QUADRATIC = {"kernel": "poly", "gamma": 1.0, "degree": 2, "coef0": 1.0}
RULES = [
    {},
    {"average": True, "margin": 0.7},
    {"update": "pa"},
    {"update": "pa1", "C": 0.05, "margin": 1.0},
    {"update": "pa2", "C": 0.5, "average": True},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("name", ["classes", "sentences"])
def test_dual_learners_predict_as_their_linear_forms(name, rule):
    task, (X, Y) = PROBLEMS[name]
    X = [np.asarray(x)[..., :2] + 1 / 16 for x in X]  # off the lattice, where sums round to ties
    primal = StructuredPerceptron(Primal(task, quadratic), max_iter=3, **rule).fit(X, Y)
    dual = KernelStructuredPerceptron(task, **QUADRATIC, max_iter=3, **rule).fit(X, Y)
    assert dual.history_ == primal.history_
    assert dual.history_["mistakes"][-1] > 0
    assert_array_equal(dual.update_loss_curve_, primal.update_loss_curve_)
    assert dual.predict(X) == primal.predict(X)
    weights = primal.coef_[: 6 * 3].reshape(3, 6)
    assert_allclose(dual.dual_coef_ @ quadratic(dual.support_vectors_), weights, 1e-8, 1e-8)
    assert_allclose(dual.coef_, primal.coef_[6 * 3 :], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("rule", RULES[:2], ids=str)
def test_linear_kernel_on_sparse_counts_equals_the_linear_learner(rule):
    rng = np.random.default_rng(4)
    X = sp.random(200, 300, density=0.03, random_state=rng, format="csr")
    X.data = rng.integers(1, 5, size=X.nnz).astype(np.float64)  # counts: sums are exact
    Y = rng.integers(3, size=200).tolist()
    task, inputs = Multiclass(COSTS), [X[[i]] for i in range(200)]
    twin = Primal(task, lambda x: x.toarray())
    primal = StructuredPerceptron(twin, max_iter=3, **rule).fit(inputs, Y)
    dual = KernelStructuredPerceptron(task, kernel="linear", max_iter=3, **rule).fit(inputs, Y)
    assert sp.issparse(dual.support_vectors_)
    assert dual.history_ == primal.history_
    assert dual.predict(inputs) == primal.predict(inputs)


@given(
    problem=ordinal_problems(),
    tie=st.sampled_from(["high", "low"]),
    margin=st.sampled_from([0.0, 1.0, 2.5]),
    average=st.booleans(),
    shuffle=st.booleans(),
)
@settings(max_examples=examples(40), deadline=None)
def test_structured_perceptron_equals_kernel_cusum_rank(problem, tie, margin, average, shuffle):
    X, y, k = problem
    X = X.toarray().astype(float)
    shared = {"kernel": "poly", "gamma": 1.0, "coef0": 1.0, "average": average, "max_iter": 2}
    shared |= {"margin": margin, "shuffle": shuffle, "random_state": 3}
    compiled = rc.KernelCuSumRank.published(tie_break=tie, **shared).fit(
        X, y, classes=range(1, k + 1)
    )
    model = KernelStructuredPerceptron(KernelCuSum(k, tie), **shared).fit(X, y.tolist())
    assert model.history_["loss"] == compiled.history_["rank_loss"]
    assert_array_equal(model.support_, compiled.support_)
    assert_array_equal(model.dual_coef_, compiled.dual_coef_)
    assert_array_equal(-model.coef_, compiled.intercept_)
    # averages are quotients, whose sums in another order may round a tie to either side
    lead = compiled.decision_function(X)
    lead = lead.max(axis=1) if lead.ndim == 2 else np.abs(lead)
    decided = lead > 1e-9 if average else lead >= 0
    assert_array_equal(np.array(model.predict(X))[decided], compiled.predict(X)[decided])


@pytest.mark.parametrize("update", ["pa", "pa1", "pa2"])
def test_structured_perceptron_equals_passive_aggressive_kernel_cusum_rank(update):
    X, y = problem()
    shared = {"gamma": 0.3, "update": update, "C": 0.2, "margin": 1.0, "max_iter": 2}
    compiled = rc.KernelCuSumRank.published(**shared).fit(X, y)
    model = KernelStructuredPerceptron(KernelCuSum(4), **shared).fit(X, y.tolist())
    assert model.history_["loss"] == compiled.history_["rank_loss"]
    # sums in another order, each step fed by those before it
    assert_allclose(model.dual_coef_, compiled.dual_coef_, rtol=1e-7, atol=1e-9)


@given(problem=ordinal_problems(), average=st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_structured_perceptron_equals_strict_kernel_prank(problem, average):
    X, y, k = problem
    X = X.toarray().astype(float)
    shared = {"kernel": "linear", "average": average, "max_iter": 2}
    compiled = rc.KernelPRank.published(tie="strict", **shared).fit(X, y, classes=range(1, k + 1))
    model = KernelStructuredPerceptron(KernelRanking(k), **shared).fit(X, y.tolist())
    assert model.history_["loss"] == compiled.history_["rank_loss"]
    assert_array_equal(model.dual_coef_, compiled.dual_coef_)
    # a difference of two quotients here, one quotient there
    assert_allclose(model.coef_, compiled.thresholds_, rtol=1e-14, atol=1e-14)


# -------------------------------------------------------------------- budgets


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_budgets_equal_the_plain_form(name, policy):
    epochs = 3
    task, (X, Y) = PROBLEMS[name]
    params = {"budget": 15, "decay": 0.02}
    model = KernelStructuredPerceptron(
        task,
        gamma=0.3,
        **params,
        budget_policy=policy,
        projection_tol=1e-3,
        average=True,
        max_iter=epochs,
        random_state=5,
    ).fit(X, Y)
    seed = model._state.pool.get("evict_seed")
    params |= {"policy": policy, "tol": 1e-3, "seed": 0 if seed is None else int(seed[0])}
    expected = plain(task, X, Y, rbf(0.3), epochs=epochs, **params)
    losses = expected["losses"].reshape(epochs, -1).mean(axis=1)
    assert_allclose(model.history_["loss"], losses, rtol=1e-15)
    assert model.support_.size <= expected["sizes"].max() <= 15
    order = np.argsort(expected["pool"].slots)
    # rounding of inverses and of factors, each fed by those before it
    scale = np.abs(expected["alpha"]).max()
    found = expected["alpha_mean"][order].T
    assert_allclose(model.dual_coef_, found, rtol=1e-6, atol=1e-6 * scale)
    assert_allclose(model.coef_, expected["w_mean"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epochs", [1, 3])
def test_a_budget_that_is_never_reached_changes_nothing(policy, epochs):
    task, (X, Y) = PROBLEMS["sentences"]
    free = KernelStructuredPerceptron(task, gamma=0.3, max_iter=epochs, average=True).fit(X, Y)
    held = clone(free).set_params(
        budget=200, budget_policy=policy, decay=0.0, projection_tol=0.0, random_state=0
    )
    held.fit(X, Y)
    assert held.history_ == free.history_
    assert_array_equal(held.support_, free.support_)
    assert_array_equal(held.dual_coef_, free.dual_coef_)
    assert_array_equal(held.coef_, free.coef_)


@pytest.mark.parametrize("seed", range(3))
def test_projectron_in_a_space_of_six_dimensions_keeps_six(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((1000, 2))
    Y = np.digitize(10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5), [-0.5, 0.5]).tolist()
    free = KernelStructuredPerceptron(Multiclass(COSTS), **QUADRATIC).fit(X, Y)
    held = clone(free).set_params(budget=100, budget_policy="projectron").fit(X, Y)
    assert held.support_.size <= 6 < free.support_.size
    assert held.history_ == free.history_
    assert held.predict(X) == free.predict(X)


@pytest.mark.parametrize("policy", POLICIES)
def test_memory_is_flat_under_a_budget(policy):
    rng = np.random.default_rng(0)
    model = KernelStructuredPerceptron(
        Multiclass(COSTS), gamma=0.5, budget=20, budget_policy=policy, random_state=0
    )
    sizes = []
    for _ in range(20):
        X = rng.normal(size=(100, 6))
        model.partial_fit(X, rng.integers(3, size=100).tolist())
        sizes.append(sum(array.nbytes for array in model._state.pool.values()))
    assert len(set(sizes[5:])) == 1
    assert model.support_.size == 20


# -------------------------------------------------------------------- blocks and streams

LEARNERS = [
    {"average": True},
    {"update": "pa1", "C": 0.3, "margin": 0.5},
    {"kernel": "poly", "update": "pa2"},
    *[{"budget": 12, "budget_policy": p, "average": True, "random_state": 1} for p in POLICIES],
]


@pytest.mark.parametrize("params", LEARNERS, ids=str)
@pytest.mark.parametrize("form", ["dense64", "csr32"])
def test_blocks_and_chunks_do_not_change_a_bit(params, form, monkeypatch):
    X, Y = sentences(50)
    X = [FORMS[form](x) for x in X]
    model = KernelStructuredPerceptron(Tagging(3), **{"gamma": 0.3} | params).fit(X, Y)
    expected = known(model)
    for block in [1, 3, 1000]:
        monkeypatch.setattr(dual, "BLOCK_ROWS", block)
        monkeypatch.setattr(dual, "LEAST_ROWS", 1)
        np.testing.assert_equal(known(clone(model).fit(X, Y)), expected)
    monkeypatch.undo()
    chunks = clone(model)
    for start, stop in pairwise([0, 1, 2, 3, 20, 21, 50]):
        chunks.partial_fit(X[start:stop], Y[start:stop])
        chunks = pickle.loads(pickle.dumps(chunks))
    np.testing.assert_equal(known(chunks), expected)
    assert chunks.history_ == model.history_
    assert chunks.predict(X) == model.predict(X)


@pytest.mark.parametrize("params", LEARNERS, ids=str)
def test_dense_equals_sparse_to_the_bit(params):
    X, Y = sentences(50)
    dense = KernelStructuredPerceptron(Tagging(3), **{"gamma": 0.3} | params).fit(X, Y)
    sparse = [sp.csr_array(x) for x in X]
    mixed = [x if i % 3 else sp.csr_array(x) for i, x in enumerate(X)]
    for inputs in [sparse, mixed]:
        other = clone(dense).fit(inputs, Y)
        assert sp.issparse(other.support_vectors_)
        assert_array_equal(other.dual_coef_, dense.dual_coef_)
        assert_array_equal(other.coef_, dense.coef_)
        assert other.predict(X) == dense.predict(inputs)
    stream = clone(dense).partial_fit(X[:25], Y[:25]).partial_fit(sparse[25:], Y[25:])
    assert_array_equal(stream.dual_coef_, dense.dual_coef_)


def test_shuffled_passes_equal_passes_over_shuffled_examples():
    task, (X, Y) = PROBLEMS["sentences"]
    model = KernelStructuredPerceptron(task, gamma=0.3, shuffle=True, random_state=2).fit(X, Y)
    order = np.arange(len(X), dtype=np.int32)
    np.random.default_rng(2).shuffle(order)
    expected = plain(task, [X[i] for i in order], [Y[i] for i in order], rbf(0.3))
    assert_array_equal(model.dual_coef_, expected["alpha"].T)
    assert_array_equal(model.coef_, expected["w"])


def test_float32_parts_make_float32_support_vectors():
    X, Y = rows(100)
    task = Multiclass(COSTS)
    single = KernelStructuredPerceptron(task, gamma=0.3).fit(X.astype(np.float32), Y)
    assert single.support_vectors_.dtype == np.float32
    assert single.predict(X) == KernelStructuredPerceptron(task, gamma=0.3).fit(X, Y).predict(X)
    single.partial_fit(X, Y)
    assert single.support_vectors_.dtype == np.float64


def test_a_kernel_may_be_a_function():
    X, Y = rows(100)
    for rule in [{}, {"update": "pa"}, {"budget": 20, "budget_policy": "projectron"}]:
        named = KernelStructuredPerceptron(Multiclass(COSTS), gamma=0.3, max_iter=2, **rule)
        named.fit(X, Y)
        own = clone(named).set_params(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3)).fit(X, Y)
        assert own.history_ == named.history_
        assert_allclose(own.dual_coef_, named.dual_coef_, rtol=1e-7, atol=1e-9)
        assert own.predict(X) == named.predict(X)


def test_gamma_depends_on_the_parts():
    X, Y = sentences(60)
    model = KernelStructuredPerceptron(Tagging(3)).fit(X, Y)
    assert_allclose(model.gamma_, 1 / (3 * np.concatenate(X).var()), rtol=1e-12)
    empty = clone(model).partial_fit([np.empty((0, 3))], [()])
    assert empty.partial_fit(X, Y).gamma_ == model.gamma_


def test_searches_run_and_threads_change_nothing():
    X, Y = rows(120)
    model = KernelStructuredPerceptron(Multiclass(COSTS), max_iter=3)
    search = GridSearchCV(model, {"gamma": [0.001, 0.3]}, cv=3).fit(list(X), Y)
    expected = [
        cross_val_score(clone(model).set_params(gamma=gamma), X, Y, cv=3).mean()
        for gamma in [0.001, 0.3]
    ]
    assert_array_equal(search.cv_results_["mean_test_score"], expected)
    found = search.best_estimator_
    assert clone(found).set_params(n_jobs=2).fit(X, Y).predict(X) == found.fit(X, Y).predict(X)


def test_curved_classes_are_learned():
    X, Y = rows(600)
    linear = KernelStructuredPerceptron(Multiclass(COSTS), kernel="linear", average=True)
    curved = KernelStructuredPerceptron(Multiclass(COSTS), gamma=0.3, average=True)
    for model in [linear, curved]:
        model.set_params(max_iter=5).fit(X[:400], Y[:400])
    assert curved.score(X[400:], Y[400:]) > linear.score(X[400:], Y[400:]) + 0.1


# -------------------------------------------------------------------- failures


class Failing(Tagging):
    """Raises an error at the nth search."""

    left = 0
    error = KeyboardInterrupt

    def argmax(self, scores, weights, x, y=None, margin=0.0):
        Failing.left -= 1
        if Failing.left == 0:
            raise Failing.error
        return super().argmax(scores, weights, x, y, margin)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_changes_nothing(method, error):
    X, Y = sentences(30)
    Failing.error = error
    model = KernelStructuredPerceptron(Failing(3), gamma=0.3, average=True)
    Failing.left = 5
    with pytest.raises(error):
        getattr(model, method)(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(NotFittedError):
        _ = model.support_
    Failing.left = 0
    model.fit(X, Y)
    before = known(model)
    for n in [1, 7, 30]:
        Failing.left = n
        with pytest.raises(error):
            getattr(model, method)(X, Y)
        np.testing.assert_equal(known(model), before)
    Failing.left = 0
    twin = KernelStructuredPerceptron(Tagging(3), gamma=0.3, average=True).fit(X, Y)
    np.testing.assert_equal(known(model.partial_fit(X, Y)), known(twin.partial_fit(X, Y)))


METHODS = ["n_labels", "parts", "candidates", "atoms", "n_parameters", "features", "argmax", "loss"]


@pytest.mark.parametrize("name", METHODS)
def test_a_task_without_a_method_is_rejected(name):
    kind = type("Partial", (Tagging,), {name: None})
    with pytest.raises(TypeError, match=f"methods of rankcore.structured.KernelTask.*lacks {name}"):
        KernelStructuredPerceptron(kind(3)).fit(*sentences(5))


@pytest.mark.parametrize(
    ("method", "value", "message"),
    [
        ("n_labels", 0, "n_labels must return a positive integer; got 0"),
        ("n_labels", 2.0, "n_labels must return a positive integer; got 2.0"),
        ("n_parameters", -1, "n_parameters must return an integer, at least 0; got -1"),
        (
            "parts",
            [1.0, 2.0],
            r"parts must return a matrix with one row per part; got shape \(2,",
        ),
        ("parts", [["a"]], "parts must be numeric"),
        ("parts", [[np.nan]], "parts.*NaN"),
        ("parts", np.empty((1, 0)), r"Found 0 feature\(s\)"),
        ("atoms", None, "atoms must return a pair of equally long"),
        ("atoms", ([0], [0, 1]), "atoms must return a pair of equally long"),
        ("atoms", ([0.0], [0]), "got dtypes float64 and int64"),
        ("atoms", ([1], [0]), "parts from 0 to 0 of the input.*got parts from 1 to 1"),
        ("atoms", ([0], [3]), "labels from 0 to 2; got labels from 3 to 3"),
        ("atoms", ([0], [-1]), "got labels from -1 to -1"),
        ("features", ([0], [1.0]), "features must return a pair.*got indices from 0 to 0"),
        ("loss", -1, "loss must return a finite number, at least 0; got -1"),
        ("candidates", [], "candidates must return at least one output"),
    ],
)
def test_malformed_answers_of_tasks_are_rejected(method, value, message):
    kind = type("Bad", (Multiclass,), {method: lambda self, *args: value})
    model = KernelStructuredPerceptron(kind(COSTS), gamma=1.0)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit([[1.0], [2.0]], [0, 2])
    assert not hasattr(model, "coef_")


def test_rows_of_other_widths_are_rejected():
    task = Tagging(3)
    with pytest.raises(ValueError, match=r"one row per part and 2 columns; got shape \(1, 3\)"):
        KernelStructuredPerceptron(task).fit([np.ones((1, 2)), np.ones((1, 3))], [(0,), (1,)])
    model = KernelStructuredPerceptron(task, gamma=1.0).fit([np.ones((1, 2))], [(1,)])
    before = known(model)
    for call in [model.predict, lambda X: model.partial_fit(X, [(1,)])]:
        with pytest.raises(ValueError, match="number of columns in parts is 3 for this X.*has 2"):
            call([np.ones((1, 3))])
    np.testing.assert_equal(known(model), before)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"kernel": "precomputed"}, ValueError, "kernel must be one of 'linear', 'poly', 'rbf'"),
        ({"gamma": "wide"}, ValueError, "gamma must be one of 'scale', 'half', 'auto'"),
        ({"budget": 0}, ValueError, "budget must be an integer in "),
        ({"budget_policy": "newest"}, ValueError, "budget_policy must be one of"),
        ({"margin": -1}, ValueError, "margin must be a number in "),
        ({"average": 1}, TypeError, "average must be True or False"),
    ],
)
def test_bad_parameters_are_rejected(params, error, message):
    with pytest.raises(error, match=message):
        KernelStructuredPerceptron(Multiclass(COSTS), **params).fit(*rows(5))


@pytest.mark.parametrize("change", [{"gamma": 0.5}, {"budget": 5}, {"average": True}])
def test_built_in_parameters_cannot_change(change):
    X, Y = rows(20)
    model = KernelStructuredPerceptron(Multiclass(COSTS), gamma=0.3).fit(X, Y).set_params(**change)
    with pytest.raises(ValueError, match="set it back, or call fit"):
        model.partial_fit(X, Y)


def test_overflow_suggests_scaling():
    model = KernelStructuredPerceptron(Multiclass(COSTS), kernel="linear")
    with pytest.raises(ValueError, match="a kernel value overflowed at the input.*scale X"):
        model.fit([[1e200]], [1])
    with pytest.raises(ValueError, match="a score overflowed at the input.*scale the features"):
        model.fit([[1e200], [1e200]], [1, 1])
    for update in ["pa", "pa1", "pa2"]:
        with pytest.raises(ValueError, match="the parameters overflowed.*scale the features"):
            model.set_params(update=update).fit([[1e200]], [1])
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("budget", [None, 3])
@pytest.mark.parametrize("shuffle", [False, True])
def test_overflow_names_the_input(budget, shuffle):
    model = KernelStructuredPerceptron(
        Multiclass(COSTS), kernel="linear", budget=budget, shuffle=shuffle, random_state=0
    )
    X, Y = np.ones((9, 1)) * [[1], [-1], [1], [2], [1], [-2], [3], [1], [1]], [1, 0, 2] * 3
    X[[4, 6]] = 3e200  # of two labels: one of them at least is learned
    for learn in (model.fit, model.partial_fit, model.fit(X[:3], Y[:3]).partial_fit):
        with pytest.raises(ValueError, match=r"overflowed at the input array\(\[3\.e\+200\]\)"):
            learn(X, Y)


def test_files_hold_no_code(tmp_path):
    model = KernelStructuredPerceptron(Multiclass(COSTS)).fit(*rows(20))
    with pytest.raises(TypeError, match="use pickle"):
        rc.save(model, tmp_path / "model")
