"""Methods of interleaving: lists of several rankings, and credits for clicks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankcore._core.numbers import Floats
from rankcore._core.params import check_real
from rankcore.interleaving.rankings import Rankings, as_clicks, check_seed


@dataclass(frozen=True)
class Interleaved:
    """A list that interleaves several rankings.

    Attributes
    ----------
    documents : list
        Documents to show, best first.
    owners : ndarray of int32, shape (n_documents,)
        Index of the ranking of each document; -1 if the method does not assign documents.
    rankings : tuple of list
        The rankings. They must be logged for methods whose credit depends on them: all except
        `TeamDraft`.
    """

    documents: list[Any]
    owners: NDArray[np.int32]
    rankings: tuple[list[Any], ...]


class Credited(ABC):
    """Credits computed by the kernel. Not public."""

    _n_rankings: ClassVar[int | None] = None  # required number; None: two or more

    @property
    @abstractmethod
    def _method(self) -> str:
        """Name of the credit in the kernel."""

    def _weights(self, rankings: Rankings) -> Floats:
        """Return the weights of places, for methods that use them."""
        return np.ones(1)

    def credit(self, shown: Interleaved, clicked: ArrayLike) -> Floats:
        """Compute the credit of each ranking for the clicks on a list.

        Parameters
        ----------
        shown : Interleaved
            A list created by the method.
        clicked : array-like, shape (n_documents,)
            1 for each clicked document, otherwise 0; or weights of the clicks.

        Returns
        -------
        ndarray of float64, shape (n_rankings,)

        Raises
        ------
        ValueError
            For clicks or owners that are not as many as the documents, and for a number of rankings
            that the method does not interleave.
        """
        from rankcore._ext import interleave

        clicks = as_clicks(clicked, len(shown.documents))
        owners = np.asarray(shown.owners, dtype=np.int32)
        if owners.shape != clicks.shape:
            raise ValueError(
                "shown.owners must have one number for each of the "
                f"{clicks.size} documents shown; got shape {owners.shape}: pass the list that "
                "interleave returned"
            )
        rankings = Rankings.of(shown.rankings, self._n_rankings)
        credit = np.zeros((1, len(rankings)))
        if not clicks.size:
            return credit[0]
        # A document in none of the rankings gets an unused number.
        codes = [rankings.codes.get(document, -1) for document in shown.documents]
        interleave.credit(
            interleave.Method[self._method.upper()],
            rankings.documents,
            rankings.offsets,
            self._weights(rankings),
            np.empty(interleave.n_room(rankings.offsets)),  # working memory
            np.array([codes], dtype=np.int64),
            owners.reshape(1, -1),
            np.array([clicks.size], dtype=np.int32),
            clicks.reshape(1, -1),
            credit,
        )
        return credit[0]


class _Drawn(Credited):
    """Lists drawn by the kernel."""

    def interleave(
        self,
        rankings: Iterable[Sequence[Hashable]],
        *,
        length: int | None = None,
        seed: int,
    ) -> Interleaved:
        """Create the list of an impression.

        Parameters
        ----------
        rankings : iterable of sequences
            Documents of each ranker, best first, without repeats; any hashable values.
        length : int, optional
            Maximum number of documents to show; None: that of the shortest ranking.
        seed : int
            Seed from 0 to 2**64 - 1; use a different one for each impression, such as a counter, or
            a hash of the session and the query.

        Returns
        -------
        Interleaved
            The list, the same for equal arguments, also in C.

        Raises
        ------
        ValueError
            For repeated documents in a ranking, and numbers out of range.
        TypeError
            For rankings that are not sequences, and documents that are not hashable.
        """
        numbered = Rankings.of(rankings, self._n_rankings)
        seeds = np.array([check_seed(seed)], dtype=np.uint64)
        shown, owners, lengths = numbered.draw(
            self._method, seeds, numbered.length(length), self._weights(numbered)
        )
        n = lengths[0]
        return Interleaved(numbered.named(shown[0, :n]), owners[0, :n], numbered.lists())


@dataclass(frozen=True)
class TeamDraft(_Drawn):
    """Team draft interleaving of two or more rankings.

    In each round every ranker adds its best document that is not shown yet, in random order. A
    click is credited to the ranker that added the document.

    Notes
    -----
    Radlinski, Kurup and Joachims (2008); with more than two rankings, team draft multileaving
    (Schuth et al., 2014). If clicks do not depend on the documents, rankers have the same expected
    credit, unless one runs out of documents. Plain form: ``tests/reference/interleaving.py``,
    ``team_draft``.

    Examples
    --------
    >>> from rankcore.interleaving import TeamDraft
    >>> method = TeamDraft()
    >>> shown = method.interleave([["a", "b", "c"], ["b", "d", "a"]], seed=1)
    >>> shown.documents, shown.owners.tolist()
    (['a', 'b', 'd'], [0, 1, 1])
    >>> method.credit(shown, [0, 1, 0]).tolist()
    [0.0, 1.0]
    """

    _method: ClassVar[str] = "team_draft"


@dataclass(frozen=True)
class Balanced(_Drawn):
    """Balanced interleaving of two rankings.

    Rankers take turns, starting with a random one; documents that are shown already are skipped.
    The credit of each is the number of clicks on its best k documents, where k is the smallest
    number for which one of them has the last clicked document.

    Notes
    -----
    Joachims (2002). It is biased for rankings that differ by a shift: for 1 2 3 4 and 2 3 4 1,
    random clicks prefer the second. Prefer `TeamDraft` for new experiments. Plain form:
    ``tests/reference/interleaving.py``, ``balanced``.

    Examples
    --------
    >>> from rankcore.interleaving import Balanced
    >>> shown = Balanced().interleave([["a", "b", "c"], ["b", "d", "a"]], seed=2)
    >>> shown.documents
    ['a', 'b', 'd']
    >>> Balanced().credit(shown, [0, 0, 1]).tolist()
    [0.0, 1.0]
    """

    _method: ClassVar[str] = "balanced"
    _n_rankings: ClassVar[int | None] = 2


@dataclass(frozen=True)
class Probabilistic(_Drawn):
    """Probabilistic interleaving of two or more rankings.

    For each document a ranker is drawn at random, and a document from its ranking with
    probabilities proportional to 1 / place^tau. Every order is therefore possible. A click is
    divided among rankers by the probabilities, given the list, that they contributed the document.

    Parameters
    ----------
    tau : float
        Exponent of the place in probabilities, at least 0.

    Notes
    -----
    Hofmann, Whiteson and de Rijke (2011); with more than two rankings, probabilistic multileaving
    (Schuth et al., 2015). Given the list, the rankers of its documents are independent, so that the
    credit is an exact expectation, without enumeration or sampling of assignments. Plain form:
    ``tests/reference/interleaving.py``, ``probabilistic``.

    Examples
    --------
    >>> from rankcore.interleaving import Probabilistic
    >>> method = Probabilistic()
    >>> shown = method.interleave([["a", "b", "c"], ["b", "d", "a"]], seed=1)
    >>> shown.documents
    ['b', 'a', 'c']
    >>> method.credit(shown, [0, 1, 0]).round(3).tolist()
    [0.808, 0.192]
    """

    tau: float = 3.0

    _method: ClassVar[str] = "probabilistic"

    def __post_init__(self) -> None:
        """Validate tau."""
        check_real(self.tau, "tau", 0.0, 64.0)

    def _weights(self, rankings: Rankings) -> Floats:
        from rankcore._ext import interleave

        weights = np.empty(max(1, int(np.diff(rankings.offsets).max())))
        interleave.place_weights(float(self.tau), weights)
        return weights
