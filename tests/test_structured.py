"""The structured perceptron: worked numbers, compiled and plain learners, bounds, Viterbi."""

import importlib.util
import pickle
import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

import rankcore as rc
from rankcore.progress import watch
from rankcore.structured import CuSumTask, PRankTask, StructuredPerceptron, Task
from reference.cusum import clear_cut
from reference.structured import phi_cusum, phi_prank, structured
from strategies import examples, ordinal_problems

ROOT = Path(__file__).parents[1]
D0 = np.array([[0, 0], [0, 1], [1, 1], [1, 0]]), [1, 2, 2, 3]
UPDATES = ["perceptron", "pa", "pa1", "pa2"]


@dataclass(frozen=True)
class Multiclass(Task):
    """Classes 0 .. k - 1 of vectors, each mistake with its own cost."""

    costs: tuple[tuple[float, ...], ...]

    def n_parameters(self, X):
        return len(self.costs) * len(X[0])

    def candidates(self, x):
        return range(len(self.costs))

    def features(self, x, y):
        return np.arange(y * len(x), (y + 1) * len(x)), x

    def loss(self, y, z):
        return self.costs[y][z]


def dense(task, x, y, n):
    indices, values = task.features(x, y)
    return np.bincount(indices, values, n)


def tasks_of(coef, k, intercept=True):
    """Weights of the tasks 2 .. k, the threshold last, as the paper writes them."""
    rows = coef.reshape(-1, k - 1)
    return (np.vstack([rows[1:], rows[:1]]) if intercept else rows).T


def tasks_of_compiled(model, intercept=True):
    if not intercept:
        return model.coef_
    return np.hstack([model.coef_, -model.intercept_[:, None]])


def trace(task, X, Y, n, **params):
    """Predictions, and parameters after each example, of n examples met in turn."""
    model = StructuredPerceptron(task, **params)
    predictions, weights = [], []
    for t in range(n):
        x, y = X[t % len(X)][None], Y[t % len(Y)]
        if t:
            predictions.extend(model.predict(x))
        else:
            inputs, _ = task.examples(x)
            predictions.append(task.argmax(np.zeros(task.n_parameters(inputs)), inputs[0]))
        model.partial_fit(x, [y])
        weights.append(model.coef_)
    return model, predictions, weights


# -------------------------------------------------------------------- worked numbers


def test_golden_high():
    X, y = D0
    model, predictions, weights = trace(CuSumTask(3), X, y, 40)
    assert predictions[:9] == [3, 1, 2, 2, 3, 2, 3, 1, 2]
    assert predictions[9:] == [y[t % 4] for t in range(9, 40)]
    assert model.history_ == {
        "examples": [40],
        "mistakes": [sum(p != t for p, t in zip(predictions[:9], y * 3, strict=False))],
        "loss": [10 / 40],
        "average_loss": [10 / 40],
    }
    second = {0: (0, 0, 1), 1: (0, 1, 0), 7: (1, 1, 0), 8: (1, 1, 1), 39: (1, 1, 1)}
    third = {0: (0, 0, 1), 3: (1, 0, 0), 6: (0, -1, 2), 7: (1, -1, 1), 39: (1, -1, 1)}
    for task, steps in enumerate([second, third]):
        for t, expected in steps.items():
            np.testing.assert_array_equal(tasks_of(weights[t], 3)[task], expected)


def test_golden_low():
    X, y = D0
    _, predictions, weights = trace(CuSumTask(3, tie_break="low"), X, y, 40)
    losses = [abs(p - y[t % 4]) for t, p in enumerate(predictions)]
    assert sum(losses) == sum(losses[:9]) == 8
    assert losses[8] > 0
    np.testing.assert_array_equal(tasks_of(weights[-1], 3), [(1, 1, 0), (1, -1, 0)])


def test_golden_margin():
    X, y = D0
    plain = trace(CuSumTask(3), X, y, 3)[2]
    model, predictions, weights = trace(CuSumTask(3), X, y, 8, margin=1.0)
    np.testing.assert_array_equal(weights[:3], plain)
    assert predictions[3] == 2
    expected = {
        3: [(1, 1, -1), (1, 0, 0)],
        4: [(1, 1, 0), (1, 0, 1)],
        6: [(1, 1, 0), (0, -1, 2)],
        7: [(1, 1, 0), (1, -1, 1)],
    }
    for t, tasks in expected.items():
        np.testing.assert_array_equal(tasks_of(weights[t], 3), tasks)
    # The loss on record is that of the prediction, not of the rival that a margin makes.
    assert model.history_["loss"] == [sum(abs(p - y[t % 4]) for t, p in enumerate(predictions)) / 8]


@pytest.mark.parametrize(
    ("params", "rho"),
    [
        ({"update": "pa"}, Fraction(-1, 6)),
        ({"update": "pa1", "C": 0.05}, Fraction(-1, 20)),
        ({"update": "pa2", "C": 0.5}, Fraction(-3, 19)),
    ],
)
def test_golden_passive_aggressive_steps(params, rho):
    model = StructuredPerceptron(CuSumTask(4), **params).fit([[1, 2]], [1])
    expected = float(rho) * np.array([[1, 2, -1]] * 3)
    np.testing.assert_allclose(tasks_of(model.coef_, 4), expected, rtol=1e-15)  # one division


class ZeroOne(CuSumTask):
    def loss(self, y, z):
        return y != z


@pytest.mark.parametrize(
    ("task", "mistakes", "loss", "weights"),
    [
        (CuSumTask(3), 9, 12, ["11/12 1 1/12", "31/27 -35/27 23/27"]),
        (ZeroOne(3), 11, 14, ["25/48 11/8 3/8", "77/108 -127/108 29/54"]),
    ],
)
def test_golden_passive_aggressive_runs(task, mistakes, loss, weights):
    X, y = D0
    model, predictions, _ = trace(task, X, y, 40, update="pa")
    wrong = [abs(p - y[t % 4]) for t, p in enumerate(predictions)]
    assert (model.history_["mistakes"], sum(wrong)) == ([mistakes], loss)
    assert max(np.flatnonzero(wrong)) + 1 == 15
    expected = [[float(Fraction(w)) for w in row.split()] for row in weights]
    np.testing.assert_allclose(tasks_of(model.coef_, 3), expected, rtol=1e-13)  # 15 roundings


def test_golden_prank():
    X, y = np.array([(1, 0), (0, 1), (1, 1), (1, -1), (0, 1)]), [2, 1, 3, 2, 3]
    model, predictions, weights = trace(PRankTask(3), X, y, 5, average=False)
    assert predictions == [3, 2, 1, 3, 3]
    expected = [(-1, 0, 0, 1), (-1, -1, 1, 1), (1, 1, 0, 0), (0, 2, 0, 1), (0, 2, 0, 1)]
    np.testing.assert_array_equal(np.roll(weights, 2, axis=1), expected)  # direction, thresholds
    assert model.history_["loss"] == [5 / 5]
    model = StructuredPerceptron(PRankTask(3), average=True).fit(X, y)
    np.testing.assert_allclose(model.coef_, [0.2, 0.8, -0.2, 0.8], rtol=1e-15, atol=1e-15)


# -------------------------------------------------------------------- the compiled learners


def backwards(X):
    """The same matrix, the columns of its rows in descending order."""
    order = np.concatenate(
        [np.arange(stop, start, -1) - 1 for start, stop in pairwise(X.indptr)], dtype=np.intp
    )
    return sp.csr_array((X.data[order], X.indices[order], X.indptr), shape=X.shape)


@given(
    problem=ordinal_problems() | ordinal_problems(integers=False),
    tie=st.sampled_from(["high", "low"]),
    margin=st.sampled_from([0.0, 0.7, 1.0, 2.5]),
    intercept=st.booleans(),
    epochs=st.integers(1, 3),
    average=st.booleans(),
    shuffle=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_parity_with_cusum_is_exact(problem, tie, margin, intercept, epochs, average, shuffle):
    # Integers or not, float32 or float64: the same numbers are added in the same order.
    X, y, k = problem
    params = {
        "margin": margin,
        "average": average,
        "max_iter": epochs,
        "shuffle": shuffle,
        "random_state": 5,
    }
    compiled = rc.CuSumRank(tie_break=tie, fit_intercept=intercept, **params)
    compiled.fit(X, y, classes=range(1, k + 1))
    for form in [X, X.toarray()]:
        model = StructuredPerceptron(CuSumTask(k, tie, intercept), **params).fit(form, y)
        np.testing.assert_array_equal(
            tasks_of(model.coef_, k, intercept), tasks_of_compiled(compiled, intercept)
        )
        assert model.predict(form) == compiled.predict(form).tolist()
        assert model.score(form, y) == compiled.score(form, y)
        assert model.history_["loss"] == compiled.history_["rank_loss"]
        assert model.history_["average_loss"] == compiled.history_["average_rank_loss"]
        assert model.history_["mistakes"] == compiled.history_["mistakes"]
        np.testing.assert_array_equal(model.loss_curve_, compiled.loss_curve_)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k", "d"), [(4, 7), (2, 40)])
def test_sums_are_formed_in_the_order_of_the_compiled_learner(k, d, seed):
    # In tenths many scores would be equal if sums did not round: who wins hangs on their order.
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, (300, d)) * 0.1, rng.integers(1, k + 1, 300)
    compiled = rc.CuSumRank(fit_intercept=False).fit(X, y, classes=range(1, k + 1))
    for form in [X, sp.csr_array(X), backwards(sp.csr_array(X))]:
        model = StructuredPerceptron(CuSumTask(k, fit_intercept=False)).fit(form, y)
        np.testing.assert_array_equal(tasks_of(model.coef_, k, False), compiled.coef_)


def test_loss_curve_of_a_long_stream():
    X, y = rc.datasets.make_ordinal(1234, 20, random_state=0)
    y = y - y.min() + 1
    compiled = rc.CuSumRank(max_iter=2).fit(X, y)
    model = StructuredPerceptron(CuSumTask(y.max()), max_iter=2).fit(X, y)
    np.testing.assert_array_equal(model.loss_curve_, compiled.loss_curve_)


def test_indices_of_parameters_may_exceed_32_bits():
    column, ends = np.array([2 * 10**9], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    X = sp.csr_array((np.ones(1), column, ends), shape=(1, 2**31 - 1))
    cusum, prank = CuSumTask(5, fit_intercept=False), PRankTask(2 * 10**8)
    ((x,), _) = cusum.examples(X)
    assert cusum.features(x, 2)[0].tolist() == [4 * 2 * 10**9]
    assert prank.features(x, 1)[0].tolist() == [2 * 10**8 - 1 + 2 * 10**9]


@given(
    problem=ordinal_problems(integers=False),
    update=st.sampled_from(["pa", "pa1", "pa2"]),
    margin=st.sampled_from([0.0, 0.7, 2.5]),
    C=st.sampled_from([0.05, 1.0]),
    tie=st.sampled_from(["high", "low"]),
    intercept=st.booleans(),
    average=st.booleans(),
)
@settings(max_examples=examples(100), deadline=None)
def test_parity_with_passive_aggressive_cusum(problem, update, margin, C, tie, intercept, average):
    X, y, k = problem
    params = {"update": update, "C": C, "margin": margin}
    compiled = rc.CuSumRank(tie_break=tie, fit_intercept=intercept, **params)
    assume(clear_cut(compiled, X.toarray().astype(float), y, k, margin))
    compiled.set_params(average=average).fit(X, y, classes=range(1, k + 1))
    model = StructuredPerceptron(CuSumTask(k, tie, intercept), average=average, **params)
    model.fit(X, y)
    # Steps are quotients of sums formed in another order: rounding grows with each of 30 steps.
    np.testing.assert_allclose(
        tasks_of(model.coef_, k, intercept),
        tasks_of_compiled(compiled, intercept),
        rtol=1e-9,
        atol=1e-10,
    )
    assert model.history_["loss"] == compiled.history_["rank_loss"]


@given(problem=ordinal_problems(), epochs=st.integers(1, 3), average=st.booleans())
@settings(max_examples=examples(80), deadline=None)
def test_parity_with_prank_is_exact_on_integers(problem, epochs, average):
    X, y, k = problem
    params = {"max_iter": epochs, "average": average}
    compiled = rc.PRank(tie="strict", **params).fit(X, y, classes=range(1, k + 1))
    for form in [X, X.toarray()]:
        model = StructuredPerceptron(PRankTask(k), **params).fit(form, y)
        thresholds, direction = model.coef_[: k - 1], model.coef_[k - 1 :]
        np.testing.assert_array_equal(direction, compiled.coef_)
        assert model.history_["loss"] == compiled.history_["rank_loss"]
        if average:  # a difference of two quotients here, one quotient there
            np.testing.assert_allclose(thresholds, compiled.thresholds_, rtol=1e-14, atol=1e-14)
        else:
            np.testing.assert_array_equal(thresholds, compiled.thresholds_)
            assert model.predict(form) == compiled.predict(form).tolist()


@given(problem=ordinal_problems(integers=False), average=st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_parity_with_prank_to_rounding(problem, average):
    X, y, k = problem
    compiled = rc.PRank(tie="strict", average=average)
    stepwise = rc.PRank(tie="strict")
    for i in range(len(y)):
        row = X.toarray()[[i]].astype(float)
        if i and row.any():  # the score of an empty row is 0 in both
            distance = stepwise.decision_function(row) - stepwise.thresholds_
            assume((np.abs(distance) > 1e-9).all() or not stepwise.coef_.any())
        stepwise.partial_fit(row, y[[i]], classes=range(1, k + 1))
    compiled.fit(X, y, classes=range(1, k + 1))
    model = StructuredPerceptron(PRankTask(k), average=average).fit(X, y)
    expected = np.append(compiled.thresholds_, compiled.coef_)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-12, atol=1e-12)
    assert model.history_["loss"] == compiled.history_["rank_loss"]


@given(problem=ordinal_problems(max_rows=4, max_features=4, max_ranks=5))
@settings(max_examples=examples(40), deadline=None)
def test_feature_maps_and_searches_of_the_ordinal_tasks(problem):
    X, y, k = problem
    rows = X.toarray().astype(float)
    weights = np.random.default_rng(0).integers(-2, 3, size=(k - 1) * (X.shape[1] + 1)) * 1.0
    for task in [PRankTask(k), CuSumTask(k), CuSumTask(k, "low"), CuSumTask(k, "high", False)]:
        inputs, ranks = task.examples(X, y)
        n = task.n_parameters(inputs)
        w = weights[:n]
        for x, row, true in zip(inputs, rows, ranks, strict=True):
            for z in range(1, k + 1):
                found = dense(task, x, z, n)
                if isinstance(task, PRankTask):
                    expected = np.roll(phi_prank(row, z, k), k - 1)
                elif task.fit_intercept:
                    blocks = phi_cusum(np.append(-1, row), z, k).reshape(k - 1, -1)
                    expected = blocks.T.ravel()
                else:
                    expected = phi_cusum(row, z, k).reshape(k - 1, -1).T.ravel()
                np.testing.assert_array_equal(found, expected)
            # The sweep finds what trying all ranks finds; of equal ones that takes the first.
            for margin in [0.0, 1.5]:
                scores = [
                    w @ dense(task, x, z, n) + margin * abs(z - true) for z in range(1, k + 1)
                ]
                best = 1 + np.flatnonzero(np.array(scores) == max(scores))
                wanted = best[0] if task.tie_break == "low" else best[-1]
                if margin and true in best:
                    wanted = true
                assert task.argmax(w, x, true, margin) == wanted
                if len(best) == 1 or task.tie_break == "low" or (margin and true in best):
                    assert Task.argmax(task, w, x, true, margin) == wanted


# -------------------------------------------------------------------- a plain implementation

COSTS = ((0.0, 1.0, 2.5), (1.0, 0.0, 0.5), (3.0, 1.0, 0.0))


@given(
    seed=st.integers(0, 2**32 - 1),
    integers=st.booleans(),
    update=st.sampled_from(UPDATES),
    margin=st.sampled_from([0.0, 0.5, 2.0]),
    C=st.sampled_from([0.05, 1.0]),
    epochs=st.integers(1, 3),
)
@settings(max_examples=examples(80), deadline=None)
def test_parity_with_a_plain_implementation(seed, integers, update, margin, C, epochs):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 12), rng.integers(1, 5)
    integers = integers and update == "perceptron"  # elsewhere rounding decides between ties
    X = rng.integers(-2, 3, size=(n, d)) * 1.0 if integers else rng.normal(size=(n, d))
    Y = rng.integers(0, 3, size=n).tolist()
    task = Multiclass(COSTS)
    expected = structured(
        X,
        Y,
        3 * d,
        lambda x, z: np.kron(np.eye(3)[z], x),
        [0, 1, 2],
        lambda y, z: COSTS[y][z],
        update=update,
        C=C,
        margin=margin,
        epochs=epochs,
    )
    params = {"update": update, "margin": margin, "C": C, "max_iter": epochs}
    model = StructuredPerceptron(task, **params).fit(X, Y)
    averaged = StructuredPerceptron(task, average=True, **params).fit(X, Y)
    if integers:
        np.testing.assert_array_equal(model.coef_, expected["w"])
    else:
        np.testing.assert_allclose(model.coef_, expected["w"], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(averaged.coef_, expected["mean"], rtol=1e-9, atol=1e-9)
    losses = expected["losses"].reshape(epochs, -1)
    np.testing.assert_allclose(model.history_["loss"], losses.mean(axis=1), rtol=1e-12)
    assert model.history_["mistakes"] == (losses > 0).sum(axis=1).tolist()
    assert averaged.history_ == model.history_
    assert model.n_iter_ == epochs
    assert model.t_ == n * epochs
    np.testing.assert_array_equal(model.loss_curve_[:, 0], np.arange(1, n * epochs + 1))
    means = expected["losses"].cumsum() / np.arange(1, n * epochs + 1)
    np.testing.assert_allclose(model.loss_curve_[:, 1], means, rtol=1e-12)


def test_the_true_output_wins_ties_under_a_margin_only():
    costs = ((0.0, 1.0), (1.0, 0.0))
    task = Multiclass(costs)
    # Candidates 0 and 1 score 1 and 0; with a margin of 1 the wrong 1 draws level with the true 0.
    weights, x = np.array([1.0, 0.0]), [1.0]
    assert task.argmax(weights, x, 0, 1.0) == 0
    assert task.argmax(weights, x, 0, 1.5) == 1
    weights = np.array([0.0, 1.0])
    assert task.argmax(weights, x, 1, 1.0) == 1
    # Without a margin the first of equal candidates wins, whatever is true.
    assert task.argmax(np.zeros(2), x, 1, 0.0) == 0


# -------------------------------------------------------------------- bounds


def run_to_the_end(task, X, Y, epochs, **params):
    """Losses of the rivals, and squared lengths of what was added, of every update."""
    inputs, outputs = task.examples(X, Y) if hasattr(task, "examples") else (list(X), Y)
    n = task.n_parameters(inputs)
    model = StructuredPerceptron(task, **params)
    margin = params.get("margin", 0.0)
    losses, norms, deficits = [], [], []
    for t in range(epochs * len(Y)):
        x, y = inputs[t % len(Y)], outputs[t % len(Y)]
        w = model.coef_ if t else np.zeros(n)
        rival = task.argmax(w, x, y, margin)
        if task.loss(y, rival):
            difference = dense(task, x, y, n) - dense(task, x, rival, n)
            losses.append(float(task.loss(y, rival)))
            norms.append(difference @ difference)
            deficits.append(losses[-1] - w @ difference)
        model.partial_fit([X[t % len(Y)]], [y])
        if losses and params.get("update") == "pa" and task.loss(y, rival):
            # The step makes the true output win by the loss, exactly.
            np.testing.assert_allclose(model.coef_ @ difference, losses[-1], rtol=1e-7)
    return np.array(losses), np.array(norms), np.array(deficits)


def separable_classes(seed):
    """Vectors whose true class beats each other one by d times its cost under unit parameters."""
    rng = np.random.default_rng(seed)
    task, planted = Multiclass(COSTS), rng.normal(size=12)
    planted /= np.linalg.norm(planted)
    X, Y, d, R2 = [], [], np.inf, 0.0
    while len(X) < 25:
        x = rng.normal(size=4)
        y = task.argmax(planted, x)
        rivals = [z for z in range(3) if z != y]
        differences = [dense(task, x, y, 12) - dense(task, x, z, 12) for z in rivals]
        wins = [planted @ v / COSTS[y][z] for v, z in zip(differences, rivals, strict=True)]
        if min(wins) < 0.1:
            continue
        X.append(x)
        Y.append(y)
        d = min(d, *wins)
        R2 = max(R2, *(v @ v / COSTS[y][z] for v, z in zip(differences, rivals, strict=True)))
    return task, X, Y, d, R2


@pytest.mark.parametrize("seed", range(4))
def test_bounds_on_the_total_loss(seed):
    task, X, Y, d, R2 = separable_classes(seed)
    losses, norms, _ = run_to_the_end(task, X, Y, 20)
    assert (norms <= R2 * losses * (1 + 1e-12)).all()
    assert 0 < losses.sum() <= R2 / d**2  # theorem 1
    losses, norms, deficits = run_to_the_end(task, X, Y, 20, update="pa")
    assert (deficits >= losses).all()
    # Theorem 2, corrected. Parameters scaled to win by the loss have length 1 / d.
    assert 0 < (losses**2 / norms).sum() <= (deficits**2 / norms).sum() <= 1 / d**2
    assert losses.sum() <= R2 / d**2
    for margin in [0.5, 3.0]:
        losses, _, _ = run_to_the_end(task, X, Y, 20, margin=margin)
        assert 0 < losses.sum() <= (R2 + 2 * margin) / d**2


@pytest.mark.parametrize("seed", range(4))
def test_bound_on_the_number_of_mistakes(seed):
    # Corollary 1: of each pair of outputs the features differ by R at most, the scores by d.
    _, X, Y, _, _ = separable_classes(seed)
    task = Multiclass(tuple(map(tuple, 1.0 - np.eye(3))))
    planted = np.random.default_rng(seed).normal(size=12)
    planted /= np.linalg.norm(planted)
    differences = [
        dense(task, x, y, 12) - dense(task, x, z, 12)
        for x, y in zip(X, Y, strict=True)
        for z in range(3)
        if z != y
    ]
    d, R2 = min(planted @ v for v in differences), max(v @ v for v in differences)
    assert d > 0
    model = StructuredPerceptron(task, max_iter=30).fit(X, Y)
    assert 0 < sum(model.history_["mistakes"]) <= R2 / d**2
    assert model.history_["mistakes"][-1] == 0


@pytest.mark.parametrize("update", ["perceptron", "pa"])
def test_the_bound_is_tight_and_the_printed_one_of_pa_false(update):
    # One example of length 2, constant included, five ranks, the lowest true: R = 2, d = 1.
    losses, norms, _ = run_to_the_end(CuSumTask(5), np.array([[np.sqrt(3)]]), [1], 3, update=update)
    assert losses.tolist() == [4]  # = R**2
    assert (losses**2).sum() == 16 > 2**2
    np.testing.assert_allclose((losses**2 / norms).sum(), 1, rtol=1e-15)
    # Length 4, won by d = 2: the loss is R**2 / d**2 = 4, more than R**2 / d**4 = 1.
    losses, _, _ = run_to_the_end(CuSumTask(5), np.array([[np.sqrt(15)]]), [1], 3, update=update)
    assert losses.tolist() == [4**2 / 2**2]


# -------------------------------------------------------------------- sequence labelling


@pytest.fixture(scope="module")
def example():
    path = ROOT / "examples" / "sequence_labelling.py"
    if not path.exists():
        pytest.skip("the examples are not here")
    spec = importlib.util.spec_from_file_location("sequence_labelling", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", range(12))
def test_viterbi_finds_what_trying_everything_finds(example, seed):
    rng = np.random.default_rng(seed)
    task = example.Tagging(("a", "b", "c"), ("X", "Y", "Z")[: rng.integers(1, 4)])
    n = task.n_parameters([])
    # Integers: sums are exact, and there are ties.
    weights = rng.integers(-2, 3, size=n) * 1.0 if seed % 2 else rng.normal(size=n)
    n_updates = 0
    for length in range(5):
        x = tuple(rng.choice(["a", "b", "c", "unseen"], size=length).tolist())
        y = tuple(rng.choice(task.tags, size=length).tolist())
        for margin in [0.0, 0.5, 1.0, 3.0]:
            scores = {}
            for z in product(task.tags, repeat=length):
                wrong = sum(p != q for p, q in zip(y, z, strict=True))
                scores[z] = weights @ dense(task, x, z, n) + margin * wrong
                assert task.loss(y, z) == wrong
            best = max(scores.values())
            found = task.argmax(weights, x, y, margin)
            np.testing.assert_allclose(scores[found], best, rtol=1e-12, atol=1e-12)
            if seed % 2:
                assert scores[found] == best
                if margin and scores[y] == best:
                    assert found == y
                n_updates += found != y
            assert list(task.candidates(x)) == list(scores)
    assert n_updates or not seed % 2 or len(task.tags) == 1


def test_viterbi_features_are_the_pairs_of_the_sentence(example):
    task = example.Tagging(("a", "b"), ("X", "Y"))
    table = dense(task, ("b", "b", "new"), ("Y", "Y", "X"), task.n_parameters([])).reshape(-1, 2)
    # Rows: a, b, other words, X, Y, start.
    expected = [(0, 0), (0, 2), (1, 0), (0, 0), (1, 1), (0, 1)]
    np.testing.assert_array_equal(table, expected)


def test_search_by_viterbi_or_by_trial_learns_the_same(example):
    class Slow(example.Tagging):
        argmax = Task.argmax

    rng = np.random.default_rng(0)
    X = [tuple(rng.choice(["a", "b", "c"], size=3).tolist()) for _ in range(30)]
    Y = [tuple(rng.choice(["X", "Y"], size=3).tolist()) for _ in range(30)]
    fast, slow = (
        StructuredPerceptron(kind(("a", "b", "c"), ("X", "Y")), margin=0.7, update="pa1").fit(X, Y)
        for kind in (example.Tagging, Slow)
    )
    np.testing.assert_allclose(fast.coef_, slow.coef_, rtol=1e-9, atol=1e-12)
    assert fast.coef_.any()


@pytest.mark.parametrize("params", [{}, {"update": "pa"}])
def test_bounds_hold_for_sequences(example, params):
    rng = np.random.default_rng(3)
    task = example.Tagging(("a", "b", "c"), ("X", "Y"))
    n = task.n_parameters([])
    planted = rng.normal(size=n)
    planted /= np.linalg.norm(planted)
    X, Y, d, R2 = [], [], np.inf, 0.0
    while len(X) < 15:
        x = tuple(rng.choice(["a", "b", "c"], size=rng.integers(1, 5)).tolist())
        y = task.argmax(planted, x)
        vectors = {z: dense(task, x, y, n) - dense(task, x, z, n) for z in task.candidates(x)}
        del vectors[y]
        wins = [planted @ v / task.loss(y, z) for z, v in vectors.items()]
        if min(wins) > 0.05:
            X.append(x)
            Y.append(y)
            d = min(d, *wins)
            R2 = max(R2, *(v @ v / task.loss(y, z) for z, v in vectors.items()))
    losses, norms, _ = run_to_the_end(task, X, Y, 20, **params)
    assert 0 < losses.sum() <= R2 / d**2
    if params:
        assert (losses**2 / norms).sum() <= 1 / d**2


def test_the_example_runs_and_beats_the_majority(example, capsys):
    example.main()
    before, alone, learned = (
        float(line.split("%")[0].split()[-1]) for line in capsys.readouterr().out.splitlines()[:3]
    )
    assert before < alone
    # Half of the words mean their tag only beside others.
    assert learned > alone + 10
    example.main()
    assert f"{learned:5.1f} %" in capsys.readouterr().out


def test_the_page_quotes_the_example_and_its_code_runs(example, capsys):
    page = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")
    source = Path(example.__file__).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    quotes = [block for block in blocks if block in source]
    assert len(quotes) == 3
    example.main()
    for line in capsys.readouterr().out.splitlines()[:3]:
        assert f"    {line}\n" in page
    namespace = {}
    for block in blocks:
        if block not in quotes:
            exec(block, namespace)
    assert "model" in namespace


# -------------------------------------------------------------------- streams, failures, pickles


def same(a, b):
    """Whether two models are the same to the bit, also in what they have yet to learn."""
    names = ["t_", "n_iter_", "history_", "coef_", "loss_curve_"]
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names) and (
        np.array_equal(a._state.arrays, b._state.arrays)
    )


@given(
    problem=ordinal_problems(integers=False),
    cuts=st.lists(st.integers(1, 29), max_size=4),
    update=st.sampled_from(UPDATES),
    margin=st.sampled_from([0.0, 0.7]),
)
@settings(max_examples=examples(40), deadline=None)
def test_chunks_equal_one_fit(problem, cuts, update, margin):
    X, y, k = problem
    params = {"update": update, "margin": margin, "average": True}
    whole = StructuredPerceptron(CuSumTask(k), **params).fit(X, y)
    model = StructuredPerceptron(CuSumTask(k), **params)
    edges = sorted({0, len(y), *(c for c in cuts if c < len(y))})
    for start, stop in pairwise(edges):
        model.partial_fit(X[start:stop], y[start:stop])
        model = pickle.loads(pickle.dumps(model))
    assert same(model, whole)


def test_a_stream_after_a_fit_is_a_pass_of_its_own():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3), max_iter=2).fit(X, y)
    model.partial_fit(X[:1], y[:1]).partial_fit(X[1:3], y[1:3])
    assert model.history_["examples"] == [4, 4, 3]
    assert (model.t_, model.n_iter_) == (11, 3)
    assert same(model.fit(X, y), StructuredPerceptron(CuSumTask(3), max_iter=2).fit(X, y))


class Failing(CuSumTask):
    """Raises an error at the nth search."""

    left = 0
    error = KeyboardInterrupt

    def argmax(self, weights, x, y=None, margin=0.0):
        Failing.left -= 1
        if Failing.left == 0:
            raise Failing.error
        return super().argmax(weights, x, y, margin)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_failed_call_changes_nothing(method, error):
    X, y = D0
    task = Failing(3)
    Failing.error = error
    model = StructuredPerceptron(task, average=True)
    for n in [1, 3]:
        Failing.left = n
        with pytest.raises(error):
            getattr(model, method)(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)
        assert vars(model) == model.get_params()
    Failing.left = 0
    model.fit(X, y)
    twin = StructuredPerceptron(CuSumTask(3), average=True).fit(X, y)
    for n in [1, 2, 4]:
        Failing.left = n
        with pytest.raises(error):
            getattr(model, method)(X, y)
        assert same(model, twin)
    assert same(model.partial_fit(X, y), twin.partial_fit(X, y))


def test_a_watcher_that_raises_stops_the_call():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y)
    twin = StructuredPerceptron(CuSumTask(3)).fit(X, y)

    def stop(progress):
        raise TimeoutError

    with watch(stop), pytest.raises(TimeoutError):
        model.partial_fit(X, y)
    assert same(model, twin)


def test_progress_and_verbose(capsys):
    X, y = D0
    seen = []
    with watch(seen.append):
        model = StructuredPerceptron(CuSumTask(3), max_iter=2, verbose=1).fit(X, y)
    ends = [p for p in seen if p.done == p.total]
    assert [(p.epoch, p.n_epochs, p.done) for p in ends] == [(1, 2, 4), (2, 2, 4)]
    assert [p.value for p in ends] == model.history_["loss"]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        f"[StructuredPerceptron] epoch {epoch} of 2" for epoch in [1, 2]
    ]


def test_tolerance():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3), max_iter=50, tol=0.0).fit(X, y)
    assert model.n_iter_ == 4  # the last mistake is at example 9, so the fourth pass has none
    assert model.history_["mistakes"][-1] == 0
    with pytest.warns(ConvergenceWarning, match="max_iter=2 passes ended"):
        StructuredPerceptron(CuSumTask(3), max_iter=2, tol=0.0).fit(X, y)
    stuck = StructuredPerceptron(CuSumTask(3), max_iter=50, tol=10.0).fit(X, [1, 3, 1, 3])
    assert stuck.n_iter_ <= 6  # the first pass, and five that are not better by 10


def test_pickles_and_clones():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3, tie_break="low"), update="pa", average=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.task == model.task
    assert same(again, model)
    assert same(again.partial_fit(X, y), model.partial_fit(X, y))
    blank = clone(model)
    assert blank.get_params() == model.get_params()
    assert blank.task is not model.task
    assert not hasattr(blank, "coef_")
    assert not is_classifier(model)
    with pytest.raises(TypeError, match="save takes a rankcore learner, found Structured"):
        rc.save(model, "unused")


def test_read_only_state_goes_on():
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y)
    model._state.arrays.flags.writeable = False  # as joblib's memory maps
    assert model.partial_fit(X, y).t_ == 8


def test_model_selection(example):
    X, Y = example.make_sentences(40, seed=0)
    task = example.Tagging(tuple(sorted({word for x in X for word in x})), example.TAGS)
    assert (cross_val_score(StructuredPerceptron(task), X, Y, cv=3) < 0).all()
    rows, y = sp.csr_array(np.random.default_rng(0).normal(size=(40, 3))), np.arange(40) % 4 + 1
    search = GridSearchCV(
        StructuredPerceptron(CuSumTask(4)), {"task": [CuSumTask(4), PRankTask(4)]}, cv=2
    ).fit(rows, y)
    expected = [
        cross_val_score(StructuredPerceptron(task), rows, y, cv=2).mean()
        for task in [CuSumTask(4), PRankTask(4)]
    ]
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected)


# -------------------------------------------------------------------- errors


class Bare:
    """A task that is no subclass of `Task`."""

    def n_parameters(self, X):
        return 2

    def candidates(self, x):
        return [0, 1]

    def features(self, x, y):
        return [y], [x]

    argmax = Task.argmax
    loss = Task.loss


def test_any_object_with_the_methods_is_a_task():
    assert isinstance(Bare(), Task)
    model = StructuredPerceptron(Bare()).fit([1.0, -1.0], [0, 1])
    assert model.predict([2.0, -2.0]) == [0, 1]


@pytest.mark.parametrize("name", ["n_parameters", "candidates", "features", "argmax", "loss"])
def test_a_task_without_a_method(name):
    kind = type("Partial", (Bare,), {name: None})
    with pytest.raises(TypeError, match=f"methods of rankcore.structured.Task.*lacks {name}"):
        StructuredPerceptron(kind()).fit([1.0], [0])
    if name not in {"argmax", "loss"}:
        rest = {
            n: getattr(Bare, n) for n in ["n_parameters", "candidates", "features"] if n != name
        }
        with pytest.raises(TypeError, match=f"abstract method.*{name}"):
            type("Partial", (Task,), rest)()


def test_a_class_is_no_task():
    with pytest.raises(TypeError, match="must be an object with the methods"):
        StructuredPerceptron(CuSumTask).fit([[1.0]], [1])


@pytest.mark.parametrize(
    ("features", "found"),
    [
        (None, "found None"),
        (np.zeros(2), "found array"),  # a dense vector, and as long as a pair
        (([0, 1], [1.0]), "found"),
        (([[0]], [[1.0]]), "found"),
        ((0, 1.0), "found"),
        (([0], [1.0], [2.0]), "found"),
        (([0.0], [1.0]), "dtypes float64"),
        (([0], ["one"]), "dtypes int64 and <U3"),
        (([2], [1.0]), "indices from 2 to 2"),
        (([-1, 0], [1.0, 1.0]), "indices from -1 to 0"),
        (([0], [np.nan]), "NaN or infinity"),
        (([0], [np.inf]), "NaN or infinity"),
    ],
)
@pytest.mark.parametrize("searches", [True, False])
def test_malformed_features(features, found, searches):
    class Bad(Bare):
        def features(self, x, y):
            return features

        if not searches:

            def argmax(self, weights, x, y=None, margin=0.0):
                return 1

    with pytest.raises(ValueError, match=rf"Bad.features must return a pair.*0 to 1.*{found}"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize("loss", [-1, np.nan, np.inf, "much", None, np.ones(2)])
def test_malformed_loss(loss):
    class Bad(Bare):
        def loss(self, y, z):
            return loss

    with pytest.raises(ValueError, match="Bad.loss must return a finite number, at least 0; found"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize("count", [0, -3, 2.0, None])
def test_malformed_count_of_parameters(count):
    class Bad(Bare):
        def n_parameters(self, X):
            return count

    with pytest.raises(ValueError, match="Bad.n_parameters must return a positive integer; found"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


def test_no_candidates():
    class Bad(Bare):
        def candidates(self, x):
            return []

    with pytest.raises(ValueError, match="Bad.candidates has none for 1.0"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


def test_tasks_cannot_write_the_weights():
    class Bad(Bare):
        def argmax(self, weights, x, y=None, margin=0.0):
            weights[0] = 7

    with pytest.raises(ValueError, match="read-only"):
        StructuredPerceptron(Bad()).fit([1.0], [0])


@pytest.mark.parametrize(
    ("X", "Y", "error", "message"),
    [
        ([1.0, 2.0], [0], ValueError, "inconsistent numbers of samples: 2 inputs and 1 outputs"),
        ([], [], ValueError, "Found 0 sample"),
        ([1.0], None, ValueError, "Y must hold a true output for each input; found None"),
        (None, [0], TypeError, "X must be a sequence.*found NoneType"),
        (iter([1.0]), [0], TypeError, "X must be a sequence.*list_iterator"),
        ([1.0], 3, TypeError, "Y must be a sequence.*found int"),
        (sp.csr_array([[1.0]]), [0], TypeError, "X must be a sequence.*found csr_array"),
    ],
)
def test_malformed_data(X, Y, error, message):
    with pytest.raises(error, match=message):
        StructuredPerceptron(Bare()).fit(X, Y)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0], [2.0]], [1, 4], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [0, 1], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1, 1.5], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1, np.nan], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], ["1", "2"], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [[1], [2]], "Y must hold a rank from 1 to 3 for each row"),
        ([[1.0], [2.0]], [1], "inconsistent numbers of samples: 2 inputs and 1 outputs"),
        ([[1.0], [np.nan]], [1, 2], "NaN"),
        ([1.0, 2.0], [1, 2], "two dimensions"),
        (np.empty((0, 2)), [], "Found 0 sample"),
    ],
)
@pytest.mark.parametrize("task", [CuSumTask(3), PRankTask(3)])
def test_malformed_rows_and_ranks(task, X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredPerceptron(task).fit(X, y)


def test_ordinal_rows_may_be_unsorted_and_stay_as_they_are():
    parts = np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])
    X = sp.csr_array(parts, shape=(1, 3))
    model = StructuredPerceptron(CuSumTask(2, fit_intercept=False)).fit(X, [1])
    np.testing.assert_array_equal(model.coef_, [-2, 0, -4])
    assert X.indices.tolist() == [2, 0, 2]
    assert model.predict(np.array([[1, 0, 0]])) == [1]


@pytest.mark.parametrize("task", [CuSumTask(3), PRankTask(3)])
def test_another_number_of_features(task):
    X, y = D0
    model = StructuredPerceptron(task).fit(X, y)
    twin = StructuredPerceptron(task).fit(X, y)
    for call in [model.predict, lambda X: model.score(X, y), lambda X: model.partial_fit(X, y)]:
        with pytest.raises(ValueError, match=r"n_parameters is \d+ for this X, but the model has"):
            call(np.ones((4, 3)))
    assert same(model, twin)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"update": "newton"}, ValueError, "update must be one of 'perceptron', 'pa'"),
        ({"C": 0}, ValueError, "C == 0, must be >="),
        ({"C": "1"}, TypeError, "C must be an instance"),
        ({"margin": -1}, ValueError, "margin == -1, must be >= 0"),
        ({"margin": np.nan}, ValueError, "margin must be a number"),
        ({"average": 1}, TypeError, "average must be True or False"),
        ({"shuffle": None}, TypeError, "shuffle must be True or False"),
        ({"max_iter": 0}, ValueError, "max_iter == 0, must be >= 1"),
        ({"tol": -1.0}, ValueError, "tol == -1.0, must be >= 0"),
        ({"verbose": -1}, ValueError, "verbose == -1, must be >= 0"),
        ({"task": None}, TypeError, "task must be an object with the methods.*found None"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters(params, error, message, method):
    model = StructuredPerceptron(**{"task": CuSumTask(3), **params})
    with pytest.raises(error, match=message):
        getattr(model, method)(*D0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: CuSumTask(1), ValueError, "n_ranks == 1, must be >= 2"),
        (lambda: PRankTask("many"), TypeError, "n_ranks must be an instance"),
        (lambda: CuSumTask(3, "middle"), ValueError, "tie_break must be one of 'high', 'low'"),
        (lambda: CuSumTask(3, "low", 1), TypeError, "fit_intercept must be True or False"),
    ],
)
def test_bad_tasks(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("change", [{"task": CuSumTask(3, "low")}, {"average": True}])
def test_what_is_built_in_cannot_change(change):
    X, y = D0
    model = StructuredPerceptron(CuSumTask(3)).fit(X, y).set_params(**change)
    (name,) = change
    with pytest.raises(ValueError, match=f"^{name}=.*set it back, or call fit"):
        model.partial_fit(X, y)
    model.set_params(task=CuSumTask(3), average=False).partial_fit(X, y)  # equal will do
    model.set_params(**change).fit(X, y)


class Huge(Bare):
    def features(self, x, y):
        return [y], [1e308]


class HugeUnseen(Huge):
    def argmax(self, weights, x, y=None, margin=0.0):
        return 1


@pytest.mark.parametrize(
    ("task", "X", "y", "message"),
    [
        (CuSumTask(2), [[1.5e308], [-1.5e308]], [1, 2], "a score overflowed.*; scale the features"),
        (PRankTask(2), [[1.5e308], [-1.5e308]], [1, 2], "a score overflowed.*; scale the features"),
        (PRankTask(3), [[1.5e308]], [1], "PRankTask.features must return.*found NaN or infinity"),
        (Huge(), [1.0] * 3, [1, 0, 1], "a score overflowed.*; scale the features"),
        (HugeUnseen(), [1.0] * 2, [0, 0], "the parameters overflowed.*; scale the features"),
    ],
)
def test_overflow_says_what_to_do(task, X, y, message):
    model = StructuredPerceptron(task, max_iter=10)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_features_that_outputs_share_cancel_exactly():
    class Shared(Bare):
        def n_parameters(self, X):
            return 3

        def features(self, x, y):
            return [2, 2, y], [0.1, 0.2, x]  # 0.1 + 0.2 - 0.1 - 0.2 is not 0

    model = StructuredPerceptron(Shared()).fit([1.0, -1.0, 2.0], [1, 0, 0])
    assert model.coef_[2] == 0
    assert model.coef_[0] == -model.coef_[1] != 0


def test_outputs_that_share_their_features_move_nothing():
    X = np.zeros((3, 2))
    for update in UPDATES:
        model = StructuredPerceptron(CuSumTask(3, fit_intercept=False), update=update)
        model.fit(X, [1, 2, 3])
        assert not model.coef_.any()
        assert model.history_["mistakes"] == [2]


@pytest.mark.parametrize("update", ["pa", "pa1", "pa2"])
def test_a_step_whose_length_overflows_is_an_error_as_in_the_compiled_learner(update):
    X, y = [[1e200], [1e200]], [1, 2]
    with pytest.raises(ValueError, match="overflowed"):
        rc.CuSumRank(update=update).fit(X, y)
    with pytest.raises(ValueError, match="the parameters overflowed.*; scale the features"):
        StructuredPerceptron(CuSumTask(2), update=update).fit(X, y)


def test_averages_that_overflow_are_an_error():
    X, y = np.diag([1e308] * 3), [1, 1, 1]
    assert np.isfinite(StructuredPerceptron(CuSumTask(2, "high", False)).fit(X, y).coef_).all()
    with pytest.raises(ValueError, match="the parameters overflowed.*; scale the features"):
        StructuredPerceptron(CuSumTask(2, "high", False), average=True).fit(X, y)
