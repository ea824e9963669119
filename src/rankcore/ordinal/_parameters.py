"""Parameters shared by learners of ordered labels."""

from __future__ import annotations

from dataclasses import KW_ONLY
from inspect import signature
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.docs import parameters
from rankcore._core.params import COUNT, VERBOSE, Checked, Constraints, Real
from rankcore.ordinal._scale import MARGIN, OF_INTERCEPTS, SCALE, BuiltIn
from rankcore.ordinal._validation import check_eval_metric
from rankcore.ordinal._weights import CLASS_WEIGHT

# The setting of all papers: one pass in the order given, the last parameters, a constant feature of
# 1.
PUBLISHED = {
    "average": False,
    "average_members": False,
    "threshold_scale": 1.0,
    "margin": 0.0,
    "intercept_scaling": 1.0,
    "max_iter": 1,
    "shuffle": False,
}
# Passes of max_iter="auto".
AUTO_PASSES = 20


@parameters
class EpochParams:
    """Passes over the rows, and measures on held-out rows.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``.
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
    """

    # Settings of its paper besides those of all papers.
    _published: ClassVar[dict[str, Any]] = {}
    _constraints: ClassVar[Constraints] = {
        "max_iter": COUNT,
        "tol": Real(0) | None,
        "early_stopping_rounds": COUNT | None,
        "eval_metric": Checked(check_eval_metric, "names of measures or functions"),
        "class_weight": CLASS_WEIGHT,
        "verbose": VERBOSE,
    }

    _: KW_ONLY
    max_iter: int = 10
    shuffle: bool = True
    tol: float | None = None
    early_stopping_rounds: int | None = None
    eval_metric: Measures = "rank_loss"
    class_weight: ClassWeight | None = None
    random_state: Seed | None = None
    verbose: int = 0
    classes: ArrayLike | None = None

    @classmethod
    def published(cls, *args: Any, **params: Any) -> Self:
        """Create a learner with the settings of its paper.

        One pass in the order given, the last parameters instead of their average, and the paper's
        step lengths. The defaults of the class are those that perform best on real data.

        Parameters
        ----------
        *args, **params
            Parameters of the class, which take precedence.

        Returns
        -------
        estimator
        """
        names = signature(cls).parameters
        of_all = {name: value for name, value in PUBLISHED.items() if name in names}
        given = dict(zip(names, args, strict=False)) | params
        return cls(**{**of_all, **cls._published, **given})


@parameters
class AveragingParams:
    """Averaging of parameters.

    Parameters
    ----------
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually much better, at about 1.5 times the training cost.
    """

    _: KW_ONLY
    average: bool = True


@parameters
class InterceptParams:
    """Intercepts of a constant feature, and weights that multiply steps.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Value of the equivalent constant feature of each intercept. "auto" is twice the root mean
        square length of the rows of the first call (once for `WidrowHoff`), with its square rounded
        to a power of two. The papers have 1.
    """

    _constraints: ClassVar[Constraints] = {"intercept_scaling": SCALE}
    _built_in: ClassVar[BuiltIn] = OF_INTERCEPTS
    _weighs_steps: ClassVar = True

    _: KW_ONLY
    fit_intercept: bool = True
    intercept_scaling: float | str = "auto"


@parameters
class MarginParams:
    """Thresholds with a margin.

    Parameters
    ----------
    tie : {"crammer", "strict"}, default="crammer"
        Whether a projection equal to a threshold below its true rank moves that threshold
        ("crammer", the paper's rule, which applies to the very first example) or not.
    threshold_scale : "auto" or float, default="auto"
        Value of the equivalent constant feature of the thresholds, which are multiples of its
        square. "auto" is twice the root mean square length of the rows of the first call, with its
        square rounded to a power of two, so that thresholds keep up with projections for any scale
        and number of features; once the length for ensembles without a kernel on sparse rows, of
        which at most an eighth of the values are not 0. The paper has 1.
    margin : float or "auto", default=0.0
        Required distance of a projection from a threshold on the right side. A threshold at a
        smaller distance moves, even if the row is ranked correctly. "auto" is twice the mean
        squared length of the rows of the first call, rounded to a power of two: two updates with a
        row move its projection by about this. The paper has 0.

    Attributes
    ----------
    margin_ : float
        The resolved ``margin``.
    """

    _constraints: ClassVar[Constraints] = {"margin": MARGIN, "threshold_scale": SCALE}

    tie: Literal["crammer", "strict"] = "crammer"
    threshold_scale: float | str = "auto"
    margin: float | str = 0.0

    @property
    @consistent_read
    def margin_(self: Any) -> float:
        """The resolved ``margin``, in units of the projections."""
        return float(self._fitted_state().model["margin"][0])


@parameters
class VoteParams:
    """Decision by votes on the rank.

    Parameters
    ----------
    output : {"round", "mean", "median", "plurality"}, default="round"
        Prediction from the votes: their mean rounded (halves up), the real mean, the smallest rank
        with half of the votes at or below it, or the rank with most votes (the lowest of ties).
    """

    output: Literal["round", "mean", "median", "plurality"] = "round"


@parameters
class CuSumRuleParams:
    """Updates and decisions of CuSum Rank.

    Parameters
    ----------
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Length of a step: 1, or passive-aggressive: the smallest with which the true rank beats its
        rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2").
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": smaller values give shorter steps.
    delta : float, default=1.0
        Score by which passive-aggressive updates require a rank to be beaten, per rank of loss. It
        has no effect on the predictions of "pa", whose weights are proportional to it.
    pa_loss : {"absolute", "zero_one"}, default="absolute"
        Loss of the passive-aggressive updates: ``delta`` times the distance in ranks, or ``delta``.
    margin : float, default=0.0
        In training the rival is the rank of maximum score plus margin times distance from the true
        rank, so that correct ranks must also win by a margin. Passive-aggressive updates do not
        change rivals that are beaten by the loss.
    tie_break : {"high", "low"}, default="high"
        Rule for ties between best ranks.
    decision : {"cusum", "count"}, default="cusum"
        Predict the rank of maximum score, or the number of tasks of non-negative score. Training
        always uses the former.
    """

    _constraints: ClassVar[Constraints] = {
        "C": Real(1e-100, 1e100),
        "delta": Real(1e-100, 1e100),
        "margin": Real(0, 1e100),
    }

    update: Literal["perceptron", "pa", "pa1", "pa2"] = "perceptron"
    C: float = 1.0
    delta: float = 1.0
    pa_loss: Literal["absolute", "zero_one"] = "absolute"
    margin: float = 0.0
    _: KW_ONLY
    tie_break: Literal["high", "low"] = "high"
    decision: Literal["cusum", "count"] = "cusum"
