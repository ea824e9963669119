"""Learners on a Dask cluster, with the names and parameters of those in memory.

Requires ``pip install 'rankcore[dask]'``. ``fit`` accepts dask arrays, dataframes or lists of
delayed blocks, whose rows stay on the workers in shards; ``predict`` returns lazy collections;
``to_local()`` returns the ordinary estimator.

Boosting and `RankSVM` sum over shards, as over rows in memory: their models are those of the
ordinary estimators, to the rounding of sums. Online learners use iterative parameter mixing [1]_:
in each pass every shard continues the same model, and the models are averaged.

References
----------
.. [1] R. McDonald, K. Hall and G. Mann. "Distributed Training Strategies for the Structured
   Perceptron". NAACL 2010.
"""

from rankcore.boosting import bipartite, ordinal_boost, rankboost
from rankcore.dask._boosting import fit_pairs, fit_ranks
from rankcore.dask._estimators import DistributedClassifier, DistributedRanker, predict_proba
from rankcore.dask._online import fit_ordinal, fit_pairwise
from rankcore.dask._svm import fit_ranksvm
from rankcore.ordinal import baselines, cusum, logistic, oap, prank
from rankcore.ranking import perceptron, svm

__all__ = [
    "OAPBPM",
    "BipartiteRankBoost",
    "CuSumRank",
    "MulticlassPerceptron",
    "OAPBagging",
    "OAPVoting",
    "OrdinalBoost",
    "OrdinalLogistic",
    "PRank",
    "PairwisePerceptron",
    "RankBoost",
    "RankSVM",
    "WidrowHoff",
]


class OnlineClassifier(DistributedClassifier):
    """An online learner of ordered labels. Not public."""

    _fit_shards = staticmethod(fit_ordinal)


class PRank(OnlineClassifier, prank.PRank):  # type: ignore[misc]
    """`rankcore.PRank` on a Dask cluster.

    Parameters and attributes are those of `rankcore.PRank`.

    Examples
    --------
    >>> import dask.array as da, rankcore as rc
    >>> from distributed import Client
    >>> X, y = rc.datasets.make_ordinal(1000, 20, mean_nnz=5, random_state=0)
    >>> X = da.from_array(X.toarray(), chunks=(250, 20))
    >>> y = da.from_array(y, chunks=250)
    >>> with Client(n_workers=1, processes=False, dashboard_address=":0") as client:
    ...     model = rc.dask.PRank(random_state=0).fit(X, y, n_shards=4)
    ...     predicted = model.predict(X).compute()
    >>> predicted.shape, type(model.to_local()).__name__
    ((1000,), 'PRank')
    """


class CuSumRank(OnlineClassifier, cusum.CuSumRank):  # type: ignore[misc]
    """`rankcore.CuSumRank` on a Dask cluster, with its parameters and attributes."""


class WidrowHoff(OnlineClassifier, baselines.WidrowHoff):  # type: ignore[misc]
    """`rankcore.WidrowHoff` on a Dask cluster, with its parameters and attributes."""


class MulticlassPerceptron(OnlineClassifier, baselines.MulticlassPerceptron):  # type: ignore[misc]
    """`rankcore.MulticlassPerceptron` on a Dask cluster, with its parameters and attributes."""


class OrdinalLogistic(OnlineClassifier, logistic.OrdinalLogistic):  # type: ignore[misc]
    """`rankcore.OrdinalLogistic` on a Dask cluster, with its parameters and attributes."""

    predict_proba = predict_proba  # type: ignore[assignment]


class OAPBPM(OnlineClassifier, oap.OAPBPM):  # type: ignore[misc]
    """`rankcore.OAPBPM` on a Dask cluster, with its parameters and attributes.

    The members of the shards are averaged one by one.
    """


class OAPBagging(OnlineClassifier, oap.OAPBagging):  # type: ignore[misc]
    """`rankcore.OAPBagging` on a Dask cluster, as `OAPBPM`."""


class OAPVoting(OnlineClassifier, oap.OAPVoting):  # type: ignore[misc]
    """`rankcore.OAPVoting` on a Dask cluster, as `OAPBPM`."""


class PairwisePerceptron(DistributedRanker, perceptron.PairwisePerceptron):  # type: ignore[misc]
    """`rankcore.PairwisePerceptron` on a Dask cluster.

    Parameters and attributes are those of `rankcore.PairwisePerceptron`, except that
    ``variant`` must be "averaged" or "last", and ``quality`` None.
    """

    _fit_shards = staticmethod(fit_pairwise)


class RankSVM(DistributedRanker, svm.RankSVM):  # type: ignore[misc]
    """`rankcore.RankSVM` on a Dask cluster, linear.

    Parameters and attributes are those of `rankcore.RankSVM`, except that ``kernel`` must be None
    and ``warm_start`` False.
    """

    _fit_shards = staticmethod(fit_ranksvm)


class RankBoost(DistributedRanker, rankboost.RankBoost):  # type: ignore[misc]
    """`rankcore.RankBoost` on a Dask cluster, with stumps or trees.

    Parameters and attributes are those of `rankcore.RankBoost`, except that ``max_bins`` must be
    a number, ``select`` "edge" and ``warm_start`` False, and that categories must be encoded.
    """

    _fit_shards, _nan = staticmethod(fit_pairs), True


class BipartiteRankBoost(DistributedRanker, bipartite.BipartiteRankBoost):  # type: ignore[misc]
    """`rankcore.BipartiteRankBoost` on a Dask cluster, as `RankBoost`.

    Parameters and attributes are those of `rankcore.BipartiteRankBoost`, with the
    restrictions of `RankBoost`.

    Notes
    -----
    Without qid, all rows belong to one query, which may be divided among all shards.
    """

    _fit_shards, _nan = staticmethod(fit_pairs), True


class OrdinalBoost(DistributedClassifier, ordinal_boost.OrdinalBoost):  # type: ignore[misc]
    """`rankcore.OrdinalBoost` on a Dask cluster.

    Parameters and attributes are those of `rankcore.OrdinalBoost`, except that ``loss`` must be
    "absolute", "zero_one" or "squared", ``max_bins`` a number and ``warm_start`` False, and that
    categories must be encoded.
    """

    _fit_shards, _nan = staticmethod(fit_ranks), True
    predict_proba = predict_proba  # type: ignore[assignment]
