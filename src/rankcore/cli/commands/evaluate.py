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
    from rankcore.cli.rows import Rows


# Measures of predicted ranks that have a value in each row.
OF_ROWS = ("rank_loss", "accuracy", "accuracy_within")


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
            help="Measure: of rankings ndcg@10, map, P.5,10 ..., or a set of them: official, "
            "all_trec; of predicted labels rank_loss, rps, accuracy ... (repeatable).",
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
    from rankcore.cli.measuring import ranking_measures, separated
    from rankcore.cli.models import load_with_rows

    paths = [model, *(compare or [])]
    models, rows = load_with_rows(paths, data, layout, quiet)
    both = [(loaded.learned, loaded.scaled(rows.X)) for loaded in models]
    names = runs.distinct(paths) if compare else [str(model)]
    ranking, of_labels = separated(metric)
    rankers = [name for name, loaded in zip(names, models, strict=True) if loaded.ranks_queries]
    if of_labels and (ranking or rankers):
        other = f"{ranking[0]} is a measure" if ranking else f"{rankers[0]} is a model"
        raise ValueError(
            f"{of_labels[0]} measures predicted labels, and {other} of rankings of queries: "
            "evaluate each on its own"
        )
    if ranking or len(rankers) == len(models):
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
        measured = {
            name: (learned, replace(rows, X=X))
            for name, (learned, X) in zip(names, both, strict=True)
        }
        _print_ordinal(measured, of_labels, data, as_json)


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
        facts = {"examples": n_rows, "queries": evaluation.qid.size, **measured}
        if comparison is None and not as_json:
            facts["convention"] = str(evaluation.convention)
        print_facts(facts, as_json)
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
    models: dict[str, tuple[Any, Rows]], metrics: list[str], data: str, as_json: bool
) -> None:
    """Print measures of predicted labels, by default also of the best constant prediction."""
    import numpy as np

    from rankcore._core.labels import encode
    from rankcore.cli.measuring import label_measures
    from rankcore.cli.rows import title
    from rankcore.metrics import rank_loss

    facts = {}
    for name, (learned, rows) in models.items():
        classes = learned.ranks_
        unknown = sorted(set(rows.y.tolist()) - set(classes.tolist()))
        if unknown:
            raise ValueError(
                f"{title(data)} has the label {label_text(unknown[0])}, which is not among the "
                f"classes of {name}: {', '.join(map(label_text, classes.tolist()))}"
            )
        ranks = encode(rows.y, classes)
        facts[name] = {"examples": ranks.size, **label_measures(learned, rows, metrics)}
        if not metrics:
            # The median rank of the data minimises the rank loss among constant predictions.
            constant = np.full(ranks.shape, np.median(ranks))
            facts[name]["rank_loss_of_best_constant"] = rank_loss(ranks, constant)
    first = next(iter(facts))
    if len(facts) == 1:
        print_facts(facts[first], as_json)
        return
    comparisons = _compared(models, metrics, first)
    if as_json:
        contrasts = [asdict(contrast) for comparison in comparisons for contrast in comparison]
        print_facts({"models": facts, "contrasts": contrasts}, as_json)
        return
    for name, fact in facts.items():
        print(f"model {name}")
        print_facts(fact, as_json)
    for comparison in comparisons:
        print_table(comparison, comparison)


def _compared(models: dict[str, tuple[Any, Rows]], metrics: list[str], first: str) -> list[Any]:
    """Compare models with the first: their predicted ranks, and their probabilities of ranks."""
    from rankcore._core.labels import encode
    from rankcore.metrics import compare
    from rankcore.metrics.names import label_measure
    from rankcore.metrics.probabilities import PROBABILITIES

    learned, rows = models[first]
    classes = learned.ranks_
    have_tables = all(hasattr(model, "predict_proba") for model, _ in models.values())
    names = [label_measure(name) or name for name in metrics]
    if not names:
        names = ["rank_loss", "ranked_probability_score"] if have_tables else ["rank_loss"]
    of_tables = [name for name in names if name in PROBABILITIES]
    of_ranks = [name for name in names if name in OF_ROWS]
    comparisons = []
    if of_ranks:
        ranks = {
            name: encode(model.predict(part.X), classes) for name, (model, part) in models.items()
        }
        truth = encode(rows.y, classes)
        comparisons.append(compare(ranks, truth, metrics=of_ranks, baseline=first))
    if of_tables:
        tables = {name: model.predict_proba(part.X) for name, (model, part) in models.items()}
        comparisons.append(
            compare(tables, rows.y, metrics=of_tables, labels=classes, baseline=first)
        )
    return comparisons
