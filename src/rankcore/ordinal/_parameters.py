"""Parameters that learners of ordered labels share."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import ClassVar

from numpy.typing import ArrayLike

from rankcore._core.arguments import ClassWeight, Measures, Seed
from rankcore._core.docs import parameters
from rankcore._core.params import Constraint
from rankcore.ordinal._scale import OF_INTERCEPTS, SCALE, BuiltIn
from rankcore.ordinal._validation import check_eval_metric
from rankcore.ordinal._weights import check_class_weight


@parameters
class Passes:
    """Passes over the rows, and measures on held-out rows.

    Parameters
    ----------
    max_iter : int, default=10
        Passes over the data in ``fit``.
    shuffle : bool, default=True
        Visit the rows in a new random order in each pass.
    tol : float, optional
        Stop after 5 passes in a row whose mean rank loss is not below the best by more than this,
        or after a pass without mistakes. By default all ``max_iter`` passes are made.
    early_stopping_rounds : int, optional
        Stop after this many passes in a row that do not improve ``eval_metric`` on the
        ``eval_set``, and keep the model of the best pass.
    eval_metric : str, callable or list of them, default="rank_loss"
        Measures on held-out rows after each pass: ``"rank_loss"``, ``"accuracy"``,
        ``"quadratic_weighted_kappa"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"accuracy_within"``, or a function of true and predicted labels whose higher values are
        better. The first of a list decides on early stopping.
    class_weight : "balanced" or dict of label to weight, optional
        Weights of the labels, which multiply those of the rows; "balanced" gives every label the
        same total. See Notes for the meaning of a weight.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling. The same seed gives the same model on every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.
    classes : array-like, shape (n_classes,), optional
        Every label, lowest rank first, which words require. By default the order of an ordered
        categorical, or the distinct numbers of y, ascending.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {
        "class_weight": check_class_weight,
        "eval_metric": check_eval_metric,
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


@parameters
class Averages:
    """The average of all parameters of a pass.

    Parameters
    ----------
    average : bool, default=True
        Predict with the average of the parameters after every example instead of the last ones.
        Usually better by far, at about 1.5 times the training cost.
    """

    _: KW_ONLY
    average: bool = True


@parameters
class Intercepts(Averages):
    """Intercepts behind a constant feature, and weights that multiply steps.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there are intercepts. X is not augmented.
    intercept_scaling : "auto" or float, default="auto"
        Equivalent to a constant feature of this value behind each intercept. "auto" is a multiple
        of the root mean square length of the rows of the first call, rounded to a root of a power
        of two: twice that length, or once for `WidrowHoff`. The papers have 1.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {"intercept_scaling": SCALE}
    _built_in: ClassVar[BuiltIn] = OF_INTERCEPTS
    _weighs_steps: ClassVar = True

    _: KW_ONLY
    fit_intercept: bool = True
    intercept_scaling: float | str = "auto"
