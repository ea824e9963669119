"""Voted PRank: a vote of past hypotheses."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.hypotheses import MAX_HYPOTHESES, limited, warn_of_dropped_votes
from rankcore._core.params import Constraints, Integer
from rankcore._ext.rows import Rows
from rankcore._ext.voted import VotedModel
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal._votes import (
    Voters,
    mean_ranks,
    measured_by_votes,
    predict,
    ranks_by_votes,
    scores_by_votes,
    votes_scoring,
)
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.parameters import resolved_margin
from rankcore.ordinal.projecting import project
from rankcore.ordinal.scale import MARGIN, OF_UNITS, SCALE, scale_setting

__all__ = ["VotedPRank"]


class VotedPRank(OnlineOrdinalClassifier):
    """Voted PRank: each past hypothesis has as many votes as examples it survived.

    Parameters
    ----------
    output : {"round", "mean", "median", "plurality"}, default="round"
        Prediction from the votes: their mean rounded (halves up), the real mean, the smallest rank
        with half of the votes at or below it, or the rank with most votes (the lowest of ties).
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default="auto"
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.
        Each row that moves a threshold ends a hypothesis. A margin was better on 15 of 18
        standardised data sets, and worse on one of sparse text, SST-5: set 0 there.
    count_init : {1, 0}, default=1
        Initial votes of a hypothesis: 1 counts the example that created it.
    max_hypotheses : int, "auto" or None, default="auto"
        Keep only the hypotheses with most votes, the oldest of ties; ``partial_fit`` copies them
        once per call. "auto" keeps 5000, or as many as fit into 32 MB, and warns if they have less
        than half of the votes; columns that appear later do not change this number. None keeps all.
        Each takes n_features numbers, and up to three times that while the array grows.
    max_iter : int, default=10
        Passes over the data in ``fit``.
    standardize : "auto" or False, default="auto"
        Learn from columns that are centred and divided by their deviation, those of the weighted
        rows of ``fit`` or, in `partial_fit`, of all rows up to the current one. The model is
        converted: it predicts, and is saved and exported, for rows as they are. Rows of which at
        most an eighth of the values are not 0, and columns of 0 and 1, are left alone. Without an
        intercept columns are divided by their root mean square. Constants that are "auto" follow
        from the standardised rows, of a stream from the first 16. False learns from rows as they
        are.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean rank loss is not lower than the best one by more
        than this, or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many successive passes that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels (higher is better). The
        first of a list is used for early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, multiplied with those of the rows; "balanced" gives each label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        All labels, lowest rank first; required for strings. By default the order of an ordered
        categorical, or the distinct numbers of y in ascending order.

    Attributes
    ----------
    hypotheses_ : ndarray of float64, shape (n_hypotheses, n_features)
        Directions, oldest first, the current one last (a copy).
    hypothesis_thresholds_ : ndarray of float64, shape (n_hypotheses, n_classes - 1)
        Their thresholds (a copy).
    votes_ : ndarray of int64, shape (n_hypotheses,)
        Their votes (a copy).
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
        The losses are those of the latest hypothesis.
    margin_ : float
        The resolved ``margin``.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Only if X had string column names.
    n_iter_ : int
        Number of passes, including those after the best one.
    best_iteration_ : int
        Number, from 1, of the pass with the best value of the first ``eval_metric``; the model has
        its parameters. Only with ``early_stopping_rounds``.
    t_ : int
        Examples learned from, over all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes``, ``rank_loss`` and ``average_rank_loss``; with an
        ``eval_set`` also each measure on it, as ``valid_rank_loss``.
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

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
    _one_direction = True
    _checks_constant = False  # a prediction may cost more than the fit

    _published: ClassVar[dict[str, Any]] = {"max_hypotheses": None}
    _built_in: ClassVar = {
        "threshold_scale": scale_setting,
        "margin": scale_setting,
        **OF_UNITS,
        "count_init": int,
        "max_hypotheses": lambda limit: limit if isinstance(limit, str | None) else int(limit),
    }

    _constraints: ClassVar[Constraints] = {
        "threshold_scale": SCALE,
        "margin": MARGIN,
        "count_init": Integer(0, 1),
        "max_hypotheses": MAX_HYPOTHESES,
    }

    margin_ = resolved_margin
    project = project
    predict = predict
    _projected = mean_ranks
    _ranks = ranks_by_votes
    _measured = measured_by_votes
    _scored = scores_by_votes
    _scoring = votes_scoring

    def __init__(
        self,
        output: Literal["round", "mean", "median", "plurality"] = "round",
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = "auto",
        *,
        count_init: int = 1,
        max_hypotheses: int | str | None = "auto",
        max_iter: int = 10,
        standardize: Literal["auto", False] = "auto",
        shuffle: bool = True,
        tol: float | None = None,
        early_stopping_rounds: int | None = None,
        eval_metric: Measures = "rank_loss",
        class_weight: ClassWeight | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
        classes: ArrayLike | None = None,
    ) -> None:
        self.output = output
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.count_init = count_init
        self.max_hypotheses = max_hypotheses
        self.max_iter = max_iter
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes

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

    def _learn_few(self, state: OnlineRecord, rows: Rows, ranks: np.ndarray) -> int:
        return 0  # the model may have to grow at any row

    def _new_model(self, n_features: int, n_ranks: int) -> VotedModel:
        limit = limited(self.max_hypotheses, n_features)
        return VotedModel.new(n_features, n_ranks, self._settings(), limit)
