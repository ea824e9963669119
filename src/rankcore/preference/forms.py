"""Forms of a preference: by pair, by lists of pairs or of items, by position, as a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Choice:
    """A judge that names the best of several items.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns the position of the best in it, from 0. It may be
        ``async``.
    k : int
        Items in a call, at least 2; fewer if there are not as many.

    Raises
    ------
    TypeError, ValueError
        For what cannot be called, or a k below 2.

    Notes
    -----
    The call of an answer that is no position is repeated, as one that failed; if it stays so, the
    call counts for nothing. If none of the first 20 answers is a position, ranking stops with a
    `PreferenceError`.

    Examples
    --------
    >>> from rankcore.preference import Choice, PreferenceRanker
    >>> shortest = Choice(lambda words: words.index(min(words, key=len)), k=3)
    >>> PreferenceRanker(shortest, top_k=1, random_state=0).rank(["banana", "fig", "pear", "mango"])
    ['fig']
    """

    def __init__(self, function: Callable[[list[Any]], Any], k: int):
        if not callable(function):
            raise TypeError(f"{type(self).__name__} needs a function of a list; found {function!r}")
        if not isinstance(k, Integral) or int(k) < 2:
            raise ValueError(f"k must be an integer from 2 on; found {k!r}")
        self.function: Callable[[list[Any]], Any] = function
        self.k: int = int(k)

    def _parse(self, answer: Any, n: int) -> tuple[tuple[int, ...], bool]:
        """Positions that an answer about n items names, the best first, and whether it is whole."""
        places = _positions([answer], n)
        return places, len(places) == 1


class Order(Choice):
    """A judge that puts several items in order, as rerankers by lists do.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns their positions in it, from 0, the best first. It
        may be ``async``.
    k : int
        As in `Choice`, and so are the errors.

    Notes
    -----
    The call of an answer that leaves positions out, has one twice or invents some is repeated, as
    one that failed; if it stays so, the positions that are right count, in their order.

    Examples
    --------
    >>> from rankcore.preference import Order, PreferenceRanker
    >>> judge = Order(lambda xs: sorted(range(len(xs)), key=xs.__getitem__), k=5)
    >>> ranker = PreferenceRanker(judge, top_k=3, random_state=0)
    >>> ranker.rank([8, 3, 5, 1, 9, 7, 2, 6, 4]), ranker.n_calls_
    ([1, 2, 3], 8)
    """

    def _parse(self, answer: Any, n: int) -> tuple[tuple[int, ...], bool]:
        named = list(answer) if isinstance(answer, Sequence | np.ndarray) else []
        places = _positions(named, n)
        return places, len(places) == len(named) == n


def _positions(named: Sequence[Any], n: int) -> tuple[int, ...]:
    """Those that are positions of n items, each once, in their order."""
    places = [
        int(place)
        for place in named
        if isinstance(place, Integral) and not isinstance(place, bool) and 0 <= int(place) < n
    ]
    return tuple(dict.fromkeys(places))


Degrees = NDArray[Any]  # of bool, or of float64 in [0, 1]
Places = NDArray[np.intp]


class Batch:
    """A preference that answers a list of pairs at once.

    Parameters
    ----------
    function : callable
        Takes a list of pairs ``(u, v)`` and returns as many degrees in [0, 1], or booleans: how
        much u should precede v. It may be ``async``.
    size : int, optional
        Most pairs in one call. None: all pairs of a round.

    Raises
    ------
    ValueError
        For a size below 1.
    TypeError
        If the function cannot be called.

    Examples
    --------
    >>> from rankcore.preference import Batch, quicksort_rank
    >>> shorter = Batch(lambda pairs: [len(u) < len(v) for u, v in pairs])
    >>> quicksort_rank(["ccc", "a", "bb"], shorter, random_state=0)
    ['a', 'bb', 'ccc']
    """

    def __init__(self, function: Callable[[list[tuple[Any, Any]]], Any], size: int | None = None):
        if not callable(function):
            raise TypeError(f"Batch needs a function of a list of pairs; found {function!r}")
        if size is not None and size < 1:
            raise ValueError(f"size must be at least 1, or None; found {size!r}")
        self.function = function
        self.size = size


class Judges:
    """Several judges of pairs, each call going to one of them.

    With ``method="rating"`` the reliability of each is learned (`Ratings.reliability`); with other
    methods, ``repeats`` of their number calls each of them for a pair.

    Parameters
    ----------
    functions : list of callable
        Each is a preference of two items; all of them ``async``, or none.

    Raises
    ------
    TypeError
        If there is none, one cannot be called, or only some are ``async``.

    Examples
    --------
    >>> from rankcore.preference import Judges, PreferenceRanker
    >>> judges = Judges([lambda u, v: u < v, lambda u, v: u < v, lambda u, v: u > v])
    >>> ranker = PreferenceRanker(judges, method="rating", max_calls=60, random_state=0)
    >>> ranker.rank([3, 1, 2, 5, 4])
    [1, 2, 3, 4, 5]
    """

    def __init__(self, functions: Sequence[Callable[[Any, Any], Any]]):
        self.functions: list[Callable[[Any, Any], Any]] = list(functions)
        if not self.functions or not all(callable(function) for function in self.functions):
            raise TypeError(f"Judges needs functions of two items; found {functions!r}")
        if len({is_async(function) for function in self.functions}) > 1:
            raise TypeError("Judges must all be async, or none of them")


class Indexed:
    """A preference that is computed from the positions of the items, many pairs at once.

    It costs no Python per comparison, and no calls: answers are neither kept nor tried
    again.

    Parameters
    ----------
    function : callable
        Takes two arrays of positions in the items, i and j, dtype intp and shape (m,), and returns
        the m degrees in [0, 1], or booleans, to which item i should precede item j.
    n_items : int, optional
        How many items it knows; more are an error. None: not known.

    Raises
    ------
    TypeError
        If the function cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.preference import Indexed, quicksort_rank
    >>> speed = np.array([3.0, 9.0, 5.0])
    >>> faster = Indexed(lambda i, j: 1 / (1 + np.exp(20 * (speed[j] - speed[i]))))
    >>> quicksort_rank(np.array(["bus", "train", "tram"]), faster, random_state=0).tolist()
    ['train', 'tram', 'bus']
    """

    def __init__(self, function: Callable[[Places, Places], Any], n_items: int | None = None):
        if not callable(function):
            raise TypeError(f"Indexed needs a function of two arrays; found {function!r}")
        self.function = function
        self.n_items = n_items

    def degrees(self, i: Places, j: Places) -> Degrees:
        """Degrees to which items i should precede items j, checked.

        Parameters
        ----------
        i, j : ndarray of intp, shape (m,)

        Returns
        -------
        ndarray of bool or float64, shape (m,)

        Raises
        ------
        ValueError, TypeError
            Unless they are m numbers in [0, 1].
        """
        return as_degrees(self.function(i, j), i.size)


def from_scores(scores: ArrayLike) -> Indexed:
    """Preference of the item with the higher score: degree 1, and 1/2 between equal scores.

    Parameters
    ----------
    scores : array-like of numbers, shape (n,)
        Higher for better; finite.

    Returns
    -------
    Indexed

    Raises
    ------
    ValueError
        If scores are not one-dimensional or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from rankcore.preference import from_scores, quicksort_rank
    >>> quicksort_rank(np.arange(3), from_scores([0.2, 0.9, 0.5]), random_state=0)
    array([1, 2, 0])
    """
    values = np.asarray(scores)
    if values.dtype.kind not in "biuf" or values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"scores must be a list of finite numbers; found {values.dtype} {values.shape}"
        )

    def precede(i: Places, j: Places) -> Degrees:
        of_i, of_j = values[i], values[j]
        above = of_i > of_j
        equal = of_i == of_j
        return above + 0.5 * equal if equal.any() else above

    return Indexed(precede, values.size)


def is_called(preference: Any) -> bool:
    """Whether a preference is called, rather than computed from positions or a matrix."""
    return callable(preference) or isinstance(preference, Batch | Choice | Judges)


def as_matrix(preference: Any, n: int) -> NDArray[Any] | None:
    """A preference that is given as a matrix, its shape and type checked; None for other forms."""
    if is_called(preference) or isinstance(preference, Indexed):
        return None
    matrix = np.asarray(preference)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TypeError(
            "preference must be a function of two items, a Batch, a Choice, an Order, Judges, an "
            f"Indexed or a matrix of degrees; found {type(preference).__name__}"
        )
    if matrix.shape != (n, n):
        raise ValueError(
            f"a matrix of preferences between {n} items must have shape ({n}, {n}); "
            f"found {matrix.shape}"
        )
    return matrix


def as_indexed(preference: Any, n: int) -> Indexed | None:
    """A preference that is computed from positions; None for one that has to be called."""
    if isinstance(preference, Indexed):
        if preference.n_items is not None and n > preference.n_items:
            raise ValueError(
                f"the preference is between {preference.n_items} items; found {n} items"
            )
        return preference
    matrix = as_matrix(preference, n)
    return None if matrix is None else Indexed(lambda i, j: matrix[i, j], n)


def is_async(preference: Any) -> bool:
    """Whether calls of the preference have to be awaited."""
    function = preference.function if isinstance(preference, Batch | Choice) else preference
    if isinstance(preference, Judges):
        function = preference.functions[0]
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object whose __call__ is async
    )


def as_degrees(values: Any, n_pairs: int) -> Degrees:
    """Check that a preference answered with n_pairs numbers in [0, 1]."""
    degrees = np.asarray(values)
    if degrees.dtype.kind not in "biuf":
        raise TypeError(
            f"a preference must answer with numbers in [0, 1] or booleans; found {shown(values)}"
        )
    if degrees.shape != (n_pairs,):
        raise ValueError(
            f"a preference must answer each of {n_pairs} pairs with one degree; "
            f"found shape {degrees.shape}"
        )
    if degrees.dtype.kind == "b":
        return degrees
    degrees = degrees.astype(np.float64, copy=False)
    inside = (degrees >= 0) & (degrees <= 1)  # NaN is not
    if not inside.all():
        found = degrees[~inside][0]
        raise ValueError(f"a preference must answer with degrees in [0, 1]; found {found}")
    return degrees


def decide(degrees: Degrees, rng: np.random.Generator, sample: bool) -> NDArray[np.bool_]:
    """Turn degrees into answers: by drawing with these probabilities, or by the larger half.

    Numbers are drawn only for degrees in between if ``sample``, for 1/2 otherwise.
    """
    if degrees.dtype.kind == "b":
        return degrees
    answers = degrees >= 1 if sample else degrees > 0.5
    open_ = (degrees > 0) & (degrees < 1) if sample else degrees == 0.5
    if open_.any():
        answers[open_] = rng.random(int(open_.sum())) < degrees[open_]
    return answers


def in_order(items: Sequence[Any] | NDArray[Any], order: Places) -> Any:
    """The items of an order: an array of an array, a list of anything else."""
    if isinstance(items, np.ndarray):
        return items[order]
    return [items[k] for k in order.tolist()]


# Items to put in order.
Items: TypeAlias = Sequence[Any] | NDArray[Any]
# A function of two items, or degrees for each pair of positions.
Preference: TypeAlias = Callable[[Any, Any], Any] | Batch | Indexed | ArrayLike


def as_items(items: Any) -> Any:
    """Items that can be taken by position: an array as it is, a list of anything else."""
    if isinstance(items, np.ndarray):
        return items
    unordered = isinstance(items, Set | Mapping) or hasattr(items, "columns")
    if unordered or not hasattr(items, "__len__"):
        raise TypeError(
            "items must be a sequence, such as a list or an array; found "
            f"{type(items).__name__}: pass a list of what is to be put in order"
        )
    return list(items)


def shown(values: Any) -> str:
    """A value for a message, cut where it is long."""
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."
