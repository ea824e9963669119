"""Rows on disk for learners: text files, Parquet files or row caches."""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from rankcore._core.params import check_count
from rankcore._core.sources import RowBlocks
from rankcore.datasets.file_rows import WINDOW, FileRows
from rankcore.datasets.letor_blocks import Options
from rankcore.datasets.parquet_rows import ParquetRows, is_parquet, parquet_files
from rankcore.datasets.row_cache import CachedRows, is_cache, read_description
from rankcore.datasets.row_cache_writer import source_stamps, write_cache
from rankcore.datasets.scaled_rows import ScaledRows, fit_scaler
from rankcore.datasets.streams import Source, title
from rankcore.datasets.text_rows import TextRows, reading_options

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

Sources: TypeAlias = Source | Iterable[Source]


@dataclass(frozen=True)
class _ColumnNames:
    """Columns of Parquet files by the parameters of `open_rows`; None for the defaults."""

    label: str | None
    qid: str | None
    features: Sequence[str] | None

    def any_given(self) -> bool:
        """Return whether a column is given."""
        return not (self.label is None and self.qid is None and self.features is None)


def open_rows(
    source: Sources,
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: DTypeLike = np.float64,
    window: int = WINDOW,
    cache: str | os.PathLike[str] | None = None,
    scaler: BaseEstimator | None = None,
    label: str | None = None,
    qid: str | None = None,
    columns: Sequence[str] | None = None,
) -> RowBlocks:
    r"""Open labelled rows on disk, which may be larger than memory, for ``fit`` instead of X.

    Learners of ordered labels (except those with kernels) and `rankcore.PairwisePerceptron` learn a
    window of rows at a time, in memory that does not grow with the files. Others use all rows at
    once, and require a row cache, whose arrays are memory-mapped.

    Parameters
    ----------
    source : path, pattern, binary file, or list of them
        LETOR or svmlight files, plain, gzip, bzip2 or Zstandard, or Parquet files;
        a directory of Parquet files; or the directory of a row cache. A file that cannot
        be read twice, such as a pipe, is converted to a row cache in a temporary directory.
    n_features : int, optional
        By default the maximum feature number.
    zero_based : bool, default=False
        Whether features are numbered from 0.
    dtype : dtype, default=numpy.float64
        float64 or float32, which takes two thirds of the space in a cache.
    window : int, default=8
        Blocks of 2\ :sup:`18` values whose rows are shuffled together by a learner that shuffles.
    cache : path, optional
        Row cache to create, or to reuse if it was created from these files and they have not
        changed.
    scaler : StandardScaler or MaxAbsScaler, optional
        A scaler of `sklearn.preprocessing` for the rows. It is fitted to them in place, unless it
        is fitted already.
    label, qid : str, optional
        Columns of Parquet files: labels, by default "label", and queries, by default the first
        existing one of "qid", "query" and "query_id".
    columns : list of str, optional
        Feature columns of Parquet files, in this order; by default all others but "docid".
        Models store their names.

    Returns
    -------
    RowBlocks
        Argument of ``fit``, which then takes no y and qid.

    Raises
    ------
    OSError
        If a file cannot be opened.
    ValueError
        If a pattern has no match, files are mixed with caches, a cache was made from other files,
        or pyarrow, which reads Parquet, is not installed.

    Notes
    -----
    Text is read once per pass, and once before to find labels, features and scale, unless
    ``n_features`` is given here and ``classes`` to ``fit``; an automatic scale is then that of the
    first block.

    Rows of a query must be contiguous, and stay together. A learner that shuffles permutes the
    blocks of a cache, and the rows or queries in each window; blocks of text stay in order. The
    permutation depends on ``random_state`` and the number of the pass. Without shuffling the model
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
    check_count(window, "window")
    if scaler is not None and type(scaler).__name__ not in ("StandardScaler", "MaxAbsScaler"):
        raise TypeError(
            "scaler must be a StandardScaler or a MaxAbsScaler of sklearn.preprocessing; got "
            f"{scaler!r}"
        )
    options = reading_options(zero_based, dtype, n_features)
    rows = _rows(source, options, window, cache, _ColumnNames(label, qid, columns))
    if scaler is None:
        return rows
    if not hasattr(scaler, "n_features_in_"):
        fit_scaler(scaler, rows)
    return ScaledRows(rows, scaler)


def _rows(
    source: Sources, options: Options, window: int, cache: Any, columns: _ColumnNames
) -> RowBlocks:
    """Open files as rows, through a row cache if one is given or they cannot be read twice."""
    sources = list_files(source)
    if len(sources) == 1 and is_cache(sources[0]):
        if cache is not None:
            raise ValueError(f"{sources[0]} is a row cache already: omit cache")
        if columns.any_given():
            raise ValueError(
                f"{sources[0]} is a row cache with fixed columns: omit label, qid and columns"
            )
        return _opened(sources[0], window, options.n_features)
    files = _open_files(sources, options, window, columns)
    if cache is not None:
        if not is_cache(cache):
            write_cache(files, cache)
        about = read_description(Path(cache))
        same = about["sources"] == source_stamps(sources)
        if not same or any(about.get(name) != value for name, value in files.settings.items()):
            raise ValueError(
                f"{cache} was made from other files, from earlier versions of these, or with other "
                "settings: delete it, or choose another directory"
            )
        return _opened(cache, window, options.n_features)
    if any(
        hasattr(source, "read") or (os.path.exists(source) and not os.path.isfile(source))
        for source in sources
    ):
        folder = mkdtemp(prefix="rankcore-")
        try:
            write_cache(files, Path(folder, "rows"))
            rows = CachedRows(Path(folder, "rows"), window)
        except BaseException:
            shutil.rmtree(folder)
            raise
        weakref.finalize(rows, shutil.rmtree, folder, ignore_errors=True)
        return rows
    return files


def _open_files(
    sources: list[Source], options: Options, window: int, columns: _ColumnNames
) -> FileRows:
    """Open files of one format."""
    tables = [not hasattr(source, "read") and is_parquet(source) for source in sources]
    if not any(tables):
        if columns.any_given():
            raise ValueError(
                f"label, qid and columns are for Parquet files; {title(sources[0])} is not one"
            )
        return TextRows(sources, options, window)
    if not all(tables):
        other = title(sources[tables.index(False)])
        raise ValueError(f"{other} is not a Parquet file, unlike others: pass files of one format")
    if options.zero_based:
        raise ValueError("zero_based is for text files, whose features have numbers")
    paths = [os.fsdecode(source) for source in sources]  # type: ignore[arg-type]
    rows = ParquetRows(paths, options.dtype, window, columns.label, columns.qid, columns.features)
    n_features = options.n_features
    if n_features is not None and n_features != rows.n_features:
        raise ValueError(
            f"{paths[0]} has {rows.n_features} columns of features; got n_features={n_features}"
        )
    return rows


def list_files(source: Sources) -> list[Source]:
    """List sources as `list_sources`, with directories replaced by their Parquet files."""
    sources = list_sources(source)
    files: list[Source] = []
    for source_path in sources:
        cached = is_cache(source_path)
        if cached and len(sources) > 1:
            raise ValueError(
                f"{source_path} is a row cache, which cannot be read together with other files"
            )
        if cached or hasattr(source_path, "read") or not os.path.isdir(source_path):
            files.append(source_path)
        elif tables := parquet_files(source_path):
            files += tables
        else:
            raise ValueError(
                f"{source_path} is a directory, but not a row cache, and has no Parquet files"
            )
    return files


def list_sources(source: Sources) -> list[Source]:
    """List the files of a path, a pattern or a list of them; a pattern's matches by name."""
    single = isinstance(source, str | os.PathLike) or hasattr(source, "read")
    sources: list[Source] = []
    for item in [source] if single else source:  # type: ignore[union-attr]
        if not hasattr(item, "read") and not isinstance(item, str | os.PathLike):
            raise TypeError(
                f"expected paths or files opened in binary mode; got {type(item).__name__}"
            )
        if isinstance(item, str) and not os.path.exists(item) and any(c in item for c in "*?["):
            matches = sorted(glob(item, recursive=True))
            if not matches:
                raise ValueError(f"no file matches {item}")
            sources += matches
        else:
            sources.append(item)  # type: ignore[arg-type]
    if not sources:
        raise ValueError("expected at least one file; got none")
    return sources


def _opened(path: Any, window: int, n_features: int | None) -> CachedRows:
    rows = CachedRows(path, window)
    if n_features is not None and n_features != rows.n_features:
        raise ValueError(
            f"{path} has {rows.n_features} features; got n_features={n_features}: omit it, "
            "or create the cache with it"
        )
    return rows
