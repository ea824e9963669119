"""SQL expressions in PostgreSQL, which raises errors where other databases round to 0."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import rankcore as rc
from declared import QID, RNG, X, Y
from test_export_search import FIVE, fitted, hostile, scores

TINY = np.finfo(np.float64).smallest_subnormal


def installed():
    """Find the server's programs and the user that may run them; or return a reason."""
    beside = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else sorted(beside)
    if not folders:
        return None, None, "PostgreSQL is not installed"
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return folders[-1], None, ""
    import pwd

    try:
        return folders[-1], pwd.getpwnam("postgres"), ""
    except KeyError:
        return None, None, "PostgreSQL rejects root, and there is no user named postgres"


@pytest.fixture(scope="module")
def query():
    """Run SQL on a server of its own, which listens on a Unix socket alone."""
    folder, user, reason = installed()
    if reason:
        pytest.skip(reason)
    home = Path(tempfile.mkdtemp(prefix="rankcore-"))  # the name of a socket must be short
    identity = {}
    if user is not None:
        os.chown(home, user.pw_uid, user.pw_gid)
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def run(*command, text=None):
        done = subprocess.run(
            command,
            cwd=home,
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
            **identity,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answer(text):
        command = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", home, "-d", "postgres"]
        return run(folder / "psql", *command, text=text)

    data = home / "data"
    try:
        run(folder / "initdb", "-D", data, "-A", "trust", "-N", "--locale=C", "-E", "UTF8")
        options = f"-k {home} -c listen_addresses='' -c fsync=off"
        control = [folder / "pg_ctl", "-D", data, "-w", "-t", "60"]
        run(*control, "-l", home / "log", "-o", options, "start")
        try:
            yield answer
        finally:
            run(*control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home)


def scores_of(query, text, rows, kind="float8"):
    """Values of an expression for rows; missing values are NULL."""
    columns = ", ".join(f'"{name}" {kind}' for name in FIVE)
    lines = [
        "\t".join([str(n), *("\\N" if np.isnan(value) else repr(value) for value in row)])
        for n, row in enumerate(rows.tolist())
    ]
    answer = query(
        f"SET client_min_messages = error; DROP TABLE IF EXISTS t;\n"
        f"CREATE TABLE t (n int, {columns});\nCOPY t FROM STDIN;\n"
        + "\n".join(lines)
        + f"\n\\.\nSELECT ({text})::float8 FROM t ORDER BY n;\n"
    )
    return np.array([float(line) if line else np.nan for line in answer.splitlines()])


@pytest.mark.parametrize("front", [[], [StandardScaler()], [MinMaxScaler(clip=True)]], ids=str)
@pytest.mark.parametrize(
    "learner", [rc.PRank(random_state=0), rc.RankBoost(40), rc.RankBoost(20, max_leaf_nodes=5)]
)
def test_scores_equal_those_of_python(query, tmp_path, learner, front):
    model = fitted(learner, front)
    rc.export(model, tmp_path / "m.sql", "sql", feature_names=FIVE)
    text = (tmp_path / "m.sql").read_text()
    rows = hostile(model)[:300]
    for kind in ["float8", "float4"]:
        there = rows if kind == "float8" else rows.astype(np.float32).astype(np.float64)
        found = scores_of(query, text, there, kind)
        np.testing.assert_allclose(found, scores(model, there), rtol=0, atol=1e-13)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-160, 1e100])
@pytest.mark.parametrize("front", [[], [StandardScaler(with_mean=False)]], ids=str)
def test_products_that_underflow_are_zero(query, tmp_path, front, scale):
    svm = rc.RankSVM()
    model = make_pipeline(*front, svm) if front else svm
    model.fit(X, Y, **{"ranksvm__qid" if front else "qid": QID})
    svm._state.model.weights[:] *= scale
    if front:
        model[0].scale_ /= scale
    rc.export(model, tmp_path / "m.sql", "sql", feature_names=FIVE)
    text = (tmp_path / "m.sql").read_text()
    # Numbers to either side of where a product or a quotient becomes 0, and denormal ones.
    weights, divided = np.abs(svm.coef_), 1 / model[0].scale_ if front else np.ones(5)
    assert (weights > 0).all()
    with np.errstate(over="ignore"):
        edges = np.concatenate([TINY / by / 2 for by in (weights, divided, weights * divided)])
    near = [TINY, 3 * TINY, 1e-310, 2.3e-308, 1e-200, 0.0, 1.0, *edges]
    near = np.array([*near, *np.nextafter(edges, 0.0), *np.nextafter(edges, np.inf)])
    near = near[near < 1e250]
    some = RNG.choice([*near, *-near], size=(1000, 5))
    found, expected = scores_of(query, text, some), model.predict(some)
    # One rounding for each product and sum, of denormal numbers as wide as the least of them.
    bound = 8 * (np.finfo(float).eps * np.abs(expected).max() + TINY)
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    alone = np.zeros((edges.size, 5))  # one number in each row: exact, but for the sign of 0
    alone[np.arange(edges.size), np.arange(edges.size) % 5] = np.minimum(edges, 1e250)
    if not front:
        np.testing.assert_array_equal(scores_of(query, text, alone), model.predict(alone))


def test_null_is_missing(query, tmp_path):
    rows = np.where(RNG.random((60, 5)) < 0.3, np.nan, X[:60])
    for learner in [rc.RankBoost(40), rc.RankBoost(20, max_leaf_nodes=5)]:
        model = fitted(learner, [], 0.2)
        rc.export(model, tmp_path / "m.sql", "sql", feature_names=FIVE)
        found = scores_of(query, (tmp_path / "m.sql").read_text(), rows)
        np.testing.assert_allclose(found, scores(model, rows), rtol=0, atol=1e-13)
    rc.export(rc.PRank(random_state=0).fit(X, Y), tmp_path / "m.sql", "sql", feature_names=FIVE)
    found = scores_of(query, (tmp_path / "m.sql").read_text(), rows)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(rows).any(axis=1))
