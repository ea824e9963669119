"""Decorator for deprecated names; docs/project/support.md has the policy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from rankcore._core.warning import warn

Given = ParamSpec("Given")
Result = TypeVar("Result")


def deprecated(
    name: str, *, instead: str, since: str, removed: str
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Deprecate a function, or one keyword of it, with a `FutureWarning` per call.

    If the function has a parameter `instead`, then `name` is its old keyword, whose values are
    passed on; otherwise the function itself is deprecated. Decorate ``__init__`` for a class, or
    for a parameter of its constructor.

    Parameters
    ----------
    name, instead : str
        The old name and the new one.
    since, removed : str
        The release that deprecates the old name, and the first without it.

    Raises
    ------
    TypeError
        If both the old and the new keyword are passed.
    """
    message = (
        f"{name} is deprecated since rankcore {since} and will be removed in {removed}; "
        f"use {instead}"
    )

    def decorate(function: Callable[Given, Result]) -> Callable[Given, Result]:
        renamed = instead in inspect.signature(function).parameters

        @functools.wraps(function)
        def call(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            if not renamed:
                warn(message, FutureWarning)
            elif name in kwargs:
                if instead in kwargs:
                    raise TypeError(f"{name} is the old name of {instead}; found both")
                warn(message, FutureWarning)
                kwargs[instead] = kwargs.pop(name)
            return function(*args, **kwargs)

        if not renamed:
            summary, *rest = inspect.cleandoc(function.__doc__ or "").split("\n\n")
            note = f".. deprecated:: {since}\n   Use `{instead}`; {name} is removed in {removed}."
            call.__doc__ = "\n\n".join([summary, note, *rest])
        return call

    return decorate
