"""Interrupts in functions that keep no state: they end, and leave no file, thread or handler."""

import gzip
import os
import signal
import threading
import time

import numpy as np
import pytest

from rankcore.datasets import dump_letor, load_letor
from rankcore.metrics import evaluate

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "setitimer") or not os.path.isdir("/proc/self/fd"),
    reason="needs interval timers and /proc",
)
RNG = np.random.default_rng(5)
N = 20_000
LABELS, QUERIES, SCORES = RNG.integers(0, 4, N), np.arange(N) // 15, RNG.normal(size=N)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.txt"
    dump_letor(RNG.normal(size=(N, 8)), LABELS, path, qid=QUERIES)
    packed = path.with_name("rows.txt.gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), 1))
    return {"text": path, "gzip": packed}


def measured(_):
    found = evaluate(LABELS, SCORES, qid=QUERIES, metrics=["ndcg@10", "map", "auc"])
    return [found[name] for name in ("ndcg@10", "map", "auc")]


def loaded(name):
    def load(files):
        data = load_letor(files[name])
        return [data.X.toarray(), data.y, data.qid]

    return load


def opened():
    return sorted(os.listdir("/proc/self/fd")), threading.active_count()


CALLS = {"evaluate": measured, "load_letor": loaded("text"), "load_letor gzip": loaded("gzip")}


# An interrupt between open() and ``with`` leaves the file to Python, which warns and closes it.
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("name", CALLS)
def test_interrupt_at_any_moment_leaves_no_file_thread_or_handler(name, files):
    def interrupt(number, frame):
        raise KeyboardInterrupt

    call = CALLS[name]
    expected, before, interrupted = call(files), opened(), 0
    whole = np.inf  # of five: one that waited for the processor would leave most calls complete
    for _ in range(5):
        start = time.perf_counter()
        call(files)
        whole = min(whole, time.perf_counter() - start)
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in np.linspace(1e-5, whole, 40):
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                found = call(files)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            else:
                assert all(map(np.array_equal, found, expected))
            assert opened() == before
            assert signal.getsignal(signal.SIGALRM) is interrupt
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert interrupted > 20
    assert all(map(np.array_equal, call(files), expected))
