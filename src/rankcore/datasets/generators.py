"""Seeded generators of ranking problems: the same seed gives the same arrays everywhere."""

from __future__ import annotations

from typing import Any

import numpy as np

# Draws looked up at a time: bounds the temporaries of a large matrix.
DRAW_BLOCK = 4_000_000


def make_ordinal(
    n_samples: int = 250_000,
    n_features: int = 50_000,
    *,
    mean_nnz: float = 75,
    n_informative: int | None = None,
    n_ranks: int = 5,
    noise: float = 0.35,
    random_state: Any = 101,
) -> tuple[Any, np.ndarray]:
    """Sparse rows like tf-idf text, with equally frequent ordered labels.

    The columns of a row follow a Zipf law, its values are log-normal times the inverse document
    frequency, and its length is 1. The label is the quantile of a linear function of the row plus
    Gaussian noise.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    mean_nnz : float
        Roughly the mean number of non-zeros a row; none has more than 6 times as many.
    n_informative : int, optional
        Features with a non-zero weight; by default 3 of 10.
    n_ranks : int
        Number of labels, 1 .. n_ranks.
    noise : float
        Standard deviation of the noise, in units of the linear function's.
    random_state : int or numpy Generator
        The default and the other defaults give the benchmark's workload.

    Returns
    -------
    X : scipy.sparse.csr_matrix of float64, shape (n_samples, n_features)
        Canonical, int32 indices.
    y : ndarray of int64, shape (n_samples,)

    Notes
    -----
    O(non-zeros log non-zeros) time.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.datasets import make_ordinal
    >>> X, y = make_ordinal(1000, 300, mean_nnz=20, random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((1000, 300), [0, 200, 200, 200, 200, 200])
    """
    if n_samples < n_ranks or n_features < 1 or n_ranks < 2 or mean_nnz <= 0:
        raise ValueError(
            "make_ordinal needs n_ranks >= 2, n_samples >= n_ranks, n_features >= 1 and "
            f"mean_nnz > 0; found {n_ranks}, {n_samples}, {n_features}, {mean_nnz}"
        )
    rng = np.random.default_rng(random_state)
    X = _zipf_rows(rng, n_samples, n_features, mean_nnz)
    weights = np.zeros(n_features)
    informative = rng.choice(
        n_features, n_informative or max(1, 3 * n_features // 10), replace=False
    )
    weights[informative] = rng.normal(size=informative.size)
    signal = X @ weights
    signal = (signal - signal.mean()) / signal.std()
    target = signal + noise * rng.normal(size=n_samples)
    cuts = np.quantile(target, np.arange(1, n_ranks) / n_ranks)
    return X, np.searchsorted(cuts, target).astype(np.int64) + 1


def _zipf_rows(rng: np.random.Generator, n: int, d: int, mean_nnz: float) -> Any:
    """Unit-length CSR rows over columns of Zipf-Mandelbrot frequency (exponent 1.05, shift 20)."""
    import scipy.sparse as sp

    frequency = 1.0 / (np.arange(d) + 20.0) ** 1.05
    cumulative = np.cumsum(frequency / frequency.sum())
    cumulative[-1] = 1.0
    # Columns are drawn with replacement, so a few more draws than non-zeros are needed.
    draws = rng.lognormal(np.log(mean_nnz * 1.06) - 0.08, 0.4, n)
    draws = np.clip(draws, 5, 6 * mean_nnz).astype(np.int64)
    # Which columns are frequent has nothing to do with their numbers.
    numbers = rng.permutation(d).astype(np.int32)
    total = int(draws.sum())
    columns = np.empty(total, np.int32)
    for start in range(0, total, DRAW_BLOCK):
        stop = min(start + DRAW_BLOCK, total)
        columns[start:stop] = numbers[np.searchsorted(cumulative, rng.random(stop - start))]
    values = rng.lognormal(0.0, 0.5, total)
    cells = np.repeat(np.arange(n, dtype=np.int64), draws) * d + columns
    cells, first = np.unique(cells, return_index=True)  # of a repeated cell the first draw stays
    values = values[first]
    rows, columns = cells // d, (cells % d).astype(np.int32)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    document_frequency = np.bincount(columns, minlength=d) + 1.0
    values *= np.log(1.0 + n / document_frequency)[columns]
    X = sp.csr_matrix((values, columns, indptr), shape=(n, d))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X
