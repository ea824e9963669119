"""The structured perceptron in dual form: signed counts of atoms, scored by a kernel."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from rankcore._core.arguments import Gamma, Seed
from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import COMPILED, gram
from rankcore._core.params import Constraints, Function, Options
from rankcore._ext.kernel_learners import KernelAtomsState
from rankcore._ext.rows import Rows
from rankcore.ordinal.kernel import dual, pools
from rankcore.structured._base import (
    Examples,
    StructuredLearner,
    StructuredState,
    difference,
    read_only,
)
from rankcore.structured.task import Array, KernelTask, atoms_of, check_score, dot, features_of

__all__ = ["KernelStructuredPerceptron"]


@dataclass(kw_only=True)
class KernelStructuredState(StructuredState):
    """Coefficients of atoms, and weights of linear features."""

    pool: pools.Arrays  # the arrays of ``rankcore.ordinal.kernel.pools``; an output is a label
    n_features: int  # columns of the parts

    def is_zero(self) -> bool:
        """Return False: each mistake adds coefficients."""
        return False

    def copy(self) -> Self:
        """Copy the state to continue from it."""
        pool = {name: array.copy() for name, array in self.pool.items()}
        return replace(super().copy(), pool=pool)


@dataclass
class KernelExamples(Examples):
    """Examples with their parts in one matrix; those of input i start at ``ends[i]``."""

    rows: Rows | None  # None without parts
    ends: Array
    n_features: int
    n_labels: int


class KernelStructuredPerceptron(StructuredLearner):
    """Kernel structured perceptron for outputs that consist of atoms.

    `StructuredPerceptron` in the feature space of a kernel. The score of an atom, a part
    of the input with a label, is the sum over the parts of earlier examples of their kernel values
    times their signed counts for the label. A mistake adds 1 to the count of every atom of the true
    output, and subtracts 1 from that of every atom of the predicted one.

    Parameters
    ----------
    task : KernelTask
        Labels, parts, candidates, atoms, search and loss.
    kernel : {"rbf", "poly", "linear"} or callable, default="rbf"
        A function of two parts of inputs. A callable takes two blocks of parts, arrays or CSR, and
        returns their kernel values, shape (n_parts_1, n_parts_2).
    gamma : {"scale", "half", "auto"} or float, default="scale"
        Parameter of "rbf" and "poly". "scale" is ``1 / (n_features * P.var())``, of the matrix P of
        the parts of the first call; "half" is half of that, for a wider kernel; "auto" is ``1 /
        n_features``.
    degree : int, default=2
        Degree of "poly", ``(gamma * x.z + coef0) ** degree``.
    coef0 : float, default=1.0
        Constant of "poly".
    budget : int, optional
        Maximum number of support vectors, of all labels together; the parts of a mistake join one
        after the other. By default all are kept: memory grows with the number of mistakes. The
        weights of linear features are not affected.
    budget_policy : str, default="oldest"
        Support vector to remove beyond the budget: the "oldest"; a "random" one; the "smallest",
        the one of minimum ``|coefficient| * sqrt(K(x, x))``; for "forgetron" the oldest, after
        shrinking all as the bound of the Forgetron requires; for "norma" the oldest, with all
        shrunk by ``decay`` at every example; for "projectron" none: a part near the span of the
        support vectors, or beyond the budget, is projected onto this span, and added to their
        coefficients. `KernelPRank` has the sources.
    decay : float, default=0.01
        Fraction of each coefficient that "norma" removes at every example.
    projection_tol : float, default=1e-6
        "projectron" projects a part onto the span of the support vectors if the square of its
        distance from the span is at most this fraction of ``K(x, x)``.
    n_jobs : int, optional
        Threads for kernel values; -1 for all processors. The result does not depend on it.
    update : {"perceptron", "pa", "pa1", "pa2"}, default="perceptron"
        Step size: 1, or passive-aggressive: the smallest step after which the true output beats
        its rival by the loss ("pa"), at most C ("pa1"), or damped by C ("pa2"). It is added to the
        counts.
    C : float, default=1.0
        Aggressiveness of "pa1" and "pa2": a smaller C gives smaller steps.
    margin : float, default=0.0
        In training the rival is the output that maximises score plus margin times loss, so
        correct outputs must win by a margin. The passive-aggressive updates make no step if the
        true output beats the rival by its loss.
    average : bool, default=False
        Predict with the average of the parameters after every example instead of the last ones.
    max_iter : int, default=1
        Passes over the data in ``fit``.
    shuffle : bool, default=False
        Visit the examples in a new random order in each pass.
    tol : float, optional
        Stop after 5 successive passes whose mean loss is not below the best by more than this, or
        after a pass without mistakes. By default make all ``max_iter`` passes.
    random_state : int, numpy Generator or RandomState, optional
        Seed of the shuffling and of the policy "random". The same seed gives the same model on
        every platform.
    verbose : int, default=0
        Print one line every ``verbose`` passes; 0 prints none.

    Attributes
    ----------
    support_ : ndarray of int64, shape (n_support,)
        Indices of the support vectors among the parts of all examples, in order of arrival.
    support_vectors_ : ndarray or CSR, shape (n_support, n_features)
        A copy.
    dual_coef_ : ndarray of float64, shape (n_labels, n_support)
        Signed counts for prediction (a copy): the scores of atoms are
        ``K(parts, support_vectors_) @ dual_coef_.T``.
    coef_ : ndarray of float64, shape (n_parameters,)
        Weights of linear features.
    n_features_in_ : int
        Columns of the parts.
    gamma_ : float
        The resolved ``gamma``.
    n_iter_, t_ : int
        Number of passes, and of examples learned in all passes.
    history_ : dict of lists
        Per pass: ``examples``, ``mistakes`` (examples with loss), ``loss`` (the mean) and
        ``average_loss`` (the mean since the first example). Each example is predicted, without
        margin, before it is learned.
    update_loss_curve_ : ndarray, shape (n_points, 2)
        Examples seen and mean loss while learning, of the last weights; with ``average``,
        `predict` uses others, which usually lose less.

    Notes
    -----
    Figure 5 of [1]_, with the omitted index of the example and one of two signs corrected. The
    kernel of two atoms is that of their parts if their labels are equal, else 0. Each part requires
    its kernel values with all support vectors and a sum per label; ``partial_fit`` copies the model
    once per call. The model is the same to the bit for any division of a stream into calls, dense
    or CSR parts, on every CPU.

    `save` does not support this learner, because its task is user code; use pickle.

    Plain form: ``tests/reference/structured.py``, ``kernel_structured``.

    References
    ----------
    .. [1] R. L. Milidiú and R. H. S. Rocha. "Cumulative Sum Ranking". arXiv:1911.11255, 2019.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from rankcore.structured import KernelStructuredPerceptron, KernelTask
    >>> @dataclass(frozen=True)
    ... class Signs(KernelTask):  # of a row of numbers, each with one tag
    ...     def n_labels(self, X): return 2
    ...     def parts(self, x): return [[value] for value in x]
    ...     def candidates(self, x): raise NotImplementedError  # not used by argmax
    ...     def atoms(self, x, y): return range(len(x)), y
    ...     def argmax(self, scores, weights, x, y=None, margin=0.0):
    ...         return scores.argmax(axis=1).tolist()
    >>> X, Y = [[-3.0, 0.5], [0.0, 2.5, -2.0]], [[1, 0], [0, 1, 1]]  # 1: far from 0
    >>> model = KernelStructuredPerceptron(Signs(), gamma=1.0, max_iter=5).fit(X, Y)
    >>> model.predict([[-2.5, 0.25, 2.25]])
    [[1, 0, 1]]
    """

    _declaration: ClassVar = Declaration(guide="structured", learns_from="outputs")

    _protocol = KernelTask
    _least_parameters = 0

    # X itself has no columns.
    _constraints: ClassVar[Constraints] = {
        **dual.OF_KERNEL,
        "kernel": Options(*COMPILED) | Function(),
    }

    _overflow_hint = dual.OVERFLOW_HINT

    support_ = dual.support_rows
    support_vectors_ = dual.support_vectors
    dual_coef_ = dual.dual_coefs
    gamma_ = dual.resolved_gamma

    def __init__(
        self,
        task: KernelTask,
        kernel: Literal["rbf", "poly", "linear"] | Callable[..., Any] = "rbf",
        gamma: Gamma = "scale",
        degree: int = 2,
        coef0: float = 1.0,
        *,
        budget: int | None = None,
        budget_policy: Literal[
            "oldest", "random", "smallest", "forgetron", "norma", "projectron"
        ] = "oldest",
        decay: float = 0.01,
        projection_tol: float = 1e-6,
        n_jobs: int | None = None,
        update: Literal["perceptron", "pa", "pa1", "pa2"] = "perceptron",
        C: float = 1.0,
        margin: float = 0.0,
        average: bool = False,
        max_iter: int = 1,
        shuffle: bool = False,
        tol: float | None = None,
        random_state: Seed | None = None,
        verbose: int = 0,
    ) -> None:
        self.task = task
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.budget_policy = budget_policy
        self.decay = decay
        self.projection_tol = projection_tol
        self.n_jobs = n_jobs
        self.update = update
        self.C = C
        self.margin = margin
        self.average = average
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @property
    @consistent_read
    def n_features_in_(self) -> int:
        """Columns of the parts."""
        return self._fitted_state().n_features

    @consistent_read
    def predict(self, X: Any) -> list[Any]:
        """Find the best output of each input.

        Parameters
        ----------
        X : sequence of inputs
            Or what the task's ``examples`` takes.

        Returns
        -------
        list
            One output for each input, as the task's ``argmax`` returns it.
        """
        return super().predict(X)

    def _predict(self, examples: KernelExamples) -> list[Any]:
        scores = np.zeros((0, examples.n_labels))
        if examples.rows is not None:
            scores = dual.outputs(self, examples.rows)
        scores, weights = read_only(scores), read_only(self.coef_)
        return [
            self.task.argmax(scores[first:last], weights, x, None, 0.0)
            for x, first, last in zip(
                examples.inputs, examples.ends[:-1], examples.ends[1:], strict=True
            )
        ]

    # ---------------------------------------------------------------- parameters and state

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | dual.kernel_settings(self)

    def _new_state(self, examples: KernelExamples) -> KernelStructuredState:
        return KernelStructuredState(
            arrays=np.zeros((1 + bool(self.average), examples.n_parameters)),
            settings=self._settings(),
            pool=dual.new_pool(self, examples.n_labels, bool(self.average)),
            n_features=examples.n_features,
        )

    def _fitted_state(self) -> KernelStructuredState:
        check_is_fitted(self)
        return self._state

    def _output_lists(self, state: Any) -> tuple[Array, Array, Array]:
        pool = state.pool
        coefs = pool["coefs"]
        if "coefs_sums" in pool:
            coefs = coefs - pool["coefs_sums"] / state.t
        return pool["slots"], coefs, pool["sizes"]

    def _examples(
        self, X: Any, Y: Any, fitted: bool = False, labelled: bool = True
    ) -> KernelExamples:
        plain = super()._examples(X, Y, fitted, labelled)
        name = type(self.task).__name__
        n_labels = self.task.n_labels(plain.inputs)
        if not isinstance(n_labels, Integral) or n_labels < 1:
            raise ValueError(f"{name}.n_labels must return a positive integer; got {n_labels!r}")
        rows, ends, n_features = stacked(self.task, plain.inputs)
        if fitted:
            state = self._fitted_state()
            for what, number, expected in [
                ("n_labels", n_labels, state.pool["sizes"].size),
                ("number of columns in parts", n_features, state.n_features),
            ]:
                if number != expected:
                    raise ValueError(
                        f"{name}: {what} is {number} for this X, but the model has {expected}; X "
                        "must "
                        "be like what the model was fitted on"
                    )
        return KernelExamples(
            **vars(plain), rows=rows, ends=ends, n_features=n_features, n_labels=int(n_labels)
        )

    # ---------------------------------------------------------------- learning

    def _losses(
        self, state: KernelStructuredState, examples: KernelExamples, order: Array
    ) -> Iterator[float]:
        rows, arrays = examples.rows, state.pool
        first = int(arrays["book"][pools.FIRST]) if state.streaming else 0
        slot_of = row_order = None
        sizes = np.diff(examples.ends)[order]
        edges = np.concatenate([[0], np.cumsum(sizes)])  # of the examples, in order of arrival
        if rows is not None:
            if "vectors" not in arrays:
                dual.set_gamma(self, arrays, rows)
            pools.add_vectors(arrays, rows)
            if not state.streaming and state.t > 0:
                slot_of = dual.slots_of(arrays, rows, first)
            row_order = np.repeat(examples.ends[order] - edges[:-1], sizes) + np.arange(edges[-1])
            row_order = row_order.astype(np.int32)
        start = 0
        while start < order.size:
            limit = 1 if rows is None else dual.rows_at_once(rows, arrays)
            stop = int(np.searchsorted(edges, edges[start] + limit, side="right")) - 1
            stop = min(max(stop, start + 1), order.size)
            before = int(arrays["book"][pools.N_SUPPORT])
            block = slice(int(edges[start]), int(edges[stop]))
            bound, among = self._bind(state, rows, row_order, block, first, slot_of)
            for place in range(start, stop):
                within = edges[place : place + 2] - edges[start]
                parts = slice(int(within[0]), int(within[1]))
                yield self._learn(state, examples, int(order[place]), bound, parts, among)
            self._check_diagonal(arrays, before, examples, first)
            start = stop
        arrays["book"][pools.FIRST] = first + examples.ends[-1]

    def _bind(
        self,
        state: KernelStructuredState,
        rows: Any,
        row_order: Any,
        block: slice,
        first: int,
        slot_of: Array | None,
    ) -> tuple[KernelAtomsState, Array | None]:
        """Prepare a block of rows for scoring and learning, with kernel values if given."""
        arrays, values, among = state.pool, None, None
        filled = block.start < block.stop  # otherwise there are no parts to score
        if filled:
            which = row_order[block]
            pools.make_room(arrays, rows, which, self.budget)
            values, among = dual.given_values(self, state, rows, which, first)
        bound = KernelAtomsState(
            arrays,
            dual.compiled_kernel(state.settings, state.pool),
            dual.compiled_budget(self, state),
            state.n_features,
        )
        if filled:
            bound.take(rows, row_order, block.start, block.stop, first, slot_of, values, among)
        return bound, among

    def _check_diagonal(
        self, arrays: pools.Arrays, before: int, examples: KernelExamples, first: int
    ) -> None:
        """Raise if the kernel of a new support vector with itself overflowed."""
        joined = slice(0 if self.budget is not None else before, None)
        over = ~np.isfinite(arrays["diagonal"][joined])
        if over.any():
            part = int(arrays["support"][joined][over].min()) - first
            x = examples.inputs[int(np.searchsorted(examples.ends, part, side="right")) - 1]
            raise ValueError(
                f"a kernel value overflowed at the input {reprlib.repr(x)}: {self._overflow_hint}"
            )

    def _learn(
        self,
        state: KernelStructuredState,
        examples: KernelExamples,
        i: int,
        bound: KernelAtomsState,
        parts: slice,
        among: Array | None,
    ) -> float:
        """Predict example i and update the model with it."""
        low, high = parts.start, parts.stop
        task, x, y = self.task, examples.inputs[i], examples.outputs[i]
        scores, weights = np.empty((high - low, examples.n_labels)), read_only(state.arrays[0])
        bound.scores(low, high, scores)
        if not np.isfinite(scores).all():
            check_score(np.nan, x)
        scores = read_only(scores)
        loss, rival, rival_loss = self._rival(y, partial(task.argmax, scores, weights, x))
        counts = np.zeros(scores.shape)
        if rival_loss > 0:
            for z, sign in [(y, 1.0), (rival, -1.0)]:
                np.add.at(counts, atoms_of(task, x, z, counts.shape), sign)
            wanted, unwanted = (features_of(task, x, z, weights.size) for z in (y, rival))
            indices, change = difference(wanted, unwanted)
            step = 1.0
            if self.update != "perceptron":
                with np.errstate(over="ignore", invalid="ignore"):
                    gap = dot(counts, scores) + dot(weights[indices], change)
                    norm = dot(change, change)
                    if examples.rows is not None:
                        if among is None:
                            first, last = examples.ends[i], examples.ends[i + 1]
                            own = gram(
                                examples.rows,
                                first,
                                last,
                                dual.compiled_kernel(state.settings, state.pool),
                            )
                        else:
                            own = among[low:high, low:high]
                        # Counts are small integers: their products are exact in any order.
                        norm += dot(counts @ counts.T, own)
                    step = self._step(rival_loss, gap, norm)
            self._move(state, x, indices, change, step)
            counts *= step
        bound.learn(low, high, counts, state.t)
        return loss


def stacked(task: KernelTask, inputs: Any) -> tuple[Rows | None, Array, int]:
    """Stack the parts of all inputs; return the matrix, the end of each input, and the columns."""
    name = type(task).__name__
    matrices: list[Any] = []
    for x in inputs:
        part = task.parts(x)
        part = part if sp.issparse(part) else np.asarray(part)
        if part.ndim != 2 or (matrices and part.shape[1] != matrices[0].shape[1]):
            wanted = f" and {matrices[0].shape[1]} columns" if matrices else ""
            raise ValueError(
                f"{name}.parts must return a matrix with one row per part{wanted}; got shape "
                f"{part.shape} for the input {reprlib.repr(x)}"
            )
        matrices.append(part)
    ends = np.cumsum([0, *(part.shape[0] for part in matrices)])
    if ends[-1] == 0:
        return None, ends, matrices[0].shape[1]
    if any(sp.issparse(part) for part in matrices):
        whole: Any = sp.vstack([sp.csr_array(part) for part in matrices], format="csr")
    else:
        whole = np.concatenate(matrices)
    return as_rows(whole, f"{name}.parts"), ends, whole.shape[1]
