"""A call that makes several fits issues each kind of warning once, at the user's line."""

import inspect
import warnings

import numpy as np
import pytest

import rankcore as rc
from rankcore._core.warning import warn, warns_once
from rankcore.model_selection import cross_val_predict, cross_validate_queries

X, RELEVANCE, QID = rc.datasets.make_letor(24, 12, random_state=0)
STARS = RELEVANCE.astype(int)
FAR = np.column_stack([1e6 + X[:, 0], X[:, 1:]])  # features that are not on one scale
SVM = {"max_iter": 1, "standardize": False}
FOLDED = rc.CalibratedOrdinal(rc.PRank(max_iter=1, tol=1e-9, standardize=False), cv=3)

CALLS = {
    "CalibratedOrdinal": lambda: FOLDED.fit(FAR, STARS),
    "CalibratedOrdinal in folds": lambda: cross_val_predict(FOLDED, FAR, STARS, cv=3),
    "RankSVMCV": lambda: rc.RankSVMCV([0.1, 1], cv=3, **SVM).fit(X, RELEVANCE, qid=QID),
    "cross_val_predict": lambda: cross_val_predict(FOLDED.estimator, FAR, STARS, cv=3),
    "cross_validate_queries": lambda: cross_validate_queries(
        rc.RankSVM(**SVM), X, RELEVANCE, QID, cv=3
    ),
    "ranksvm_path": lambda: rc.ranksvm_path(X, RELEVANCE, qid=QID, Cs=[0.1, 1], **SVM),
}


def caught_from(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return caught


def kinds_of(caught):
    """Return the beginnings of messages, which have no numbers of the fit."""
    return sorted(str(warning.message)[:25] for warning in caught)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_kind_of_warning_is_issued_once(call):
    for _ in range(2):  # the next call warns again
        caught = caught_from(call)
        kinds = kinds_of(caught)
        assert kinds
        assert kinds == sorted(set(kinds))
        assert {warning.filename for warning in caught} == {__file__}


def test_warning_that_a_filter_raises_is_raised_by_each_fit():
    @warns_once
    def fits():
        for _ in range(3):
            with pytest.raises(UserWarning, match="unusual"):
                warn("unusual")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fits()


def test_separate_fits_warn_separately():
    model = rc.RankSVM(**SVM)
    caught = caught_from(lambda: [model.fit(X, RELEVANCE, qid=QID) for _ in range(3)])
    kinds = kinds_of(caught)
    assert kinds
    assert all(kinds.count(kind) == 3 for kind in kinds), kinds


def test_different_warnings_of_folds_are_all_issued():
    kinds = kinds_of(caught_from(CALLS["CalibratedOrdinal"]))
    assert len(kinds) == len(kinds_of(caught_from(lambda: FOLDED.estimator.fit(FAR, STARS)))) > 1


def test_every_public_name_with_folds_or_paths_is_tested():
    public = {name: getattr(rc, name) for name in rc.__all__}
    public |= {name: getattr(rc.model_selection, name) for name in rc.model_selection.__all__}
    several = {
        name
        for name, value in public.items()
        if callable(value) and {"cv", "Cs"} & {*inspect.signature(value).parameters}
    }
    assert several == {name for name in CALLS if " " not in name}
