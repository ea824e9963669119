"""Judges that err as often about distant items as about near ones, or never."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau

from rankcore.preference import Indexed, PreferenceRanker
from rankcore.preference.equal_errors import fit_equal_errors
from rankcore.preference.plackett_luce import Choices
from strategies import NIGHTLY


def judge(places, noise, seed, repeats_itself):
    rng, n = np.random.default_rng(seed), places.size
    wrong = np.triu(rng.random((n, n)) < noise, 1)
    wrong |= wrong.T

    def answer(i, j):
        errs = wrong[i, j] if repeats_itself else rng.random(i.size) < noise
        return (places[i] < places[j]) ^ errs

    return Indexed(answer)


def ranked(n, noise, calls, seed, repeats_itself=False, **params):
    places = np.random.default_rng(seed).permutation(n)
    preference = judge(places, noise, seed, repeats_itself)
    ranker = PreferenceRanker(
        preference, method="rating", max_calls=calls, random_state=seed, **params
    )
    ranker.rank(np.arange(n))
    return ranker, places


def answers(n, m, seed, noise=0.2):
    rng = np.random.default_rng(seed)
    items = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    turned = (items[:, 0] > items[:, 1]) ^ (rng.random(m) < noise)
    items[turned] = items[turned, ::-1]
    return Choices(items, rng.integers(1, 3, m) / 2)


@pytest.mark.parametrize(("noise", "m"), [(0.2, 40), (0.05, 60)])
@pytest.mark.parametrize("seed", range(4))
def test_orders_and_their_doubt_are_those_of_all_orders_counted(seed, noise, m):
    n = 5
    choices = answers(n, m, seed, noise)
    found = fit_equal_errors(n, choices, np.random.default_rng(seed).permutation(n))
    against = {}
    for order in permutations(range(n)):
        place = np.argsort(order)
        wrong = place[choices.items[:, 0]] > place[choices.items[:, 1]]
        against[order] = choices.weights[wrong].sum()
    least = min(against.values())
    assert against[tuple(found.order.tolist())] == least
    error = (least + 0.5) / (choices.weights.sum() - np.log2(120) + 1)
    assert found.error == pytest.approx(error)
    chances = {order: (error / (1 - error)) ** c for order, c in against.items()}
    total = sum(chances.values())
    expected, before = np.zeros((n, n)), np.eye(n) / 2
    for order, chance in chances.items():
        expected[list(order), np.arange(n)] += chance / total
        place = np.argsort(order)
        before += (place[:, None] < place) * chance / total
    draws = found.draws(np.random.default_rng(0))
    shares = [[(draws[:, item] == place).mean() for place in range(n)] for item in range(n)]
    np.testing.assert_allclose(shares, expected, atol=0.05)
    np.testing.assert_allclose(found.beats() + found.beats().T, 1.0)
    if noise < 0.1:  # one item at a time stands for all orders where there is little doubt
        np.testing.assert_allclose(found.beats(), before, atol=0.02)


def test_too_few_answers_say_nothing_of_errors():
    assert fit_equal_errors(20, answers(20, 60, 0), np.arange(20)) is None
    # As many answers for one order as for the other.
    ties = Choices(np.array([[0, 1], [1, 0]] * 10), np.ones(20))
    assert fit_equal_errors(2, ties, np.arange(2)) is None


@pytest.mark.parametrize("repeats_itself", [False, True])
def test_a_judge_that_never_errs_is_certain_before_the_budget_is_spent(repeats_itself):
    ranker, places = ranked(60, 0.0, 1770, 0, repeats_itself)
    assert ranker.complete_
    assert ranker.n_calls_ < 1000
    assert places[ranker.order_].tolist() == list(range(60))
    np.testing.assert_array_equal(ranker.place_interval_, np.stack([places + 1] * 2, axis=1))
    np.testing.assert_allclose(ranker.probability_of_top(7), places < 7, atol=0.005)
    assert ranker.ratings_.certainty_of_top(7) > 0.99
    assert ranker.doubt_[-1, 1] * 1770 <= 0.05
    # A short budget is spent, and does not end in certainty.
    short, _ = ranked(60, 0.0, 400, 0, repeats_itself)
    assert (short.n_calls_, short.complete_) == (400, False)


def test_a_top_by_a_judge_that_never_errs():
    ranker, places = ranked(40, 0.0, 2000, 1, top_k=4)
    assert ranker.complete_
    assert ranker.n_calls_ < 500
    assert places[ranker.order_[:4]].tolist() == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.sampled
def test_all_pairs_of_a_judge_that_repeats_itself_are_no_worse_than_some():
    taus = []
    for calls in (1000, 1770):
        found = [ranked(60, 0.2, calls, seed, True) for seed in range(3 if NIGHTLY else 2)]
        taus.append([kendalltau(p[r.order_], np.arange(60)).statistic for r, p in found])
    some, every = np.mean(taus, axis=1)
    assert every > 0.87
    assert every > some - 0.02


def test_strengths_decide_where_near_items_are_hard_to_tell():
    rng = np.random.default_rng(0)
    theta = 1.5 * rng.standard_normal(40)
    preference = Indexed(lambda i, j: rng.random(i.size) < 1 / (1 + np.exp(theta[j] - theta[i])))
    ranker = PreferenceRanker(preference, method="rating", max_calls=800, random_state=0)
    ranker.rank(np.arange(40))
    np.testing.assert_array_equal(ranker.ranking_, np.argsort(-ranker.scores_, kind="stable"))
    assert ranker.n_calls_ == 800


def test_equal_items_share_places():
    items = [5, 3, 3, 9, 1, 7, 3, 8, 2, 6]
    ranker = PreferenceRanker(lambda u, v: u < v, method="rating", max_calls=90, random_state=0)
    assert ranker.rank(items) == sorted(items)
    by_item = dict(zip(items, ranker.place_interval_.tolist(), strict=True))
    assert by_item == {1: [1, 1], 2: [2, 2], 3: [5, 5], 5: [6, 6]} | {
        k: [k, k] for k in (7, 8, 9)
    } | {6: [7, 7], 7: [8, 8], 8: [9, 9], 9: [10, 10]}
    # Those that are one are in no wrong order.
    assert ranker.ratings_.expected_inversions() < 0.01
