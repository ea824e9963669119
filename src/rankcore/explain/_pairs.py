"""Explanation of why one row ranks above another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankcore._core.explained_model import ExplainedModel
from rankcore._core.ids import as_names
from rankcore._core.numbers import Floats, largest
from rankcore.explain._results import ExplanationResult, number, signed
from rankcore.metrics.tables import Table


@dataclass(frozen=True, repr=False)
class PairExplanation(ExplanationResult):
    """Explanation of the difference of two rows' scores, feature by feature.

    Attributes
    ----------
    a, b : str
        Names of the rows.
    feature_names : list of str
    contributions : ndarray of float64, shape (n_features,)
        Contribution of each feature to the score of ``a`` relative to ``b``; they sum to the
        difference.
    values_a, values_b : ndarray, shape (n_features,)
        The features of both rows: float64, or objects if some are categories.
    score_a, score_b : float
    decisive : list of int, or None
        The smallest set of features whose contributions make up the difference, largest first:
        with their values from the lower row, the higher row scores no higher than it. Empty if the
        scores are equal; None for trees with interactions.
    score_name : str
        What the score is; of `OrdinalBoost` the log-odds of the highest rank against the lowest.
    """

    a: str
    b: str
    feature_names: list[str]
    contributions: Floats
    values_a: NDArray[Any]
    values_b: NDArray[Any]
    score_a: float
    score_b: float
    decisive: list[int] | None
    score_name: str = "score"

    _plot = "plot_pair"

    @property
    def difference(self) -> float:
        """Score of ``a`` minus score of ``b``."""
        return self.score_a - self.score_b

    def __repr__(self) -> str:
        return f"<PairExplanation of {self.a} and {self.b}: {self.difference:+.6g}>"

    def headline(self) -> str:
        """Summarise which row ranks higher."""
        scores = f"{self.score_a:.4f} and {self.score_b:.4f}"
        if self.score_a == self.score_b:
            return f"{self.a} and {self.b} are equal: {self.score_name} {scores}"
        where = "above" if self.difference > 0 else "below"
        difference = f"{abs(self.difference):.4f}: {self.score_name} {scores}"
        return f"{self.a} is {where} {self.b} by {difference}"

    def tables(self) -> list[Table]:
        """Tabulate features in descending order of their contribution to the difference."""
        listed = largest(self.contributions, self._listed)
        rows = [
            (
                self.feature_names[j],
                number(self.values_a[j]),
                number(self.values_b[j]),
                signed(self.contributions[j]),
            )
            for j in listed
        ]
        others = np.flatnonzero(self.contributions).size - len(listed)
        if others:
            rest = float(self.difference - self.contributions[listed].sum())
            rows.append((f"{others} others", "", "", signed(rest)))
        caption = f"contributions to the score of {self.a} minus that of {self.b}"
        if self.decisive:
            names = ", ".join(self.feature_names[j] for j in self.decisive[: self._listed])
            more = " and others" if len(self.decisive) > self._listed else ""
            caption += f"; decided by {names}{more}"
        return [Table(("feature", self.a, self.b, "adds"), rows, caption)]


def pair(
    model: BaseEstimator,
    a: ArrayLike,
    b: ArrayLike,
    *,
    names: Sequence[str] = ("a", "b"),
    feature_names: Sequence[str] | None = None,
) -> PairExplanation:
    """Explain why one row scores higher than another, by contributions to the difference.

    Parameters
    ----------
    model : estimator
        A fitted learner with ``contributions``, or a pipeline or search that ends in one. Features
        are then the columns of its input, and the words of texts: the columns that steps make of
        one column, such as a category, are one feature.
    a, b : array-like, shape (n_features,) or (1, n_features)
        The rows, dense, sparse or of a data frame; texts for a pipeline of texts.
    names : pair of str
        Names of the rows.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.

    Returns
    -------
    PairExplanation

    Raises
    ------
    TypeError
        If the score is not a sum over features, or a step mixes columns.
    ValueError
        On bad input.

    Notes
    -----
    These are the contributions to ``a`` with ``b`` as background: ``w * (a - b)`` for weights, the
    difference of two values of a step function for stumps, Shapley values for trees.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y, qid = rc.datasets.make_letor(20, 10, random_state=0)
    >>> model = rc.RankSVM().fit(X, y, qid=qid)
    >>> why = rc.explain.pair(model, X[0], X[1])
    >>> bool(abs(why.contributions.sum() - why.difference) < 1e-12)
    True
    """
    explained = ExplainedModel(model, feature_names)
    row_names = as_names(names, "names")
    if len(row_names) != 2:
        raise ValueError(f"names must name two rows; got {names!r}")
    a, b = explained.one_row(a, "a"), explained.one_row(b, "b")
    values, score_b = explained.dense(a, b)
    parts = values[0]
    return PairExplanation(
        str(row_names[0]),
        str(row_names[1]),
        explained.names,
        parts,
        explained.values(a)[0],
        explained.values(b)[0],
        score_b + float(parts.sum()),
        score_b,
        _decisive(parts) if explained.additive else None,
        explained.score_name(),
    )


def _decisive(parts: Floats) -> list[int]:
    """Find the smallest set of features without which the difference is zero or reversed."""
    difference = float(parts.sum())
    signs = np.sign(difference) * parts
    order = np.argsort(-signs, kind="stable")
    order = order[signs[order] > 0]
    left = abs(difference) - np.cumsum(signs[order])
    # Up to rounding of the remaining sum.
    enough = np.flatnonzero(left <= 1e-12 * np.abs(parts).sum())
    return order[: enough[0] + 1].tolist() if difference and enough.size else []
