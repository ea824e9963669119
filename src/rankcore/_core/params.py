"""Constraints of parameters, which check a value and print the values that they accept."""

from __future__ import annotations

import numbers
import re
import reprlib
from abc import ABC, abstractmethod
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np


class Constraint(ABC):
    """Constraint of a parameter; ``str`` describes the accepted values: "an integer >= 1".

    ``Options("auto") | Integer(1) | None`` accepts what one of them accepts.
    """

    @abstractmethod
    def accepts(self, value: Any) -> bool:
        """Return whether a value is accepted."""

    @abstractmethod
    def accepts_type(self, value: Any) -> bool:
        """Return whether another value of this type would be accepted."""

    def check(self, value: Any, name: str) -> None:
        """Raise ValueError or TypeError, with the parameter's name, unless a value is accepted."""
        if not self.accepts(value):
            error = ValueError if self.accepts_type(value) else TypeError
            raise error(f"{name} must be {self}; got {reprlib.repr(value)}")

    def __or__(self, other: Constraint | None) -> Constraint:
        mine = self.constraints if isinstance(self, AnyOf) else (self,)
        return AnyOf((*mine, Nothing() if other is None else other))


@dataclass(frozen=True)
class Interval(Constraint):
    """A number in an interval; an end of None is unbounded."""

    low: float | None = None
    high: float | None = None
    _: KW_ONLY
    closed: Literal["both", "left", "right", "neither"] = "both"

    type_: ClassVar[type] = numbers.Real
    noun: ClassVar[str] = "a number"

    def accepts(self, value: Any) -> bool:
        if not self.accepts_type(value) or value != value:
            return False
        at_low, at_high = self.closed in ("both", "left"), self.closed in ("both", "right")
        above = self.low is None or value > self.low or (at_low and value == self.low)
        below = self.high is None or value < self.high or (at_high and value == self.high)
        return above and below

    def accepts_type(self, value: Any) -> bool:
        return isinstance(value, self.type_) and not isinstance(value, bool)

    def __str__(self) -> str:
        left, right = self.closed in ("both", "left"), self.closed in ("both", "right")
        if self.low is not None and self.high is not None:
            return f"{self.noun} in {'(['[left]}{self.low}, {self.high}{')]'[right]}"
        if self.low is not None:
            return f"{self.noun} {'>=' if left else '>'} {self.low}"
        if self.high is not None:
            return f"{self.noun} {'<=' if right else '<'} {self.high}"
        return self.noun


class Real(Interval):
    """A float64 in an interval: ``Real(0, 1, closed="right")`` is a number in (0, 1]."""

    def accepts(self, value: Any) -> bool:
        if not self.accepts_type(value):
            return False
        try:
            return super().accepts(float(value))
        except OverflowError:  # a larger integer
            return False


class Integer(Interval):
    """An integer in an interval: ``Integer(1)`` is an integer >= 1."""

    type_ = numbers.Integral
    noun = "an integer"


class Flag(Constraint):
    """True or False."""

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    accepts_type = accepts

    def __str__(self) -> str:
        return "True or False"


class Options(Constraint):
    """One of some strings."""

    def __init__(self, *options: str) -> None:
        self.options = options

    def accepts(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.options

    def accepts_type(self, value: Any) -> bool:
        return isinstance(value, str)

    def __str__(self) -> str:
        listed = ", ".join(map(repr, self.options))
        return f"one of {listed}" if len(self.options) > 1 else listed


class Off(Constraint):
    """False, for a choice that can be switched off."""

    def accepts(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_) and not value

    def accepts_type(self, value: Any) -> bool:
        return isinstance(value, bool | np.bool_)

    def __str__(self) -> str:
        return "False"


class Function(Constraint):
    """A function, or another callable object."""

    def accepts(self, value: Any) -> bool:
        return callable(value)

    accepts_type = accepts

    def __str__(self) -> str:
        return "a function"


class Nothing(Constraint):
    """None; written as ``... | None``."""

    def accepts(self, value: Any) -> bool:
        return value is None

    accepts_type = accepts

    def __str__(self) -> str:
        return "None"


@dataclass(frozen=True)
class Checked(Constraint):
    """Constraint by a function that raises ValueError or TypeError for other values.

    The function gets the value and its name, with which its messages begin. ``accepted`` says what
    it accepts.
    """

    function: Callable[[Any, str], None]
    accepted: str

    def check(self, value: Any, name: str) -> None:
        self.function(value, name)

    def accepts(self, value: Any) -> bool:
        with suppress(ValueError, TypeError):
            self.function(value, "")
            return True
        return False

    accepts_type = accepts

    def __str__(self) -> str:
        return self.accepted


@dataclass(frozen=True)
class AnyOf(Constraint):
    """Alternative of several constraints; written as ``one | other``."""

    constraints: tuple[Constraint, ...]

    def accepts(self, value: Any) -> bool:
        return any(constraint.accepts(value) for constraint in self.constraints)

    def accepts_type(self, value: Any) -> bool:
        return any(constraint.accepts_type(value) for constraint in self.constraints)

    def check(self, value: Any, name: str) -> None:
        if not self.accepts(value):
            for constraint in self.constraints:
                if isinstance(constraint, Checked):
                    constraint.check(value, name)  # says more of what is wrong
        super().check(value, name)

    def __str__(self) -> str:
        *before, last = map(str, self.constraints)
        return f"{', '.join(before)} or {last}"


COUNT = Integer(1)
FLAG = Flag()
# Of averages that forget, in examples; None weighs all of them alike.
HALF_LIFE = Real(1, 1e100) | None
# One line of progress every so many passes or rounds.
VERBOSE = Integer(0) | FLAG
# As in joblib: None is one thread, -1 one per processor.
N_JOBS = COUNT | Integer(high=-1) | None

Constraints: TypeAlias = Mapping[str, Constraint]


def check_params(estimator: Any) -> None:
    """Raise if a parameter of an estimator is invalid, or if parameters exclude each other.

    A class declares what its parameters accept beside its constructor, in ``_constraints``, which
    adds to those of its bases; a parameter whose type is ``bool`` or ``Literal`` needs no entry. A
    method ``_check_together``, if any, raises for parameters that exclude each other.
    """
    check_declared(estimator)
    if hasattr(estimator, "_check_together"):
        estimator._check_together()


def check_declared(estimator: object, *names: str) -> None:
    """Raise if one of the named parameters, by default any, violates its constraint."""
    kind, values = type(estimator), vars(estimator)
    declared = _declared_by(kind)
    for name in names or declared:
        constraint, accepted = declared[name]
        if name in values and values[name] is not accepted:
            constraint.check(values[name], f"{kind.__name__}: {name}")


def _declared_by(kind: type) -> dict[str, tuple[Constraint, Any]]:
    """Merge the constraints of a class and its bases; each gets an accepted default."""
    merged: dict[str, tuple[Constraint, Any]] | None = vars(kind).get("_merged_constraints")
    if merged is None:
        parameters = signature(kind.__init__).parameters  # type: ignore[misc]
        constraints = {
            name: _of_type(parameter.annotation) for name, parameter in parameters.items()
        }
        for base in reversed(kind.__mro__):
            constraints |= vars(base).get("_constraints", {})
        merged = {
            name: (constraint, _accepted(constraint, parameters.get(name)))
            for name, constraint in constraints.items()
            if constraint is not None
        }
        kind._merged_constraints = merged  # type: ignore[attr-defined]
    return merged


def _of_type(annotation: Any) -> Constraint | None:
    """Return the constraint that a type implies: bool, or ``Literal`` of strings or False."""
    if annotation in (bool, "bool"):
        return FLAG
    match = re.fullmatch(r"(?:typing\.)?Literal\[([^\[\]]*)\]( \| None)?", str(annotation))
    if match is None:
        return None
    values = literal_eval(f"({match[1]},)")
    options: Constraint = Options(*(value for value in values if value is not False))
    if False in values:
        options |= Off()
    return options | None if match[2] else options


def _accepted(constraint: Constraint, parameter: Parameter | None) -> Any:
    """Return a parameter's default if it is valid, otherwise a new object."""
    default = object() if parameter is None else parameter.default
    # The default of a user's class may be invalid: it is rejected when used.
    constant = isinstance(default, str | int | float | None)
    return default if constant and constraint.accepts(default) else object()


def check_option(value: Any, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a value is one of some strings."""
    Options(*options).check(value, name)


def check_integer(value: Any, name: str, low: int, high: int | None = None) -> None:
    """Raise unless a value is an integer in a closed interval."""
    Integer(low, high).check(value, name)


def check_real(value: Any, name: str, low: float, high: float | None = None) -> None:
    """Raise unless a value is a number in a closed interval."""
    Real(low, high).check(value, name)


def check_flag(value: Any, name: str) -> None:
    """Raise unless a value is True or False."""
    FLAG.check(value, name)


def check_count(value: Any, name: str) -> None:
    """Raise unless a value is an integer >= 1."""
    COUNT.check(value, name)


def as_generator(random_state: Any) -> np.random.Generator:
    """Make a NumPy Generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# Names of parameters of rankcore, with their names in LightGBM, XGBoost and scikit-learn.
_ELSEWHERE = {
    "max_leaf_nodes": "num_leaves max_leaves",
    "min_samples_leaf": "min_child_samples min_data_in_leaf",
    "min_pair_weight": "min_child_weight min_sum_hessian_in_leaf",
    "l2_leaf": "reg_lambda lambda_l2 l2_regularization",
    "n_estimators": "num_iterations num_boost_round n_rounds max_iter",
    "max_bins": "max_bin",
    "learning_rate": "eta eta0",
    "subsample": "bagging_fraction",
    "max_features": "colsample feature_fraction_bynode colsample_bynode feature_fraction "
    "colsample_bytree colsample_bylevel",
    "monotonic_cst": "monotone_constraints",
    "categorical_features": "categorical_feature",
    "early_stopping_rounds": "early_stopping_round",
    "eval_metric": "metric",
    "max_iter": "n_iter epochs n_epochs n_estimators",
    "random_state": "seed",
    "n_jobs": "nthread num_threads",
}


def nearest_parameter(name: str, accepted: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the synonym of an unknown parameter, else the most similar parameter, or None."""
    by_letters = {parameter.lower(): parameter for parameter in accepted}
    for parameter, elsewhere in _ELSEWHERE.items():
        if name in elsewhere.split() and parameter in by_letters:
            return parameter
    near = get_close_matches(name.lower(), by_letters, 1, cutoff)
    return by_letters[near[0]] if near else None


def unknown_parameter(learner: type, params: Iterable[str]) -> str | None:
    """Describe the first unknown parameter of a learner, with a hint; None if all are known."""
    signed = signature(learner.__init__).parameters  # type: ignore[misc]
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in signed.values()):
        return None  # a subclass that passes names on
    accepted = [name for name in signed if name != "self"]
    for name in params:
        if name not in accepted:
            wraps = "estimator" in accepted
            meant = nearest_parameter(name, accepted, 0.8 if wraps else 0.6)
            hint = f"use {meant}" if meant else f"its parameters are {', '.join(accepted)}"
            if wraps and not meant:
                hint += f"; those of a learner are set on it, as in PRank({name}=...)"
            return f"{learner.__name__} has no parameter {name!r}: {hint}"
    return None
