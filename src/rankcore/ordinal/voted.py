"""Voted PRank: a vote of past hypotheses."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.hypotheses import MAX_HYPOTHESES, limited, warn_of_dropped_votes
from rankcore._core.params import Constraints, Integer
from rankcore._ext.rows import Rows
from rankcore._ext.voted import VotedModel
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._parameters import EpochParams, MarginParams, VoteParams
from rankcore.ordinal._projecting import Voters, VotesRanks
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal._scale import scale_setting

__all__ = ["VotedPRank"]

# Initial capacity for past hypotheses, if all are kept.
FIRST_ROOM = 16


@parameters
class VotedParameters(MarginParams, VoteParams, EpochParams):
    """Parameters of `VotedPRank`."""

    margin: float | str = "auto"
    _: KW_ONLY
    count_init: int = 1
    max_hypotheses: int | str | None = "auto"


@documented()
class VotedPRank(VotedParameters, VotesRanks, OnlineOrdinalClassifier):
    """Voted PRank: each past hypothesis has as many votes as examples it survived.

    Parameters
    ----------
    count_init : {1, 0}, default=1
        Initial votes of a hypothesis: 1 counts the example that created it.
    max_hypotheses : int, "auto" or None, default="auto"
        Keep only the hypotheses with most votes, the oldest of ties; ``partial_fit`` copies them
        once per call. "auto" keeps 5000, or as many as fit into 32 MB, and warns if they have less
        than half of the votes. None keeps all, which takes n_features numbers per mistake, and up
        to three times that while the array grows.
    margin
        Each row that moves a threshold ends a hypothesis. A margin was better on 15 of 18
        standardised data sets, and worse on one of sparse text, SST-5: set 0 there.

    Attributes
    ----------
    hypotheses_ : ndarray of float64, shape (n_hypotheses, n_features)
        Directions, oldest first, the current one last (a copy).
    hypothesis_thresholds_ : ndarray of float64, shape (n_hypotheses, n_classes - 1)
        Their thresholds (a copy).
    votes_ : ndarray of int64, shape (n_hypotheses,)
        Their votes (a copy).
    loss_curve_
        The losses are those of the latest hypothesis.

    Notes
    -----
    Voting after [1]_. ``project`` returns the mean rank, on the scale 1 .. n_classes. If no
    hypothesis has votes, all have one. A prediction costs O(non-zeros * n_hypotheses); the first
    one after an example also copies the hypotheses. Weights are visits, as in `PRank`.

    A mean or median of ranks may be a declared rank that no training row has, between two others.

    Plain form: ``tests/reference/ensemble.py``, ``voted``.

    References
    ----------
    .. [1] Y. Freund and R. E. Schapire. "Large Margin Classification Using the Perceptron
       Algorithm". Machine Learning 1999.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [1, -1], [0, 1]], [2, 1, 3, 2, 3]
    >>> model = rc.VotedPRank.published().fit(X, y)
    >>> model.votes_
    array([0, 1, 1, 1, 2])
    >>> model.project([[2, 1]])
    array([2.4])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            VotedPRank(max_iter=1, random_state=0),
            VotedPRank(max_hypotheses=7, count_init=0, output="median", random_state=0),
        ],
    )

    _model_class = VotedModel
    _checks_constant = False  # a prediction may cost more than the fit

    _published: ClassVar[dict[str, Any]] = {"max_hypotheses": None}
    _built_in: ClassVar = {
        "threshold_scale": scale_setting,
        "margin": scale_setting,
        "count_init": int,
        "max_hypotheses": lambda limit: limit if isinstance(limit, str | None) else int(limit),
    }
    _constraints: ClassVar[Constraints] = {
        "count_init": Integer(0, 1),
        "max_hypotheses": MAX_HYPOTHESES,
    }

    @property
    @consistent_read
    def hypotheses_(self) -> np.ndarray:
        """Directions, oldest first, shape (n_hypotheses, n_features)."""
        return self._parameters()[0].copy()

    @property
    @consistent_read
    def hypothesis_thresholds_(self) -> np.ndarray:
        """Thresholds of the hypotheses, shape (n_hypotheses, n_classes - 1)."""
        return self._parameters()[1].copy()

    @property
    @consistent_read
    def votes_(self) -> np.ndarray:
        """Votes of the hypotheses, shape (n_hypotheses,)."""
        return self._fitted_state().model.lineup()[2]

    def _warn_of_fit(self) -> None:
        if self.max_hypotheses == "auto":
            state = self._fitted_state()
            votes = state.model.lineup()[2]
            warn_of_dropped_votes(
                votes.size, int(state.model["progress"][2]) + 1, votes.sum() / max(state.t, 1)
            )

    def _voters(self) -> Voters:
        hypotheses, cuts, votes = self._parameters()
        return Voters(hypotheses[:, :, None], cuts[:, :, None], votes)  # tiles of one

    def _learn_few(self, state: OnlineRecord, rows: Rows, ranks: np.ndarray) -> bool:
        return False  # the model may have to grow at any row

    def _new_model(self, n_features: int, n_ranks: int) -> VotedModel:
        room = limited(self.max_hypotheses, n_features) or FIRST_ROOM
        return VotedModel(n_features, n_ranks, self._settings(), room=room)
