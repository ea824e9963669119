"""Objects that are not a matrix: every learner rejects them with what to pass instead."""

import warnings

import numpy as np
import pytest

import declared

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc"))
QID = np.arange(60) // 10
Y = RNG.integers(0, 2, 60)
POLARS = pl.DataFrame(FRAME.to_dict("list"))

NOT_MATRICES = {
    "one row of pandas": (lambda: FRAME.iloc[0], ValueError, r"a Series: .*frame\.iloc\[\[0\]\]"),
    "one column of pandas": (lambda: FRAME["a"], ValueError, r"a Series: .*X\.to_frame\(\)"),
    "one column of polars": (lambda: POLARS["a"], ValueError, r"a Series: .*frame\[\[0\]\]"),
    "a lazy frame": (POLARS.lazy, TypeError, r"a LazyFrame: read its rows by X\.collect\(\)"),
    "one named row": (
        lambda: POLARS.row(0, named=True),
        TypeError,
        r"a dict: .*DataFrame\(\[X\]\)",
    ),
    "named rows": (
        lambda: POLARS.to_dicts(),
        TypeError,
        r"a list of dicts: pass pandas\.DataFrame",
    ),
    "a path": (lambda: "rows.csv", TypeError, "a str: read the file by rankcore.datasets"),
    "a generator": (lambda: iter(FRAME.values), TypeError, r": pass a list of its rows"),
    "nothing": (lambda: None, TypeError, "got None"),
    "one row": (lambda: FRAME.values[0], ValueError, r"\.reshape\(1, -1\) if it "),
}
# Tasks say what the X of their learners is.
LEARNERS = {
    kind.__name__: kind
    for kind in declared.LEARNERS
    if hasattr(kind, "predict") and declared.learns_from(kind) != "outputs"
}


def learned(name, X):
    kind = LEARNERS[name]
    return kind().fit(X, **declared.data_for(kind, Y, QID))


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scales, and of learning without queries
        return {name: learned(name, FRAME) for name in LEARNERS}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("given", NOT_MATRICES)
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_reject_other_objects_with_a_remedy(name, given, fitted):
    make, error, message = NOT_MATRICES[given]
    with pytest.raises(error, match=message):
        learned(name, make())
    model = fitted[name]
    for method in ("predict", "decision_function", "predict_proba", "project", "partial_fit"):
        if hasattr(model, method):
            more = declared.data_for(model, Y, QID) if method == "partial_fit" else {}
            with pytest.raises(error, match=message):
                getattr(model, method)(make(), **more)


@pytest.mark.parametrize("name", LEARNERS)
def test_one_row_frames_recommended_by_errors_are_accepted(name, fitted):
    expected = fitted[name].predict(FRAME)[:1]
    assert (fitted[name].predict(FRAME.iloc[[0]]) == expected).all()
    assert (fitted[name].predict(POLARS[[0]]) == expected).all()
    assert (fitted[name].predict(POLARS.lazy().collect()[:1]) == expected).all()
    assert (fitted[name].predict(pd.DataFrame([POLARS.row(0, named=True)])) == expected).all()
