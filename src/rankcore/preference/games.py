"""Ratings from tables of games, and logs of arenas."""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from rankcore._core.frames import frame_of, is_lazy
from rankcore._core.ids import Codes, as_names, id_list
from rankcore._core.numbers import Floats, check_lengths
from rankcore._core.params import check_integer, check_option
from rankcore.preference.bradley_terry import Comparisons, Posterior, fit, right_minus_wrong
from rankcore.preference.forms import Places, shown
from rankcore.preference.ratings import Ratings

# Prior standard deviation of strengths.
SCALE = 1.5
# Characters of a field of a CSV file, such as a conversation; the module's own limit is 131,072.
_LONGEST_FIELD = 2**31 - 1
# What the winner column of an arena may say: the degree to which the first model won, and whether
# it is a tie.
_OUTCOMES = {"model_a": 1.0, "model_b": 0.0, "tie": 0.5, "tie (bothbad)": 0.5, "both_bad": 0.5}
_OUTCOMES |= {"1-0": 1.0, "0-1": 0.0, "1/2-1/2": 0.5}  # of chess


def rate(
    winners: ArrayLike,
    losers: ArrayLike,
    *,
    degree: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    judge: ArrayLike | None = None,
    shown_first: ArrayLike | None = None,
    covariates: Mapping[str, ArrayLike] | None = None,
    ties: Literal["half", "davidson"] = "half",
    scale: float = SCALE,
    disconnected: Literal["raise", "prior"] = "raise",
    bootstrap: int = 0,
    random_state: int | np.random.Generator | None = 0,
) -> Ratings:
    """Return ratings of items from a table of comparisons, with standard errors.

    Parameters
    ----------
    winners, losers : array-like, shape (m,)
        Two different items in each row: integers or strings.
    degree : array-like of float, shape (m,), optional
        Degree of the win in [0, 1]: 1/2 for a tie, below 1/2 if the winner lost. None: 1.
    weight : array-like of float, shape (m,), optional
        Number of games that a row stands for. None: 1.
    judge : array-like, shape (m,), optional
        Judge of each row; the reliability of each judge is learned, below 0 for one that prefers
        the worse item. None: one judge.
    shown_first : array-like of bool, shape (m,), optional
        Whether the winner was shown first. None: not known, and no position bias is estimated.
    covariates : mapping of str to array-like of float, shape (m,), optional
        Differences between winner and loser of what else may decide a game, such as the length of
        an answer. Their effects are removed from the ratings, and reported.
    ties : {"half", "davidson"}
        A tie counts half for each item, or is an outcome of its own whose frequency is learned.
    scale : float
        Standard deviation of the normal prior of strengths, position bias and effects; in choix
        ``alpha = 1 / (2 * scale**2)``, in scikit-learn's LogisticRegression ``C = scale**2``.
        Strengths that spread more than this are pulled together, and their intervals miss them:
        choose a larger scale for games that the better one nearly always wins.
    disconnected : {"raise", "prior"}
        If no comparisons connect two groups of items: raise an error, or order the groups by the
        prior alone. `Ratings.components` has the groups.
    bootstrap : int
        Number of resamples of the games that standard errors and intervals come from. 0: from the
        second derivative.
    random_state : int, numpy.random.Generator or None
        Seed of the resamples.

    Returns
    -------
    Ratings
        Items in sorted order, judges in the order of `Ratings.judges`.

    Raises
    ------
    ValueError, TypeError
        For columns of different lengths, no rows, missing labels, an item compared with itself,
        numbers out of range, or disconnected items.

    Notes
    -----
    Without covariates rows are first summed by pair: time and memory grow with the number of
    distinct pairs. Davidson (1970).

    Examples
    --------
    >>> from rankcore.preference import rate
    >>> ratings = rate(["ann", "bob", "ann"], ["bob", "cyd", "cyd"], degree=[1.0, 0.5, 1.0])
    >>> dict(zip(ratings.items.tolist(), ratings.scores.round(2).tolist(), strict=True))
    {'ann': 0.91, 'bob': -0.46, 'cyd': -0.46}
    """
    check_option(ties, "ties", ("half", "davidson"))
    check_option(disconnected, "disconnected", ("raise", "prior"))
    check_integer(bootstrap, "bootstrap", 0)
    if not 0 < scale < np.inf:
        raise ValueError(f"scale must be positive and finite; got {scale!r}")
    items, (first, second) = _codes("items", {"winners": winners, "losers": losers})
    m = first.size
    judges, by = np.array([0]), None
    if judge is not None:
        judges, (by,) = _codes("judges", {"judge": judge})
    columns: dict[str, Any] = {"winners": first, "losers": second, "judge": by}
    degrees = np.ones(m) if degree is None else _numbers("degree", degree, 0, 1)
    weights = np.ones(m) if weight is None else _numbers("weight", weight, 0)
    shown = None
    if shown_first is not None:
        shown = 2 * _numbers("shown_first", shown_first, 0, 1) - 1
    columns |= {"degree": degrees, "weight": weights, "shown_first": shown}
    if covariates is not None and not isinstance(covariates, Mapping):
        raise TypeError(
            "covariates must be a dict of a column by the name of each covariate; got "
            f"{type(covariates).__name__}"
        )
    named = {name: _numbers(f"covariate {name!r}", z) for name, z in (covariates or {}).items()}
    check_lengths(**{k: v for k, v in (columns | named).items() if v is not None})
    if m == 0 or not weights.any():
        raise ValueError("ratings require at least one comparison with a weight; got none")
    for row in np.flatnonzero(first == second)[:1]:
        raise ValueError(f"an item must be compared with another one; row {row} has it twice")
    rows = Comparisons(
        items.size,
        first,
        second,
        degrees,
        weights,
        tie=(degrees == 0.5).astype(np.float64) if ties == "davidson" else None,
        shown=shown,
        covariates=np.column_stack([*named.values()]) if named else None,
        judge=by if judges.size > 1 else None,
        n_judges=judges.size,
    )
    merged = rows.merged()
    components = _components(items, merged, disconnected)
    posterior = fit(merged, scale=scale)
    source: Posterior | Floats = posterior
    if bootstrap:
        source = _resampled(rows, posterior, scale, bootstrap, np.random.default_rng(random_state))
    counts = np.bincount(first, weights, items.size) + np.bincount(second, weights, items.size)
    bias = posterior.bias()
    reliability = right_minus_wrong(
        posterior.theta[None], posterior.slopes[None], 2000, np.random.default_rng(0)
    )
    effects, deviations = posterior.effects()
    return Ratings(
        items=items,
        scores=posterior.theta,
        ranking=np.argsort(-posterior.theta, kind="stable"),
        n_answers=counts.astype(np.float64),
        components=components,
        judges=judges,
        reliability=reliability[0],
        position_bias=None if bias is None else float(1 / (1 + np.exp(-bias)) - 0.5),
        effects={
            name: (float(effect), float(error))
            for name, effect, error in zip(named, effects, deviations, strict=True)
        },
        tie_probability=posterior.tie_probability(),
        _source=source,
    )


def _resampled(
    rows: Comparisons, posterior: Posterior, scale: float, n: int, rng: np.random.Generator
) -> Floats:
    """Fit strengths to resampled games, moved to the strengths of all games."""
    strengths = np.empty((n, rows.n))
    for draw in range(n):
        weight = rng.poisson(rows.weight).astype(np.float64)  # of rows that stand for games
        resampled = replace(rows, weight=weight).merged()
        strengths[draw] = fit(resampled, scale=scale, tolerance=1e-4).theta
    return np.asarray(strengths + (posterior.theta - strengths.mean(axis=0)))


def _components(items: NDArray[Any], rows: Comparisons, disconnected: str) -> Places:
    played = rows.weight > 0
    pairs = rows.first[played], rows.second[played]
    graph = coo_array((np.ones(pairs[0].size), pairs), (rows.n, rows.n))
    groups, group = connected_components(graph, directed=False)
    if groups > 1 and disconnected == "raise":
        examples = items[[np.flatnonzero(group == g)[0] for g in range(2)]].tolist()
        raise ValueError(
            f"comparisons must connect all items; got {groups} groups without comparisons "
            f"between them, such as those of {examples[0]!r} and {examples[1]!r}: rate each on its "
            'own, or order groups by the prior with disconnected="prior"'
        )
    return np.asarray(group, dtype=np.intp)


def _numbers(
    name: str,
    values: Any,
    low: float = -np.inf,
    high: float = np.inf,
    rows: Sequence[int] | None = None,
) -> Floats:
    """Return a column of numbers, given as text or numbers; ``rows`` are their rows in a file."""
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([_number(value) for value in values])
    if numbers.ndim != 1:
        raise ValueError(f"{name} must have one dimension; got shape {numbers.shape}")
    wrong = ~(np.isfinite(numbers) & (numbers >= low) & (numbers <= high))
    for k in np.flatnonzero(wrong)[:1].tolist():
        allowed = f"in [{low:g}, {high:g}]" if high < np.inf else f">= {low:g} and finite"
        allowed = "finite" if low == -np.inf else allowed
        value = values[k] if isinstance(values, list) else float(numbers[k])
        row = k if rows is None else rows[k] + 1
        raise ValueError(f"{name} must be {allowed}; got {shown(value)} in row {row}")
    return numbers


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def _codes(name: str, columns: Mapping[str, ArrayLike]) -> tuple[NDArray[Any], list[Places]]:
    """Return the sorted ids of some columns together, and the codes of each column."""
    codes = Codes(name)
    numbers = [codes.number(id_list(column, title)) for title, column in columns.items()]
    ids = codes.ids()
    in_order = np.argsort(ids, kind="stable")
    place = np.argsort(in_order)
    return ids[in_order], [place[column] for column in numbers]


# ---------------------------------------------------------------------- logs


@dataclass(repr=False)
class Games:
    """A log of games between two items each, as `read_games` returns it.

    Attributes
    ----------
    first, second : list of str
        The items; in an arena, model_a and model_b, in the order shown.
    degree : ndarray of float64, shape (m,)
        1 if the first item won, 1/2 for a tie, 0 if it lost.
    weight : ndarray of float64 or None
    judge : list of str or None
    covariates : dict of ndarray
        Differences between the first and the second item.
    ordered : bool
        Whether the first item was shown first.
    n_self_play, n_missing : int
        Rows dropped because both items are the same, or because a value is missing.
    """

    first: list[str]
    second: list[str]
    degree: Floats
    weight: Floats | None
    judge: list[str] | None
    covariates: dict[str, Floats]
    ordered: bool
    n_self_play: int
    n_missing: int

    def __repr__(self) -> str:
        """Return the numbers of games and items."""
        n_items = len({*self.first, *self.second})
        return f"Games({len(self.first)} games of {n_items} items)"

    def rate(self, **params: Any) -> Ratings:
        """Return ratings of the items.

        Parameters
        ----------
        **params
            Those of `rate` that are not columns, such as ``ties`` and ``bootstrap``.
        """
        return rate(
            self.first,
            self.second,
            degree=self.degree,
            weight=self.weight,
            judge=self.judge,
            shown_first=np.ones(len(self.first)) if self.ordered else None,
            covariates=self.covariates or None,
            **params,
        )


def read_games(
    source: str | os.PathLike[str] | IO[str] | Any,
    *,
    first: str = "model_a",
    second: str = "model_b",
    winner: str = "winner",
    loser: str | None = None,
    degree: str | None = None,
    judge: str | None = None,
    weight: str | None = None,
    covariates: Sequence[str] = (),
) -> Games:
    r"""Read a log of games, such as that of an arena of language models.

    Parameters
    ----------
    source : path, text file or frame
        A CSV file with a header, or a JSON array or lines of objects if its name has ``.json`` in
        it; compressed if it ends with ``.gz``. Or a frame of pandas, polars or Arrow.
    first, second : str
        Columns of the two items, in the order shown.
    winner : str
        Column of the outcome: "model_a", "model_b", "tie", "tie (bothbad)", the name of one of the
        two items, or "1-0", "1/2-1/2" and "0-1" as in chess. With ``loser``, or in a file with a
        column "loser" and without the columns of items, the column of the item that won.
    loser : str, optional
        Column of the item that lost, instead of ``first`` and ``second``.
    degree : str, optional
        Column of the degree to which the winner won, in [0, 1]; without ``loser``, that to which
        the first item won, such as the score of White: 1, 0.5 or 0. Then there is no winner.
    judge, weight : str, optional
        Columns of judges and of weights.
    covariates : sequence of str
        Names of what else may decide a game. For each there is a column of the difference between
        the first and the second item, or two columns with the suffixes ``_a`` and ``_b``.

    Returns
    -------
    Games
        Without games of an item against itself and without rows with missing values, both counted.

    Raises
    ------
    ValueError
        For missing columns, unknown outcomes, and files that are not UTF-8, CSV or JSON.
    OSError
        For a file that cannot be read, or is not compressed as its name says.

    Examples
    --------
    >>> import io
    >>> from rankcore.preference import read_games
    >>> log = io.StringIO("model_a,model_b,winner\nx,y,model_a\nx,x,tie\ny,z,tie\nz,x,\n")
    >>> games = read_games(log)
    >>> games.degree.tolist(), games.n_self_play, games.n_missing
    ([1.0, 0.5], 1, 1)
    """
    covariates = as_names(covariates, "covariates")
    table, title = _read_table(source)
    if loser is None and first not in table and "loser" in table:
        loser = "loser"
    if degree is not None and loser is None and winner in table:
        raise ValueError(
            f"{title}: outcomes must have one column; got {winner!r} and degree={degree!r}, which "
            "without loser is of the first item: leave one of them out, or pass loser"
        )
    items = [winner, loser] if loser is not None else [first, second]
    wanted: list[str] = [name for name in [*items, degree, judge, weight] if name is not None]
    if loser is None and degree is None:
        wanted.append(winner)
    for name in covariates:
        wanted += [name] if name in table else [f"{name}_a", f"{name}_b"]
    for name in wanted:
        if name not in table:
            of_two = [f" (or {k!r} itself)" for k in covariates if name in (f"{k}_a", f"{k}_b")]
            remedy = ""
            if name in (first, second, winner):
                remedy = ": name those of first, second and winner, or of winner and loser"
            raise ValueError(
                f"{title}: a column {name!r}{''.join(of_two)} is required; got "
                f"{', '.join(table) or 'none'}{remedy}"
            )
    columns = {name: table[name] for name in wanted}
    whole = [
        k
        for k, row in enumerate(zip(*columns.values(), strict=True))
        if not any(map(_missing, row))
    ]
    n_missing = len(columns[items[0]]) - len(whole)
    kept = [k for k in whole if len({_label(columns[name][k]) for name in items}) == 2]
    columns = {name: [column[k] for k in kept] for name, column in columns.items()}
    a, b = ([_label(value) for value in columns[name]] for name in items)

    def numbers(name: str, low: float = -np.inf, high: float = np.inf) -> Floats:
        return _numbers(f"{title}: {name}", columns[name], low, high, kept)

    degrees = np.ones(len(kept)) if degree is None else numbers(degree, 0, 1)
    if loser is None and degree is None:
        outcomes = map(_label, columns[winner])
        degrees = np.array(
            [
                _outcome(outcome, u, v, f"{title}, row {k + 1}")
                for outcome, u, v, k in zip(outcomes, a, b, kept, strict=True)
            ]
        )
    return Games(
        a,
        b,
        degrees,
        None if weight is None else numbers(weight, 0),
        None if judge is None else [_label(value) for value in columns[judge]],
        {
            name: numbers(name) if name in columns else numbers(f"{name}_a") - numbers(f"{name}_b")
            for name in covariates
        },
        loser is None,
        len(whole) - len(kept),
        n_missing,
    )


def _outcome(outcome: str, first: str, second: str, where: str) -> float:
    degree = _OUTCOMES.get(outcome.strip())
    if degree is not None:
        return degree
    if outcome in (first, second):
        return float(outcome == first)
    raise ValueError(
        f"{where}: the winner must be model_a, model_b, tie, tie (bothbad), 1-0, 0-1, 1/2-1/2 or "
        f"one of the two items; got {outcome!r}: pass scores of the first item as degree"
    )


def _label(value: Any) -> str:
    """Return the text of an item; a column of integers that lacks some has real numbers."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value)


def _missing(value: Any) -> bool:
    """Return whether a value is None, NaN, pandas' NA or empty."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ == "NAType" or value != value


def _read_table(source: Any) -> tuple[dict[str, list[Any]], str]:
    """Read columns by name; return also what to call the source in an error."""
    frame = frame_of(source)
    if frame is not None:
        return {str(name): frame.to_list(j) for j, name in enumerate(frame.names)}, "the frame"
    if is_lazy(source):
        raise TypeError("source must be a frame with rows: read them by source.collect()")
    if not isinstance(source, str | os.PathLike) and not hasattr(source, "read"):
        raise TypeError(
            f"source must be a path, a text file or a frame; got {shown(source)}: make it a frame"
        )
    title = "the file" if hasattr(source, "read") else os.fspath(source)
    try:
        if hasattr(source, "read"):
            return _parse_csv(source, title), title
        unpack = gzip.open if title.lower().endswith(".gz") else open
        parse = _parse_json if ".json" in os.path.basename(title).lower() else _parse_csv
        with unpack(title, "rt", newline="", encoding="utf-8-sig") as file:
            return parse(file, title), title
    except UnicodeDecodeError as error:
        raise ValueError(f"{title} must be text in UTF-8; {error}: convert it first") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OSError(
            f"{title} is not a whole gzip file ({error}): compress or download it again"
        ) from error


def _parse_csv(lines: Iterable[str], title: str) -> dict[str, list[Any]]:
    reader = csv.reader(lines, strict=True)
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            raise ValueError(f"{title}: names of columns must differ; got {', '.join(header)}")
        rows = []
        for row in reader:
            if len(row) > len(header):
                raise ValueError(
                    f"{title}, line {reader.line_num}: at most {len(header)} fields are required, "
                    f"as in the header; got {len(row)}: quote fields with commas"
                )
            if row:
                rows.append(row + [""] * (len(header) - len(row)))
    except csv.Error as error:
        raise ValueError(f"{title}, line {reader.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)
    return {name: [row[k] for row in rows] for k, name in enumerate(header)}


def _parse_json(file: IO[str], title: str) -> dict[str, list[Any]]:
    text = file.read()
    whole = text.lstrip().startswith("[")
    # Lines end with \n alone: strings may have U+2028 and other separators.
    parts = [text] if whole else text.split("\n")
    rows = []
    for number, part in enumerate(parts, start=1):
        if not part.strip():
            continue
        where = title if whole else f"{title}, line {number}"
        try:
            parsed = json.loads(part)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"{where}: {error}; required is an array of objects, or an object in each line"
            ) from error
        for row in parsed if whole else [parsed]:
            if not isinstance(row, dict):
                raise ValueError(f"{where}: each game must be an object; got {shown(row)}")
            rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: [row.get(name) for row in rows] for name in names}
