"""Learners on a Dask cluster, with the names and parameters of those in memory.

Requires ``pip install 'rankcore[dask]'``. ``fit`` accepts dask arrays, dataframes, lists of delayed
blocks or paths; ``predict`` returns lazy collections; ``to_local()`` returns the ordinary
estimator.

`RankBoost`, `BipartiteRankBoost` and `RankSVM` sum over shards exactly: their models do not depend
on the shards. The members of `OAPBPM`, `OAPBagging` and `OAPVoting` are divided among workers, and
are equal to those of a fit in memory.

The others use iterative parameter mixing [1]_: in each pass every shard continues from the same
model, with the same kernel as in memory, and the models are averaged. Each example or success has
the same weight in an average, in any shard. With one shard the model is equal to that of the
ordinary estimator, to the bit.

References
----------
.. [1] R. McDonald, K. Hall and G. Mann. "Distributed Training Strategies for the Structured
   Perceptron". NAACL 2010.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from rankcore._core.docs import documented
from rankcore.boosting import bipartite, rankboost
from rankcore.dask._boosting import fit_stumps
from rankcore.dask._estimators import (
    DistributedClassifier,
    DistributedEnsemble,
    DistributedRanker,
    ExactRanker,
)
from rankcore.dask._evaluate import evaluate
from rankcore.dask._svm import fit_ranksvm
from rankcore.ordinal import baselines, cusum, oap, prank
from rankcore.ranking import perceptron, svm

__all__ = [
    "OAPBPM",
    "BipartiteRankBoost",
    "CuSumRank",
    "MulticlassPerceptron",
    "OAPBagging",
    "OAPVoting",
    "PRank",
    "PairwisePerceptron",
    "RankBoost",
    "RankSVM",
    "WidrowHoff",
    "evaluate",
]

if not TYPE_CHECKING:  # otherwise type checkers would accept every name

    def __getattr__(name: str) -> Any:
        """Explain why a learner is missing."""
        if name == "OrdinalBoost":
            raise AttributeError(
                "rankcore.dask has no OrdinalBoost: the values of its leaves and its biases are "
                "sums of floating-point numbers over the rows, which would depend on the shards; "
                "use rankcore.OrdinalBoost on rows in memory"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@documented()
class PRank(DistributedClassifier, prank.PRank):  # type: ignore[misc]
    """`rankcore.PRank` on a Dask cluster.

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


@documented()
class CuSumRank(DistributedClassifier, cusum.CuSumRank):  # type: ignore[misc]
    """`rankcore.CuSumRank` on a Dask cluster."""


@documented()
class WidrowHoff(DistributedClassifier, baselines.WidrowHoff):  # type: ignore[misc]
    """`rankcore.WidrowHoff` on a Dask cluster."""


@documented()
class MulticlassPerceptron(DistributedClassifier, baselines.MulticlassPerceptron):  # type: ignore[misc]
    """`rankcore.MulticlassPerceptron` on a Dask cluster."""


@documented()
class OAPBPM(DistributedEnsemble, oap.OAPBPM):  # type: ignore[misc]
    """`rankcore.OAPBPM` on a Dask cluster.

    Notes
    -----
    Members are divided among the workers, each of which has all rows. The model is equal to that of
    a fit in memory, to the bit.
    """


@documented()
class OAPBagging(DistributedEnsemble, oap.OAPBagging):  # type: ignore[misc]
    """`rankcore.OAPBagging` on a Dask cluster, as `OAPBPM`."""


@documented()
class OAPVoting(DistributedEnsemble, oap.OAPVoting):  # type: ignore[misc]
    """`rankcore.OAPVoting` on a Dask cluster, as `OAPBPM`."""


@documented()
class PairwisePerceptron(DistributedRanker, perceptron.PairwisePerceptron):  # type: ignore[misc]
    """`rankcore.PairwisePerceptron` on a Dask cluster; ``variant`` is "averaged" or "last"."""


@documented()
class RankBoost(ExactRanker, rankboost.RankBoost):  # type: ignore[misc]
    """`rankcore.RankBoost` on a Dask cluster, with stumps.

    Parameters
    ----------
    max_bins
        Must be a number.
    select
        Must be "edge".

    Notes
    -----
    Every round sums the potentials of rows by bin, as 64-bit integers, so that the model is the
    same to the bit for any shards. The stumps are equal to those of a fit in memory unless edges
    differ by less than n / 2**60, for n rows, or a column has more than 8,192 distinct values,
    whose bins may differ (see ``docs/streams.md``).
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_stumps)
    _nan = True


@documented()
class BipartiteRankBoost(ExactRanker, bipartite.BipartiteRankBoost):  # type: ignore[misc]
    """`rankcore.BipartiteRankBoost` on a Dask cluster, with stumps.

    Parameters
    ----------
    max_bins
        Must be a number.
    select
        Must be "edge".

    Notes
    -----
    As `RankBoost`. Without qid, all rows belong to one query, which may be divided among all
    shards.
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_stumps)
    _nan = True


@documented()
class RankSVM(ExactRanker, svm.RankSVM):  # type: ignore[misc]
    """`rankcore.RankSVM` on a Dask cluster, linear.

    Parameters
    ----------
    kernel
        Must be None.
    warm_start
        Must be False.

    Notes
    -----
    Each evaluation, and each product with second derivatives, sums over all shards in 64-bit
    integers: the model is the same to the bit for any shards. It is within ``tol`` of the minimum,
    as in memory, where sums are rounded differently. ``random_state=None`` is seed 0 here; a
    Generator or RandomState advances, so that the next fit has a different sample.
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_ranksvm)
