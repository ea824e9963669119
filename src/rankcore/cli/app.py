"""The ``rankcore`` command: train, predict, evaluate, info and demo.

Results go to standard output, everything else to standard error. Mistakes of the user end in one
line and status 1 (2 for a command line that makes no sense), never in a traceback.
"""

from __future__ import annotations

import ast
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any
from zipfile import is_zipfile

try:
    import typer
    from rich.console import Console
    from typer.core import TyperGroup

    from rankcore.cli.terminal import ProgressBar, label_text, print_facts, progress_bar
except ModuleNotFoundError as error:
    if str(error.name).startswith("rankcore"):
        raise
    sys.exit("rankcore: error: the command line needs Typer and Rich: pip install 'rankcore[cli]'")

from rankcore.cli.registry import LEARNERS, RANKERS, find_learner

if TYPE_CHECKING:
    import numpy as np

# scikit-learn, and what imports it, is imported inside the commands: --help stays instant.

# How many features `rankcore info` lists.
LARGEST = 10


class OneLineErrors(TyperGroup):
    """The commands, where a user's mistake ends in one line on standard error."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and turn its exceptions into messages and exit statuses."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except KeyboardInterrupt:
            _complain("interrupted")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            # The reader (head, say) has seen enough. What Python flushes at exit must go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except OSError as error:
            place = f"{error.filename}: " if error.filename else ""
            _complain(f"error: {place}{error.strerror or error}")
            raise typer.Exit(1) from None
        except OverflowError as error:
            _complain(f"error: a number is out of range: {error}")
            raise typer.Exit(1) from None
        except MemoryError as error:
            _complain(f"error: out of memory: {error}")
            raise typer.Exit(1) from None
        except ValueError as error:
            _complain(f"error: {error}")
            raise typer.Exit(1) from None


def _complain(message: str) -> None:
    print("rankcore:", " ".join(message.split()), file=sys.stderr)


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn to rank: train a model on svmlight/LETOR files, predict, evaluate, look inside.",
)


def main() -> None:
    """Run the command line; what the ``rankcore`` script calls."""
    # Python has None in place of a stream that was closed before it started.
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        _complain("error: standard output is closed, so there is nowhere to write to")
        sys.exit(1)
    app(prog_name="rankcore")


# ---------------------------------------------------------------- arguments

DataArgument = Annotated[
    str,
    typer.Argument(metavar="DATA", help="svmlight/LETOR file, also gzip or bzip2; - for stdin."),
]
ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="File written by train.")]
ZeroBasedOption = Annotated[
    bool, typer.Option("--zero-based", help="Features are numbered from 0, not from 1.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        import rankcore

        print(f"rankcore {rankcore.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take the options that come before the command."""


# ---------------------------------------------------------------- commands


@app.command(help="Learn a model from a file of labelled examples.")
def train(
    data: DataArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="The model file to write.")
    ],
    model: Annotated[
        str,
        typer.Option(
            help="; ".join(f"{item.name}: {item.summary}" for item in [*LEARNERS, *RANKERS]) + "."
        ),
    ] = LEARNERS[0].name,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the data, or rounds.")
    ] = None,
    shuffle: Annotated[
        bool, typer.Option("--shuffle", help="Visit the examples in a new order in each pass.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; may be repeated."),
    ] = None,
    zero_based: ZeroBasedOption = False,
    features: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features, if DATA may lack the last of them."),
    ] = None,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Fit a learner to a file and save it."""
    learner = find_learner(model)
    params: dict[str, Any] = {}
    if "random_state" in learner.accepts():
        params["random_state"] = seed
    if epochs is not None:
        params["max_iter" if "max_iter" in learner.accepts() else "n_estimators"] = epochs
    if shuffle:
        if "shuffle" not in learner.accepts():
            raise ValueError(
                f"--shuffle is not for {model}, which looks at all examples in each round"
            )
        params["shuffle"] = True
    params.update(_parse_setting(text) for text in set_ or [])
    estimator = learner.make(**params)
    _check_writable(output, data)

    import rankcore
    from rankcore.io.model_file import check_params

    try:
        check_params(estimator)
    except TypeError as error:
        raise ValueError(str(error)) from error

    with progress_bar(quiet) as bar:
        X, y, qid = _read(data, zero_based, features, "--features", bar)
        queries = {"qid": _queries(qid, data)} if learner.ranks_queries else {}
        start = perf_counter()
        try:
            _fit(estimator, X, y, bar, **queries)
            seconds = perf_counter() - start
            rankcore.save(estimator, output)
        except TypeError as error:  # a parameter of a wrong type
            raise ValueError(str(error)) from error
    facts = {"model": model, "examples": X.shape[0], "features": X.shape[1]}
    if learner.ranks_queries:
        facts["queries"] = len(set(queries["qid"].tolist()))
    facts |= estimator._fit_summary()
    print_facts({**facts, "seconds": seconds, "path": str(output)}, as_json)


@app.command(help="Print a model's label for each example, or a ranker's score, one per line.")
def predict(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of stdout.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Print the scores behind the labels.")
    ] = False,
    zero_based: ZeroBasedOption = False,
    quiet: QuietOption = False,
) -> None:
    """Predict labels or scores; the labels in the file do not matter."""
    if output is not None:
        _check_writable(output, str(model), data)
    learned, X, _, qid = _load_both(model, data, zero_based, quiet)
    lines: Iterator[str]
    if _ranks_queries(learned):
        if getattr(learned, "combine", "score") == "rank":
            qid = _queries(qid, data)
        lines = map(repr, learned.predict(X, qid=qid).tolist())
    elif scores:
        rows = learned.decision_function(X).reshape(X.shape[0], -1).tolist()
        lines = (" ".join(map(repr, row)) for row in rows)
    else:
        lines = (label_text(label) for label in learned.predict(X).tolist())
    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        with open(output, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(f"{line}\n" for line in lines)


@app.command(
    help="Measure a model on labelled data, or a TREC run on judgments, as trec_eval does."
)
def evaluate(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL|RUN", help="File written by train, or a TREC run."),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA|QRELS",
            help="Data for a model (svmlight/LETOR), qrels for a run; also gzip or bzip2; "
            "- for stdin.",
        ),
    ],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", help="Ranking measure: ndcg@10, map, P.5,10 ... (repeatable)."
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            help="What ranking measures mean: trec_eval, sklearn, lightgbm ...",
            show_default="trec_eval for a run",
        ),
    ] = None,
    rel: Annotated[
        float | None, typer.Option("--rel", "-l", help="The smallest relevant label.")
    ] = None,
    per_query: Annotated[
        bool,
        typer.Option("--per-query", "-q", help="Also the values of every query of a run."),
    ] = False,
    complete: Annotated[
        bool,
        typer.Option("--complete", "-c", help="Count judged queries that a run lacks, as 0."),
    ] = False,
    compare: Annotated[
        list[Path] | None,
        typer.Option(metavar="RUN", help="Another run, to test the difference (repeatable)."),
    ] = None,
    zero_based: ZeroBasedOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Tell a model from a run, and measure it."""
    from rankcore.cli import trec as runs

    if model.is_fifo():
        raise ValueError(
            f"{model} is a pipe, but a model or a run is looked into before it is read: write it "
            "to a file; judgments and data may come from -"
        )
    if not runs.is_run(model):
        if model.is_file() and not is_zipfile(model):
            raise ValueError(
                f"{model} is not a rankcore model file, or it is damaged; nor is it a TREC run "
                "(query Q0 document rank score tag), which comes first, before its judgments"
            )
        if per_query or compare or complete:
            raise ValueError(
                f"{model} is not a TREC run (query Q0 document rank score tag), which "
                "--per-query, --complete and --compare are about"
            )
        learned, X, y, qid = _load_both(model, data, zero_based, quiet)
        if metric or _ranks_queries(learned):
            from rankcore.metrics.conventions import resolve

            found = runs.evaluate_scores(
                learned, X, y, _queries(qid, data), metric, resolve(convention, rel=rel)
            )
            measured = runs.means(found) if as_json else found
            print_facts({"examples": X.shape[0], "queries": found.qid.size, **measured}, as_json)
        elif convention is not None or rel is not None:
            raise ValueError("--convention and --rel are about ranking measures: ask for one (-m)")
        else:
            _print_ordinal(learned, X, y, str(model), data, as_json)
        return
    evaluations = runs.evaluate_runs(
        [model, *(compare or [])],
        data,
        metrics=metric or runs.MEASURES,
        convention=convention or "trec_eval",
        rel=rel,
        complete=complete,
    )
    comparison = runs.compared(evaluations) if compare else None
    if as_json:
        print_facts(runs.as_object(evaluations, comparison, per_query), as_json)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # ids that are not UTF-8 come out as read
    for name, evaluation in evaluations.items():
        if compare:
            print(f"{'runid':<22}\tall\t{name}")
        sys.stdout.writelines(f"{line}\n" for line in runs.lines(evaluation, per_query))
    if comparison is not None:
        if sys.stdout.isatty():
            Console().print(comparison)
        else:
            print(comparison)


def _print_ordinal(
    learned: Any, X: Any, y: np.ndarray, model: str, data: str, as_json: bool
) -> None:
    """Print measures of the predictions beside those of the best constant answer."""
    import numpy as np

    from rankcore._core.inputs import encode
    from rankcore.cli.svmlight import title
    from rankcore.metrics import accuracy_within, rank_loss

    classes = learned.classes_
    unknown = sorted(set(y.tolist()) - set(classes.tolist()))
    if unknown:
        raise ValueError(
            f"{title(data)} has the label {label_text(unknown[0])}, which {model} does not "
            f"know; its classes are {', '.join(map(label_text, classes.tolist()))}"
        )
    ranks, predicted = encode(y, classes), encode(learned.predict(X), classes)
    # No single answer has a smaller rank loss than the median rank of the data at hand.
    constant = np.full(ranks.shape, np.median(ranks))
    print_facts(
        {
            "examples": ranks.size,
            "rank_loss": rank_loss(ranks, predicted),
            "accuracy": accuracy_within(ranks, predicted, 0),
            "within_1_rank": accuracy_within(ranks, predicted, 1),
            "rank_loss_of_best_constant": rank_loss(ranks, constant),
        },
        as_json,
    )


@app.command(help="Show what a model file holds.")
def info(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Print a model's learner, parameters and what it has learned."""
    import numpy as np

    import rankcore

    learned = rankcore.load(model)
    facts = {
        "learner": type(learned).__name__,
        "params": learned.get_params(),
        **learned._summary(),
        "features": learned.n_features_in_,
    }
    if hasattr(learned, "thresholds_"):
        facts["thresholds"] = learned.thresholds_.tolist()
    if hasattr(learned, "coef_"):
        coef = learned.coef_
        size = np.abs(coef.reshape(-1, coef.shape[-1])).max(axis=0)
        largest = [j for j in np.argsort(-size, kind="stable")[:LARGEST].tolist() if size[j]]
        names = getattr(learned, "feature_names_in_", range(1, size.size + 1))
        facts["nonzero_weights"] = int(np.count_nonzero(coef))
        facts["largest_weights"] = {str(names[j]): coef[..., j].tolist() for j in largest}
    if hasattr(learned, "feature_importances_"):
        shares = learned.feature_importances_
        largest = [j for j in np.argsort(-shares, kind="stable")[:LARGEST].tolist() if shares[j]]
        names = getattr(learned, "feature_names_in_", range(1, shares.size + 1))
        facts["features_used"] = int(np.count_nonzero(shares))
        facts["largest_importances"] = {str(names[j]): float(shares[j]) for j in largest}
    print_facts(facts, as_json)


@app.command(help="Compare the learners on real data that scikit-learn ships; needs no file.")
def demo(
    png: Annotated[
        Path | None,
        typer.Option(help="Where to draw the loss curve.", show_default="rankcore-demo.png"),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the demo and show it."""
    path = png or Path("rankcore-demo.png")
    if png is not None:
        _check_writable(png)

    from rankcore.cli import demo as demonstration

    result = demonstration.run()
    written = None
    try:
        demonstration.write_png(result, path)
        written, note = str(path), f"The loss curve as a picture: {path}"
    except ImportError:
        note = "For the loss curve as a picture: pip install 'rankcore[plot]'"
    except OSError as error:
        if png is not None:
            raise
        note = f"The loss curve as a picture: cannot write {path} ({error.strerror}); try --png"
    if as_json:
        curves = {name: curve.tolist() for name, curve in result.curves.items()}
        print_facts({**asdict(result), "curves": curves, "png": written}, as_json)
        return
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # the plot's dots, in an ASCII locale
    demonstration.show(result, Console())
    print(note)


# ---------------------------------------------------------------- reading and learning


def _read(
    data: str, zero_based: bool, n_features: int | None, expected: str, bar: ProgressBar
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    from rankcore.cli import svmlight

    return svmlight.read(
        data,
        zero_based=zero_based,
        n_features=n_features,
        expected=expected,
        report=bar.reading,
    )


def _load_both(
    model: Path, data: str, zero_based: bool, quiet: bool
) -> tuple[Any, Any, np.ndarray, np.ndarray | None]:
    import rankcore

    learned = rankcore.load(model)
    with progress_bar(quiet) as bar:
        return learned, *_read(data, zero_based, learned.n_features_in_, str(model), bar)


def _ranks_queries(learned: Any) -> bool:
    return type(learned).__name__ in {learner.estimator for learner in RANKERS}


def _queries(qid: np.ndarray | None, data: str) -> np.ndarray:
    if qid is None:
        from rankcore.cli.svmlight import title

        raise ValueError(
            f"{title(data)} has lines without qid:, but a ranker compares the documents of a query"
        )
    return qid


def _parse_setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter(f"{text!r} is not of the form NAME=VALUE", param_hint="--set")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return name, value  # a word, or what no parameter accepts


def _check_writable(path: Path, *inputs: str) -> None:
    """Raise before long work that could not be saved, or would replace a device or an input."""
    for given in inputs:
        if path.exists() and _is_file(path, given):
            raise ValueError(f"{path} is read by this command, too: choose another file to write")
    if os.path.islink(os.path.realpath(path)):
        raise ValueError(f"{path} is a link that leads back to itself; cannot write there")
    if not path.parent.is_dir():
        raise ValueError(f"{path.parent} is not a directory; cannot write {path.name} there")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} exists and is not a file; cannot write there")


def _is_file(path: Path, given: str) -> bool:
    """Whether an input, which may be standard input, is this file."""
    try:
        found = os.fstat(sys.stdin.fileno()) if given == "-" else os.stat(given)
    except (OSError, ValueError):  # closed, not a file, or not there
        return False
    return os.path.samestat(found, path.stat())


def _fit(estimator: Any, X: Any, y: np.ndarray, bar: ProgressBar, **queries: Any) -> None:
    from rankcore.progress import watch

    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(sys.stderr),  # verbose=1 prints; stdout is for the result
        watch(bar.learning) if bar.visible else nullcontext(),
    ):
        warnings.simplefilter("always")
        estimator.fit(X, y, **queries)
    for warning in caught:
        _complain(f"warning: {warning.message}")
