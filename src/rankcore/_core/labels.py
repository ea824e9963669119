"""Ordered labels: validation, ranks, and scikit-learn's order."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankcore._core.frames import declared_order, plain_column
from rankcore._core.ids import as_column, unboxed
from rankcore._core.numbers import Floats
from rankcore._core.params import Checked
from rankcore._core.warning import warn

# Labels are encoded in blocks of this size, so that temporaries do not grow with the data.
LABEL_BLOCK = 8192
# Maximum number of classes for which Python finds one label faster than NumPy.
FEW_CLASSES = 32
# Maximum number of labels in a message.
MOST_SHOWN = 20
# Maximum length of a label: NumPy makes all strings of an array as wide as the longest.
LONGEST = 4096
_NUMBERED = (
    ". Tools of scikit-learn that number words (cross_val_predict for probabilities, voting, "
    "stacking, bagging) number them alphabetically, which is not their rank: use "
    "rankcore.model_selection.cross_val_predict, or number the labels by rank yourself, 0 for the "
    "lowest, and leave classes out"
)


def as_labels(y: Any, n_rows: int | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Convert labels to a one-dimensional array; return their declared order too, or None.

    The order is that of `declared_order`, lowest first. There must be ``n_rows`` of them, if given.
    """
    if y is None:
        raise ValueError("this learner requires y to be passed, but the target y is None")
    classes = declared_order(y)
    labels = as_column(unboxed(y), "Input y")
    if labels.ndim != 1:
        from sklearn.utils import column_or_1d

        labels = as_column(unboxed(column_or_1d(labels, warn=True)), "Input y")
    if n_rows is not None and labels.shape[0] != n_rows:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {n_rows} rows and "
            f"{labels.shape[0]} labels"
        )
    return _with_order(labels, "y"), classes


def _with_order(labels: np.ndarray, name: str) -> np.ndarray:
    """Convert labels to an ordered dtype of NumPy; raise if there is none."""
    labels = sortable(labels, name)
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: labels must have an order")
    if labels.dtype.kind not in "biufmMUS" or labels.ndim != 1:
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(f"labels of type {kinds} are not supported: use numbers, strings or dates")
    if labels.dtype.kind in "fmM" and not np.isfinite(labels).all():
        raise ValueError(f"Input {name} contains infinity: every label must be finite")
    return labels


def sortable(labels: np.ndarray, name: str) -> np.ndarray:
    """Convert labels from `as_column` that are objects to a dtype that NumPy can sort.

    Raises ValueError if this would change a label.
    """
    if labels.dtype.kind != "O" or labels.ndim != 1:
        return labels
    values = labels.tolist()
    kinds = {kind_of_label(value) for value in values}
    if len(kinds) > 1:
        raise ValueError(f"{name} mixes strings with other labels; use labels of one type")
    for row, value in enumerate(values if kinds != {"value"} else ()):
        if value[-1:] in ("\0", b"\0") or len(value) > LONGEST:
            raise ValueError(
                f"{name} must hold strings of at most {LONGEST} characters that do not end in a "
                f"zero byte, which NumPy drops; got {value!r:.60} in row {row}"
            )
    array = np.array(values)
    if array.dtype.kind == "f" and array.tolist() != values:
        raise ValueError(
            f"{name} has integers that float64 and int64 cannot represent: number the labels"
        )
    return array


def kind_of_label(label: Any) -> str:
    """Return "string", "bytes" or, for numbers and dates, "value"."""
    if isinstance(label, str):
        return "string"
    return "bytes" if isinstance(label, bytes) else "value"


def check_classes(classes: Any, name: str = "classes") -> np.ndarray:
    """Return a validated copy of declared labels, lowest first; raise if they have no order."""
    classes = np.array(as_column(unboxed(classes), name))  # a copy that no caller can modify
    if classes.ndim != 1 or classes.size < 2:
        raise ValueError(
            f"{name} must list at least two labels, lowest rank first; got {classes.tolist()}"
        )
    classes = _with_order(classes, name)
    if np.unique(classes).size != classes.size:
        raise ValueError(f"{name} must list each label once; got {classes.tolist()}")
    if classes.dtype.kind in "biuf" and not (classes[:-1] < classes[1:]).all():
        raise ValueError(
            f"{name} must ascend if they are numbers; got {classes.tolist()}: ranks are in the "
            "numbers' own order (negate or relabel y for another)"
        )
    return classes


def find_classes(
    labels: np.ndarray, learner: str = "PRank", parameter: str = "classes"
) -> np.ndarray:
    """Find the distinct labels in ascending order, which are the ranks.

    Raises ValueError for strings, whose alphabetical order is rarely the intended one, for a single
    class, and for an apparently continuous target. ``learner`` is the class name in messages, and
    ``parameter`` its list of labels.
    """
    if labels.dtype.kind in "US":
        distinct = np.unique(labels)
        shown = distinct[:MOST_SHOWN].tolist()
        more = ", ..." if distinct.size > MOST_SHOWN else ""
        raise ValueError(
            f"string labels have no order of their own: pass {parameter}=, lowest rank first "
            "(--classes on the command line); in alphabetical order it is "
            f"{learner}({parameter}=[{', '.join(map(repr, shown))}{more}])"
        )
    classes = _distinct(labels)
    if classes.size < 2:
        raise ValueError(
            f"y has only one class, {classes[0].item()!r}; ordinal learning requires two or more. "
            "List the possible labels in classes= if others will follow"
        )
    continuous = labels.dtype.kind == "f" and not (classes == np.floor(classes)).all()
    if continuous and classes.size > max(20, labels.size // 2):
        raise ValueError(
            f"Unknown label type: continuous. y has {classes.size} distinct fractional values in "
            f"{labels.size} rows; ordinal learners require few ordered labels: bin y first, for "
            "example with np.digitize"
        )
    return classes


def _distinct(labels: np.ndarray) -> np.ndarray:
    """Return the distinct labels, ascending."""
    low, n_between = _span(labels)
    if n_between:
        counts = np.zeros(n_between, dtype=np.int64)
        for start in range(0, labels.size, LABEL_BLOCK):
            block = labels[start : start + LABEL_BLOCK].astype(np.int64)
            counts += np.bincount(block - low, minlength=n_between)
        return (np.flatnonzero(counts) + low).astype(labels.dtype)
    classes = np.unique(labels[:LABEL_BLOCK])
    for start in range(LABEL_BLOCK, labels.size, LABEL_BLOCK):
        # Not with isin, which fails for large unsigned integers in NumPy 2.0.
        classes = np.union1d(classes, labels[start : start + LABEL_BLOCK])
    return classes


def _span(labels: np.ndarray) -> tuple[int, int]:
    """Return the minimum of some integers, and the size of their range.

    The size is 0 if a table of this size is not worthwhile.
    """
    if not _fits_int64(labels) or not labels.size:
        return 0, 0
    low, high = int(labels.min()), int(labels.max())
    return (low, high - low + 1) if high - low < LABEL_BLOCK else (0, 0)


def _fits_int64(labels: np.ndarray) -> bool:
    return labels.dtype.kind in "bi" or (labels.dtype.kind == "u" and labels.dtype.itemsize < 8)


def ranks_around(model_ranks: np.ndarray, declared: np.ndarray) -> tuple[int, int]:
    """Return how many declared classes come before and after the known ones."""
    inner, every = model_ranks.tolist(), declared.tolist()
    for below in range(len(every) - len(inner) + 1):
        if every[below : below + len(inner)] == inner:
            return below, len(every) - len(inner) - below
    raise ValueError(
        f"with grow=True, classes must have those of the model in a row, {inner}, and new ones "
        f"before or after them; got {every}"
    )


def encode(labels: np.ndarray, classes: np.ndarray, parameter: str = "classes") -> np.ndarray:
    """Encode labels as ranks 0 .. k - 1: indices in ``classes``, which may be in any order.

    ``parameter`` is what lists them, for errors: ``classes`` of a model, or ``labels``.

    O(n) time for integers of a small range, else O(n log k). Only the result takes memory
    proportional to n.
    """
    if (labels.dtype.kind in "US") != (classes.dtype.kind in "US"):
        words = classes.dtype.kind in "US"
        raise ValueError(
            f"y must have labels of the type of the classes {classes.tolist()}, {classes.dtype}; "
            f"got {labels.dtype}" + (_NUMBERED if words and labels.dtype.kind in "iu" else "")
        )
    if labels.size == 1 and classes.size <= FEW_CLASSES and labels.dtype.kind == classes.dtype.kind:
        with suppress(ValueError):
            return np.array([classes.tolist().index(labels.item())], dtype=np.int32)
    low, n_between = _span(classes)
    if 0 < n_between <= labels.size and _fits_int64(labels):
        rank_of = np.full(n_between, -1, dtype=np.int32)
        rank_of[classes.astype(np.int64) - low] = np.arange(classes.size)
    else:
        rank_of, sorter = None, np.argsort(classes)
    ranks = np.empty(labels.size, dtype=np.int32)
    for start in range(0, labels.size, LABEL_BLOCK):
        block = labels[start : start + LABEL_BLOCK]
        if rank_of is not None:
            place = block.astype(np.int64) - low
            encoded = rank_of.take(place, mode="clip")
            unknown = (encoded < 0) | (place < 0) | (place >= n_between)
        else:
            place = np.searchsorted(classes, block, sorter=sorter)
            encoded = sorter[np.minimum(place, classes.size - 1)].astype(np.int32)
            unknown = classes[encoded] != block
        if unknown.any():
            where = int(unknown.argmax())
            what = f"y contains the label {block[where].item()!r} at row {start + where}, which is "
            if parameter != "classes":
                raise ValueError(
                    f"{what}not among {parameter}={classes.tolist()}: correct it, or include it"
                )
            raise ValueError(
                f"{what}not among the model's classes {classes.tolist()}; to learn it, include it "
                "in classes= from the first call on, or in OrdinalLogistic later with grow=True"
            )
        ranks[start : start + LABEL_BLOCK] = encoded
    return ranks


def ranks_beside(labels: np.ndarray, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks of labels and of classes on one scale, also for labels unknown to a model.

    The ranks of the classes are 0 .. n_classes - 1 unless numbers that are not classes are placed
    among them. Unknown strings raise ValueError.
    """
    if labels.dtype.kind in "US" or classes.dtype.kind in "US" or np.isin(labels, classes).all():
        return encode(labels, classes), np.arange(classes.size)
    union = np.union1d(classes, labels)
    return np.searchsorted(union, labels), np.searchsorted(union, classes)


def _check_given(classes: Any, name: str) -> None:
    check_classes(classes, name)


def _check_words(classes: Any, name: str) -> None:
    check_words(classes, name)


def check_words(classes: Any, name: str = "classes") -> NDArray[Any]:
    """Return a validated copy of words that are grades 0, 1 ... in this order."""
    words = check_classes(classes, name)
    if words.dtype.kind != "U":
        raise ValueError(
            f"{name} must be words, lowest grade first; got {words.tolist()}: numbers are grades "
            "themselves, so leave it out"
        )
    return words


def are_words(y: Any) -> bool:
    """Return whether labels are strings."""
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuf":
        return False
    labels = np.asarray(plain_column(y))
    return labels.dtype.kind in "UT" or (
        labels.dtype.kind == "O" and any(isinstance(label, str) for label in labels.ravel())
    )


def as_grades(
    y: Any,
    words: NDArray[Any] | None,
    learner: str | None = None,
    parameter: str = "classes",
) -> tuple[Any, NDArray[Any] | None]:
    """Replace labels that are words by grades 0, 1 ...; return the words too, lowest first.

    Their order is that of ``words`` or of an ordered categorical. Labels that are numbers are
    returned as they are, with None; an ordered categorical of these must ascend. In errors,
    ``learner`` is what takes the words, as its ``parameter``.
    """
    if words is None and not are_words(y):
        check_ascent(declared_order(y))
        return y, None
    labels, order_of_y = as_labels(y)
    grades = words_among(labels, order_of_y, words, learner, parameter)
    return encode(labels, grades, parameter).astype(np.float64), grades


def check_ascent(declared_order: NDArray[Any] | None) -> None:
    """Raise ValueError if the order of y's categories, which are numbers, is not their own."""
    if declared_order is not None and declared_order.size > 1:
        check_classes(declared_order, "the categories of y")


def words_among(
    labels: NDArray[Any],
    declared_order: NDArray[Any] | None,
    declared: NDArray[Any] | None,
    learner: str | None = None,
    parameter: str = "classes",
) -> NDArray[Any]:
    """Return all labels, lowest grade first: declared, or of the dtype; see `as_grades`."""
    if declared is not None and labels.dtype.kind != "U":
        raise ValueError(
            f"y holds labels of dtype {labels.dtype}, and {parameter}={declared.tolist()} are "
            f"words: pass y as these words, or leave {parameter} out, as numbers are grades "
            "themselves"
        )
    labels_in_order = declared_ranks(declared_order, declared, parameter)
    if labels_in_order is None and learner is None:
        raise ValueError(
            "labels that are words have no order of their own: pass an ordered pandas categorical, "
            "or number them, 0 for the lowest"
        )
    if labels_in_order is None:
        return find_classes(labels, str(learner), parameter)
    return labels_in_order


def words_of(estimator: Any) -> Any:
    """Return labels of an estimator that are words, lowest rank or grade first; None for others."""
    while hasattr(estimator, "best_estimator_") or hasattr(estimator, "steps"):
        inside = getattr(estimator, "best_estimator_", None)
        estimator = estimator[-1] if inside is None else inside
    ranks = getattr(estimator, "ranks_", getattr(estimator, "grades_", None))
    return None if ranks is None or ranks.dtype.kind in "biuf" else ranks


def as_relevance(y: Any, n_rows: int) -> Floats:
    """Convert labels to finite numbers; raise ValueError for integers beyond float64.

    Words must have an order: see `as_grades`.
    """
    labels, _ = as_labels(as_grades(y, None)[0], n_rows)
    if labels.dtype.kind not in "biuf":
        raise ValueError(
            f"labels of rankers must be numbers, higher for more relevant, or words; got dtype "
            f"{labels.dtype}"
        )
    numbers = labels.astype(np.float64)
    if labels.dtype.kind in "iu" and np.abs(numbers).max() >= 2**53:  # 2**53 + 1 rounds to it
        lost = numbers.astype(object) != labels
        if lost.any():
            raise ValueError(
                f"labels of rankers are float64, which cannot represent {labels[lost.argmax()]} "
                "exactly: number the levels"
            )
    return numbers


# What the parameter ``classes`` of learners accepts.
LABELS = Checked(_check_given, "labels") | None
# What the parameter ``classes`` of rankers accepts.
WORDS = Checked(_check_words, "words") | None


def declared_labels(model: Any, argument: Any = None) -> NDArray[Any] | None:
    """Return the labels of the parameter or argument ``classes``; raise if they differ."""
    if model.classes is None:
        return None if argument is None else check_classes(argument)
    own = check_classes(model.classes)
    if argument is not None and not np.array_equal(check_classes(argument), own):
        raise ValueError(
            f"classes={list(argument)} differ from classes={own.tolist()} of the constructor: "
            "pass them once"
        )
    return own


# Scikit-learn's measures assume columns in the order of `numpy.unique`, that of ``classes_``;
# ``ranks_`` has the order of the ranks. For numbers both are the same.


def as_columns(ranks: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Reorder the columns of a table from the order of ranks to that of ``classes_``."""
    return table if is_rising(ranks) else table[:, np.argsort(ranks)]


def by_rank(model: Any, table: NDArray[Any]) -> NDArray[Any]:
    """Reorder the columns of a table from the order of ``classes_`` to that of ranks."""
    if is_rising(model.ranks_):
        return table
    return -table if table.ndim == 1 else table[:, np.argsort(np.argsort(model.ranks_))]


def is_rising(labels: NDArray[Any]) -> bool:
    """Return whether labels are in ascending order, as in `numpy.unique`."""
    return bool((labels[:-1] < labels[1:]).all())


def first_ranks(
    y: Any, n_rows: int, declared: NDArray[Any] | None, learner: str
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Encode the first labels of a model; return their ranks and all labels, lowest first."""
    labels, declared_order = as_labels(y, n_rows)
    classes = ranks_among(labels, declared_order, declared, learner)
    return encode(labels, classes), classes


def ranks_among(
    labels: NDArray[Any],
    declared_order: NDArray[Any] | None,
    declared: NDArray[Any] | None,
    learner: str,
) -> NDArray[Any]:
    """Return all labels, lowest rank first: declared, of the dtype, or those of the rows.

    Raises ValueError for strings without an order, and for contradictory orders.
    """
    classes = declared_ranks(declared_order, declared)
    if classes is None:
        return find_classes(labels, learner)
    if declared is None and not is_rising(classes):
        warn(
            f"the order of the ranks is that of y's categories, {classes.tolist()}, and "
            "scikit-learn "
            "silently drops it where it sorts labels alphabetically (cross_val_predict, "
            "voting, stacking, bagging): pass it to the learner too, as "
            f"{learner}(classes={classes.tolist()})"
        )
    return classes


def declared_ranks(
    declared_order: NDArray[Any] | None,
    declared: NDArray[Any] | None,
    parameter: str = "classes",
) -> NDArray[Any] | None:
    """Return labels that are declared, lowest first, or those of the dtype; None without both."""
    if declared is None:
        return None if declared_order is None else check_classes(declared_order)
    if declared_order is not None:
        check_agreement(declared_order, declared, parameter)
    return declared


def agree(first: NDArray[Any], other: NDArray[Any]) -> bool:
    """Return whether labels that are in both arrays have the same order in both."""
    place = {label: rank for rank, label in enumerate(other.tolist())}
    both = [place[label] for label in first.tolist() if label in place]
    return both == sorted(both)


def check_agreement(
    declared_order: NDArray[Any], declared: NDArray[Any], parameter: str = "classes"
) -> None:
    """Raise ValueError if the order of y's categories differs from the declared one."""
    if not agree(declared_order, declared):
        raise ValueError(
            f"{parameter}={declared.tolist()} contradict the order of y's categories, "
            f"{declared_order.tolist()}: make them the same, or pass y without its order, as "
            "numpy.asarray(y)"
        )
