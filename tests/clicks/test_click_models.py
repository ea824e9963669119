"""Click models: parity with plain forms, known parameters, likelihood and perplexity."""

import itertools
import tracemalloc
from math import exp, log

import numpy as np
import pytest
from scipy.stats import beta

from rankcore._ext.clicks import bayesian_pass, position_pass
from rankcore.clicks import (
    CascadeModel,
    ClickLog,
    ClickRates,
    DynamicBayesianModel,
    PositionBasedModel,
    User,
    open_clicks,
    propensities,
    simulate_clicks,
    simulate_sessions,
)
from rankcore.clicks.log import MAX_POSITION
from reference import clicks as plain

pytestmark = pytest.mark.kernel

RNG = np.random.default_rng(5)
N_QUERIES, N_DOCUMENTS = 20, 8
QID = np.repeat(np.arange(N_QUERIES), N_DOCUMENTS)
DOCID = np.tile(np.arange(N_DOCUMENTS), N_QUERIES)
ATTRACTION = RNG.uniform(0.05, 0.7, QID.size)
SATISFACTION = RNG.uniform(0.1, 0.9, QID.size)
SCORE = RNG.random(QID.size)
MODELS = [
    ClickRates("all"),
    ClickRates("position"),
    ClickRates(),
    PositionBasedModel(),
    CascadeModel(),
    DynamicBayesianModel(simplified=True),
    DynamicBayesianModel(),
]


def simulated(user=None, n_sessions=60_000, seed=0):
    log, row = simulate_sessions(QID, DOCID, SCORE, n_sessions, swap=0.9, random_state=seed)
    return simulate_clicks(
        log, ATTRACTION[row], user=user, satisfaction=SATISFACTION[row], random_state=seed + 1
    )


def as_lists(log):
    rows = [*zip(log.document.tolist(), log.clicked.astype(int).tolist(), strict=True)]
    bounds = log.bounds.tolist()
    queries = log.query.tolist()
    return [
        [((queries[first], d), c) for d, c in rows[first:stop]]
        for first, stop in itertools.pairwise(bounds)
    ]


def of_pairs(model, values):
    return dict(zip(zip(model.query_, model.document_, strict=True), values, strict=True))


# ------------------------------------------------------------------- parity


def test_position_based_pass_equals_a_plain_loop():
    rng = np.random.default_rng(0)
    pair, position = map(np.ravel, np.meshgrid(range(6), range(4), indexing="ij"))
    events = rng.integers(0, 9, size=(24, 2)).astype(float)
    theta, gamma = rng.uniform(0.1, 0.9, 4), rng.uniform(0.1, 0.9, 6)
    examined, attracted = np.empty(4), np.empty(6)
    value = position_pass(
        pair.astype(np.int32), position.astype(np.int32), events, theta, gamma, examined, attracted
    )
    cells = [*zip(pair.tolist(), position.tolist(), *events.T.tolist(), strict=True)]
    found = plain.position_pass(cells, dict(enumerate(theta)), dict(enumerate(gamma)))
    assert np.allclose(examined, [*found[0].values()], rtol=1e-13)
    assert np.allclose(attracted, [*found[1].values()], rtol=1e-13)
    assert value == pytest.approx(found[2], rel=1e-13)


@pytest.mark.parametrize("onward", [0.0, 0.6, 1.0])
def test_bayesian_pass_equals_enumeration_of_hidden_states(onward):
    a, s = np.array([0.3, 0.6, 0.2, 0.8]), np.array([0.4, 0.7, 0.1, 0.5])
    total = 0.0
    for clicked in itertools.product([0, 1], repeat=4):
        session = [*enumerate(clicked)]
        p, examined, satisfied, chances, taken = (
            plain.bayesian_posteriors(session, a, s, onward)
            if onward or sum(clicked[1:]) == 0
            else (0.0, *[None] * 4)
        )
        total += p
        if p == 0.0:
            continue
        expected, going = np.zeros((4, 4)), np.zeros(3)
        value = bayesian_pass(
            np.array([0, 4]),
            np.arange(4, dtype=np.int32),
            np.array(clicked, dtype=np.uint8),
            a,
            s,
            onward,
            expected,
            going,
            np.empty(5),
        )
        assert exp(value) == pytest.approx(p, rel=1e-13)
        assert expected[:, 0] == pytest.approx(examined, rel=1e-13)
        assert expected[:, 1] == pytest.approx(satisfied, rel=1e-13)
        assert going[:2] == pytest.approx([chances, taken], rel=1e-13, abs=1e-15)
        # Derivatives of the log-likelihood, by differences.
        if 0 < onward < 1:
            assert np.sqrt(going[2]) == pytest.approx(abs(slope(session, a, s, onward)), rel=1e-6)
        for i in range(4):
            known = expected[i, 3]
            moved = slope(session, a, s, onward, i)
            assert np.sqrt(known) == pytest.approx(abs(moved), rel=1e-6, abs=1e-9)
    assert total == pytest.approx(1.0, rel=1e-13)


def slope(session, a, s, onward, document=None, step=1e-6):
    """Return the log-likelihood's derivative by a document's satisfaction or by continuation."""
    values = []
    for sign in (1, -1):
        moved, further = s.copy(), onward
        if document is None:
            further += sign * step
        else:
            moved[document] += sign * step
        values.append(log(plain.bayesian_posteriors(session, a, moved, further)[0]))
    return (values[0] - values[1]) / (2 * step)


@pytest.mark.parametrize("user", [User("cascade"), User("bayesian", continuation=0.8)])
def test_counting_models_equal_the_plain_form(user):
    log = simulated(user, 500)
    sessions = as_lists(log)
    model = CascadeModel(smoothing=0).fit(log)
    numbers = {
        (int(log.queries[q]), int(log.documents[d])): (q, d)
        for (q, d), _ in itertools.chain(*sessions)
    }
    expected = plain.cascade(sessions)
    for pair, found in of_pairs(model, model.attraction_).items():
        assert found == expected.get(numbers[pair], np.nan) or np.isnan(found)
        assert np.isnan(found) == (numbers[pair] not in expected)
    model = DynamicBayesianModel(simplified=True, smoothing=0).fit(log)
    expected = plain.simplified(sessions)
    for values, known in zip([model.attraction_, model.satisfaction_], expected, strict=True):
        for pair, found in of_pairs(model, values).items():
            assert np.isnan(found) == (numbers[pair] not in known)
            assert np.isnan(found) or found == known[numbers[pair]]


# --------------------------------------------------------- known parameters


def truth(model, values):
    return values[model.query_ * N_DOCUMENTS + model.document_]


def check_errors(found, true, error):
    """Deviations are as large as their standard errors say: within 3, as good as all."""
    z = (found - true) / error
    assert np.mean(np.abs(z) < 3) >= 0.98
    assert np.abs(z).max() < 4.5
    assert 0.8 < np.sqrt(np.mean(z**2)) < 1.2


def covered(interval, true):
    return np.mean((interval[:, 0] <= true) & (true <= interval[:, 1]))


def test_position_based_model_recovers_its_parameters():
    theta = np.array([1.0, 0.8, 0.55, 0.5, 0.3, 0.25, 0.1, 0.05])
    model = PositionBasedModel().fit(simulated(User(examination=theta)))
    assert model.examination_error_[0] == 0.0
    z = (model.examination_ - theta)[1:] / model.examination_error_[1:]
    assert np.abs(z).max() < 3
    assert (model.examination_error_[1:] < 0.1 * theta[1:]).all()
    check_errors(model.attraction_, truth(model, ATTRACTION), model.attraction_error_)
    assert covered(model.attraction_interval_, truth(model, ATTRACTION)) > 0.9
    assert covered(model.examination_interval_, theta) >= 7 / 8


def test_cascade_model_recovers_its_parameters():
    model = CascadeModel(smoothing=0).fit(simulated(User("cascade")))
    a = truth(model, ATTRACTION)
    check_errors(model.attraction_, a, np.sqrt(a * (1 - a) / model._equivalent_counts[0]))
    assert 0.9 < covered(model.attraction_interval_, a) < 0.99


def test_bayesian_model_recovers_its_parameters():
    model = DynamicBayesianModel(smoothing=0).fit(simulated(User("bayesian", continuation=0.8)))
    low, high = model.continuation_interval_
    assert abs(model.continuation_ - 0.8) < 3 * (high - low) / 4
    assert high - low < 0.02
    a, s = truth(model, ATTRACTION), truth(model, SATISFACTION)
    check_errors(model.attraction_, a, np.sqrt(a * (1 - a) / model._equivalent_counts[0]))
    check_errors(model.satisfaction_, s, np.sqrt(s * (1 - s) / model._equivalent_counts[1]))
    assert 0.9 < covered(model.satisfaction_interval_, s) < 0.99
    fixed = DynamicBayesianModel(continuation=0.8).fit(
        simulated(User("bayesian", continuation=0.8))
    )
    assert fixed.continuation_ == 0.8
    assert np.abs(fixed.attraction_ - model.attraction_).max() < 0.02


def test_document_that_is_always_clicked_has_the_interval_of_its_clicks():
    """Its estimate of 1 has no variance; Jeffreys' posterior of 40 clicks of 40 has one."""
    clicked = np.column_stack([np.ones(40), np.arange(40) % 3 == 0]).ravel().astype(bool)
    log = ClickLog(
        np.zeros(80, dtype=int),
        np.tile([0, 1], 40),
        np.tile([1, 2], 40),
        clicked,
        session=np.repeat(np.arange(40), 2),
    )
    model = DynamicBayesianModel(smoothing=0).fit(log)
    assert model.attraction_[0] == 1.0
    assert model.attraction_interval_[0] == pytest.approx([beta(40.5, 0.5).ppf(0.025), 1.0])


def test_fitted_parameters_maximise_the_likelihood():
    log = simulated(User("bayesian", continuation=0.8), 3000)
    model = DynamicBayesianModel(smoothing=0, tol=1e-9, max_iter=5000).fit(log)
    best = model.log_likelihood(log)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = DynamicBayesianModel(simplified=True).fit(log)
        for name in ("attraction_", "satisfaction_"):
            moved = getattr(model, name) + 0.01 * rng.normal(size=model.attraction_.size)
            setattr(other, name, np.clip(moved, 1e-9, 1 - 1e-9))
        other.continuation_ = model.continuation_
        assert other.log_likelihood(log) < best


# --------------------------------------------------- likelihood, perplexity


def small():
    rows = [
        (*"qa", 1, 1),
        (*"qb", 2, 0),
        (*"qb", 1, 0),
        (*"qa", 2, 1),
        (*"qa", 1, 0),
        (*"qb", 2, 1),
    ]
    return ClickLog(*zip(*rows, strict=True))


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_click_probabilities_and_perplexity_equal_the_plain_form(model):
    log = small()
    model.fit(log)
    p = model.click_probabilities(log)
    # Of each session, all patterns: probabilities add up to 1 and give the marginals.
    for session in range(3):
        one = ClickLog([*"qq"], log.documents[log.document[2 * session :][:2]], [1, 2], [0, 0])
        marginal, total = np.zeros(2), 0.0
        for pattern in itertools.product([False, True], repeat=2):
            likelihood = np.exp(model.log_likelihood(one.with_clicks(np.array(pattern))))
            total += likelihood
            marginal += likelihood * np.array(pattern)
        assert total == pytest.approx(1.0)
        assert marginal == pytest.approx(p[2 * session :][:2])
    for position in (1, 2):
        here = log.position == position
        bits = [np.log2(q if c else 1 - q) for q, c in zip(p[here], log.clicked[here], strict=True)]
        assert model.perplexity(log)[position - 1] == pytest.approx(2 ** -np.mean(bits))


def test_the_right_model_has_the_best_likelihood():
    for user, best in [(User(), 3), (User("cascade"), 4), (User("bayesian", continuation=0.7), 6)]:
        log, held_out = simulated(user), simulated(user, seed=50)
        values = [model.fit(log).log_likelihood(held_out) for model in MODELS]
        assert int(np.argmax(values)) == best


def test_other_logs_are_matched_by_id():
    log = small()
    model = ClickRates(smoothing=0).fit(log)
    other = ClickLog(["new", "q", "q"], ["a", "b", "a"], [1, 1, 1], [0, 0, 0], session=[1, 2, 3])
    assert model.click_probabilities(other).tolist() == [3 / 6, 1 / 3, 2 / 3]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_windows_give_the_same_model(model, tmp_path):
    log = simulated(User("bayesian", continuation=0.8), 1500)
    path = tmp_path / "log.csv"
    columns = [log.session, log.query, log.document, log.position, log.clicked.astype(int)]
    lines = [",".join(map(str, row)) for row in zip(*(c.tolist() for c in columns), strict=True)]
    path.write_text("session,query,document,position,clicked\n" + "\n".join(lines) + "\n")
    log = ClickLog(
        log.query.astype(str), log.document.astype(str), *columns[3:], session=columns[0]
    )
    windows = open_clicks(path, window=700)
    assert sum(1 for _ in windows) > 10
    whole, parts = type(model)(**model.get_params()).fit(log), model.fit(windows)
    for name, value in vars(whole).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            # Of the network, whose sums are rounded in the same order, too.
            assert np.array_equal(value, getattr(parts, name)), name
    assert parts.log_likelihood(windows) == pytest.approx(whole.log_likelihood(log), rel=1e-12)
    assert parts.perplexity(windows) == pytest.approx(whole.perplexity(log), rel=1e-12)


# ------------------------------------------------------------------ refusals


def test_logs_that_do_not_identify_positions_are_rejected():
    log, _ = simulate_sessions(QID, DOCID, SCORE, 1000, random_state=0)
    clicked = log.with_clicks(np.ones(len(log), dtype=bool))
    with pytest.raises(ValueError, match=r"positions 2, 3, 4, 5, 6, \.\.\. relative to position 1"):
        PositionBasedModel().fit(clicked)
    # Documents at two positions, but without a click.
    log = ClickLog(["q"] * 4 + ["r"], [*"abba", "c"], [1, 2, 1, 2, 1], [0, 0, 0, 0, 1])
    with pytest.raises(ValueError, match="no clicked document links them"):
        PositionBasedModel().fit(log)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ClickRates("user"), "by must be one of"),
        (CascadeModel(smoothing=-1), "smoothing"),
        (DynamicBayesianModel(continuation=1.5), "continuation"),
        (DynamicBayesianModel(simplified=1), "simplified"),
        (PositionBasedModel(max_iter=0), "max_iter"),
    ],
)
def test_parameters_out_of_range_are_rejected(model, message):
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(small())


def test_generators_are_rejected():
    with pytest.raises(TypeError, match="readable again"):
        CascadeModel().fit(iter([small()]))


def test_one_large_position_takes_no_memory_for_all_below():
    far = MAX_POSITION
    rng = np.random.default_rng(0)
    columns = [["q"] * 600, [*"ab" * 300], [1, 2, 2, 1] * 150, rng.integers(0, 2, 600)]
    session = np.arange(600)
    near = PositionBasedModel(tol=1e-13).fit(ClickLog(*columns, session=session))
    columns[2] = [far if position == 2 else 1 for position in columns[2]]
    log = ClickLog(*columns, session=session)
    tracemalloc.start()
    try:
        found = PositionBasedModel(tol=1e-13).fit(log)
        interval = propensities(log, "em").interval
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6, f"{peak / 1e6:.0f} MB"
    for name in ("examination_", "examination_error_", "examination_interval_"):
        np.testing.assert_allclose(getattr(found, name)[[0, -1]], getattr(near, name))
        assert np.isnan(getattr(found, name)[1:-1]).all()
    np.testing.assert_allclose(found.attraction_error_, near.attraction_error_)
    np.testing.assert_allclose(interval[[0, -1]], near.examination_interval_, rtol=1e-5)
