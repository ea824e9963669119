"""Pages for those who know another tool name arguments and options that exist here."""

import ast
import doctest
import inspect
import re
from functools import reduce
from pathlib import Path

import pytest

import rankcore
from rankcore.datasets import Qrels, Run, join_run
from rankcore.preference import PreferenceRanker, rate

COMING = Path(__file__).parents[1] / "docs" / "coming"
if not COMING.exists():
    pytest.skip("the sources are not here", allow_module_level=True)

PAGES = sorted(COMING.glob("*.md"))
# Names as the pages use them; `rc.` and `rankcore.` reach all others.
NAMES = {
    "rc": rankcore,
    "rankcore": rankcore,
    "rate": rate,
    "join_run": join_run,
    "Qrels": Qrels,
    "Run": Run,
    "PreferenceRanker": PreferenceRanker,
}


def calls(text):
    """Return calls in the examples of a page and in its inline code, as syntax trees."""
    sources = [example.source for example in doctest.DocTestParser().get_examples(text)]
    for code in re.findall(r"(?<!`)`([^`\n]+\))`(?!`)", text):
        sources.append(code.replace("=...", "=None").replace("(...", "(None"))
    for source in sources:
        try:
            tree = ast.parse(source)
        except SyntaxError:  # inline code that is no Python, as an option of a command
            continue
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def ours(call):
    """Return the callable of this package that a call names, None for any other."""
    first, *rest = ast.unparse(call.func).split(".")
    if first not in NAMES or not all(name.isidentifier() for name in rest):
        return None
    return reduce(getattr, rest, NAMES[first])


def unknown(text):
    """Keyword arguments that the callable does not take, and how many were looked at."""
    wrong, seen = [], 0
    for call in calls(text):
        function = ours(call)
        if function is None:
            continue
        for keyword in call.keywords:
            if keyword.arg is None:
                continue
            seen += 1
            try:
                inspect.signature(function).bind_partial(**{keyword.arg: None})
            except TypeError:
                wrong.append(f"{ast.unparse(call.func)}({keyword.arg}=)")
    return wrong, seen


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_keywords_of_rankcore_exist(path):
    wrong, _ = unknown(path.read_text(encoding="utf-8"))
    assert not wrong


def test_keywords_in_the_table_are_checked():
    seen = sum(unknown(path.read_text(encoding="utf-8"))[1] for path in PAGES)
    assert seen >= 20
    assert unknown("`rc.RankSVM(D=0.1)`") == (["rc.RankSVM(D=)"], 1)
    assert unknown(">>> rc.PRank(seed=1).fit(X, y)\n") == (["rc.PRank(seed=)"], 1)
