"""The table of docs/export.md: every learner in every format, and how far off each engine is.

``RANKCORE_EXPORT_ROWS=100000 python -m pytest tests/contract/test_export_table.py`` writes it anew.
"""

import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import export_engines as engines
import rankcore as rc
from declared import LEARNERS, SAVED, data_for, learns_from
from rankcore.exporters import FORMATS, checking
from rankcore.exporters.described import describe
from rankcore.exporters.reduced import OF_TREES, UnsupportedModelError

pytest.importorskip("onnx", reason="no onnx")
pytest.importorskip("onnxruntime", reason="no onnxruntime")
pytest.importorskip("xgboost", reason="no xgboost")

DOCUMENT = Path(__file__).parents[2] / "docs" / "export.md"
START, END = "<!-- table -->\n", "<!-- end of table -->\n"
if not DOCUMENT.exists():
    pytest.skip("the guides are not here", allow_module_level=True)
WRITE = "RANKCORE_EXPORT_ROWS" in os.environ
N_ROWS = int(os.environ.get("RANKCORE_EXPORT_ROWS", "1000"))
X, Y, QID = rc.datasets.make_letor(60, 20, random_state=0)
X = X[:, ::3].astype(np.float32).astype(np.float64)  # 46 features
NAMES = [f"f{j}" for j in range(X.shape[1])]
# What makes the models of the table small.
SMALL = {"n_estimators": 50, "max_hypotheses": 100, "budget": 100, "random_state": 0}
READERS = {
    "elasticsearch": lambda text, rows: engines.elasticsearch(text, rows, NAMES),
    "opensearch": lambda text, rows: engines.elasticsearch(text, rows, NAMES, False),
    "solr": lambda text, rows: engines.solr(text, rows, NAMES),
    "ranklib": engines.ranklib,
    "vespa": lambda text, rows: engines.vespa(text, rows, NAMES),
    "xgboost_dump": lambda text, rows: engines.dump(json.loads(text), engines.columns(rows, NAMES)),
}


def fitted(name):
    """Fit the learner that a row of the table names, with parameters if they are no defaults."""
    learner = eval(
        name if name.endswith(")") else f"{name}()", {kind.__name__: kind for kind in LEARNERS}
    )
    known = learner.get_params()
    learner.set_params(**{key: value for key, value in SMALL.items() if key in known})
    given = data_for(learner, Y, QID)
    n = 400 if learns_from(learner) == "labels" else len(X)
    return learner.fit(X[:n], **{key: value[:n] for key, value in given.items()})


def rows_for(model, n):
    """Single-precision rows, half of them on thresholds or next to one."""
    rng = np.random.default_rng(1)
    rows = X[rng.integers(len(X), size=n)] + rng.normal(scale=0.1, size=(n, len(NAMES)))
    rows = rows.astype(np.float32)
    scoring = model._spec().scoring
    if scoring.form in OF_TREES:
        near = np.unique(scoring.arrays["thresholds"].astype(np.float32))
        near = np.concatenate([near, np.nextafter(near, near + 1), np.nextafter(near, near - 1)])
        hostile = rng.random(rows.shape) < 0.5
        rows[hostile] = rng.choice(near, size=int(hostile.sum()))
    else:  # the same numbers in other sums: ties, and nearly
        rows[::2] = rng.choice(np.array([-2, -1, 0, 1, 2], dtype=np.float32), size=rows[::2].shape)
    return rows.astype(np.float64)


def cell(model, target, rows, folder):
    """Return the largest difference of a score, in single-precision ulps, and of a probability.

    Between them, how many neighbours changed places.
    """
    path = folder / {"c": "m.c", "xgboost": "m.json"}.get(target, "m")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f"{target} was not checked", UserWarning)
            check = rc.export(model, path, target, feature_names=NAMES, check=rows)
    except UnsupportedModelError:
        return None
    described = describe(model)
    size = float(checking.magnitudes(described, rows).max())
    if check is None:
        scores, shares = described.answers(rows).scores, None
        found = READERS[target](path.read_text(), rows).astype(np.float64)
        linear = described.scoring.form not in OF_TREES
        double = target == "vespa" or (target == "ranklib" and linear)
        eps = np.finfo(np.float64 if double else np.float32).eps
        largest = float(np.abs(scores - found).max())
        assert largest <= checking.terms(described) * eps * size
        order = np.argsort(scores, kind="stable")
        changed = int(((np.diff(scores[order]) > 0) & (np.diff(found[order]) < 0)).sum())
    else:
        largest, changed = check.largest_difference, check.reversed_pairs
        shares = check.probability_difference
    return largest / (SINGLE * size) if size else 0.0, changed, shares


SINGLE = float(np.finfo(np.float32).eps)


def text_of(value):
    if value is None:
        return "\N{EN DASH}"
    ulps, changed, shares = value
    # Rounded up.
    digits = 2 if ulps >= 0.01 else 10
    text = f"{np.ceil(ulps * 10**digits) / 10**digits:g}" + (f" ({changed})" if changed else "")
    return text if shares is None else f"{text}; {np.ceil(shares * 1e16) / 1e16:.2g}"


def documented():
    table = DOCUMENT.read_text(encoding="utf-8").split(START)[1].split(END)[0]
    lines = [[one.strip() for one in line.split("|")[1:-1]] for line in table.splitlines()]
    assert lines[0] == ["", *FORMATS]
    return {line[0].strip("`"): dict(zip(FORMATS, line[1:], strict=True)) for line in lines[2:]}


@pytest.mark.skipif(not WRITE, reason="RANKCORE_EXPORT_ROWS is not set")
def test_the_table_of_the_guide_is_rewritten_on_request(tmp_path):
    lines = ["| | " + " | ".join(FORMATS) + " |", "|---" * (len(FORMATS) + 1) + "|"]
    for name in documented():
        model = fitted(name)
        rows = rows_for(model, N_ROWS)
        cells = [text_of(cell(model, target, rows, tmp_path)) for target in FORMATS]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(START)
    text = before + START + "\n".join(lines) + "\n" + END + rest.split(END)[1]
    DOCUMENT.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", documented())
def test_docs_table_equals_the_accepted_exports(tmp_path, name):
    model = fitted(name)
    rows = rows_for(model, N_ROWS)
    line = documented()[name]
    for target in FORMATS:
        before = {*tmp_path.iterdir()}
        found = cell(model, target, rows, tmp_path)
        said = line[target]
        assert (found is None) == (said == "\N{EN DASH}"), target
        assert found is not None or {*tmp_path.iterdir()} == before
        if target == "c":
            shares = describe(model).has_probabilities
            assert said == ("0; 0" if shares else "0")
            assert found == (0.0, 0, 0.0 if shares else None)


def test_every_learner_is_in_the_table():
    named = {name.partition("(")[0] for name in documented()}
    kinds = {type(one).__name__ for one in SAVED}
    assert named == kinds, (
        "write a row of dashes for the learner, then write the table anew, as above"
    )
