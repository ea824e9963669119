"""``rankcore explain``: explanations of a query, a pair, a rank, or scores as a whole."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rankcore.cli.files import (
    Columns,
    DataArgument,
    JsonOption,
    LabelOption,
    ModelArgument,
    QidOption,
    QuietOption,
    ZeroBasedOption,
    as_model_takes,
    needed_queries,
    ranks_queries,
    scaler_and_learner,
    take_names,
)
from rankcore.cli.paths import Writes
from rankcore.cli.terminal import progress_bar


def explain(
    model: ModelArgument,
    data: DataArgument,
    query: Annotated[
        str | None, typer.Option("--query", help="What decided the top of this query.")
    ] = None,
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Why A is above B: two examples of DATA, of --query if given, by 'docid = NAME' "
            "in comments, else by their line in DATA or in the query, from 1.",
        ),
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Why this line of DATA has its rank, and what would move it."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", "-m", help="How much this measure suffers as features are shuffled."
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, help="How many documents are the top of a query.")
    ] = 10,
    html: Annotated[
        Path | None, Writes(), typer.Option(help="Also write the tables to this HTML file.")
    ] = None,
    plot: Annotated[
        Path | None, Writes(), typer.Option(help="Also draw, to this PNG, SVG or PDF file.")
    ] = None,
    zero_based: ZeroBasedOption = False,
    label: LabelOption = None,
    qid: QidOption = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Explain a model; without options, the importance of each feature."""
    wanted = [name for name, one in (("--pair", pair), ("--row", row), ("--metric", metric)) if one]
    if len(wanted) > 1 or (query is not None and wanted and wanted != ["--pair"]):
        wanted = ["--query"] * (query is not None) + wanted
        raise ValueError(f"{' and '.join(wanted)} request different explanations: give one of them")
    try:
        columns = Columns(label, qid)
        found = _explained(model, data, query, pair, row, metric, top, zero_based, columns, quiet)
    except TypeError as error:  # this model's score is no sum
        raise ValueError(str(error)) from None
    if as_json:
        print(json.dumps(asdict(found), default=lambda one: one.tolist()))
    else:
        print(found)
    if html is not None:
        from rankcore.datasets.streams import writable

        page = (
            f'<!DOCTYPE html>\n<meta charset="utf-8">\n<title>{model.name}</title>\n'
            f"{found._repr_html_()}\n"
        )
        with writable(html) as stream:
            stream.write(page.encode("utf-8", "surrogateescape"))
    if plot is not None:
        _draw(found, plot)


def _explained(
    model: Path,
    data: str,
    query: str | None,
    pair: tuple[str, str] | None,
    row: int | None,
    metric: str | None,
    top: int,
    zero_based: bool,
    columns: Columns,
    quiet: bool,
) -> Any:
    import numpy as np

    import rankcore
    from rankcore.cli import svmlight

    loaded = rankcore.load(model)
    scaler, learned = scaler_and_learner(loaded)
    names = take_names((scaler, learned))
    with progress_bar(quiet) as bar:
        X, y, qid, ids = svmlight.read(
            data,
            zero_based=zero_based,
            n_features=learned.n_features_in_,
            expected=str(model),
            report=bar.reading,
            docid=True,
            columns=replace(columns, features=names),
        )
    X = as_model_takes(scaler, learned, X)
    if names is None:
        names = [f"feature {j + (not zero_based)}" for j in range(learned.n_features_in_)]
    if row is not None:
        if row > X.shape[0]:
            raise ValueError(f"there is no row {row}: {svmlight.title(data)} has {X.shape[0]}")
        return rankcore.explain.rank(loaded, X[[row - 1]], background=X, feature_names=names)
    rows = np.arange(X.shape[0])
    if query is not None:
        known = needed_queries(qid, data).astype(str)
        rows = np.flatnonzero(known == query)
        if not rows.size:
            raise ValueError(f"{svmlight.title(data)} has no query {query}")
    called = np.arange(1, rows.size + 1).astype(str)
    if ids is not None:
        called = np.where(ids[rows] == "", called, ids[rows])
    if pair is not None:
        places = [_place(name, called, data) for name in pair]
        a, b = (X[[rows[place]]] for place in places)
        return rankcore.explain.pair(loaded, a, b, names=pair, feature_names=names)
    if query is not None:
        documents = {"qid": qid[rows], "y": y[rows], "docid": called}  # type: ignore[index]
        return rankcore.explain.query(loaded, X[rows], **documents, top_k=top, feature_names=names)
    if not ranks_queries(learned):
        qid = None
    if metric is not None:
        return rankcore.explain.permutation_importance(
            loaded, X, y, qid=qid, metric=metric, feature_names=names
        )
    return rankcore.explain.global_importance(loaded, X, qid=qid, feature_names=names)


def _place(name: str, called: Any, data: str) -> int:
    """Position of an example, by its name."""
    import numpy as np

    from rankcore.cli.svmlight import title

    found = np.flatnonzero(called == name)
    if found.size != 1:
        many = "no example" if not found.size else f"{found.size} examples"
        raise ValueError(
            f"{title(data)} has {many} called {name}; give --query, or a line number where there "
            "are no document ids"
        )
    return int(found[0])


def _draw(found: Any, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    ax = found.plot()
    ax.figure.savefig(path)
    pyplot.close(ax.figure)
