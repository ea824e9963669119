"""Preprocessing steps of scikit-learn in model files: pipelines in one skops archive.

Each pipeline is saved with "passthrough" in place of its learner, which model files hold natively.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zipfile import ZIP_DEFLATED

import numpy as np
from numpy.typing import NDArray

from rankcore._core.preprocessing import split_pipeline

# Name of the array with the bytes of the archive.
SKOPS = "skops"
# Types that are loaded besides those that skops trusts: the dtype that imputers and encoders keep,
# and the selection of columns by name or dtype, with the dtypes that it selects. No class of
# rankcore is among them, because kernels rely on the state of a learner, which only `load` checks;
# and no function.
TRUSTED = (
    "numpy.dtype",
    "sklearn.compose._column_transformer.make_column_selector",
    "builtins.object",
    "numpy.bool_",
    "numpy.floating",
    "numpy.integer",
    "numpy.number",
    "numpy.object_",
)

Trusted = Sequence[str | type]


def import_skops() -> Any:
    """Return the module ``skops.io``; raise ImportError with the command that installs it."""
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            "model files with preprocessing steps of scikit-learn, but for one scaler, require "
            "skops: pip install 'rankcore[skops]'",
            name=error.name,
        ) from error
    return skops.io


def names_of_steps(pipeline: Any) -> list[str]:
    """Return the class names of the steps before the learner, including nested pipelines."""
    return [type(step).__name__ for step in split_pipeline(pipeline)[0]]


def without_learner(pipeline: Any) -> Any:
    """Return a pipeline with "passthrough" as its learner, and without a cache."""
    from sklearn.pipeline import Pipeline

    params = pipeline.get_params(deep=False) | {"memory": None}
    steps = params.pop("steps")
    return Pipeline([*steps[:-1], (steps[-1][0], "passthrough")], **params)


def with_learner(pipelines: Sequence[Any], place: Any, learner: Any) -> Any:
    """Return the pipeline at a place of the archive, with its learner in place of "passthrough"."""
    from sklearn.pipeline import Pipeline

    if type(place) is not int or not 0 <= place < len(pipelines):
        raise ValueError(f"the archive has no pipeline {place!r}")
    pipeline = pipelines[place]
    if type(pipeline) is not Pipeline or pipeline.steps[-1][1] != "passthrough":
        raise ValueError(f"item {place} of the archive is not a pipeline without its learner")
    pipeline.steps[-1] = (pipeline.steps[-1][0], learner)
    pipeline.memory = None  # a crafted file could name a folder of pickles
    return pipeline


def pack_steps(pipelines: Sequence[Any]) -> NDArray[np.uint8]:
    """Return an archive as an array; raise TypeError if skops could not load it again."""
    skops = import_skops()
    try:
        content = skops.dumps([*pipelines], compression=ZIP_DEFLATED)
        # Some objects are written without an error and cannot be read, such as a lambda.
        skops.loads(content, trusted=skops.get_untrusted_types(data=content))
    except Exception as error:  # what a step of a user raises
        names = ", ".join(name for pipeline in pipelines for name in names_of_steps(pipeline))
        raise TypeError(
            f"skops cannot save the preprocessing steps {names}: {error}; define functions in a "
            "module under their own name, or use pickle or joblib"
        ) from error
    return np.frombuffer(content, dtype=np.uint8)


def unpack_steps(content: NDArray[np.uint8], trusted: Trusted) -> list[Any]:
    """Return the pipelines of an archive; raise ValueError if it has types that are not trusted."""
    skops = import_skops()
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        pipelines = skops.loads(content.tobytes(), trusted=[*TRUSTED, *trusted])
    except UntrustedTypesFoundException as error:
        raise ValueError(
            f"has preprocessing steps that may run code. {error} If you trust them and the source "
            "of the file, pass their names to rankcore.load(path, trusted=[...])"
        ) from error
    except Exception as error:  # crafted archives can raise any exception
        raise ValueError(
            f"has preprocessing steps that skops cannot load: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(pipelines, list):
        raise ValueError("has preprocessing steps that are not a list of pipelines")
    return pipelines
