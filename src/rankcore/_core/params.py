"""Validation of parameters."""

from __future__ import annotations

import re
import reprlib
from ast import literal_eval
from collections.abc import Callable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from rankcore._core.threads import check_n_jobs

# Function of a value and the parameter's name; raises unless the value is valid.
Constraint = Callable[[Any, str], None]

# Rules for the length of a step, in the order of rankcore_capi.h.
STEP_RULES = ("perceptron", "pa", "pa1", "pa2")


def check_option(value: Any, name: str, options: tuple[str, ...]) -> None:
    """Raise unless a string parameter is one of its options."""
    if not isinstance(value, str) or value not in options:
        accepted = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name} must be one of {accepted}; found {value!r}")


def _check_range(
    value: Any, name: str, kind: tuple[type, str], low: float, high: float | None
) -> None:
    is_kind = isinstance(value, kind[0]) and not isinstance(value, bool)
    # Written so that NaN fails.
    if not (is_kind and low <= value and (high is None or value <= high)):
        bounds = f"{low} on" if high is None else f"{low} to {high}"
        error = ValueError if is_kind else TypeError
        raise error(f"{name} must be {kind[1]} from {bounds}; found {reprlib.repr(value)}")


def check_integer(value: Any, name: str, low: int, high: int | None = None) -> None:
    """Raise unless a value is an integer from a closed range."""
    _check_range(value, name, (Integral, "an integer"), low, high)


def check_real(value: Any, name: str, low: float, high: float | None = None) -> None:
    """Raise unless a value is a number from a closed range."""
    if type(value) is float and low <= value and (high is None or value <= high):
        return
    if isinstance(value, np.floating):  # float32 cannot represent the bounds
        value = float(value)
    _check_range(value, name, (Real, "a number"), low, high)
    try:
        float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must be in the range of float64; found a larger integer"
        ) from None


def check_flag(value: Any, name: str) -> None:
    """Raise unless a parameter is a bool."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; found {value!r}")


def check_count(value: Any, name: str) -> None:
    """Raise unless a parameter is an integer from 1 on."""
    if type(value) is not int or value < 1:
        check_integer(value, name, 1)


def check_verbose(value: Any, name: str) -> None:
    """Raise unless a parameter is an integer from 0 on, or a bool."""
    check_integer(int(value) if isinstance(value, bool) else value, name, 0)


def integer(low: int, high: int | None = None) -> Constraint:
    """Constraint: an integer in a closed range."""
    return lambda value, name: check_integer(value, name, low, high)


def real(low: float, high: float | None = None) -> Constraint:
    """Constraint: a number in a closed range."""
    return lambda value, name: check_real(value, name, low, high)


def positive(high: float) -> Constraint:
    """Constraint: a number above 0, up to ``high``."""

    def check(value: Any, name: str) -> None:
        check_real(value, name, 0, high)
        if not value > 0:
            raise ValueError(f"{name} must be above 0; found {value!r}")

    return check


def option(*options: str) -> Constraint:
    """Constraint: one of some strings."""
    return lambda value, name: check_option(value, name, options)


def optional(constraint: Constraint) -> Constraint:
    """Constraint: None, or a value of another constraint."""
    return lambda value, name: None if value is None else constraint(value, name)


def function_or(constraint: Constraint) -> Constraint:
    """Constraint: a function, or a value of another constraint."""
    return lambda value, name: None if callable(value) else constraint(value, name)


def number_or(words: tuple[str, ...], number: Constraint) -> Constraint:
    """Constraint: one of some strings, or a number of another constraint."""
    accepted = ("one of " if len(words) > 1 else "") + ", ".join(map(repr, words))

    def check(value: Any, name: str) -> None:
        if not isinstance(value, str):
            number(value, name)
        elif value not in words:
            raise ValueError(f"{name} must be {accepted} or a number; found {value!r}")

    return check


# Parameters with the same meaning in all learners.
SHARED: dict[str, Constraint] = {
    "average": check_flag,
    "average_members": check_flag,
    "fit_intercept": check_flag,
    "shuffle": check_flag,
    "warm_start": check_flag,
    "committee_size": check_count,
    "max_iter": check_count,
    "n_estimators": check_count,
    "early_stopping_rounds": optional(check_count),
    "memory_limit": integer(0),
    "verbose": check_verbose,
    "tol": optional(real(0)),
    "C": real(1e-100, 1e100),
    "margin": real(0, 1e100),
    "n_jobs": check_n_jobs,
}


class Constrained:
    """An estimator that declares constraints of its parameters. Not public."""

    # Constraints of parameters that a class adds or restricts; `SHARED` applies to all classes, and
    # parameters of type ``Literal`` need no declaration.
    _constraints: ClassVar[dict[str, Constraint]] = SHARED

    def _check_params(self) -> None:
        """Raise if a parameter is invalid, or parameters exclude each other."""
        check_declared(self)
        self._check_together()

    def _check_together(self) -> None:
        """Raise if parameters exclude each other."""


def check_declared(estimator: object, *names: str) -> None:
    """Raise if one of the named parameters, by default any, violates its constraint."""
    declared, found = _declared_by(type(estimator)), vars(estimator)
    for name in names or declared:
        check, accepted = declared[name]
        if name in found and found[name] is not accepted:
            check(found[name], name)


def _declared_by(learner: type) -> dict[str, tuple[Constraint, Any]]:
    """Constraints of a class and its bases, merged once, with accepted defaults."""
    merged: dict[str, tuple[Constraint, Any]] | None = vars(learner).get("_merged_constraints")
    if merged is None:
        parameters = signature(learner.__init__).parameters  # type: ignore[misc]
        types = {name: _of_type(one.annotation) for name, one in parameters.items()}
        constraints = {name: check for name, check in types.items() if check is not None}
        for base in reversed(learner.__mro__):
            constraints |= vars(base).get("_constraints", {})
        merged = {
            name: (check, _accepted(check, name, parameters.get(name)))
            for name, check in constraints.items()
        }
        learner._merged_constraints = merged  # type: ignore[attr-defined]
    return merged


def _of_type(annotation: Any) -> Constraint | None:
    """Constraint of a type annotation: ``Literal`` of strings, optionally with None."""
    found = re.fullmatch(r"(?:typing\.)?Literal\[([^\[\]]*)\]( \| None)?", str(annotation))
    if found is None:
        return None
    check = option(*literal_eval(f"({found[1]},)"))
    return optional(check) if found[2] else check


def _accepted(check: Constraint, name: str, parameter: Parameter | None) -> Any:
    """A parameter's default if it is valid; else a unique object."""
    if parameter is not None and isinstance(parameter.default, str | int | float | None):
        # The default of a user's class may be invalid: it is rejected when used.
        with suppress(ValueError, TypeError):
            check(parameter.default, name)
            return parameter.default
    return object()


def as_generator(random_state: Any) -> np.random.Generator:
    """NumPy Generator from None, a seed, a Generator or a RandomState."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# Names of parameters of rankcore, with their names in LightGBM, XGBoost and scikit-learn.
_ELSEWHERE = {
    "max_leaf_nodes": "num_leaves max_leaves",
    "min_samples_leaf": "min_child_samples min_data_in_leaf",
    "min_pair_weight": "min_child_weight min_sum_hessian_in_leaf",
    "l2_leaf": "reg_lambda lambda_l2 l2_regularization",
    "n_estimators": "num_iterations num_boost_round",
    "max_bins": "max_bin",
    "learning_rate": "eta eta0",
    "subsample": "bagging_fraction",
    "colsample": "feature_fraction colsample_bytree",
    "monotonic_cst": "monotone_constraints",
    "categorical_features": "categorical_feature",
    "early_stopping_rounds": "early_stopping_round",
    "eval_metric": "metric",
    "max_iter": "n_iter epochs n_epochs",
    "random_state": "seed",
    "n_jobs": "nthread num_threads",
}
_NAME_OF = {other: name for name, others in _ELSEWHERE.items() for other in others.split()}


def check_names(learner: type, params: Mapping[str, Any]) -> None:
    """Raise TypeError for an unknown parameter, with a hint."""
    known = signature(learner.__init__).parameters  # type: ignore[misc]
    if any(one.kind is Parameter.VAR_KEYWORD for one in known.values()):
        return  # a subclass that passes names on
    for name in params:
        if name in known:
            continue
        meant = _NAME_OF.get(name)
        if meant not in known:
            meant = next(iter(get_close_matches(name, known, 1)), None)
        listed = ", ".join(one for one in known if one != "self")
        hint = f"use {meant}" if meant else f"its parameters are {listed}"
        raise TypeError(f"{learner.__name__} has no parameter {name!r}: {hint}")
