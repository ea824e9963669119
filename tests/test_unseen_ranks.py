"""Declared ranks without rows, which no learner of probabilities predicts, however far a row."""

import numpy as np
import pytest
from sklearn.base import clone

import rankcore as rc
from declared import ORDINAL, name_of

RANKS = [0, 1, 2, 3, 4]
LOSSES = ["absolute", "zero_one", "squared", "kappa"]
WITH_PROBABILITIES = [one for one in ORDINAL if hasattr(one, "predict_proba")]
# With long steps the last parameters differ much from those by which rows were learned.
LONG = [
    rc.OrdinalLogistic(eta0=eta0, loss=loss, random_state=0)
    for eta0 in (10.0, 100.0)
    for loss in ("absolute", "squared", "zero_one")
]


def rows(seed, n):
    """Few rows, of the ranks 1 and 3."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 5)), rng.permutation(np.repeat([1, 3], n // 2))


@pytest.mark.parametrize("learner", [*WITH_PROBABILITIES, *LONG], ids=name_of)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.filterwarnings("ignore")  # few rows
def test_no_rank_without_rows_is_predicted(learner, method):
    if not hasattr(learner, method):
        pytest.skip("no streams")
    for seed in range(6):
        X, y = rows(seed, 12)
        model = getattr(clone(learner), method)(X, y, classes=RANKS)
        assert {*model.predict(np.vstack([X, 1e3 * X])).tolist()} <= {1, 3}


@pytest.mark.parametrize(
    "learner",
    [rc.OrdinalLogistic(loss=loss, random_state=0) for loss in LOSSES[:3]]
    + [rc.CalibratedOrdinal(rc.PRank(random_state=0), loss=loss) for loss in LOSSES],
    ids=name_of,
)
def test_rows_beyond_those_learned_get_the_nearest_rank_with_rows(learner):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 1))
    y = np.digitize(X[:, 0] + 0.1 * rng.normal(size=120), [-0.5, 0.5]) + 1
    model = clone(learner).fit(X, y, classes=RANKS)
    assert model.predict_proba([[-1e4], [1e4]])[[0, 1], [0, 4]].min() > 0.99
    assert model.predict([[-1e4], [1e4]]).tolist() == [1, 3]


@pytest.mark.parametrize("loss", ["absolute", "zero_one", "squared"])
def test_files_and_exports_predict_no_rank_without_rows(loss, tmp_path, capsys):
    X, y = rows(0, 12)
    far = 1e3 * X
    model = rc.OrdinalLogistic(loss=loss, eta0=10.0, random_state=0).fit(X, y, classes=RANKS)
    rc.save(model, tmp_path / "m")
    assert {*rc.load(tmp_path / "m").predict(far).tolist()} <= {1, 3}
    rc.export(model, tmp_path / "m.c", "c", check=far)
    assert "no order changed" in capsys.readouterr().out
