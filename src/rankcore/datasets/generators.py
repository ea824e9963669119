"""Seeded generators of ranking problems: the same seed gives the same arrays everywhere."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

from rankcore._core.arguments import RowsLike

# Draws per chunk: bounds temporary arrays of a large matrix.
DRAW_BLOCK = 4_000_000

# `make_oap_synthetic`: thresholds between ranks, and the standard deviation of the noise.
OAP_CUTS = (-1.0, -0.1, 0.25, 1.0)
OAP_NOISE = 0.125

# `make_letor`: latent factors of features and relevance, the weight of each product and kink (the
# linear part has variance 1), and shares of documents below each grade.
LATENT = 24
INTERACTION = 0.8
GRADE_SHARES = (0.52, 0.75, 0.90, 0.97)


def make_ordinal(
    n_samples: int = 250_000,
    n_features: int = 50_000,
    *,
    mean_nnz: float = 75,
    n_informative: int | None = None,
    n_ranks: int = 5,
    noise: float = 0.35,
    random_state: int | np.random.Generator | None = 101,
) -> tuple[Any, np.ndarray]:
    """Generate sparse rows similar to tf-idf text, with equally frequent ordered labels.

    The columns of a row follow a Zipf law, its values are log-normal times the inverse document
    frequency, and its norm is 1. The label is the quantile bin of a linear function of the row plus
    Gaussian noise.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    mean_nnz : float
        Approximate mean number of nonzeros per row; the maximum is 6 times that.
    n_informative : int, optional
        Number of features with a nonzero weight; by default 3 of 10 features.
    n_ranks : int
        Number of labels, 1 .. n_ranks.
    noise : float
        Standard deviation of the noise, relative to that of the linear function.
    random_state : int or numpy Generator
        Seed or generator.

    Returns
    -------
    X : scipy.sparse.csr_matrix of float64, shape (n_samples, n_features)
        In canonical format, with int32 indices.
    y : ndarray of int64, shape (n_samples,)
        Labels, 1 .. n_ranks.

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
            "make_ordinal requires n_ranks >= 2, n_samples >= n_ranks, n_features >= 1 and "
            f"mean_nnz > 0; got {n_ranks}, {n_samples}, {n_features}, {mean_nnz}"
        )
    rng = np.random.default_rng(random_state)
    X = _zipf_rows(rng, n_samples, n_features, mean_nnz)
    target = _noisy(rng, X, n_informative or max(1, 3 * n_features // 10), noise)
    cuts = np.quantile(target, np.arange(1, n_ranks) / n_ranks)
    return X, np.searchsorted(cuts, target).astype(np.int64) + 1


def make_drift(
    n_samples: int = 20_000,
    n_features: int = 8,
    *,
    drift: Literal["abrupt", "gradual", "returning"] | None = "abrupt",
    n_ranks: int = 5,
    noise: float = 0.35,
    random_state: int | np.random.Generator | None = 404,
) -> tuple[np.ndarray, np.ndarray]:
    """Generate a stream of rows with ordered labels, whose meaning changes.

    Features are independent and normal. The label is the bin of a linear function of the row plus
    Gaussian noise; all labels are about equally frequent. There are two linear functions, an old
    and a new one.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    drift : {"abrupt", "gradual", "returning"} or None
        The new function replaces the old one after half of the rows; its share of the rows rises
        from 0 to 1 between the first and the last quarter; the two alternate every quarter; or
        there is only the old one.
    n_ranks : int
        Number of labels, 1 .. n_ranks.
    noise : float
        Standard deviation of the noise, relative to that of the linear function.
    random_state : int or numpy Generator
        Seed or generator.

    Returns
    -------
    X : ndarray of float64, shape (n_samples, n_features)
        Rows in the order of time.
    y : ndarray of int64, shape (n_samples,)
        Labels, 1 .. n_ranks.

    Raises
    ------
    ValueError
        For sizes that are too small, or another drift.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.datasets import make_drift
    >>> X, y = make_drift(1000, drift="returning", random_state=0)
    >>> X.shape, np.unique(y).tolist()
    ((1000, 8), [1, 2, 3, 4, 5])
    """
    if n_samples < 4 or n_features < 2 or n_ranks < 2 or not noise >= 0:
        raise ValueError(
            "make_drift requires n_samples >= 4, n_features >= 2, n_ranks >= 2 and noise >= 0; "
            f"got {n_samples}, {n_features}, {n_ranks} and {noise}"
        )
    # The share of rows of the new function, by time from 0 to 1.
    time = np.arange(n_samples) / n_samples
    shares = {
        None: np.zeros(n_samples),
        "abrupt": time >= 0.5,
        "gradual": np.clip(2 * time - 0.5, 0, 1),
        "returning": np.floor(4 * time) % 2,
    }
    if drift not in shares:
        raise ValueError(f'drift must be "abrupt", "gradual", "returning" or None; got {drift!r}')
    rng = np.random.default_rng(random_state)
    functions = rng.normal(size=(2, n_features))
    functions /= np.linalg.norm(functions, axis=1, keepdims=True)
    X = rng.normal(size=(n_samples, n_features))
    new = (rng.random(n_samples) < shares[drift]).astype(np.intp)
    target = np.einsum("ij,ij->i", X, functions[new]) + noise * rng.normal(size=n_samples)
    cuts = np.sqrt(1 + noise**2) * ndtri(np.arange(1, n_ranks) / n_ranks)
    return X, np.searchsorted(cuts, target).astype(np.int64) + 1


def make_bipartite(
    n_samples: int = 250_000,
    n_features: int = 20_000,
    *,
    mean_nnz: float = 50,
    n_informative: int | None = None,
    relevant: float = 0.1,
    noise: float = 0.7,
    random_state: int | np.random.Generator | None = 303,
) -> tuple[Any, np.ndarray]:
    """Generate sparse rows similar to tf-idf text, a few of which are relevant.

    Rows are as in `make_ordinal`; those with the highest noisy linear scores are relevant.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of X.
    mean_nnz : float
        Approximate mean number of nonzeros per row.
    n_informative : int, optional
        Number of features with a nonzero weight; by default 1 of 5.
    relevant : float
        Share of the relevant rows, between 0 and 1.
    noise : float
        Standard deviation of the noise, relative to that of the linear function.
    random_state : int or numpy Generator
        Seed or generator.

    Returns
    -------
    X : scipy.sparse.csr_matrix of float64, shape (n_samples, n_features)
        In canonical format, with int32 indices.
    y : ndarray of int32, shape (n_samples,)
        1 for relevant, else 0.

    Raises
    ------
    ValueError
        For sizes that are not positive, or another share.

    Notes
    -----
    O(non-zeros log non-zeros) time.

    Examples
    --------
    >>> from rankcore.datasets import make_bipartite
    >>> X, y = make_bipartite(1000, 300, mean_nnz=20, random_state=0)
    >>> X.shape, int(y.sum())
    ((1000, 300), 100)
    """
    if n_samples < 2 or n_features < 1 or mean_nnz <= 0 or not 0 < relevant < 1:
        raise ValueError(
            "make_bipartite requires n_samples >= 2, n_features >= 1, mean_nnz > 0 and a fraction "
            "of relevant rows between 0 and 1; got "
            f"{n_samples}, {n_features}, {mean_nnz}, {relevant}"
        )
    rng = np.random.default_rng(random_state)
    X = _zipf_rows(rng, n_samples, n_features, mean_nnz)
    target = _noisy(rng, X, n_informative or max(1, n_features // 5), noise)
    return X, (target > np.quantile(target, 1 - relevant)).astype(np.int32)


def make_letor(
    n_queries: int = 2500,
    n_docs: int = 120,
    n_features: int = 136,
    *,
    random_state: int | np.random.Generator | None = 202,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Generate queries with graded documents and features of many scales, as in web search.

    Features are correlated, and shifted by query; of every 136, about 40 are exponentials, 30
    counts and 20 lie between 0 and 1. Relevance is a linear function of 24 latent factors, plus
    products of three pairs of features, ramps of three features that count only if another feature
    is high, two absolute values, noise and a random level for each query. It is divided into grades
    so that about half of all documents have grade 0 and one in 33 has grade 4.

    Parameters
    ----------
    n_queries, n_docs : int
        Number of queries, and of documents per query.
    n_features : int
        Number of features, at least 90.
    random_state : int or numpy Generator
        Seed or generator.

    Returns
    -------
    X : ndarray of float32, shape (n_queries * n_docs, n_features)
    y : ndarray of int32, shape (n_queries * n_docs,)
        Grades, 0 .. 4.
    qid : ndarray of int64, shape (n_queries * n_docs,)
        Query ids, 1 .. n_queries, ascending.

    Examples
    --------
    >>> from rankcore.datasets import make_letor
    >>> X, y, qid = make_letor(20, 10, random_state=0)
    >>> X.shape, sorted(set(y.tolist())), qid[-1].item()
    ((200, 136), [0, 1, 2, 3, 4], 20)
    """
    if n_queries < 1 or n_docs < 1 or n_features < 90:
        raise ValueError(
            "make_letor requires n_queries >= 1, n_docs >= 1 and n_features >= 90; got "
            f"{n_queries}, {n_docs}, {n_features}"
        )
    rng = np.random.default_rng(random_state)
    n = n_queries * n_docs
    factors = rng.normal(size=(n, LATENT)).astype(np.float32)
    loadings = rng.normal(size=(LATENT, n_features)).astype(np.float32)
    loadings *= rng.random((LATENT, n_features)) < 0.25
    X = factors @ loadings + 0.7 * rng.normal(size=(n, n_features)).astype(np.float32)
    shifts = rng.normal(size=(n_queries, n_features)).astype(np.float32) * 0.5
    X += np.repeat(shifts, n_docs, axis=0)
    wide = rng.choice(n_features, 40, replace=False)
    X[:, wide] = np.exp(0.6 * X[:, wide])
    counts = np.setdiff1d(np.arange(n_features), wide)[:30]
    X[:, counts] = np.round(np.clip(X[:, counts], 0, None) * 2)
    shares = np.setdiff1d(np.arange(n_features), np.r_[wide, counts])[:20]
    X[:, shares] = 1 / (1 + np.exp(-X[:, shares]))
    direction = rng.normal(size=LATENT)
    relevance = factors @ direction / np.linalg.norm(direction)
    lengths = np.linalg.norm(loadings, axis=0)
    # Some features without noise and shift, of variance 1; one in 1000 features has no factor.
    chosen = rng.choice(np.flatnonzero(lengths), 14, replace=False)
    z = factors @ (loadings[:, chosen] / lengths[chosen])
    relevance += INTERACTION * np.tanh(z[:, :3] * z[:, 3:6]).sum(axis=1)
    relevance += INTERACTION * (np.maximum(z[:, 6:9], 0) * (z[:, 9:12] > 0)).sum(axis=1)
    relevance -= INTERACTION / 2 * np.abs(z[:, 12:]).sum(axis=1)
    relevance += 0.75 * rng.normal(size=n) + np.repeat(0.5 * rng.normal(size=n_queries), n_docs)
    grades = np.searchsorted(np.quantile(relevance, GRADE_SHARES), relevance).astype(np.int32)
    return X.astype(np.float32), grades, np.repeat(np.arange(1, n_queries + 1), n_docs)


def make_oap_synthetic(
    n_samples: int = 5000,
    *,
    noise: float = OAP_NOISE,
    random_state: int | np.random.Generator | None = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Generate points of the unit square with five ranks given by a noisy saddle function.

    The rank is 1 plus the number of thresholds among -1, -0.1, 0.25, 1 below
    ``10 * (x1 - 0.5) * (x2 - 0.5)`` plus Gaussian noise: the synthetic data of the PRank paper
    [1]_ and of the OAP paper [2]_. No linear function of the points ranks them; a linear function
    of their `quadratic_features` does, up to the noise.

    Parameters
    ----------
    n_samples : int
        Number of points.
    noise : float
        Standard deviation of the noise. The ranks without noise are the conditional medians of the
        noisy ranks, which minimise the mean rank loss.
    random_state : int or numpy Generator
        Seed or generator. Points are drawn before the noise, so they do not depend on ``noise``.

    Returns
    -------
    X : ndarray of float64, shape (n_samples, 2)
        Points, uniform on the unit square.
    y : ndarray of int64, shape (n_samples,)
        Ranks, 1 .. 5.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.datasets import make_oap_synthetic
    >>> X, y = make_oap_synthetic(1000)
    >>> X.shape, np.bincount(y, minlength=6).tolist()
    ((1000, 2), [0, 119, 306, 241, 212, 122])
    """
    if n_samples < 1 or not 0 <= noise < np.inf:
        raise ValueError(
            "make_oap_synthetic requires n_samples >= 1 and a finite noise >= 0; got "
            f"{n_samples}, {noise}"
        )
    rng = np.random.default_rng(random_state)
    X = rng.random((n_samples, 2))
    surface = 10 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5) + noise * rng.standard_normal(n_samples)
    return X, 1 + np.searchsorted(OAP_CUTS, surface, side="left").astype(np.int64)


def quadratic_features(X: RowsLike) -> np.ndarray:
    """Compute features whose inner products are the quadratic kernel ``(x @ z + 1) ** 2``.

    Parameters
    ----------
    X : array-like, shape (n_samples, n_features)

    Returns
    -------
    ndarray of float64, shape (n_samples, (n_features + 1) * (n_features + 2) / 2)
        For two features (1, √2 x1, √2 x2, x1², √2 x1 x2, x2²). The first is constant and replaces
        an intercept.

    Examples
    --------
    >>> from rankcore.datasets import quadratic_features
    >>> quadratic_features([[3.0, 2.0]]).round(3).tolist()
    [[1.0, 4.243, 2.828, 9.0, 8.485, 4.0]]
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions; got {X.ndim}")
    first, second = np.triu_indices(X.shape[1])
    scale = np.where(first == second, 1.0, np.sqrt(2.0))
    products = scale * X[:, first] * X[:, second]
    return np.hstack([np.ones((len(X), 1)), np.sqrt(2.0) * X, products])


def _noisy(rng: np.random.Generator, X: Any, n_informative: int, noise: float) -> np.ndarray:
    """Draw a standardised linear function of some of the features, plus noise."""
    weights = np.zeros(X.shape[1])
    informative = rng.choice(X.shape[1], n_informative, replace=False)
    weights[informative] = rng.normal(size=informative.size)
    signal: np.ndarray = X @ weights
    signal = (signal - signal.mean()) / signal.std()
    return signal + noise * rng.normal(size=X.shape[0])


def _zipf_rows(rng: np.random.Generator, n: int, d: int, mean_nnz: float) -> Any:
    """Draw rows of norm 1 with Zipf-Mandelbrot column frequencies (exponent 1.05, shift 20)."""
    import scipy.sparse as sp

    frequency = 1.0 / (np.arange(d) + 20.0) ** 1.05
    cumulative = np.cumsum(frequency / frequency.sum())
    cumulative[-1] = 1.0
    # Columns are drawn with replacement, which requires a few more draws than nonzeros.
    lengths = rng.lognormal(np.log(mean_nnz * 1.06) - 0.08, 0.4, n)
    draws = np.clip(lengths, 5, 6 * mean_nnz).astype(np.int64)
    # The frequency of a column does not depend on its index.
    numbers = rng.permutation(d).astype(np.int32)
    total = int(draws.sum())
    columns = np.empty(total, np.int32)
    for start in range(0, total, DRAW_BLOCK):
        stop = min(start + DRAW_BLOCK, total)
        columns[start:stop] = numbers[np.searchsorted(cumulative, rng.random(stop - start))]
    values = rng.lognormal(0.0, 0.5, total)
    cells = np.repeat(np.arange(n, dtype=np.int64), draws) * d + columns
    cells, first = np.unique(cells, return_index=True)  # keep the first draw of a repeated cell
    values = values[first]
    rows = cells // d
    columns = (cells % d).astype(np.int32)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    document_frequency = np.bincount(columns, minlength=d) + 1.0
    values *= np.log(1.0 + n / document_frequency)[columns]
    X = sp.csr_matrix((values, columns, indptr), shape=(n, d))
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    return X
