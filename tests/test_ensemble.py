"""Voted PRank and the OAP ensembles against worked numbers and Python loops over members."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore._core.inputs import as_rows
from rankcore._ext import ensemble as kernels
from rankcore._ext.online_loop import learn
from rankcore.ordinal import _members as module
from rankcore.ordinal._members import least_draws
from reference.ensemble import largest, oap, times, uniform32, voted
from reference.prank import prank, predict
from strategies import examples, ordinal_problems

pytestmark = pytest.mark.kernel

GOLDEN_B = np.array([[1, 0], [0, 1], [1, 1], [1, -1], [0, 1]]), np.array([2, 1, 3, 2, 3])
WIDTHS = [4, 8, 16]  # members a tile


# ---------------------------------------------------------------------------- voted


@pytest.mark.parametrize(
    ("count_init", "votes", "mean"), [(0, [0, 0, 0, 0, 1], 3.0), (1, [0, 1, 1, 1, 2], 2.4)]
)
def test_votes_have_the_golden_values(count_init, votes, mean):
    X, y = GOLDEN_B
    model = rc.VotedPRank.published(count_init=count_init).fit(X, y)
    np.testing.assert_array_equal(model.hypotheses_, [(0, 0), (0, 0), (0, -1), (2, 1), (1, 2)])
    cuts = [(0, 0), (-1, 1), (0, 1), (-1, 0), (-1, 1)]
    np.testing.assert_array_equal(model.hypothesis_thresholds_, cuts)
    assert model.votes_.tolist() == votes
    assert model.project([[2, 1]]) == mean


@given(
    problem=ordinal_problems(max_rows=40),
    tie=st.sampled_from(["crammer", "strict"]),
    count_init=st.sampled_from([0, 1]),
    limit=st.sampled_from([None, 1, 2, 5, 1000]),
    cut=st.integers(0, 40),
)
@settings(max_examples=examples(120), deadline=None)
def test_votes_and_kept_hypotheses_equal_the_plain_form(problem, tie, count_init, limit, cut):
    X, y, k = problem
    dense = X.toarray().astype(float)
    hypotheses, counts = voted(dense, y, k, tie, count_init)
    kept = range(len(counts)) if limit is None else largest(counts, limit)
    if count_init == 1:
        assert counts.sum() == len(y)

    model = rc.VotedPRank.published(tie=tie, count_init=count_init, max_hypotheses=limit)
    cut = min(cut, len(y))
    if cut:
        model.partial_fit(X[:cut], y[:cut], classes=range(1, k + 1))
        model.predict(X)  # looking does not change what is learned next
    if cut < len(y):
        model.partial_fit(X[cut:], y[cut:], classes=range(1, k + 1))
    assert model.votes_.tolist() == [counts[i] for i in kept]
    np.testing.assert_array_equal(model.hypotheses_, [hypotheses[i][0] for i in kept])
    np.testing.assert_array_equal(model.hypothesis_thresholds_, [hypotheses[i][1] for i in kept])

    weights = np.array([counts[i] for i in kept])
    weights = weights if weights.any() else np.ones_like(weights)
    ranks = np.array([[predict(*hypotheses[i], x) for i in kept] for x in dense])
    check_outputs(model, X, ranks, weights, k)


def check_outputs(model, X, ranks, weights, k):
    """Each output against the votes (n_rows, n_models) spelled out."""
    mean = (ranks * weights).sum(axis=1) / weights.sum()
    np.testing.assert_allclose(model.project(X), mean, rtol=1e-14)  # one division
    expected = {
        "mean": mean,
        "round": np.clip(
            np.floor((2 * (ranks * weights).sum(axis=1) + weights.sum()) // (2 * weights.sum())),
            1,
            k,
        ),
        "median": [
            min(r for r in range(1, k + 1) if 2 * weights[row <= r].sum() >= weights.sum())
            for row in ranks
        ],
        "plurality": [
            max(range(1, k + 1), key=lambda r: (weights[row == r].sum(), -r)) for row in ranks
        ],
    }
    for output, prediction in expected.items():
        model.set_params(output=output)
        np.testing.assert_allclose(model.predict(X), prediction, rtol=1e-14)
    model.set_params(output="round")


def test_mean_output_is_on_the_scale_of_the_labels():
    X, y = GOLDEN_B
    model = rc.VotedPRank.published(output="mean").fit(X, np.array([0, 1, 10])[y - 1])
    assert model.project([[2, 1]]) == 2.4
    np.testing.assert_allclose(model.predict([[2, 1]]), [1 + 0.4 * 9])
    assert model.score([[2, 1]], [10]) == pytest.approx(-0.6)
    named = rc.VotedPRank.published(output="mean").fit(
        X, np.array(["a", "b", "c"])[y - 1], classes=["a", "b", "c"]
    )
    with pytest.raises(ValueError, match="output='mean' requires numeric labels"):
        named.predict(X)
    assert named.project([[2, 1]]) == 2.4


def test_pass_may_begin_with_full_capacity_for_hypotheses():
    # Sixteen mistakes fill the room there is at first; the next example needs more.
    X, y = np.ones((16, 1)), np.tile([1, 3], 8)
    model = rc.VotedPRank.published().fit(X, y, classes=[1, 2, 3])
    assert model._state.model["progress"][0] == model._state.model["votes"].size == 16
    twice = rc.VotedPRank.published(max_iter=2).fit(X, y, classes=[1, 2, 3])
    model.partial_fit(X, y)
    np.testing.assert_array_equal(model.hypotheses_, twice.hypotheses_)
    assert model.history_ == twice.history_


def test_prediction_copies_the_hypotheses_once():
    X, y = np.ones((300, 1000)), np.tile([1, 3], 150)
    model = rc.VotedPRank.published().fit(X, y, classes=[1, 2, 3])
    tracemalloc.start()
    model.predict(X[:1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.1 * model.hypotheses_.nbytes


# ---------------------------------------------------------------------------- sampling


def test_draws_are_a_function_of_seed_member_and_time():
    out = np.empty(7, np.int32)
    for seed in [0, 1, 2**63 - 1]:
        for t in [0, 1, 10**9]:
            for tau in [2.0**-32, 0.3, 0.5, 1.0]:
                least = np.array([round((1 - tau) * 2**32)], np.uint64)
                kernels.draws(seed, t, least, out)
                assert out.tolist() == [times(seed, j, t, tau) for j in range(7)]
            kernels.draws(seed, t, least_draws({"sampling": "poisson"})[0], out)
            assert out.tolist() == [times(seed, j, t) for j in range(7)]


def test_draws_are_uniform_and_independent():
    draws = np.array([[uniform32(3, j, t) for j in range(40)] for t in range(500)]) / 2**32
    # 20,000 draws: a mean or correlation beyond five standard errors has odds of one in a million.
    assert abs(draws.mean() - 0.5) < 5 * np.sqrt(1 / 12 / draws.size)
    for one, other in [(draws[:, :-1], draws[:, 1:]), (draws[:-1], draws[1:])]:
        r = np.corrcoef(one.ravel(), other.ravel())[0, 1]
        assert abs(r) < 5 / np.sqrt(one.size)
    counts = np.histogram(draws, bins=16, range=(0, 1))[0]
    expected = draws.size / 16
    assert ((counts - expected) ** 2 / expected).sum() < 56  # chi2 with 15 df, p about 1e-6


# ---------------------------------------------------------------------------- members


TRACE = [  # W1, b1, W2, b2, votes, mean weights, mean thresholds
    ((0, 0), (-1, 1), (0, 0), (0, 0), (0, 0), (0, 0), (-0.5, 0.5)),
    ((0, -1), (0, 1), (0, -2), (1, 1), (0, 0), (0, -1.5), (0.5, 1)),
    ((0, -1), (0, 1), (2, 0), (0, 0), (0, 0), (1, -0.5), (0, 0.5)),
    ((-1, 0), (0, 2), (1, 1), (0, 1), (0, 0), (0, 0.5), (0, 1.5)),
    ((-1, 4), (-1, 1), (1, 1), (0, 1), (0, 1), (0, 2.5), (-0.5, 1)),
    ((1, 4), (-2, 1), (1, 1), (0, 1), (0, 1), (1, 2.5), (-1, 1)),
]


def seed_with(masks):
    """Return a seed under which two members take just the examples of given masks, at tau 1/2."""
    for seed in range(10**6):
        if all(
            times(seed, j, t, 0.5) == m for j, mask in enumerate(masks) for t, m in enumerate(mask)
        ):
            return seed
    raise AssertionError("no such seed")


@pytest.mark.parametrize("width", WIDTHS)
def test_voting_has_the_golden_values(monkeypatch, width):
    monkeypatch.setattr(module, "tile_width", lambda d, n: width)
    masks = [[1, 1, 0, 1, 1, 1], [0, 1, 1, 1, 1, 0]]
    X = np.array([(1, 0), (0, 1), (1, 1), (1, -1), (0, 2), (2, 0)])
    y = [2, 1, 3, 2, 3, 2]
    model = rc.OAPVoting.published(n_estimators=2, tau=0.5)
    seed = seed_with(masks)
    new_model = rc.OAPVoting._new_model

    def seeded(self, n_features, n_ranks):
        model = new_model(self, n_features, n_ranks)
        model["seed"][:] = seed
        return model

    monkeypatch.setattr(rc.OAPVoting, "_new_model", seeded)
    for t, (w1, b1, w2, b2, votes, w, b) in enumerate(TRACE):
        model.partial_fit(X[[t]], y[t : t + 1], classes=[1, 2, 3])
        members = model.estimators_
        np.testing.assert_array_equal([m.coef_ for m in members], [w1, w2])
        np.testing.assert_array_equal([m.thresholds_ for m in members], [b1, b2])
        assert model._votes().tolist() == list(votes)
        np.testing.assert_array_equal(model._state.model["mean"], w)
        np.testing.assert_array_equal(model._state.model["mean_thresholds"], b)
        if t == 3:
            assert [m.predict([[1, 2]])[0] for m in members] == [1, 3]
            assert model.project([[1, 2]]) == 2.0
            np.testing.assert_array_equal(1 + (np.dot(w, [1, 2]) >= b).sum(), 2)
            bpm = rc.OAPBPM.published(n_estimators=2, tau=0.5).fit(X, y)
            bpm._state = model._state
            assert bpm.predict([[1, 2]]) == 2


@given(
    problem=ordinal_problems(integers=False, max_rows=40),
    n=st.integers(1, 9),
    tau=st.sampled_from([0.2, 0.5, 1.0, None]),
    tie=st.sampled_from(["crammer", "strict"]),
    seed=st.integers(0, 2**32),
    cut=st.integers(0, 40),
    averaged=st.booleans(),
)
@settings(max_examples=examples(120), deadline=None)
def test_members_equal_pranks_on_their_draws(problem, n, tau, tie, seed, cut, averaged):
    # tau None: Poisson sampling.
    X, y, k = problem
    params = {"n_estimators": n, "tie": tie, "random_state": seed, "average_members": averaged}
    params |= {"sampling": "poisson"} if tau is None else {"tau": tau}
    classes = range(1, k + 1)
    models = []
    for width in WIDTHS:
        for jobs in [1, 2]:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(module, "tile_width", lambda d, n, width=width: width)
                patch.setattr(module.OAP, "_block_values", 7)
                model = rc.OAPBPM.published(n_jobs=jobs, **params).fit(X, y, classes=classes)
                models.append(model)
                chunked = rc.OAPBPM.published(n_jobs=jobs, **params)
                for part in [slice(0, cut), slice(cut, None)]:
                    if len(y[part]):
                        chunked.partial_fit(X[part], y[part], classes=classes)
                models.append(chunked)
    first = models[0]
    for other in models[1:]:
        np.testing.assert_array_equal(first.coef_, other.coef_)
        np.testing.assert_array_equal(first.thresholds_, other.thresholds_)
        assert first.history_ == other.history_
        np.testing.assert_array_equal(first.update_loss_curve_, other.update_loss_curve_)

    stream = int(first._state.model["seed"][0])
    masks = [[times(stream, j, t, tau) for t in range(len(y))] for j in range(n)]
    dense = X.toarray().astype(float)
    for member, mask in zip(first.estimators_, masks, strict=True):
        rows = np.repeat(np.arange(len(y)), mask)
        alone = rc.PRank.published(tie=tie, average=averaged)
        if len(rows):
            # The very same numbers as a PRank fed those rows, in every layout.
            alone.fit(X[rows], y[rows], classes=classes)
            np.testing.assert_array_equal(member.coef_, alone.coef_)
            np.testing.assert_array_equal(member.thresholds_, alone.thresholds_)
            assert member.history_ == alone.history_
            expected = prank(dense[rows], y[rows], k, tie)
            np.testing.assert_allclose(
                member.coef_, expected["w_mean" if averaged else "w"], rtol=1e-9, atol=1e-11
            )
        else:
            assert not member.coef_.any()
    members = first.estimators_
    mean = np.mean([m.coef_ for m in members], axis=0)
    np.testing.assert_allclose(first.coef_, mean, rtol=1e-11, atol=1e-12)  # kept step by step
    cuts = np.mean([m.thresholds_ for m in members], axis=0)
    np.testing.assert_allclose(first.thresholds_, cuts, rtol=1e-13, atol=1e-13)
    assert (np.diff(first.thresholds_) >= 0).all()


@given(problem=ordinal_problems(max_rows=25), n=st.integers(1, 5), seed=st.integers(0, 99))
@settings(max_examples=examples(50), deadline=None)
def test_progressive_loss_uses_the_mean(problem, n, seed):
    X, y, k = problem
    dense = X.toarray().astype(float)
    model = rc.OAPBPM.published(n_estimators=n, tau=0.5, random_state=seed).fit(
        X, y, classes=range(1, k + 1)
    )
    stream = int(model._state.model["seed"][0])
    masks = [[times(stream, j, t, 0.5) for t in range(len(y))] for j in range(n)]
    _, w, b = oap(dense, y, k, masks)
    for t in range(len(y)):
        w[t] = np.round(w[t] * n) / n  # sums of integers: what the mean is without rounding
    scores = (dense * w[:-1]).sum(axis=1)
    if (np.abs(scores[:, None] - b[:-1]) > 1e-9).all() or n in {1, 2, 4}:  # no tie to round away
        losses = [abs(predict(w[t], b[t], dense[t]) - y[t]) for t in range(len(y))]
        running = np.cumsum(losses) / np.arange(1, len(y) + 1)
        np.testing.assert_allclose(model.update_loss_curve_[:, 1], running, rtol=1e-14)


@pytest.mark.parametrize("n", [1, 3, 100])
def test_tau_one_is_prank(n):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)), rng.integers(1, 6, size=300)
    one = rc.PRank.published(max_iter=2).fit(X, y)
    for form in [X, sp.csr_array(X)]:
        model = rc.OAPBPM.published(n_estimators=n, tau=1.0, max_iter=2).fit(form, y)
        np.testing.assert_array_equal(model.coef_, one.coef_)
        np.testing.assert_array_equal(model.thresholds_, one.thresholds_)
        assert model.history_ == one.history_
        np.testing.assert_array_equal(model.estimators_[-1].coef_, one.coef_)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("average", [False, True])
def test_bagging_and_voting_equal_votes_of_pranks(monkeypatch, width, dtype, average):
    monkeypatch.setattr(module, "tile_width", lambda d, n: width)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 7)).astype(dtype), rng.integers(1, 6, size=200)
    params = {"n_estimators": 9, "random_state": 4, "average_members": average}
    bagging = rc.OAPBagging.published(**params).fit(X, y)
    members = bagging.estimators_
    ranks = np.array([m.predict(X) for m in members]).T
    check_outputs(bagging, X, ranks, np.ones(9, int), 5)

    voting = rc.OAPVoting.published(**params).fit(X, y)
    drawn = np.array([m.t_ for m in members])
    votes = drawn - [m.history_["mistakes"][0] for m in members]
    check_outputs(voting, X, ranks, votes, 5)
    stream = int(voting._state.model["seed"][0])
    survived = []
    for j in range(9):
        rows = [t for t in range(200) if times(stream, j, t, 0.3)]
        wrong = prank(X[rows].astype(float), y[rows], 5)["losses"] > 0
        survived.append(int(np.argmax(wrong[::-1])))
    voting.set_params(weight="survival")
    assert voting._votes().tolist() == survived
    check_outputs(voting, X, ranks, np.array(survived), 5)


def test_members_without_votes_count_once():
    model = rc.OAPVoting.published(n_estimators=3, tau=2.0**-32, random_state=0).fit(
        np.eye(3), [1, 2, 3]
    )
    assert not model._votes().any()
    assert model.project(np.eye(3)).tolist() == [3, 3, 3]  # 0 reaches all thresholds


def test_member_without_examples_has_no_passes():
    member = (
        rc.OAPBPM.published(n_estimators=1, tau=2.0**-32).fit(np.eye(3), [1, 2, 3]).estimators_[0]
    )
    assert (member.t_, member.n_iter_) == (0, 0)
    assert member.history_["rank_loss"] == []
    assert member.partial_fit(np.eye(3), [1, 2, 3]).history_["examples"] == [3]


def test_signals_are_checked_more_often_for_long_rows():
    def block(learner, n_ranks):
        return learner._block_rows(as_rows(np.ones((1000, 1))), learner._new_state(1, n_ranks))

    assert block(rc.CuSumRank.published(), 101) == block(rc.CuSumRank.published(), 2) // 100
    assert (
        block(rc.MulticlassPerceptron.published(), 100)
        == block(rc.MulticlassPerceptron.published(), 2) // 50
    )
    seldom = rc.OAPBPM.published(n_estimators=100, tau=0.01)
    often = rc.OAPBPM.published(n_estimators=100, tau=0.01, sampling="poisson")  # tau has no effect
    assert (
        block(often, 3)
        == block(rc.OAPBPM.published(n_estimators=100, tau=1.0), 3)
        < block(seldom, 3)
    )


def test_threads_change_nothing_and_seeds_do():
    rng = np.random.default_rng(2)
    X = sp.csr_array(rng.random((500, 3000)) * (rng.random((500, 3000)) < 0.01))
    y = rng.integers(1, 4, size=500)
    first = rc.OAPBPM.published(random_state=1).fit(X, y)
    for jobs in [2, 3, -1]:
        other = rc.OAPBPM.published(random_state=1, n_jobs=jobs).fit(X, y)
        np.testing.assert_equal(vars(first._state), vars(other._state))
    assert (rc.OAPBPM.published(random_state=2).fit(X, y).coef_ != first.coef_).any()
    assert not np.array_equal(first.estimators_[0].coef_, first.estimators_[1].coef_)
    with pytest.raises(ValueError, match="n_jobs"):
        rc.OAPBPM.published(n_jobs=0).fit(X, y)


def test_oapbpm_rejects_parameters_that_members_lack():
    rows = as_rows(np.eye(3))
    moved = np.zeros((2, 1), np.int32)
    learner = rc.OAPBPM(2, threshold_scale=1.0)
    model = learner._new_model(3, 2)
    model.follow_members(moved)
    empty = np.empty(0, np.int64)
    ranks = np.zeros(3, np.int32)
    assert learn(model, learner, rows, ranks, None, None, 0, 3, empty, empty) == 2
