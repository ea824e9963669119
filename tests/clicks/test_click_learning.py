"""Learning rankers from clicks: weighted pairs and graded labels."""

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import beta

import rankcore as rc
from rankcore.clicks import (
    CascadeModel,
    ClickLog,
    ClickRates,
    DynamicBayesianModel,
    PositionBasedModel,
    Propensities,
    User,
    click_pairs,
    simulate_clicks,
    simulate_sessions,
    to_judgments,
)
from rankcore.ranking.click_pairs import weigh_clicks
from rankcore.ranking.data import RankingData

N_QUERIES, N_DOCUMENTS = 25, 12
THETA = 1 / np.arange(1, 11)
QID = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
DOCID = np.tile(np.arange(N_DOCUMENTS), N_QUERIES)


def problem(n_sessions=40_000, trust=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(QID.size, 4))
    utility = X @ [1.0, 0.5, 0.0, 0.0] + 0.3 * rng.normal(size=QID.size)
    y = np.digitize(utility, [-0.5, 0.7, 1.5])
    attraction = 0.1 + 0.9 * (2.0**y - 1) / 7
    # The ranker in use mistakes a feature.
    log, row = simulate_sessions(QID, DOCID, X[:, 2] + 0.3 * X[:, 0], n_sessions, random_state=seed)
    user = User(trust=trust)
    return X, y, attraction, simulate_clicks(log, attraction[row], user=user, random_state=seed + 1)


def plain_pairs(log, theta, trust, tau):
    """Weights of pairs of rows, one impression and one pair after the other."""
    clicks, examined = {}, {}
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    for i, place in enumerate((log.position - 1).tolist()):
        key = int(row[i])
        clicks[key] = clicks.get(key, 0.0) + log.clicked[i] - trust[place]
        examined[key] = examined.get(key, 0.0) + max(theta[place], tau)
    relevance = {key: min(max(clicks[key] / examined[key], 0.0), 1.0) for key in clicks}
    found = {}
    for one, other in permutations(relevance, 2):
        if QID[one] == QID[other] and relevance[one] > relevance[other] + 1e-9:
            both = 1 / (1 / examined[one] + 1 / examined[other])
            found[one, other] = (relevance[one] - relevance[other]) * both / (both + 10)
    return found


@pytest.mark.parametrize("trust", [None, 0.1 / np.arange(1, 11)])
@pytest.mark.parametrize("tau", [1e-4, 0.3])
def test_pair_weights_follow_the_impressions(trust, tau):
    _, _, _, log = problem(300)
    pairs, weights = click_pairs(log, QID, DOCID, Propensities(THETA, trust=trust), tau=tau)
    expected = plain_pairs(log, THETA, np.zeros(10) if trust is None else trust, tau)
    found = dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
    assert len(found) == len(pairs)
    # Sums of impressions are added in another order.
    assert found == pytest.approx(expected, rel=1e-9)


def test_other_rows_do_not_change_pair_weights():
    _, _, _, log = problem(300)
    whole = click_pairs(log, QID, DOCID, THETA)
    rows = np.random.default_rng(0).permutation(QID.size)[:150]
    pairs, weights = click_pairs(log, QID[rows].astype(str), DOCID[rows].astype(str), THETA)
    kept = np.isin(whole[0], rows).all(axis=1)
    expected = dict(zip(map(tuple, whole[0][kept].tolist()), whole[1][kept].tolist(), strict=True))
    found = dict(zip(map(tuple, rows[pairs].tolist()), weights.tolist(), strict=True))
    assert found == expected


@pytest.mark.parametrize("trust", [None, np.full(10, 0.2)])
def test_pair_weights_converge_to_differences_of_relevance(trust):
    """With many sessions, wherever documents were shown."""
    _, _, attraction, log = problem(200_000, trust)
    alpha, offset = THETA, np.zeros(10)
    if trust is not None:  # examination (a + (1 - a) trust)
        alpha, offset = THETA * (1 - trust), THETA * trust
    pairs, weights = click_pairs(log, QID, DOCID, Propensities(alpha, trust=offset))
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    shown, position = np.bincount(row), np.zeros(QID.size, int)
    position[row] = log.position
    # One list for each query here, so that all impressions of a document have one position.
    one, other = pairs.T
    examined = shown * alpha[position - 1]
    both = examined[one] * examined[other] / (examined[one] + examined[other])
    p = alpha[position - 1] * attraction + offset[position - 1]
    variance = p * (1 - p) / np.maximum(shown, 1) / alpha[position - 1] ** 2
    # Relevance 0.1 and 1 are near the bounds of what estimates are clipped to, others are not; of
    # these, pairs that chance orders are those of its sign.
    inner = (attraction > 0.15) & (attraction < 0.95)
    kept = inner[one] & inner[other] & (attraction[one] > attraction[other] + 0.1)
    difference = (weights * (both + 10) / both)[kept]
    z = difference - (attraction[one] - attraction[other])[kept]
    z /= np.sqrt(variance[one] + variance[other])[kept]
    assert kept.sum() > 100
    assert np.abs(z).max() < 4.5
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3


def test_clicks_at_rarely_examined_positions_have_little_weight():
    """A click at the end of a list is no proof, however low the propensity is."""
    log = ClickLog(["q"] * 3, [*"abc"], [1, 2, 3], [1, 0, 1])
    pairs, weights = click_pairs(log, ["q"] * 3, [*"abc"], [1.0, 0.5, 1e-3])
    assert pairs.tolist() == [[0, 1], [2, 1]]
    first, last = 1 / (1 + 2), 1 / (2 + 1000)
    assert weights == pytest.approx([first / (first + 10), last / (last + 10)])


@pytest.mark.parametrize(
    "learner",
    [
        rc.RankSVM(C=1.0, random_state=0),
        rc.PairwisePerceptron(max_iter=5, random_state=0),
        rc.RankBoost(60),
    ],
    ids=lambda learner: type(learner).__name__,
)
def test_propensities_correct_position_bias(learner):
    X, y, _, log = problem()

    def quality(theta):
        pairs, weights = click_pairs(log, QID, DOCID, theta)
        learner.fit(X, qid=QID, pairs=pairs, pairs_weight=weights)
        return learner.score(X, y, qid=QID)

    naive, corrected = quality(np.ones(10)), quality(THETA)
    best = learner.fit(X, y, qid=QID).score(X, y, qid=QID)
    assert corrected > naive + 0.9 * (best - naive)
    assert best > naive + 0.05


def test_rows_of_documents_and_of_impressions_give_the_same_pairs():
    """The same problem, with rows of documents and with rows of impressions."""
    X, _, _, log = problem(200)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    totals = {}
    for first, stop in pairwise(log.bounds.tolist()):
        for i in range(first, stop):
            for j in range(first, stop):
                if i != j and log.clicked[i]:
                    key = row[i], row[j]
                    totals[key] = totals.get(key, 0.0) + 1 / THETA[log.position[i] - 1]
    pairs, weights = np.array([*totals]), np.array([*totals.values()])
    # Rows of sessions repeat documents, so that their deviations are others.
    params = {"tol": 1e-12, "random_state": 0, "standardize": False}
    svm = rc.RankSVM(C=1e-3, balance=None, **params)
    expected = svm.fit(X, qid=QID, pairs=pairs, pairs_weight=weights).coef_
    given = {"qid": log.session, "position": log.position}
    known = Propensities(THETA, np.full((10, 2), np.nan), "known")
    found = svm.fit(X[row], log.clicked, **given, propensity=known).coef_
    assert found == pytest.approx(expected, rel=1e-5)
    # Balanced, sessions weigh the sums of their pairs, relative to the mean.
    sums = 9 * np.bincount(log.session, log.clicked / THETA[log.position - 1])
    svm = rc.RankSVM(C=1e-3 * sums[sums > 0].mean(), **params)
    theta = THETA[log.position - 1]
    found = svm.fit(X[row], log.clicked, qid=log.session, propensity=theta).coef_
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    "learner",
    [
        rc.PairwisePerceptron(max_iter=2, balance=None, random_state=0),
        rc.RankBoost(20, balance=None),
        rc.RankBoost(10, max_leaf_nodes=4, balance=None, random_state=0),
    ],
    ids=["perceptron", "stumps", "trees"],
)
def test_propensities_of_rows_are_weights_of_listed_pairs(learner):
    X, _, _, log = problem(200)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    pairs, weights = [], []
    for first, stop in pairwise(log.bounds.tolist()):
        for i in range(first, stop):
            if log.clicked[i]:
                others = [j for j in range(first, stop) if j != i]
                pairs += [(i, j) for j in others]
                weights += [1 / THETA[log.position[i] - 1]] * len(others)
    X, qid = X[row], log.session
    expected = learner.fit(X, qid=qid, pairs=pairs, pairs_weight=weights).predict(X)
    given = {"qid": qid, "position": log.position, "propensity": THETA}
    assert np.array_equal(learner.fit(X, log.clicked, **given).predict(X), expected)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_effects_of_positions_are_learned_and_dropped(form, tmp_path):
    X, y, _, log = problem(1000)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    svm = rc.RankSVM(tol=1e-12, random_state=0)
    given = {"qid": log.session, "position": log.position}
    svm.fit(form(X[row]), log.clicked, **given)
    # The same as a feature more for each position.
    wide = np.hstack([X[row], log.position[:, None] == np.arange(1, 11)])
    plain = rc.RankSVM(tol=1e-12, random_state=0).fit(wide, log.clicked, qid=log.session)
    # Half the squared distance to the minimum is at most the gap, of each of the two.
    near = 2 * np.sqrt(2 * 1e-12 * plain.objective_)
    assert near < 1e-4
    assert svm.coef_ == pytest.approx(plain.coef_[:4], abs=near)
    assert svm.position_effect_ == pytest.approx(plain.coef_[4:], abs=near)
    assert svm.gap_ <= 1e-12
    assert svm.n_features_in_ == 4
    assert svm.predict(X) == pytest.approx(X @ svm.coef_)
    naive = rc.RankSVM().fit(X[row], log.clicked, qid=log.session).score(X, y, qid=QID)
    assert svm.score(X, y, qid=QID) > naive + 0.05
    rc.save(svm, tmp_path / "model.rc")
    loaded = rc.load(tmp_path / "model.rc")
    assert np.array_equal(loaded.predict(X), svm.predict(X))
    assert not hasattr(loaded, "position_effect_")
    assert not hasattr(svm.fit(X, y, qid=QID), "position_effect_")


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_held_out_rows_are_measured_without_effects_of_positions(form):
    X, y, _, log = problem(300)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    given = {"qid": log.session, "position": log.position}
    half = {"eval_set": [(form(X), y), (form(X[QID < 3]), y[QID < 3])]}
    half["eval_qid"] = [QID, QID[QID < 3]]
    svm = rc.RankSVM(tol=1e-9, random_state=0)
    unwatched = svm.fit(form(X[row]), log.clicked, **given).coef_
    svm.fit(form(X[row]), log.clicked, **given, **half)
    assert np.array_equal(svm.coef_, unwatched)
    assert svm.gap_ <= 1e-9
    last = svm.history_["valid_0_ndcg@10"][-1], svm.history_["valid_1_ndcg@10"][-1]
    few = QID < 3
    expected = svm.score(X, y, qid=QID), svm.score(X[few], y[few], qid=QID[few])
    assert last == pytest.approx(expected, abs=1e-12)
    assert len(svm.history_["gap"]) == len(svm.history_["valid_0_ndcg@10"])
    perceptron = rc.PairwisePerceptron(max_iter=60, early_stopping_rounds=2, random_state=0)
    perceptron.fit(form(X[row]), log.clicked, **given, eval_X=form(X), eval_y=y, eval_qid=QID)
    measured = perceptron.history_["valid_ndcg@10"]
    best = perceptron.best_iteration_
    assert best + 2 == len(measured) < 60
    assert measured[best - 1] == pytest.approx(perceptron.score(X, y, qid=QID), abs=1e-12)
    assert perceptron.position_effect_.size == 10


def test_held_out_rows_must_have_the_features_of_the_fit():
    X, y, _, log = problem(50)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    given = {"qid": log.session, "position": log.position}
    svm = rc.RankSVM().fit(X[row], log.clicked, **given)
    before = svm.position_effect_.copy()
    with pytest.raises(ValueError, match="X has 3 features, but RankSVM is expecting 4"):
        svm.fit(X[row], log.clicked, **given, eval_set=(X[:, :3], y), eval_qid=QID)
    with pytest.raises(ValueError, match="eval_set requires eval_qid"):
        svm.fit(X[row], log.clicked, **given, eval_set=(X, y))
    with pytest.raises(ValueError, match="NaN"):
        svm.fit(X * np.nan, y, qid=QID)
    assert np.array_equal(svm.position_effect_, before)  # failed fits change nothing


@pytest.mark.parametrize("variant", ["averaged", "committee", "voted", "pocket", "last"])
def test_perceptrons_learn_effects_of_positions(variant, tmp_path):
    pd = pytest.importorskip("pandas", reason="no pandas")
    X, _, _, log = problem(300)
    row = log.queries[log.query] * N_DOCUMENTS + log.documents[log.document]
    frame = pd.DataFrame(X[row], columns=[*"abcd"])
    model = rc.PairwisePerceptron(variant, max_iter=2, committee_size=3, random_state=0)
    model.fit(frame, log.clicked, qid=log.session, position=log.position)
    wide = np.hstack([X[row], log.position[:, None] == np.arange(1, 11)])
    plain = rc.PairwisePerceptron(variant, max_iter=2, committee_size=3, random_state=0)
    plain.fit(wide, log.clicked, qid=log.session)
    assert np.array_equal(model.committee_.weights, plain.committee_.weights[:, :4])
    assert model.feature_names_in_.tolist() == [*"abcd"]
    if variant != "voted":
        assert np.array_equal(model.position_effect_, plain.coef_[4:])
    rc.save(model, tmp_path / "model.rc")
    rows = pd.DataFrame(X, columns=[*"abcd"])
    expected = model.predict(rows, qid=QID)
    assert np.array_equal(rc.load(tmp_path / "model.rc").predict(rows, qid=QID), expected)


def test_fits_on_clicks_reject_other_arguments():
    X, clicked, qid, position = np.eye(3), [0, 1, 0], [1, 1, 1], [1, 2, 3]
    svm, theta = rc.RankSVM(), [1.0, 0.5, 0.25]
    for changes, message in [
        ({"sample_weight": [1, 1, 1]}, "got sample_weight as well"),
        ({"qid": None}, "requires y, the clicks, and qid"),
        ({"position": [1, 2, 4]}, "position 4 has no propensity"),
        ({"position": None, "propensity": [1.0]}, r"propensity must have shape \(3,\)"),
        ({"position": None, "propensity": [1.0, np.nan, 1]}, "finite non-negative numbers"),
        ({"y": [0, -1, 0]}, "non-negative y, the clicks"),
        ({"y": [0, 0, 0]}, "no query has a click and another row"),
        ({"propensity": None, "position": [1, 2]}, "position must be integers"),
        ({"propensity": None, "callbacks": [print]}, "excludes callbacks"),
    ]:
        given = {"y": clicked, "qid": qid, "position": position, "propensity": theta} | changes
        with pytest.raises(ValueError, match=message):
            svm.fit(X, **given)
    with pytest.raises(ValueError, match="requires propensity with position"):
        rc.RankBoost().fit(X, clicked, qid=qid, position=position)
    with pytest.raises(ValueError, match="requires kernel=None"):
        rc.RankSVM(kernel="rbf").fit(X, clicked, qid=qid, position=position)


def test_bad_pairs_are_rejected():
    log = ClickLog(["q", "q"], ["a", "b"], [1, 2], [1, 0])
    with pytest.raises(ValueError, match="no document of the rows was clicked more"):
        click_pairs(log, ["r"], ["a"], [1.0, 1.0])
    with pytest.raises(ValueError, match="position 2 has no propensity"):
        click_pairs(log, ["q", "q"], ["a", "b"], [1.0])
    with pytest.raises(ValueError, match="each document of a query once"):
        click_pairs(log, ["q", "q"], ["a", "a"], [1.0, 0.5])
    with pytest.raises(ValueError, match="same length"):
        click_pairs(log, ["q", "q"], ["a"], [1.0, 0.5])
    with pytest.raises(ValueError, match="tau above 0"):
        click_pairs(log, ["q", "q"], ["a", "b"], [1.0, 0.0], tau=0)


# ----------------------------------------------------------------- judgments


@pytest.mark.parametrize(
    ("model", "user"),
    [
        (ClickRates(), User(examination=np.ones(10))),
        (PositionBasedModel(), User()),
        (CascadeModel(), User("cascade")),
        (DynamicBayesianModel(), User("bayesian", continuation=0.9)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_grades_agree_with_known_relevance(model, user):
    rng = np.random.default_rng(0)
    attraction, satisfaction = rng.uniform(0.1, 0.9, QID.size), rng.uniform(0.2, 0.9, QID.size)
    log, row = simulate_sessions(QID, DOCID, rng.random(QID.size), 40_000, swap=0.9)
    log = simulate_clicks(
        log, attraction[row], user=user, satisfaction=satisfaction[row], random_state=1
    )
    judgments = to_judgments(model.fit(log), thresholds=[0.25, 0.5, 0.75])
    truth = attraction * satisfaction if user.model == "bayesian" else attraction
    grades, confidence = judgments.labels(QID, DOCID)
    known = np.digitize(truth, [0.25, 0.5, 0.75])
    shown = confidence > 0
    right = (grades == known)[shown]
    # A grade is right as often as its confidence says.
    assert abs(right.mean() - confidence[shown].mean()) < 0.06
    assert right[confidence[shown] > 0.95].mean() > 0.95
    qrels = judgments.qrels()
    assert len(qrels) == judgments.grade.size == np.count_nonzero(shown)


def test_confidence_is_the_posterior_probability_of_the_grade():
    log = ClickLog(["q"] * 6, [*"ababab"], [1, 2] * 3, [1, 0, 1, 0, 1, 1])
    found = to_judgments(ClickRates(smoothing=0).fit(log), thresholds=[0.2, 0.5])
    assert found.relevance.tolist() == [1.0, 1 / 3]
    assert found.grade.tolist() == [2, 1]
    one, other = beta(3.5, 0.5), beta(1.5, 2.5)
    expected = [1 - one.cdf(0.5), other.cdf(0.5) - other.cdf(0.2)]
    assert found.confidence == pytest.approx(expected)
    y, weight = found.labels(["q", "q"], ["b", "c"])
    assert y.tolist() == [1, 0]
    assert weight.tolist() == [found.confidence[1], 0.0]


def test_click_rates_by_position_cannot_be_judgments():
    log = ClickLog(["q"], ["a"], [1], [1])
    with pytest.raises(ValueError, match="requires rates by document"):
        to_judgments(ClickRates("position").fit(log))
    with pytest.raises(ValueError, match="thresholds must ascend"):
        to_judgments(ClickRates().fit(log), thresholds=[0.5, 0.2])


def test_too_many_pairs_are_rejected_with_their_number():
    n = 20_000
    ids, one = np.arange(n), np.zeros(n, int)
    clicked = ids % 2 == 0
    log = ClickLog(one, ids, ids + 1, clicked)
    # 10,000 clicked rows, each beside 19,999 others.
    message = "199,990,000 pairs, above 100,000,000; one query has 20,000 rows, 10,000 of them"
    with pytest.raises(ValueError, match=message):
        click_pairs(log, one, ids, np.ones(n))
    given = {"qid": one, "propensity": np.ones(n)}
    with pytest.raises(ValueError, match=message):
        rc.RankSVM().fit(np.zeros((n, 1)), clicked.astype(int), **given)


@pytest.mark.parametrize("trust", [[0.1, 1.5], [-0.1, 0.1], [np.nan, 0.1], [0.1]])
def test_trust_outside_the_unit_interval_is_rejected(trust):
    with pytest.raises(ValueError, match="trust must have a probability .* drawn at random"):
        Propensities([1, 0.5], trust=trust)


# ----------------------------------------------------------------- trust

# Users who trust the top click a third of the irrelevant documents there.
TRUST = 0.35 * THETA


def trusting(n_sessions=40_000, seed=0):
    """Return a problem with P(click) = theta (eps+ if relevant, else eps-), and its affine form."""
    X, y, _, _ = problem(1)
    relevance = (2.0**y - 1) / 7
    score = X[:, 2] + 0.3 * X[:, 0]
    log, row = simulate_sessions(QID, DOCID, score, n_sessions, swap=0.3, random_state=seed)
    user = User(examination=THETA, trust=TRUST)
    log = simulate_clicks(log, relevance[row], user=user, random_state=seed + 1)
    return X, y, relevance, row, log, Propensities(THETA * (1 - TRUST), trust=THETA * TRUST)


def test_rows_of_a_session_differ_by_relevance_in_expectation():
    """Over all clicks of a session: the pairs of i before j less those of j before i."""
    given = Propensities(np.array([1.0, 0.5, 0.25]), trust=np.array([0.5, 0.2, 0.05]))
    relevance, position = np.array([0.1, 0.45, 0.3]), np.array([3, 1, 2])
    p = given.theta[position - 1] * relevance + given.trust[position - 1]
    expected = np.zeros((3, 3))
    for clicks in product([0.0, 1.0], repeat=3):
        data = RankingData(np.eye(3), clicks, [0] * 3)
        found = weigh_clicks(data, given, position, weigh_queries=True)
        probability = np.prod(np.where(clicks, p, 1 - p))
        assert (found.pairs_weight > 0).all()
        np.add.at(expected, tuple(found.pairs.T), probability * found.pairs_weight)
    net = relevance[:, None] - relevance
    assert expected - expected.T == pytest.approx(net, abs=1e-12)


def test_rows_without_trust_equal_zero_trust():
    *_, log = problem(200)
    data = RankingData(np.zeros((len(log), 1)), log.clicked, log.session)
    one, other = (
        weigh_clicks(data, theta, log.position, weigh_queries=True)
        for theta in (THETA, Propensities(THETA, trust=np.zeros(10)))
    )
    for name in ("pairs", "pairs_weight", "sample_weight"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    "learner",
    [
        rc.RankSVM(C=1.0, random_state=0),
        rc.PairwisePerceptron(max_iter=5, random_state=0),
        rc.RankBoost(60),
        rc.RankBoost(30, max_leaf_nodes=4, random_state=0),
    ],
    ids=["svm", "perceptron", "stumps", "trees"],
)
@pytest.mark.parametrize("form", ["pairs", "rows"])
def test_affine_correction_corrects_trust_bias(learner, form):
    X, y, _, row, log, affine = trusting(4000 if form == "rows" else 100_000)

    def quality(propensity):
        if form == "rows":
            given = {"qid": log.session, "position": log.position, "propensity": propensity}
            learner.fit(X[row], log.clicked, **given)
        else:
            pairs, weights = click_pairs(log, QID, DOCID, propensity)
            learner.fit(X, qid=QID, pairs=pairs, pairs_weight=weights)
        return learner.score(X, y, qid=QID)

    biased, corrected = quality(affine.theta), quality(affine)
    best = learner.fit(X, y, qid=QID).score(X, y, qid=QID)
    # The best of trees fits all labels, which few sessions do not tell.
    assert corrected > biased + (0.5 if form == "rows" else 0.7) * (best - biased)
