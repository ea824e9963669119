"""Probabilities and sets of ranks on streams."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from rankcore.datasets import make_drift
from rankcore.metrics import ranked_probability_score
from rankcore.online import AdaptiveSets, OnlineCalibration, evaluate
from rankcore.ordinal.curves import fit_cumulative, fit_isotonic

RANKS = range(1, 6)


def chunks(X, y, size=50):
    for i in range(0, len(y), size):
        yield X[i : i + size], y[i : i + size]


def learned(model, X, y, size=50):
    for rows, labels in chunks(X, y, size):
        model.partial_fit(rows, labels, RANKS)
    return model


@pytest.mark.parametrize("factor", [2.0**-5, 2.0**5])
def test_calibration_does_not_depend_on_the_unit_of_scores(factor):
    """PRank's scores are in the squared unit of the rows: those of powers of two are exact."""
    X, y = make_drift(600, 4, random_state=0)
    tables = []
    for unit in (1.0, factor):
        learner = rc.PRank.published(threshold_scale=unit)
        tables.append(learned(OnlineCalibration(learner), unit * X, y).predict_proba(unit * X))
    np.testing.assert_array_equal(tables[0], tables[1])


@pytest.mark.parametrize("drift", ["abrupt", "gradual", "returning", None])
@pytest.mark.parametrize(
    "learner",
    [rc.OrdinalLogistic(), OnlineCalibration(rc.PRank(average=False), window=500)],
    ids=["logistic", "calibration"],
)
def test_sets_have_the_coverage_in_the_long_run(drift, learner):
    X, y = make_drift(10_000, drift=drift, random_state=3)
    model = AdaptiveSets(learner, coverage=0.9)
    inside = []
    for i, (rows, labels) in enumerate(chunks(X, y, 25)):
        if i:
            low, high = model.predict_set(rows).T
            inside += ((low <= labels) & (labels <= high)).tolist()
        model.partial_fit(rows, labels, RANKS)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.01)
    assert model.coverage_ == pytest.approx(np.mean(inside), abs=1e-12)
    assert model.n_sets_ == len(inside) == 9975


def test_levels_follow_the_recursion_of_gibbs_and_candes():
    """Row by row, with sets that are computed by a plain search."""
    X, y = make_drift(400, 4, random_state=0)
    model = AdaptiveSets(rc.OrdinalLogistic(), coverage=0.8, step=0.05, window=50)
    plain = rc.OrdinalLogistic()
    level, scores = 1 - 0.8, []
    for i in range(400):
        rows, label = X[i : i + 1], y[i]
        if i:
            table = plain.predict_proba(rows)[0]
            low = high = int(table.argmax())
            of_rank = {low: 0.0}
            while len(of_rank) < 5:
                inside = table[low : high + 1].sum()
                below = table[low - 1] if low else -1
                above = table[high + 1] if high < 4 else -1
                if below >= above:
                    low -= 1
                    of_rank[low] = inside
                else:
                    high += 1
                    of_rank[high] = inside
            recent = sorted(scores[-50:])
            place = int(np.ceil((len(recent) + 1) * min(1, 1 - level) - 1e-9))
            bound = np.inf if place > len(recent) else 0 if place < 1 else recent[place - 1]
            known = [rank + 1 for rank, score in of_rank.items() if score <= bound + 1e-12]
            assert model.predict_set(rows).tolist() == [[min(known), max(known)]]
            score = of_rank[label - 1]
            level = min(1.0, level + 0.05 * (0.2 - (score > bound + 1e-12)))
            scores.append(score)
        plain.partial_fit(rows, [label], RANKS)
        model.partial_fit(rows, [label], RANKS)
        assert model.level_ == pytest.approx(level, abs=1e-9)
    assert model.conformal_scores_ == pytest.approx(scores[-50:])


@pytest.mark.parametrize("method", ["cumulative", "isotonic"])
def test_scores_are_calibrated_before_their_rows_are_learned(method):
    X, y = make_drift(1000, 4, random_state=0)
    model = learned(OnlineCalibration(rc.PRank(), method=method, window=300), X, y)
    plain = rc.PRank()
    # Scores from the mean threshold, running moments with a memory of the window, and scores
    # standardised on arrival.
    mean, square, seen, scores = 0.0, 0.0, 0, []
    for rows, labels in chunks(X, y):
        first = seen == 0
        if first:
            plain.partial_fit(rows, labels, RANKS)
        found = plain.project(rows) - plain.thresholds_.mean()
        if not first:
            plain.partial_fit(rows, labels, RANKS)
        seen += 50
        gain = 50 / min(seen, 300)
        mean += gain * (found.mean() - mean)
        square += gain * (np.mean(found**2) - square)
        scores += ((found - mean) / np.sqrt(square - mean**2)).tolist()
    fit = {"cumulative": fit_cumulative, "isotonic": fit_isotonic}[method]
    curves = fit(np.array(scores[-300:]), (y[-300:] - 1).astype(np.int32), 5, None)
    at = (plain.project(X) - plain.thresholds_.mean() - mean) / np.sqrt(square - mean**2)
    np.testing.assert_allclose(model.predict_proba(X), curves.probabilities(at), atol=1e-9)
    assert (model.predict(X) == model.model_.predict(X)).all()


@pytest.mark.parametrize(
    "learner",
    [
        rc.PRank(),
        rc.PRank(average=False),
        rc.PRank(half_life="auto"),
        rc.CuSumRank(),
        rc.WidrowHoff(),
        rc.MulticlassPerceptron(),
        rc.OrdinalLogistic(),
        rc.VotedPRank(),
        rc.OAPBPM(n_estimators=5, random_state=0),
        rc.OAPBagging(n_estimators=5, random_state=0),
        rc.OAPVoting(n_estimators=5, random_state=0),
    ],
    ids=str,
)
def test_probabilities_do_not_depend_on_the_origin_of_columns(learner):
    X, y = make_drift(1000, 4, drift=None, random_state=0)
    here, moved = (
        evaluate(OnlineCalibration(learner), chunks(rows, y), metrics="rps", classes=RANKS)
        for rows in (X, X + np.array([1024, 0, -4096, 0]))
    )
    assert moved.overall["rps"] == pytest.approx(here.overall["rps"], rel=1e-6)
    assert here.overall["rps"] < 0.5


@pytest.mark.parametrize("noise", [0.35, 1.0])
def test_ranked_probability_score_is_near_that_of_held_out_folds(noise):
    X, y = make_drift(7000, drift=None, noise=noise, random_state=5)
    whole = rc.CalibratedOrdinal(rc.PRank(random_state=0)).fit(X[:5000], y[:5000])
    streamed = learned(OnlineCalibration(), X[:5000], y[:5000])
    scores = [
        ranked_probability_score(y[5000:], model.predict_proba(X[5000:]), labels=RANKS)
        for model in (whole, streamed)
    ]
    assert scores[1] < 1.03 * scores[0]


def test_models_with_probabilities_are_saved(tmp_path):
    X, y = make_drift(500, 4, random_state=0)
    model = learned(OnlineCalibration(rc.CuSumRank()), X, y)
    rc.save(model.model_, tmp_path / "model")
    loaded = rc.load(tmp_path / "model")
    assert (loaded.predict_proba(X) == model.predict_proba(X)).all()


def test_probabilities_follow_from_the_first_rows_on():
    X, y = make_drift(40, 4, random_state=0)
    model = OnlineCalibration()
    for i in range(40):
        model.partial_fit(X[i : i + 1], y[i : i + 1], RANKS)
        table = model.predict_proba(X)
        assert np.isfinite(table).all()
        np.testing.assert_allclose(table.sum(axis=1), 1)


def test_parameters_may_be_changed_between_calls():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, 3))
    y = np.digitize(X.sum(axis=1) + rng.normal(size=900), [-1, 1])
    model = OnlineCalibration(rc.PRank()).partial_fit(X[:600], y[:600])
    model.set_params(method="isotonic", loss="zero_one", window=200).partial_fit(X[600:], y[600:])
    assert model._recent.scores.size == 200
    assert (model.model_.method, model.model_.loss) == ("isotonic", "zero_one")
    before = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), before.argmax(axis=1))
    with pytest.raises(ValueError, match="method must be"):
        model.set_params(method="platt").partial_fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_the_given_learner_is_not_changed():
    X, y = make_drift(100, 4, random_state=0)
    for wrapper in (OnlineCalibration, AdaptiveSets):
        learner = rc.OrdinalLogistic()
        model = learned(wrapper(learner), X, y)
        assert not hasattr(learner, "ranks_")
        assert clone(model).get_params()["estimator"] is not model.estimator_


def test_learners_without_probabilities_are_named():
    X, y = make_drift(100, 4, random_state=0)
    with pytest.raises(TypeError, match="predict_proba, which PRank lacks: wrap it in"):
        learned(AdaptiveSets(rc.PRank()), X, y)
    with pytest.raises(ValueError, match="AdaptiveSets has learned no rows"):
        AdaptiveSets(rc.OrdinalLogistic()).predict_set(X)


def test_measures_of_a_stream_include_probabilities():
    X, y = make_drift(1000, 4, drift=None, random_state=0)
    found = evaluate(OnlineCalibration(), chunks(X, y), metrics="rps", classes=RANKS, window=500)
    assert found.windows[-1].latest["rps"] < 0.3


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (AdaptiveSets(rc.OrdinalLogistic(), coverage=1.5), "coverage must be a number"),
        (AdaptiveSets(rc.OrdinalLogistic(), step=0), "step must be a number"),
        (AdaptiveSets(rc.OrdinalLogistic(), window=0), "window must be an integer >= 1"),
        (OnlineCalibration(window=0), "window must be an integer >= 1"),
        (OnlineCalibration(method="other"), "method must be"),
    ],
)
def test_invalid_parameters_are_named(model, message):
    X, y = make_drift(100, 4, random_state=0)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, y, RANKS)
