"""``rankcore evaluate``: a model measured on data, or TREC runs on judgments."""

from __future__ import annotations

import io
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankcore.cli.options import (
    ClassesOption,
    JsonOption,
    LabelledLayout,
    QuietOption,
    listed_labels,
)
from rankcore.cli.paths import Reads
from rankcore.cli.terminal import label_text, print_facts, print_table

if TYPE_CHECKING:
    import numpy as np


def evaluate(
    *,
    model: Annotated[
        Path,
        Reads(),
        typer.Argument(metavar="MODEL|RUN", help="File written by train, or a TREC run."),
    ],
    data: Annotated[
        str,
        Reads(),
        typer.Argument(
            metavar="DATA|QRELS",
            help="Data for a model (svmlight/LETOR); qrels for a run, or the LETOR file that it "
            "ranks; also gzip or bzip2; - for stdin.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            help="Ranking measure: ndcg@10, map, P.5,10 ..., or a set of them: official, all_trec "
            "(repeatable).",
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            help="Convention of the ranking measures: trec_eval, sklearn, lightgbm ...",
            show_default="trec_eval for a run",
        ),
    ] = None,
    rel: Annotated[
        float | None, typer.Option("--rel", "-l", help="Minimum relevant label.")
    ] = None,
    per_query: Annotated[
        bool, typer.Option("--per-query", "-q", help="Also print the values of every query.")
    ] = False,
    complete: Annotated[
        bool, typer.Option("--complete", "-c", help="Count judged queries that a run lacks as 0.")
    ] = False,
    depth: Annotated[
        int | None,
        typer.Option("--depth", "-M", min=1, help="Maximum number of documents per query."),
    ] = None,
    classes: ClassesOption = None,
    compare: Annotated[
        list[Path] | None,
        Reads(),
        typer.Option(metavar="MODEL|RUN", help="Another, for a significance test (repeatable)."),
    ] = None,
    layout: LabelledLayout,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a model or a run."""
    from rankcore.cli import trec as runs
    from rankcore.metrics.conventions import resolve

    if model.is_fifo():
        raise ValueError(
            f"{model} is a pipe, but a model or a run is opened twice: write it "
            "to a file; judgments and data may come from -"
        )
    if runs.is_run(model):
        if classes is not None:
            raise ValueError(f"{model} is a TREC run, whose judgments are numbers: omit --classes")
        report = runs.evaluate_runs(
            [model, *(compare or [])],
            data,
            resolve(convention or "trec_eval", rel=rel),
            metrics=metric or runs.MEASURES,
            complete=complete,
            depth=depth,
        )
        _print_runs(report, per_query, as_json)
        return
    from rankcore.io.model_file import is_model_file

    if model.is_file() and not is_model_file(model):
        raise ValueError(
            f"{model} is not a rankcore model file, or it is damaged; nor is it a TREC run "
            "(query Q0 document rank score tag). Pass the run first, then the judgments"
        )
    if complete or depth is not None:
        raise ValueError(
            f"{model} is not a TREC run (query Q0 document rank score tag); "
            "--complete and --depth require one"
        )
    from rankcore.cli.measuring import ranking_measures
    from rankcore.cli.models import load_with_rows

    paths = [model, *(compare or [])]
    models, rows = load_with_rows(paths, data, layout, quiet)
    both = [(loaded.learned, loaded.scaled(rows.X)) for loaded in models]
    names = runs.distinct(paths) if compare else [str(model)]
    if metric or all(loaded.ranks_queries for loaded in models):
        rows.check_queries(data)
        meaning, words = resolve(convention, rel=rel), listed_labels(classes)
        evaluations = {
            name: ranking_measures(learned, replace(rows, X=X), metric, meaning, words)
            for name, (learned, X) in zip(names, both, strict=True)
        }
        _print_rankings(evaluations, per_query, as_json, rows.y.size)
    elif convention is not None or rel is not None or per_query or classes is not None:
        raise ValueError(
            "--convention, --rel, --per-query and --classes require a ranking measure: name one "
            "with -m"
        )
    else:
        _print_ordinal(dict(zip(names, both, strict=True)), rows.y, data, as_json)


def _print_rankings(
    evaluations: dict[str, Any], per_query: bool, as_json: bool, n_rows: int
) -> None:
    """Print ranking measures of models, of their queries, and a comparison."""
    from rankcore.cli import trec as runs

    comparison = runs.compared(evaluations)
    if as_json and (comparison is not None or per_query):
        print_facts(runs.as_object(evaluations, comparison, per_query, "models"), as_json)
        return
    for name, evaluation in evaluations.items():
        if comparison is not None:
            print(f"model {name}")
        if per_query:
            print("\t".join(["query", *evaluation]))
            for i, query in enumerate(evaluation.qid.tolist()):
                values = (
                    f"{query_values[i]:.6g}" for query_values in evaluation.per_query.values()
                )
                print("\t".join([str(query), *values]))
        measured = runs.means(evaluation) if as_json else dict(evaluation)
        print_facts({"examples": n_rows, "queries": evaluation.qid.size, **measured}, as_json)
    if comparison is not None:
        print_table(comparison, comparison)


def _print_runs(report: Any, per_query: bool, as_json: bool) -> None:
    """Print the measures of runs as trec_eval does, and their comparison."""
    from rankcore.cli import trec as runs

    comparison = runs.compared(report.evaluations)
    if as_json:
        print_facts(runs.as_object(report.evaluations, comparison, per_query), as_json)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # ids may not be UTF-8
    for name in report.evaluations:
        if comparison is not None:
            print(f"{'file':<22}\tall\t{name}")
        sys.stdout.writelines(f"{line}\n" for line in report.lines(name, per_query))
    if comparison is not None:
        print_table(comparison, comparison)


def _print_ordinal(
    models: dict[str, tuple[Any, Any]], y: np.ndarray, data: str, as_json: bool
) -> None:
    """Print measures of the predictions and of the best constant prediction."""
    import numpy as np

    from rankcore._core.labels import encode
    from rankcore.cli.measuring import label_measures
    from rankcore.cli.rows import title
    from rankcore.metrics import compare, rank_loss, ranked_probability_score

    facts, predictions = {}, {}
    for name, (learned, X) in models.items():
        classes = learned.ranks_
        unknown = sorted(set(y.tolist()) - set(classes.tolist()))
        if unknown:
            raise ValueError(
                f"{title(data)} has the label {label_text(unknown[0])}, which is not among the "
                f"classes of {name}: {', '.join(map(label_text, classes.tolist()))}"
            )
        ranks = encode(y, classes)
        predicted = encode(learned.predict(X), classes)
        # The median rank of the data minimises the rank loss among constant predictions.
        constant = np.full(ranks.shape, np.median(ranks))
        predictions[name] = predicted
        facts[name] = {
            "examples": ranks.size,
            **label_measures(ranks, predicted),
            "rank_loss_of_best_constant": rank_loss(ranks, constant),
        }
        if hasattr(learned, "predict_proba"):
            facts[name]["ranked_probability_score"] = ranked_probability_score(
                y, learned.predict_proba(X), labels=classes
            )
    first = next(iter(facts))
    if len(facts) == 1:
        print_facts(facts[first], as_json)
        return
    comparison = compare(predictions, ranks, metrics="rank_loss", baseline=first)
    if as_json:
        contrasts = [asdict(contrast) for contrast in comparison]
        print_facts({"models": facts, "contrasts": contrasts}, as_json)
        return
    for name, fact in facts.items():
        print(f"model {name}")
        print_facts(fact, as_json)
    print_table(comparison, comparison)
