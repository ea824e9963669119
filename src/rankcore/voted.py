"""Votes on the rank: what becomes of them, and PRank whose past hypotheses vote."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_scalar

from rankcore._core.concurrency import reads
from rankcore._ext.ensemble import tally
from rankcore._ext.rows import Rows
from rankcore._ext.voted import Voted
from rankcore.base import OnlineOrdinalClassifier, OnlineState, check_option, check_reached
from rankcore.inputs import as_labels, encode
from rankcore.metrics import rank_loss
from rankcore.ordinal import check_lattice, check_rule

__all__ = ["VotedPRank"]

# Products of numbers to make between two looks at pending signals.
VOTING_VALUES = 2**22
OUTPUTS = ("round", "mean", "median", "plurality")
# Arrays with an entry a past hypothesis.
KEPT = ("hypotheses", "cuts", "votes", "born")


def count_votes(
    rows: Rows, weights: np.ndarray, thresholds: np.ndarray, votes: np.ndarray
) -> np.ndarray:
    """Votes of models for each rank of each row, shape (n_rows, n_ranks), int64.

    Parameters
    ----------
    rows : Rows
    weights : ndarray of float64, shape (n_tiles, n_features, width)
        Of all models, in tiles of some of them side by side.
    thresholds : ndarray of float64, shape (n_tiles, n_ranks - 1, width)
    votes : ndarray of int64, shape (n_models,)
        Votes of each model; if all are 0, each has one.
    """
    votes = votes if votes.any() else np.ones_like(votes)
    n_tiles, n_tasks, width = thresholds.shape
    out = np.zeros((rows.n_rows, n_tasks + 1), dtype=np.int64)
    # Between two calls Python looks at pending signals: some milliseconds' worth of products.
    row = width * max(1, rows.n_values // rows.n_rows)
    n_rows = max(1, VOTING_VALUES // row)
    n_each = max(1, VOTING_VALUES // (row * rows.n_rows))
    for first in range(0, n_tiles, n_each):
        for start in range(0, rows.n_rows, n_rows):
            last, stop = min(first + n_each, n_tiles), min(start + n_rows, rows.n_rows)
            reached = tally(rows, weights, thresholds, votes, first, last, start, stop, out)
            check_reached(reached, stop)
    return out


class VotesRanks(OnlineOrdinalClassifier):
    """A learner whose models vote on the rank; ``output`` says what becomes of the votes.

    A subclass provides ``_tally``.
    """

    output: str

    def _tally(self, rows: Rows) -> np.ndarray:
        """Votes for each rank, shape (n_rows, n_ranks), int64."""
        raise NotImplementedError

    def _scores(self, rows: Rows) -> np.ndarray:
        votes = self._tally(rows)
        return votes @ np.arange(1, votes.shape[1] + 1) / votes.sum(axis=1)

    def _ranks(self, rows: Rows) -> np.ndarray:
        check_option(self.output, "output", OUTPUTS)
        votes = self._tally(rows)
        if self.output == "plurality":
            return votes.argmax(axis=1)
        if self.output == "median":
            cumulative = votes.cumsum(axis=1)
            return (2 * cumulative >= cumulative[:, -1:]).argmax(axis=1)
        # The mean rank, halves up, in integers: floor((2 * sum + total) / (2 * total)).
        total = votes.sum(axis=1)
        return (2 * (votes @ np.arange(votes.shape[1])) + total) // (2 * total)

    @reads
    def predict(self, X: Any) -> np.ndarray:
        """The predicted label of each row, or with ``output="mean"`` a real value.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)

        Returns
        -------
        ndarray, shape (n_samples,)
            Labels; with ``output="mean"`` the mean rank on the scale of the (numeric) labels,
            float64.
        """
        if self.output != "mean":
            return super().predict(X)
        check_is_fitted(self)
        if self.classes_.dtype.kind not in "biuf":
            raise ValueError(
                f"output='mean' needs numeric labels; these are {self.classes_.tolist()}. Take "
                "output='round', or decision_function for mean ranks 1 .. n_classes"
            )
        ranks = np.arange(1, self.classes_.size + 1)
        return np.interp(self.decision_function(X), ranks, self.classes_.astype(np.float64))

    @reads
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Negated mean rank loss, of the real mean ranks with ``output="mean"``.

        Parameters
        ----------
        X : array-like or scipy sparse, shape (n_samples, n_features)
        y : array-like, shape (n_samples,)
            True labels, all among ``classes_``.
        sample_weight : array-like, shape (n_samples,), optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            At most 0, which is perfect; greater is better.
        """
        if self.output != "mean":
            return super().score(X, y, sample_weight)
        scores = self.decision_function(X)
        ranks = encode(as_labels(y, scores.size)[0], self.classes_) + 1
        return 0.0 - rank_loss(ranks, scores, sample_weight=sample_weight)


class VotedPRank(VotesRanks):
    """PRank whose past hypotheses vote, each with as many votes as examples it survived.

    Parameters
    ----------
    output : {"round", "mean", "median", "plurality"}, default="round"
        What is predicted: the mean of the votes rounded (halves up), the real mean, the smallest
        rank with half of the votes at or below it, or the rank of most votes (of equals the
        lowest).
    count_init : {1, 0}, default=1
        Votes a hypothesis is born with: 1 counts the example that created it.
    max_hypotheses : int, optional
        Keep only the hypotheses of most votes, of equal ones the oldest; ``partial_fit`` copies
        them once a call. By default all are kept, which takes n_features numbers for each mistake
        ever made.
    tie : {"crammer", "strict"}, default="crammer"
        As in `PRank`.
    threshold_scale : float, default=1.0
        As in `PRank`.
    max_iter : int, default=1
        Passes over the data in ``fit``.
    shuffle : bool, default=False
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling.
    verbose : int, default=0
        Print a line a pass if positive.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, lowest rank first.
    hypotheses_ : ndarray of float64, shape (n_hypotheses, n_features)
        Directions, oldest first, the present one last (a copy).
    hypothesis_thresholds_ : ndarray of float64, shape (n_hypotheses, n_classes - 1)
        Their thresholds (a copy).
    votes_ : ndarray of int64, shape (n_hypotheses,)
        Their votes (a copy).
    n_features_in_, feature_names_in_, n_iter_, t_, history_, loss_curve_
        As in `PRank`; the losses are those of the latest hypothesis.

    Notes
    -----
    Voting after [1]_. ``decision_function`` is the mean rank, on the scale 1 .. n_classes. If no
    hypothesis has a vote, all have one. A prediction costs O(non-zeros * n_hypotheses), the first
    after an example also a copy of the hypotheses, which is kept.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire. "Large Margin Classification Using the Perceptron
       Algorithm". Machine Learning 1999.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [1, -1], [0, 1]], [2, 1, 3, 2, 3]
    >>> model = rc.VotedPRank().fit(X, y)
    >>> model.votes_
    array([0, 1, 1, 1, 2])
    >>> model.decision_function([[2, 1]])
    array([2.4])
    """

    def __init__(
        self,
        output: str = "round",
        count_init: int = 1,
        max_hypotheses: int | None = None,
        tie: str = "crammer",
        threshold_scale: float = 1.0,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.output = output
        self.count_init = count_init
        self.max_hypotheses = max_hypotheses
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    @reads
    def hypotheses_(self) -> np.ndarray:
        """Directions, oldest first, shape (n_hypotheses, n_features)."""
        return self._electorate()[0].copy()

    @property
    @reads
    def hypothesis_thresholds_(self) -> np.ndarray:
        """Thresholds of the hypotheses, shape (n_hypotheses, n_classes - 1)."""
        return self._electorate()[1].copy()

    @property
    @reads
    def votes_(self) -> np.ndarray:
        """Votes of the hypotheses, shape (n_hypotheses,)."""
        return self._electorate()[2].copy()

    def _electorate(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hypotheses, thresholds and votes, with the present one among them, oldest first.

        Kept until the next example. A queue decides about the present one as after a mistake.
        """
        state = self._fitted_state()

        def gather() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            past, others = state.by_feature["hypotheses"][:, :, 0], state.others
            n = others["book"][0]
            if state.settings["max_hypotheses"] is None:
                return (
                    np.vstack([past[:n], state.by_feature["weights"]]),
                    np.vstack([others["cuts"][:n], others["thresholds"]]),
                    np.append(others["votes"][:n], others["book"][1]),
                )
            closed = OnlineState({}, {}, state.settings)
            for name, array in state.by_feature.items():
                closed.by_feature[name] = array.copy()
            closed.others = {name: array.copy() for name, array in others.items()}
            self._bind(closed).retire()
            n = closed.others["book"][0]
            oldest = np.argsort(closed.others["born"][:n])
            return (
                closed.by_feature["hypotheses"][oldest, :, 0],
                closed.others["cuts"][oldest],
                closed.others["votes"][oldest],
            )

        return state.averaged(gather)

    def _tally(self, rows: Rows) -> np.ndarray:
        hypotheses, cuts, votes = self._electorate()
        return count_votes(rows, hypotheses[:, :, None], cuts[:, :, None], votes)  # tiles of one

    def _check_params(self) -> None:
        self._check_common_params()
        check_option(self.output, "output", OUTPUTS)
        check_rule(self.tie, self.threshold_scale)
        check_scalar(self.count_init, "count_init", Integral, min_val=0, max_val=1)
        if self.max_hypotheses is not None:
            check_scalar(self.max_hypotheses, "max_hypotheses", Integral, min_val=1)

    def _settings(self) -> dict[str, Any]:
        limit = None if self.max_hypotheses is None else int(self.max_hypotheses)
        return {
            "threshold_scale": float(self.threshold_scale),
            "count_init": int(self.count_init),
            "max_hypotheses": limit,
        }

    def _new_arrays(
        self, n_features: int, n_ranks: int, capacity: int | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        capacity = capacity or self.max_hypotheses or 16
        by_feature = {
            "weights": np.zeros(n_features),
            "hypotheses": np.zeros((capacity, n_features, 1)),  # tiles of one
        }
        others = {
            "steps": np.zeros(n_ranks - 1, dtype=np.int64),
            "thresholds": np.zeros(n_ranks - 1),
            "cuts": np.zeros((capacity, n_ranks - 1)),
            "votes": np.zeros(capacity, dtype=np.int64),
            "born": np.zeros(capacity, dtype=np.int64),
            "book": np.zeros(3, dtype=np.int64),
        }
        return by_feature, others

    def _like_saved(
        self, n_features: int, n_ranks: int, saved: Mapping[str, np.ndarray]
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        return self._new_arrays(n_features, n_ranks, saved["others.votes"].size)

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        others = state.others
        check_lattice(others["steps"], others["thresholds"], state.settings["threshold_scale"])
        kept = others["book"][0]
        if (
            kept > others["votes"].size
            or (others["votes"] < 0).any()
            or (others["book"] < 0).any()
            or np.unique(others["born"][:kept]).size < kept
        ):
            raise ValueError("its votes or number of hypotheses are impossible")
        if (np.diff(others["cuts"][:kept], axis=1) < 0).any():
            raise ValueError("the thresholds of its hypotheses do not ascend")

    @property
    def _append_only(self) -> tuple[str, ...]:
        # A full queue overwrites what it has kept; without a limit nothing ever is.
        return () if self.max_hypotheses is not None else KEPT

    @property
    def _overwritten(self) -> tuple[str, ...]:
        # All columns of one that makes place for another.
        return () if self.max_hypotheses is None else ("hypotheses",)

    def _clear_free_ends(self, state: OnlineState) -> None:
        for name in self._append_only:  # it may be infinity, which no model file accepts
            state.array(name)[state.others["book"][0] :] = 0

    def _make_room(self, state: OnlineState) -> bool:
        capacity = state.others["votes"].size
        if state.settings["max_hypotheses"] is not None or state.others["book"][0] < capacity:
            return False
        grown = self._new_arrays(
            len(state.by_feature["weights"]), state.others["steps"].size + 1, 2 * capacity
        )
        grown[0]["hypotheses"][:capacity] = state.by_feature["hypotheses"]
        state.by_feature["hypotheses"] = grown[0]["hypotheses"]
        for name in ["cuts", "votes", "born"]:
            grown[1][name][:capacity] = state.others[name]
            state.others[name] = grown[1][name]
        return True

    def _bind(self, state: OnlineState) -> Any:
        others = state.others
        return Voted(
            state.by_feature["weights"],
            others["steps"],
            others["thresholds"],
            state.by_feature["hypotheses"][:, :, 0],
            others["cuts"],
            others["votes"],
            others["born"],
            others["book"],
            state.settings["threshold_scale"] ** 2,
            self.tie == "strict",
            state.settings["count_init"],
            state.settings["max_hypotheses"] is not None,
        )
