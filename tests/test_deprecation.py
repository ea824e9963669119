"""The decorator of deprecated names: one warning at the caller's line, and the same results."""

import inspect

import pytest

from rankcore._core.deprecation import deprecated


@deprecated("old_sum", instead="sum", since="0.2", removed="0.4")
def old_sum(a, b):
    """Sum of two numbers.

    Parameters
    ----------
    a, b : float
    """
    return a + b


class Scaled:
    """A class whose parameter was renamed."""

    @deprecated("factor", instead="scale", since="0.2", removed="0.4")
    def __init__(self, *, scale=1.0):
        self.scale = scale


def test_a_function_warns_at_the_line_of_the_call():
    with pytest.warns(FutureWarning) as caught:
        assert old_sum(1, b=2) == 3
    (one,) = caught
    assert str(one.message) == (
        "old_sum is deprecated since rankcore 0.2 and will be removed in 0.4; use sum"
    )
    assert one.filename == __file__


def test_the_docstring_says_so_after_its_summary():
    lines = inspect.getdoc(old_sum).splitlines()
    assert lines[0] == "Sum of two numbers."
    assert lines[2:4] == [
        ".. deprecated:: 0.2",
        "   Use `sum`; old_sum is removed in 0.4.",
    ]
    assert "Parameters" in lines


def test_an_old_keyword_is_passed_on():
    with pytest.warns(FutureWarning, match="^factor is deprecated .* use scale$") as caught:
        assert Scaled(factor=3.0).scale == 3.0
    assert caught[0].filename == __file__
    # The suite makes warnings errors: the new name gives none.
    assert Scaled(scale=2.0).scale == 2.0
    assert [*inspect.signature(Scaled).parameters] == ["scale"]


def test_both_keywords_are_an_error():
    with pytest.raises(TypeError, match="^factor is the old name of scale; found both$"):
        Scaled(factor=3.0, scale=2.0)
