"""The structured perceptron: worked numbers, parity, bounds."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore.structured import CuSumTask, PRankTask, StructuredPerceptron, Task
from reference.cusum import clear_cut
from reference.structured import phi_cusum, phi_prank, structured
from strategies import examples, ordinal_problems
from structured_problems import D0, UPDATES, dense, run_to_the_end


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


def test_ties_to_the_highest_have_the_golden_values():
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


def test_ties_to_the_lowest_have_the_golden_values():
    X, y = D0
    _, predictions, weights = trace(CuSumTask(3, tie_break="low"), X, y, 40)
    losses = [abs(p - y[t % 4]) for t, p in enumerate(predictions)]
    assert sum(losses) == sum(losses[:9]) == 8
    assert losses[8] > 0
    np.testing.assert_array_equal(tasks_of(weights[-1], 3), [(1, 1, 0), (1, -1, 0)])


def test_margins_have_the_golden_values():
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
def test_passive_aggressive_steps_have_the_golden_values(params, rho):
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
def test_passive_aggressive_runs_have_the_golden_values(task, mistakes, loss, weights):
    X, y = D0
    model, predictions, _ = trace(task, X, y, 40, update="pa")
    wrong = [abs(p - y[t % 4]) for t, p in enumerate(predictions)]
    assert (model.history_["mistakes"], sum(wrong)) == ([mistakes], loss)
    assert max(np.flatnonzero(wrong)) + 1 == 15
    expected = [[float(Fraction(w)) for w in row.split()] for row in weights]
    np.testing.assert_allclose(tasks_of(model.coef_, 3), expected, rtol=1e-13)  # 15 roundings


def test_prank_as_a_task_has_the_golden_values():
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
    """Return the same matrix, the columns of its rows in descending order."""
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
    compiled = rc.CuSumRank.published(tie_break=tie, fit_intercept=intercept, **params)
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
        np.testing.assert_array_equal(model.update_loss_curve_, compiled.update_loss_curve_)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("k", "d"), [(4, 7), (2, 40)])
def test_sums_are_formed_in_the_order_of_the_compiled_learner(k, d, seed):
    # In tenths many scores would be equal if sums did not round: who wins hangs on their order.
    rng = np.random.default_rng(seed)
    X, y = rng.integers(-3, 4, (300, d)) * 0.1, rng.integers(1, k + 1, 300)
    compiled = rc.CuSumRank.published(fit_intercept=False).fit(X, y, classes=range(1, k + 1))
    for form in [X, sp.csr_array(X), backwards(sp.csr_array(X))]:
        model = StructuredPerceptron(CuSumTask(k, fit_intercept=False)).fit(form, y)
        np.testing.assert_array_equal(tasks_of(model.coef_, k, False), compiled.coef_)


def test_loss_curve_of_a_long_stream_equals_the_running_mean():
    X, y = rc.datasets.make_ordinal(1234, 20, random_state=0)
    y = y - y.min() + 1
    compiled = rc.CuSumRank.published(max_iter=2).fit(X, y)
    model = StructuredPerceptron(CuSumTask(y.max()), max_iter=2).fit(X, y)
    np.testing.assert_array_equal(model.update_loss_curve_, compiled.update_loss_curve_)


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
    compiled = rc.CuSumRank.published(tie_break=tie, fit_intercept=intercept, **params)
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
    compiled = rc.PRank.published(tie="strict", **params).fit(X, y, classes=range(1, k + 1))
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
    compiled = rc.PRank.published(tie="strict", average=average)
    stepwise = rc.PRank.published(tie="strict")
    for i in range(len(y)):
        row = X.toarray()[[i]].astype(float)
        if i and row.any():  # the score of an empty row is 0 in both
            distance = stepwise.project(row) - stepwise.thresholds_
            assume((np.abs(distance) > 1e-9).all() or not stepwise.coef_.any())
        stepwise.partial_fit(row, y[[i]], classes=range(1, k + 1))
    compiled.fit(X, y, classes=range(1, k + 1))
    model = StructuredPerceptron(PRankTask(k), average=average).fit(X, y)
    expected = np.append(compiled.thresholds_, compiled.coef_)
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-12, atol=1e-12)
    assert model.history_["loss"] == compiled.history_["rank_loss"]


@given(problem=ordinal_problems(max_rows=4, max_features=4, max_ranks=5))
@settings(max_examples=examples(40), deadline=None)
def test_ordinal_tasks_equal_their_definitions(problem):
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
def test_models_equal_a_plain_implementation(seed, integers, update, margin, C, epochs):
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
    np.testing.assert_array_equal(model.update_loss_curve_[:, 0], np.arange(1, n * epochs + 1))
    means = expected["losses"].cumsum() / np.arange(1, n * epochs + 1)
    np.testing.assert_allclose(model.update_loss_curve_[:, 1], means, rtol=1e-12)


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
def test_total_loss_stays_below_its_bounds(seed):
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
def test_mistakes_stay_below_their_bound(seed):
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
def test_the_bound_is_tight_and_the_published_one_of_pa_is_false(update):
    # One example of length 2, constant included, five ranks, the lowest true: R = 2, d = 1.
    losses, norms, _ = run_to_the_end(CuSumTask(5), np.array([[np.sqrt(3)]]), [1], 3, update=update)
    assert losses.tolist() == [4]  # = R**2
    assert (losses**2).sum() == 16 > 2**2
    np.testing.assert_allclose((losses**2 / norms).sum(), 1, rtol=1e-15)
    # Length 4, won by d = 2: the loss is R**2 / d**2 = 4, more than R**2 / d**4 = 1.
    losses, _, _ = run_to_the_end(CuSumTask(5), np.array([[np.sqrt(15)]]), [1], 3, update=update)
    assert losses.tolist() == [4**2 / 2**2]
