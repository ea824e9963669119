"""Scorers for scikit-learn's searches and cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankcore._core.labels import ranks_beside, words_of
from rankcore.metrics.conventions import Convention, resolve
from rankcore.metrics.evaluation import evaluate
from rankcore.metrics.names import greater_is_better, label_measure, parse
from rankcore.metrics.ordinal import ORDINAL
from rankcore.metrics.probabilities import PROBABILITIES, with_unknown

# scikit-learn is imported on use: measures do not require it.


@dataclass(frozen=True)
class RankingScorer:
    """Scorer of estimators by a ranking measure, per query; made by `make_scorer`.

    It requests ``qid``, which scikit-learn slices with the rows and passes to scorers if metadata
    routing is enabled.
    """

    metric: str
    convention: str | Convention | None = None

    def get_metadata_routing(self) -> Any:
        """Return the routing request for ``qid``."""
        return score_request(self, "qid", True)

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None) -> float:
        """Score a fitted estimator: higher is better, as losses are negated.

        Rows are ranked by its ``project``, its ``decision_function`` if that returns one number per
        row, or its ``predict``. A ranker's ``predict`` receives the queries.
        """
        if qid is None:
            raise ValueError(
                f"{self.metric} is measured per query, and qid was not passed; call "
                "sklearn.set_config(enable_metadata_routing=True) and give the search or "
                "cross-validation qid (params={'qid': qid}); a column of zeros is one query"
            )
        scores = ranking_scores(estimator, X, qid)
        evaluation = evaluate(
            y,
            scores,
            qid=qid,
            metrics=self.metric,
            convention=self.convention,
            labels=words_of(estimator),
        )
        (value,) = evaluation.values()
        return value if greater_is_better(self.metric) else -value

    def _accept_sample_weight(self) -> bool:
        """Score rows, with the signature that scikit-learn expects without metadata routing."""
        return False


@dataclass(frozen=True)
class OrdinalScorer:
    """Scorer of estimators by a measure of ranks or probabilities; made by `make_scorer`.

    String labels are ordered by ``ranks_`` of the estimator.
    """

    metric: str
    sample_weight: bool | str | None = None  # routing request, see `set_score_request`

    def set_score_request(self, *, sample_weight: bool | str | None) -> OrdinalScorer:
        """Copy the scorer with a routing request for ``sample_weight``, as in scikit-learn."""
        return replace(self, sample_weight=sample_weight)

    def get_metadata_routing(self) -> Any:
        """Return the routing request for ``sample_weight``."""
        return score_request(self, "sample_weight", self.sample_weight)

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score a fitted estimator: higher is better, as losses are negated.

        By its ``predict`` or, for measures of probabilities, ``predict_proba``. Numbers that the
        estimator does not know, because a fold lacks them, have a probability of 1e-7.
        """
        labels = words_of(estimator)
        if self.metric in PROBABILITIES:
            function = PROBABILITIES[self.metric]
            is_no_loss = False
            labels = estimator.classes_ if labels is None else labels
            y, table, labels = _beside(y, estimator.predict_proba(X), labels)
        else:
            function, is_no_loss = ORDINAL[self.metric]
            table = estimator.predict(X)
        value = function(y, table, labels=labels, sample_weight=sample_weight)
        return value if is_no_loss else 0.0 - value

    def _accept_sample_weight(self) -> bool:
        """Score rows, with the signature that scikit-learn expects without metadata routing."""
        return True


def score_request(owner: object, name: str, alias: bool | str | None) -> Any:
    """Return the request of a scorer for one argument, for scikit-learn's metadata routing."""
    from sklearn.utils.metadata_routing import MetadataRequest

    request = MetadataRequest(owner=owner)
    request.score.add_request(param=name, alias=alias)
    return request


def _beside(y: Any, table: Any, classes: Any) -> tuple[Any, Any, Any]:
    """Return labels, probabilities and classes; as ranks if numeric labels are not all classes."""
    truth = np.asarray(y)
    if truth.dtype.kind not in "biuf" or np.isin(truth, classes).all():
        return y, table, classes
    ranks, class_ranks = ranks_beside(truth, classes)
    n_labels = int(max(ranks.max(), class_ranks[-1])) + 1
    return ranks, with_unknown(table, class_ranks, n_labels), np.arange(n_labels)


def ranking_scores(estimator: Any, X: Any, qid: Any) -> Any:
    """Return a score per row, of ``project`` or of a ``decision_function`` with one output.

    The score of `OrdinalBoost` is the expected rank. A ranker's ``predict``, or one that requests
    ``qid`` (a pipeline with a ranker at its end), receives the queries.
    """
    if hasattr(estimator, "best_estimator_"):  # a search, which delegates few methods
        estimator = estimator.best_estimator_
    scored = ("project", "_probabilities")
    if hasattr(estimator, "steps") and any(hasattr(estimator[-1], name) for name in scored):
        estimator, X = estimator[-1], estimator[:-1].transform(X)
    if hasattr(estimator, "project"):
        return estimator.project(X)
    if hasattr(estimator, "_probabilities"):
        table = estimator._probabilities(X)
        return table @ np.arange(table.shape[1])
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
        A ranking measure, by any name that `evaluate` accepts (with one cut-off), or an ordinal
        one: ``"rank_loss"``, ``"macro_rank_loss"``, ``"max_rank_loss"``,
        ``"quadratic_weighted_kappa"``, ``"accuracy"``, ``"accuracy_within"``; or one of
        probabilities:
        ``"ranked_probability_score"`` (``"rps"``), ``"brier_score"``, ``"log_loss"``. For these,
        string labels are ordered by the estimator.
    convention : str or Convention, optional
        Convention of a ranking measure.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, with ``qid=`` for ranking measures. Higher is better: losses
        are negated, and may also be named ``"neg_rank_loss"`` or ``"neg_misranking"``.

    Raises
    ------
    TypeError
        If a name is not a string.
    ValueError
        For an unknown name, several cut-offs in one, or ``"neg_"`` without a loss.

    Notes
    -----
    Ranking measures require the queries of the scored rows. Scikit-learn slices and passes them if
    metadata routing is enabled, as in the example.

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
        raise TypeError(f"metric must be the name of a measure; got {metric!r}")
    name = metric.removeprefix("neg_")
    of_labels = label_measure(name)
    if of_labels is not None:
        if convention is not None:
            raise ValueError(f"convention applies to ranking measures only; got {name}")
        if name != metric and greater_is_better(name):
            raise ValueError(f"{name} is not a loss; use {name!r}")
        return OrdinalScorer(of_labels)
    if not greater_is_better(name):
        metric = name
    if len(parse(metric)) > 1:
        raise ValueError(f"metric must name one measure; {metric!r} names {len(parse(metric))}")
    resolve(convention)
    return RankingScorer(metric, convention)
