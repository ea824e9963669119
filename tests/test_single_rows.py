"""Few rows at a time: `partial_fit` learns them by one call of the kernel, as it learns many."""

import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankcore as rc
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.progress import watch
from strategies import examples

LEARNERS = [
    rc.PRank(),
    rc.PRank.published(tie="strict"),
    rc.CuSumRank(),
    rc.CuSumRank.published(update="pa1"),
    rc.WidrowHoff(),
    rc.WidrowHoff.published(0.01),
    rc.MulticlassPerceptron(),
    rc.MulticlassPerceptron.published(update="uniform"),
]
CLASSES = [2, 3, 5, 7]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 6)) * (RNG.random((120, 6)) < 0.6)
Y = np.array(CLASSES)[RNG.integers(0, 4, len(X))]


def known(model):
    """All that a model has learned, comparable."""
    facts, arrays = model._describe()
    return facts, {name: (array.dtype, array.tobytes()) for name, array in arrays.items()}


def at_length(model, *rows):
    """Learn as many rows are learned: progress is reported, which one step does not do."""
    with watch(lambda _: None):
        return model.partial_fit(*rows, classes=CLASSES)


def new(model):
    return type(model)(**model.get_params())


def begun(model, as_matrix=np.asarray):
    """Return a model that has learned two rows of a stream."""
    return new(model).partial_fit(as_matrix(X[:2]), Y[:2], classes=CLASSES)


def reject(*_):
    raise AssertionError("a few rows are learned in blocks")


# Rows of this stream at which units of columns are renewed, which takes blocks.
RENEWED = [*range(1, 17), 32]


@pytest.mark.parametrize("model", LEARNERS, ids=repr)
@pytest.mark.parametrize("as_matrix", [np.asarray, np.float32, sp.csr_array, sp.csr_matrix])
def test_single_rows_are_learned_in_one_step(model, as_matrix, monkeypatch):
    expected = begun(model, as_matrix)
    for i in range(2, 50):
        at_length(expected, as_matrix(X[i : i + 1]), Y[i : i + 1])
    found = begun(model, as_matrix)
    for i in range(2, 50):
        with monkeypatch.context() as patch:
            if not (model.standardize and i + 1 in RENEWED):
                patch.setattr(OnlineOrdinalClassifier, "_run_pass", reject)
            found.partial_fit(as_matrix(X[i : i + 1]), Y[i : i + 1])
    assert known(found) == known(expected)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(LEARNERS), st.booleans(), st.lists(st.integers(1, 9), max_size=12), st.data()
)
def test_chunk_sizes_do_not_change_the_model(model, sparse, sizes, data):
    as_matrix = sp.csr_array if sparse else np.asarray
    one, other = begun(model, as_matrix), begun(model, as_matrix)
    at = 2
    for size in sizes:
        part = slice(at, at + size)
        at += size
        y = Y[part] if data.draw(st.booleans()) else Y[part].tolist()
        one.partial_fit(as_matrix(X[part]), y)
        at_length(other, as_matrix(X[part]), Y[part])
        assert known(one) == known(other)
    whole = new(model)
    at_length(whole, as_matrix(X[:2]), Y[:2])
    if at > 2:
        at_length(whole, as_matrix(X[2:at]), Y[2:at])
    assert known(whole) == known(one)


HUGE = np.full((1, 6), 1e200)
BAD = {
    "score": ([HUGE, -HUGE, HUGE, -HUGE], [7, 2, 7, 2]),
    "weights": ([X[:1], np.full((1, 6), 1.7e308), X[1:2]], [2, 7, 3]),
    "unknown label": ([X[:1]], [4]),
    "words": ([X[:1]], ["high"]),
    "no label": ([X[:1]], [np.nan]),
    "two labels": ([X[:1]], [2, 3]),
    "column of labels": ([X[:1]], [[2, 3]]),
    "NaN": ([np.where(np.arange(6) == 4, np.nan, X[:1])], [2]),
    "features": ([X[:1, :5]], [2]),
    "no rows": ([X[:0]], []),
}


def outcome(learn, model, rows, labels):
    """Return the error, if any, and the state of the model afterwards."""
    try:
        learn(model, rows, labels)
    except (ValueError, TypeError) as error:
        return type(error), str(error), known(model)
    return None, None, known(model)


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("model", LEARNERS, ids=repr)
def test_single_rows_raise_the_errors_of_many_rows(model, as_matrix, case):
    parts, labels = BAD[case]
    rows = as_matrix(np.concatenate(parts))
    found, expected = begun(model, as_matrix), begun(model, as_matrix)
    before = known(found)
    result = outcome(lambda model, *given: model.partial_fit(*given), found, rows, labels)
    assert result == outcome(at_length, expected, rows, labels)
    if case not in ("score", "weights"):
        assert result[0] is not None
        assert result[2] == before
        good = as_matrix(X[5:6]), Y[5:6]
        assert known(found.partial_fit(*good)) == known(at_length(expected, *good))


@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_rows_before_an_overflow_are_learned(as_matrix):
    model, expected = begun(rc.PRank.published(), as_matrix), begun(rc.PRank.published(), as_matrix)
    rows, labels = np.concatenate([X[3:8], HUGE, HUGE, HUGE, X[8:9]]), [*Y[3:8], 7, 2, 7, 2]
    with pytest.raises(ValueError, match=r"the score of row [67] overflowed") as error:
        model.partial_fit(as_matrix(rows), labels)
    n = 6 if "row 6" in str(error.value) else 7
    assert known(model) == known(expected.partial_fit(as_matrix(rows[:n]), labels[:n]))


def test_built_in_and_invalid_parameters_are_rejected():
    model = begun(rc.PRank())
    model.average = False
    with pytest.raises(ValueError, match="average=False differs"):
        model.partial_fit(X[:1], Y[:1])
    model.set_params(average=True, max_iter=0)
    with pytest.raises(ValueError, match="max_iter"):
        model.partial_fit(X[:1], Y[:1])
    model.set_params(max_iter=10, classes=CLASSES[:3])
    with pytest.raises(ValueError, match="differ from those of the first call"):
        model.partial_fit(X[:1], Y[:1])


def test_a_default_out_of_range_is_rejected():
    class Wrong(rc.PRank):
        def __init__(self, max_iter=0):
            super().__init__(max_iter)

    with pytest.raises(ValueError, match="max_iter"):
        Wrong().fit(X, Y)


def test_read_only_mapped_model_continues(tmp_path):
    joblib = pytest.importorskip("joblib")
    model = begun(rc.PRank())
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    for i in range(4, 8):
        row = X[i : i + 1], Y[i : i + 1]
        assert known(mapped.partial_fit(*row)) == known(model.partial_fit(*row))
    assert known(joblib.load(tmp_path / "model")) == known(begun(rc.PRank()))


def test_rows_after_the_best_pass_continue_it():
    def fitted():
        model = rc.PRank(max_iter=30, early_stopping_rounds=3, random_state=0)
        return model.fit(X[:80], Y[:80], eval_set=(X[80:], Y[80:]))

    one, other = fitted(), fitted()
    for i in range(3):
        row = X[i : i + 1], Y[i : i + 1]
        one.partial_fit(*row)
        at_length(other, *row)
        assert known(one) == known(other)
    assert not hasattr(one, "best_iteration_")


@contextmanager
def interrupts():
    """Timers raise SIGINT, whose handler raises KeyboardInterrupt while ``waiting`` is set.

    A signal may be handled some time after its timer was stopped: a late one is ignored, for it
    would interrupt the test itself.
    """
    waiting = threading.Event()

    def handler(number, frame):
        if waiting.is_set():
            waiting.clear()
            raise KeyboardInterrupt

    old = signal.signal(signal.SIGINT, handler)
    old_alarm = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield waiting
    finally:
        waiting.clear()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # which drops one that has not arrived
        signal.signal(signal.SIGALRM, old_alarm)
        signal.signal(signal.SIGINT, old)


def prefixes(model, as_matrix):
    """Everything a model has learned after each of some rows."""
    model = begun(model, as_matrix)
    found = [known(model)]
    for i in range(2, len(X)):
        found.append(known(model.partial_fit(as_matrix(X[i : i + 1]), Y[i : i + 1])))
    return found


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("model", [LEARNERS[0], LEARNERS[2]], ids=repr)
@pytest.mark.parametrize("as_matrix", [np.asarray, sp.csr_array])
def test_ctrl_c_at_any_moment_leaves_whole_rows(model, as_matrix):
    moments = prefixes(model, as_matrix)
    rows = [(as_matrix(X[i : i + 1]), Y[i : i + 1]) for i in range(2, len(X))]
    interrupted = 0
    with interrupts() as waiting:
        handler = signal.getsignal(signal.SIGINT)
        for delay in np.linspace(2e-5, 4e-3, 120):
            learned, seen = begun(model, as_matrix), 0
            try:
                waiting.set()
                signal.setitimer(signal.ITIMER_REAL, delay)
                for row in rows:
                    learned.partial_fit(*row)
                    seen += 1
                waiting.clear()
            except KeyboardInterrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            # The call that was interrupted has learned its row or not, never in part.
            assert known(learned) in moments[seen : seen + 2]
            assert signal.getsignal(signal.SIGINT) is handler
    assert interrupted > 10


def test_predicting_threads_do_not_disturb_single_row_learning():
    rows = [(X[i : i + 1], Y[i : i + 1]) for i in range(2, len(X))]
    reference = begun(LEARNERS[0])
    possible = {reference.decision_function(X).tobytes()}
    for row in rows:
        possible.add(reference.partial_fit(*row).decision_function(X).tobytes())
    shared, done, torn = begun(LEARNERS[0]), threading.Event(), []

    def read():
        while not done.is_set():
            if shared.decision_function(X).tobytes() not in possible:
                torn.append(shared.t_)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for row in rows:
        shared.partial_fit(*row)
        time.sleep(1e-4)
    done.set()
    for reader in readers:
        reader.join()
    assert not torn
    assert known(shared) == known(reference)

    def learn():
        for _ in range(200):
            shared.partial_fit(X[:1], Y[:1])
            shared.partial_fit(X[:40], Y[:40], sample_weight=np.ones(40))

    learners = [threading.Thread(target=learn) for _ in range(4)]
    for learner in learners:
        learner.start()
    for learner in learners:
        learner.join()
    assert shared.t_ == len(X) + 4 * 200 * 41
    assert sum(shared.history_["examples"]) == shared.t_


def test_progress_reports_single_rows():
    seen = []
    model = begun(rc.PRank())
    with watch(seen.append):
        model.partial_fit(X[:1], Y[:1])
    assert [(one.done, one.total) for one in seen] == [(1, 1)]
