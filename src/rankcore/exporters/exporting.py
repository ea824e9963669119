"""``rankcore.export``: one function for all formats."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.replacing import Workshop, file_target, replacing
from rankcore.exporters.checking import CHECKED, Check, check_export, missing_engine
from rankcore.exporters.described import describe
from rankcore.exporters.reduced import Refused

# Where each format is written: module and function, imported when it is used.
WRITERS = {
    "c": ("c_source", "export_c"),
    "onnx": ("onnx_file", "export_onnx"),
    "xgboost": ("boosters", "export_xgboost"),
    "xgboost_dump": ("boosters", "export_xgboost_dump"),
    "elasticsearch": ("search", "export_elasticsearch"),
    "opensearch": ("search", "export_opensearch"),
    "solr": ("search", "export_solr"),
    "ranklib": ("ranklib", "export_ranklib"),
    "sql": ("sql", "export_sql"),
    "vespa": ("vespa", "export_vespa"),
}
FORMATS = tuple(WRITERS)
# Of a calibrated learner; the others hold one score for a row.
WITH_PROBABILITIES = ("c", "onnx")
_REFUSED = {
    "pmml": "the libraries that write PMML know scikit-learn's estimators alone, or run Java: "
    "export it as onnx, c or sql",
}


def export(
    model: BaseEstimator,
    path: str | os.PathLike[str],
    format: str,
    *,
    feature_names: Sequence[str] | None = None,
    check: RowsLike | None = None,
    **options: Any,
) -> Check | None:
    """Write a fitted model in the format of another program.

    Formats refuse models that they cannot express exactly; ``docs/export.md`` lists what each
    supports. Scalers, imputers and selections of columns before the learner are folded into the
    model, or are written as the target's own.

    Parameters
    ----------
    model : fitted learner, or a pipeline that ends in one
        With StandardScaler, MinMaxScaler, MaxAbsScaler, Normalizer, SimpleImputer or a selection
        of columns (any selector, or a ColumnTransformer that only selects) in front.
    path : str or path-like
        Of the file; of "c", the header is written beside it.
    format : {"c", "onnx", "xgboost", "xgboost_dump", "elasticsearch", "opensearch", "solr", \
"ranklib", "sql", "vespa"}
    feature_names : sequence of str, shape (n_features,), optional
        By default those of the table that the model was fitted to. Search engines and databases
        need them.
    check : array-like or scipy sparse, shape (n_rows, n_features), optional
        Rows to score with the file that was written, by an engine that is not ours: a C compiler,
        onnxruntime, XGBoost or SQLite. The largest difference is printed, of probabilities too.
        Search engines do not run here, and packages may be missing: a warning says so.
    **options
        ``name``, of "c" what all names begin with, of search engines the name of the model there,
        by default that of the file; ``dtype`` of "onnx", the input's, "float32" or "float64";
        ``store`` of "solr".

    Returns
    -------
    Check or None
        Of the rows that were checked.

    Raises
    ------
    ValueError, TypeError
        For an unknown format or option, a model or a step that cannot be exported, or one that
        the format cannot express; or if the engine has another order than Python. An older file
        of that name is then left as it was.
    ModuleNotFoundError
        Without the library of a format: says what to install.

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
    if format not in WRITERS:
        why = f": {_REFUSED[format]}" if format in _REFUSED else ""
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; found {format!r}{why}")
    module, function = WRITERS[format]
    write: Callable[..., list[Path]] = getattr(
        import_module(f"rankcore.exporters.{module}"), function
    )
    known = [*signature(write).parameters][2:]
    unknown = [name for name in options if name not in known]
    if unknown:
        accepted = ", ".join(known) or "none"
        raise TypeError(f"format {format!r} has the options {accepted}; found {unknown[0]!r}")
    described = describe(model, feature_names)
    if described.scoring.form == "ordinal_trees" and format != "c":
        why = "it holds one score for a row, and no probabilities"
        if format in WITH_PROBABILITIES:
            why = "the probabilities of its tasks are not written as operators"
        raise Refused(f"{format} cannot express an {described.learner}: {why}; export it as c")
    if described.calibration is not None and format not in WITH_PROBABILITIES:
        raise Refused(
            f"{format} cannot express a {described.learner}: it holds one score for a row, and no "
            "probabilities; export it as c or onnx or, for its score, its estimator_ behind the "
            "same steps"
        )
    target, found = file_target(path), None
    missing = missing_engine(format)
    with Workshop(target) as folder, ExitStack() as replaced:
        files = write(described, folder / Path(path).name, **options)
        if check is not None and format in CHECKED and missing is None:
            found = check_export(described, files, format, check, options)
        # All are written before the first is in place.
        for file in files:
            stream = replaced.enter_context(replacing(Path(path).parent / file.name))
            stream.write(file.read_bytes())
    if found is not None:
        print(found)
    elif check is not None:
        why = "there is no engine for it here; of this model, format 'xgboost' or 'onnx' can be"
        if missing is not None:
            why = f"this needs {missing}: pip install {missing}"
        warnings.warn(
            f"{format} was not checked: {why}",
            UserWarning,
            stacklevel=2,
        )
    return found
