"""Arguments and options shared by several commands."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property, wraps
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from rankcore.cli.paths import Reads

DataArgument = Annotated[
    str,
    Reads(),
    typer.Argument(
        metavar="DATA",
        help="svmlight/LETOR file, also gzip, bzip2 or Zstandard, - for stdin; or CSV or Parquet.",
    ),
]
ManyDataArgument = Annotated[
    list[str],
    Reads(),
    typer.Argument(
        metavar="DATA...",
        help="svmlight/LETOR files, also gzip, bzip2 or Zstandard; - for stdin; or CSV or Parquet. "
        "Several are concatenated. train reads row caches, quoted patterns and Parquet a window "
        "at a time, as with --stream.",
    ),
]
ValidOption = Annotated[
    str | None,
    Reads(),
    typer.Option("--valid", metavar="FILE", help="Held-out rows, for early stopping and measures."),
]
WeightsOption = Annotated[
    Path | None,
    Reads(),
    typer.Option(
        "--weights",
        metavar="FILE",
        help="Weights in the fit: a text file with one number per line, for each row of DATA, or "
        "for each query in order of first appearance.",
    ),
]
MetricOption = Annotated[
    str | None,
    typer.Option("--metric", "-m", help="Measure on held-out rows: ndcg@10, map, rank_loss ..."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; may be repeated."),
]
NamesOption = Annotated[
    Path | None,
    Reads(),
    typer.Option(
        "--names",
        metavar="FILE",
        help="Names of the features of svmlight and LETOR files: a text file with one per line.",
    ),
]
ClassesOption = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="LABELS",
        help="All labels, lowest rank or grade first, as in 0,1,2 or bad,fair,good; words require "
        "it.",
    ),
]
ModelArgument = Annotated[
    Path, Reads(), typer.Argument(metavar="MODEL", help="File written by train.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True)
class Layout:
    """Location of labels, queries and features in files: options, then choices of the commands."""

    zero_based: Annotated[
        bool, typer.Option("--zero-based", help="Features are numbered from 0, not from 1.")
    ] = False
    features: Annotated[
        int | None,
        typer.Option(min=1, help="Number of features, if DATA may lack the last ones."),
    ] = None
    label: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help='Column of labels in CSV and Parquet files; by default "label".'
        ),
    ] = None
    qid: Annotated[
        str | None,
        typer.Option(
            "--qid",
            metavar="NAME",
            help='Column of queries in CSV and Parquet files; by default "qid", "query" or '
            '"query_id".',
        ),
    ] = None
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of features in CSV and Parquet files, as in age,price; by default all "
            "others.",
        ),
    ] = None
    categorical: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of categories in CSV and Parquet files, as in brand,colour, for learners "
            "of trees: the default then.",
        ),
    ] = None
    names: NamesOption = None
    # features and categories of a model, instead of ``columns`` and ``categorical``
    feature_names: list[str] | None = None
    known_categories: dict[str, list[Any]] | None = None
    expected: str = "--features"  # the source of ``features``, for errors
    labelled: bool = True  # whether tables must have labels
    docid: bool = False  # whether to read document ids

    @property
    def named(self) -> tuple[str | None, str | None, list[str] | None]:
        """The columns of tables: label, queries, and features."""
        names = self.feature_names
        if names is None and self.columns is not None:
            names = self.columns.split(",")
        return self.label, self.qid, names

    @cached_property
    def listed_names(self) -> list[str] | None:
        """Names of the features of text files, if they were given."""
        return read_names(self.names)

    @property
    def width(self) -> tuple[int | None, str]:
        """The number of features, if it is known, and the option that sets it."""
        names = self.listed_names
        if names is None or self.features is not None:
            return self.features, self.expected
        return len(names), "--names"

    def check_unnamed(self, data: str) -> None:
        """Raise ValueError if ``--names`` is set for a file with names of columns."""
        if self.names is not None:
            raise ValueError(f"{data} is a table, whose columns have names: omit --names")

    @property
    def categories(self) -> list[str] | None:
        """The columns of categories; None if there are none."""
        if self.known_categories is not None:
            return list(self.known_categories)
        return None if self.categorical is None else self.categorical.split(",")


def read_names(path: Path | None) -> list[str] | None:
    """Read names of features, one per line; None without a file."""
    if path is None:
        return None
    names = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    for number, name in enumerate(names, 1):
        if not name or name in names[: number - 1]:
            raise ValueError(
                f"{path}, line {number}: every line must be the name of a feature, and names must "
                f"be different; got {name!r}"
            )
    return names


def listed_labels(text: str | None) -> list[Any] | None:
    """Return the labels of ``--classes``: numbers, or words if any is one."""
    if text is None:
        return None
    words = text.split(",")
    try:
        labels = [ast.literal_eval(label) for label in words]
    except (ValueError, SyntaxError):
        labels = [None]
    plain = all(isinstance(label, int | float | str) for label in labels)
    return labels if plain else [label.strip() for label in words]


@dataclass(frozen=True)
class Only:
    """Marker for ``Annotated``: a group of options of which a command has only some."""

    options: tuple[str, ...]


LabelledLayout = Annotated[Layout, Only(("zero_based", "label", "qid"))]
NamedLayout = Annotated[Layout, Only(("zero_based", "label", "qid", "names"))]
UnlabelledLayout = Annotated[Layout, Only(("zero_based", "qid"))]
NumberedLayout = Annotated[Layout, Only(("zero_based",))]


def _is_flag(kind: Any) -> bool:
    """Return whether the type of an option is bool, or bool or None."""
    return kind is bool or get_args(kind) == (bool, NoneType)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command, to replace a dataclass parameter by one option per field.

    Fields that are not ``Annotated`` are not options and keep their defaults.
    """
    hints = get_type_hints(command, include_extras=True)
    del hints["return"]
    groups: dict[str, tuple[Any, list[str]]] = {}
    parameters: list[Parameter] = []
    own = Signature.from_callable(command).parameters
    for name, hint in hints.items():
        options = {name: (own[name].default, hint)}
        group = getattr(hint, "__origin__", hint)
        if is_dataclass(group):
            types = get_type_hints(group, include_extras=True)
            options = {
                field_of_group.name: (field_of_group.default, types[field_of_group.name])
                for field_of_group in fields(group)
                if hasattr(types[field_of_group.name], "__metadata__")
                and (group is hint or field_of_group.name in hint.__metadata__[0].options)
            }
            groups[name] = group, list(options)
        parameters += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for option, (default, annotation) in options.items()
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, (group, options) in groups.items():
            given[name] = group(**{option: given.pop(option) for option in options})
        command(**given)

    for parameter in parameters:
        for option in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(option, OptionInfo) and _is_flag(parameter.annotation.__origin__):
                option.metavar = ""  # a flag has no value to show in help
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
