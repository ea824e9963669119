"""A cluster of two processes learns from LETOR shards; one is killed, and the fit goes on.

Run it by ``python examples/cluster/demo.py``.
"""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

import rankcore as rc
import rankcore.dask as rd
from rankcore.datasets import dump_letor, load_letor, make_letor
from rankcore.progress import Progress, watch

EPOCHS = 12


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), n_shards=4)
        with (
            LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
            ) as cluster,
            Client(cluster),
        ):
            print(f"4 LETOR files, 2 workers, dashboard at {cluster.dashboard_link}")
            calm = fit(paths, 4)
            print("4 shards, and a worker is killed in the third pass:")
            killed = fit(paths, 4, cluster)
        X, y, qid = joined(paths)
        local = learner(rc).fit(X, y, qid=qid)
        apart = np.abs(killed.coef_ - calm.coef_).max() / np.abs(calm.coef_).max()
        print(f"with and without the killed worker, weights are {apart:.1e} of the largest apart")
        assert apart < 1e-9
        print(f"NDCG@10 of 4 shards {calm.to_local().score(X, y, qid=qid):.4f}, ", end="")
        print(f"of one process {local.score(X, y, qid=qid):.4f}")


def learner(module):
    return module.PairwisePerceptron(max_iter=EPOCHS, random_state=0)


def fit(paths, n_shards, victims=None):
    """Fit, while a worker of ``victims`` is killed."""

    def follow(now: Progress) -> None:
        if victims is not None:
            print(f"  pass {now.epoch} of {now.n_epochs}: {now.measure} {now.value:.4f}")
            if now.epoch == 3:
                threading.Thread(target=kill, args=(victims,)).start()

    files = [delayed(load_letor)(path, n_features=90) for path in paths]
    X, y, qid = ([getattr(file, part) for file in files] for part in ("X", "y", "qid"))
    with watch(follow):
        return learner(rd).fit(X, y, qid=qid, n_shards=n_shards)


def kill(cluster) -> None:
    time.sleep(0.01)
    pid = next(iter(cluster.workers.values())).pid
    os.kill(pid, signal.SIGKILL)
    print(f"  killed process {pid}")


def write(folder: Path, n_shards: int) -> list[str]:
    X, y, qid = make_letor(400, 40, n_features=90, random_state=0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    paths = []
    for number, queries in enumerate(np.array_split(np.unique(qid), n_shards)):
        paths.append(str(folder / f"part-{number}.txt"))
        rows = np.isin(qid, queries)
        dump_letor(X[rows], y[rows], paths[-1], qid=qid[rows])
    return paths


def joined(paths):
    from scipy.sparse import vstack

    parts = [load_letor(path) for path in paths]
    return (
        vstack([part.X for part in parts], format="csr"),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
    )


if __name__ == "__main__":
    main()
