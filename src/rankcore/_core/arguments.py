"""Types of the arguments of public functions, for their signatures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike


class SparseLike(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def format(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def tocsr(self) -> Any: ...


class FrameLike(Protocol):
    """A DataFrame of pandas or polars, or a Table of Arrow."""

    @property
    def columns(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def __getitem__(self, key: Any, /) -> Any: ...


class Blocks(Protocol):
    """A collection of Dask: an array, a dataframe or a series."""

    def to_delayed(self) -> Any: ...


class Delayed(Protocol):
    """A delayed block of Dask."""

    def compute(self) -> Any: ...


class Splitter(Protocol):
    """A splitter of scikit-learn or `rankcore.model_selection`."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]: ...


# A feature matrix in memory.
RowsLike: TypeAlias = ArrayLike | SparseLike | FrameLike
# Held-out rows and labels, or several such pairs.
EvalSet: TypeAlias = tuple[RowsLike, ArrayLike] | Sequence[tuple[RowsLike, ArrayLike]]
# Names of measures, or functions that measure.
Measures: TypeAlias = str | Callable[..., float] | Sequence[str | Callable[..., float]]
ClassWeight: TypeAlias = Literal["balanced"] | Mapping[Any, float]
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState
KernelLike: TypeAlias = Literal["rbf", "poly", "linear", "precomputed"] | Callable[..., Any]
Gamma: TypeAlias = Literal["scale", "half", "auto"] | float
# Number of folds, or the folds themselves.
Folds: TypeAlias = int | Splitter | Sequence[tuple[ArrayLike, ArrayLike]]
# Weights of pairs of positions: a name, ("top_k", k), a table or a function.
PairWeights: TypeAlias = str | tuple[str, int] | ArrayLike | Callable[..., Any]
# Columns and rows on a cluster.
DaskColumn: TypeAlias = Blocks | Sequence[Delayed]
