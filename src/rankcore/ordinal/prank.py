"""PRank: one direction and ordered thresholds."""

from __future__ import annotations

from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.declaration import Declaration
from rankcore._core.params import Constraints
from rankcore._ext.ordinal import PRankModel
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.parameters import resolved_half_life, resolved_margin
from rankcore.ordinal.projecting import (
    ascending_thresholds,
    direction,
    project,
    projections,
    ranks_along,
    resolved_scale,
    scores_by_thresholds,
)
from rankcore.ordinal.scale import ANY_HALF_LIFE, MARGIN, OF_FORGETTING, OF_PRANK, OF_UNITS, SCALE

__all__ = ["PRank"]


class PRank(OnlineOrdinalClassifier):
    """Perceptron ranking: one direction, ordered thresholds, online.

    The rank of a row is the number of thresholds that its projection on the learned direction
    reaches. A misranked row moves each threshold on the wrong side of its projection by one step,
    and the direction by the sum of those steps times the row; a correctly ranked row changes
    nothing, unless its projection is within the ``margin`` of a threshold.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``.
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
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
    half_life : float or "auto", optional
        Number of learned rows after which a row has half its weight in averages, at least 1, so
        that these follow a stream that changes. By default all rows weigh the same. "auto" chooses
        after each row among the last parameters, this average, and half-lives of 30, 200 and 1,500
        rows, by their losses on recent rows before these were learned.
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
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Ascending and finite (a copy). ``predict`` is
        ``ranks_[np.searchsorted(thresholds_, X @ coef_, side="right")]``.
    margin_ : float
        The resolved ``margin``.
    coef_ : ndarray of float64, shape (n_features,)
        The direction (a copy).
    threshold_scale_ : float
        The resolved ``threshold_scale``: the given value, or the choice of "auto".
    half_life_ : float
        The half-life in use: the parameter or, of "auto", the present choice. 0 stands for the last
        parameters, infinity for an average in which all rows weigh the same.
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
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and time-averaged rank loss while learning: each example is predicted by the
        last parameters before it is learned. `predict` loses less if it uses others (averages,
        votes).
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of results.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.

    Notes
    -----
    Figure 2 of [1]_; the average is that of [2]_. An update costs O(non-zeros + n_classes), a
    prediction O(non-zeros + log n_classes), the model n_features + n_classes - 1 numbers (twice
    that with ``average``). X is never copied when it is CSR or C-ordered float32 or float64.

    Let s be ``threshold_scale_``, m ``margin_`` and R the maximum length of a row. If weights w and
    thresholds b with ``|w|**2 + |b / s|**2 = 1`` separate the data with margin g, the total rank
    loss over any number of passes, and the number of steps of thresholds, are at most ``((n_classes
    - 1) * R**2 + s**2 + 2 * m) / g**2``; `rankcore.bounds.prank_mistake_bound` has the proof.

    Thresholds are integers times the squared scale, for any margin, as each step is 1 or -1. They
    stay in ascending order: a threshold moves up only if the true rank is below it and the
    projection is at least the threshold minus the margin, down only if the true rank is above it
    and the projection is at most the threshold plus the margin. If two equal thresholds are on the
    same side of the true rank, both move or neither does; if the true rank is between them, the
    lower one can only move down and the upper one only up. Two different thresholds are at least
    one step apart; the lower one moves up only if the true rank is below both, and then the upper
    one does not move down, so that they approach by at most one step.

    A weight is the number of visits of a row per pass, with the fractional part drawn at random in
    each pass: integer weights are equivalent to repeated rows. Integer steps keep the thresholds in
    order; a step multiplied by a weight would leave their lattice.

    Plain form: ``tests/reference/prank.py``, ``prank``.

    References
    ----------
    .. [1] K. Crammer and Y. Singer. "Pranking with Ranking". NIPS 2001.
    .. [2] M. Collins. "Discriminative Training Methods for Hidden Markov Models". EMNLP 2002.

    Examples
    --------
    >>> import rankcore as rc
    >>> X = [[1, 0], [0, 1], [1, 1], [2, 0]]
    >>> model = rc.PRank.published(max_iter=2).fit(X, [3, 1, 2, 3])
    >>> model.predict(X)
    array([3, 1, 2, 3])
    >>> model.coef_, model.thresholds_
    (array([ 1., -1.]), array([0., 1.]))
    >>> model.history_["rank_loss"]
    [0.75, 0.0]
    """

    _declaration: ClassVar = Declaration(
        guide="ordinal",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            PRank(random_state=0),
            PRank(average=False, tie="strict", random_state=0),
            PRank(half_life=40.0, random_state=0),
        ],
    )

    _built_in: ClassVar = {**OF_PRANK, **OF_UNITS, **OF_FORGETTING}
    _model_class = PRankModel
    _form = "thresholds"
    _one_direction = True
    _merges = True

    _constraints: ClassVar[Constraints] = {
        "half_life": ANY_HALF_LIFE,
        "threshold_scale": SCALE,
        "margin": MARGIN,
    }

    coef_ = direction
    thresholds_ = ascending_thresholds
    threshold_scale_ = resolved_scale
    margin_ = resolved_margin
    half_life_ = resolved_half_life
    project = project
    _projected = projections
    _ranks = ranks_along
    _scored = scores_by_thresholds

    def __init__(
        self,
        max_iter: int = 10,
        average: bool = True,
        tie: Literal["crammer", "strict"] = "crammer",
        threshold_scale: float | str = "auto",
        margin: float | str = "auto",
        *,
        half_life: float | str | None = None,
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
        self.max_iter = max_iter
        self.average = average
        self.tie = tie
        self.threshold_scale = threshold_scale
        self.margin = margin
        self.half_life = half_life
        self.standardize = standardize
        self.shuffle = shuffle
        self.tol = tol
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.classes = classes
