"""Merging of models that were trained separately: iterative parameter mixing."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankcore._core.concurrency import read_model
from rankcore._core.numbers import as_weights, scaled
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.standardizing import unite_units

Learner = TypeVar("Learner", bound=OnlineOrdinalClassifier)


def merge(
    models: Sequence[Learner], weights: ArrayLike | None = None, *, base: Learner | None = None
) -> Learner:
    """Merge models that learned from different shards into one.

    The parameters are averaged, those of an ensemble member by member, after standardised rows of
    all models are brought to the mean and deviation of all their rows; PRank's thresholds are then
    rounded to their lattice, as further training could otherwise put them out of order. Counts of
    the models (examples, losses, the sums of averaging models) are added. To train on shards, start
    every shard from copies of one model, let each learn its own examples, and merge after every
    epoch.

    Parameters
    ----------
    models : sequence of fitted estimators
        `PRank`, `CuSumRank`, `OrdinalLogistic`, `WidrowHoff`, `MulticlassPerceptron` or ensembles.
        All of the same type, with the same classes and number of features, and equal parameters
        (except ``max_iter``, ``shuffle``, ``tol``, ``random_state`` and ``verbose``).
    weights : array-like, shape (n_models,), optional
        Non-negative, not all 0; divided by their sum. By default all equal. They weigh the current
        parameters, not the averages, in which all examples have the same weight. Averages with a
        ``half_life`` are weighed, too: an example is as old as the number of rows that its own
        model has learned since.
    base : fitted estimator, optional
        The model that all ``models`` continued. Its counts are then counted once. By default the
        models started from scratch.

    Returns
    -------
    estimator
        A new model of the same type, with the parameters of the first, which can predict, be saved
        and continue learning. Its ``update_loss_curve_`` is empty: the shards' losses have no
        common time.

    Raises
    ------
    ValueError, TypeError
        If the models are not compatible, overflow, or cannot be merged.

    Notes
    -----
    O(n_models * n_features). After McDonald, Hall and Mann, "Distributed Training Strategies for
    the Structured Perceptron" (NAACL 2010).

    Examples
    --------
    >>> import numpy as np, rankcore as rc
    >>> from copy import deepcopy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = np.digitize(X @ [1, -1, 2], [-1, 1])
    >>> mixed = rc.PRank(max_iter=1).fit(X[:4], y[:4], classes=[0, 1, 2])
    >>> for epoch in range(5):
    ...     shards = [deepcopy(mixed).partial_fit(X[i::4], y[i::4]) for i in range(4)]
    ...     mixed = rc.merge(shards, base=mixed)
    >>> mixed.t_, bool(mixed.score(X, y) > -0.1)
    (2004, True)
    """
    models = list(models)
    if not models:
        raise ValueError("merge requires at least one model")
    first = models[0]
    for model in models if base is None else [*models, base]:
        _check_alike(model, first)
    result = clone(first)
    result.ranks_, result.n_features_in_ = first.ranks_.copy(), first.n_features_in_
    if hasattr(first, "feature_names_in_"):
        result.feature_names_in_ = first.feature_names_in_.copy()
    states = [_copied_state(model) for model in models]
    if base is None:
        started = clone(first).set_params(**first._state.settings)  # may have been changed since
        begun = started._new_state(first.n_features_in_, first.ranks_.size)
    else:
        begun = _copied_state(base)
    result._state = mixed(states, _shares(weights, len(models)), begun)
    return result


def _copied_state(model: Any) -> OnlineRecord:
    """Return a copy of a state, as another thread may continue to learn."""
    copied: OnlineRecord = read_model("merge", model, lambda: deepcopy(model._state))
    return copied


def _check_alike(model: Any, first: Any) -> None:
    if not isinstance(model, OnlineOrdinalClassifier) or not model._merges:
        raise TypeError(
            "merge takes fitted PRank, CuSumRank, OrdinalLogistic, WidrowHoff, "
            "MulticlassPerceptron, OAPBPM, OAPBagging or OAPVoting models; got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    if type(model) is not type(first):
        raise TypeError(
            f"models of different classes cannot be merged: {type(first).__name__} and "
            f"{type(model).__name__}"
        )
    for what, mine, other in [
        ("classes", first.ranks_.tolist(), model.ranks_.tolist()),
        ("number of features", first.n_features_in_, model.n_features_in_),
        ("parameters", _params(first), _params(model)),
    ]:
        if mine != other:
            raise ValueError(f"the models differ in their {what}: {mine} and {other}")


def _params(model: Any) -> dict[str, Any]:
    """Return the parameters that models must share to be merged: all that affect the model."""
    apart = {"max_iter", "shuffle", "tol", "random_state", "verbose", "class_weight", "n_jobs"}
    apart |= {"early_stopping_rounds", "eval_metric"}
    apart.add("classes")  # compared separately, wherever they were declared
    params = {name: value for name, value in model.get_params().items() if name not in apart}
    return {**params, **model._state.settings}


def _shares(weights: Any, n: int) -> np.ndarray:
    if weights is None:
        return np.full(n, 1 / n)
    shares = as_weights(weights, "weights", {"model": n})
    assert shares is not None
    shares = scaled(shares)
    return shares / shares.sum()


def mixed(states: list[OnlineRecord], shares: np.ndarray, base: OnlineRecord) -> OnlineRecord:
    """Return the record of models that continued ``base``, averaged with weights that sum to 1.

    The models change to the units of the rows of all.

    Raises ValueError if they have different scales, did not continue ``base``, or overflow.
    """
    for name, meaning in (("scale", "scales of their thresholds"), ("margin", "margins")):
        if len({float(state.model[name][0]) for state in states if name in state.model.arrays}) > 1:
            raise ValueError(
                f"the models chose different {meaning} from their first rows: start all from "
                f"copies of one model, or set the {name} to a number"
            )
    if any((state.counts < base.counts).any() for state in states):
        raise ValueError("base has learned from more examples than a model that continued it")
    new = np.sum([state.counts - base.counts for state in states], axis=0)
    unite_units([state.model for state in states], base.model)
    merged = states[0].model.mixed([state.model for state in states], shares, base.model)
    if not merged.is_finite():
        raise ValueError("the sums of the averages overflowed: the models' weights are too large")
    log = [list(statistics) for statistics in base.log]
    return OnlineRecord(
        model=merged,
        settings=merged.settings,
        log=[*log, new.tolist()] if new[0] else log,
        offered=base.offered + sum(state.offered - base.offered for state in states),
    )
