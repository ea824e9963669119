"""``rankcore.export``: one function for all formats."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.files import atomic_write, file_target
from rankcore.exporters.checking import CHECKED, Check, check_export, missing_engine
from rankcore.exporters.described import Described, Files, describe
from rankcore.exporters.reduced import OF_TREES, UnsupportedModelError, as_forest

# Module and function that write each format, imported on use.
WRITERS = {
    "c": ("c_source", "export_c"),
    "onnx": ("onnx_file", "export_onnx"),
    "xgboost": ("boosters", "export_xgboost"),
    "xgboost_dump": ("boosters", "export_xgboost_dump"),
    "elasticsearch": ("search", "export_elasticsearch"),
    "opensearch": ("search", "export_opensearch"),
    "solr": ("search", "export_solr"),
    "ranklib": ("boosters", "export_ranklib"),
    "sql": ("expressions", "export_sql"),
    "vespa": ("expressions", "export_vespa"),
}
FORMATS = tuple(WRITERS)
# Endings of files that belong to one format.
ENDINGS = {".c": "c", ".onnx": "onnx", ".sql": "sql"}
# Formats for calibrated learners; the others have one score per row.
WITH_PROBABILITIES = ("c", "onnx")
# What formats without missing values read instead.
_READ_MISSING = {
    "elasticsearch": "a missing feature as 0",
    "solr": "a missing feature as 0",
    "ranklib": "a missing feature as 0",
    "vespa": "a missing float attribute as NaN, but other missing features as 0",
}
_REFUSED = {
    "pmml": "the libraries that write PMML support only scikit-learn, or require Java: "
    "export it as onnx, c or sql"
}


def export(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    check: RowsLike | None = None,
    **options: Any,
) -> Check | None:
    """Write a fitted model in the format of another program.

    Models that a format cannot express exactly are rejected; ``docs/export.md`` lists the models
    that each supports. Scalers, imputers and column selections before the learner are folded into
    the model, or written as steps of the target.

    Parameters
    ----------
    model : fitted learner, or a pipeline that ends in one
        Its steps may be StandardScaler, MinMaxScaler, MaxAbsScaler, Normalizer, SimpleImputer or a
        column selection (any selector, or a ColumnTransformer that only selects).
    path : str or path-like
        Output file; for "c", the header is written to the same folder.
    format : {"c", "onnx", "xgboost", "xgboost_dump", "elasticsearch", "opensearch", "solr", \
"ranklib", "sql", "vespa"}, optional
        By default that of the ending of ``path``: ".c", ".onnx" or ".sql".
    feature_names : sequence of str, shape (n_features,), optional
        By default those of the data frame that the model was fitted to. Required by search engines
        and databases.
    check : array-like, data frame or scipy sparse, shape (n_rows, n_features), optional
        Rows as for ``predict``, to score with the written file by an external engine: a C compiler,
        onnxruntime, XGBoost or SQLite. Prints the maximum difference of scores and probabilities.
        Warns if there is no engine (search engines are not run) or a package is missing.
    **options
        ``name``: prefix of all names for "c", name of the model for search engines; by default the
        name of the file. ``dtype``: input dtype for "onnx", "float32" or "float64".
        ``store``: feature store for "solr".

    Returns
    -------
    Check or None
        Result of the check.

    Raises
    ------
    ValueError, TypeError
        For an unknown format or option, a model or step that cannot be exported or expressed in
        the format, or if the engine orders rows differently. An existing file is then
        not changed.
    ModuleNotFoundError
        If the library of a format is not installed.

    Examples
    --------
    >>> import os, tempfile, rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1]], [3, 1, 2]
    >>> model = rc.PRank(max_iter=1, random_state=0).fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "stars.sql")
    >>> check = rc.export(model, path, "sql", feature_names=["clicks", "age"], check=X)
    sql: 3 rows in SQLite ..., largest difference 0 (0 ulp of the sum), no order changed
    >>> with open(path) as file:
    ...     print(file.read())
    "clicks" * (...)
     + "age" * (...)
    <BLANKLINE>
    """
    format = format_of(path) if format is None else format
    if format not in WRITERS:
        why = f": {_REFUSED[format]}" if format in _REFUSED else ""
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}{why}")
    module, function = WRITERS[format]
    write: Callable[..., Files] = getattr(import_module(f"rankcore.exporters.{module}"), function)
    options_of_format = [*signature(write).parameters][2:]
    unknown = [name for name in options if name not in options_of_format]
    if unknown:
        accepted = ", ".join(options_of_format) or "none"
        raise TypeError(f"format {format!r} has the options {accepted}; got {unknown[0]!r}")
    described = describe(model, feature_names)
    if format not in WITH_PROBABILITIES and described.scoring.has_trees_of_tasks:
        raise UnsupportedModelError(
            f"{format} cannot express an {described.learner} with a score for each task: it has "
            "one score per row; export it as c or onnx, or fit with tasks='shared'"
        )
    if described.calibration is not None and format not in WITH_PROBABILITIES:
        raise UnsupportedModelError(
            f"{format} cannot express a {described.learner}: it has one score per row, and no "
            "probabilities; export it as c or onnx or, for its score, its estimator_ behind the "
            "same steps"
        )
    file_target(path)  # raises before the work
    check_result = None
    missing = missing_engine(format)
    with TemporaryDirectory() as folder, ExitStack() as written:
        files = write(described, Path(folder, Path(path).name), **options)
        for file, content in files.items():
            file.write_bytes(content.encode() if isinstance(content, str) else content)
        if check is not None and format in CHECKED and missing is None:
            check_result = check_export(described, [*files], format, check, options)
        # Write all files before the first replaces an old one.
        for file in files:
            stream = written.enter_context(atomic_write(Path(path).parent / file.name))
            stream.write(file.read_bytes())
    _warn_of_missing(described, format)
    if check_result is not None:
        print(check_result)
    elif check is not None:
        why = "its engine is not available here; formats 'xgboost' and 'onnx' of this model can be"
        if missing is not None:
            why = f"the check requires {missing}: pip install {missing}"
        warnings.warn(f"{format} was not checked: {why}", UserWarning, stacklevel=2)
    return check_result


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format of the ending of a path; raise ValueError if it has none."""
    ending = Path(path).suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(
            f"path has no ending of one format, {', '.join(ENDINGS)}; got {os.fspath(path)!r}: "
            f"name the format, one of {', '.join(FORMATS)}"
        )
    return ENDINGS[ending]


def _warn_of_missing(described: Described, format: str) -> None:
    """Warn if a format reads missing features as 0, which changes scores."""
    if format not in _READ_MISSING or described.scoring.form not in OF_TREES:
        return
    if as_forest(described, format, np.float32).knows_missing:
        warnings.warn(
            f"{format} reads {_READ_MISSING[format]}, and this model scores NaN otherwise than 0: "
            "rows with missing features score otherwise than in Python. Export it as opensearch, "
            "c, onnx or sql, or replace missing values by 0 before the fit",
            UserWarning,
            stacklevel=3,
        )
