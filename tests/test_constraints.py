"""Every parameter of a learner has a declared range, which one check enforces."""

from typing import ClassVar, Literal

import pytest

import rankcore as rc
from rankcore._core.params import (
    SHARED,
    Constrained,
    integer,
    number_or,
    option,
    optional,
    positive,
    real,
)
from rankcore.structured import CuSumTask, KernelStructuredPerceptron, StructuredPerceptron

# Checked by what uses them, of which they are a function, or against the rows.
ELSEWHERE = {"estimator", "task", "cv", "random_state", "monotonic_cst", "categorical_features"}
LEARNERS = [
    rc.PRank(),
    rc.VotedPRank(),
    rc.CuSumRank(),
    rc.WidrowHoff(),
    rc.MulticlassPerceptron(),
    rc.OAPBPM(),
    rc.OAPBagging(),
    rc.OAPVoting(),
    rc.KernelPRank(),
    rc.KernelCuSumRank(),
    rc.KernelOAPBPM(),
    rc.CalibratedOrdinal(rc.PRank()),
    rc.PairwisePerceptron(),
    rc.RankSVM(),
    rc.RankBoost(),
    rc.BipartiteRankBoost(),
    rc.RankBoost(max_leaf_nodes=8),
    rc.OrdinalBoost(),
    StructuredPerceptron(CuSumTask(3)),
    KernelStructuredPerceptron(CuSumTask(3)),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda one: type(one).__name__)
def test_every_parameter_is_checked(learner):
    learner._check_params()
    for name, valid in learner.get_params(deep=False).items():
        if name in ELSEWHERE:
            continue
        setattr(learner, name, object())
        with pytest.raises((ValueError, TypeError), match=rf"^(each )?{name} "):
            learner._check_params()
        setattr(learner, name, valid)


def test_a_subclass_adds_to_the_constraints_of_its_bases():
    class Bounded(rc.PRank):
        _constraints: ClassVar = {"max_iter": integer(1, 5)}

    Bounded(max_iter=5)._check_params()
    rc.PRank(max_iter=6)._check_params()
    with pytest.raises(ValueError, match="max_iter must be an integer from 1 to 5; found 6"):
        Bounded(max_iter=6)._check_params()
    with pytest.raises(ValueError, match="tie must be one of"):
        Bounded(max_iter=5, tie="loose")._check_params()


def test_a_literal_type_is_a_constraint():
    class Chosen(Constrained):
        def __init__(
            self,
            one: Literal["a", "b"] = "a",
            some: 'Literal["c"] | None' = None,
            any_: 'Literal["d"] | int' = 3,
        ):
            self.one, self.some, self.any_ = one, some, any_

    Chosen("b", "c", "what it is, no check knows")._check_params()
    with pytest.raises(ValueError, match="^one must be one of 'a', 'b'; found 'c'$"):
        Chosen("c")._check_params()
    with pytest.raises(ValueError, match="^some must be one of 'c'; found 3$"):
        Chosen(some=3)._check_params()


@pytest.mark.parametrize(
    ("constraint", "valid", "invalid"),
    [
        (integer(2, 4), [2, 4], [1, 5, 2.0, "2", None]),
        (real(0, 1), [0, 0.5, 1], [-0.1, 1.1, float("nan"), "0", None]),
        (positive(1), [1e-300, 1], [0, -1, 1.1, float("nan"), "1"]),
        (option("a", "b"), ["a", "b"], ["c", None, 1]),
        (optional(option("a")), ["a", None], ["c", 1]),
        (number_or(("auto",), real(0)), ["auto", 0, 2.5], ["other", -1, None]),
        (SHARED["average"], [True, False], [0, 1, None, "yes"]),
    ],
)
def test_constraints(constraint, valid, invalid):
    for value in valid:
        constraint(value, "name")
    for value in invalid:
        with pytest.raises((ValueError, TypeError), match="^name "):
            constraint(value, "name")
