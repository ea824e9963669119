"""Uncertainty of samplers, compared with the truth of simulated judges."""

import functools
import warnings
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kendalltau

from rankcore.preference import Judges, PreferenceRanker, Sampler
from rankcore.preference.noise import JudgeModel
from simulated_judges import Judge, answer_all

# Errors of judges, by kind and the fraction of wrong answers about random pairs of 30 items; of
# those by position a fifth of the answers is for the item shown first, besides.
CLOSENESS = {0.1: 2.74, 0.2: 5.91, 0.4: 24.96}
JUDGES = {"none": {}, "a coin": {"noise": 0.5}, "a coin of pairs": {"noise": 0.5, "repeats": True}}
for share in (0.1, 0.2, 0.4):
    JUDGES |= {
        f"independent {share}": {"noise": share},
        f"repeated {share}": {"noise": share, "repeats": True},
        f"by distance {share}": {"closeness": CLOSENESS[share]},
        f"by position {share}": {"noise": share, "first": 0.2},
    }
SEEDS = 32


@functools.cache
def claims(case):
    """Return coverage and mean width of 90% intervals, and claimed and true inversions, by seed."""
    found = []
    for seed in range(SEEDS):
        places = np.random.default_rng([seed, 5]).permutation(30)
        sampler = answer_all(
            Sampler(list(range(30)), seed=seed), Judge(places, seed, **JUDGES[case]), 300
        )
        ratings = sampler.ratings()
        first, last = ratings.place_interval(0.9).T - 1
        ranked = places[ratings.ranking]
        wrong = [u > v for u, v in combinations(ranked, 2)]
        found.append(
            (
                np.mean((first <= places) & (places <= last)),
                np.mean(last - first),
                sampler.uncertainty().inversions,
                np.mean(wrong),
                sampler.done(),
            )
        )
    return np.array(found).T


def error(values):
    """Return the Monte-Carlo error of a mean over seeds."""
    return np.std(values, ddof=1) / len(values) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("case", JUDGES)
def test_place_intervals_cover(case):
    inside, widths, _, _, complete = claims(case)
    assert np.mean(inside) > 0.85 - error(inside)
    if case == "none":
        assert np.mean(widths) < 1
        assert np.mean(complete) > 0.5
    elif "coin" in case:
        assert np.mean(widths) > 0.8 * 29
        assert not complete.any()
    elif "0.1" not in case:  # intervals of whole numbers that are nearly known cover more
        assert np.mean(inside) < 0.97 + 2 * error(inside)


@pytest.mark.slow
@pytest.mark.parametrize("case", JUDGES)
def test_expected_inversions_are_calibrated(case):
    _, _, claimed, true, _ = claims(case)
    if "coin" in case:
        # 300 answers hardly tell a coin from 40% wrong answers: were all pairs of 60 items random,
        # numbers of wins of 600 answers would differ by 1.5 standard deviations.
        assert np.mean(claimed) > 0.35
    else:
        assert abs(np.mean(claimed - true)) < 0.05 + error(claimed - true)


@pytest.mark.parametrize("confidence", [0.9, None])
def test_coin_is_not_complete_and_has_wide_intervals(confidence):
    widths, claimed = [], []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        ranker = PreferenceRanker(
            lambda u, v, rng=rng: rng.random() < 0.5,
            method="rating",
            confidence=confidence,
            max_calls=200,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker.rank(list(range(20)))
        assert ranker.n_calls_ == 200
        assert not ranker.complete_
        first, last = ranker.ratings_.place_interval().T
        widths.append(np.mean(last - first))
        claimed.append(ranker.sampler_.uncertainty().inversions)
    assert np.mean(widths) > 13
    assert np.mean(claimed) > 0.3


@pytest.mark.parametrize("method", ["rating", "quicksort", "degree"])
def test_judge_who_answers_by_position_is_reported_and_incomplete(method):
    ranker = PreferenceRanker(lambda u, v: 1.0, method=method, max_calls=200, random_state=0)
    with pytest.warns(UserWarning, match="The judge prefers the item shown first in 100% of"):
        ranker.rank(list(range(20)))
    assert not ranker.complete_
    found = ranker.sampler_.uncertainty()
    assert found.position_bias[0] > 0.4
    assert found.inversions > 0.3


def test_judge_of_ties_is_asked_about_each_pair_a_few_times_and_incomplete():
    ranker = PreferenceRanker(lambda u, v: 0.5, method="rating", max_calls=5000, random_state=0)
    with pytest.warns(UserWarning, match="Answers of the judge hardly depend on the items"):
        ranker.rank(list(range(12)))
    assert 66 <= ranker.n_calls_ < 300
    assert not ranker.complete_


@pytest.mark.parametrize("method", ["rating", "quicksort", "degree", "halving"])
def test_sorted_items_cause_no_warning_of_position_bias(method):
    ranker = PreferenceRanker(lambda u, v: u < v, method=method, top_k=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranker.rank(list(range(40))) == [0, 1, 2, 3, 4]
    assert ranker.complete_


def test_leaderboard_places_cover_simultaneously_and_are_narrow():
    covered, widths = [], []
    for seed in range(4):
        places = np.random.default_rng([seed, 6]).permutation(20)
        judge = Judge(places, seed, noise=0.1)
        board = answer_all(Sampler(list(range(20)), seed=seed), judge, 200).ratings().leaderboard()
        covered.append(
            all(row.first_place <= places[row.item] + 1 <= row.last_place for row in board)
        )
        widths += [row.last_place - row.first_place for row in board]
    assert np.mean(covered) >= 0.75
    assert np.mean(widths) < 8


@pytest.mark.parametrize("n", [2, 10, 100, 300])
def test_leaderboard_places_cover_as_many_new_draws_as_promised(n):
    rng = np.random.default_rng(n)
    strengths = np.linspace(2, -2, n) + rng.standard_t(4, (2800, n)) / 4
    ratings = Sampler(list(range(n)), seed=0).ratings()
    board = replace(ratings, _source=strengths[:800]).leaderboard(0.95)
    first, last = np.array([row[5:7] for row in sorted(board)]).T - 1
    places = np.argsort(np.argsort(-strengths[800:], axis=1), axis=1)
    covered = ((first <= places) & (places <= last)).all(axis=1)
    assert 0.92 < np.mean(covered) < (0.98 if n > 2 else 1.1)


@pytest.mark.parametrize("scale", [16, 32])
def test_graded_answers_are_not_called_those_of_a_coin(scale):
    places = np.random.default_rng(6).permutation(20)
    sampler = Sampler(list(range(20)), seed=0)
    while sampler.n_answers < 150:
        for comparison in sampler.ask():
            u, v = comparison.places
            apart = (places[v] - places[u]) / scale
            sampler.tell(comparison, 0.5 + float(np.clip(apart, -1, 1)) / 2)
    assert kendalltau(places[sampler.ranking()], np.arange(20)).statistic > 0.7
    assert sampler.uncertainty().warnings == ()


def test_position_bias_and_error_rate_are_estimated():
    places = np.random.default_rng(1).permutation(40)
    sampler = Sampler(list(range(40)), seed=0)
    found = answer_all(sampler, Judge(places, 0, noise=0.1, first=0.2), 800).uncertainty()
    assert found.position_bias[0] == pytest.approx(0.1, abs=0.03)
    low, high = found.error_interval[0]
    # A fifth of the answers is not about the items, and a tenth of the rest is wrong.
    assert low < 0.1 * 0.8 + 0.1 < high


def test_repeating_judge_is_detected():
    places = np.random.default_rng(2).permutation(20)
    found = [
        answer_all(Sampler(list(range(20)), seed=0), Judge(places, 0, noise=0.2, repeats=how), 400)
        for how in (True, False)
    ]
    copies = [sampler.uncertainty().repeats_itself[0] for sampler in found]
    assert copies[0] > 0.8
    assert copies[1] < 0.3


PANELS = {"one careless": (0.1, 0.45), "one adversary": (0.1, 0.1, 0.9)}


@pytest.mark.parametrize("panel", PANELS)
def test_order_is_not_doubted_as_a_whole_for_one_bad_judge(panel):
    # If all judges may be adversaries, the reverse of the order is left as likely as a tenth.
    claimed, true = [], []
    for seed in range(4):
        places = np.random.default_rng([seed, 11]).permutation(20)
        judges = {
            name: Judge(places, [seed, k], noise=min(rate, 1 - rate))
            for k, (name, rate) in enumerate(zip("abc", PANELS[panel], strict=False))
        }
        sampler = Sampler(list(range(20)), judges=list(judges), seed=seed)
        while sampler.n_answers < 250 and (asked := sampler.ask(25)):
            for comparison in asked:
                answer = judges[comparison.judge](*comparison.items)
                if comparison.judge == "c":
                    answer = not answer
                sampler.tell(comparison, answer)
        claimed.append(sampler.uncertainty().inversions)
        wrong = [u > v for u, v in combinations(places[sampler.ranking()], 2)]
        true.append(np.mean(wrong))
    assert np.mean(true) < 0.03
    assert np.mean(true) - 0.02 < np.mean(claimed) < 0.05


@pytest.mark.slow
def test_unknown_adversary_costs_no_more_than_a_known_one():
    taus, negative = {"learned": [], "known": []}, []
    for seed in range(8):
        places = np.random.default_rng([seed, 9]).permutation(30)
        judges = [Judge(places, [seed, k], noise=0.15) for k in range(4)]
        adversary = judges[3]

        def contrary(u, v, judge=adversary):
            return not judge(u, v)

        for name, last in (("learned", contrary), ("known", adversary)):
            panel = Judges({"ann": judges[0], "bob": judges[1], "cyd": judges[2], "dee": last})
            ranker = PreferenceRanker(panel, max_calls=400, random_state=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranker.rank(list(range(30)))
            order = ranker.order_
            taus[name].append(kendalltau(places[order], np.arange(30)).statistic)
            if name == "learned":
                reliability = dict(
                    zip(ranker.ratings_.judges, ranker.ratings_.reliability, strict=True)
                )
                assert min(reliability, key=reliability.get) == "dee"
                negative.append(reliability["dee"] < 0)
    assert np.mean(negative) > 0.8
    difference = np.subtract(taus["known"], taus["learned"])
    assert difference.mean() < 0.02 + 2 * difference.std() / 8**0.5


def test_cheap_judge_is_asked_most():
    places = np.random.default_rng(3).permutation(20)
    cheap, dear = (Judge(places, seed, noise=0.1) for seed in range(2))
    judges = Judges({"cheap": cheap, "dear": dear}, prices={"cheap": 1.0, "dear": 10.0})
    ranker = PreferenceRanker(judges, max_calls=150, random_state=0)
    ranker.rank(list(range(20)))
    assert cheap.calls > 5 * dear.calls
    assert ranker.cost_ == cheap.calls + 10 * dear.calls


def test_posterior_equals_importance_sampling():
    """Compare two items with draws from the prior, weighted by the likelihood."""
    model = JudgeModel(2, 0, noise=0.1)
    for _ in range(6):
        model.add_pair(0, 1, 1.0)
    for _ in range(2):
        model.add_pair(1, 0, 0.0)
    drawn = [model.update() for _ in range(1000)]
    apart = np.concatenate([draws.theta[:, 0] - draws.theta[:, 1] for draws in drawn])
    # theta_0 - theta_1 ~ N(0, 2); copies as in the kernel: the first answer, five that agree with
    # it, one shown in the other order that agrees, and one that agrees with that.
    rng = np.random.default_rng(0)
    m = 400_000
    d = 2**0.5 * rng.standard_normal(m)
    lapse, favoured = rng.beta(8.5, 32.5, m), rng.beta(4, 4, m)
    slope, bias = np.exp(np.log(6) + 2.5 * rng.standard_normal(m)), 0.5 * rng.standard_normal(m)
    same, turned = rng.beta(0.5, 0.5, m), rng.beta(0.5, 0.5, m)
    p = lapse * favoured + (1 - lapse) * expit(slope * d + bias)
    q = 1 - (lapse * favoured + (1 - lapse) * expit(-slope * d + bias))
    weight = p * (same + (1 - same) * p) ** 5
    weight *= (turned + (1 - turned) * q) * (same + (1 - same) * q)
    expected = np.average(d, weights=weight)
    spread = np.average((d - expected) ** 2, weights=weight) ** 0.5
    assert apart.mean() == pytest.approx(expected, abs=0.08)
    assert apart.std() == pytest.approx(spread, rel=0.08)
