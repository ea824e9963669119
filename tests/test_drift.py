"""Learners that start again when a detector finds that their rank loss rises."""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import rankcore as rc
from rankcore.datasets import make_drift
from rankcore.online import AdaptiveSets, DriftMonitor, OnlineCalibration, evaluate

RANKS = range(1, 6)


class PageHinkley:
    """Page's test for a rising mean, which needs no package."""

    def __init__(self, delta=0.03, threshold=8.0):
        self.delta, self.threshold = delta, threshold
        self.n = self.mean = self.sum = 0
        self.drift_detected = False

    def update(self, x):
        self.n += 1
        self.mean += (x - self.mean) / self.n
        self.sum = max(0.0, self.sum + x - self.mean - self.delta)
        self.drift_detected = self.n > 30 and self.sum > self.threshold


class At:
    """A detector with an alarm at the values of some numbers."""

    def __init__(self, *numbers):
        self.numbers, self.seen = numbers, []

    def update(self, x):
        self.seen.append(x)

    @property
    def drift_detected(self):
        return len(self.seen) in self.numbers


RIVER = pytest.mark.skipif(not find_spec("river"), reason="river is not installed")
DETECTORS = [
    pytest.param(PageHinkley, id="Page's test"),
    pytest.param(lambda: None, id="default", marks=RIVER),
]


def chunks(X, y, size=50):
    for i in range(0, len(y), size):
        yield X[i : i + size], y[i : i + size]


def reversed_half():
    """Rows whose labels are reversed from row 100 on."""
    X, y = make_drift(200, 4, drift=None, random_state=0)
    return X, np.where(np.arange(200) < 100, y, 6 - y)


@pytest.mark.parametrize("detector", DETECTORS)
@pytest.mark.parametrize(
    ("drift", "n_alarms"), [("abrupt", [1]), ("returning", [3]), ("gradual", [1, 2, 3])]
)
def test_restarts_recover_from_drift(drift, n_alarms, detector):
    X, y = make_drift(12_000, drift=drift, random_state=3)
    learners = {
        "average": rc.PRank(),
        "last": rc.PRank(average=False),
        "monitored": DriftMonitor(rc.PRank(), detector()),
    }
    losses = {
        name: evaluate(one, chunks(X, y), classes=RANKS).overall["rank_loss"]
        for name, one in learners.items()
    }
    most = 1.0 if drift == "gradual" else 0.9
    assert losses["monitored"] < most * min(losses["average"], losses["last"])
    alarms = learners["monitored"].drifts_
    assert len(alarms) in n_alarms
    if drift != "gradual":
        changes = [6000] if drift == "abrupt" else [3000, 6000, 9000]
        assert all(0 < at - change < 300 for at, change in zip(alarms, changes, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("noise", [0.0, 0.35, 1.5])
def test_without_drift_there_is_at_most_one_alarm_in_100_000_rows(noise, average):
    pytest.importorskip("river")
    X, y = make_drift(100_000, drift=None, noise=noise, random_state=1)
    model = DriftMonitor(rc.PRank(average=average))
    for rows, labels in chunks(X, y, 100):
        model.partial_fit(rows, labels, RANKS)
    assert len(model.drifts_) <= 1


def test_an_alarm_starts_again_from_the_latest_rows():
    X, y = reversed_half()
    words = np.array(["a", "e", "c", "d", "b"])[y - 1]
    order = ["a", "e", "c", "d", "b"]
    monitor = DriftMonitor(rc.PRank(classes=order), At(100), keep=35)
    for rows, labels in chunks(X, words, 20):
        monitor.partial_fit(rows, labels)
    assert monitor.drifts_ == [120]
    assert monitor.t_ == 200
    expected = rc.PRank().partial_fit(X[85:], words[85:], order)
    assert (monitor.estimator_.coef_ == expected.coef_).all()
    assert (monitor.predict(X) == expected.predict(X)).all()
    assert monitor.ranks_.tolist() == order
    assert monitor.classes_.tolist() == sorted(order)


def test_detectors_see_the_losses_of_rows_before_they_are_learned():
    X, y = make_drift(100, 4, random_state=0)
    detector = At()
    monitor = DriftMonitor(rc.PRank(), detector)
    model = rc.PRank()
    losses = []
    for rows, labels in chunks(X, y, 10):
        if model.__sklearn_is_fitted__():
            losses += (np.abs(model.predict(rows) - labels) / 4).tolist()
        model.partial_fit(rows, labels, RANKS)
        monitor.partial_fit(rows, labels, RANKS)
    assert monitor._watched.detector.seen == losses
    assert detector.seen == []  # it is copied


@pytest.mark.parametrize("keep", [150, 1000, 10_000])
def test_keeping_many_rows_does_not_hide_a_drift(keep):
    X, y = make_drift(12_000, drift="abrupt", random_state=3)
    found = {}
    for name, size in (("default", 100), ("kept", keep)):
        model = DriftMonitor(rc.PRank(), PageHinkley(), keep=size, action=lambda _: None)
        for rows, labels in chunks(X, y):
            model.partial_fit(rows, labels, RANKS)
        found[name] = model.drifts_
    assert found["kept"] == found["default"]
    assert 6000 < found["kept"][0] < 6300


@pytest.mark.parametrize("keep", [20, 30])
def test_losses_before_a_restart_do_not_confirm_an_alarm(keep):
    X, y = reversed_half()
    monitor = DriftMonitor(rc.PRank(), At(1, 2, 3, 130), keep=keep)
    for row in range(200):
        monitor.partial_fit(X[row : row + 1], y[row : row + 1], RANKS)
    assert monitor.drifts_ == [131]


@pytest.mark.parametrize(
    "detector", ["adwin", PageHinkley, object()], ids=["name", "class", "other object"]
)
def test_monitor_rejects_what_is_not_a_detector(detector):
    X, y = reversed_half()
    with pytest.raises(TypeError, match=r"detector must be an object with update.*; got"):
        DriftMonitor(rc.PRank(), detector).partial_fit(X, y)


def test_a_learner_that_improves_does_not_drift():
    X, y = make_drift(2000, drift=None, noise=0.0, random_state=0)
    monitor = DriftMonitor(rc.PRank(), At(*range(1000, 2000)), keep=500)
    for rows, labels in chunks(X, y):
        monitor.partial_fit(rows, labels, RANKS)
    assert monitor.drifts_ == []


def test_weights_are_learned_again():
    X, y = reversed_half()
    weights = np.random.default_rng(0).random(200)
    monitor = DriftMonitor(rc.OrdinalLogistic(), At(100), keep=35)
    for i in range(0, 200, 20):
        part = slice(i, i + 20)
        monitor.partial_fit(X[part], y[part], RANKS, sample_weight=weights[part])
    assert monitor.drifts_ == [120]
    expected = rc.OrdinalLogistic().partial_fit(X[85:], y[85:], RANKS, sample_weight=weights[85:])
    assert (monitor.estimator_.coef_ == expected.coef_).all()
    assert (monitor.predict_proba(X) == expected.predict_proba(X)).all()


def test_actions_warn_or_are_called():
    X, y = reversed_half()
    expected = rc.PRank().partial_fit(X, y, RANKS)
    called = []
    for action in ("warn", called.append):
        monitor = DriftMonitor(rc.PRank(), At(100), action=action, keep=35)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for rows, labels in chunks(X, y, 20):
                monitor.partial_fit(rows, labels, RANKS)
        assert monitor.drifts_ == [120]
        assert (monitor.estimator_.coef_ == expected.coef_).all()
        messages = [str(one.message) for one in caught]
        risen = "the rank loss has risen, after 120 rows of the stream"
        assert messages == ([risen] if action == "warn" else [])
    assert called == [monitor]


def test_invalid_arguments_are_named(monkeypatch):
    X, y = make_drift(20, random_state=0)
    with pytest.raises(ValueError, match='action must be "restart", "warn" or a function'):
        DriftMonitor(rc.PRank(), At(), action="stop").partial_fit(X, y, RANKS)
    with pytest.raises(ValueError, match="keep must be an integer >= 1"):
        DriftMonitor(rc.PRank(), At(), keep=0).partial_fit(X, y, RANKS)
    with pytest.raises(ValueError, match="estimator must be a learner; got None"):
        DriftMonitor(None, At()).partial_fit(X, y, RANKS)
    for learner in (rc.PairwisePerceptron(), rc.OrdinalBoost()):
        found = f"labels with partial_fit; got {type(learner).__name__}: use PRank"
        with pytest.raises(TypeError, match=found):
            DriftMonitor(learner, At()).partial_fit(X, y)
    with pytest.raises(AttributeError):
        DriftMonitor(rc.PRank(), At()).predict_proba(X)
    with pytest.raises(ValueError, match="DriftMonitor has learned no rows: call partial_fit"):
        DriftMonitor(rc.PRank(), At()).predict(X)
    monkeypatch.setitem(sys.modules, "river.drift", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'rankcore\[online\]'"):
        DriftMonitor(rc.PRank()).partial_fit(X, y, RANKS)


def test_action_can_shorten_the_half_life():
    X, y = make_drift(4000, drift="abrupt", random_state=0)

    def shorten(monitor):
        monitor.estimator_.set_params(half_life=30)

    def losses(action):
        model = DriftMonitor(rc.PRank(half_life=1000), PageHinkley(), action=action)
        found = evaluate(model, chunks(X, y, 20), classes=RANKS, window=100)
        return found.to_frame()["rank_loss"], model

    shortened, model = losses(shorten)
    assert model.drifts_
    assert min(model.drifts_) > 2000
    assert model.estimator_.half_life_ == 30
    unchanged, _ = losses(lambda _: None)
    assert shortened.loc[2200:].mean() < 0.8 * unchanged.loc[2200:].mean()


@pytest.mark.parametrize(
    "wrapper",
    [
        DriftMonitor(rc.PRank(half_life=1000.0), At()),
        OnlineCalibration(rc.PRank(half_life=1000.0)),
        AdaptiveSets(rc.OrdinalLogistic(half_life=1000.0)),
        AdaptiveSets(OnlineCalibration(rc.PRank(half_life=1000.0))),
    ],
    ids=lambda wrapper: type(wrapper.estimator).__name__ + " in " + type(wrapper).__name__,
)
def test_parameters_of_the_estimator_change_in_a_stream(wrapper):
    X, y = make_drift(200, drift="abrupt", random_state=0)
    nested = isinstance(wrapper.estimator, OnlineCalibration)
    name = "estimator__estimator__half_life" if nested else "estimator__half_life"
    wrapper.partial_fit(X[:100], y[:100], RANKS)
    alone = clone(wrapper.estimator).partial_fit(X[:100], y[:100], RANKS)
    wrapper.set_params(**{name: 5.0}).partial_fit(X[100:], y[100:])
    alone.set_params(**{name.removeprefix("estimator__"): 5.0}).partial_fit(X[100:], y[100:])
    learner, expected = (
        (wrapper.estimator_.estimator_, alone.estimator_) if nested else (wrapper.estimator_, alone)
    )
    assert wrapper.get_params()[name] == learner.half_life == learner.half_life_ == 5.0
    np.testing.assert_array_equal(learner.project(X), expected.project(X))


@pytest.mark.parametrize(
    "wrapper",
    [
        lambda learner: DriftMonitor(learner, At()),
        rc.online.OnlineCalibration,
        rc.online.AdaptiveSets,
    ],
    ids=["drift", "calibration", "sets"],
)
def test_wrapper_has_the_column_names_of_its_estimator(wrapper):
    X, y = make_drift(100, 3, random_state=0)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = wrapper(rc.OrdinalLogistic()).partial_fit(frame, y, RANKS)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
    assert not hasattr(wrapper(rc.OrdinalLogistic()), "feature_names_in_")
    assert not hasattr(wrapper(rc.OrdinalLogistic()).partial_fit(X, y, RANKS), "feature_names_in_")


WRAPPERS = [
    pytest.param(lambda: OnlineCalibration(rc.PRank()), id="OnlineCalibration"),
    pytest.param(lambda: AdaptiveSets(rc.OrdinalLogistic()), id="AdaptiveSets"),
    pytest.param(lambda: DriftMonitor(rc.PRank(), At(120), keep=60), id="DriftMonitor"),
    pytest.param(
        lambda: DriftMonitor(OnlineCalibration(rc.PRank()), At(120), keep=60), id="nested"
    ),
]


@pytest.mark.parametrize("form", ["array", "csr", "pandas", "polars"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_columns_that_appear_in_a_stream_are_learned(wrapper, form):
    """The model is that of a stream whose rows had 0 in the column from the start."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(300, 4)).astype(float)
    X[:120, 3] = 0
    y = np.digitize(X.sum(axis=1) + rng.normal(size=300), [-3, 0, 3])
    y[90:] = 3 - y[90:]  # a change, found after 150 rows: the latest 60 have both widths

    def shaped(rows):
        if form == "csr":
            return sp.csr_matrix(rows)
        names = ["a", "b", "c", "d"][: rows.shape[1]]
        if form == "polars":
            return pytest.importorskip("polars").DataFrame(rows, schema=names)
        return pd.DataFrame(rows, columns=names) if form == "pandas" else rows

    grown, whole = wrapper(), wrapper()
    for part in np.array_split(np.arange(300), 10):
        width = 3 if part[0] < 120 else 4
        grown.partial_fit(shaped(X[part, :width]), y[part], classes=range(4), grow=width == 4)
        whole.partial_fit(shaped(X[part]), y[part], classes=range(4))
    assert grown.n_features_in_ == 4
    np.testing.assert_array_equal(grown.predict(shaped(X)), whole.predict(shaped(X)))
    if hasattr(grown, "predict_proba"):
        tables = [model.predict_proba(shaped(X)) for model in (grown, whole)]
        np.testing.assert_allclose(*tables, atol=1e-9)
    if isinstance(grown, DriftMonitor):
        assert grown.drifts_ == whole.drifts_ == [150]
    with pytest.raises(ValueError, match=r"grow=True adds columns only.* \[0, 1, 2, 3\]; got"):
        grown.partial_fit(shaped(X), y, classes=range(5), grow=True)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_rows_that_are_no_matrix_have_the_same_error_with_and_without_grow(wrapper):
    X = np.arange(12.0).reshape(6, 2)
    model = wrapper().partial_fit(X, [0, 1, 2, 0, 1, 2], classes=range(3))
    for rows in (X[0], X[0].tolist(), pd.Series(X[0]), [X]):
        messages = []
        for grow in (False, True):
            with pytest.raises(ValueError, match="X") as caught:
                model.partial_fit(rows, [0, 1], grow=grow)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]
