"""Model files of earlier commits load, with equal predictions.

Each folder of tests/old_models is named after what its commit wrote for the first time, and was
written there by write.py: files, and predictions as hexadecimal floats.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import rankcore as rc

FOLDER = Path(__file__).parent / "old_models"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.rank"))
# Sums of exponentials and of kernel values are those of the platform's functions.
ROUNDED = {"kernel_prank", "kernel_oap", "kernel_svm", "calibrated"}


def number(value):
    return float.fromhex(value)


def test_all_that_was_written_is_here():
    for folder in FOLDER.glob("*/"):
        if (folder / "predictions.json").exists():
            models = json.loads((folder / "predictions.json").read_text())["models"]
            assert {path.stem for path in folder.glob("*.rank")} == models.keys()
    assert {Path(name).stem for name in FILES} >= {"prank", "trees", "kernel_svm", "texts", "kinds"}


@pytest.mark.parametrize("name", FILES)
def test_an_old_file_predicts_as_it_did(name):
    path = FOLDER / name
    written = json.loads((path.parent / "predictions.json").read_text())
    model = rc.load(path)
    X = np.array([[number(value) for value in row] for row in written["X"]])
    rows = {"texts": written.get("texts"), "kinds": written.get("kinds")}.get(path.stem, X)
    expected = written["models"][path.stem]
    assert "predict" in expected
    for method, values in expected.items():
        found = np.ravel(getattr(model, method)(rows)).astype(float)
        values = np.array([number(value) for value in values])
        if (path.stem in ROUNDED and method != "predict") or path.stem == "kernel_svm":
            np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12)
        else:
            assert found.tolist() == values.tolist()


@pytest.mark.parametrize("name", [name for name in FILES if Path(name).stem == "prank"])
def test_an_old_file_learns_on(name, tmp_path):
    """As one written now, of the same rows, does."""
    model = rc.load(FOLDER / name)
    written = json.loads((FOLDER / name).parent.joinpath("predictions.json").read_text())
    X = np.array([[number(value) for value in row] for row in written["X"]])
    rc.save(model, tmp_path / "again")
    again = rc.load(tmp_path / "again")
    y = model.classes_[np.arange(len(X)) % len(model.classes_)]
    assert np.array_equal(model.partial_fit(X, y).coef_, again.partial_fit(X, y).coef_)
