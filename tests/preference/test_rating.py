"""Ratings: the fit against plain Newton, the pairs that are asked, and what is known at the end."""

import math
import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import kendalltau, norm

from rankcore.preference import Indexed, Judges, PreferenceRanker, Ratings, from_scores, rate
from rankcore.preference.plackett_luce import Choices, fit_choices
from reference.plackett_luce import plain_maximum
from strategies import NIGHTLY


def fresh(places, noise, seed):
    rng = np.random.default_rng(seed)
    return Indexed(lambda i, j: (places[i] < places[j]) ^ (rng.random(i.size) < noise))


def fixed(places, noise, seed):
    n = places.size
    wrong = np.triu(np.random.default_rng(seed).random((n, n)) < noise, 1)
    wrong |= wrong.T
    return Indexed(lambda i, j: (places[i] < places[j]) ^ wrong[i, j])


def random_choices(seed, n=7, m=60, k=4):
    rng = np.random.default_rng(seed)
    items = np.full((m, k), -1)
    for row in range(m):
        size = rng.integers(2, k + 1)
        items[row, :size] = rng.choice(n, size, replace=False)
    return Choices(items, rng.random(m) + 0.1, rng.integers(-1, 2, m), rng.integers(0, 3, m)), rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", [False, True])
def test_the_fit_is_that_of_plain_newton_on_dense_matrices(seed, prior, monkeypatch):
    choices, rng = random_choices(seed)
    choices.judges = None
    scores = rng.normal(size=7) if prior else None
    theta, bias, slope, covariance = plain_maximum(7, choices, 1.3, scores)
    for dense in (0, 1000):
        monkeypatch.setattr("rankcore.preference.plackett_luce._DENSE", dense)
        found = fit_choices(7, choices, scale=1.3, prior=scores)
        np.testing.assert_allclose(found.theta, theta, atol=1e-8)
        np.testing.assert_allclose([found.bias, found.slope], [bias, slope], atol=1e-8)
        np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)
        # A warm start ends in the same place.
        again = fit_choices(7, choices, scale=1.3, prior=scores, start=found)
        np.testing.assert_allclose(again.theta, theta, atol=1e-8)


def test_many_items_take_no_matrix_of_all_pairs():
    n = 5000  # 200 MB, as a matrix
    items = np.stack([np.arange(n), np.roll(np.arange(n), 1)], axis=1)
    tracemalloc.start()
    try:
        found = fit_choices(n, Choices(items, np.ones(n)), scale=1.3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(found.theta, 0, atol=1e-9)  # each wins once, loses once
    assert peak < 20e6


def test_reliabilities_are_at_a_maximum():
    choices, _ = random_choices(5, m=200)
    found = fit_choices(7, replace(choices, n_judges=3), scale=1.0)

    def loss(reliability, theta, bias):
        total = (theta @ theta) / 2 + (bias / 0.5) ** 2 / 2
        total += (np.log(reliability) ** 2).sum() / 0.5**2 / 2
        for row, items in enumerate(choices.items):
            items = items[items >= 0]
            utility = theta[items] + bias * (np.arange(items.size) == choices.shown_first[row])
            utility = reliability[choices.judges[row]] * utility
            total += choices.weights[row] * (np.log(np.exp(utility).sum()) - utility[0])
        return total

    least = loss(found.reliability, found.theta, found.bias)
    for change in np.eye(3) * 0.02:
        assert loss(found.reliability * (1 + change), found.theta, found.bias) > least
        assert loss(found.reliability * (1 - change), found.theta, found.bias) > least
    for change in np.eye(7) * 0.02:
        assert loss(found.reliability, found.theta + change, found.bias) > least
    assert loss(found.reliability, found.theta, found.bias + 0.02) > least


@pytest.mark.sampled
@pytest.mark.parametrize(("budget", "tau"), [(300, 0.64), (600, 0.75), (1000, 0.81), (1770, 0.85)])
def test_whole_orders_of_a_judge_that_errs_anew(budget, tau):
    """Sixty items, 20% of the answers wrong."""
    found = []
    for seed in range(3 if NIGHTLY else 1):
        places = np.random.default_rng(seed).permutation(60)
        ranker = PreferenceRanker(
            fresh(places, 0.2, seed), method="rating", max_calls=budget, random_state=seed
        )
        ranker.rank(np.arange(60))
        assert ranker.n_calls_ == budget
        assert not ranker.complete_
        found.append(kendalltau(places[ranker.order_], np.arange(60)).statistic)
    assert np.mean(found) > tau


def test_a_judge_that_repeats_itself_is_found_out():
    places = np.random.default_rng(0).permutation(60)
    ranker = PreferenceRanker(
        fixed(places, 0.2, 0), method="rating", max_calls=10_000, random_state=0
    )
    ranker.rank(np.arange(60))
    assert len(ranker.pairs_) == 60 * 59 // 2
    assert ranker.n_calls_ < 60 * 59 // 2 + 120  # each pair once, but for the trials
    assert ranker.complete_
    honest = PreferenceRanker(fresh(places, 0.2, 0), method="rating", max_calls=1500)
    honest.set_params(random_state=0).rank(np.arange(60))
    assert len(honest.pairs_) < 1200
    once = PreferenceRanker(fresh(places, 0.2, 0), method="rating", repeats=1, random_state=0)
    once.rank(np.arange(60))
    assert len(once.pairs_) == once.n_calls_ <= 60 * 59 // 2


def test_several_judges_that_repeat_themselves_are_found_out():
    # Whoever errs, errs again; that another judge answers otherwise is no change of mind.
    def errs(number):
        return lambda u, v: (u < v) ^ ((5 * min(u, v) + 3 * max(u, v)) % 7 == number)

    judges = Judges([errs(number) for number in range(2)])
    ranker = PreferenceRanker(judges, method="rating", max_calls=200, random_state=0)
    ranker.rank(list(range(12)))
    assert ranker.complete_
    assert ranker.n_calls_ < 200


@pytest.mark.parametrize("n_calls", [12, 40, 90])
def test_the_next_pair_is_the_most_informative(n_calls):
    """Of 190 pairs, more than are sorted whole.

    Once 20 repeats had the answer that is known, no pair is repeated; the rounding of BLAS, which
    depends on its threads, decides when.
    """
    places, asked, known = np.random.default_rng(0).permutation(20), [], []

    def judge(u, v):
        asked.append((u, v))
        return places[u] < places[v]

    for n in (n_calls, n_calls + 1):
        ranker = PreferenceRanker(judge, method="rating", batch=1, max_calls=n, random_state=0)
        ranker.rank(list(range(20)))
        known.append(ranker.ratings_)
    assert asked[:n_calls] == asked[n_calls:-1]
    scores, C = known[0].scores, known[0].covariance
    met = {tuple(sorted(pair)) for pair in asked[:n_calls]}
    repeats_itself = n_calls - len(set(asked[:n_calls])) >= 20
    worths = {}
    for u, v in combinations(range(20), 2):
        if repeats_itself and (u, v) in met:
            continue
        spread = math.sqrt(C[u, u] + C[v, v] - 2 * C[u, v])
        worths[u, v] = spread * norm.sf(abs(scores[u] - scores[v]) / spread)
    assert worths[tuple(sorted(asked[-1]))] == pytest.approx(max(worths.values()), rel=1e-4)


def test_distant_pairs_are_asked_when_all_neighbours_have_met(monkeypatch):
    monkeypatch.setattr("rankcore.preference.rating._NEIGHBOURS", 3)
    ranker = PreferenceRanker(
        from_scores(np.arange(20)), method="rating", repeats=1, max_calls=1000, random_state=0
    )
    ranker.rank(np.arange(20))
    assert ranker.n_calls_ == len(ranker.pairs_) == 190


def test_auto_rates_whole_orders_of_judges_that_err_and_sorts_where_answers_are_certain():
    asked = []

    def judge(u, v):
        asked.append((u, v))
        return u < v

    items = np.random.default_rng(0).permutation(30).tolist()
    limited = PreferenceRanker(judge, max_calls=200, random_state=0)
    limited.rank(items)
    assert limited.n_calls_ == 200 == len(asked)
    assert not limited.complete_
    places = np.arange(30)
    for said in ({"noise": 0.1}, {}):
        noisy = PreferenceRanker(fresh(places, 0.1, 0), confidence=0.92, random_state=0, **said)
        noisy.rank(places)
        assert noisy.complete_
        assert noisy.ratings_.expected_inversions() <= 0.08 + 1e-9
    for certain in ({}, {"noise": 0}, {"noise": 0.0, "max_calls": 400}):
        sorting = PreferenceRanker(judge, random_state=0, **certain)
        assert sorting.rank(items) == sorted(items)
        assert sorting.n_calls_ < 30 * np.log2(30) * 1.39
    top = PreferenceRanker(judge, max_calls=100, top_k=2, random_state=0)
    halving = PreferenceRanker(judge, max_calls=100, top_k=2, method="halving", random_state=0)
    assert top.rank(items) == halving.rank(items)


@pytest.mark.sampled
def test_a_top_is_certain_to_a_chosen_probability():
    right, seeds = 0, range(10 if NIGHTLY else 2)
    for seed in seeds:
        places = np.random.default_rng(seed).permutation(30)
        ranker = PreferenceRanker(
            fresh(places, 0.1, seed), top_k=3, confidence=0.8, random_state=seed
        )
        found = ranker.rank(np.arange(30))
        assert ranker.complete_
        assert ranker.ratings_.certainty_of_top(3) >= 0.8
        assert ranker.n_calls_ < 2000
        right += set(places[found]) == {0, 1, 2}
    assert right >= 0.6 * len(seeds)
    # A budget stops it before, and says so.
    short = PreferenceRanker(
        fresh(places, 0.1, 0), method="rating", top_k=3, confidence=0.99, max_calls=40
    )
    short.rank(np.arange(30))
    assert (short.n_calls_, short.complete_) == (40, False)


@pytest.mark.sampled
def test_places_have_the_coverage_that_is_said():
    """Judges of the model itself: strengths from the prior, answers by their differences."""
    covered = []
    for seed in range(12 if NIGHTLY else 5):
        rng = np.random.default_rng(seed)
        theta = 1.5 * rng.standard_normal(40)
        judge = Indexed(
            lambda i, j, t=theta, r=rng: r.random(i.size) < 1 / (1 + np.exp(t[j] - t[i]))
        )
        ranker = PreferenceRanker(judge, method="rating", max_calls=400, random_state=seed)
        ranker.rank(np.arange(40))
        place = np.empty(40, dtype=int)
        place[np.argsort(-theta)] = np.arange(1, 41)
        low, high = ranker.place_interval_.T
        covered.append(np.mean((low <= place) & (place <= high)))
        assert (low <= high).all()
    assert 0.87 < np.mean(covered) < 0.98


def test_the_position_that_a_judge_likes_is_estimated():
    places = np.random.default_rng(1).permutation(40)
    rng = np.random.default_rng(2)

    def judge(i, j):
        return 1 / (1 + np.exp(0.2 * (places[i] - places[j]) - 1.0)) > rng.random(i.size)

    ranker = PreferenceRanker(Indexed(judge), method="rating", max_calls=800, random_state=0)
    ranker.rank(np.arange(40))
    assert 0.6 < ranker.ratings_.position_bias < 1.4
    assert kendalltau(places[ranker.order_], np.arange(40)).statistic > 0.8
    both = PreferenceRanker(Indexed(judge), method="rating", max_calls=801, both_orders=True)
    both.set_params(random_state=0).rank(np.arange(40))
    assert both.n_calls_ == 801


def test_degrees_and_ties_count_in_part():
    ranker = PreferenceRanker(np.full((5, 5), 0.5), method="rating", max_calls=40, random_state=0)
    assert ranker.rank(list("edcba")) == list("edcba")
    np.testing.assert_allclose(ranker.scores_, 0, atol=1e-7)
    np.testing.assert_array_equal(ranker.degrees_, 0.5)
    weak = PreferenceRanker(np.array([[0.5, 0.8], [0.2, 0.5]]), method="rating", repeats=1)
    weak.rank("ab")
    np.testing.assert_allclose(weak.degrees_, 0.8 if weak.pairs_[0, 0] == 0 else 0.2)
    # One answer of 0.8 is 0.8 of a win and 0.2 of a defeat.
    both = rate(["a"], ["b"], degree=[0.8], scale=1.5)
    assert 0 < both.scores[0] < rate(["a"], ["b"]).scores[0]


def test_scores_known_before_put_new_items_in_their_places():
    rng = np.random.default_rng(0)
    places = rng.permutation(60)
    known = -places + 12 * rng.standard_normal(60)
    taus = {}
    for name, prior in [
        ("none", None),
        ("scores", known),
        ("function", lambda items: known[items]),
        ("noise", rng.standard_normal(60)),
    ]:
        ranker = PreferenceRanker(
            fresh(places, 0.2, 3), method="rating", prior=prior, max_calls=150, random_state=0
        )
        ranker.rank(np.arange(60))
        taus[name] = kendalltau(places[ranker.order_], np.arange(60)).statistic
    assert taus["scores"] == taus["function"] > taus["none"] + 0.1
    assert taus["noise"] > taus["none"] - 0.15  # what turns out to say nothing is not trusted

    class Fitted:
        def predict(self, X):
            return -X[:, 0]

    rows = places[:, None].astype(float)
    ranker = PreferenceRanker(lambda u, v: True, method="rating", prior=Fitted(), max_calls=0)
    assert ranker.rank(rows)[:, 0].tolist() == list(range(60))


@pytest.mark.parametrize("budget", [0, 1, 2])
@pytest.mark.parametrize("items", [[], ["a"], ["a", "a", "a"], ["a", "b"], ["b", "a", "b"]])
def test_few_items_equal_items_and_no_budget(items, budget):
    ranker = PreferenceRanker(lambda u, v: u < v, method="rating", max_calls=budget, random_state=0)
    found = ranker.rank(items)
    assert sorted(found) == sorted(items)
    assert ranker.n_calls_ == (budget if len(set(items)) == 2 else 0)
    if budget:
        assert found == sorted(items)
    assert ranker.ratings_.beats().shape == (len(items),) * 2
    free = PreferenceRanker(lambda u, v: u < v, method="rating", random_state=0)
    assert free.rank(items) == sorted(items)


def test_a_run_that_is_broken_off_goes_on_with_the_same_pairs(tmp_path):
    def judge(u, v):
        return (u * 7919 + v * 104729) % 100 < 25 if u % 3 == v % 3 else u < v

    items = list(range(40))
    whole = PreferenceRanker(judge, max_calls=300, random_state=5)
    whole.rank(items)
    for stop in (1, 7, 100, 299):
        asked = []

        def limited(u, v, asked=asked, stop=stop):
            if len(asked) == stop:
                raise KeyboardInterrupt
            asked.append((u, v))
            return judge(u, v)

        path = tmp_path / f"{stop}.sqlite"
        first = PreferenceRanker(limited, max_calls=300, journal=path, random_state=5)
        with pytest.raises(KeyboardInterrupt):
            first.rank(items)
        assert sorted(first.order_) == items
        again = PreferenceRanker(judge, max_calls=300, journal=path, random_state=5)
        again.rank(items)
        np.testing.assert_array_equal(again.order_, whole.order_)
        np.testing.assert_array_equal(again.scores_, whole.scores_)
        assert again.n_reused_ == stop
        assert again.n_calls_ == 300


def test_no_item_is_twice_in_a_batch():
    batches = []

    def judge(i, j):
        batches.append(np.concatenate([i, j]))
        return i < j

    ranker = PreferenceRanker(
        Indexed(judge), method="rating", batch=8, max_calls=400, random_state=0
    )
    ranker.rank(np.arange(30))
    assert {batch.size for batch in batches} == {16}
    assert all(np.unique(batch).size == batch.size for batch in batches)


def test_items_are_twice_in_a_batch_that_has_no_room_otherwise():
    batches, rng = [], np.random.default_rng(0)

    def judge(i, j):
        batches.append(list(zip(np.minimum(i, j), np.maximum(i, j), strict=True)))
        return rng.random(i.size) < 0.5

    ranker = PreferenceRanker(
        Indexed(judge), method="rating", batch=12, max_calls=120, random_state=0
    )
    ranker.rank(np.arange(9))
    assert [len(batch) for batch in batches] == [12] * 10
    for batch in batches:
        assert len(set(batch)) == 12
        for turn in (batch[:4], batch[4:8], batch[8:]):  # each item once before any is twice
            assert np.unique(turn).size == 8
    everything = PreferenceRanker(
        Indexed(judge), method="rating", batch=100, max_calls=36, random_state=0
    )
    everything.rank(np.arange(9))
    assert len(set(batches[-1])) == 36  # all pairs at once


def test_every_method_knows_its_doubt():
    scores = np.random.default_rng(0).permutation(20)
    for method in ("quicksort", "degree", "heap"):
        ranker = PreferenceRanker(from_scores(scores), method=method, random_state=0)
        ranker.rank(np.arange(20))
        assert isinstance(ranker.ratings_, Ratings)
        np.testing.assert_array_equal(ranker.ranking_, np.argsort(-scores))
        assert kendalltau(ranker.scores_, scores).statistic > 0.7
        assert ranker.standard_errors_.shape == (20,)
        assert ranker.place_interval_.shape == (20, 2)
        assert ranker.probability_of_top(3).sum() == pytest.approx(3)
        before = ranker.ratings_
        ranker.rank(np.arange(20))
        assert ranker.ratings_ is not before


def test_pictures_show_places_and_doubt():
    matplotlib = pytest.importorskip("matplotlib")
    from rankcore.plotting import plot_doubt, plot_place_intervals

    places = np.random.default_rng(0).permutation(20)
    ranker = PreferenceRanker(fresh(places, 0.1, 0), method="rating", max_calls=100, random_state=0)
    ranker.rank(np.arange(20))
    ax = plot_place_intervals(ranker.ratings_, top=5)
    segments = ax.collections[0].get_segments()
    expected = ranker.place_interval_[ranker.ranking_[:5]]
    np.testing.assert_array_equal([segment[:, 0] for segment in segments], expected)
    assert [text.get_text() for text in ax.get_yticklabels()] == [
        str(item) for item in ranker.ranking_[:5]
    ]
    line = plot_doubt(ranker).lines[0]
    np.testing.assert_array_equal(line.get_xydata(), ranker.doubt_)
    assert ranker.doubt_[:, 0].tolist() == list(range(5, 101, 5))
    assert ranker.doubt_[-1, 1] < ranker.doubt_[0, 1]
    assert ranker.doubt_[-1, 1] == ranker.ratings_.expected_inversions()
    with pytest.raises(TypeError, match="plot_doubt requires a ranker"):
        plot_doubt(PreferenceRanker(np.eye(2), method="degree"))
    matplotlib.pyplot.close("all")
