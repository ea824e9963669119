"""Ensembles whose members are divided among workers: their public face."""

from __future__ import annotations

from functools import partial
from typing import Self

from numpy.typing import ArrayLike

from rankcore._core.arguments import DaskColumn, DaskRows
from rankcore._core.concurrency import learns
from rankcore.dask._engine import Client, count_of, engine_of
from rankcore.dask._estimators import DistributedClassifier
from rankcore.dask._members import fit_members


class DistributedEnsemble(DistributedClassifier):
    """An online ensemble of ordered labels on a cluster. Not public."""

    @learns
    def fit(  # type: ignore[override]
        self,
        X: DaskRows,
        y: DaskColumn | None = None,
        classes: ArrayLike | None = None,
        *,
        sample_weight: DaskColumn | str | None = None,
        client: Client | None = None,
        n_blocks: int | None = None,
        n_features: int | None = None,
        zero_based: bool = False,
    ) -> Self:
        """Learn from scratch; the model is that of memory, to the bit.

        Parameters
        ----------
        X, y, classes, sample_weight, client, n_features, zero_based
            As for `PRank.fit`. All rows must fit into the memory of a worker.
        n_blocks : int, optional
            Blocks that the members are divided into, of 8 or a multiple of it; by default one for
            each thread of the workers. The model does not depend on it.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            On bad input or parameters. The estimator stays as it was.
        RuntimeError
            If workers are lost again and again.
        """
        engine = engine_of(client)
        n_blocks = count_of(n_blocks, "n_blocks", engine)
        learn = partial(fit_members, classes=classes, n_blocks=n_blocks)
        files = n_features, zero_based
        return self._fit_on((X, y, None, sample_weight), learn, engine, files)
