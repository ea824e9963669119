"""Voted PRank: a vote of past hypotheses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.hypotheses import MAX_HYPOTHESES, limited, warn_of_dropped_votes
from rankcore._core.model_spec import outline
from rankcore._core.params import Constraints, Integer
from rankcore._core.state import MOST_COUNTED, OnlineState, are_counts, widened
from rankcore._ext.voted import Voted, place
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._parameters import EpochParams, MarginParams, VoteParams
from rankcore.ordinal._projecting import Voters, VotesRanks
from rankcore.ordinal._scale import margin_of, scale_setting
from rankcore.ordinal.prank import check_thresholds, scale_of

__all__ = ["VotedPRank"]

# Arrays with one entry per past hypothesis, and their initial capacity.
PER_HYPOTHESIS = ("hypotheses", "cuts", "votes", "born")
FIRST_ROOM = 16


class VotedState(OnlineState):
    """State with past hypotheses: all, with spare capacity, or those with most votes.

    ``others["progress"]`` has the number of kept hypotheses, the votes of the current one, and the
    number of hypotheses so far.
    """

    earlier = ("hypotheses", "cuts")

    @property
    def kept(self) -> int:
        """Number of past hypotheses."""
        return int(self.others["progress"][0])

    def make_room(self) -> bool:
        """Double the capacity for past hypotheses if all are kept and it is exhausted."""
        if self.settings["max_hypotheses"] is not None or self.kept < self.others["votes"].size:
            return False
        for arrays in (self.by_feature, self.others):
            for name in arrays.keys() & set(PER_HYPOTHESIS):
                n, *rest = arrays[name].shape
                arrays[name] = widened(arrays[name], (2 * n, *rest))
        return True


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
        return self._all_hypotheses()[0].copy()

    @property
    @consistent_read
    def hypothesis_thresholds_(self) -> np.ndarray:
        """Thresholds of the hypotheses, shape (n_hypotheses, n_classes - 1)."""
        return self._all_hypotheses()[1].copy()

    @property
    @consistent_read
    def votes_(self) -> np.ndarray:
        """Votes of the hypotheses, shape (n_hypotheses,)."""
        return self._lineup(self._fitted_state())[2]

    def _lineup(self, state: VotedState) -> tuple[np.ndarray, bool, np.ndarray]:
        """Voting hypotheses, oldest first, with the current one treated as after a mistake.

        Returns indices of past hypotheses, whether the current one follows them, and all votes.
        """
        others = state.others
        capped = state.settings["max_hypotheses"] is not None
        displaced = place(others["votes"], others["born"], others["progress"], capped)
        past = np.argsort(others["born"][: state.kept])
        past = past[past != displaced]  # displaced by the current one
        present = displaced >= 0
        votes = np.append(others["votes"][past], others["progress"][1 : 1 + present])
        return past, present, votes

    def _all_hypotheses(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hypotheses, thresholds and votes; one copy, kept until the next example."""
        state = self._fitted_state()

        def gather() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            past, present, votes = self._lineup(state)

            def lined_up(kept: np.ndarray, last: np.ndarray) -> np.ndarray:
                out = np.empty((votes.size, last.size))
                # In any other mode, `take` fills a copy of `out` first.
                kept.take(past, axis=0, out=out[: past.size], mode="clip")
                if present:
                    out[-1] = last
                return out

            hypotheses, others = state.by_feature["hypotheses"][:, :, 0], state.others
            return (
                lined_up(hypotheses, state.by_feature["weights"]),
                lined_up(others["cuts"], others["thresholds"]),
                votes,
            )

        return state.averaged(gather)

    def _warn_of_fit(self) -> None:
        if self.max_hypotheses == "auto":
            state = self._fitted_state()
            votes = self._lineup(state)[2]
            warn_of_dropped_votes(
                votes.size, int(state.others["progress"][2]) + 1, votes.sum() / max(state.t, 1)
            )

    def _voters(self) -> Voters:
        hypotheses, cuts, votes = self._all_hypotheses()
        return Voters(hypotheses[:, :, None], cuts[:, :, None], votes)  # tiles of one

    def _new_state(
        self, n_features: int, n_ranks: int, like: Mapping[str, np.ndarray] | None = None
    ) -> VotedState:
        zeros = np.zeros if like is None else outline
        room = limited(self.max_hypotheses, n_features) or FIRST_ROOM
        if like is not None:
            room = like["others.votes"].size
        by_feature = {
            "weights": zeros(n_features),
            "hypotheses": zeros((room, n_features, 1)),  # tiles of one
        }
        others = {
            "steps": zeros(n_ranks - 1, dtype=np.int64),
            "thresholds": zeros(n_ranks - 1),
            "cuts": zeros((room, n_ranks - 1)),
            "votes": zeros(room, dtype=np.int64),
            "born": zeros(room, dtype=np.int64),
            "progress": zeros(3, dtype=np.int64),
            **self._other_arrays(n_ranks, zeros),
        }
        return VotedState(by_feature, others, settings=self._settings())

    def _check_state(self, state: OnlineState, n_ranks: int) -> None:
        others = state.others
        check_thresholds(others)
        kept = others["progress"][0]
        if (
            kept > others["votes"].size
            or not are_counts(others["progress"], others["votes"], others["born"])
            or others["votes"].sum(dtype=np.float64) > MOST_COUNTED
        ):
            raise ValueError(
                f"the votes must be from 0 to {MOST_COUNTED}, of at most {others['votes'].size} "
                f"hypotheses; found {kept}"
            )
        if (np.diff(others["cuts"][:kept], axis=1) < 0).any():
            raise ValueError("the thresholds of each hypothesis must ascend")

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
            others["progress"],
            scale_of(state),
            margin_of(state),
            self.tie == "strict",
            state.settings["count_init"],
            state.settings["max_hypotheses"] is not None,
        )
