"""Online ensembles of PRanks that sample one stream: their mean (OAP-BPM) and their votes."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar, Literal

import numpy as np

from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.params import check_declared
from rankcore._ext.rows import Rows
from rankcore.ordinal._base import OnlineOrdinalClassifier
from rankcore.ordinal._members import OAP, SamplingParams
from rankcore.ordinal._parameters import EpochParams, MarginParams, VoteParams
from rankcore.ordinal._projecting import Thresholds, Voters, VotesRanks, cumulated
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.prank import Direction

__all__ = ["OAPBPM", "OAPBagging", "OAPVoting"]


@parameters
class BPMParameters(MarginParams, SamplingParams, EpochParams):
    """Parameters of `OAPBPM`."""


@documented()
class OAPBPM(BPMParameters, OAP, Direction, Thresholds, OnlineOrdinalClassifier):
    """Online approximation of the Bayes point: the mean of PRanks that sample one stream.

    Parameters
    ----------
    margin
        The mean of members gains nothing from "auto", and loses by it on raw features.

    Notes
    -----
    Algorithm 2 of [1]_. An example costs the updates of the ``tau * n_estimators`` members that
    take it, and one for the mean; a prediction costs the same as with PRank. Memory: n_estimators
    times PRank's.

    The weight of a row multiplies the expected number of times that a member takes it: ``tau``
    times the weight, with a certain integer part and a random fraction, or the mean of the Poisson
    variable.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    References
    ----------
    .. [1] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPBPM(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPBPM(5, random_state=0)],
    )


class MembersVote:
    """Votes of the members of an `OAP`, one each; a base class before `VotesRanks`. Not public."""

    def _votes(self, state: OnlineRecord) -> np.ndarray:
        """Return the votes of the members."""
        return np.ones(state.settings["n_estimators"], dtype=np.int64)

    def _scored(self: Any, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        scores, winners = VotesRanks._scored(self, rows)
        # The members' mean breaks ties of votes: it adds less than half a vote, so that no other
        # order changes.
        mean = cumulated(Direction._projected(self, rows)[:, None] - self._cuts())
        short = mean - mean.max(axis=1, keepdims=True)
        n_votes = max(1, int(self._votes(self._state).sum()))
        scale = float(self._state.model["scale"][0])
        return scores + short / (scale - short) / (4 * n_votes), winners

    def _voters(self: Any) -> Voters:
        weights, thresholds = self._state.model.members()
        return Voters(weights, thresholds, self._votes(self._state))


@parameters
class BaggingParameters(MarginParams, VoteParams, SamplingParams, EpochParams):
    """Parameters of `OAPBagging`."""


@documented()
class OAPBagging(
    BaggingParameters, MembersVote, VotesRanks, OAP, Direction, Thresholds, OnlineOrdinalClassifier
):
    """Online bagging of PRanks: members that sample one stream have one vote each on the rank.

    Notes
    -----
    Trained as `OAPBPM`; a prediction costs n_estimators times PRank's. ``project`` returns the mean
    of the members' ranks, on the scale 1 .. n_classes, as evaluated in the tables of Harrington
    (ICML 2003). A mean or median may be a declared rank that no training row has, between two
    others.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPBagging(max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPBagging(5, sampling="poisson", random_state=0)],
    )


@parameters
class VotingParameters(MarginParams, VoteParams, SamplingParams, EpochParams):
    """Parameters of `OAPVoting`."""

    _: KW_ONLY
    weight: Literal["total", "survival"] = "total"


@documented()
class OAPVoting(
    VotingParameters, MembersVote, VotesRanks, OAP, Direction, Thresholds, OnlineOrdinalClassifier
):
    """`OAPBagging` in which a member has one vote per example it ranked correctly.

    Parameters
    ----------
    weight : {"total", "survival"}, default="total"
        Count all examples that a member took and ranked correctly, or those since its last mistake.

    Notes
    -----
    OAP-VP of Harrington (ICML 2003). If no member has votes, all have one. A mean or median of
    ranks may be a declared rank that no training row has, between two others.

    Plain form: ``tests/reference/ensemble.py``, ``oap``.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = rc.OAPVoting(max_iter=20, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([3, 1, 2, 3])
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="draws",
        instances=lambda: [OAPVoting(5, average_members=False, random_state=0)],
    )

    def _votes(self, state: OnlineRecord) -> np.ndarray:
        check_declared(self, "weight")
        seen = state.model["seen"]
        votes = state.model["survived"] if self.weight == "survival" else seen[:, 0] - seen[:, 2]
        return votes[: state.settings["n_estimators"]]
