"""Workers that are killed: the fit goes on, or says what was lost."""

import gc
import os
import random
import signal
import threading
import time

import numpy as np
import pytest

from rankcore.datasets import dump_letor, load_letor, make_letor, make_ordinal

pytest.importorskip("distributed", reason="needs the dask extra")

import dask
import dask.array as da
import psutil
from distributed import Client, KilledWorker, LocalCluster, Status

import rankcore.dask as rd

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


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Blocks of labelled rows, and files of queries."""
    X, y = make_ordinal(6000, 40, mean_nnz=15, random_state=0)
    dX, dy = da.from_array(X.toarray(), chunks=(500, 40)), da.from_array(y, chunks=500)
    Xq, yq, qid = make_letor(40, 15, n_features=90, random_state=0)
    Xq, folder = (Xq - Xq.mean(axis=0)) / Xq.std(axis=0), tmp_path_factory.mktemp("rows")
    files = []
    for k in range(4):
        part = slice(150 * k, 150 * (k + 1))
        dump_letor(Xq[part], yq[part], folder / f"rows-{k}.txt", qid=qid[part])
        files.append(dask.delayed(load_letor)(folder / f"rows-{k}.txt", n_features=90))
    return dX, dy, files


MODELS = {
    "PRank": rd.PRank(max_iter=40, random_state=1),
    "OAPVoting": rd.OAPVoting(n_estimators=40, max_iter=20, random_state=1),
    "PairwisePerceptron": rd.PairwisePerceptron(max_iter=20, random_state=1),
    "RankSVM": rd.RankSVM(C=10.0, tol=1e-9, random_state=1),
    "stumps": rd.RankBoost(600),
    "trees": rd.RankBoost(60, max_leaf_nodes=15),
    "OrdinalBoost": rd.OrdinalBoost(40),
}
OF_LABELS = ["PRank", "OAPVoting", "OrdinalBoost"]
KILLS = 20 if "RANKCORE_FAULTS" in os.environ else 2


def fit(name, rows):
    """Return a fitted model."""
    dX, dy, files = rows
    if name in OF_LABELS:
        return MODELS[name].fit(dX, dy, n_shards=4)
    X, y, qid = ([getattr(file, part) for file in files] for part in ("X", "y", "qid"))
    return MODELS[name].fit(X, y, qid=qid, n_shards=4)


@pytest.mark.parametrize("name", MODELS)
def test_a_fit_survives_killed_workers(name, cluster, rows):
    total = 0

    X = rows[0].compute() if name in OF_LABELS else rows[2][0].compute().X

    def learned(model):
        local = model.to_local()
        if name in OF_LABELS and name != "OrdinalBoost":
            return local.coef_
        return local.predict_proba(X) if name == "OrdinalBoost" else local.predict(X)

    expected = learned(fit(name, rows))
    for seed in range(50):
        with Killer(cluster, seed, KILLS - total) as killer:
            found = learned(fit(name, rows))
        total += killer.n
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
        if total >= KILLS:
            break
    assert total >= KILLS


def ports():
    """Return the addresses at which this process listens."""
    found = psutil.Process().net_connections("inet")
    return sorted(one.laddr.port for one in found if one.status == psutil.CONN_LISTEN)


def test_workers_listen_at_ports_of_dask_alone(cluster, rows):
    client = Client(cluster)
    before, during = client.run(ports), []
    model = rd.PRank(max_iter=3, random_state=0)
    model.fit(rows[0], rows[1], callbacks=[lambda now: during.append(client.run(ports))])
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
    with pytest.raises(KilledWorker, match="on 2 different workers"):
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
