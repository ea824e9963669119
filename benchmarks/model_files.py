"""Model files: how long a small and a large model take to save and to load.

    python -m benchmarks model_files

Reading the bytes of the file is the limit of a load that looks at all of them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import scipy.sparse as sp

import rankcore as rc
from benchmarks.measure import sized


def seconds(call, repeats):
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return min(times)


def model_of(n_features):
    X = sp.csr_array(([1.0, 1.0], [0, n_features - 1], [0, 1, 2]), shape=(2, n_features))
    model = rc.PRank(average=False, max_iter=1).fit(X, [0, 1])
    model._state.model["weights"][:] = np.random.default_rng(0).normal(size=n_features)
    return model


def run(repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        print(f"{'bytes':>13} {'save':>9} {'load':>9} {'verify':>9} {'bytes only':>10}   seconds")
        for n_features in sized((100, 1_000_000, 128_000_000), (100, 10_000, 1_000_000)):
            model = model_of(n_features)
            save = seconds(lambda model=model: rc.save(model, path), 1)
            del model
            figures = [
                path.stat().st_size,
                save,
                seconds(lambda: rc.load(path), repeat),
                seconds(lambda: rc.load(path, verify=True), 2),
                seconds(path.read_bytes, 2),
            ]
            print("{:13} {:9.4f} {:9.5f} {:9.4f} {:10.4f}".format(*figures))
