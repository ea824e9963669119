"""Base class of rules in Python: arrays as attributes, the loop over rows, averages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from inspect import Parameter, signature
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankcore._core.concurrency import consistent_read
from rankcore._core.numbers import Floats
from rankcore._core.params import check_declared
from rankcore._ext.online_model import SCALE, SUMS, Array, OnlineModel, first_scale
from rankcore._ext.rows import Rows
from rankcore.ordinal._record import OnlineRecord
from rankcore.ordinal.base import OnlineOrdinalClassifier
from rankcore.ordinal.scale import BuiltIn
from rankcore.ordinal.weights import Block

# Values to learn between two checks for signals: a few milliseconds of Python.
BLOCK_VALUES = 2**18
# Attributes of a working copy besides the arrays.
PROVIDED = ("t", "n_ranks", "scale")


class RuleModel(OnlineModel):
    """Arrays of a user-defined rule, which its Python code changes."""

    def declare(self, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
        """Declare the arrays that ``start`` returned, with their shapes."""
        forms = {
            name: Array(*arrays[name].shape, dtype=arrays[name].dtype, averaged=True)
            for name in self.settings["arrays"]
        }
        return forms | {"scale": SCALE} if "threshold_scale" in self.settings else forms

    def wider(self, n_features: int, below: int = 0, above: int = 0) -> RuleModel:
        """Raise TypeError: no array has a known axis of features."""
        raise TypeError(
            "grow=True requires a learner of the package, not a rule in Python: pass all columns "
            "from the first call on, with 0 where a value is not known, and all ranks as classes"
        )


class RuleLearner(OnlineOrdinalClassifier):
    """A learner with an update in Python. Not public: subclasses define how it scores.

    No array of its model has an axis of features: a rule may change any value with any row.

    Attributes
    ----------
    parameters_ : dict of str to ndarray
        Copies of all arrays of ``start``, as used in predictions.
    """

    _no_file = (
        "it is a user-defined rule, whose code a model file cannot hold, compiled or not; use "
        "joblib or pickle, or make it a learner of the package: docs/own_rule.md"
    )
    _overflow_hint = "scale X, or check for a division by zero in update"
    # Parameters of the base classes; a subclass may define parameters of any name and range.
    _checked: tuple[str, ...] = (
        "average",
        "class_weight",
        "early_stopping_rounds",
        "eval_metric",
        "max_iter",
        "shuffle",
        "tol",
        "verbose",
    )
    _built_in: ClassVar[BuiltIn] = {"average": bool}
    t: int
    n_ranks: int
    # Of a rule with one direction.
    scale: float
    weights: Floats
    steps: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        """Add inherited parameters to the signature of a constructor with ``**params``.

        scikit-learn reads a learner's parameters from this signature.
        """
        super().__init_subclass__(**options)
        kind: Any = cls
        own = signature(kind.__init__)
        named = [
            parameter
            for parameter in own.parameters.values()
            if parameter.kind is not Parameter.VAR_KEYWORD
        ]
        if "__init__" not in vars(cls) or len(named) == len(own.parameters):
            return
        inherited = [
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for name, parameter in signature(super(kind, kind).__init__).parameters.items()
            if name not in own.parameters
        ]
        kind.__init__.__signature__ = own.replace(parameters=[*named, *inherited])

    # ---------------------------------------------------------------- hooks of a subclass

    @abstractmethod
    def start(self, n_features: int, n_ranks: int) -> dict[str, NDArray[Any]]:
        """Create the arrays of a new model.

        Parameters
        ----------
        n_features, n_ranks : int

        Returns
        -------
        dict of str to ndarray of float64 or int64
            Attributes of ``self`` in ``update``.
        """

    @abstractmethod
    def update(self, x: Floats, rank: int) -> None:
        """Learn one row by changing the arrays of `start`, which are attributes here.

        ``self.rank_of(x)`` is the current prediction, ``self.t`` the number of previous examples
        and ``self.n_ranks`` the number of ranks.

        Parameters
        ----------
        x : ndarray of float64, shape (n_features,)
            Read-only; dense, even for sparse rows.
        rank : int
            The true rank, from 0.
        """

    @abstractmethod
    def rank_of(self, x: Floats) -> int:
        """Return a row's current rank, from 0, within ``update``; -1 if its score overflows."""

    def update_rows(self, rows: Rows, ranks: NDArray[Any], order: NDArray[Any]) -> Sequence[int]:
        """Learn several rows by `update`; a compiled rule overrides this.

        Parameters
        ----------
        rows : Rows
            ``rows.capsule`` holds the ``const rc_rows *`` of ``rankcore.h``, under the name
            "rankcore.rows".
        ranks : ndarray of int32, shape (n_rows,)
            True ranks of all rows.
        order : ndarray of int32
            The rows to learn.

        Returns
        -------
        sequence of int
            The predicted rank of each row before it was learned; shorter than ``order`` if the
            score of the next row overflowed.

        Notes
        -----
        With ``average``, the average of an array ``weights`` is computed from another attribute,
        ``weights_sums``, to which an update adds (number of previous examples) * change.
        """
        predicted: list[int] = []
        attributes = self.__dict__
        arrays = {name: attributes[name] for name in attributes["_array_names"]}
        for row in order.tolist():
            x = row_of(rows, row)
            rank = self.rank_of(x)
            if rank < 0:
                break
            before = {name: array.copy() for name, array in arrays.items()} if self.average else {}
            self.update(x, int(ranks[row]))
            for name, array in arrays.items():
                if attributes[name] is not array:
                    put_in(array, name, attributes[name])
                    attributes[name] = array
                if self.average:
                    with np.errstate(over="ignore", invalid="ignore"):  # checked afterwards
                        attributes[name + SUMS] += self.t * (array - before[name])
            self.t += 1
            predicted.append(rank)
        return predicted

    # ---------------------------------------------------------------- interface of the training
    # loop

    @property
    @consistent_read
    def parameters_(self) -> dict[str, NDArray[Any]]:
        """Copies of the arrays of `start`, as used in predictions: averages with ``average``."""
        return {name: array.copy() for name, array in self._means().items()}

    def _means(self) -> dict[str, NDArray[Any]]:
        model = self._fitted_state().model
        return dict(zip(model.settings["arrays"], model.parameters(), strict=True))

    def _check_params(self) -> None:
        for name in dir(type(self)):
            if getattr(getattr(type(self), name), "__isabstractmethod__", False):
                raise TypeError(
                    f"{type(self).__name__} has no method {name}: subclass it and define {name}, "
                    "see docs/own_rule.md"
                )
        check_declared(self, *self._checked)

    def _new_model(self, n_features: int, n_ranks: int) -> RuleModel:
        rule = copy(self)
        before = dict(vars(rule))
        arrays = rule.start(n_features, n_ranks)
        _check_attributes(rule, before, "start")
        _check_arrays(self, arrays)
        whole = {name: array.copy(order="C") for name, array in arrays.items()}
        if self.average:
            whole |= {name + SUMS: np.zeros_like(array) for name, array in whole.items()}
        whole["counts"] = np.zeros(3, dtype=np.int64)
        settings = self._settings()
        if "threshold_scale" in settings:
            whole["scale"] = np.array([first_scale(settings)], dtype=np.float64)
        return RuleModel(n_features, n_ranks, settings | {"arrays": [*arrays]}, whole)

    def _working_copy(self, model: RuleModel) -> Any:
        """Copy this estimator, with the arrays of a model as attributes."""
        rule = copy(self)
        rule.__dict__.pop("_state", None)  # would differ from the arrays
        rule.__dict__ |= {name: array for name, array in model.arrays.items() if name != "counts"}
        rule.__dict__["_array_names"] = model.settings["arrays"]
        rule.t, rule.n_ranks = int(model.t), int(model.n_ranks)
        if "scale" in model.arrays:
            rule.scale = float(model["scale"][0])
        return rule

    def _block_rows(self, rows: Rows, state: OnlineRecord) -> int:
        values = sum(array.size for array in state.model.arrays.values())
        return max(1, BLOCK_VALUES // (1000 + values))

    def _learn(self, state: OnlineRecord, block: Block) -> int:
        examples, start, stop = block.examples, block.start, block.stop
        ranks, order, marks = examples.ranks, examples.order, block.marks
        places = np.arange(start, stop, dtype=np.int32) if order is None else order[start:stop]
        model = state.model
        model.ensure_writable()
        model.changed()
        rule, t = self._working_copy(model), state.t
        unchanged = dict(vars(rule))
        before = model.copy().arrays
        try:
            predicted = np.asarray(rule.update_rows(examples.rows, ranks, places), dtype=np.int64)
        except Exception:  # of an update in Python: the rows of the block are not learned
            for name, array in before.items():
                model[name][...] = array
            raise
        rule.t = unchanged["t"]
        _check_attributes(rule, unchanged, "update")
        n = predicted.size
        if n > places.size or not ((predicted >= 0) & (predicted < rule.n_ranks)).all():
            raise ValueError(
                f"update_rows must return at most {places.size} ranks from 0 to "
                f"{rule.n_ranks - 1}; got {predicted}"
            )
        distances = np.abs(predicted - ranks[places[:n]])
        totals = state.counts[1] + np.cumsum(distances)
        reached = (marks > t) & (marks <= t + n)
        block.losses[reached] = totals[marks[reached] - t - 1]
        model["counts"][...] += [n, distances.sum(), np.count_nonzero(distances)]
        return start + n


def row_of(rows: Rows, row: int) -> Floats:
    """Copy a row to a dense, read-only vector."""
    if len(rows.arrays) == 1:
        x = rows.arrays[0][row].astype(np.float64)
    else:
        data, indices, starts = rows.arrays
        part = slice(starts[row], starts[row + 1])
        x = np.zeros(rows.n_features)
        x[indices[part]] = data[part]
    x.flags.writeable = False
    return np.asarray(x)


def put_in(array: NDArray[Any], name: str, value: Any) -> None:
    """Copy a value assigned by ``update`` into the array of the state."""
    assigned = np.asarray(value)
    if assigned.shape != array.shape or not np.can_cast(assigned.dtype, array.dtype, "same_kind"):
        raise TypeError(
            f"update must leave {name} an array of shape {array.shape} and dtype {array.dtype}, as "
            f"start made it; got shape {assigned.shape} and dtype {assigned.dtype}"
        )
    array[...] = assigned


def _check_arrays(model: Any, arrays: Any) -> None:
    """Raise unless `start` returned arrays, under valid names that are not taken."""
    if not isinstance(arrays, dict) or not arrays:
        raise TypeError(f"start must return a dict of arrays by name; got {arrays!r}")
    for name, array in arrays.items():
        taken = name in PROVIDED or name in vars(model) or hasattr(type(model), str(name))
        if not isinstance(name, str) or not name.isidentifier() or name.endswith(SUMS) or taken:
            raise ValueError(
                f"start must name arrays by identifiers that are not attributes of "
                f"{type(model).__name__} and do not end in {SUMS}; got {name!r}"
            )
        if not isinstance(array, np.ndarray) or array.dtype not in (np.float64, np.int64):
            kind = f"a {type(array).__name__}"
            if isinstance(array, np.ndarray):
                kind = f"an array of {array.dtype}"
            raise TypeError(
                f"start must return NumPy arrays of float64 or int64; got {name}, {kind}"
            )


def _check_attributes(rule: Any, before: Mapping[str, Any], method: str) -> None:
    """Raise if a method set attributes other than the rule's arrays."""
    after = vars(rule)
    changed = [name for name in after if name not in before or after[name] is not before[name]]
    if changed or len(after) < len(before):
        raise AttributeError(
            f"{method} set {', '.join(changed) or 'or deleted attributes'} of "
            f"{type(rule).__name__}: the state of a rule must be in the arrays of start"
        )
