"""The sequential test: the plain wealth, and false alarms of simulated experiments."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rankcore.interleaving import preference, sequential_test
from rankcore.interleaving.sequential import BETS
from reference import sequential as plain
from strategies import NIGHTLY, examples

PREFERENCES = st.lists(st.sampled_from([-1.0, -0.25, 0.0, 0.5, 1.0]), min_size=0, max_size=25)


@given(PREFERENCES)
@settings(max_examples=examples(50))
def test_p_values_follow_from_the_plain_wealth(preferences):
    found = sequential_test(preferences, looks=range(len(preferences) + 1))
    least = 1.0
    for n, p in enumerate(found.p_value):
        least = min(least, 1 / float(plain.wealth(preferences[:n], 0, BETS.tolist())))
        assert p == pytest.approx(least, rel=1e-12)
        mean = sum(preferences[:n]) / n if n else 0
        assert found.mean[n] == pytest.approx(mean, abs=1e-15)
    assert found.n.tolist() == [*range(len(preferences) + 1)]


@given(PREFERENCES.filter(len), st.sampled_from([0.05, 0.5, 0.9]))
@settings(max_examples=examples(50))
def test_intervals_end_where_the_wealth_does(preferences, alpha):
    found = sequential_test(preferences, alpha=alpha)
    low, high = float(found.low[0]), float(found.high[0])
    assert -1 <= low <= found.mean[0] <= high <= 1
    for end, inside, outside in [(low, low + 1e-6, low - 1e-6), (high, high - 1e-6, high + 1e-6)]:
        if abs(end) < 1:
            assert plain.wealth(preferences, inside, BETS.tolist()) < 1 / alpha
            assert plain.wealth(preferences, outside, BETS.tolist()) > 1 / alpha


def test_looks_do_not_depend_on_the_order_before_them():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 300)
    one = sequential_test(x, looks=[100, 300])
    other = sequential_test(np.concatenate([x[:100][::-1], x[100:][::-1]]), looks=[100, 300])
    np.testing.assert_allclose(one.p_value, other.p_value, rtol=1e-12)
    again = sequential_test(x, looks=range(1, 301))
    assert (np.diff(again.p_value) <= 0).all()
    assert (np.diff(again.low) >= 0).all()
    assert (np.diff(again.high) <= 0).all()


def experiments(rng, n, win, loss, days=14, per_day=100):
    """Preferences of experiments, and the ends of their days."""
    looks = np.arange(1, days + 1) * per_day
    for _ in range(n):
        yield rng.choice([-1.0, 0.0, 1.0], days * per_day, p=[loss, 1 - win - loss, win]), looks


def t_test(x, looks):
    """Whether a t-test with a level of 0.05 would stop at any of the looks."""
    mean = x.cumsum()[looks - 1] / looks
    variance = (x**2).cumsum()[looks - 1] / looks - mean**2
    t = mean / np.sqrt(variance / (looks - 1))
    return bool((np.abs(t) > stats.t.ppf(0.975, looks - 1)).any())


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("tie", [0.0, 0.6])
def test_false_alarms_are_at_most_five_in_a_hundred(tie):
    n = 10_000 if NIGHTLY else 100
    share = (1 - tie) / 2
    daily, alarms = 0, 0
    for x, looks in experiments(np.random.default_rng(1), n, share, share):
        found = sequential_test(x, looks=looks)
        alarms += found.winner is not None
        assert (found.winner is None) == (found.low[-1] <= 0 <= found.high[-1])
        daily += t_test(x, looks)
    print(f"{alarms} false alarms in {n} experiments, {daily} of a t-test with the same looks")
    assert alarms <= 0.05 * n
    assert daily > 0.1 * n  # which the same looks make of a t-test


@pytest.mark.sampled
def test_intervals_contain_the_truth_at_every_look():
    n = 3000 if NIGHTLY else 100
    missed = 0
    for x, looks in experiments(np.random.default_rng(2), n, 0.35, 0.25):
        found = sequential_test(x, looks=looks)
        missed += not (found.low[-1] <= 0.1 <= found.high[-1])
    assert missed <= 0.05 * n


@pytest.mark.sampled
def test_power_is_close_to_that_of_a_fixed_t_test():
    """With twice the impressions of a t-test of 90% power it finds nearly as many differences."""
    n, days, per_day = 1000 if NIGHTLY else 100, 14, 200
    effect = stats.norm.ppf(0.975) + stats.norm.ppf(0.9)  # in standard errors at half the time
    difference = effect * np.sqrt(0.4 / (days * per_day / 2))
    shares = 0.2 + difference / 2, 0.2 - difference / 2
    winners, needed, t_tests = [], [], 0
    for x, looks in experiments(np.random.default_rng(3), n, *shares, days, per_day):
        found = sequential_test(x, looks=looks)
        winners.append(found.winner)
        if found.winner == 1:
            needed.append(np.argmax(found.p_value <= 0.05) + 1)
        t_tests += t_test(x, looks[days // 2 - 1 : days // 2])
    assert 0 not in winners
    assert t_tests / n == pytest.approx(0.9, abs=4 * (0.09 / n) ** 0.5)
    assert len(needed) >= 0.8 * n
    assert np.median(needed) <= 0.75 * days


@pytest.mark.sampled
@pytest.mark.parametrize("mean", [0.0, 0.1, -0.6, 0.95])
def test_a_constant_preference_is_rarely_called_changing(mean):
    """At most a share alpha of experiments misses the truth at any look, or has a warning."""
    rng, alpha, n = np.random.default_rng(4), 0.1, 2000 if NIGHTLY else 100
    looks, missed, changed = np.arange(50, 1001, 50), 0, 0
    for _ in range(n):
        x = rng.choice([-1.0, 1.0], 1000, p=[(1 - mean) / 2, (1 + mean) / 2])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = sequential_test(x, looks=looks, alpha=alpha)
        missed += not ((found.low <= mean) & (mean <= found.high)).all()
        changed += not found.constant[-1]
    bound = stats.binom.ppf(0.9999, n, alpha)
    assert changed <= missed <= bound


@pytest.mark.parametrize("later", [-0.6, 0.0, 0.3])
def test_a_preference_that_changes_warns_and_has_no_winner(later):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(mean, 1, 4000) for mean in (0.9, later)])
    looks = np.arange(200, 8001, 200)
    with pytest.warns(UserWarning, match="assumes a constant preference.* after [45]"):
        found = sequential_test(np.sign(x), looks=looks)
    assert (found.low <= found.high).all()
    alone = ~found.constant
    assert (found.low <= found.mean)[alone].all()
    assert (found.mean <= found.high)[alone].all()
    assert found.winner is None
    before = looks <= 4000
    assert found.constant[before].all()
    assert not found.constant[-1]
    # Without an intersection, the interval is that of the look.
    last = sequential_test(np.sign(x))
    assert (found.low[-1], found.high[-1]) == (last.low[0], last.high[0])
    assert sequential_test(np.sign(x)[:4000], looks=looks[before]).winner == 1


def test_preferences_are_differences_of_credits():
    credit = [[2, 1], [0, 0], [1, 3], [-1, -3], [0.5, 0.5]]
    assert preference(credit).tolist() == [-1, 0, 1, -1, 0]
    assert preference(credit, by="share").tolist() == [-1 / 3, 0, 0.5, -0.5, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1.5],), "preferences must be from -1 to 1"),
        (([0, np.nan],), "preferences must be from -1 to 1"),
        (([0, 1], [3]), "looks must ascend from 0 to at most 2 impressions"),
        (([0, 1], [2, 1]), "looks must ascend from 0"),
        (([0, 1], [0.5]), "looks must be one or more integers"),
        (([0, 1], []), "looks must be one or more integers"),
        (([0, 1], None, 1.0), "alpha must be between 0 and 1; got 1.0"),
    ],
)
def test_bad_input_is_rejected(arguments, message):
    preferences, looks, alpha = (*arguments, None, 0.05)[:3] if len(arguments) < 3 else arguments
    with pytest.raises(ValueError, match=message):
        sequential_test(preferences, looks=looks, alpha=alpha or 0.05)
    with pytest.raises(ValueError, match="shape"):
        preference([1, 2, 3])
    with pytest.raises(ValueError, match="by must be one of"):
        preference([[1, 2]], by="size")
