"""Learning on a Dask cluster of this machine: speed beside one process, overhead, bytes, quality.

``RANKCORE_CLUSTER_ROWS`` sets the rows of each of 4 blocks (default 250000).
"""

import os
import pickle
import tempfile
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from benchmarks.measure import (
    machine,
    processor_seconds,
    seconds_between,
    seconds_each,
    show,
    sized,
    worker_seconds,
)
from rankcore.datasets import make_ordinal

N_BLOCKS = 4


def read(path: str) -> tuple[Any, Any]:
    """Rows and labels of one block."""
    return sp.csr_array(sp.load_npz(path + ".npz")), np.load(path + ".npy")


def write(folder: str, X: Any, y: Any, n_rows: int) -> list[str]:
    """Blocks of rows as files, which workers read."""
    paths = []
    for number in range(N_BLOCKS):
        part = slice(number * n_rows, (number + 1) * n_rows)
        paths.append(f"{folder}/block-{number}")
        sp.save_npz(paths[-1] + ".npz", X[part], compressed=False)
        np.save(paths[-1] + ".npy", y[part])
    return paths


def run(repeat: int) -> None:
    """Measure and print."""
    import dask
    from distributed import Client

    import rankcore.dask as rd

    print(machine())
    n_rows = int(os.environ.get("RANKCORE_CLUSTER_ROWS", sized(250_000, 500)))
    with (
        tempfile.TemporaryDirectory() as folder,
        Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client,
    ):
        whole = make_ordinal(n_rows * N_BLOCKS, random_state=101)
        parts = [dask.delayed(read)(path) for path in write(folder, *whole, n_rows)]
        X, y = [part[0] for part in parts], [part[1] for part in parts]
        print(f"{N_BLOCKS} blocks of {n_rows} rows, {whole[0].nnz} values, 2 workers\n")

        def local(n: int) -> rc.PRank:
            return rc.PRank(max_iter=n, random_state=0).fit(*whole)

        def shards(n: int) -> Any:
            return rd.PRank(max_iter=n, random_state=0).fit(X, y, n_shards=2)

        shards(1)  # workers read their blocks and import what they need
        one, two = 2 * [np.inf]
        for _ in range(repeat):  # in turn, so that a busy moment hits both alike
            one = min(one, seconds_between(partial(local, 6)))
            two = min(two, seconds_between(partial(shards, 6)))
        alone = seconds_each(lambda n: processor_seconds(1, fit=partial(local, n))["fit"], 5)
        busiest = seconds_each(lambda n: worker_seconds(client, partial(shards, n)), 5)
        tiny = [dask.delayed(sp.csr_array(whole[0][:10, :50]))] * 2
        labels = [dask.delayed(np.array([1, 2] * 5))] * 2

        def empty(n: int) -> Any:
            return rd.PRank(max_iter=n, random_state=0).fit(tiny, labels, n_shards=2)

        overhead = seconds_between(partial(empty, 50))
    show(
        [
            ("a pass in one process", f"{one * 1e3:.0f} ms", ""),
            ("a pass on 2 workers", f"{two * 1e3:.0f} ms", ""),
            ("faster on 2 workers", f"{one / two:.2f} times", "at least 1.6"),
            ("processor time, one process", f"{alone * 1e3:.0f} ms", ""),
            ("processor time, the busiest worker", f"{busiest * 1e3:.0f} ms", ""),
            ("a pass without work", f"{overhead * 1e3:.0f} ms", "under 60 ms"),
        ]
    )
    print("\nbytes sent in each pass, of rows that are sparse text and of those above")
    n, d = sized((200_000, 1_000_000), (2_000, 10_000))
    sent_of_a_pass(*make_ordinal(n, d, mean_nnz=40, random_state=101))
    sent_of_a_pass(*whole)
    print("\nnegated rank loss after each pass, of the first quarter of other rows")
    quality(whole[0], whole[1])


def quality(X: Any, y: Any) -> None:
    """Scores on held-out rows after each pass of 1, 2, 4 and 8 shards, by `merge` here."""
    n = min(X.shape[0], 100_000)
    held_out = X[n - n // 4 : n], y[n - n // 4 : n]
    train = X[: n - n // 4], y[: n - n // 4]
    classes = np.unique(y)
    for n_shards in [1, 2, 4, 8]:
        model = rc.PRank(max_iter=1, random_state=0).fit(*train)  # for its scale
        state = model._new_state(X.shape[1], classes.size)
        state.others["scale"][:] = model._state.others["scale"]
        model._state = state
        scores = []
        for epoch in range(6):
            shards = []
            for number in range(n_shards):
                order = np.random.default_rng([epoch, number]).permutation(
                    np.arange(number, train[1].size, n_shards)
                )
                shards.append(pickle.loads(pickle.dumps(model)))
                shards[-1].partial_fit(train[0][order], train[1][order])
            model = rc.merge(shards, base=model)
            scores.append(model.score(*held_out))
        print(f"{n_shards} shards", " ".join(f"{score:.4f}" for score in scores))


def sent_of_a_pass(X: Any, y: Any) -> None:
    """Sizes of the arguments and results of PRank's tasks, pass by pass, and of whole models."""
    from rankcore.dask._changes import Change
    from rankcore.dask._mixing import learn_ordinal
    from rankcore.dask._shards import Shard
    from rankcore.ordinal.merge import mixed

    X, n_features = sp.csr_array(X), X.shape[1]
    edges = np.linspace(0, y.size, N_BLOCKS + 1).astype(int)
    shards = [Shard(X[a:b], y[a:b], None) for a, b in pairwise(edges)]
    model = rc.PRank(max_iter=1, random_state=0).fit(X, y)  # for its scale
    state = model._new_state(n_features, model.ranks_.size)
    state.others["scale"][:] = model._state.others["scale"]
    whole = megabytes(state)
    print(f"{y.size} rows in {N_BLOCKS} shards, {n_features} features; a whole model {whole}")
    for epoch in range(1, 7):
        held = copy(model)
        held._state = sent = Change.of(state)
        found = []
        for number, shard in enumerate(shards):
            order = np.random.default_rng([epoch, number]).permutation(shard.y.size)
            visits = None, order.astype(np.int32)
            found.append(learn_ordinal(shard, visits, held, None, number))
        back = megabytes(max(found, key=lambda change: change.__sizeof__()))
        print(f"pass {epoch}: to a worker {megabytes(held)}, from a shard {back}")
        states = [change.onto(sent) for change in found]
        state = mixed(model, states, np.full(N_BLOCKS, 1 / N_BLOCKS), state)


def megabytes(value: Any) -> str:
    """Return the size of a value when it is sent."""
    return f"{len(pickle.dumps(value, protocol=5)) / 1e6:.2f} MB"
