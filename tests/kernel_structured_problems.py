"""Tasks for the structured perceptron in dual form, and examples of them."""

import pickle
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import scipy.sparse as sp

from kernel_problems import problem
from rankcore.ordinal.kernel import pools
from rankcore.structured import KernelTask
from reference.structured import kernel_structured


@dataclass(frozen=True)
class Multiclass(KernelTask):
    """Classes 0 .. k - 1 of rows, each mistake with its own cost."""

    costs: tuple[tuple[float, ...], ...]

    def n_labels(self, X):
        return len(self.costs)

    def parts(self, x):
        return x if sp.issparse(x) else [x]

    def candidates(self, x):
        return range(len(self.costs))

    def atoms(self, x, y):
        return [0], [y]

    def loss(self, y, z):
        return self.costs[y][z]


@dataclass(frozen=True)
class Tagging(KernelTask):
    """A tag for each row of a matrix, by the row and by the tags before: plain features."""

    n_tags: int

    def n_labels(self, X):
        return self.n_tags

    def parts(self, x):
        return x

    def candidates(self, x):
        return product(range(self.n_tags), repeat=x.shape[0])

    def atoms(self, x, y):
        return np.arange(x.shape[0]), np.array(y, dtype=int)

    def n_parameters(self, X):
        return self.n_tags**2

    def features(self, x, y):
        moves = [self.n_tags * a + b for a, b in pairwise(y)]
        return np.array(moves, dtype=int), np.ones(len(moves))

    def loss(self, y, z):
        return sum(a != b for a, b in zip(y, z, strict=True))


@dataclass(frozen=True)
class Ranks(KernelTask):
    """Ordered labels 1 .. k; equal scores go to the highest, or to the lowest."""

    k: int
    tie: str = "high"

    def parts(self, x):
        return [x]

    def candidates(self, x):
        ranks = range(1, self.k + 1)
        return ranks if self.tie == "low" else reversed(ranks)

    def n_parameters(self, X):
        return self.k - 1

    def features(self, x, y):
        return np.arange(y - 1), -np.ones(y - 1)

    def loss(self, y, z):
        return abs(y - z)


class KernelCuSum(Ranks):
    """A function for each step up to the rank."""

    def n_labels(self, X):
        return self.k - 1

    def atoms(self, x, y):
        return np.zeros(y - 1, dtype=int), np.arange(y - 1)


class KernelRanking(Ranks):
    """One function, taken as often as there are steps up to the rank: PRank."""

    def n_labels(self, X):
        return 1

    def atoms(self, x, y):
        return np.zeros(y - 1, dtype=int), np.zeros(y - 1, dtype=int)


COSTS = ((0.0, 1.0, 3.0), (2.0, 0.0, 1.0), (1.0, 1.0, 0.0))


def rows(n=100, seed=0):
    """Rows and classes 0 .. 2 that no line parts."""
    X, y = problem(n, k=3, seed=seed)
    return X, (y - 1).tolist()


def sentences(n=40, seed=0):
    """Matrices of 0 to 3 rows on a grid of eighths, and tags that depend on neighbours."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for length in rng.integers(0, 4, size=n):
        x = np.round(8 * rng.normal(size=(length, 3))) / 8
        tags, last = [], 0
        for row in x:
            last = int((row[0] * row[1] > 0.1 * last) + (abs(row[2]) > 1)) if last < 2 else 0
            tags.append(last)
        X.append(x)
        Y.append(tuple(tags))
    return X, Y


PROBLEMS = {"classes": (Multiclass(COSTS), rows()), "sentences": (Tagging(3), sentences())}


def plain(task, X, Y, kernel, **params):
    """Compute the same by the reference."""
    n = task.n_parameters(X)

    def phi(x, y):
        indices, values = task.features(x, y)
        return np.bincount(np.array(indices, dtype=int), values, n)

    return kernel_structured(
        X,
        Y,
        lambda x: np.reshape(x, (-1, np.shape(X[-1])[-1])),
        lambda x, y: list(
            zip(*map(np.ndarray.tolist, map(np.asarray, task.atoms(x, y))), strict=True)
        ),
        lambda x: list(task.candidates(x)),
        task.loss,
        kernel,
        task.n_labels(X),
        phi,
        **params,
    )


def known(model):
    """Everything a model has learned, without free room."""
    state = model._state
    return pickle.loads(
        pickle.dumps((pools.trimmed(state.pool), state.arrays, state.t, state.curve))
    )
