"""Rows on disk for learners: text files or row caches, by path, pattern or list."""

from __future__ import annotations

import os
from collections.abc import Iterable
from glob import glob
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, TypeAlias

import numpy as np

from rankcore._core.blocks import RowBlocks
from rankcore.datasets.letor_blocks import check_count
from rankcore.datasets.row_cache import (
    CachedRows,
    is_cache,
    read_description,
    source_stamps,
    write_cache,
)
from rankcore.datasets.streams import Source
from rankcore.datasets.text_rows import WINDOW, TextRows, reading_options

Sources: TypeAlias = Source | Iterable[Source]


def open_rows(
    source: Sources,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    window: int = WINDOW,
    cache: str | os.PathLike[str] | None = None,
) -> RowBlocks:
    r"""Open rows with labels that may be larger than memory, to give to ``fit`` in place of X.

    Learners of ordered labels (but for those with kernels) and `rankcore.PairwisePerceptron` learn
    a window of rows at a time, in memory that does not grow with the files. Others look at all rows
    at once: they take a row cache, whose arrays are mapped into memory.

    Parameters
    ----------
    source : path, pattern, binary file, or list of them
        LETOR or svmlight files, plain, gzip, bzip2 or Zstandard, read one after the other; or the
        directory of a row cache. A file that cannot be read twice, such as a pipe, is kept as a row
        cache in a temporary directory.
    n_features : int, optional
        By default the greatest number of a feature that occurs.
    zero_based : bool, default=False
        Whether the first feature is written as number 0.
    dtype : dtype, default=float64
        Or float32, which takes two thirds of the space in a cache.
    window : int, default=8
        Blocks of 2\ :sup:`18` values whose rows are shuffled together by a learner that shuffles.
    cache : path, optional
        The row cache to make, or to use again if it was made from these files and they have not
        changed.

    Returns
    -------
    RowBlocks
        For ``fit``, without y and qid.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a pattern has no match, files are mixed with caches, or a cache is of other files.

    Notes
    -----
    Text is read once to learn its labels, features and scale unless ``n_features`` is given here
    and ``classes`` to ``fit``, and once for each pass; an automatic scale is then that of the first
    block. A cache is read from the cache of the operating system where that holds it.

    Rows of a query stay together and must be next to each other. A learner that shuffles draws an
    order of blocks, of a cache, and of the rows or queries in each window; of text, blocks stay in
    order. Both follow from ``random_state`` and the number of the pass. Without shuffling the model
    is that of ``fit`` in memory, to the bit.

    Examples
    --------
    >>> import os, tempfile, rankcore as rc
    >>> X, y = rc.datasets.make_ordinal(1000, 5, random_state=0)
    >>> path = os.path.join(tempfile.mkdtemp(), "rows.svm.gz")
    >>> rc.datasets.dump_letor(X, y, path)
    >>> rows = rc.datasets.open_rows(path, cache=path + ".rows")
    >>> model = rc.PRank(shuffle=False, max_iter=3).fit(rows)
    >>> bool((model.coef_ == rc.PRank(shuffle=False, max_iter=3).fit(X, y).coef_).all())
    True
    """
    check_count("window", window)
    options = reading_options(zero_based, dtype, n_features)
    sources = list_sources(source)
    if len(sources) == 1 and _is_cache(sources[0]):
        if cache is not None:
            raise ValueError(f"{sources[0]} is a row cache already: leave cache out")
        return _opened(sources[0], window, n_features)
    for one in sources:
        if _is_cache(one):
            raise ValueError(f"{one} is a row cache, which cannot be read together with others")
        if not hasattr(one, "read") and os.path.isdir(one):
            raise ValueError(f"{one} is a directory, and not a row cache")
    if cache is not None:
        if is_cache(cache):
            about = read_description(Path(cache))
            same = about["sources"] == source_stamps(sources)
            kind = np.dtype(dtype).name
            if not same or about["zero_based"] != zero_based or about["dtype"] != kind:
                raise ValueError(
                    f"{cache} is a row cache of other files, or they have changed since, or of "
                    "other settings: delete it, or choose another directory"
                )
        else:
            write_cache(sources, cache, options)
        return _opened(cache, window, n_features)
    if any(map(_is_stream, sources)):
        folder = mkdtemp(prefix="rankcore")
        try:
            write_cache(sources, os.path.join(folder, "rows"), options)
            return CachedRows(os.path.join(folder, "rows"), window, folder)
        except BaseException:
            rmtree(folder, ignore_errors=True)
            raise
    return TextRows([os.fsdecode(one) for one in sources], options, window)  # type: ignore[arg-type]


def list_sources(source: Sources) -> list[Source]:
    """The files that a path, a pattern or a list of them names; of a pattern in order of names.

    Raises
    ------
    ValueError
        If a pattern has no match, or there is none at all.
    """
    single = isinstance(source, str | os.PathLike) or hasattr(source, "read")
    found: list[Source] = []
    for one in [source] if single else source:  # type: ignore[union-attr]
        if not hasattr(one, "read") and not isinstance(one, str | os.PathLike):
            raise TypeError(
                f"expected paths or files opened in binary mode, found {type(one).__name__}"
            )
        if isinstance(one, str) and not os.path.exists(one) and any(c in one for c in "*?["):
            matches = sorted(glob(one, recursive=True))
            if not matches:
                raise ValueError(f"no file matches {one}")
            found += matches
        else:
            found.append(one)  # type: ignore[arg-type]
    if not found:
        raise ValueError("expected at least one file, found none")
    return found


def _opened(path: Any, window: int, n_features: int | None) -> CachedRows:
    rows = CachedRows(path, window)
    if n_features is not None and n_features != rows.n_features:
        raise ValueError(
            f"{path} has {rows.n_features} features; found n_features={n_features}: leave it out, "
            "or make the cache with it"
        )
    return rows


def _is_cache(source: Source) -> bool:
    return not hasattr(source, "read") and is_cache(source)


def _is_stream(source: Source) -> bool:
    """Whether a source is a file object, or a path that cannot be read twice."""
    if hasattr(source, "read"):
        return True
    return os.path.exists(source) and not os.path.isfile(source)
