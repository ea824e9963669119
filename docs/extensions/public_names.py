"""Docstrings of public names as pages."""

import inspect
import re

from sphinx.util.inspect import stringify_signature

# `code`, ``literal``, :role:`text`: left as they are.
LITERAL = re.compile(r"(``.*?``|`[^`]*`)")


def skip(app, what, name, obj, skipped, options):
    """Leave out private members, and those that scikit-learn's base classes document."""
    module = getattr(obj, "__module__", "") or ""
    if name.startswith("_") or module.startswith(("sklearn", "builtins")):
        return True
    return None


def escape(app, what, name, obj, options, lines):
    """Let |w| and coef_ in running text stand for themselves; reStructuredText sees markup."""
    doctest = False
    for i, line in enumerate(lines):
        doctest = line.lstrip().startswith(">>>") or (doctest and bool(line.strip()))
        if doctest:
            continue
        parts = LITERAL.split(line)
        parts[::2] = [
            re.sub(r"(?<=\w)_(?!\w)", r"\\_", part.replace("|", r"\|")) for part in parts[::2]
        ]
        lines[i] = "".join(parts)


def signature(app, what, name, obj, options, args, returned):
    """Parameters of a class as `help` shows them, where Sphinx finds those of a base's __new__."""
    if what != "class":
        return None
    try:
        found = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    return stringify_signature(found, show_annotation=False, show_return_annotation=False), None


def setup(app):
    app.connect("autodoc-process-signature", signature)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"parallel_read_safe": True}
