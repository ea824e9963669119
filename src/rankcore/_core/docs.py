"""Shared parameters of classes, declared and documented once: signatures and docstrings."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, cleandoc, isclass, signature
from itertools import chain
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Object = TypeVar("Object", bound=Callable[..., Any])
# Lines of entries by name, in order; the first line has the names and the type.
Entries = dict[str, list[str]]

# Sections with entries, sections of results, and all following sections, in numpydoc's order.
COMPLETED = ("Parameters", "Attributes")
RESULTS = ("Returns", "Yields", "Raises")
FOLLOWING = (*RESULTS, "Warns", "See Also", "Notes", "References", "Examples")


def documented(*sources: Any) -> Callable[[Object], Object]:
    """Decorate a class or function: complete its docstring with entries of others.

    A parameter that the docstring does not document gets the entry of the first source that does,
    in the order of the signature; a class also inherits entries of attributes. An entry with one
    name and no type is appended to the inherited one. The bases of a class are sources, after the
    given ones. From a function, missing sections of results and errors are also taken, from a text
    all sections. ``**options: Unpack[Options]`` are parameters declared by a TypedDict.
    """

    def complete(target: Object) -> Object:
        if not isclass(target):
            _spell_out(target)
        if target.__doc__ is None:  # under python -OO
            return target
        bases = [
            base.__doc__
            for base in (target.__mro__[1:] if isclass(target) else ())
            if not base.__module__.startswith(("builtins", "sklearn."))
        ]
        given = [one if isinstance(one, str) else one.__doc__ for one in sources]
        texts = [text for text in (*given, *bases) if text]
        found = {name: _inherited(name, texts) for name in COMPLETED[: 1 + isclass(target)]}
        doc = _completed(target.__doc__, signature(target).parameters, found, sources)
        target.__doc__ = _with_references(doc, texts)
        return target

    return complete


def _spell_out(function: Any) -> None:
    """Replace ``**options`` in a signature by its keywords, all optional."""
    form = signature(function)
    named = list(form.parameters.values())
    kind = re.fullmatch(r"Unpack\[(\w+)\]", str(named[-1].annotation)) if named else None
    if kind is None:
        return
    del named[-1]
    for name, one in function.__globals__[kind[1]].__annotations__.items():
        of = one.__forward_arg__
        default = False if of == "bool" else None
        named.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=of))
    function.__signature__ = form.replace(parameters=named)


def _completed(
    doc: str, named: Mapping[str, Parameter], inherited: Mapping[str, Entries], sources: Any
) -> str:
    """Docstring completed with parameters of a signature, attributes, and sections of texts."""
    head, sections = _sections(doc)
    for title, known in inherited.items():
        own = _entries(sections.get(title, ""))
        order: Iterable[str] = named if title == "Parameters" else own | known
        lines: list[str] = []
        put: list[list[str]] = []  # one entry may document several names
        for name in order:
            entry = _joined(own.get(name), known.get(name))
            if entry and not any(entry is one for one in put):
                one = named.get(name) if title == "Parameters" else None
                lines += [_with_default(entry[0], one), *entry[1:]]
                put.append(entry)
        if lines:
            sections[title] = "\n".join([title, "-" * len(title), *lines])
    for source in sources:
        text = source if isinstance(source, str) else source.__doc__ or ""
        titles = FOLLOWING if isinstance(source, str) else () if isclass(source) else RESULTS
        more = {title: part for title, part in _sections(text)[1].items() if title in titles}
        if isinstance(source, str) and "Raises" in more and "Raises" in sections:
            own = _entries(sections["Raises"])
            raised = (one for name, one in _entries(more["Raises"]).items() if name not in own)
            sections["Raises"] = "\n".join([sections["Raises"], *chain.from_iterable(raised)])
        sections = more | sections
    order = [*COMPLETED, *FOLLOWING]
    ordered = sorted(sections, key=lambda title: order.index(title) if title in order else 99)
    return "\n\n".join([head, *(sections[title] for title in ordered)]) + "\n"


def _with_references(doc: str, texts: Iterable[str]) -> str:
    """Docstring with the references that inherited entries cite, if it has none."""
    cited = set(re.findall(r"\[(\d+)\]_", doc))
    if not cited or "References" in _sections(doc)[1]:
        return doc
    for text in texts:
        section = _sections(text)[1].get("References", "")
        named = re.findall(r"^(\.\. \[(\d+)\] .*(?:\n +.*)*)", section, re.MULTILINE)
        if kept := [reference for reference, number in named if number in cited]:
            return "\n".join([doc, "References", "-" * len("References"), *kept]) + "\n"
    return doc


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """The summary of a docstring, and its sections by title."""
    head, *parts = re.split(r"\n\n(?=[A-Z][A-Za-z ]+\n---)", cleandoc(doc))
    return head, {part.partition("\n")[0]: part for part in parts}


def _entries(section: str) -> Entries:
    """Entries of a section by name; an entry with several names is under each of them."""
    found: Entries = {}
    entry: list[str] = []
    for line in section.splitlines()[2:]:
        if line and not line.startswith(" "):
            entry = []
            for name in re.split(r",\s*", line.partition(" : ")[0]):
                found[name.lstrip("*")] = entry
        entry.append(line)
    for entry in found.values():
        while entry and not entry[-1]:
            entry.pop()
    return found


def _inherited(title: str, texts: Iterable[str]) -> Entries:
    """Entries of the first docstrings that have them, with a type."""
    found: Entries = {}
    for text in texts:
        for name, entry in _entries(_sections(text)[1].get(title, "")).items():
            if not name.startswith("_") and name not in found and " : " in entry[0]:
                found[name] = entry
    return found


def _joined(own: list[str] | None, inherited: list[str] | None) -> list[str] | None:
    if own and inherited and not re.search(" : |,", own[0]):
        return [*inherited, *own[1:]]
    return own or inherited


def _with_default(line: str, parameter: Parameter | None) -> str:
    """First line of an entry, with the default of the signature if it differs from the base."""
    if parameter is None or parameter.default is Parameter.empty:
        return line
    before, _, said = line.partition("default=")
    value = parameter.default
    if not re.fullmatch(r'"\w+"|[\w.+-]+', said) or literal_eval(said) == value:
        return line
    return f'{before}default="{value}"' if isinstance(value, str) else f"{before}default={value!r}"
