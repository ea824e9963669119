"""Online ensembles of PRanks in dual form, which share their support vectors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.params import as_generator
from rankcore._ext.kernel_learners import KernelOAPModel
from rankcore.ordinal._members import SamplingParams, least_draws
from rankcore.ordinal._parameters import EpochParams, MarginParams
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal._weights import Block
from rankcore.ordinal.kernel import _pool
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._dual import BudgetParams

__all__ = ["KernelOAPBPM"]


@parameters
class KernelOAPParameters(MarginParams, BudgetParams, SamplingParams, EpochParams):
    """Parameters of `KernelOAPBPM`."""


@documented()
class KernelOAPBPM(KernelOAPParameters, Thresholds, KernelClassifier):
    """OAP-BPM with a kernel: the mean of kernel PRanks that sample one stream.

    `OAPBPM` in the feature space of a kernel. The members share one pool of support vectors, so
    that the kernel values of an example are computed once.

    Parameters
    ----------
    budget
        Limits the pool; a vector removed from the pool is removed from all members.
    budget_policy
        "smallest" compares the root of the sum of squared coefficients over members.
    random_state
        Also seeds the sampling; the same seed draws the same examples as in `OAPBPM`.

    Attributes
    ----------
    dual_coef_ : ndarray of float64, shape (1, n_support)
        Mean of the members' coefficients (a copy).
    member_dual_coef_ : CSR of float64, shape (n_estimators, n_support)
        Coefficients of the members (a copy): integers, unless the budget shrinks or projects them.
    member_thresholds_ : ndarray of float64, shape (n_estimators, n_classes - 1)
        Thresholds of the members (a copy).
    thresholds_ : ndarray of float64, shape (n_classes - 1,)
        Mean of the members' thresholds, ascending (a copy).
    loss_curve_
        The losses are those of the mean of the members' last parameters.

    Notes
    -----
    Algorithm 2 of [1]_ in dual form, with the coefficients that its text derives. An example costs
    one row of kernel values and, for each member that takes it, that member's coefficients; a
    prediction costs the same as with `KernelPRank`. Memory: the pool, and 12 bytes per non-zero
    coefficient of a member (20 with ``average_members``).

    Weights are visits, as in `PRank`.

    Plain form: ``tests/reference/kernel.py``, ``kernel_oap``.

    References
    ----------
    .. [1] E. F. Harrington. "Online Ranking/Collaborative Filtering Using the Perceptron
       Algorithm". ICML 2003.

    Examples
    --------
    >>> import rankcore as rc
    >>> X, y = [[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, 2, 2]
    >>> model = rc.KernelOAPBPM(gamma=1.0, max_iter=40, random_state=0).fit(X, y)
    >>> model.predict(X)
    array([1, 1, 2, 2])
    """

    _declaration: ClassVar = Declaration(
        guide="kernels",
        learns_from="labels",
        weights="visits",
        instances=lambda: [
            KernelOAPBPM(3, budget=20, budget_policy="random", random_state=0),
        ],
    )

    _model_class = KernelOAPModel
    _n_sums = 1  # the last output is the sum of the members

    @property
    @consistent_read
    def member_dual_coef_(self) -> sp.csr_array:
        """Coefficients of the members, CSR of shape (n_estimators, n_support)."""
        model = self._fitted_state().model
        lists = {**model.arrays, "coefs": model.member_coefs()}
        return sp.csr_array(_pool.coefficient_table(lists)[:-1])

    @property
    @consistent_read
    def member_thresholds_(self) -> np.ndarray:
        """Thresholds of the members, shape (n_estimators, n_classes - 1)."""
        return np.array(self._fitted_state().model.member_thresholds())

    def _new_model(self, n_features: int, n_ranks: int) -> KernelOAPModel:
        seed = as_generator(self.random_state).integers(2**63, size=1)
        model = super()._new_model(n_features, n_ranks)
        model["seed"][:] = seed
        return model

    def _learn(self, state: OnlineRecord, block: Block) -> int:
        state.model.draw_by(least_draws(state.settings)[0])
        return super()._learn(state, block)
