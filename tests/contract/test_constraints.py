"""Every parameter of a learner has a declared range, which one check enforces."""

from inspect import signature
from typing import ClassVar, Literal

import numpy as np
import pytest

import rankcore as rc
from declared import LEARNERS, QID, X, Y, data_for, learns_from
from rankcore._core.params import (
    COUNT,
    FLAG,
    N_JOBS,
    VERBOSE,
    Checked,
    Function,
    Integer,
    Options,
    Real,
    check_params,
)
from rankcore.structured import CuSumTask

# Checked by what uses them, of which they are a function, or against the rows.
ELSEWHERE = {
    *("estimator", "task", "cv", "random_state", "monotonic_cst", "categorical_features"),
    *("preference", "journal", "prior", "retry"),
}
REQUIRED = {"estimator": rc.PRank(), "task": CuSumTask(3), "preference": len}


def made(kind):
    """Make a learner with its defaults, and what it has no default of."""
    required = {
        one.name: REQUIRED[one.name]
        for one in signature(kind).parameters.values()
        if one.default is one.empty
    }
    return kind(**required)


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_checked(kind):
    learner = made(kind)
    check_params(learner)
    for name, valid in learner.get_params(deep=False).items():
        if name in ELSEWHERE:
            continue
        setattr(learner, name, object())
        with pytest.raises(
            (ValueError, TypeError), match=rf"^{type(learner).__name__}: {name} must "
        ):
            check_params(learner)
        setattr(learner, name, valid)


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        (kind, method)
        for kind in LEARNERS
        for method in ("fit", "partial_fit")
        if hasattr(kind, method) and learns_from(kind) in ("labels", "queries", "binary queries")
    ],
)
def test_fit_and_partial_fit_reject_each_wrong_parameter(kind, method):
    data = data_for(kind, Y, QID)
    for name in made(kind).get_params(deep=False).keys() - ELSEWHERE:
        learner = made(kind)
        setattr(learner, name, object())
        with pytest.raises((ValueError, TypeError), match=rf"^{kind.__name__}: {name} must "):
            getattr(learner, method)(X, **data)


def test_a_subclass_adds_to_the_constraints_of_its_bases():
    class Bounded(rc.PRank):
        _constraints: ClassVar = {"max_iter": Integer(1, 5)}

    check_params(Bounded(max_iter=5))
    check_params(rc.PRank(max_iter=6))
    with pytest.raises(
        ValueError, match=r"^Bounded: max_iter must be an integer in \[1, 5\]; got 6$"
    ):
        check_params(Bounded(max_iter=6))
    with pytest.raises(
        ValueError, match="^Bounded: tie must be one of 'crammer', 'strict'; got 'loose'$"
    ):
        check_params(Bounded(max_iter=5, tie="loose"))


def test_literal_types_are_constraints():
    class Chosen:
        def __init__(
            self,
            one: Literal["a", "b"] = "a",
            some: 'Literal["c"] | None' = None,
            any_: 'Literal["d"] | int' = 3,
            flag: bool = True,
        ):
            self.one, self.some, self.any_, self.flag = one, some, any_, flag

    check_params(Chosen("b", "c", "what it is, no check knows"))
    with pytest.raises(ValueError, match="^Chosen: one must be one of 'a', 'b'; got 'c'$"):
        check_params(Chosen("c"))
    with pytest.raises(TypeError, match="^Chosen: some must be 'c' or None; got 3$"):
        check_params(Chosen(some=3))
    with pytest.raises(TypeError, match="^Chosen: flag must be True or False; got 1$"):
        check_params(Chosen(flag=1))


def _even(value, name):
    if value % 2:
        raise ValueError(f"{name} must be even; got {value}")


@pytest.mark.parametrize(
    ("constraint", "said", "valid", "wrong_value", "wrong_type"),
    [
        (Integer(), "an integer", [-5, np.int8(2)], [], [2.0, True, "2", None, [1]]),
        (COUNT, "an integer >= 1", [1, 10**30], [0, -1], [1.0]),
        (Integer(high=3), "an integer <= 3", [3, -9], [4], [None]),
        (Integer(2, 4), "an integer in [2, 4]", [2, 4], [1, 5], [3.0, "2"]),
        (Real(0), "a number >= 0", [0, 0.5, float("inf")], [-1e-300, float("nan")], ["0", True]),
        (Real(0, closed="neither"), "a number > 0", [1e-300], [0, -1], [None, 1j]),
        (Real(high=1, closed="left"), "a number < 1", [0.5, -9], [1, 2], ["1"]),
        (Real(0, 1, closed="right"), "a number in (0, 1]", [1e-9, 1], [0, 1.1], [[0.5]]),
        (Real(0, 1, closed="left"), "a number in [0, 1)", [0, np.float32(0.9)], [1], [None]),
        (Real(0.1, 1), "a number in [0.1, 1]", [np.float32(0.1)], [np.float64(0.0999)], []),
        (FLAG, "True or False", [True, np.bool_(False)], [], [0, 1, None, "yes"]),
        (Options("a", "b"), "one of 'a', 'b'", ["a", "b"], ["c", ""], [None, 1, ["a"]]),
        (Options("a"), "'a'", ["a"], ["b"], [None]),
        (Options("a") | None, "'a' or None", ["a", None], ["b"], [1]),
        (Function() | None, "a function or None", [len, None], [], ["len", 0]),
        (
            Options("a", "b") | Real(0) | None,
            "one of 'a', 'b', a number >= 0 or None",
            ["a", 0, 2.5, None],
            ["other", -1],
            [[1], True],
        ),
        (VERBOSE, "an integer >= 0 or True or False", [0, 7, True], [-1], [0.5, None]),
        (N_JOBS, "an integer >= 1, an integer <= -1 or None", [1, -1, None], [0], [1.0, "all"]),
    ],
    ids=str,
)
def test_constraints_accept_and_reject_values(constraint, said, valid, wrong_value, wrong_type):
    assert str(constraint) == said
    for value in valid:
        assert constraint.accepts(value)
        constraint.check(value, "name")
    for value, error in [(v, ValueError) for v in wrong_value] + [
        (v, TypeError) for v in wrong_type
    ]:
        assert not constraint.accepts(value)
        with pytest.raises(error) as raised:
            constraint.check(value, "name")
        assert str(raised.value) == f"name must be {said}; got {value!r}"


def test_a_checked_parameter_keeps_the_message_of_its_function():
    even = Checked(_even, "an even number") | None
    even.check(4, "n")
    even.check(None, "n")
    with pytest.raises(ValueError, match="^n must be even; got 3$"):
        even.check(3, "n")
    assert str(even) == "an even number or None"


def test_numbers_beyond_float64_are_rejected():
    for constraint in (Real(0), Real(0) | None):
        with pytest.raises(ValueError, match="^tol must be a number >= 0.*; got 1000"):
            constraint.check(10**400, "tol")
