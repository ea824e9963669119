"""The ``rankcore`` command: train, cache, tune, cv, stream, predict, evaluate, explain, rate, ...

Results go to standard output, everything else to standard error. User errors print one
line and exit with status 1 (2 for invalid options), never with a traceback.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Annotated, Any

try:
    import typer
    from typer.core import TyperGroup

    from rankcore.cli.terminal import complain
except ModuleNotFoundError as error:
    if str(error.name).startswith("rankcore"):
        raise
    sys.exit(
        "rankcore: error: the command line requires Typer and Rich: pip install 'rankcore[cli]'"
    )

# Modules that import scikit-learn are imported inside the commands, to keep --help instant.
from rankcore.cli.learning import list_of_learners
from rankcore.cli.options import grouped
from rankcore.cli.paths import guarded


class OneLineErrors(TyperGroup):
    """Command group that reports user errors in one line on standard error."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the command line and run a command; handle closed output of help and versions."""
        try:
            return super().main(*args, **kwargs)
        except OSError as error:
            sys.exit(_status(error))
        except SystemExit:
            try:
                sys.stdout.flush()
            except OSError as error:
                sys.exit(_status(error))
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and convert its exceptions to messages and exit statuses."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except (KeyboardInterrupt, OSError, OverflowError, MemoryError, ValueError) as error:
            raise typer.Exit(_status(error)) from None


def _status(error: BaseException) -> int:
    """Report an exception in one line; return its exit status."""
    if isinstance(error, KeyboardInterrupt):
        complain("interrupted")
        return 130
    if isinstance(error, OSError):
        try:
            sys.stdout.flush()
        except OSError:  # discard what Python flushes at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 1  # the reader, such as head, has closed the pipe
        place = f"{error.filename}: " if error.filename else ""
        complain(f"error: {place}{error.strerror or error}")
    elif isinstance(error, OverflowError):
        complain(f"error: a number is out of range: {error}")
    elif isinstance(error, MemoryError):
        complain(f"error: out of memory: {error}")
    else:
        complain(f"error: {error}")
    return 1


app = typer.Typer(
    cls=OneLineErrors,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn to rank: train a model on svmlight/LETOR files, predict, evaluate, explain.",
)
LEARNERS = list_of_learners()
# By name, with summaries and epilogs of their help: functions in modules of these names.
COMMANDS: dict[str, tuple[str, str | None]] = {
    "train": ("Train a model on files of labelled examples.", LEARNERS),
    "cache": ("Convert files to a row cache, which train reads many times faster.", None),
    "tune": ("Search learners and parameters for some minutes; save the best model.", None),
    "cv": (
        "Cross-validate a learner, by queries if there are any. --model also takes "
        "module:Class, your own learner in Python.",
        LEARNERS,
    ),
    "stream": (
        "Predict each chunk of a stream before it is learned, and print measures by windows.",
        LEARNERS,
    ),
    "predict": ("Print a model's label for each example, or a ranker's score, one per line.", None),
    "evaluate": (
        "Evaluate a model on labelled data, or a TREC run on judgments, as trec_eval does.",
        None,
    ),
    "explain": (
        "Explain the ranking of a query, a pair of examples, a rank, or all scores.",
        None,
    ),
    "interleave": (
        "Interleave TREC runs; or decide by clicks on such lists which ranker is better.",
        None,
    ),
    "rate": ("Rate items from a table of comparisons, with standard errors.", None),
    "info": ("Describe a model file.", None),
    "export": ("Write a model in the format of another program, and check it.", None),
    "demo": ("Compare the learners on data included in scikit-learn.", None),
}
for name, (summary, epilog) in COMMANDS.items():
    command = getattr(import_module(f"rankcore.cli.commands.{name}"), name)
    app.command(help=summary, epilog=epilog)(guarded(grouped(command)))
clicks = typer.Typer(
    no_args_is_help=True,
    help="Learn from click logs: propensities of positions, click models, evaluation.",
)
for name, summary in {
    "propensity": "Print the examination of each position relative to the first.",
    "model": "Fit a click model; print its fit, and write labels.",
    "evaluate": "Evaluate a TREC run by clicks on the lists of another ranker.",
}.items():
    command = getattr(import_module("rankcore.cli.commands.clicks"), name)
    clicks.command(help=summary)(guarded(grouped(command)))
app.add_typer(clicks, name="clicks")


def main() -> None:
    """Run the command line; entry point of the ``rankcore`` script."""
    # A stream that was closed before Python started is None.
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        complain("error: standard output is closed")
        sys.exit(1)
    app(prog_name="rankcore")


def _show_version(wanted: bool) -> None:
    if wanted:
        import rankcore

        print(f"rankcore {rankcore.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            metavar="",
            callback=_show_version,
            is_eager=True,
            help="Print the version.",
        ),
    ] = False,
) -> None:
    """Parse the options before the command."""
