"""Reading files: LETOR text beside scikit-learn's reader and XGBoost's, TREC runs beside Python.

``RANKCORE_LETOR`` names a LETOR file to measure with instead of the generated one.
"""

import gzip
import importlib.util
import io
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from benchmarks.measure import machine, medians, peak_bytes, show, sized
from rankcore.datasets import Run, dump_letor, iter_letor, load_letor, read_run, write_run

N_QUERIES, N_DOCUMENTS, N_FEATURES = sized(500, 5), 120, 136
N_RUN = sized(1000, 20)  # queries of 1,000 documents in a run


def run(repeat: int) -> None:
    """Measure and print."""
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(os.environ.get("RANKCORE_LETOR", Path(folder) / "letor.txt"))
        if not path.exists():
            write_letor(path)
        lines = letor(path, repeat)
        lines += trec(Path(folder) / "run.txt", repeat)
    show(lines)


def letor(path: Path, repeat: int) -> list[tuple[str, str, str]]:
    """Write a file of dense rows with query ids."""
    data, size = load_letor(path), path.stat().st_size
    n_rows, n_features = data.X.shape
    print(f"{size / 1e6:.0f} MB: {n_rows} x {n_features}, {data.X.nnz / n_rows:.1f} values a row\n")
    content = path.read_bytes()
    packed = gzip.compress(content, 6)
    seconds = medians(
        repeat,
        bytes=path.read_bytes,
        csr=lambda: load_letor(path),
        csr32=lambda: load_letor(path, dtype=np.float32),
        dense=lambda: load_letor(path, dense=True),
        dense32=lambda: load_letor(path, dense=True, dtype=np.float32),
        two=lambda: load_letor(path, n_jobs=2),
        batches=lambda: [None for _ in iter_letor(path, n_features=n_features)],
        inflate=lambda: gzip.decompress(packed),
        packed=lambda: load_letor(io.BytesIO(packed)),
    )
    peers = {
        "ours": lambda: load_letor(path),
        "sklearn": lambda: load_svmlight_file(str(path), query_id=True),
    }
    if importlib.util.find_spec("xgboost"):
        import xgboost

        peers["xgboost"] = lambda: xgboost.DMatrix(f"{path}?format=libsvm", nthread=1)
    slow = medians(max(1, repeat // 5), **peers)
    result = 12 * data.X.nnz + 24 * n_rows
    peak = peak_bytes(lambda: load_letor(path))
    first = load_letor(io.BytesIO(content[: content.index(b"\n", size // 20) + 1]))
    start = time.perf_counter()
    dump_letor(first.X, first.y, io.BytesIO(), qid=first.qid)
    dump = (time.perf_counter() - start) / first.X.nnz

    def speed(name: str) -> str:
        return f"{seconds[name]:.3f} s, {size / seconds[name] / 1e6:.0f} MB/s"

    def beside(name: str) -> str:
        if name not in slow:
            return "not installed"
        return f"{slow[name]:.2f} s, {slow[name] / slow['ours']:.1f}x ours"

    return [
        ("reading the bytes alone", speed("bytes"), ""),
        ("load_letor, CSR float64", speed("csr"), "at least 250 MB/s"),
        ("  CSR float32", speed("csr32"), ""),
        ("  dense float64", speed("dense"), ""),
        ("  dense float32", speed("dense32"), ""),
        ("  CSR float64, n_jobs=2", speed("two"), ""),
        ("  peak memory, to that of the result", f"{peak / result:.2f}x", ""),
        ("iter_letor", speed("batches"), ""),
        ("gzip: decompressing alone", speed("inflate"), ""),
        ("  load_letor", speed("packed"), ""),
        ("scikit-learn's load_svmlight_file(query_id=True)", beside("sklearn"), "at least 10x"),
        ("  the same arrays to the bit", str(is_same(data, path)), "True"),
        ("XGBoost's DMatrix, one thread", beside("xgboost"), ""),
        ("dump_letor, a value", f"{dump * 1e9:.0f} ns", ""),
    ]


def is_same(data: Any, path: Path) -> bool:
    """Whether scikit-learn reads the same arrays."""
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    pairs = [(getattr(data.X, part), getattr(X, part)) for part in ["data", "indices", "indptr"]]
    return all(np.array_equal(*pair) for pair in [*pairs, (data.y, y), (data.qid, qid)])


def trec(path: Path, repeat: int) -> list[tuple[str, str, str]]:
    """Write a run of a million lines."""
    rng = np.random.default_rng(0)
    documents = rng.permuted(np.tile(np.arange(1000), (N_RUN, 1)), axis=1).ravel()
    write_run(
        Run(
            np.repeat(np.arange(N_RUN), 1000),
            np.char.add("clueweb09-en0000-00-", (documents + 10_000).astype(str)),
            rng.normal(size=1000 * N_RUN),
        ),
        path,
    )

    def python() -> int:
        scores: dict[str, dict[str, float]] = {}
        with open(path) as file:
            for line in file:
                query, _, document, _, score, _ = line.split()
                scores.setdefault(query, {})[document] = float(score)
        return len(scores)

    seconds = medians(max(3, repeat // 4), ours=lambda: read_run(path), python=python)
    return [
        ("read_run, lines a second", f"{N_RUN / 1000 / seconds['ours']:.2f} million", "at least 1"),
        ("  a loop in Python", f"{seconds['python'] / seconds['ours']:.1f}x ours", ""),
    ]


def write_letor(path: Path) -> None:
    """Return counts, shares and real features, with 6 digits as usual; labels 0 to 4."""
    rng = np.random.default_rng(202)
    form = " ".join(f"{j}:%.6g" for j in range(1, N_FEATURES + 1))
    with open(path, "w") as file:
        for query in range(1, N_QUERIES + 1):
            X = rng.normal(size=(N_DOCUMENTS, N_FEATURES)).astype(np.float32)
            X[:, ::3] = np.exp(X[:, ::3])
            X[:, 1::4] = np.round(np.clip(X[:, 1::4], 0, None) * 2)
            X[:, 2::5] = 1 / (1 + np.exp(-X[:, 2::5]))
            for label, row in zip(rng.integers(0, 5, N_DOCUMENTS), X.tolist(), strict=True):
                file.write(f"{label} qid:{query} {form % tuple(row)}\n")
