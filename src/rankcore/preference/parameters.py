"""Constraints on the parameters of a ranker."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from rankcore.preference.costs import METHODS
from rankcore.preference.forms import Batch, Indexed, Judges
from rankcore.preference.retry import Retry
from rankcore.preference.several import Choice


def check_parameters(ranker: Any) -> None:
    """Raise ValueError or TypeError for invalid parameters of a `PreferenceRanker`."""
    methods = ["auto", "rating", *METHODS]
    if ranker.method not in methods:
        raise ValueError(f"method must be one of {methods}; found {ranker.method!r}")
    if ranker.decide not in ("majority", "sample"):
        raise ValueError(f'decide must be "majority" or "sample"; found {ranker.decide!r}')
    least = {"top_k": 1, "max_calls": 0, "repeats": 1, "opponents": 2, "concurrency": 1, "batch": 1}
    for name, value in least.items():
        found = getattr(ranker, name)
        if found is None and name in ("top_k", "max_calls", "repeats", "batch"):
            continue
        if not isinstance(found, Integral) or isinstance(found, bool) or found < value:
            raise ValueError(f"{name} must be an integer from {value} on; found {found!r}")
    for name, most in (("noise", 0.5), ("confidence", 1.0)):
        found = getattr(ranker, name)
        real = isinstance(found, Real) and not isinstance(found, bool)
        if found is not None and not (real and 0 <= found <= most):
            raise ValueError(f"{name} must be None or a number from 0 to {most}; found {found!r}")
    if ranker.retry is not None and not isinstance(ranker.retry, Retry):
        raise TypeError(f"retry must be None or a Retry; found {ranker.retry!r}")
    for name in ("key", "progress"):
        found = getattr(ranker, name)
        if found is not None and not callable(found):
            raise TypeError(f"{name} must be None or a function; found {found!r}")
    if ranker.opponents % 2:
        raise ValueError(f"opponents must be even; found {ranker.opponents}")
    called = callable(ranker.preference) or isinstance(ranker.preference, Batch | Choice | Judges)
    known = called or isinstance(ranker.preference, Indexed)
    if not known and np.ndim(ranker.preference) != 2:
        raise TypeError(
            "preference must be a function of two items, a Batch, a Choice, an Order, Judges, an "
            "Indexed or a matrix; found "
            f"{type(ranker.preference).__name__}"
        )
    if isinstance(ranker.preference, Choice):
        if ranker.method not in ("auto", "halving", "rating", "heap"):
            raise ValueError(
                'a judge of several items takes method "auto", "halving", "rating" or "heap"; '
                f"found {ranker.method!r}"
            )
        if ranker.method == "heap" and ranker.preference.k < 3:
            raise ValueError(
                f"a heap of groups requires k of at least 3; found {ranker.preference.k}"
            )
        if ranker.both_orders or (ranker.repeats or 1) > 1:
            raise ValueError("repeats and both_orders require a judge of pairs")
    if ranker.journal is not None and (not called or not ranker.cache):
        raise ValueError(
            "a journal keeps answers of calls: it requires cache=True, and a preference that is "
            "called, not computed"
        )
