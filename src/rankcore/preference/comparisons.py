"""Comparisons, their answers, and what a sampler says of its uncertainty."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankcore._core.numbers import Floats
from rankcore.preference.forms import shown

# Answers of a judge before the sampler says that they do not depend on the items.
ENOUGH = 30
# It says so of a reliability closer to 0 than the first number, or if the fraction of answers for
# the item shown first is further from 1/2 than the second.
USELESS, _ONE_SIDED = 0.15, 0.4
# Answers whose degrees of both items differ by less on average are ties.
_TIES = 0.1


@dataclass(frozen=True)
class Comparison:
    """Items to compare, in the order in which they should be shown.

    Parameters
    ----------
    places : tuple of int
        Positions of two or more different items in the list of the sampler.
    judge : hashable, optional
        Name of the judge to ask, if there are several.
    items : tuple, default=()
        The items themselves; a sampler fills them in.
    """

    places: tuple[int, ...]
    judge: Hashable = None
    items: tuple[Any, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Uncertainty:
    """What a sampler does not know yet.

    Attributes
    ----------
    inversions : float
        Expected fraction of the pairs in the wrong order in the ranking, from 0 to 1/2.
    top : float
        Probability that the first ``top_k`` items are the right ones, in any order; 1 without
        ``top_k``.
    error_rate : ndarray, shape (n_judges,)
        Probability that a judge is wrong about random pairs of items: 1/2 for a coin, more for an
        adversary. The reliability in `Ratings` is 1 minus twice this.
    error_interval : ndarray, shape (n_judges, 2)
        90% credible intervals of the error rates.
    position_bias : ndarray, shape (n_judges,)
        Probability that a judge prefers the first of two equal items, minus 1/2.
    repeats_itself : ndarray, shape (n_judges,)
        Probability that a judge asked twice about a pair copies its first answer.
    warnings : tuple of str
        Judges whose answers do not depend on the items, depend only on the order shown, or prefer
        the worse item.
    """

    inversions: float
    top: float
    error_rate: Floats
    error_interval: Floats
    position_bias: Floats
    repeats_itself: Floats
    warnings: tuple[str, ...]


def who(name: Hashable) -> str:
    """Return how a sentence calls a judge."""
    return "the judge" if name is None else f"judge {name!r}"


def useless_judges(
    judges: tuple[Hashable, ...],
    n_answers: Floats,
    first_won: Floats,
    decided: Floats,
    reliability: Floats | None,
) -> dict[Hashable, str]:
    """Return sentences about judges whose answers do not depend on the items.

    ``first_won`` are the sums of the degrees of the items shown first, and ``decided`` of the
    absolute differences between the degrees of both items. Without ``reliability``, only judges who
    answer by the order shown are named.
    """
    sentences: dict[Hashable, str] = {}
    for j, (name, n) in enumerate(zip(judges, n_answers.tolist(), strict=True)):
        if n < ENOUGH:
            continue
        fraction = first_won[j] / n
        if abs(fraction - 0.5) > _ONE_SIDED:
            which = "first" if fraction > 0.5 else "second"
            sentences[name] = (
                f"{who(name)} prefers the item shown {which} in {max(fraction, 1 - fraction):.0%} "
                f"of {n:.0f} answers, whatever the items are"
            )
            continue
        # Degrees near 1/2 lower the reliability of a judge, although they may depend on the items.
        graded = decided[j] / n
        least = USELESS * (graded if graded > _TIES else 1.0)
        if reliability is not None and abs(reliability[j]) < least:
            sentences[name] = (
                f"answers of {who(name)} hardly depend on the items: a coin does as well"
            )
    return sentences


def judge_names(judges: Any) -> tuple[Hashable, ...]:
    """Return the different names of judges."""
    if judges is None:
        return (None,)
    if isinstance(judges, str):
        raise TypeError(f"judges must be a list of names; got {judges!r}: pass [{judges!r}]")
    names = tuple(judges)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"judges must be different names, at least one; got {list(names)}")
    return names


def as_degree(answer: Any, n: int) -> float:
    """Return the degree of an answer about two items."""
    if n != 2:
        raise ValueError(f"a degree is about two items; got {n}")
    if isinstance(answer, np.ndarray) and answer.ndim == 0:
        answer = answer.item()
    if not isinstance(answer, Real | np.bool_):
        raise TypeError(f"an answer must be a number in [0, 1] or a boolean; got {shown(answer)}")
    if not 0 <= float(answer) <= 1:
        raise ValueError(f"an answer must be a degree in [0, 1]; got {shown(answer)}")
    return float(answer)


def as_positions(named: Any, n: int, answer: Any) -> list[int]:
    """Return the different positions of n items that an answer names."""
    whole = all(isinstance(place, Integral) and not isinstance(place, bool) for place in named)
    if not whole or not all(0 <= place < n for place in named):
        raise ValueError(
            f"positions in an answer about {n} items must be integers from 0 to {n - 1}; "
            f"got {shown(answer)}"
        )
    if not len(named) or len(set(named)) < len(named):
        raise ValueError(
            "an order must have at least one position, and none twice; got " + shown(answer)
        )
    return [int(place) for place in named]


def prior_scores(prior: Any, n: int) -> Floats | None:
    """Return standardised prior scores of n items."""
    if prior is None:
        return None
    scores = np.asarray(prior)
    if scores.shape != (n,) or scores.dtype.kind not in "biuf":
        raise ValueError(
            f"prior must be one number for each of {n} items; got {scores.dtype} of shape "
            f"{scores.shape}"
        )
    scores = scores.astype(np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("prior must be finite; got NaN or an infinity")
    scores -= scores.mean()
    return np.asarray(scores / (scores.std() or 1.0))
