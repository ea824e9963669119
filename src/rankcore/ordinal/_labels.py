"""Labels of ordinal learners, in the order of the ranks and in scikit-learn's order."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankcore._core.inputs import check_classes, find_classes
from rankcore._core.params import optional
from rankcore._core.warning import warn


def _check_given(classes: Any, _: str) -> None:
    check_classes(classes)


class RankedLabels:
    """Labels of a fitted ordinal learner. Not public.

    Scikit-learn's measures assume columns in the order of `numpy.unique`, which ``classes_``
    therefore has; ``ranks_`` has the order of the ranks. For numbers both are the same.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Labels in ascending order, as the columns of `decision_function`.
    ranks_ : ndarray, shape (n_classes,)
        Labels, lowest rank first.
    """

    _constraints: ClassVar = {"classes": optional(_check_given)}
    classes: Any
    ranks_: NDArray[Any]

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels in ascending order (strings: alphabetical), as the columns of results."""
        return np.sort(self.ranks_)

    def _ranks_of_columns(self) -> NDArray[np.intp]:
        return np.argsort(self.ranks_)

    def _as_columns(self, by_rank: NDArray[Any]) -> NDArray[Any]:
        """Reorder the columns of a table from the order of ranks to that of ``classes_``."""
        order = self._ranks_of_columns()
        return by_rank if is_rising(order) else by_rank[:, order]

    def _declared(self, given: Any = None) -> NDArray[Any] | None:
        """Labels of the parameter or argument ``classes``; raise if they differ."""
        # Models pickled by older versions lack the parameter.
        own = getattr(self, "classes", None)
        if own is None:
            return None if given is None else check_classes(given)
        own = check_classes(own)
        if given is not None and not np.array_equal(check_classes(given), own):
            raise ValueError(
                f"classes={list(given)} differ from classes={own.tolist()} of the constructor: "
                "pass them once"
            )
        return own


def by_rank(model: Any, table: NDArray[Any]) -> NDArray[Any]:
    """Reorder the columns of a table from the order of ``classes_`` to that of ranks."""
    order = model._ranks_of_columns()
    if is_rising(order):
        return table
    found: NDArray[Any] = -table if table.ndim == 1 else table[:, np.argsort(order)]
    return found


def is_rising(labels: NDArray[Any]) -> bool:
    """Whether labels are in ascending order, as in `numpy.unique`."""
    return bool((labels[:-1] < labels[1:]).all())


def ranks_among(
    labels: NDArray[Any], of_dtype: NDArray[Any] | None, declared: NDArray[Any] | None, learner: str
) -> NDArray[Any]:
    """All labels, lowest rank first: as declared, of the dtype, or found in the rows.

    Raises ValueError for strings without an order, and for contradictory orders.
    """
    if declared is not None:
        if of_dtype is not None:
            check_agreement(of_dtype, declared)
        return declared
    if of_dtype is None:
        return find_classes(labels, learner)
    known = check_classes(of_dtype)
    if not is_rising(known):
        warn(
            f"the order of the ranks is that of y's categories, {known.tolist()}, and scikit-learn "
            "silently drops it where it sorts labels alphabetically (cross_val_predict, "
            "voting, stacking, bagging): pass it to the learner too, as "
            f"{learner}(classes={known.tolist()})"
        )
    return known


def check_agreement(of_dtype: NDArray[Any], declared: NDArray[Any]) -> None:
    """Raise ValueError if the order of y's categories differs from ``classes``."""
    place = {label: rank for rank, label in enumerate(declared.tolist())}
    both = [place[label] for label in of_dtype.tolist() if label in place]
    if both != sorted(both):
        raise ValueError(
            f"classes={declared.tolist()} contradict the order of y's categories, "
            f"{of_dtype.tolist()}: make them the same, or pass y without its order, as "
            "numpy.asarray(y)"
        )
