"""Contributions of the features of a whole model."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sklearn.base import BaseEstimator

from rankcore._core.arguments import RowsLike
from rankcore._core.contributions import Contributions
from rankcore._core.explained_model import ExplainedModel


def contributions(
    model: BaseEstimator,
    X: RowsLike,
    *,
    background: RowsLike | None = None,
    output: Hashable | None = None,
    feature_names: Sequence[str] | None = None,
) -> Contributions:
    """Compute exact contributions of the features of a model to the score of each row.

    Parameters
    ----------
    model : estimator
        A fitted learner with ``contributions``, or a pipeline or search that ends in one. Features
        are then the columns of its input, and the words of texts: the columns that a step makes of
        one column are one feature.
    X : array-like, scipy sparse or frame, shape (n, n_features)
        Rows as for ``predict``; texts for a pipeline of texts.
    background : array-like, scipy sparse or frame, optional
        Rows to compare with. None: a row of zeros after the steps.
    output : label, optional
        The rank to explain, as for the learner's ``contributions``.
    feature_names : sequence of str, optional
        One name for each feature; None: the names of the input's columns.

    Returns
    -------
    Contributions
        Dense, with the features' values in the input as ``data``.

    Raises
    ------
    TypeError
        If the score is not a sum over features, or a step mixes columns.
    ValueError
        On bad input.

    Examples
    --------
    >>> import rankcore as rc
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [[1, 0], [0, 1], [1, 1], [2, 0]], [3, 1, 2, 3]
    >>> model = make_pipeline(StandardScaler(), rc.PRank(random_state=0)).fit(X, y)
    >>> found = rc.explain.contributions(model, X, background=X)
    >>> bool(abs(found.scores() - model[-1].project(model[:-1].transform(X))).max() < 1e-12)
    True
    >>> found.data[3].tolist()
    [2.0, 0.0]
    """
    explained = ExplainedModel(model, feature_names)
    values, base = explained.dense(X, background, output)
    return Contributions(values, base, explained.names, explained.values(X))
