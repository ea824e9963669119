"""Forms of a preference: of pairs, of lists of pairs or items, of positions, or as a matrix."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.frames import is_frame
from rankcore._core.params import check_integer, check_real


class Choice:
    """A judge that names the best of several items.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns the position of the best one, from 0. May be
        ``async``. Other answers count as failed calls, and are repeated.
    k : int
        Items in a call, at least 2; fewer if fewer items remain.

    Examples
    --------
    >>> from rankcore.preference import Choice, PreferenceRanker
    >>> shortest = Choice(lambda words: words.index(min(words, key=len)), k=3)
    >>> PreferenceRanker(shortest, top_k=1, random_state=0).rank(["banana", "fig", "pear", "mango"])
    ['fig']
    """

    def __init__(self, function: Callable[[list[Any]], Any], k: int):
        if not callable(function):
            raise TypeError(f"{type(self).__name__} needs a function of a list; got {function!r}")
        check_integer(k, "k", 2)
        self.function: Callable[[list[Any]], Any] = function
        self.k: int = int(k)


class Order(Choice):
    """A judge that orders several items, such as a listwise reranker.

    Parameters
    ----------
    function : callable
        Takes a list of ``k`` items and returns their positions in it, from 0, best first; items may
        be missing. May be ``async``. Orders that repeat positions, or name others (as 1 to k do),
        count as failed calls, and are repeated.
    k : int
        As in `Choice`.

    Examples
    --------
    >>> from rankcore.preference import Order, PreferenceRanker
    >>> judge = Order(lambda xs: sorted(range(len(xs)), key=xs.__getitem__), k=5)
    >>> PreferenceRanker(judge, top_k=3, random_state=0).rank([8, 3, 5, 1, 9, 7, 2, 6, 4])
    [1, 2, 3]
    """


Degrees = NDArray[Any]  # of bool, or of float64 in [0, 1]
Places = NDArray[np.intp]


class Batch:
    """A preference that answers a list of pairs at once.

    Parameters
    ----------
    function : callable
        Takes a list of pairs ``(u, v)`` and returns a list of as many degrees in [0, 1], or
        booleans: the degree to which u should precede v. May be ``async``.
    size : int, optional
        Maximum number of pairs per call. None: all pairs of a round.

    Examples
    --------
    >>> from rankcore.preference import Batch, quicksort_rank
    >>> shorter = Batch(lambda pairs: [len(u) < len(v) for u, v in pairs])
    >>> quicksort_rank(["ccc", "a", "bb"], shorter, random_state=0)
    ['a', 'bb', 'ccc']
    """

    def __init__(self, function: Callable[[list[tuple[Any, Any]]], Any], size: int | None = None):
        if not callable(function):
            raise TypeError(f"Batch requires a function of a list of pairs; got {function!r}")
        if size is not None:
            check_integer(size, "size", 1)
        self.function = function
        self.size = size


class Judges:
    """Several judges of pairs; each call goes to the one with the most information for its price.

    Parameters
    ----------
    functions : mapping of str to callable
        Preferences of two items, by name; all of them ``async``, or none.
    prices : mapping of str to float, optional
        Price of a call of each judge, at least 0. None: all are equal.

    Notes
    -----
    The reliability of each judge is learned, below 0 for one that prefers the worse item; the
    answers of such an adversary are as informative as those of a good judge.

    Examples
    --------
    >>> from rankcore.preference import Judges, PreferenceRanker
    >>> judges = Judges({"ann": lambda u, v: u < v, "bob": lambda u, v: u < v})
    >>> PreferenceRanker(judges, max_calls=60, random_state=0).rank([3, 1, 2, 5, 4])
    [1, 2, 3, 4, 5]
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[[Any, Any], Any]],
        prices: Mapping[str, float] | None = None,
    ):
        if not isinstance(functions, Mapping) or not functions:
            raise TypeError(f"Judges requires functions of two items by name; got {functions!r}")
        self.functions = {str(name): function for name, function in functions.items()}
        if len(self.functions) < len(functions):
            raise ValueError(f"names of Judges must differ as strings; got {list(functions)}")
        if not all(map(callable, self.functions.values())):
            raise TypeError(f"Judges requires functions of two items by name; got {functions!r}")
        if len({is_async(function) for function in self.functions.values()}) > 1:
            raise TypeError("Judges must all be async, or none of them")
        by_name = dict.fromkeys(functions, 1.0) if prices is None else prices
        if not isinstance(by_name, Mapping) or by_name.keys() != functions.keys():
            raise ValueError(
                f"prices must be given for each of the judges {list(functions)}; got {prices!r}"
            )
        for price in by_name.values():
            check_real(price, "price of a judge", 0)
        self.prices = {str(name): float(price) for name, price in by_name.items()}


class Indexed:
    """A preference computed from positions of items, vectorised over pairs.

    Comparisons need no Python calls one by one; answers are neither cached nor retried.

    Parameters
    ----------
    function : callable
        Takes two arrays of item positions, i and j, dtype intp and shape (m,), and returns an array
        of m degrees in [0, 1], or booleans: the degree to which item i should precede item j.
    n_items : int, optional
        Number of items of the preference; rankings of more items raise an error. None: unlimited.

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
            raise TypeError(f"Indexed needs a function of two arrays; got {function!r}")
        self.function = function
        self.n_items = n_items

    def degrees(self, i: Places, j: Places) -> Degrees:
        """Return the degrees to which items i should precede items j, checked."""
        return as_degrees(self.function(i, j), i.size)


def as_matrix(preference: Any, n: int) -> NDArray[Any] | None:
    """Return the validated matrix of a preference in that form; None for other forms."""
    if callable(preference) or isinstance(preference, Batch | Choice | Judges | Indexed):
        return None
    matrix = np.asarray(preference)
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise TypeError(
            "preference must be a function of two items, a Batch, a Choice, an Order, Judges, an "
            f"Indexed or a matrix of degrees; got {type(preference).__name__}"
        )
    if matrix.shape != (n, n):
        raise ValueError(
            f"a matrix of preferences between {n} items must have shape ({n}, {n}); "
            f"got {matrix.shape}"
        )
    return matrix


def as_indexed(preference: Any, n: int) -> Indexed | None:
    """Return a preference as `Indexed` if it is computed; None if it is called."""
    if isinstance(preference, Indexed):
        if preference.n_items is not None and n > preference.n_items:
            raise ValueError(f"the preference has {preference.n_items} items; got {n} items")
        return preference
    matrix = as_matrix(preference, n)
    return None if matrix is None else Indexed(lambda i, j: matrix[i, j], n)


def is_async(preference: Any) -> bool:
    """Return whether calls of the preference have to be awaited."""
    function = preference.function if isinstance(preference, Batch | Choice) else preference
    if isinstance(preference, Judges):
        function = next(iter(preference.functions.values()))
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object whose __call__ is async
    )


def as_degrees(values: Any, n_pairs: int) -> Degrees:
    """Validate the answer of a preference: n_pairs numbers in [0, 1]."""
    degrees = np.asarray(values)
    if degrees.dtype.kind not in "biuf":
        raise TypeError(
            f"a preference must return numbers in [0, 1] or booleans; got {shown(values)}"
        )
    if degrees.shape != (n_pairs,):
        raise ValueError(
            f"a preference must answer each of {n_pairs} pairs with one degree; "
            f"got shape {degrees.shape}"
        )
    if degrees.dtype.kind == "b":
        return degrees
    degrees = degrees.astype(np.float64, copy=False)
    inside = (degrees >= 0) & (degrees <= 1)  # NaN is not
    if not inside.all():
        wrong = degrees[~inside][0]
        raise ValueError(f"a preference must return degrees in [0, 1]; got {wrong}")
    return degrees


def decide(degrees: Degrees, rng: np.random.Generator, draw: bool) -> NDArray[np.bool_]:
    """Convert degrees to booleans: by drawing with these probabilities, or by rounding.

    Random numbers are drawn only for degrees strictly between 0 and 1 if ``draw``, else for 1/2.
    """
    if degrees.dtype.kind == "b":
        return degrees
    answers = degrees >= 1 if draw else degrees > 0.5
    open_ = (degrees > 0) & (degrees < 1) if draw else degrees == 0.5
    if open_.any():
        answers[open_] = rng.random(int(open_.sum())) < degrees[open_]
    return answers


def in_order(items: Sequence[Any] | NDArray[Any], order: Places) -> Any:
    """Return items in an order: an array for an array, else a list."""
    if isinstance(items, np.ndarray):
        return items[order]
    return [items[k] for k in order.tolist()]


# Items to put in order.
Items: TypeAlias = Sequence[Any] | NDArray[Any]
# A function of two items, or a degree for each pair of positions.
Preference: TypeAlias = Callable[[Any, Any], Any] | Batch | Indexed | ArrayLike


def as_items(items: Any) -> Any:
    """Return items as an indexable sequence: arrays unchanged, all else as a list."""
    if isinstance(items, np.ndarray):
        return items
    unordered = isinstance(items, Set | Mapping) or is_frame(items)
    if unordered or not hasattr(items, "__len__"):
        raise TypeError(
            "items must be a sequence, such as a list or an array; got "
            f"{type(items).__name__}: pass a list of the items"
        )
    return list(items)


def item_array(items: Items) -> NDArray[Any]:
    """Return items as an array of one dimension: of objects, unless they are one already."""
    if isinstance(items, np.ndarray) and items.ndim == 1:
        return items
    array = np.empty(len(items), dtype=object)
    for k, item in enumerate(items):
        array[k] = item
    return array


def shown(values: Any) -> str:
    """Return a value for a message, truncated if it is long."""
    text = repr(values)
    return text if len(text) <= 60 else text[:57] + "..."
