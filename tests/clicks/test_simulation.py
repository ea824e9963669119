"""Simulated clicks occur as often as their model says."""

import numpy as np
import pytest

from rankcore.clicks import ClickLog, User, simulate_clicks, simulate_sessions

N = 40_000
ATTRACTION = np.array([0.2, 0.6, 0.4, 0.5])
SATISFACTION = np.array([0.9, 0.3, 0.5, 0.7])


def sessions():
    one = np.tile(np.arange(1, 5), N)
    return ClickLog(np.zeros(4 * N, int), one, one, np.zeros(4 * N))


def probability(user, clicks):
    """Of the clicks of a session, step by step."""
    a, s = ATTRACTION, SATISFACTION
    if user.model == "position":
        theta = np.zeros(4)
        given = 1 / np.arange(1, 5) if user.examination is None else np.array(user.examination)
        theta[: given.size] = given
        trust = np.zeros(4) if user.trust is None else np.array(user.trust)
        p = theta * (a + (1 - a) * trust)
        return np.prod(np.where(clicks, p, 1 - p))
    onward = user.continuation if user.model == "bayesian" else 1.0
    found, examining = 1.0, 1.0
    # P(clicks so far, and the user is examining); what stopped needs no click any more.
    stopped = 0.0
    for i in range(4):
        if clicks[i]:
            stopped = 0.0
            satisfied = 1.0 if user.model == "cascade" else s[i]
            clicked = examining * a[i]
            stopped += clicked * (satisfied + (1 - satisfied) * (1 - onward))
            examining = clicked * (1 - satisfied) * onward
        else:
            skipped = examining * (1 - a[i])
            stopped += skipped * (1 - onward)
            examining = skipped * onward
        found = stopped + examining
    return found


@pytest.mark.parametrize(
    "user",
    [
        User(),
        User(examination=[0.9, 0.5, 0.3], trust=[0.2, 0.1, 0.0, 0.0]),
        User("cascade"),
        User("bayesian"),
        User("bayesian", continuation=0.7),
    ],
)
def test_click_patterns_occur_with_their_probability(user):
    log = sessions()
    found = simulate_clicks(
        log,
        np.tile(ATTRACTION, N),
        user=user,
        satisfaction=np.tile(SATISFACTION, N),
        random_state=0,
    )
    codes = found.clicked.reshape(N, 4) @ [8, 4, 2, 1]
    total = 0.0
    for code in range(16):
        clicks = np.array([code >> 3 & 1, code >> 2 & 1, code >> 1 & 1, code & 1], bool)
        p = probability(user, clicks)
        total += p
        assert abs(np.mean(codes == code) - p) <= 4 * np.sqrt(p * (1 - p) / N)
    assert total == pytest.approx(1.0)
    again = simulate_clicks(
        log,
        np.tile(ATTRACTION, N),
        user=user,
        satisfaction=np.tile(SATISFACTION, N),
        random_state=0,
    )
    assert np.array_equal(found.clicked, again.clicked)


def test_sessions_show_rankings():
    qid, docid = np.repeat([7, 5], [4, 2]), [*"abcd", *"xy"]
    score = np.array([1.0, 3, 2, 3, 5, 6])
    log, row = simulate_sessions(qid, docid, score, 1000, depth=3, random_state=0)
    lists = {7: [1, 3, 2], 5: [5, 4]}
    counts = {7: 0, 5: 0}
    for first, stop in zip(log.bounds[:-1], log.bounds[1:], strict=True):
        query = int(log.queries[log.query[first]])
        counts[query] += 1
        assert row[first:stop].tolist() == lists[query]
        assert log.position[first:stop].tolist() == [*range(1, stop - first + 1)]
    assert abs(counts[7] - 500) <= 4 * np.sqrt(250)
    assert [docid[i] for i in row] == log.documents[log.document].tolist()
    swapped, row = simulate_sessions(qid, docid, score, 3000, depth=3, swap=1.0, random_state=0)
    top = row[swapped.bounds[:-1]]
    for one in lists[7]:  # each place of the list with equal probability
        share = np.mean(top[qid[top] == 7] == one)
        assert abs(share - 1 / 3) <= 4 * np.sqrt(2 / 9 / 1400)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: simulate_clicks(log, [0.5]), "attraction must have shape"),
        (lambda log: simulate_clicks(log, [0.5, 2.0]), "must be probabilities"),
        (lambda log: User("markov"), "model must be one of"),
        (lambda log: User(examination=[1.5]), "examination must be probabilities"),
        (lambda log: User("bayesian", continuation=2), "continuation"),
        (lambda log: simulate_sessions([1], [1, 2], [0.1], 1), "same length"),
        (lambda log: simulate_sessions([1], [1], [0.1], 0), "at least 1"),
    ],
)
def test_numbers_out_of_range_are_rejected(call, message):
    with pytest.raises(ValueError, match=message):
        call(ClickLog([1, 1], [1, 2], [1, 2], [0, 0]))
