"""Threads and Ctrl-C: learners take turns, answers are of one moment, interrupted models valid."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import ONLINE, ONLINE_RANKERS, first_of_each, name_of
from pairwise_problems import solved_by
from rankcore._core.concurrency import uninterrupted
from rankcore._core.inputs import as_rows
from rankcore._core.queries import group_rows
from rankcore._ext.pairs import learn as learn_pairs
from rankcore.progress import watch
from rankcore.ranking.pairs import pair_by_label
from rankcore.ranking.perceptron_training import bind_pairs

pytestmark = pytest.mark.kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 12))
Y = np.digitize(X @ RNG.normal(size=12) + RNG.normal(size=400), [-2, 0, 2])
QID = np.repeat(np.arange(40), 10)

# A vote of all hypotheses of many calls would take most of the time.
PAIRWISE = [
    clone(one).set_params(max_hypotheses=30) if one.variant == "voted" else one
    for one in ONLINE_RANKERS
]
LEARNERS = [*first_of_each(ONLINE), *PAIRWISE]
# Calls wait for each other in two base classes: of these, a learner of each kind of state.
STATES = [
    *(one for one in LEARNERS if isinstance(one, rc.PRank | rc.KernelCuSumRank | rc.OAPBagging)),
    *(one for one in LEARNERS if isinstance(one, rc.CuSumRank | rc.VotedPRank)),
    *PAIRWISE[1:],
]
WITH_COEF = [one for one in STATES if hasattr(type(one), "coef_")]


def learn(model, rows=slice(None)):
    if isinstance(model, rc.PairwisePerceptron):
        return model.partial_fit(X[rows], Y[rows], qid=QID[rows])
    return model.partial_fit(X[rows], Y[rows], classes=[0, 1, 2, 3])


def written(model, folder):
    """All that a model knows, as the bytes of its file."""
    rc.save(model, folder / "written")
    return (folder / "written").read_bytes()


def in_threads(*jobs):
    """Run jobs at once, switching often; raise what the first of them that failed raised."""
    failures = []

    def guarded(job):
        try:
            job()
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=guarded, args=[job]) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if failures:
        raise failures[0]


@pytest.mark.parametrize("model", LEARNERS, ids=name_of)
def test_learning_threads_exclude_each_other(model, tmp_path):
    from sklearn.base import clone

    shared, alone = clone(model), clone(model)
    calls, n_threads = 10, 4

    def job():
        for _ in range(calls):
            learn(shared)

    in_threads(*[job] * n_threads)
    for _ in range(calls * n_threads):
        learn(alone)
    # All calls have the same rows, so their order does not matter: no call is lost or torn.
    assert written(shared, tmp_path) == written(alone, tmp_path)


def moments(model, look):
    """Results of the methods of a model, at any moment between two calls."""
    answers = []
    for _ in range(12):
        learn(model)
        answers.append(look(model))
    return answers


def by_rank(model):
    return getattr(model, "combine", "score") == "rank"


LOOKS = [
    lambda model: model.predict(
        X, **({"qid": QID} if isinstance(model, rc.PairwisePerceptron) else {})
    ),
    # Ranks are voted on by members, of which there is no one vector.
    lambda model: model.committee_.weights if by_rank(model) else model.coef_,
    lambda model: np.array(model.history_.popitem()[1]),
]


@pytest.mark.parametrize("look", LOOKS, ids=["predict", "coef_", "history_"])
@pytest.mark.parametrize("model", WITH_COEF, ids=name_of)
def test_prediction_uses_one_state_while_a_model_learns(model, look):
    from sklearn.base import clone

    possible = {answer.tobytes() for answer in moments(clone(model), look)}
    shared = learn(clone(model))
    stop = threading.Event()

    def job():
        try:
            for _ in range(11):
                learn(shared)
        finally:
            stop.set()

    def watcher():
        while not stop.is_set():
            assert look(shared).tobytes() in possible

    in_threads(job, watcher, watcher)


def test_voted_models_predict_during_a_fit():
    """The hypotheses move to larger arrays meanwhile."""
    possible = {m.tobytes() for m in moments(rc.VotedPRank.published(), lambda model: model.votes_)}
    shared = learn(rc.VotedPRank.published())

    def job():
        for _ in range(11):
            learn(shared)

    in_threads(job, *[lambda: [shared.votes_.tobytes() in possible or 1 / 0 for _ in range(50)]])


def test_saved_file_has_one_state_while_a_model_learns(tmp_path):
    for model in [
        rc.PRank.published(average=True),
        rc.CuSumRank.published(),
        rc.OAPBPM.published(9, random_state=0),
    ]:
        learn(model)
        path = tmp_path / "model.rankcore"
        stop = threading.Event()

        def job(model=model, stop=stop):
            try:
                for _ in range(150):
                    learn(model)
            finally:
                stop.set()

        def saver(model=model, stop=stop, path=path):
            while not stop.is_set():
                rc.save(model, path)
                assert rc.load(path).t_ % len(X) == 0

        in_threads(job, saver)


@pytest.mark.parametrize("model", PAIRWISE, ids=name_of)
def test_saving_and_learning_do_not_deadlock(model, tmp_path):
    """A file holds the committee, which is read by another method of the same model."""
    from sklearn.base import clone

    shared, stop = learn(clone(model)), threading.Event()

    def job():
        try:
            for _ in range(40):
                learn(shared)
        finally:
            stop.set()

    def saver(number):
        while not stop.is_set():
            rc.save(shared, tmp_path / str(number))
            rc.load(tmp_path / str(number))

    in_threads(job, lambda: saver(0), lambda: saver(1))


def test_many_finished_readers_do_not_block_learning():
    model, done, go_on = learn(rc.PRank.published()), threading.Barrier(301), threading.Event()

    def read():
        model.predict(X[:1])
        done.wait(30)
        go_on.wait(30)

    readers = [threading.Thread(target=read) for _ in range(300)]
    for reader in readers:
        reader.start()
    done.wait(30)
    assert learn(model).t_ == 2 * len(X)
    go_on.set()
    for reader in readers:
        reader.join()


def test_callback_of_partial_fit_cannot_use_the_estimator(tmp_path):
    calls = {
        "partial_fit": lambda model: model.partial_fit(X, Y),
        "predict": lambda model: model.predict(X),
        "save": lambda model: rc.save(model, tmp_path / "model"),
    }
    for name, call in calls.items():
        model = learn(rc.PRank.published())
        rejected = pytest.raises(
            RuntimeError, match=f"{name}.* was called while the same estimator"
        )
        with rejected, watch(lambda _, call=call, model=model: call(model)):
            model.partial_fit(X, Y)
        assert model.predict(X).shape == Y.shape  # nothing is locked any more


def test_fit_does_not_keep_readers_waiting():
    model, expected = learn(rc.PRank(max_iter=5)), []
    before = model.predict(X)

    def look(_):
        reader = threading.Thread(target=lambda: expected.append(model.predict(X)))
        reader.start()
        reader.join(10)

    with watch(look):
        model.fit(X, Y)
    assert len(expected) >= 5
    assert all(np.array_equal(answer, before) for answer in expected)


def test_endless_readers_do_not_block_learning():
    model, stop = learn(rc.PRank.published()), threading.Event()

    def read():
        while not stop.is_set():
            model.predict(X)

    def job():
        try:
            for _ in range(20):
                learn(model)
        finally:
            stop.set()

    in_threads(job, read, read, read)
    assert model.t_ == 21 * len(X)


def test_kernel_checks_the_capacity_for_hypotheses_at_each_call():
    """The array is shared with whoever made it, so that it may have changed since it was bound."""
    model = learn(rc.PairwisePerceptron("voted", combine="rank", random_state=0))
    rows = as_rows(X)
    pairing = pair_by_label(Y.astype(float), group_rows(QID, len(X)), None, False)
    data = bind_pairs(model, pairing, rows)
    model._state.model["counts"][3] = 10**6
    ones = np.ones(40)
    with pytest.raises(ValueError, match="members; got 1000000, and room for"):
        learn_pairs(model._state.model, data, np.arange(40), 0, ones, ones, model, 10**6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # which is the point
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    model, begun, go_on = learn(rc.PRank.published()), threading.Event(), threading.Event()

    def pause(_):
        begun.set()
        go_on.wait(10)

    def job():
        with watch(pause):
            model.partial_fit(X, Y)

    thread = threading.Thread(target=job)
    thread.start()
    begun.wait(10)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends the child if it waits for ever
        model.fit(X, Y)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    thread.join()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
@pytest.mark.parametrize("model", STATES, ids=name_of)
def test_model_is_valid_after_any_ctrl_c(model, tmp_path, monkeypatch):
    """It can be saved, loaded and trained, and has learned some of the rows of the call."""
    from sklearn.base import clone

    monkeypatch.setattr("rankcore.ordinal.base.OnlineOrdinalClassifier._block_values", 100)
    monkeypatch.setattr("rankcore.ranking.perceptron_training.BUDGET", 50)
    model = learn(clone(model))
    interrupted = 0

    def interrupt(number, frame):
        while frame is not None and frame.f_code is not learn.__code__:
            frame = frame.f_back
        if frame is not None:  # others would end the test
            raise KeyboardInterrupt

    # One that comes while an object is being deleted is not raised, but reported.
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    old = signal.signal(signal.SIGINT, interrupt)
    old_alarm = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    begun = time.perf_counter()
    learn(model)
    whole = time.perf_counter() - begun
    try:
        for share in np.linspace(0.001, 1, 24):
            begun = time.perf_counter()
            try:
                signal.setitimer(signal.ITIMER_REAL, share * whole)
                learn(model)
            except KeyboardInterrupt:
                interrupted += 1
            else:
                # A call that ended before its signal says how long one takes now.
                whole = time.perf_counter() - begun
            signal.setitimer(signal.ITIMER_REAL, 0)
            rc.save(model, tmp_path / "model")
            loaded = rc.load(tmp_path / "model", verify=True)
            np.testing.assert_array_equal(LOOKS[0](loaded), LOOKS[0](model))
        assert signal.getsignal(signal.SIGINT) is interrupt
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_alarm)
        signal.signal(signal.SIGINT, old)
    assert interrupted > 3


def test_uninterrupted_raises_at_its_end():
    steps = []

    def interrupted_twice():
        with uninterrupted(), uninterrupted():
            signal.raise_signal(signal.SIGINT)
            steps.append("whole")
            signal.raise_signal(signal.SIGINT)
        steps.append("never")

    with pytest.raises(KeyboardInterrupt):
        interrupted_twice()
    assert steps == ["whole"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_long_predictions_release_the_lock_between_blocks(monkeypatch):
    """Votes are counted some hypotheses and some rows at a time; the votes are the same."""
    from rankcore.ordinal import _votes as voted

    model = rc.VotedPRank.published(output="median").fit(X, Y)
    expected, parts = voted.count_votes(as_rows(X), model._voters()), []
    kernel = voted.tally
    monkeypatch.setattr(voted, "tally", lambda *args: parts.append(args[4:8]) or kernel(*args))
    for values in [1, 100, 2**13, 2**40]:
        monkeypatch.setattr(voted, "VOTING_VALUES", values)
        parts.clear()
        np.testing.assert_array_equal(voted.count_votes(as_rows(X), model._voters()), expected)
        n_hypotheses = len(model.votes_)
        assert sum((b - a) * (d - c) for a, b, c, d in parts) == n_hypotheses * len(X)
        assert all((b - a) * (d - c) * 12 <= max(values, 12) for a, b, c, d in parts)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_large_gram_matrix_is_made_in_parts(sparse, monkeypatch):
    import scipy.sparse as sp

    from rankcore.ranking import perceptron_training as pairwise

    monkeypatch.setattr(pairwise, "BUDGET", 20_000)
    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, size=(2001, 70)).astype(float)  # three blocks of features, padding
    labels, seen = rng.integers(0, 2, size=2001), []
    examples = sp.csr_array(rows * (rng.random(rows.shape) < 0.1)) if sparse else rows
    options = {"shuffle": False, "max_iter": 1, "margin": 0, "balance": None, "random_state": 0}
    options["standardize"] = False
    with watch(seen.append):
        model = solved_by("gram", rc.PairwisePerceptron(**options)).fit(
            examples, labels, qid=np.zeros(len(labels))
        )
    assert sum(progress.done == 0 for progress in seen) > 10
    plain = solved_by("lazy", rc.PairwisePerceptron(**options)).fit(
        examples, labels, qid=np.zeros(len(labels))
    )
    np.testing.assert_array_equal(model.coef_, plain.coef_)  # sums of integers are exact


@pytest.mark.parametrize(
    "method", ["predict", "predict_proba", "predict_cumulative_proba", "score"]
)
@pytest.mark.parametrize(
    "model",
    [
        rc.OrdinalLogistic(max_iter=1),
        rc.OrdinalBoost(2),
        rc.CalibratedOrdinal(rc.PRank(max_iter=1), cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities_and_ranks_come_from_one_model(model, method, monkeypatch):
    """Another thread fits a model of more ranks after the probabilities are computed."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    of_two, of_three = ((X[:, 0] > 0).astype(int), np.digitize(X[:, 0], [-0.5, 0.5]))
    model = clone(model).fit(X, of_two)
    arguments = (X, of_two) if method == "score" else (X,)
    expected = getattr(model, method)(*arguments)
    compute = type(model)._probabilities
    fits = []

    def interrupted(self, rows):
        table = compute(self, rows)
        if self is model and not fits:
            fits.append(threading.Thread(target=model.fit, args=(X, of_three)))
            fits[0].start()
            fits[0].join(0.5)
        return table

    monkeypatch.setattr(type(model), "_probabilities", interrupted)
    found = getattr(model, method)(*arguments)
    fits[0].join()
    np.testing.assert_array_equal(found, expected)
    assert model.ranks_.size == 3
