"""Options that several commands share, as fields of dataclasses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command, to take a parameter that is a dataclass as one option for each field.

    Fields that are not ``Annotated`` are no options and keep their defaults.
    """
    hints = get_type_hints(command, include_extras=True)
    del hints["return"]
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    taken: dict[str, list[str]] = {}
    parameters: list[Parameter] = []
    own = Signature.from_callable(command).parameters
    for name, hint in hints.items():
        options = {name: (own[name].default, hint)}
        if name in groups:
            types = get_type_hints(hint, include_extras=True)
            options = {
                one.name: (one.default, types[one.name])
                for one in fields(hint)
                if hasattr(types[one.name], "__metadata__")
            }
            taken[name] = list(options)
        parameters += [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for option, (default, annotation) in options.items()
        ]

    @wraps(command)
    def run(**given: Any) -> None:
        for name, options in taken.items():
            given[name] = groups[name](**{option: given.pop(option) for option in options})
        command(**given)

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run
