"""Models of ranking SVMs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankcore._core.kernels import COMPILED, as_matrix, call_kernel
from rankcore._core.model_spec import Field, array_like, outline, read_fields
from rankcore._core.numbers import Floats
from rankcore._core.scoring import Scoring, no_scoring
from rankcore._ext import kernel_scores
from rankcore._ext.rows import Rows, project

# Rows scored between checks for signals.
SCORED_ROWS = 1024
# Values of a kernel matrix that are computed at a time: 32 MiB.
BLOCK_VALUES = 2**22
# Arrays of model files with a kernel.
FIELDS = {"support": Field(("support",), "int64"), "coefficients": Field(("support",))}


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters."""

    kind: str | Callable[[Any, Any], Any]  # {"linear", "poly", "rbf", "precomputed"}
    gamma: float
    degree: int
    coef0: float

    def blocks(self, left: Any, right: Any) -> Any:
        """Yield (first, last, kernel values) of blocks of ``left`` with ``right``."""
        from sklearn.metrics.pairwise import pairwise_kernels

        n, m = left.shape[0], right.shape[0]
        size = max(1, BLOCK_VALUES // m)
        # Kernel values in float32 would lose digits of differences of rows.
        right = right.astype(np.float64, copy=False)
        for first in range(0, n, size):
            block = left[first : first + size].astype(np.float64, copy=False)
            if callable(self.kind):
                values = call_kernel(self.kind, block, right)
            else:
                parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
                with np.errstate(over="ignore", invalid="ignore"):  # checked below
                    values = pairwise_kernels(
                        block, right, metric=self.kind, filter_params=True, **parameters
                    )
            if not np.isfinite(values).all():
                raise ValueError(
                    "kernel values must be finite: scale X, or change the parameters of the kernel"
                )
            yield first, first + block.shape[0], values


@dataclass(frozen=True)
class LinearModel:
    """Linear scores."""

    weights: Floats  # (n_features,)

    def facts(self) -> None:
        """Return metadata for a model file: None."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        return {"weights": self.weights}

    @classmethod
    def restored(cls, facts: None, arrays: Mapping[str, NDArray[Any]], n_features: int) -> Self:
        """Restore from the arrays of a model file; raise ValueError if they are invalid."""
        return cls(array_like(arrays, "weights", outline(n_features)))

    def scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form."""
        return Scoring("linear", {"weights": self.weights})

    def score(self, rows: Rows) -> Floats:
        """Score rows. O(n_values)."""
        scores = np.empty(rows.n_rows)
        project(rows, self.weights, scores)
        return scores


@dataclass(frozen=True)
class KernelModel:
    """Scores as sums of kernel values over training documents."""

    kernel: Kernel
    support: NDArray[np.int64]  # (n_support,): training rows with a coefficient
    coefficients: Floats  # (n_support,)
    vectors: Any  # (n_support, n_features): these rows; None if the kernel is precomputed

    def facts(self) -> dict[str, Any]:
        """Return metadata for a model file; raise TypeError if the kernel is a function."""
        if callable(self.kernel.kind):
            raise TypeError(
                "model files do not support a kernel that is a function; use pickle, or "
                "kernel='precomputed'"
            )
        return asdict(self.kernel)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        arrays = {"support": self.support, "coefficients": self.coefficients}
        if self.vectors is None:
            return arrays
        if not hasattr(self.vectors, "tocsr"):
            return arrays | {"vectors": self.vectors}
        return arrays | {
            "vectors.data": self.vectors.data,
            "vectors.indices": self.vectors.indices.astype(np.int32, copy=False),
            "vectors.indptr": self.vectors.indptr.astype(np.int64, copy=False),
        }

    @classmethod
    def restored(
        cls, facts: dict[str, Any], arrays: Mapping[str, NDArray[Any]], n_features: int
    ) -> Self:
        """Restore from metadata and arrays of a model file; raise ValueError if invalid."""
        kernel = Kernel(facts["kind"], float(facts["gamma"]), int(facts["degree"]), facts["coef0"])
        if not np.isfinite([kernel.gamma, kernel.coef0]).all() or kernel.degree < 1:
            raise ValueError(
                "the kernel must have finite gamma and coef0, and degree >= 1; got "
                f"gamma={kernel.gamma}, coef0={kernel.coef0} and degree={kernel.degree}"
            )
        support, coefficients = read_fields(arrays, FIELDS).values()
        n = support.size
        if (support < 0).any():
            raise ValueError("the array support must be row numbers of at least 0")
        if kernel.kind == "precomputed":
            if (support >= n_features).any():
                raise ValueError("the array support must be below the number of features")
            return cls(kernel, support, coefficients, None)
        if "vectors" in arrays:
            vectors: Any = np.ascontiguousarray(arrays["vectors"])
            values = vectors
        else:
            parts = tuple(arrays[f"vectors.{part}"] for part in ("data", "indices", "indptr"))
            vectors = sp.csr_array(parts, shape=(n, n_features))
            vectors.check_format(full_check=True)
            if not vectors.has_canonical_format:
                raise ValueError("columns of the support vectors must ascend")
            values = vectors.data
        if vectors.shape != (n, n_features) or values.dtype.kind != "f":
            raise ValueError(
                f"support vectors must have shape {(n, n_features)} and a float dtype; got shape "
                f"{vectors.shape} and dtype {values.dtype}"
            )
        if not np.isfinite(values).all():
            raise ValueError("the support vectors must be finite; got NaN or infinity")
        return cls(kernel, support, coefficients, vectors)

    def score(self, rows: Rows) -> Floats:
        """Score rows. O(n_rows * n_support) kernel values."""
        if self.vectors is None:
            kernel_values = as_matrix(rows)[:, self.support]
            return np.asarray(kernel_values @ self.coefficients, dtype=np.float64)
        scores = np.zeros(rows.n_rows)
        if not callable(self.kernel.kind):
            self._score_compiled(rows, scores)
        elif self.support.size:
            for first, last, values in self.kernel.blocks(as_matrix(rows), self.vectors):
                scores[first:last] = values @ self.coefficients
        return scores

    def _score_compiled(self, rows: Rows, scores: Floats) -> None:
        """Write scores by the compiled kernels of the C interface, in blocks of rows."""
        n, vectors = self.support.size, self.vectors
        if n == 0:
            return
        indices = starts = lengths = None
        if hasattr(vectors, "tocsr"):
            indices = vectors.indices.astype(np.int32, copy=False)
            starts = vectors.indptr[:-1].astype(np.int64)
            lengths = np.diff(vectors.indptr).astype(np.int64)
            vectors = vectors.data
        kernel = asdict(self.kernel) | {"kind": COMPILED[str(self.kernel.kind)]}
        for start in range(0, rows.n_rows, SCORED_ROWS):
            stop = min(start + SCORED_ROWS, rows.n_rows)
            kernel_scores.outputs(
                rows,
                start,
                stop,
                kernel,
                vectors.reshape(-1),
                indices,
                starts,
                lengths,
                self.norms,
                n,
                np.arange(n, dtype=np.int32)[np.newaxis],
                self.coefficients[np.newaxis],
                np.array([n]),
                None,
                None,
                scores[start:stop, np.newaxis],
            )

    def scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        """Return the scoring form of the arrays of a model file."""
        if self.vectors is None:
            return no_scoring("rows of a precomputed kernel have no features")
        parts: dict[str, NDArray[Any]] = {
            "constants": np.array([self.kernel.gamma, self.kernel.coef0], dtype=np.float64),
            "coefs": self.coefficients[np.newaxis],
            "slots": np.arange(self.support.size, dtype=np.int32)[np.newaxis],
            "sizes": np.array([self.support.size], dtype=np.int64),
            "norms": self.norms,
        }
        if hasattr(self.vectors, "tocsr"):
            names = {"values": "data", "indices": "indices", "indptr": "indptr"}
            parts |= {name: arrays[f"vectors.{of}"] for name, of in names.items()}
        else:
            parts["vectors"] = arrays["vectors"]
        facts: dict[str, str | int] = {
            "kernel": str(self.kernel.kind),
            "degree": int(self.kernel.degree),
            "rule": "score",
        }
        return Scoring("kernel", parts, facts)

    @cached_property
    def norms(self) -> Floats:
        """Squared norms of the support vectors, summed in the order of columns."""
        if hasattr(self.vectors, "tocsr"):
            values, counts = self.vectors.data, np.diff(self.vectors.indptr)
        else:
            values = self.vectors.reshape(-1)
            counts = np.full(len(self.vectors), self.vectors.shape[1])
        of, squares = np.repeat(np.arange(counts.size), counts), values.astype(np.float64) ** 2
        return np.bincount(of, squares, minlength=counts.size).astype(np.float64)

    def weights(self) -> Floats:
        """Return the weights of features of a model with the linear kernel."""
        return np.asarray(self.vectors.T @ self.coefficients, dtype=np.float64)
