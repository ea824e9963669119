"""Online ensembles of PRanks in dual form, which share their support vectors."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.params import as_generator
from rankcore._core.state import MOST_COUNTED, OnlineState, are_counts, averages
from rankcore._ext.kernel_learners import KernelOAPState
from rankcore.ordinal._members import SamplingParams, least_draws
from rankcore.ordinal._parameters import EpochParams, MarginParams
from rankcore.ordinal._projecting import Thresholds
from rankcore.ordinal._scale import margin_of
from rankcore.ordinal.kernel import _pool
from rankcore.ordinal.kernel._base import KernelClassifier
from rankcore.ordinal.kernel._dual import BudgetParams
from rankcore.ordinal.kernel._pool import DualState, Zeros
from rankcore.ordinal.prank import check_thresholds, scale_of

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

    @property
    @consistent_read
    def member_dual_coef_(self) -> sp.csr_array:
        """Coefficients of the members, CSR of shape (n_estimators, n_support)."""
        others = self._fitted_state().others
        lists = {**others, "coefs": member_coefs(self._fitted_state())}
        return sp.csr_array(_pool.coefficient_table(lists)[:-1])

    @property
    @consistent_read
    def member_thresholds_(self) -> np.ndarray:
        """Thresholds of the members, shape (n_estimators, n_classes - 1)."""
        return member_thresholds(self._fitted_state()).copy()

    def _averages(self) -> bool:
        return bool(self.average_members)

    def _rule_arrays(self, n_ranks: int, zeros: Zeros) -> tuple[dict[str, np.ndarray], int]:
        shape = (self.n_estimators, n_ranks - 1)
        arrays = {
            "steps": zeros(shape, dtype=np.int64),
            "thresholds": zeros(shape),
            "totals": zeros(n_ranks - 1, dtype=np.int64),
            "mean_thresholds": zeros(n_ranks - 1),
            "seen": zeros((self.n_estimators, 3), dtype=np.int64),
            "seed": as_generator(self.random_state).integers(2**63, size=1),
            **self._other_arrays(n_ranks, zeros),
        }
        if self.average_members:
            arrays["steps_sums"] = zeros(shape, dtype=np.int64)
        return arrays, self.n_estimators + 1  # the last is the sum of the members

    def _check_state(self, state: Any, n_ranks: int) -> None:
        super()._check_state(state, n_ranks)
        others = state.others
        if not are_counts(others["seen"]) or others["seed"][0] < 0:
            raise ValueError(f"the counts of the members must be from 0 to {MOST_COUNTED}")
        check_thresholds(others, ("thresholds", "mean_thresholds"))

    def _bind_rule(self, state: OnlineState, n_features: int) -> Any:
        return KernelOAPState(
            state.others,
            self._compiled_kernel(state),
            self._compiled_budget(state),
            n_features,
            scale_of(state),
            margin_of(state),
            self.tie == "strict",
            least_draws(state.settings)[0],
        )

    def _cuts(self) -> np.ndarray:
        state = self._fitted_state()
        if not state.settings["average_members"]:
            return state.others["mean_thresholds"]
        return member_thresholds(state).mean(axis=0)

    def _output_lists(self, state: DualState) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        others = state.others
        n = state.settings["n_estimators"]
        if not state.settings["average_members"]:
            return others["slots"][n:], others["coefs"][n:] / n, others["sizes"][n:]

        def mean() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            lists = {**others, "coefs": member_coefs(state)}
            table = _pool.coefficient_table(lists)[:-1].mean(axis=0, keepdims=True)
            slots = np.arange(table.size, dtype=np.int32)[np.newaxis]
            return slots, table, np.array([table.size])

        return state.averaged(mean)


def member_coefs(state: DualState) -> np.ndarray:
    """Return the members' lists of coefficients for predictions; the last is the sum."""
    others = state.others
    if not state.settings["average_members"]:
        return others["coefs"]
    t = np.append(others["seen"][:, 0], 1)[:, np.newaxis]
    return averages(others["coefs"], others["coefs_sums"], t)


def member_thresholds(state: DualState) -> np.ndarray:
    """Return the members' thresholds for predictions."""
    others = state.others
    if not state.settings["average_members"]:
        return others["thresholds"]
    return scale_of(state) * averages(others["steps"], others["steps_sums"], others["seen"][:, :1])
