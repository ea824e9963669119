"""Model files with other values: an error, or a model that answers and learns, and no crash."""

import faulthandler
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import rankcore as rc
from declared import QID, SAVED, X, Y, fitted, walk
from model_files import put_together, taken_apart

EXTREMES = [0, -1, 1, 2, 7, 2**31 - 1, -(2**31), 2**40, 2**50, 2**62, -(2**62), 2**63 - 1, -(2**63)]


def changed(array, rng):
    """Return an array of the same form with one value, or all, replaced."""
    array, kind = array.copy(), array.dtype
    if kind.kind == "f":
        value = rng.choice([0.0, -1.0, 1e300, -1e300, 1e-300, 0.5, 3.0])
    elif kind.kind == "b":
        value = bool(rng.integers(2))
    else:
        limits = np.iinfo(kind)
        value = int(np.clip(EXTREMES[rng.integers(len(EXTREMES))], limits.min, limits.max))
    if rng.random() < 0.2:
        array[...] = value
    elif rng.random() < 0.3 and array.size > 1:
        array = array[..., ::-1].copy()
    else:
        array[tuple(rng.integers(size) for size in array.shape)] = value
    return array


def use(path, sparse):
    """Load a model, and call all that reads its arrays."""
    found = rc.load(path, verify=False)
    rows = sp.csr_array(X) if sparse else X
    queries = {"qid": QID} if type(found).__name__ == "PairwisePerceptron" else {}
    calls = [
        lambda: found.predict(rows, **queries),
        lambda: found.predict_proba(rows),
        lambda: found.contributions(rows[:3], rows[:2]),
        lambda: list(found.staged_predict(rows[:3])),
        lambda: found.history_,
        lambda: repr(found._summary()),
        lambda: found.partial_fit(rows, Y, **({"qid": QID} if queries else {})),
        lambda: found.predict(rows, **queries),
    ]
    for call in calls:
        try:
            call()
        except Exception:  # an error is an answer; only a crash is none
            continue


def spoil(path, seed, n):
    """Use n files with changed arrays."""
    faulthandler.enable()
    rng = np.random.default_rng(seed)
    document, arrays = taken_apart(path.read_bytes())
    names = [name for name, one in arrays.items() if one.size and name.split(".")[0] != "scoring"]
    other = path.with_name("changed")
    for i in range(n):
        chosen = rng.choice(names, size=min(len(names), 1 + i % 3), replace=False)
        spoiled = {name: changed(arrays[name], rng) for name in chosen}
        other.write_bytes(put_together(document, {**arrays, **spoiled}))
        with np.errstate(all="ignore"):
            try:
                use(other, sparse=bool(i % 2))
            except ValueError:
                continue


@pytest.mark.slow
@walk(SAVED)
def test_no_value_of_a_model_file_crashes_a_reader(tmp_path, learner):
    n = 60 * int(os.environ.get("RANKCORE_HOSTILE", "1"))
    program = (
        "import sys, warnings; warnings.simplefilter('ignore'); from pathlib import Path\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from test_model_file_values import spoil\n"
    )
    for name, form in {"dense": np.asarray, "sparse": sp.csr_array}.items():
        rc.save(fitted(learner, form), tmp_path / name)
        program += f"spoil(Path({str(tmp_path / name)!r}), 0, {n})\n"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
