"""What samplers claim about their errors, against the truth of simulated judges."""

import warnings

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import kendalltau

from rankcore.preference import Judges, PreferenceRanker, Sampler
from rankcore.preference.noise import JudgeModel
from simulated_judges import Judge, answer_all

# Judges, and the range of the coverage of 90% intervals: discrete intervals cover more.
CASES = {
    "none": ({}, (0.9, 1.0)),
    "a tenth": ({"noise": 0.1}, (0.85, 1.0)),
    "a fifth": ({"noise": 0.2}, (0.85, 0.98)),
    "a fifth of pairs": ({"noise": 0.2, "repeats": True}, (0.85, 0.98)),
    "two fifths": ({"noise": 0.4}, (0.85, 0.98)),
    "two fifths of pairs": ({"noise": 0.4, "repeats": True}, (0.85, 0.98)),
    "by distance": ({"closeness": 3.0}, (0.85, 1.0)),
    "position": ({"noise": 0.2, "first": 0.2}, (0.85, 0.98)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_place_intervals_cover_and_claimed_inversions_are_true(case):
    errors, (low, high) = CASES[case]
    inside, claimed, true, widths = [], [], [], []
    for seed in range(12):
        places = np.random.default_rng([seed, 5]).permutation(30)
        sampler = Sampler(list(range(30)), seed=seed)
        ratings = answer_all(sampler, Judge(places, seed, **errors), 300).ratings()
        first, last = ratings.place_interval().T
        inside.append(np.mean((first <= places + 1) & (places + 1 <= last)))
        widths.append(np.mean(last - first))
        claimed.append(ratings.expected_inversions())
        tau = kendalltau(places[ratings.ranking], np.arange(30)).statistic
        true.append((1 - tau) / 2)
    assert low <= np.mean(inside) <= high
    assert abs(np.mean(claimed) - np.mean(true)) < 0.05 + 2 * np.std(true) / len(true) ** 0.5
    if not errors:
        assert np.mean(widths) < 1


@pytest.mark.parametrize("confidence", [0.9, None])
def test_coin_is_not_complete_and_has_wide_intervals(confidence):
    rng = np.random.default_rng(0)
    ranker = PreferenceRanker(
        lambda u, v: rng.random() < 0.5,
        method="rating",
        confidence=confidence,
        max_calls=400,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.rank(list(range(20)))
    assert ranker.n_calls_ == 400
    assert not ranker.complete_
    first, last = ranker.ratings_.place_interval().T
    assert np.mean(last - first) > 13
    assert ranker.sampler_.uncertainty().inversions > 0.3


@pytest.mark.parametrize("method", ["rating", "quicksort", "degree"])
def test_judge_of_the_position_is_named_and_not_complete(method):
    ranker = PreferenceRanker(lambda u, v: 1.0, method=method, max_calls=200, random_state=0)
    with pytest.warns(UserWarning, match="The judge prefers the item shown first in 100% of"):
        ranker.rank(list(range(20)))
    assert not ranker.complete_
    found = ranker.sampler_.uncertainty()
    assert found.position_bias[0] > 0.4
    assert found.inversions > 0.3


@pytest.mark.parametrize("method", ["rating", "quicksort", "degree", "halving"])
def test_sorted_items_do_not_look_like_a_judge_of_the_position(method):
    ranker = PreferenceRanker(lambda u, v: u < v, method=method, top_k=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ranker.rank(list(range(40))) == [0, 1, 2, 3, 4]
    assert ranker.complete_


def test_position_bias_and_error_rate_are_estimated():
    places = np.random.default_rng(1).permutation(40)
    sampler = Sampler(list(range(40)), seed=0)
    found = answer_all(sampler, Judge(places, 0, noise=0.1, first=0.2), 800).uncertainty()
    assert found.position_bias[0] == pytest.approx(0.1, abs=0.03)
    low, high = found.error_interval[0]
    # A fifth of the answers is not about the items, and a tenth of the rest is wrong.
    assert low < 0.1 * 0.8 + 0.1 < high


def test_repeating_judge_is_detected():
    places = np.random.default_rng(2).permutation(30)
    found = [
        answer_all(Sampler(list(range(30)), seed=0), Judge(places, 0, noise=0.2, repeats=how), 600)
        for how in (True, False)
    ]
    copies = [sampler.uncertainty().repeats_itself[0] for sampler in found]
    assert copies[0] > 0.8
    assert copies[1] < 0.3


@pytest.mark.slow
def test_adversary_among_four_is_as_good_as_known():
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


def test_posterior_is_that_of_a_grid():
    """Two items, by numerical integration over all parameters that one kind of answers leaves."""
    model = JudgeModel(2, 0, noise=0.1)
    for _ in range(6):
        model.add_pair(0, 1, 1.0)
    for _ in range(2):
        model.add_pair(1, 0, 0.0)
    drawn = [model.report() for _ in range(20)]
    apart = np.concatenate([draws.theta[:, 0] - draws.theta[:, 1] for draws in drawn])
    # theta_0 - theta_1 ~ N(0, 2); copies as in the kernel: the first answer, five that agree with
    # it, one shown in the other order that agrees, and one that agrees with that.
    rng = np.random.default_rng(0)
    m = 400_000
    d = 2**0.5 * rng.standard_normal(m)
    lapse, favoured = rng.beta(8.5, 32.5, m), rng.beta(4, 4, m)
    slope, bias = np.exp(np.log(6) + 1.5 * rng.standard_normal(m)), 0.5 * rng.standard_normal(m)
    same, turned = rng.beta(0.5, 0.5, m), rng.beta(0.5, 0.5, m)
    p = lapse * favoured + (1 - lapse) * expit(slope * d + bias)
    q = 1 - (lapse * favoured + (1 - lapse) * expit(-slope * d + bias))
    weight = p * (same + (1 - same) * p) ** 5
    weight *= (turned + (1 - turned) * q) * (same + (1 - same) * q)
    expected = np.average(d, weights=weight)
    spread = np.average((d - expected) ** 2, weights=weight) ** 0.5
    assert apart.mean() == pytest.approx(expected, abs=0.08)
    assert apart.std() == pytest.approx(spread, rel=0.08)
