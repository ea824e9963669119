"""Measures in the form of scikit-learn's searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluation import evaluate
from rankcore.metrics.names import greater_is_better, parse
from rankcore.metrics.ordinal import ORDINAL

# scikit-learn is imported where it is called for: measuring does not need it.


@dataclass(frozen=True)
class RankingScorer:
    """Scores an estimator by a ranking measure of its scores, query by query.

    Made by `make_scorer`. It requests ``qid``, which scikit-learn passes to scorers when
    metadata routing is on, sliced as the rows are.

    Parameters
    ----------
    metric : str
        Name of the measure.
    convention : Convention or str, optional
        Its convention.
    """

    metric: str
    convention: str | Convention | None = None

    def get_metadata_routing(self) -> Any:
        """Routing request for ``qid``.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=True)
        return request

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None) -> float:
        """Score an estimator.

        Parameters
        ----------
        estimator : object
            Fitted; its ``project``, its ``decision_function`` if that gives one number per row, or
            ``predict`` ranks the rows. A ranker's ``predict`` is given the queries.
        X : array-like, shape (n, n_features)
        y : array-like of numbers, shape (n,)
            True labels.
        qid : array-like, shape (n,)
            The query of each row.

        Returns
        -------
        float
            Greater is better: losses are negated.

        Raises
        ------
        ValueError
            Without ``qid``, and as `evaluate`.
        """
        if qid is None:
            raise ValueError(
                f"{self.metric} is measured query by query, and qid was not passed on: call "
                "sklearn.set_config(enable_metadata_routing=True) and give the search or "
                "cross-validation qid (params={'qid': qid}); a column of zeros is one query"
            )
        found = evaluate(
            y,
            ranking_scores(estimator, X, qid),
            qid=qid,
            metrics=self.metric,
            convention=self.convention,
        )
        value = next(iter(found.values()))
        return value if greater_is_better(self.metric) else -value

    def _accept_sample_weight(self) -> bool:
        """Signature that scikit-learn expects of scorers without metadata routing."""
        return False


def ranking_scores(estimator: Any, X: Any, qid: Any) -> Any:
    """One number per row to rank by: of ``project``, or of ``decision_function`` if it is one.

    Parameters
    ----------
    estimator : object
        Fitted. A ranker's ``predict``, or one that requests ``qid`` (of a pipeline that ends in a
        ranker), is given the queries.
    X : array-like, shape (n, n_features)
    qid : array-like, shape (n,)

    Returns
    -------
    array-like, shape (n,)
    """
    if hasattr(estimator, "best_estimator_"):  # a search, which hands on few methods
        estimator = estimator.best_estimator_
    if hasattr(estimator, "steps") and hasattr(estimator[-1], "project"):
        estimator, X = estimator[-1], estimator[:-1].transform(X)
    if hasattr(estimator, "project"):
        return estimator.project(X)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X))
        if scores.ndim == 1:
            return scores
    wants = hasattr(estimator, "predict_rank") or _requests_qid(estimator)
    return estimator.predict(X, qid=qid) if wants else estimator.predict(X)


def _requests_qid(estimator: Any) -> bool:
    if not hasattr(estimator, "get_metadata_routing"):
        return False
    from sklearn import get_config
    from sklearn.utils.metadata_routing import get_routing_for_object

    if not get_config()["enable_metadata_routing"]:
        return False
    return bool(get_routing_for_object(estimator).consumes("predict", ["qid"]))


def make_scorer(metric: str, *, convention: str | Convention | None = None) -> Callable[..., float]:
    """Make a scorer for scikit-learn's ``scoring=``.

    Parameters
    ----------
    metric : str
        A ranking measure, by any name `evaluate` takes (one cut-off), or an ordinal one:
        ``"rank_loss"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"quadratic_weighted_kappa"``, ``"accuracy_within"``.
    convention : str or Convention, optional
        Convention of a ranking measure.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, with ``qid=`` for ranking measures. Higher is better:
        losses are negated, and are also known as ``"neg_rank_loss"`` or ``"neg_misranking"``
        as names.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        For an unknown name, several cut-offs in one, or ``"neg_"`` without a loss.

    Notes
    -----
    Ranking measures need the queries of the rows that are scored. Scikit-learn slices and passes
    them on when metadata routing is on, as in the example.

    Examples
    --------
    >>> import numpy as np, sklearn, rankcore as rc
    >>> from sklearn.model_selection import GroupKFold, cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(200, 5)), np.repeat(np.arange(20), 10)
    >>> y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=200), [-1, 0, 1])
    >>> scorer = rc.metrics.make_scorer("ndcg@5")
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     scores = cross_val_score(rc.PRank(max_iter=5, average=True), X, y, scoring=scorer,
    ...                              cv=GroupKFold(4), params={"qid": qid, "groups": qid})
    >>> bool((scores > 0.9).all())
    True
    """
    if not isinstance(metric, str):
        raise TypeError(f"a scorer is made of one name of a measure; found {metric!r}")
    name = metric.removeprefix("neg_")
    if name in ORDINAL:
        if convention is not None:
            raise ValueError(f"convention is for ranking measures; {name} has none")
        from sklearn.metrics import make_scorer as sklearn_scorer

        function, is_no_loss = ORDINAL[name]
        if is_no_loss and name != metric:
            raise ValueError(f"{name} is not a loss; use {name!r}")
        return sklearn_scorer(function, greater_is_better=is_no_loss)
    if not greater_is_better(name):
        metric = name
    if len(parse(metric)) > 1:
        raise ValueError(f"a scorer gives one number; {metric!r} names {len(parse(metric))}")
    resolve(convention)
    return RankingScorer(metric, convention)
