"""Several threads and one estimator: learners take turns, and answers are of one moment."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest

import rankcore as rc
from pairwise_problems import perceptron, solved_by
from rankcore._core.inputs import as_rows
from rankcore._core.queries import group_rows
from rankcore._ext.held_signals import signals_held
from rankcore._ext.pairs import learn as learn_pairs
from rankcore.progress import watch
from rankcore.ranking._pairs import pair_by_label
from rankcore.ranking._training import bind_pairs

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 12))
Y = np.digitize(X @ RNG.normal(size=12) + RNG.normal(size=400), [-2, 0, 2])
QID = np.repeat(np.arange(40), 10)

ORDINAL = [
    rc.PRank.published(average=True),
    rc.VotedPRank.published(),
    rc.VotedPRank.published(max_hypotheses=5),
    rc.CuSumRank.published(average=True, update="pa1"),
    rc.WidrowHoff.published(0.01),
    rc.MulticlassPerceptron.published(average=True),
    rc.OAPBPM.published(9, random_state=0),
    rc.OAPVoting.published(9, random_state=0, n_jobs=2),
]
PAIRWISE = [
    rc.PairwisePerceptron("voted", combine="rank", random_state=0),
    rc.PairwisePerceptron("committee", random_state=0),
    rc.PairwisePerceptron("averaged", combine="score", random_state=0),
]


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


@pytest.mark.parametrize("model", [*ORDINAL, *PAIRWISE], ids=repr)
def test_threads_that_learn_take_turns(model, tmp_path):
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
@pytest.mark.parametrize("model", [ORDINAL[0], ORDINAL[3], ORDINAL[7], *PAIRWISE], ids=repr)
def test_answers_are_of_one_moment(model, look):
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


def test_voted_models_answer_while_they_grow():
    """The hypotheses move to larger arrays meanwhile."""
    possible = {m.tobytes() for m in moments(rc.VotedPRank.published(), lambda model: model.votes_)}
    shared = learn(rc.VotedPRank.published())

    def job():
        for _ in range(11):
            learn(shared)

    in_threads(job, *[lambda: [shared.votes_.tobytes() in possible or 1 / 0 for _ in range(50)]])


def test_a_saved_file_is_of_one_moment(tmp_path):
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


def test_an_estimator_refuses_to_learn_or_be_saved_from_within(tmp_path):
    model = learn(rc.PRank.published())
    before = written(model, tmp_path)

    for call, name in [
        (lambda _: model.partial_fit(X, Y), "partial_fit"),
        (lambda _: model.fit(X, Y), "fit"),
        (lambda _: rc.save(model, tmp_path / "model"), "save or merge"),
    ]:
        refused = pytest.raises(RuntimeError, match=f"{name} was called while this PRank is learn")
        with watch(call), refused:
            model.partial_fit(X, Y)
    assert written(model, tmp_path) == before
    with watch(lambda _: model.predict(X)):  # looking is fine
        model.partial_fit(X, Y)


def test_a_kernel_compares_hypotheses_with_their_room_at_each_call():
    """The array is shared with whoever made it, so that it may have changed since it was bound."""
    model = learn(rc.PairwisePerceptron("voted", combine="rank", random_state=0))
    bound = model._state.bind(1.0)
    rows = as_rows(X)
    pairing = pair_by_label(Y.astype(float), group_rows(QID, len(X)), None, False)
    data = bind_pairs(perceptron(solver="lazy", memory_limit=0), pairing, rows, 1)
    model._state.counts[0] = 10**6
    ones = np.ones(40)
    with pytest.raises(ValueError, match="1000000 hypotheses are kept, but there is room for"):
        learn_pairs(bound, data, np.arange(40), 0, ones, ones, 0.0, 10**6)


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
@pytest.mark.parametrize("model", [ORDINAL[0], ORDINAL[3], ORDINAL[6], *PAIRWISE[:2]], ids=repr)
def test_any_number_of_interrupts_leave_the_model_whole(model, tmp_path, monkeypatch):
    """Signals a fraction of a millisecond apart: during learning, and while it is put back."""
    from sklearn.base import clone

    model, twin = learn(clone(model)), learn(clone(model))
    known = written(model, tmp_path)
    interrupted = 0

    def interrupt(number, frame):
        while frame is not None and frame.f_code is not learn.__code__:
            frame = frame.f_back
        if frame is not None:  # others would end the test
            raise KeyboardInterrupt

    # One that comes while an object is being deleted is not raised, but reported.
    monkeypatch.setattr(sys, "unraisablehook", lambda report: None)
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in np.geomspace(2e-5, 3e-3, 60):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay, 1e-4)
                learn(model)
            except KeyboardInterrupt:
                interrupted += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            found = written(model, tmp_path)
            if found != known:  # one whole call further
                known = written(learn(twin), tmp_path)
                assert found == known
        assert signal.getsignal(signal.SIGALRM) is interrupt
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert interrupted > 5


def test_no_signal_is_lost_while_signals_are_held():
    model, seen = learn(rc.PRank.published()), []
    old = signal.signal(signal.SIGTERM, lambda *_: seen.append("terminated"))

    def signals(_):
        for number in [signal.SIGINT, signal.SIGINT, signal.SIGTERM]:
            signal.raise_signal(number)

    try:
        with watch(signals), pytest.raises(KeyboardInterrupt):
            learn(model)
    finally:
        signal.signal(signal.SIGTERM, old)
    assert seen == ["terminated"]
    assert model.t_ == len(X)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs interval timers")
def test_several_signals_in_a_row_leave_no_handler_behind():
    """Four, microseconds apart: while handlers are set, while they are put back, and after that."""
    left, raised = [0], 0

    def hold():
        while left[0]:
            with signals_held():
                pass

    def fail(number, frame):
        left[0] -= 1
        if left[0]:
            signal.setitimer(signal.ITIMER_REAL, gap)
        while frame is not None:
            if frame.f_code is hold.__code__:
                raise TimeoutError
            frame = frame.f_back

    old = signal.signal(signal.SIGALRM, fail)
    try:
        for trial in range(4000):
            left[0], gap = 4, 5e-6 + trial % 11 * 2e-6
            signal.setitimer(signal.ITIMER_REAL, 2e-5 + trial % 50 * 1e-6)
            try:
                hold()
            except TimeoutError:
                raised += 1
            while left[0]:
                time.sleep(2e-5)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            assert signal.getsignal(signal.SIGALRM) is fail
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert raised > 100  # else nothing was tried


def test_long_answers_pause_between_parts(monkeypatch):
    """Votes are counted some hypotheses and some rows at a time; the votes are the same."""
    from rankcore.ordinal import _projecting as voted

    model = rc.VotedPRank.published(output="median").fit(X, Y)
    expected, parts = model._tally(as_rows(X)), []
    kernel = voted.tally
    monkeypatch.setattr(voted, "tally", lambda *args: parts.append(args[4:8]) or kernel(*args))
    for values in [1, 100, 2**13, 2**40]:
        monkeypatch.setattr(voted, "VOTING_VALUES", values)
        parts.clear()
        np.testing.assert_array_equal(model._tally(as_rows(X)), expected)
        n_hypotheses = len(model.votes_)
        assert sum((b - a) * (d - c) for a, b, c, d in parts) == n_hypotheses * len(X)
        assert all((b - a) * (d - c) * 12 <= max(values, 12) for a, b, c, d in parts)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_large_gram_matrix_is_made_in_parts(sparse, monkeypatch):
    import scipy.sparse as sp

    from rankcore.ranking import _training as pairwise

    monkeypatch.setattr(pairwise, "BUDGET", 20_000)
    rng = np.random.default_rng(0)
    rows = rng.integers(-3, 4, size=(2001, 70)).astype(float)  # three blocks of features, padding
    labels, seen = rng.integers(0, 2, size=2001), []
    examples = sp.csr_array(rows * (rng.random(rows.shape) < 0.1)) if sparse else rows
    options = {"shuffle": False, "max_iter": 1, "margin": 0, "balance": None, "random_state": 0}
    with watch(seen.append):
        model = solved_by("gram", rc.PairwisePerceptron(**options)).fit(
            examples, labels, qid=np.zeros(len(labels))
        )
    assert sum(progress.done == 0 for progress in seen) > 10
    plain = solved_by("lazy", rc.PairwisePerceptron(**options)).fit(
        examples, labels, qid=np.zeros(len(labels))
    )
    np.testing.assert_array_equal(model.coef_, plain.coef_)  # sums of integers are exact
