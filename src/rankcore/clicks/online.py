"""Online learning from clicks: pairwise differentiable gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import RowsLike
from rankcore._core.concurrency import consistent_read, exclusive
from rankcore._core.declaration import Declaration
from rankcore._core.fitted import keep_names
from rankcore._core.kernels import as_matrix
from rankcore._core.model_spec import (
    Field,
    ModelSpec,
    SerializableMixin,
    check_n_features,
    read_fields,
)
from rankcore._core.numbers import Floats, as_reals, check_scores
from rankcore._core.params import COUNT, Constraints, Real
from rankcore._core.scoring import Scoring
from rankcore._ext.online_model import MOST_COUNTED
from rankcore._ext.rows import Rows, project

# Arrays of a model file.
FIELDS = {"weights": Field(("features",)), "list_weights": Field(("features",))}


@dataclass(frozen=True)
class State:
    """Weights after some impressions; each impression creates a new state."""

    weights: Floats  # (n_features,): for predictions
    list_weights: Floats  # (n_features,): for the next list
    t: int
    spread: float = 0.0  # running variance of the features within a query; 0: none yet


class PairwiseGradientRanker(SerializableMixin, BaseEstimator):
    """A linear ranker that learns from the clicks on its own lists.

    Lists are sampled by the scores, with better documents more often on top. Weights move towards
    clicked documents and away from those that were seen and not clicked. No propensities are
    needed.

    Parameters
    ----------
    learning_rate : float, default=1.0
        Step size, above 0.
    length : int, default=10
        Maximum number of documents of a list.
    alpha : float, default=0.0006
        Shrinkage, at least 0: each step divides the weights by 1 + learning_rate * alpha. Without
        it, weights grow with the impressions of the same queries and fit their chance relevance.
    temperature : float, default=1.0
        Lists are sampled by scores divided by ``temperature``, above 0. A low one exploits: lists
        are near the order of the scores. A high one explores.
    spread : float, default=0.001
        Minimum weight of the latest impression in the running variance of features within a query,
        from 0 to 1. The step size is divided by this variance, summed over features, so that one
        step size and temperature fit features on any scale. 0: it is not divided.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        Weights for predictions: the mean of the weights after each impression, with linearly
        increasing weights.
    list_coef_ : ndarray of float64, shape (n_features,)
        Weights for the next list; 0 before the first impression.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    spread_ : float
        Running variance of features within a query, summed over features.
    t_ : int
        Number of impressions.

    Notes
    -----
    Pairwise differentiable gradient descent (Oosterhuis and de Rijke, 2018). A list R is drawn from
    the Plackett-Luce model of f, the scores divided by ``temperature``. A clicked document k
    is preferred to each document l without a click, above the last click or directly below it. The
    step of the pair is the gradient of its probability exp(f_k) / (exp(f_k) + exp(f_l)), times
    P(R*) / (P(R) + P(R*)), where R* is R with the two documents swapped: in expectation a pair
    therefore counts the same with either document on top. With a constant step size the weights for
    lists keep fluctuating; their mean is the better ranker. Impressions without such a pair have no
    effect on weights. With ``spread`` above 0, lists do not depend on a common factor of features,
    as the step of normalised least mean squares. Single features should still be on one
    scale, for example by ``StandardScaler``. O(n_documents n_features + length^3) for an
    impression. Plain form: ``tests/reference/pdgd.py``, ``gradient``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.clicks.online import PairwiseGradientRanker
    >>> rng, ranker = np.random.default_rng(0), PairwiseGradientRanker(length=5)
    >>> for seed in range(500):
    ...     X = rng.normal(size=(20, 3))
    ...     shown = ranker.rank(X, seed=seed)
    ...     clicked = X[shown, 1] > 1  # what users like
    ...     ranker = ranker.partial_fit(X, shown, clicked)
    >>> int(np.argmax(ranker.coef_))
    1
    """

    _declaration: ClassVar = Declaration(
        guide="interleaving",
        learns_from="clicks",
        instances=lambda: [PairwiseGradientRanker()],
    )

    _constraints: ClassVar[Constraints] = {
        "learning_rate": Real(0, 1e100, closed="right"),
        "length": COUNT,
        "alpha": Real(0, 1e100),
        "temperature": Real(0, 1e100, closed="right"),
        "spread": Real(0, 1),
    }

    def __init__(
        self,
        learning_rate: float = 1.0,
        *,
        length: int = 10,
        alpha: float = 0.0006,
        temperature: float = 1.0,
        spread: float = 0.001,
    ) -> None:
        self.learning_rate = learning_rate
        self.length = length
        self.alpha = alpha
        self.temperature = temperature
        self.spread = spread

    @consistent_read
    def rank(self, X: RowsLike, *, seed: int) -> NDArray[np.intp]:
        """Draw a list for an impression.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_documents, n_features)
            Documents of a query.
        seed : int
            Seed of the list; use a different one for each impression.

        Returns
        -------
        ndarray of intp, shape (min(length, n_documents),)
            Rows of X, best first.
        """
        self._check_params()
        scores = self._list_scores(self._known_rows(X))
        # The order of scores with Gumbel noise is one of the Plackett-Luce model.
        noisy = self._scaled(scores) + np.random.default_rng(seed).gumbel(size=scores.size)
        return np.argsort(-noisy, kind="stable")[: self.length]

    @exclusive
    def partial_fit(self, X: RowsLike, shown: ArrayLike, clicked: ArrayLike) -> Self:
        """Learn from an impression.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_documents, n_features)
            Documents of the query, as for `rank`.
        shown : array-like of int, shape (n_shown,)
            The list that `rank` drew.
        clicked : array-like of bool, shape (n_shown,)
            Or 0 and 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For features that are not finite or differ in number, a list with invalid or repeated
            rows, or clicks of the wrong length or value.
        """
        return self._learn(X, shown, clicked)

    def fit(self, X: RowsLike, shown: ArrayLike, clicked: ArrayLike) -> Self:
        """Reset the model and learn from one impression, as `partial_fit`.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_documents, n_features)
            Documents of the query, as for `rank`.
        shown : array-like of int, shape (n_shown,)
            The list that `rank` drew.
        clicked : array-like of bool, shape (n_shown,)
            Or 0 and 1.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            For features that are not finite or differ in number, a list with invalid or repeated
            rows, or clicks of the wrong length or value.
        """
        fitted = clone(self)._learn(X, shown, clicked)
        self._replace_with(fitted)
        return self

    def _learn(self, X: Any, shown: Any, clicked: Any) -> Self:
        self._check_params()
        rows = self._known_rows(X)
        places, clicks = _checked(shown, clicked, rows.n_rows)
        zeros = np.zeros(rows.n_features)
        before: State = self.__dict__.get("_state", State(zeros, zeros, 0))
        step = _gradient(self._scaled(self._list_scores(rows)), places, clicks)
        spread = self._next_spread(before, rows)
        moved = before.list_weights
        if step.any():
            size = self.learning_rate / (spread or 1.0)
            moved = moved + size * (step @ as_matrix(rows)[places])
            moved /= 1.0 + self.learning_rate * self.alpha
        if not np.isfinite(moved).all():
            raise ValueError("weights would overflow: bring features to one scale")
        t = before.t + 1
        # Impression s has the weight s.
        mean = before.weights + (moved - before.weights) * (2.0 / (t + 1))
        if not before.t:
            keep_names(self, X)
        self._state = State(mean, moved, t, spread)
        return self

    @consistent_read
    def predict(self, X: RowsLike) -> Floats:
        """Score documents, higher for better.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_documents, n_features)

        Returns
        -------
        ndarray of float64, shape (n_documents,)
        """
        check_is_fitted(self)
        rows = self._more_rows(X)
        scores = np.empty(rows.n_rows)
        project(rows, self._state.weights, scores)
        return np.asarray(check_scores(scores))

    @property
    def coef_(self) -> Floats:
        """Weights for predictions, shape (n_features,)."""
        return self._fitted_state().weights.copy()

    @property
    def list_coef_(self) -> Floats:
        """Weights for the next list, shape (n_features,)."""
        return self._fitted_state().list_weights.copy()

    @property
    def spread_(self) -> float:
        """Running variance of features within a query."""
        return self._fitted_state().spread

    @property
    def t_(self) -> int:
        """Number of impressions."""
        return self._fitted_state().t

    # ---------------------------------------------------------------- model files

    def _describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        state = self._state
        return {"t": state.t, "spread": state.spread}, {
            name: getattr(state, name) for name in FIELDS
        }

    def _scoring(self, arrays: Mapping[str, NDArray[Any]]) -> Scoring:
        return Scoring("linear", {"weights": arrays["weights"]})

    def _restore(self, spec: ModelSpec) -> None:
        n_features = check_n_features(spec.n_features)
        t = spec.facts["t"]
        if type(t) is not int or not 1 <= t <= MOST_COUNTED:
            raise ValueError(
                f"the number of impressions must be an integer in [1, {MOST_COUNTED}]; got {t!r}"
            )
        spread = spec.facts["spread"]
        if type(spread) is not float or not 0 <= spread < np.inf:
            raise ValueError(f"the spread of features must be a float in [0, inf); got {spread!r}")
        arrays = read_fields(spec.arrays, FIELDS, features=n_features)
        self._state = State(**arrays, t=t, spread=spread)
        self.n_features_in_ = n_features

    def _fit_summary(self) -> dict[str, Any]:
        return self._summary()

    def _summary(self) -> dict[str, Any]:
        return {"impressions": self.t_}

    def _known_rows(self, X: Any) -> Rows:
        """Convert documents to rows, with the features of previous impressions."""
        return self._more_rows(X) if "_state" in self.__dict__ else self._as_rows(X)

    def _list_scores(self, rows: Rows) -> Floats:
        """Score documents for lists; zeros before the first impression."""
        scores = np.zeros(rows.n_rows)
        if "_state" in self.__dict__:
            project(rows, self._state.list_weights, scores)
        return np.asarray(check_scores(scores))

    def _scaled(self, scores: Floats) -> Floats:
        """Divide scores by the temperature."""
        with np.errstate(over="ignore"):
            return np.asarray(check_scores(scores / self.temperature))

    def _next_spread(self, before: State, rows: Rows) -> float:
        """Update the running variance: a mean at first, then with a fixed weight."""
        variance = _variance(rows) if self.spread else 0.0
        if not before.spread or not variance:
            return before.spread or variance
        return before.spread + max(self.spread, 1.0 / (before.t + 1)) * (variance - before.spread)


def _variance(rows: Rows) -> float:
    """Compute the variance of features within a query, summed over features."""
    X: Any = as_matrix(rows)
    if not rows.n_rows:
        return 0.0
    if isinstance(X, np.ndarray):
        return float(X.var(axis=0, dtype=np.float64).sum())
    mean = np.asarray(X.mean(axis=0), dtype=np.float64).ravel()
    data: Floats = X.data.astype(np.float64)
    return max(0.0, float(data @ data / rows.n_rows - mean @ mean))


def _checked(shown: Any, clicked: Any, n: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    places = as_reals(shown, "shown")
    if places.ndim != 1 or places.dtype.kind not in "iu" or len({*places.tolist()}) < places.size:
        raise ValueError("shown must list different row numbers of X")
    if places.size and not 0 <= places.min() <= places.max() < n:
        raise ValueError(f"shown must be rows of X, 0 to {n - 1}")
    clicks = as_reals(clicked, "clicked")
    if clicks.shape != places.shape or not np.isin(clicks, (0, 1)).all():
        raise ValueError(f"clicked must be {places.size} values of 0 or 1, one per document shown")
    return places.astype(np.intp), clicks.astype(bool)


def _gradient(scores: Floats, shown: NDArray[np.intp], clicked: NDArray[np.bool_]) -> Floats:
    """Compute the gradient of each score of a list."""
    step = np.zeros(shown.size)
    if not clicked.any() or clicked.all():
        return step
    last = int(np.flatnonzero(clicked)[-1])
    winners = np.flatnonzero(clicked)
    losers = np.flatnonzero(~clicked[: last + 2])
    if not losers.size:
        return step
    strength = np.exp(scores - scores.max())
    listed = strength[shown]
    # Strength left at each place: of the rest of the list and of the documents not shown.
    rest = np.delete(strength, shown).sum()
    left = rest + listed[::-1].cumsum()[::-1]
    won, lost = (each.ravel() for each in np.meshgrid(winners, losers, indexing="ij"))
    above, below = np.minimum(won, lost), np.maximum(won, lost)
    # The swap changes what is left behind the upper place, down to the lower one.
    place = np.arange(shown.size)
    between = (place > above[:, np.newaxis]) & (place <= below[:, np.newaxis])
    change = (listed[above] - listed[below])[:, np.newaxis]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.where(between, np.log(left) - np.log(left + change), 0.0).sum(axis=1)
        gap = scores[shown[won]] - scores[shown[lost]]
        rho = 1.0 / (1.0 + np.exp(-ratios))
        size = rho / (2.0 + np.exp(gap) + np.exp(-gap))
    size = np.where(np.isfinite(size), size, 0.0)
    np.add.at(step, won, size)
    np.add.at(step, lost, -size)
    return step
