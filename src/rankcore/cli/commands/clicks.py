"""``rankcore clicks``: propensities, click models, and evaluation of rankings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.click_files import (
    ColumnOption,
    LogArgument,
    OnErrorOption,
    UbiOption,
    open_log,
    print_rows,
    read_ranking,
    read_table,
    rows_of,
    save_rows,
)
from rankcore.cli.options import JsonOption, QuietOption, SeedOption
from rankcore.cli.paths import Reads, Writes
from rankcore.cli.terminal import finite, print_facts, progress_bar

if TYPE_CHECKING:
    from rankcore.clicks import Judged, Propensities
    from rankcore.clicks.models import ClickModel
    from rankcore.datasets import Run

METHODS = ("em", "swap", "allpairs", "judged")
MEASURES = ("ndcg@10", "precision@10", "mrr")


def propensity(
    *,
    log: LogArgument,
    method: Annotated[
        str, typer.Option(help="em, swap, allpairs or judged (with --judged): see docs/clicks.md.")
    ] = "em",
    judged: Annotated[
        Path | None,
        Reads(),
        typer.Option(
            metavar="QRELS",
            help="Judgments of TREC, to estimate clicks by trust as well; relevance is the grade "
            "divided by the top grade.",
        ),
    ] = None,
    column: ColumnOption = None,
    ubi: UbiOption = None,
    on_error: OnErrorOption = "raise",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print the propensity of each position, relative to the first."""
    from rankcore._core.params import check_option
    from rankcore.clicks import propensities

    check_option(method, "method", METHODS)
    if (judged is not None) != (method == "judged"):
        raise ValueError("--method judged and --judged require each other")
    judgments = None if judged is None else _judged(judged)
    with progress_bar(quiet) as bar:
        impressions = open_log(log, column, ubi, on_error, bar)
        estimate = propensities(impressions, method, judged=judgments)  # type: ignore[arg-type]
    low, high = estimate.interval.T
    columns = {"propensity": estimate.theta, "low": low, "high": high}
    if estimate.trust is not None:
        columns["trust"] = estimate.trust
    rows = [
        {"position": position, **{name: finite(value) for name, value in row.items()}}
        for position, row in enumerate(rows_of(columns), 1)
        if finite(row["propensity"]) is not None
    ]
    print_rows(rows, as_json, {"method": method, **impressions.facts()}, "positions")


def _judged(path: Path) -> Judged:
    """Read judgments, with relevance from 0 to 1."""
    from rankcore.clicks import Judged
    from rankcore.datasets import read_qrels

    judged = read_qrels(path)
    grades = judged.rel.clip(0)
    if not grades.any():
        raise ValueError(f"{path}: a grade above 0 is required; got none")
    return Judged(judged.qid, judged.docid, grades / grades.max())


def model(
    *,
    log: LogArgument,
    kind: Annotated[
        str,
        typer.Option(
            help="position, cascade, bayesian (dynamic Bayesian network), simplified (the same, by "
            "counting) or rates (click-through)."
        ),
    ] = "position",
    smoothing: Annotated[
        float | None,
        typer.Option(
            help="Clicked and unclicked impressions added to each document; by default the model's."
        ),
    ] = None,
    held_out: Annotated[
        Path | None, Reads(), typer.Option(metavar="LOG", help="Further sessions to predict.")
    ] = None,
    output: Annotated[
        Path | None,
        Writes(),
        typer.Option(
            "--output",
            "-o",
            help="CSV to write: query, document, relevance, grade and confidence of each document.",
        ),
    ] = None,
    qrels: Annotated[
        Path | None, Writes(), typer.Option(help="Grades to write, as judgments of TREC.")
    ] = None,
    thresholds: Annotated[
        str | None, typer.Option(help="Relevance from which a grade is higher: 0.25,0.5,0.75.")
    ] = None,
    column: ColumnOption = None,
    ubi: UbiOption = None,
    on_error: OnErrorOption = "raise",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a click model; print its fit, and write its estimates."""
    from rankcore.clicks import to_judgments
    from rankcore.datasets import write_qrels

    if held_out is not None and ubi is not None:
        raise ValueError("--held-out and --ubi cannot be used together: convert the log first")
    edges = None if thresholds is None else _numbers(thresholds)
    made = _click_model(kind, smoothing)
    with progress_bar(quiet) as bar:
        impressions = open_log(log, column, ubi, on_error, bar)
        made.fit(impressions)
        facts = {"model": kind, **impressions.facts(), **_fit_of(made, impressions, "")}
        if held_out is not None:
            facts |= _fit_of(made, open_log(held_out, column, None, on_error, bar), "held_out_")
        if output is not None or qrels is not None:
            judgments = to_judgments(made, thresholds=edges)
        if output is not None:
            columns = {"query": judgments.qid, "document": judgments.docid}
            columns |= {n: getattr(judgments, n) for n in ("relevance", "grade", "confidence")}
            save_rows(rows_of(columns), output)
        if qrels is not None:
            write_qrels(judgments.qrels(), qrels)
    if as_json:
        facts = {
            name: [*map(finite, value)] if isinstance(value, list) else finite(value)
            for name, value in facts.items()
        }
    print_facts(facts, as_json)


def _click_model(kind: str, smoothing: float | None) -> Any:
    from rankcore._core.params import check_option
    from rankcore.clicks import CascadeModel, ClickRates, DynamicBayesianModel, PositionBasedModel

    kinds: dict[str, Any] = {
        "position": PositionBasedModel(),
        "cascade": CascadeModel(),
        "bayesian": DynamicBayesianModel(),
        "simplified": DynamicBayesianModel(simplified=True),
        "rates": ClickRates(),
    }
    check_option(kind, "kind", tuple(kinds))
    model = kinds[kind]
    return model if smoothing is None else model.set_params(smoothing=smoothing)


def _fit_of(made: ClickModel, log: Any, prefix: str) -> dict[str, Any]:
    """Return the log-likelihood and perplexity of a log."""
    return {
        f"{prefix}log_likelihood": made.log_likelihood(log),
        f"{prefix}perplexity_by_position": made.perplexity(log).tolist(),
    }


def evaluate(
    *,
    log: LogArgument,
    run: Annotated[
        Path,
        Reads(),
        typer.Argument(
            metavar="RUN",
            help="The new ranking: a TREC run, or CSV with query, document, and rank or score.",
        ),
    ],
    propensity: Annotated[
        Path,
        Reads(),
        typer.Option(metavar="CSV", help="Output of rankcore clicks propensity."),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help=f"dcg@10, ndcg ... (repeatable; default: {', '.join(MEASURES)})."
        ),
    ] = None,
    estimator: Annotated[
        str,
        typer.Option(help="ips, snips (self-normalised) or dr (doubly robust, with --relevance)."),
    ] = "ips",
    relevance: Annotated[
        Path | None,
        Reads(),
        typer.Option(
            metavar="CSV",
            help="Output of rankcore clicks model --output; missing documents have 0.",
        ),
    ] = None,
    clip: Annotated[
        float | None, typer.Option(help="Maximum weight of a click; by default none.")
    ] = None,
    seed: SeedOption = 0,
    column: ColumnOption = None,
    ubi: UbiOption = None,
    on_error: OnErrorOption = "raise",
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Print estimates of measures of a ranking from clicks on other lists, with 95% intervals."""
    from rankcore.clicks import evaluate as estimated

    if (relevance is not None) != (estimator == "dr"):
        raise ValueError("--estimator dr and --relevance require each other")
    ranking = _ranking(read_ranking(run), relevance)
    theta = _propensities(propensity)
    with progress_bar(quiet) as bar:
        impressions = open_log(log, column, ubi, on_error, bar)
        impressions.words = True
        estimates = estimated(
            impressions,
            ranking,
            propensity=theta,
            metrics=metric or MEASURES,
            estimator=estimator,
            clip=clip,
            random_state=seed,
        )
    facts = {
        "queries": len(estimates.queries),
        "effective_sample_size": estimates.effective_sample_size,
        "never_shown": estimates.never_shown,
    }
    rows = [
        {"measure": name, "value": estimate.value, "low": estimate.low, "high": estimate.high}
        for name, estimate in estimates.items()
    ]
    print_rows(rows, as_json, facts, "measures")
    if not as_json:
        print(
            f"{facts['queries']} queries, {estimates.effective_sample_size:.0f} effective clicks, "
            f"{estimates.never_shown:.1%} of the ranking's documents never shown",
            file=sys.stderr,
        )


def _ranking(run: Run, relevance: Path | None) -> dict[str, Any]:
    """Return a run as columns, with ties in the order of trec_eval."""
    import numpy as np

    _, first, query = np.unique(run.qid, return_index=True, return_inverse=True)
    _, document = np.unique(run.docid, return_inverse=True)
    order = np.lexsort((-document, first[query]))
    ranking = {"query": run.qid[order], "document": run.docid[order], "score": run.score[order]}
    if relevance is not None:
        table, _ = read_table(relevance, {"query": str, "document": str, "relevance": float})
        listed = zip(table["query"], table["document"], strict=True)
        relevance_of = dict(zip(listed, table["relevance"], strict=True))
        pairs = zip(ranking["query"].tolist(), ranking["document"].tolist(), strict=True)
        ranking["relevance"] = np.array([relevance_of.get(pair, 0.0) for pair in pairs])
    return ranking


def _propensities(path: Path) -> Propensities:
    """Read propensities and clicks by trust, NaN where missing."""
    import numpy as np

    from rankcore.clicks import Propensities
    from rankcore.clicks.log import MAX_POSITION

    kinds = {"position": float, "propensity": float, "trust": float}
    table, places = read_table(path, kinds, {"trust"})
    for position, value, place in zip(table["position"], table["propensity"], places, strict=True):
        if not 1 <= position <= MAX_POSITION or position % 1:
            raise ValueError(
                f"{place}: position must be an integer from 1 to {MAX_POSITION}; got {position:g}"
            )
        if not 0 < value < np.inf:
            raise ValueError(f"{place}: propensity must be finite and above 0; got {value:g}")
    at = np.array(table["position"]).astype(np.int64) - 1
    columns_by_name = {}
    for name in ("propensity", "trust"):
        if name in table:
            columns_by_name[name] = np.full(at.max() + 1, np.nan)
            columns_by_name[name][at] = table[name]
    return Propensities(columns_by_name["propensity"], trust=columns_by_name.get("trust"))


def _numbers(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--thresholds must be numbers as in 0.25,0.5; got {text!r}") from None
