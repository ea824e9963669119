"""Bounds: worked numbers, and that they hold where samples are drawn."""

import itertools

import numpy as np
import pytest

import rankcore as rc
from rankcore.bounds import (
    cusum_mistake_bound,
    ensemble_margin_bound,
    kernel_margin_bound,
    linear_complexity,
    margin_curve,
    pairwise_mistake_bound,
    prank_mistake_bound,
    rademacher_margin_bound,
    rankboost_training_bound,
    svm_bound,
    vc_complexity,
)
from rankcore.metrics import margin_loss, pairwise_misranking
from reference import pair_loss as plain

# ---------------------------------------------------------------- worked numbers


@pytest.mark.parametrize(
    ("radius", "norm", "rho", "m", "delta", "value"),
    [
        (1, 1, 1, 1000, 0.05, 0.165193),
        (1, 2, 0.5, 10_000, 0.01, 0.175174),
        (2, 1, 1, 100_000, 0.05, 0.029168),
    ],
)
def test_kernel_bounds_equal_those_by_hand(radius, norm, rho, m, delta, value):
    assert kernel_margin_bound(0.0, radius, norm, rho, m, delta) == pytest.approx(value, abs=5e-7)
    assert kernel_margin_bound(0.25, radius, norm, rho, m, delta) == pytest.approx(
        0.25 + value, abs=5e-7
    )
    # Only radius * norm / rho counts; a slack above 1 is a loss all the same.
    one = kernel_margin_bound(0.5, 1.0, 1.0, rho / radius / norm, m, delta)
    assert one == pytest.approx(0.5 + value, abs=5e-7)
    if rho == 1:
        assert svm_bound(1.5, radius, norm, m, delta) == pytest.approx(1.5 + value, abs=5e-7)


def test_the_four_kinds_of_rademacher_bound_equal_those_by_hand():
    given = (0.1, 0.01, 0.02, 0.5, 1000, 0.05)
    # (2 / .5) * .03 = .12; log 20 = 2.995732, log 40 = 3.688879, log log2 4 = .693147.
    assert rademacher_margin_bound(*given) == pytest.approx(0.22 + (2.995732 / 2000) ** 0.5)
    assert rademacher_margin_bound(*given, empirical=True) == pytest.approx(
        0.22 + 3 * (3.688879 / 2000) ** 0.5
    )
    assert rademacher_margin_bound(*given, uniform=True) == pytest.approx(
        0.34 + (0.693147 / 1000) ** 0.5 + (3.688879 / 2000) ** 0.5
    )
    assert rademacher_margin_bound(*given, uniform=True, empirical=True) == pytest.approx(
        0.34 + (0.693147 / 1000) ** 0.5 + 3 * (4.382027 / 2000) ** 0.5
    )
    assert ensemble_margin_bound(*given) == rademacher_margin_bound(*given)


def test_mistake_and_training_bounds_equal_those_by_hand():
    assert pairwise_mistake_bound(3.0, 0.5) == 36.0
    assert prank_mistake_bound(5, 2.0, 0.5) == 68.0
    assert prank_mistake_bound(5, 2.0, 0.5, threshold_scale=3.0) == 100.0
    assert cusum_mistake_bound(2.0, 0.5) == 16.0
    assert cusum_mistake_bound(2.0, 0.5, demanded=1.5) == 28.0
    assert rankboost_training_bound([]) == 1.0
    assert rankboost_training_bound([-1.0, 1.0]) == pytest.approx(0.36787944)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: kernel_margin_bound(1.5, 1, 1, 1, 10), ValueError, "loss must be 0 to 1"),
        (lambda: kernel_margin_bound(0.1, -1, 1, 1, 10), ValueError, "radius must be from 0 on"),
        (lambda: kernel_margin_bound(0.1, 1, 1, 0, 10), ValueError, "rho must be above 0"),
        (lambda: kernel_margin_bound(0.1, 1, 1, 2, 10, uniform=True), ValueError, "up to 1"),
        (
            lambda: kernel_margin_bound(0.1, 1, 1, 1, 0),
            ValueError,
            "m must be an integer >= 1",
        ),
        (lambda: kernel_margin_bound(0.1, 1, 1, 1, 10.0), TypeError, "m must be an integer"),
        (lambda: kernel_margin_bound(0.1, 1, 1, 1, 10, 1.0), ValueError, "delta must be below 1"),
        (lambda: kernel_margin_bound("x", 1, 1, 1, 10), TypeError, "loss must be a number"),
        (lambda: vc_complexity(20, 10), ValueError, "at least the dimension"),
        (lambda: linear_complexity([-1.0]), ValueError, "squares must list"),
        (lambda: prank_mistake_bound(1, 1, 1), ValueError, "n_ranks must be an integer >= 2"),
        (lambda: prank_mistake_bound(2, 1, 1, threshold_scale=0), ValueError, "threshold_scale"),
        (lambda: pairwise_mistake_bound(1, 0), ValueError, "margin must be above 0"),
        (lambda: rankboost_training_bound([2.0]), ValueError, "edges must list"),
        (lambda: margin_curve([1, 0], [1.0, 0.0], rhos=[0.0]), ValueError, "rhos must list"),
        (lambda: margin_curve([1, 1], [1.0, 0.0]), ValueError, "nothing to learn from"),
        (lambda: margin_curve([1, 0], [1e308, -1e308]), ValueError, "scale y_score"),
        (lambda: margin_curve([1, 0], [5e-324, 0.0]), ValueError, "scale y_score"),
        (
            lambda: margin_curve([1, 0], [1.0, 0.0]).certificate(1.0, "a"),
            TypeError,
            "norm must be a number",
        ),
        (lambda: margin_curve([1, 0], [1.0, np.nan]), ValueError, "y_score must be finite"),
        (lambda: margin_curve([1, 0], [1.0, 0.0], balance="x"), ValueError, "balance must be"),
    ],
)
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---------------------------------------------------------------- the curve


@pytest.mark.parametrize("balance", ["query", None])
def test_the_curve_is_the_margin_loss_at_every_margin(balance):
    rng = np.random.default_rng(0)
    for seed in range(4):
        y, qid = rng.integers(0, [2, 4, 5, 50][seed], 80), rng.integers(0, 6, 80)
        s = rng.integers(-20, 20, 80) / 8  # ties, and distances that are margins
        rhos = np.concatenate([np.arange(1, 30) / 8, [0.01, 0.3, 100.0]])
        curve = margin_curve(y, s, qid=qid, rhos=rhos, balance=balance)
        np.testing.assert_array_equal(curve.rhos, np.sort(rhos))
        pairs = plain.pairs_of(y, qid)
        if balance:
            expected = [margin_loss(y, s, rho, qid=qid) for rho in curve.rhos]
            assert curve.misranking == pytest.approx(
                pairwise_misranking(y, s, qid=qid, ties="error")
            )
        else:
            d = np.array([s[i] - s[j] for i, j, _ in pairs])
            expected = [np.clip(1 - d / rho, 0, 1).mean() for rho in curve.rhos]
            assert curve.misranking == pytest.approx((d <= 0).mean())
        np.testing.assert_allclose(curve.losses, expected, rtol=0, atol=1e-13)
        # Differences of distances up to 5, divided by margins from 5e-4 on: four digits less.
        assert np.all(np.diff(margin_curve(y, s, qid=qid).losses) >= -1e-11)


def test_disjoint_pairs_are_counted():
    # 3 + 1 rows: one pair; 2 + 2 + 1: two; one label: none.
    y = [0, 0, 0, 1, 0, 0, 1, 1, 2, 3, 3]
    qid = [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2]
    assert margin_curve(y, np.arange(11.0), qid=qid).n_pairs == 3


# ---------------------------------------------------------------- that they hold


@pytest.mark.slow
def test_margin_bounds_hold_for_fits_that_overfit():
    # Coins decide which row of a pair is the better one: nobody ranks unseen pairs better than by
    # chance, and a machine of 90 features fits 150 pairs nearly without a mistake.
    rng = np.random.default_rng(0)
    m, d = 150, 90
    y, qid = np.tile([1, 0], m), np.repeat(np.arange(m), 2)
    losses, bounds = [], []
    for _ in range(20):
        X = rng.normal(size=(2 * m, d))
        X /= np.linalg.norm(X, axis=1)[:, None]
        model = rc.RankSVM(1e4, random_state=0).fit(X, y, qid=qid)
        norm = np.linalg.norm(model.coef_)
        curve = margin_curve(y, model.predict(X), qid=qid)
        assert curve.n_pairs == m
        losses.append(curve.misranking)
        bounds.append(np.nanmin(curve.certificate(1.0, norm)))
        slack = curve.losses[curve.rhos.searchsorted(1.0)]
        assert svm_bound(slack, 1.0, norm, m) >= 0.5
    assert np.mean(losses) < 0.1  # what was seen says nothing of what was not
    assert np.min(bounds) >= 0.5


def test_margin_bounds_hold_for_every_rho_and_are_below_one_with_many_pairs():
    rng = np.random.default_rng(1)
    m, n = 20_000, 20_000

    def draw(count):
        X = rng.normal(size=(2 * count, 3))
        X /= np.linalg.norm(X, axis=1)[:, None]
        s = X @ [1.0, 0.0, 0.0] + 0.1 * rng.normal(size=2 * count)
        return X, (s.reshape(-1, 2) == s.reshape(-1, 2).max(axis=1)[:, None]).ravel()

    X, y = draw(m)
    qid = np.repeat(np.arange(m), 2)
    model = rc.RankSVM(1.0, random_state=0).fit(X, y, qid=qid)
    curve = margin_curve(y, model.predict(X), qid=qid)
    bounds = curve.certificate(1.0, float(np.linalg.norm(model.coef_)), delta=0.01)
    unseen, better = draw(n)
    risk = pairwise_misranking(better, model.predict(unseen), qid=np.repeat(np.arange(n), 2))
    valid = ~np.isnan(bounds)
    assert np.all(bounds[valid] >= risk)
    assert bounds[valid].min() < 0.4


def test_complexities_bound_correlations_with_random_signs():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 4))
    signs = rng.choice([-1.0, 1.0], size=(4000, 60))
    reached = np.linalg.norm(signs @ X, axis=1).mean() * 1.5 / 60
    bound = linear_complexity((X**2).sum(axis=1), norm=1.5)
    # Jensen from above, Khintchine from below.
    assert bound / np.sqrt(2) <= reached <= bound
    x = np.sort(rng.normal(size=60))
    stumps = np.array([x > t for t in [-np.inf, *x]])
    stumps = np.concatenate([stumps, ~stumps]).astype(float)
    reached = (signs @ stumps.T).max(axis=1).mean() / 60
    assert 0.3 * vc_complexity(2, 60) <= reached <= vc_complexity(2, 60)


def test_pairwise_perceptrons_and_pranks_stay_below_their_bounds():
    rng = np.random.default_rng(3)
    for _ in range(10):
        X = rng.normal(size=(40, 3))
        w = rng.normal(size=3)
        w /= np.linalg.norm(w)
        y = np.digitize(X @ w, [-0.7, 0.7])
        pairs = [(i, j) for i, j in itertools.product(range(40), repeat=2) if y[i] > y[j]]
        gaps = np.array([X[i] - X[j] for i, j in pairs])
        model = rc.PairwisePerceptron(
            "last", margin=0.0, balance=None, max_iter=1000, standardize=False, random_state=0
        )
        model.fit(X, y, qid=np.zeros(len(y)))
        bound = pairwise_mistake_bound(np.linalg.norm(gaps, axis=1).max(), (gaps @ w).min())
        assert 0 < sum(model.history_["mistakes"]) <= bound
        length = np.sqrt(1 + 2 * 0.7**2)
        margin = min(np.abs(X @ w - b).min() for b in [-0.7, 0.7]) / length
        prank = rc.PRank.published(max_iter=500).fit(X, y)
        online = prank.update_loss_curve_[-1].prod()  # examples seen, times their mean rank loss
        assert 0 < online <= prank_mistake_bound(3, np.linalg.norm(X, axis=1).max(), margin)


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
def test_prank_stays_below_its_bound_whatever_the_threshold_scale(scale):
    X, y = [[1.0], [2.0]], [1, 2]
    params = {"margin": 0.0, "average": False, "shuffle": False, "max_iter": 2000}
    model = rc.PRank(threshold_scale=scale, standardize=False, **params).fit(X, y)
    assert model.history_["mistakes"][-1] == 0
    mistakes = sum(model.history_["mistakes"])
    # Units of (w, b / s) separate (-1, s) and (2, -s) from 0; the maximum margin is the distance
    # of their segment from 0.
    points = np.array([[-1.0, scale], [2.0, -scale]])
    t = np.linspace(0, 1, 100_001)[:, None]
    margin = np.linalg.norm(t * points[0] + (1 - t) * points[1], axis=1).min()
    assert 0 < mistakes <= prank_mistake_bound(2, 2.0, margin, threshold_scale=scale)
    if scale == 20.0:  # the bound of the paper's scale does not hold here
        assert mistakes == 403 > prank_mistake_bound(2, 2.0, 1 / 13**0.5)


@pytest.mark.parametrize("demanded", [0.0, 0.5])
def test_cusum_rank_stays_below_its_bound(demanded):
    rng = np.random.default_rng(4)
    for _ in range(10):
        X = rng.normal(size=(60, 3))
        w = rng.normal(size=3)
        w /= np.linalg.norm(w)
        cuts = np.array([-0.7, 0.7])
        X = X[np.abs((X @ w)[:, None] - cuts).min(axis=1) > 0.05]
        y = np.digitize(X @ w, cuts)
        # One vector (w, cut) for each cut, on rows with the constant -1; both together of length 1.
        tasks = np.column_stack([np.tile(w, (2, 1)), cuts])
        tasks /= np.linalg.norm(tasks)
        rows = np.column_stack([X, -np.ones(len(X))])
        margin = (np.where(y[:, None] > [0, 1], 1, -1) * (rows @ tasks.T)).min()
        model = rc.CuSumRank.published(max_iter=500, margin=demanded).fit(X, y)
        online = model.update_loss_curve_[-1].prod()  # examples seen, times their mean rank loss
        radius = np.linalg.norm(rows, axis=1).max()
        assert 0 < online <= cusum_mistake_bound(radius, margin, demanded=demanded)


def test_ensemble_bounds_hold_for_boosting_that_overfits():
    # Coins decide which row of a pair is the better one: the risk of any ranker is 1/2. Thresholds
    # on 50 features divide n points in 100 (n - 1) + 2 ways at most, 10 points not in all 1024.
    rng = np.random.default_rng(5)
    m, rho = 200, 0.1
    y, qid = np.tile([1, 0], m), np.repeat(np.arange(m), 2)
    stumps = vc_complexity(9, m)
    for _ in range(5):
        X = rng.normal(size=(2 * m, 50))
        model = rc.RankBoost(100).fit(X, y, qid=qid)
        scores = model.predict(X) / np.abs(model.estimators_["alpha"]).sum()
        loss = margin_loss(y, scores, rho, qid=qid)
        assert ensemble_margin_bound(loss, stumps, stumps, rho, m) >= 0.5
        # It is the complexity that saves it.
        assert ensemble_margin_bound(loss, 0.0, 0.0, rho, m) < 0.5


def test_rankboost_stays_below_its_bound():
    X, y, qid = rc.datasets.make_letor(30, 20, random_state=0)
    model = rc.RankBoost(40).fit(X, y, qid=qid)
    bound = rankboost_training_bound(model.history_["edge"])
    assert pairwise_misranking(y, model.predict(X), qid=qid, ties="error") <= bound
    assert model.history_["cap"][-1] <= bound < 1


def test_repr_of_a_curve_is_one_line():
    curve = margin_curve([1, 0, 1, 0], [2.0, 0.0, 1.0, 1.5])
    assert repr(curve) == "<MarginCurve: 200 margins, misranking 0.25, 2 independent pairs>"
