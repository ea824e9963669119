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

from rankcore._core.concurrency import consistent_read
from rankcore._core.declaration import Declaration
from rankcore._core.docs import documented, parameters
from rankcore._core.inputs import as_rows
from rankcore._core.kernels import COMPILED, gram
from rankcore._core.params import Constraints, Function, Options
from rankcore._ext.kernel_learners import KernelAtomsState
from rankcore._ext.rows import Rows
from rankcore.ordinal.kernel import _pool
from rankcore.ordinal.kernel._dual import BudgetParams, DualLearner
from rankcore.structured._base import (
    Examples,
    StructuredLearner,
    StructuredParams,
    StructuredState,
    difference,
    read_only,
)
from rankcore.structured.task import Array, KernelTask, atoms_of, check_score, dot, features_of

__all__ = ["KernelStructuredPerceptron"]


@dataclass(kw_only=True)
class KernelStructuredState(StructuredState):
    """Coefficients of atoms, and the weights of linear features."""

    others: _pool.Arrays  # the arrays of ``rankcore.ordinal.kernel._pool``; an output is a label
    n_features: int  # columns of the parts

    def is_zero(self) -> bool:
        """Whether no example was added: False after a mistake."""
        return False

    def copy(self) -> Self:
        """A copy to continue from."""
        others = {name: array.copy() for name, array in self.others.items()}
        return replace(super().copy(), others=others)


@dataclass
class KernelExamples(Examples):
    """Examples with their parts in one matrix: those of input i from ``ends[i]`` on."""

    rows: Rows | None  # None without parts
    ends: Array
    n_features: int
    n_labels: int


@parameters
class KernelParameters(BudgetParams, StructuredParams):
    """Parameters of `KernelStructuredPerceptron`."""

    task: KernelTask
    kernel: Literal["rbf", "poly", "linear"] | Callable[..., Any] = "rbf"


@documented()
class KernelStructuredPerceptron(KernelParameters, DualLearner, StructuredLearner):
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
    gamma
        "scale" and "auto" are computed from the parts of the first call.
    update
        The step size is added to the counts.
    budget
        The budget covers the support vectors of all labels; the parts of a mistake join one after
        the other. The weights of linear features are not affected.
    decay
        "norma" shrinks once per example.
    random_state
        Also seeds the policy "random".

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
    _constraints: ClassVar[Constraints] = {"kernel": Options(*COMPILED) | Function()}

    @property
    @consistent_read
    def n_features_in_(self) -> int:  # type: ignore[override]
        """Columns of the parts."""
        return self._fitted_state().n_features

    @consistent_read
    def predict(self, X: Any) -> list[Any]:
        """Find the best output of each input."""
        return super().predict(X)

    def _predict(self, examples: KernelExamples) -> list[Any]:
        scores = np.zeros((0, examples.n_labels))
        if examples.rows is not None:
            scores = self._outputs(examples.rows)
        scores, weights = read_only(scores), read_only(self.coef_)
        return [
            self.task.argmax(scores[first:last], weights, x, None, 0.0)
            for x, first, last in zip(
                examples.inputs, examples.ends[:-1], examples.ends[1:], strict=True
            )
        ]

    # ---------------------------------------------------------------- parameters and state

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | self._kernel_settings()

    def _new_state(self, examples: KernelExamples) -> KernelStructuredState:
        return KernelStructuredState(
            arrays=np.zeros((1 + bool(self.average), examples.n_parameters)),
            settings=self._settings(),
            others=self._new_pool(examples.n_labels, bool(self.average)),
            n_features=examples.n_features,
        )

    def _fitted_state(self) -> KernelStructuredState:
        check_is_fitted(self)
        return self._state

    def _output_lists(self, state: Any) -> tuple[Array, Array, Array]:
        others = state.others
        coefs = others["coefs"]
        if "coefs_sums" in others:
            coefs = coefs - others["coefs_sums"] / state.t
        return others["slots"], coefs, others["sizes"]

    def _examples(
        self, X: Any, Y: Any, fitted: bool = False, labelled: bool = True
    ) -> KernelExamples:
        plain = super()._examples(X, Y, fitted, labelled)
        name = type(self.task).__name__
        n_labels = self.task.n_labels(plain.inputs)
        if not isinstance(n_labels, Integral) or n_labels < 1:
            raise ValueError(f"{name}.n_labels must return a positive integer; found {n_labels!r}")
        rows, ends, n_features = stacked(self.task, plain.inputs)
        if fitted:
            state = self._fitted_state()
            for what, found, known in [
                ("n_labels", n_labels, state.others["sizes"].size),
                ("number of columns in parts", n_features, state.n_features),
            ]:
                if found != known:
                    raise ValueError(
                        f"{name}: {what} is {found} for this X, but the model has {known}; X must "
                        "be like what the model was fitted on"
                    )
        return KernelExamples(
            **vars(plain), rows=rows, ends=ends, n_features=n_features, n_labels=int(n_labels)
        )

    # ---------------------------------------------------------------- learning

    def _losses(
        self, state: KernelStructuredState, examples: KernelExamples, order: Array
    ) -> Iterator[float]:
        rows, arrays = examples.rows, state.others
        first = int(arrays["book"][_pool.FIRST]) if state.streaming else 0
        slot_of = row_order = None
        sizes = np.diff(examples.ends)[order]
        edges = np.concatenate([[0], np.cumsum(sizes)])  # of the examples, in order of arrival
        if rows is not None:
            if "vectors" not in arrays:
                self._resolve_gamma(arrays, rows)
            _pool.add_vectors(arrays, rows)
            if not state.streaming and state.t > 0:
                slot_of = self._slots_of(arrays, rows, first)
            row_order = np.repeat(examples.ends[order] - edges[:-1], sizes) + np.arange(edges[-1])
            row_order = row_order.astype(np.int32)
        start = 0
        while start < order.size:
            limit = 1 if rows is None else self._rows_at_once(rows, arrays)
            stop = int(np.searchsorted(edges, edges[start] + limit, side="right")) - 1
            stop = min(max(stop, start + 1), order.size)
            before = int(arrays["book"][_pool.N_SUPPORT])
            block = slice(int(edges[start]), int(edges[stop]))
            bound, among = self._bind(state, rows, row_order, block, first, slot_of)
            for place in range(start, stop):
                parts = slice(*(int(edge - edges[start]) for edge in edges[place : place + 2]))
                yield self._learn(state, examples, int(order[place]), bound, parts, among)
            self._check_diagonal(arrays, before)
            start = stop
        arrays["book"][_pool.FIRST] = first + examples.ends[-1]

    def _bind(
        self,
        state: KernelStructuredState,
        rows: Any,
        row_order: Any,
        block: slice,
        first: int,
        slot_of: Array | None,
    ) -> tuple[KernelAtomsState, Array | None]:
        """A block of rows to score and learn, with the kernel values among them, if given."""
        arrays, values, among = state.others, None, None
        filled = block.start < block.stop  # otherwise there are no parts to score
        if filled:
            which = row_order[block]
            _pool.make_room(arrays, rows, which, self.budget)
            values, among = self._given_values(state, rows, which, first)
        bound = KernelAtomsState(
            arrays, self._compiled_kernel(state), self._compiled_budget(state), state.n_features
        )
        if filled:
            bound.take(rows, row_order, block.start, block.stop, first, slot_of, values, among)
        return bound, among

    def _learn(
        self,
        state: KernelStructuredState,
        examples: KernelExamples,
        i: int,
        bound: KernelAtomsState,
        parts: slice,
        among: Array | None,
    ) -> float:
        """Predict example i, whose parts are some rows of the block, and learn it."""
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
                            own = gram(examples.rows, first, last, self._compiled_kernel(state))
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
    """Parts of all inputs in one matrix, checked; the end of each input; and the columns."""
    name = type(task).__name__
    found: list[Any] = []
    for x in inputs:
        part = task.parts(x)
        part = part if sp.issparse(part) else np.asarray(part)
        if part.ndim != 2 or (found and part.shape[1] != found[0].shape[1]):
            wanted = f" and {found[0].shape[1]} columns" if found else ""
            raise ValueError(
                f"{name}.parts must return a matrix with one row per part{wanted}; found shape "
                f"{part.shape} for the input {reprlib.repr(x)}"
            )
        found.append(part)
    ends = np.cumsum([0, *(part.shape[0] for part in found)])
    if ends[-1] == 0:
        return None, ends, found[0].shape[1]
    if any(sp.issparse(part) for part in found):
        whole: Any = sp.vstack([sp.csr_array(part) for part in found], format="csr")
    else:
        whole = np.concatenate(found)
    return as_rows(whole, f"{name}.parts"), ends, whole.shape[1]
