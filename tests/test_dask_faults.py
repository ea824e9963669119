"""Workers that are killed: the fit ends with the same model, or says what was lost."""

import gc
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

import rankcore as rc
from rankcore.datasets import dump_letor, make_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask
import dask.array as da
import psutil
from distributed import Client, LocalCluster, Status, wait

import rankcore.dask as rd
from rankcore.dask import _run

# By themselves: what a loaded machine does to processes that die is no property of a fit.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="kills processes"),
]


@pytest.fixture(scope="module")
def cluster():
    settings = {
        # A worker that is lost is not a task that is to blame: it may be lost twenty times.
        "distributed.scheduler.allowed-failures": 100,
        # A LocalCluster looks at each lost worker again after 15 seconds, and closes it for good if
        # it is away just then: it may be again, killed a second time.
        "distributed.deploy.lost-worker-timeout": "1 hour",
        # How long a worker tries to fetch from one that is gone; of this machine, at once.
        "distributed.comm.timeouts.connect": "3s",
        # Starts workers ten times as fast: modules are imported once.
        "distributed.worker.multiprocessing-method": "forkserver",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


@pytest.fixture(autouse=True)
def whole(cluster):
    """After a test, no task is left, and workers that are being started are back.

    A fit releases its tasks itself: garbage may not be collected for hours. Closing a cluster while
    a worker is being started might take for ever.
    """
    gc.disable()
    yield
    end = time.monotonic() + 60
    while left := [key for key in cluster.scheduler.tasks if "rank" in str(key)]:
        assert time.monotonic() < end, f"these tasks are left: {left}"
        time.sleep(0.05)
    gc.enable()
    end = time.monotonic() + 60
    while not (
        len(cluster.scheduler.workers) == 2
        and all(
            nanny.process is not None and nanny.process.status is Status.running
            for nanny in cluster.workers.values()
        )
    ):
        assert time.monotonic() < end, "the workers that were killed are not back"
        time.sleep(0.05)


class Killer:
    """Kills workers, up to ``most`` in turn, at random moments while the block runs."""

    def __init__(self, cluster, seed, most):
        self.cluster, self.random, self.n, self.most = cluster, random.Random(seed), 0, most
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while self.n < self.most and not self.stopped.wait(self.random.uniform(0.05, 0.8)):
            # Both there: one that is being started again would only keep the fit from ending.
            if len(self.cluster.scheduler.workers) == 2:
                nanny = self.random.choice(list(self.cluster.workers.values()))
                os.kill(nanny.pid, signal.SIGKILL)
                self.n += 1
                while len(self.cluster.scheduler.workers) == 2 and not self.stopped.is_set():
                    time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()


def same(found, expected, tmp_path):
    contents = []
    for model in (found, expected):
        rc.save(model.to_local(), tmp_path / "model")
        contents.append((tmp_path / "model").read_bytes())
    return contents[0] == contents[1]


@pytest.mark.parametrize(
    "kills",
    [
        2,
        pytest.param(
            20,
            marks=pytest.mark.skipif(
                "RANKCORE_FAULTS" not in os.environ, reason="takes a minute: set RANKCORE_FAULTS=1"
            ),
        ),
    ],
)
def test_killed_workers_change_nothing(kills, cluster, tmp_path):
    X, y = make_ordinal(6000, 40, mean_nnz=15, random_state=0)
    X = X.toarray()
    dX, dy = da.from_array(X, chunks=(500, 40)), da.from_array(y, chunks=500)
    Xq, yq, qid = make_letor(40, 15, n_features=90, random_state=0)
    dump_letor((Xq - Xq.mean(axis=0)) / Xq.std(axis=0), yq, tmp_path / "rows.txt", qid=qid)

    # Of so many features that models are sent in part.
    Xs, ys = make_ordinal(2000, 30_000, mean_nnz=20, random_state=0)
    of_rows = np.random.default_rng(0).integers(0, 4, 2000)
    parts = [slice(start, start + 500) for start in range(0, 2000, 500)]
    sX, sy, sw = ([dask.delayed(one[part]) for part in parts] for one in (Xs, ys, of_rows))

    def fits():
        yield rd.PRank(max_iter=20, random_state=1).fit(dX, dy, n_shards=4)
        model = rd.PRank(max_iter=10, random_state=1)
        yield model.fit(sX, sy, sample_weight=sw, n_shards=4)
        pairs = rd.PairwisePerceptron(max_iter=8, random_state=1)
        yield pairs.fit(tmp_path / "rows.txt", n_shards=3)
        yield rd.RankBoost(600).fit(tmp_path / "rows.txt", n_shards=3)
        ensemble = rd.OAPVoting(n_estimators=40, max_iter=8, random_state=1)
        yield ensemble.fit(dX, dy, n_blocks=3)
        yield rd.RankSVM(C=10.0, random_state=1).fit(tmp_path / "rows.txt", n_shards=3)

    expected = list(fits())
    total = 0
    for seed in range(200):
        with Killer(cluster, seed, kills - total) as killer:
            found = list(fits())
        total += killer.n
        assert all(same(a, b, tmp_path) for a, b in zip(found, expected, strict=True))
        if total >= kills:
            break
    assert total >= kills


@pytest.mark.parametrize("kind", ["actor", "rounds"])
def test_results_that_are_lost_before_they_are_fetched(kind, cluster, tmp_path, monkeypatch):
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    dump_letor(X, y, tmp_path / "rows.txt", qid=qid)
    expected = rd.RankBoost(30).fit(tmp_path / "rows.txt", n_shards=2)
    fetch, settle, kills = _run.fetch, _run.Run.wait, []

    def kill(client, tasks):
        if tasks[0].key.split("-")[1] == kind and not kills:
            wait(tasks)
            kills.append(kind)
            (address,) = client.who_has(tasks[:1])[tasks[0].key]
            os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)
            while address in client.nthreads():
                time.sleep(0.01)

    def late_fetch(client, tasks):
        kill(client, tasks)
        return fetch(client, tasks)

    def late_wait(run, tasks, look=None):
        settle(run, tasks, look)
        kill(run.client, tasks)

    monkeypatch.setattr(_run, "fetch", late_fetch)
    monkeypatch.setattr(_run.Run, "wait", late_wait)
    found = rd.RankBoost(30).fit(tmp_path / "rows.txt", n_shards=2)
    assert same(found, expected, tmp_path)
    assert kills == [kind]


def ports():
    """Addresses at which this process listens."""
    found = psutil.Process().net_connections("inet")
    return sorted(one.laddr.port for one in found if one.status == psutil.CONN_LISTEN)


def test_workers_listen_at_ports_of_dask_alone(cluster):
    client = Client(cluster)
    X, y, qid = make_letor(40, 15, n_features=90, random_state=0)
    parts = [[dask.delayed(one[half]) for half in np.s_[:300, 300:]] for one in (X, y, qid)]
    before, during = client.run(ports), []
    model = rd.RankBoost(2000)
    model.fit(
        *parts[:2],
        qid=parts[2],
        n_shards=2,
        # Two seconds of rounds, of which the client hears after the first.
        callbacks=[lambda now: during.append(client.run(ports)) or len(during) == 3],
    )
    assert during == [before] * 3
    assert all(len(one) >= 1 for one in before.values())
    client.close()


def test_a_shard_that_kills_workers_is_named(cluster, monkeypatch):
    def deadly(block):
        if (block == 7).any():
            os._exit(1)
        return block

    y = np.tile([1, 2, 3], 400)
    X = np.random.default_rng(0).normal(size=(1200, 4))
    X[700] = 7
    dy = da.from_array(y, chunks=300)
    model = rd.PRank(random_state=0).fit(da.from_array(X * 0 + 1, chunks=(300, 4)), dy)
    before = model.coef_
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 1)
    dX = da.from_array(X, chunks=(300, 4)).map_blocks(deadly, meta=X[:0])
    with pytest.raises(RuntimeError, match=r"was lost with 2 workers"):
        model.fit(dX, dy, n_shards=4)
    assert np.array_equal(model.coef_, before)


def test_an_interrupt_cleans_up(cluster):
    X = np.random.default_rng(0).normal(size=(20000, 20))
    y = np.digitize(X @ np.arange(20), [-30, 30])
    dX, dy = da.from_array(X, chunks=(2500, 20)), da.from_array(y, chunks=2500)
    model = rd.PRank(max_iter=2000, random_state=0)
    timer = threading.Timer(3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(dX, dy, n_shards=4)
    finally:
        timer.cancel()
    assert not hasattr(model, "_state")
    client = Client(cluster)
    assert rd.PRank(max_iter=2, random_state=0).fit(dX, dy, client=client).t_ == 40000
    client.close()
