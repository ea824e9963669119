"""Held-out rows and measures, in all forms of user input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def measure_names(metrics: Sequence[Any], n_sets: int) -> list[list[str]]:
    """Return the names in ``history_`` of measures on each held-out set.

    One set has ``valid_ndcg@10``, several have ``valid_0_ndcg@10``, ``valid_1_ndcg@10``, ...
    """
    names: list[str] = []
    for metric in metrics:
        name = metric if isinstance(metric, str) else getattr(metric, "__name__", "measure")
        earlier = sum(name == earlier_name.partition(" ")[0] for earlier_name in names)
        names.append(f"{name} {earlier + 1}" if earlier else name)
    sets = [""] if n_sets == 1 else [f"{number}_" for number in range(n_sets)]
    return [[f"valid_{prefix}{name}" for name in names] for prefix in sets]


def as_metrics(eval_metric: Any) -> list[Any]:
    """Return the measures of an ``eval_metric``, which is one or a list of them."""
    return list(eval_metric) if isinstance(eval_metric, list | tuple) else [eval_metric]


def as_eval_sets(
    eval_set: Any, eval_X: Any, eval_y: Any, more: Mapping[str, Any]
) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Convert all forms of held-out sets to (X, y, other arguments)."""
    if (eval_X is None) != (eval_y is None):
        raise ValueError("eval_X and eval_y must be passed together; got one of them")
    if eval_X is not None:
        if eval_set is not None:
            raise ValueError(
                "eval_set and eval_X have the same meaning; got both: pass one of them"
            )
        several = isinstance(eval_X, list | tuple) and all(  # rather than rows of one table
            hasattr(block, "shape") and len(block.shape) == 2 for block in eval_X
        )
        if several and len(eval_X) != len(eval_y):
            raise ValueError(
                f"eval_X and eval_y must have the same length; got {len(eval_X)} and {len(eval_y)}"
            )
        eval_set = list(zip(eval_X, eval_y, strict=True)) if several else [(eval_X, eval_y)]
    if eval_set is None:
        for name, values in more.items():
            if values is not None:
                raise ValueError(f"{name} requires eval_set; got eval_set=None")
        return []
    sets = eval_set if isinstance(eval_set, list) else [eval_set]
    if not sets or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in sets):
        kinds = ", ".join(type(item).__name__ for item in sets[:3])
        raise TypeError(
            "eval_set must be a pair (X, y), a tuple, or a list of such pairs; got a "
            f"{type(eval_set).__name__} of {len(sets)}: {kinds}"
        )
    arguments: list[dict[str, Any]] = [{} for _ in sets]
    for name, values in more.items():
        each = _for_each(values, len(sets), name)
        for one, value in zip(arguments, each, strict=True):
            one[name] = value
    return [(X, y, more) for (X, y), more in zip(sets, arguments, strict=True)]


def _for_each(values: Any, n: int, name: str) -> list[Any]:
    """Return one array per set; a single set may have an array or a list of one."""
    if values is None or isinstance(values, str):  # a string names a column of each
        return [values] * n
    listed = isinstance(values, list | tuple) and all(
        value is None or np.ndim(value) == 1 for value in values
    )
    if n == 1 and not (listed and len(values) == 1):
        return [values]
    if not listed or len(values) != n:
        raise ValueError(
            f"{name} must be a list of {n} arrays, one for each eval_set; got "
            f"{type(values).__name__}"
        )
    return list(values)
