"""Ranking SVMs as plain arrays and facts, for model files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from rankcore._core.model_spec import (
    Field,
    ModelSpec,
    array_like,
    check_n_features,
    outline,
    read_fields,
)
from rankcore._core.state import log_array, restored_log, restored_validation, validation_arrays
from rankcore.ranking._base import ModelState
from rankcore.ranking.svm._models import Kernel, KernelModel, LinearModel

# Of a model with a kernel.
FIELDS = {"support": Field(("support",), "int64"), "coefficients": Field(("support",))}
# Figures of each step.
FIGURES = ("objective", "gap", "gradient_norm", "products")


def describe(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Facts and arrays of a fitted model; TypeError if its kernel is a function."""
    state = model._state.model
    facts: dict[str, Any] = {
        "largest_query": model._largest_query,
        "validation": [*model._state.validation],
        "objective": model.objective_,
        "gap": model.gap_,
        "n_iter": model.n_iter_,
        "kernel": None,
    }
    history = {
        "log": log_array(model._state.log, FIGURES),
        **validation_arrays(model._state.validation),
    }
    if isinstance(state, LinearModel):
        return facts, {"weights": state.weights, **history}
    kernel = state.kernel
    if callable(kernel.kind):
        raise TypeError(
            "a kernel that is a function cannot be written to a model file; use pickle, or "
            "kernel='precomputed'"
        )
    facts["kernel"] = asdict(kernel)
    arrays = {"support": state.support, "coefficients": state.coefficients, **history}
    if hasattr(state.vectors, "tocsr"):
        vectors = state.vectors
        arrays |= {
            "vectors.data": vectors.data,
            "vectors.indices": vectors.indices.astype(np.int32, copy=False),
            "vectors.indptr": vectors.indptr.astype(np.int64, copy=False),
        }
    elif state.vectors is not None:
        arrays["vectors"] = state.vectors
    return facts, arrays


def restore(model: Any, spec: ModelSpec) -> None:
    """Restore a fitted estimator from a spec; raise if it is not of a ranking SVM."""
    document, arrays, n_features = spec.facts, spec.arrays, check_n_features(spec.n_features)
    log = restored_log(spec, FIGURES)
    objective, gap, steps = document["objective"], document["gap"], document["n_iter"]
    if not (objective >= 0 and gap >= 0):
        raise ValueError("its figures are impossible")
    if not isinstance(steps, int) or not 0 <= steps <= len(log):
        raise ValueError(f"it took {steps!r} steps")
    kernel = document["kernel"]
    if (kernel is None) != (model.kernel is None):
        raise ValueError("its kernel is not that of its parameters")
    found: LinearModel | KernelModel
    if kernel is None:
        found = LinearModel(array_like(arrays, "weights", outline(n_features)))
    else:
        found = _kernel_model(model, kernel, n_features, arrays)
    validation = restored_validation(spec, len(log))
    model._state = ModelState(found, settings={}, log=log, validation=validation)
    model.objective_, model.gap_, model.n_iter_ = float(objective), float(gap), steps
    model.n_features_in_, model._largest_query = n_features, int(document["largest_query"])


def _kernel_model(
    model: Any, facts: dict[str, Any], n_features: int, arrays: Mapping[str, np.ndarray]
) -> KernelModel:
    if facts["kind"] != model.kernel:
        raise ValueError("its kernel is not that of its parameters")
    kernel = Kernel(facts["kind"], float(facts["gamma"]), int(facts["degree"]), facts["coef0"])
    if not np.isfinite([kernel.gamma, kernel.coef0]).all() or kernel.degree < 1:
        raise ValueError("the parameters of its kernel are impossible")
    support, coefficients = read_fields(arrays, FIELDS).values()
    n = support.size
    if (support < 0).any():
        raise ValueError("its support is not a list of rows")
    if (np.diff(support) <= 0).any():
        raise ValueError("its support does not ascend")
    if kernel.kind == "precomputed":
        if n and support[-1] >= n_features:
            raise ValueError("its support is beyond its columns")
        return KernelModel(kernel, support, coefficients, None)
    if "vectors" in arrays:
        vectors: Any = np.ascontiguousarray(arrays["vectors"])
        values = vectors
    else:
        import scipy.sparse as sp

        parts = tuple(arrays[f"vectors.{part}"] for part in ("data", "indices", "indptr"))
        vectors = sp.csr_array(parts, shape=(n, n_features))
        vectors.check_format(full_check=True)
        if not vectors.has_canonical_format:
            raise ValueError("its vectors have columns that do not ascend")
        values = vectors.data
    if vectors.shape != (n, n_features) or values.dtype.kind != "f":
        raise ValueError(f"its vectors have shape {vectors.shape} and dtype {values.dtype}")
    if not np.isfinite(values).all():
        raise ValueError("its vectors hold NaN or infinity")
    return KernelModel(kernel, support, coefficients, vectors)
