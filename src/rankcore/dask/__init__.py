"""Learners on a Dask cluster, under the names and with the parameters that they have without it.

Needs ``pip install 'rankcore[dask]'``. ``fit`` takes dask arrays, dataframes, lists of delayed
blocks or paths; ``predict`` returns lazy collections; ``to_local()`` the ordinary estimator.

`RankBoost`, `BipartiteRankBoost` and `RankSVM` sum over shards exactly: the model does not depend
on them. The members of `OAPBPM`, `OAPBagging` and `OAPVoting` are divided among workers, and are
those of memory.

A pass of the others is one of iterative parameter mixing [1]_: every shard goes on from the same
model with the same kernel as in memory, and the models are averaged. What every example or success
adds to an average counts once, whichever shard it is in. With one shard the model is that of the
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

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> Any:
        """Say why a learner is missing that one may look for."""
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
    Members are divided among the workers, each of which has all rows: the model is that of memory,
    to the bit.
    """


@documented()
class OAPBagging(DistributedEnsemble, oap.OAPBagging):  # type: ignore[misc]
    """`rankcore.OAPBagging` on a Dask cluster, in the manner of `OAPBPM`."""


@documented()
class OAPVoting(DistributedEnsemble, oap.OAPVoting):  # type: ignore[misc]
    """`rankcore.OAPVoting` on a Dask cluster, in the manner of `OAPBPM`."""


@documented()
class PairwisePerceptron(DistributedRanker, perceptron.PairwisePerceptron):  # type: ignore[misc]
    """`rankcore.PairwisePerceptron` on a Dask cluster; ``variant`` is "averaged" or "last"."""


@documented()
class RankBoost(ExactRanker, rankboost.RankBoost):  # type: ignore[misc]
    """`rankcore.RankBoost` on a Dask cluster, with stumps.

    Parameters
    ----------
    max_bins
        It must be a number.
    select
        It must be "edge".

    Notes
    -----
    Every round sums the potentials of rows by bin, as 64-bit integers, so that the model
    is the same to the bit for any shards. The stumps are those of memory but where their edges
    differ by less than n / 2**60, for n rows, or where a column has more than 8,192 different
    values, whose bins may differ (see ``docs/streams.md``).
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_stumps)
    _nan = True


@documented()
class BipartiteRankBoost(ExactRanker, bipartite.BipartiteRankBoost):  # type: ignore[misc]
    """`rankcore.BipartiteRankBoost` on a Dask cluster, with stumps.

    Parameters
    ----------
    max_bins
        It must be a number.
    select
        It must be "edge".

    Notes
    -----
    As `RankBoost`. Without qid, all rows are of one query, which all shards may have parts of.
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_stumps)
    _nan = True


@documented()
class RankSVM(ExactRanker, svm.RankSVM):  # type: ignore[misc]
    """`rankcore.RankSVM` on a Dask cluster, linear.

    Parameters
    ----------
    kernel
        It must be None.
    warm_start
        It must be False.

    Notes
    -----
    Each evaluation, and each product with second derivatives, sums over all shards in 64-bit
    integers: the model is the same to the bit for any shards. It is within ``tol`` of the minimum,
    as in memory, where sums round differently. ``random_state=None`` is seed 0
    here; a Generator or RandomState advances, and gives another sample in the next fit.
    """

    _learn: ClassVar[Callable[..., Any]] = staticmethod(fit_ranksvm)
