"""Docstrings of public names as pages."""

import re

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


def setup(app):
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-docstring", escape, priority=900)  # after numpydoc
    return {"parallel_read_safe": True}
