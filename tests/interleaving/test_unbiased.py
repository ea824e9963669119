"""Equal rankers have expected credit 0: users who read from above, clicks that know nothing."""

import numpy as np
import pytest

from rankcore._ext import interleave
from rankcore.interleaving import Optimized, Probabilistic
from rankcore.interleaving.rankings import Rankings
from strategies import NIGHTLY

RUNS = 1_000_000 if NIGHTLY else 100_000
SAME = [[4, 0, 2, 1, 3, 5]] * 2
DIFFERENT = [[0, 1, 2, 3, 4, 5], [3, 4, 0, 6, 1, 7]]
THREE = [[0, 1, 2, 3, 4, 5], [3, 4, 0, 6, 1, 7], [7, 1, 2, 0, 5, 3]]


def simulated(method, rankings, length, by_document):
    """Credits of all runs: of users whose clicks fall with the place, and with the document."""
    numbered = Rankings.of(rankings)
    n = RUNS
    shown = np.zeros((n, length), np.int64)
    owners, lengths = np.zeros((n, length), np.int32), np.zeros(n, np.int32)
    scratch = np.empty(interleave.n_room(numbered.offsets))
    weights = Probabilistic()._weights(numbered)
    seeds = np.arange(n, dtype=np.uint64)
    common = numbered.documents, numbered.offsets, weights, scratch
    if method == "inverse":
        plan = Optimized().plan(rankings, length=length)
        found = np.empty(n, np.int32)
        interleave.pick(np.cumsum(plan.probabilities), seeds, found)
        codes = [[numbered.codes[d] for d in documents] for documents in plan.lists]
        shown, lengths[:] = np.array(codes)[found], length
    else:
        interleave.draw(interleave.Method[method.upper()], *common, seeds, shown, owners, lengths)
    rng = np.random.default_rng(5)
    p = np.broadcast_to(0.8 / np.arange(1, length + 1), (n, length))
    if by_document:
        p = p * np.linspace(0.1, 0.9, len(numbered.names))[shown]
    clicks = (rng.random((n, length)) < p).astype(float)
    clicks[np.arange(length) >= lengths[:, None]] = 0
    credit = np.empty((n, len(numbered)))
    interleave.credit(
        interleave.Method[method.upper()], *common, shown, owners, lengths, clicks, credit
    )
    return credit


def standard_errors(difference):
    deviation = difference.std()
    return 0.0 if deviation == 0 else difference.mean() / (deviation / len(difference) ** 0.5)


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["team_draft", "balanced", "probabilistic", "inverse"])
@pytest.mark.parametrize("length", [5, 6])
def test_the_same_ranking_twice_has_no_winner(method, length):
    credit = simulated(method, SAME, length, by_document=True)
    difference = credit[:, 1] - credit[:, 0]
    print(f"{standard_errors(difference):.2f} standard errors in {RUNS} runs")
    assert abs(standard_errors(difference)) <= 3
    assert abs(standard_errors(np.sign(difference))) <= 3
    assert credit.any()


# For these three no distribution of optimised interleaving is unbiased.
CASES = [("team_draft", DIFFERENT), ("probabilistic", DIFFERENT), ("inverse", DIFFERENT)]
CASES += [("team_draft", THREE), ("probabilistic", THREE)]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "rankings"), CASES)
def test_random_clicks_prefer_no_ranker(method, rankings):
    credit = simulated(method, rankings, 5, by_document=False)
    for r in range(1, len(rankings)):
        assert abs(standard_errors(credit[:, r] - credit[:, 0])) <= 3
    assert (credit.std(axis=0) > 0).all()


@pytest.mark.sampled
@pytest.mark.parametrize("method", ["team_draft", "balanced", "probabilistic", "inverse"])
def test_the_better_ranking_wins(method):
    # Clicks grow with the number of the document, which is the place in the first ranking.
    credit = simulated(method, [[0, 1, 2, 3, 4, 5], [5, 3, 4, 2, 1, 0]], 6, by_document=True)
    assert standard_errors(credit[:, 1] - credit[:, 0]) > 10


def test_balanced_prefers_a_shifted_ranking():
    """A known fault of the method, which its documentation names."""
    credit = simulated("balanced", [[1, 2, 3, 4], [2, 3, 4, 1]], 4, by_document=False)
    assert standard_errors(np.sign(credit[:, 1] - credit[:, 0])) > 10
