"""Declarations of learners, from which tests, exporters and guides list all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import isfunction, unwrap
from typing import Any, Literal

from rankcore._core.public_names import MODULE_OF


@dataclass(frozen=True)
class Declaration:
    """Declaration of a learner: the class attribute ``_declaration`` of every public one.

    A subclass has its own, or is not a learner of this package.
    """

    # Name of the guide in `docs` that describes the learner, which its HTML form links to.
    guide: str
    # What `fit` takes: rows with ordered labels; queries of documents with relevances of any number
    # or of two; clicks on a list; inputs with outputs of a user's task; or what a user's judge
    # prefers.
    learns_from: Literal["labels", "queries", "binary queries", "clicks", "outputs", "comparisons"]
    # What a weight of a row is: a number of visits, a factor of the expected number of times that
    # members take it, of steps, of the loss, or of the row's pairs; None without `sample_weight`.
    weights: Literal["visits", "draws", "steps", "loss", "pairs"] | None = None
    # Makes unfitted estimators that the tests of all learners fit, in less than a second each: one
    # for each form of the state or of the scores; none if the user has the task or the judge.
    instances: Callable[[], Sequence[Any]] = tuple
    # Whether a monotone transform of a feature leaves the model the same, as with thresholds.
    scale_invariant: bool = False


def declaration_of(kind: type) -> Declaration | None:
    """Return a learner's own declaration, not that of its bases; None without one."""
    declaration: Declaration | None = vars(kind).get("_declaration")
    return declaration


def hide_private_bases(kind: type) -> None:
    """Hide the names of private base classes in Python's errors about their methods."""
    for base in kind.__mro__:
        if base.__module__.startswith("rankcore.") and declaration_of(base) is None:
            for name, member in vars(base).items():
                if isfunction(member) and not name.startswith("_"):
                    unwrap(member).__qualname__ = name


def public_learners() -> Iterator[type]:
    """Yield the classes with a declaration among the public names; imports their modules."""
    for name, home in MODULE_OF.items():
        if name[0].isupper():  # a class
            kind = getattr(import_module(home), name)
            if declaration_of(kind) is not None:
                yield kind
