"""Input and output of the commands: arguments, data that suit a model, and checks of paths."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.paths import Reads
from rankcore.cli.registry import RANKERS
from rankcore.cli.terminal import ProgressBar, progress_bar

if TYPE_CHECKING:
    import numpy as np

DataArgument = Annotated[
    str,
    Reads(),
    typer.Argument(
        metavar="DATA",
        help="svmlight/LETOR file, also gzip, bzip2 or Zstandard, - for stdin; or Parquet.",
    ),
]
ManyDataArgument = Annotated[
    list[str],
    Reads(),
    typer.Argument(
        metavar="DATA...",
        help="svmlight/LETOR files, also gzip, bzip2 or Zstandard; - for stdin; or Parquet. "
        "Several are joined. train reads row caches, patterns in quotes and Parquet a window at a "
        "time, as with --stream.",
    ),
]
ValidOption = Annotated[
    str | None,
    Reads(),
    typer.Option("--valid", metavar="FILE", help="Held-out rows, to stop early and to measure by."),
]
FeaturesOption = Annotated[
    int | None,
    typer.Option(min=1, help="Number of features, if DATA may lack the last of them."),
]
ModelArgument = Annotated[
    Path, Reads(), typer.Argument(metavar="MODEL", help="File written by train.")
]
ZeroBasedOption = Annotated[
    bool, typer.Option("--zero-based", help="Features are numbered from 0, not from 1.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

LabelOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help='Column of labels in Parquet files; by default "label".'),
]
QidOption = Annotated[
    str | None,
    typer.Option(
        "--qid",
        metavar="NAME",
        help='Column of queries in Parquet files; by default "qid", "query" or "query_id".',
    ),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="Columns of features in Parquet files, as in age,price; by default all others.",
    ),
]


@dataclass(frozen=True)
class Columns:
    """Names of the columns of Parquet files, as `rankcore.datasets.open_rows` takes them.

    Attributes
    ----------
    label, query : str or None
    features : list of str or None
    labelled : bool
        Whether there must be labels.
    """

    label: str | None = None
    query: str | None = None
    features: list[str] | None = None
    labelled: bool = True

    @classmethod
    def of(cls, label: str | None, query: str | None, features: str | None) -> Columns:
        """Columns named by options."""
        return cls(label, query, None if features is None else features.split(","))


def read_data(
    data: str,
    zero_based: bool,
    n_features: int | None,
    expected: str,
    bar: ProgressBar,
    columns: Columns | None = None,
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Rows, labels and queries (or None) of a file; ``expected`` names who sets the features."""
    from rankcore.cli import svmlight

    return svmlight.read(
        data,
        zero_based=zero_based,
        n_features=n_features,
        expected=expected,
        report=bar.reading,
        columns=columns,
    )[:3]


def read_many(
    data: list[str],
    zero_based: bool,
    n_features: int | None,
    expected: str,
    bar: ProgressBar,
    columns: Columns | None = None,
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Read several files and concatenate them."""
    if len(data) == 1:
        return read_data(data[0], zero_based, n_features, expected, bar, columns)
    import numpy as np
    from scipy.sparse import vstack

    from rankcore.cli.svmlight import title

    parts = [read_data(one, zero_based, n_features, expected, bar, columns) for one in data]
    bare = [title(one) for one, (_, _, qid) in zip(data, parts, strict=True) if qid is None]
    if bare and len(bare) < len(data):
        raise ValueError(f"{bare[0]} has lines without qid:, and other files have it in all lines")
    width = max(X.shape[1] for X, _, _ in parts)
    for X, _, _ in parts:
        X.resize((X.shape[0], width))
    qid = None if bare else np.concatenate([found for _, _, found in parts if found is not None])
    return (
        vstack([X for X, _, _ in parts], format="csr"),
        np.concatenate([y for _, y, _ in parts]),
        qid,
    )


def load_both(
    models: list[Path],
    data: str,
    zero_based: bool,
    quiet: bool,
    *,
    docid: bool = False,
    columns: Columns | None = None,
) -> tuple[list[tuple[Any, Any]], np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Models, each with the rows of a file on its scale; and labels, queries and ids, or None."""
    import rankcore
    from rankcore.cli import svmlight

    loaded = [scaler_and_learner(rankcore.load(model)) for model in models]
    widths = {learned.n_features_in_ for _, learned in loaded}
    if len(widths) > 1:
        raise ValueError(
            f"{' and '.join(map(str, models))} have different numbers of features: "
            f"{', '.join(map(str, sorted(widths)))}"
        )
    names = [take_names(one) for one in loaded]
    for model, one in zip(models, names, strict=True):
        if one is not None and names[0] is not None and one != names[0]:
            raise ValueError(f"{models[0]} and {model} have features of different names")
    with progress_bar(quiet) as bar:
        X, y, qid, ids = svmlight.read(
            data,
            zero_based=zero_based,
            n_features=widths.pop(),
            expected=str(models[0]),
            report=bar.reading,
            docid=docid,
            columns=replace(columns or Columns(), features=names[0]),
        )
    both = []
    for scaler, learned in loaded:
        rows = as_model_takes(scaler, learned, X)
        both.append((learned, rows if scaler is None else scaler.transform(rows)))
    return both, y, qid, ids


def scaler_and_learner(loaded: Any) -> tuple[Any, Any]:
    """The scaler, or None, and the learner of a model; raise ValueError if it takes texts."""
    from rankcore.io.scaled import split_scaler

    scaler, learned = split_scaler(loaded)
    _asked(learned)
    return scaler, learned


def as_model_takes(scaler: Any, learned: Any, X: Any) -> Any:
    """Rows of a file; dense if a scaler in front of a learner or within it centres."""
    from rankcore.datasets.scaled_rows import as_it_takes

    return as_it_takes(_asked(learned)[0] if scaler is None else scaler, X)


def _asked(learned: Any) -> tuple[Any, Any]:
    """The scaler, or None, and the learner inside a calibrated one; other models as they are."""
    from rankcore.io.scaled import split_scaler
    from rankcore.ordinal._held_out import thawed

    if type(learned).__name__ != "CalibratedOrdinal":
        return None, learned
    return split_scaler(thawed(learned.estimator_))


def take_names(loaded: tuple[Any, Any]) -> list[str] | None:
    """Feature names of a scaler and a learner, which are removed from both."""
    names = None
    for one in (*loaded, *_asked(loaded[1])):
        found = None if one is None else vars(one).pop("feature_names_in_", None)
        names = names if found is None else list(map(str, found))
    return names


def ranks_queries(learned: Any) -> bool:
    """Whether a model ranks the documents of queries."""
    return type(learned).__name__ in {learner.estimator for learner in RANKERS}


def needed_queries(qid: np.ndarray | None, data: str) -> np.ndarray:
    """The queries of a file; raise ValueError if it has none."""
    if qid is None:
        from rankcore.cli.svmlight import title

        raise ValueError(
            f"{title(data)} has lines without qid:, but a ranker compares the documents of a query"
        )
    return qid
