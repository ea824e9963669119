"""Propensities: known ones are found, and logs that cannot tell are rejected."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from rankcore.clicks import (
    ClickLog,
    Features,
    Judged,
    User,
    propensities,
    simulate_clicks,
    simulate_sessions,
)

THETA = np.array([1.0, 0.7, 0.5, 0.4, 0.3, 0.2])
N_QUERIES, N_DOCUMENTS = 60, 6


def problem(swap, n_sessions=40_000, seed=0, n_queries=N_QUERIES):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(n_queries), N_DOCUMENTS)
    docid = np.tile(np.arange(N_DOCUMENTS), n_queries)
    X = rng.normal(size=(qid.size, 3))
    attraction = 1 / (1 + np.exp(1 - X @ [1.5, -1.0, 0.0]))
    # The ranker in use knows something, so that what is clicked at the top is better.
    score = X[:, 0] + rng.normal(size=qid.size)
    log, row = simulate_sessions(qid, docid, score, n_sessions, swap=swap, random_state=seed)
    log = simulate_clicks(log, attraction[row], user=User(examination=THETA), random_state=seed + 1)
    return log, Features(X, qid, docid)


@pytest.mark.parametrize("method", ["swap", "em"])
def test_known_propensities_are_within_their_errors(method):
    z = []
    for seed in range(8):
        found = propensities(problem(0.3, 20_000, 10 * seed)[0], method)
        error = np.log(found.interval[1:, 1] / found.theta[1:]) / 1.96
        z.append(np.log(found.theta[1:] / THETA[1:]) / error)
        assert found.theta[0] == 1.0
        assert (error < 0.2).all()
    z = np.array(z)
    assert np.abs(z).max() < 3.5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "swap"), [("allpairs", 0.3), ("regression-em", 0.3), ("regression-em", 0.0)]
)
def test_known_propensities_are_the_mean_of_estimates(method, swap):
    found = []
    for seed in range(8):
        log, features = problem(swap, 20_000, 10 * seed)
        options = {"features": features} if method == "regression-em" else {}
        found.append(propensities(log, method, **options))
        assert np.isnan(found[-1].interval).all()
    theta = np.array([one.theta for one in found])
    assert (theta[:, 0] == 1.0).all()
    ratio = theta[:, 1:] / THETA[1:]
    assert np.abs(ratio.mean(axis=0) - 1).max() < 0.06
    assert ratio.std(axis=0).max() < 0.15


def test_estimates_are_accurate_for_documents_with_few_impressions():
    """The ratio and the pairs of positions need no parameter for each document."""
    log, _ = problem(0.5, 40_000, n_queries=5000)
    assert np.abs(propensities(log, "swap").theta / THETA - 1).max() < 0.1
    assert np.abs(propensities(log, "allpairs").theta / THETA - 1).max() < 0.1


def test_swap_equals_the_mantel_haenszel_ratio():
    log, _ = problem(0.3, 500)
    tables = {}
    for q, d, p, c in zip(log.query, log.document, log.position, log.clicked, strict=True):
        shown, clicked = tables.setdefault((int(q), int(d)), (np.zeros(7), np.zeros(7)))
        shown[p] += 1
        clicked[p] += c
    found = propensities(log, "swap")
    for p in range(2, 7):
        above = below = 0.0
        for shown, clicked in tables.values():
            if shown[1] and shown[p]:
                above += clicked[p] * shown[1] / (shown[1] + shown[p])
                below += clicked[1] * shown[p] / (shown[1] + shown[p])
        assert found.theta[p - 1] == pytest.approx(above / below, rel=1e-12)


def test_interval_of_swap_for_one_document_is_that_of_a_risk_ratio():
    """The document is clicked 30 of 50 times at the first position, 12 of 80 at the second."""
    position = np.repeat([1, 2], [50, 80])
    clicked = np.concatenate([np.arange(50) < 30, np.arange(80) < 12])
    same = np.zeros(130, dtype=int)
    log = ClickLog(same, same, position, clicked, session=np.arange(130))
    found = propensities(log, "swap")
    ratio, error = (12 / 80) / (30 / 50), np.sqrt(1 / 30 - 1 / 50 + 1 / 12 - 1 / 80)
    assert found.theta == pytest.approx([1.0, ratio])
    assert found.interval[1] == pytest.approx(ratio * np.exp(1.959964 * np.array([-error, error])))


def test_swap_and_allpairs_agree_on_two_positions():
    log, _ = problem(0.5)
    two = log.position <= 2
    log = ClickLog(
        log.query[two],
        log.document[two],
        log.position[two],
        log.clicked[two],
        session=log.session[two],
    )
    assert propensities(log, "swap").theta == pytest.approx(propensities(log, "allpairs").theta)


@pytest.mark.parametrize("method", ["swap", "allpairs", "em"])
def test_unidentified_propensities_are_rejected(method):
    log, features = problem(0.0, 1000)
    message = r"positions 2, 3, 4, 5, 6 relative to position 1.*several positions: swap"
    with pytest.raises(ValueError, match=message):
        propensities(log, method)
    with pytest.raises(ValueError, match="features and method"):
        propensities(log, method, features=features)


def test_chain_of_swapped_positions_identifies_all_methods_but_swap():
    # Documents move between neighbours only.
    rng = np.random.default_rng(0)
    query = np.repeat(np.arange(4000) % 20, 3)
    order = np.tile([0, 1, 2], (4000, 1))
    order[::3] = [1, 0, 2]
    order[1::3] = [0, 2, 1]
    position = np.tile([1, 2, 3], 4000)
    clicked = rng.random(12_000) < 0.5 * np.tile([1, 0.6, 0.3], 4000)
    rows = (query, order.ravel(), position, clicked)
    log = ClickLog(*rows, session=np.repeat(np.arange(4000), 3))
    for method in ("allpairs", "em"):
        assert propensities(log, method).theta == pytest.approx([1, 0.6, 0.3], rel=0.12)
    # Documents 0 and 2 were each at two positions, 1 at three: without it none links 1 and 3.
    kept = order.ravel() != 1
    log = ClickLog(*(one[kept] for one in rows), session=np.repeat(np.arange(4000), 3)[kept])
    with pytest.raises(ValueError, match="positions? .*3"):
        propensities(log, "swap")


def test_sparse_features_give_the_propensities_of_dense_ones():
    log, features = problem(0.3, 3000)
    sparse = propensities(
        log, "regression-em", features=Features(csr_array(features.X), features.qid, features.docid)
    )
    dense = propensities(log, "regression-em", features=features)
    assert sparse.theta == pytest.approx(dense.theta, rel=1e-3)
    with pytest.raises(ValueError, match="features have no row for .* clicked documents"):
        propensities(
            log,
            "regression-em",
            features=Features(features.X[:20], features.qid[:20], features.docid[:20]),
        )
    with pytest.raises(ValueError, match="no clicks"):
        propensities(log.with_clicks(np.zeros(len(log), bool)))


def test_positions_that_were_not_shown_have_no_propensity():
    log = ClickLog(["q"] * 8, [*"ab" * 2, *"ba" * 2], [1, 4] * 4, [1, 0, 1, 1, 0, 0, 1, 1])
    found = propensities(log, "swap")
    assert np.isnan(found.theta).tolist() == [False, True, True, False]
    assert found.at([1, 4]).tolist() == [1.0, found.theta[3]]
    with pytest.raises(ValueError, match="position 2 has no propensity"):
        found.at([1, 2])
    with pytest.raises(ValueError, match="position 5 has no propensity"):
        found.at([5])
    with pytest.raises(ValueError, match="at least 1"):
        found.at([0])


# ----------------------------------------------------------------- judged documents

TRUST = np.array([0.4, 0.3, 0.2, 0.1, 0.05, 0.0])


def judged_problem(seed, n_sessions=20_000):
    """Clicks with probability theta (eps+ if relevant, else eps-), of eps+ = 0.9, eps- = TRUST."""
    qid = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
    docid = np.tile(np.arange(N_DOCUMENTS), N_QUERIES)
    rng = np.random.default_rng(seed)
    relevance = rng.choice([0.0, 0.5, 1.0], qid.size)
    # Lists at random, so that documents of a grade are alike at all positions.
    log, row = simulate_sessions(qid, docid, rng.random(qid.size), n_sessions, random_state=seed)
    user = User(examination=0.9 * THETA, trust=TRUST / 0.9)
    log = simulate_clicks(log, relevance[row], user=user, random_state=seed + 1)
    some = rng.random(qid.size) < 0.5
    return log, row, relevance, Judged(qid[some], docid[some], relevance[some])


def test_judged_documents_recover_propensities_and_trust():
    slope = THETA * (0.9 - TRUST)
    z, trust = [], []
    for seed in range(8):
        log, _, _, judged = judged_problem(10 * seed)
        found = propensities(log, "judged", judged=judged)
        error = np.log(found.interval[1:, 1] / found.theta[1:]) / 1.96
        z.append(np.log(found.theta[1:] / (slope / slope[0])[1:]) / error)
        trust.append(found.trust)
        assert found.theta[0] == 1.0
        assert (found.interval[0] == 1.0).all()
    z = np.array(z)
    assert np.abs(z).max() < 3.5
    assert 0.75 < np.sqrt(np.mean(z**2)) < 1.25
    assert np.mean(trust, axis=0) == pytest.approx(THETA * TRUST, abs=0.01)


def test_judged_equals_least_squares_at_each_position():
    log, row, relevance, _ = judged_problem(0, 500)
    qid = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
    docid = np.tile(np.arange(N_DOCUMENTS), N_QUERIES)
    found = propensities(log, "judged", judged=Judged(qid, docid, relevance))
    slopes, spreads = [], []
    for p in range(1, 7):
        here = log.position == p
        A = np.stack([relevance[row[here]], np.ones(here.sum())], axis=1)
        (slope, intercept), *_ = np.linalg.lstsq(A, log.clicked[here].astype(float))
        residual = log.clicked[here] - A @ [slope, intercept]
        inverse = np.linalg.inv(A.T @ A)
        robust = inverse @ (A.T * residual**2) @ A @ inverse
        slopes.append(slope)
        spreads.append(np.sqrt(robust[0, 0]) / slope)
        assert found.trust[p - 1] == pytest.approx(max(intercept, 0), rel=1e-9, abs=1e-12)
    assert found.theta == pytest.approx(np.array(slopes) / slopes[0], rel=1e-9)
    spread = np.hypot(spreads[1:], spreads[0])
    assert np.log(found.interval[1:, 1] / found.theta[1:]) / 1.959964 == pytest.approx(spread)


@pytest.mark.parametrize(
    ("qid", "docid", "relevance", "message"),
    [
        ([1, 1], [1, 2], [0, 1, 1], "relevance from 0 to 1 for each qid"),
        ([1, 1], [1, 2], [0, 2], "relevance from 0 to 1"),
        ([1, 1], [1, 2], [0, np.nan], "relevance from 0 to 1"),
        ([1, 1], [1, 1], [0, 1], "each document of a query once"),
        ([1, 7], [8, 1], [0, 1], "no judged document is in the log"),
        ([1, 1], [1, 2], [0, 0], "do not identify the propensities of positions 1, 2: there"),
        ([1, 1], [1, 2], [1, 0], "do not identify the propensities of positions 1, 2: there"),
        ([1, 1, 1], [1, 2, 3], [0, 1, 1], "do not identify the propensities of positions 2: there"),
    ],
)
def test_insufficient_judgments_are_rejected(qid, docid, relevance, message):
    """Document 2 is shown and clicked at position 1 more than 1, and never below 3."""
    log = ClickLog([1] * 8, [2, 3, 1, 3, 2, 3, 1, 3], [1, 2] * 4, [1, 1, 0, 0, 1, 0, 0, 1])
    with pytest.raises(ValueError, match=message):
        propensities(log, "judged", judged=Judged(qid, docid, relevance))
    with pytest.raises(ValueError, match="judged and method='judged' require each other"):
        propensities(log, judged=Judged(qid, docid, relevance))
