"""``rankcore explain``: explanations of a query, a pair, a rank, or all scores."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from rankcore._core.files import atomic_write
from rankcore.cli.options import (
    DataArgument,
    JsonOption,
    Layout,
    ModelArgument,
    NamedLayout,
    QuietOption,
)
from rankcore.cli.paths import Writes


@dataclass(frozen=True)
class Selection:
    """Options that select what to explain."""

    query: Annotated[
        str | None, typer.Option("--query", help="Explain the ranking at the top of this query.")
    ] = None
    pair: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="A B",
            help="Explain why A is above B: two examples of DATA, or of --query, named by "
            "'docid = NAME' in comments, or by their line in DATA or the query, from 1.",
        ),
    ] = None
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Explain the rank of this line of DATA, and changes of it."),
    ] = None
    metric: Annotated[
        str | None,
        typer.Option("--metric", "-m", help="Permutation importance of features for this measure."),
    ] = None
    top: Annotated[int, typer.Option(min=1, help="Number of documents in the top of a query.")] = 10


def explain(
    *,
    model: ModelArgument,
    data: DataArgument,
    selection: Selection,
    html: Annotated[
        Path | None,
        Writes(),
        typer.Option(help="Also write the tables and the plot to this HTML file."),
    ] = None,
    plot: Annotated[
        Path | None, Writes(), typer.Option(help="Also plot to this PNG, SVG or PDF file.")
    ] = None,
    layout: NamedLayout,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Explain a model; without options, the importance of each feature."""
    if plot is not None and plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--plot takes a file that ends in .png, .svg or .pdf; got {plot}")
    if plot is not None and find_spec("matplotlib") is None:
        raise ValueError("--plot requires Matplotlib: pip install 'rankcore[plot]'")
    selected = {f"--{name}": getattr(selection, name) for name in ("pair", "row", "metric")}
    wanted = [name for name, value in selected.items() if value]
    if len(wanted) > 1 or (selection.query is not None and wanted and wanted != ["--pair"]):
        wanted = ["--query"] * (selection.query is not None) + wanted
        raise ValueError(f"{' and '.join(wanted)} request different explanations: pass one of them")
    try:
        explanation = _explained(model, data, replace(layout, docid=True), selection, quiet)
    except TypeError as error:  # the score of this model is not a sum
        raise ValueError(str(error)) from None
    if as_json:
        print(json.dumps(asdict(explanation), default=lambda array: array.tolist()))
    else:
        print(explanation)
    if html is not None:
        from rankcore.datasets.streams import writable

        page = (
            f'<!DOCTYPE html>\n<meta charset="utf-8">\n<title>{model.name}</title>\n'
            f"{explanation._repr_html_()}\n{_picture(explanation)}"
        )
        with writable(html) as stream:
            stream.write(page.encode("utf-8", "surrogateescape"))
    if plot is not None:
        with atomic_write(plot) as stream:
            _draw(explanation, stream, plot.suffix[1:])


def _explained(path: Path, data: str, layout: Layout, selection: Selection, quiet: bool) -> Any:
    import numpy as np

    from rankcore import explain
    from rankcore.cli.models import load_with_rows
    from rankcore.cli.rows import some_rows, title

    ranking = selection.query is not None and selection.pair is None
    layout = replace(layout, labelled=ranking or selection.metric is not None)
    (model,), read = load_with_rows([path], data, layout, quiet)
    loaded = model.whole
    X = model.takes(read.X)
    pair = selection.pair
    names = (
        layout.listed_names
        or model.names
        or [f"feature {j + (not layout.zero_based)}" for j in range(model.learned.n_features_in_)]
    )
    if selection.row is not None:
        if selection.row > X.shape[0]:
            raise ValueError(
                f"--row must be from 1 to {X.shape[0]} in {title(data)}; got {selection.row}"
            )
        try:
            return explain.rank(
                loaded, some_rows(X, [selection.row - 1]), background=X, feature_names=names
            )
        except TypeError as error:
            # The functions in the message correspond to options here.
            advice = "--query, --pair and --metric explain other models"
            text = str(error).replace("see contributions and permutation_importance", advice)
            raise TypeError(text) from error
    rows = np.arange(X.shape[0])
    if selection.query is not None:
        read.check_queries(data)
        rows = np.flatnonzero(read.qid.astype(str) == selection.query)
        if not rows.size:
            known = dict.fromkeys(read.qid.astype(str))
            raise ValueError(
                f"{title(data)} has no query {selection.query}; it has {len(known)}, the first "
                f"{', '.join(islice(known, 3))}"
            )
    called = np.arange(1, rows.size + 1).astype(str)
    if read.ids is not None:
        called = np.where(read.ids[rows] == "", called, read.ids[rows])
    if pair is not None:
        places = [_place(name, called, data) for name in pair]
        a, b = (some_rows(X, [rows[place]]) for place in places)
        return explain.pair(loaded, a, b, names=pair, feature_names=names)
    if selection.query is not None:
        return explain.query(
            loaded,
            some_rows(X, rows),
            qid=read.qid[rows],
            y=read.y[rows],
            docid=called,
            top_k=selection.top,
            feature_names=names,
        )
    qid = read.qid if model.ranks_queries else None
    if selection.metric is not None:
        return explain.permutation_importance(
            loaded, X, read.y, qid=qid, metric=selection.metric, feature_names=names
        )
    return explain.global_importance(loaded, X, qid=qid, feature_names=names)


def _place(name: str, called: Any, data: str) -> int:
    """Find the position of an example by its name."""
    import numpy as np

    from rankcore.cli.rows import title

    places = np.flatnonzero(called == name)
    if places.size != 1:
        many = "no example" if not places.size else f"{places.size} examples"
        raise ValueError(
            f"{title(data)} has {many} called {name}; pass --query, or a line number if there "
            "are no document ids"
        )
    return int(places[0])


def _picture(explanation: Any) -> str:
    """Return the plot of an explanation as SVG; nothing without Matplotlib."""
    if find_spec("matplotlib") is None:
        return ""
    stream = BytesIO()
    _draw(explanation, stream, "svg")
    text = stream.getvalue().decode("utf-8")
    return text[text.index("<svg") :]


def _draw(explanation: Any, stream: Any, kind: str) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    ax = explanation.plot()
    ax.figure.savefig(stream, format=kind, bbox_inches="tight")
    pyplot.close(ax.figure)
