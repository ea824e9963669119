"""Ratings from a table of comparisons, and what a plan says of a ranking."""

import csv
import gzip
import io
import json
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from rankcore.cli.app import app
from rankcore.preference import PreferenceRanker, plan, rate, read_games


def table(n, m, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    theta = spread * rng.standard_normal(n)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(theta[i] - theta[j])
    return np.where(won, i, j), np.where(won, j, i), theta


@pytest.mark.parametrize("alpha", [0.01, 0.5, 3.0])
def test_ratings_equal_choix_with_the_same_prior(alpha):
    choix = pytest.importorskip("choix")
    winners, losers, _ = table(12, 150, 0)
    found = rate(winners, losers, scale=(2 * alpha) ** -0.5)
    data = list(zip(winners.tolist(), losers.tolist(), strict=True))
    gradient = choix.opt.PairwiseFcts(data, alpha).gradient(found.scores.copy())
    assert np.abs(gradient).max() < 1e-9  # of its own objective
    # Its optimiser stops earlier than ours, unless it begins at the maximum.
    theirs = choix.opt_pairwise(
        12, data, alpha=alpha, method="Newton-CG", initial_params=found.scores, tol=1e-10
    )
    np.testing.assert_allclose(found.scores, theirs, atol=1e-8)
    hessian = choix.opt.PairwiseFcts(data, alpha).hessian(found.scores)
    centre = np.eye(12) - 1 / 12
    covariance = centre @ np.linalg.inv(hessian) @ centre
    np.testing.assert_allclose(found.standard_errors, np.diagonal(covariance) ** 0.5, atol=1e-9)


def test_standard_errors_cover_the_truth():
    inside = []
    for seed in range(20):
        winners, losers, theta = table(30, 900, seed)
        found = rate(winners, losers, scale=1.0)
        off = (found.scores - found.scores.mean()) - (theta - theta.mean())
        inside.append(np.mean(np.abs(off) < 1.645 * found.standard_errors))
    assert 0.86 < np.mean(inside) < 0.94


def test_standard_errors_from_draws(monkeypatch):
    winners, losers, _ = table(300, 9000, 0)
    exact = rate(winners, losers).standard_errors
    monkeypatch.setattr("rankcore.preference.bradley_terry._EXACT", 100)
    np.testing.assert_allclose(rate(winners, losers).standard_errors, exact, rtol=0.2)


def test_order_of_rows_does_not_change_ratings():
    winners, losers, _ = table(20, 500, 1)
    rng = np.random.default_rng(0)
    degrees, judges = rng.random(500), rng.integers(0, 3, 500)
    whole = rate(winners, losers, degree=degrees, judge=judges)
    assert whole.reliability.shape == (3,)
    # A degree below one half is a defeat; rows of the other order are the same.
    turned = rate(losers, winners, degree=1 - degrees, judge=judges)
    np.testing.assert_allclose(turned.scores, whole.scores, atol=1e-8)
    np.testing.assert_allclose(whole.n_answers.sum(), 1000)
    # A weight is that many rows.
    counts = rng.integers(0, 3, 500)
    rows = np.repeat(np.arange(500), counts)
    repeated = rate(winners[rows], losers[rows], degree=degrees[rows])
    weighted = rate(winners, losers, degree=degrees, weight=counts)
    np.testing.assert_allclose(weighted.scores, repeated.scores, atol=1e-8)
    names = np.array([f"item {k:02}" for k in range(20)])
    named = rate(names[winners].tolist(), names[losers], degree=degrees, judge=judges)
    assert named.items.tolist() == names.tolist()
    np.testing.assert_allclose(named.scores, whole.scores, atol=1e-8)


def design(i, j, n, *columns):
    X = np.zeros((len(i), n))
    X[np.arange(len(i)), i] += 1
    X[np.arange(len(i)), j] -= 1
    return np.column_stack([X, *columns])


def test_covariates_and_position_equal_logistic_regression():
    rng = np.random.default_rng(0)
    n, m = 12, 2000
    theta = rng.standard_normal(n)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    length, headings = 3 * rng.standard_normal(m), rng.integers(-2, 3, m).astype(float)
    first = rng.integers(0, 2, m).astype(float)
    x = theta[i] - theta[j] + 0.3 * (2 * first - 1) + 0.2 * length - 0.1 * headings
    won = (rng.random(m) < expit(x)).astype(float)
    covariates = {"length": length, "headings": headings}
    found = rate(i, j, degree=won, shown_first=first, covariates=covariates)
    X = design(i, j, n, 2 * first - 1, length, headings)
    fitted = LogisticRegression(C=1.5**2, fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = fitted.fit(X, won).coef_[0]
    np.testing.assert_allclose(found.scores, expected[:n], atol=1e-5)
    assert found.position_bias == pytest.approx(expit(expected[n]) - 0.5, abs=1e-5)
    p = expit(X @ expected)
    hessian = X.T @ (X * (p * (1 - p))[:, None]) + np.eye(n + 3) / 1.5**2
    errors = np.sqrt(np.diagonal(np.linalg.inv(hessian)))
    for k, name in enumerate(covariates, start=n + 1):
        effect, error = found.effects[name]
        assert effect == pytest.approx(expected[k], abs=1e-5)
        assert error == pytest.approx(errors[k], rel=1e-4)
    assert abs(found.position_bias - (expit(0.3) - 0.5)) < 0.04
    assert rate(i, j, degree=won).position_bias is None


def test_davidson_ties_maximise_the_posterior():
    rng = np.random.default_rng(1)
    n, m = 6, 400
    theta = rng.standard_normal(n)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    x = theta[i] - theta[j]
    win, loss, nu = np.exp(x / 2), np.exp(-x / 2), 0.8
    u = rng.random(m) * (win + loss + nu)
    degree = np.where(u < win, 1.0, np.where(u < win + loss, 0.0, 0.5))

    def loss_of(parameters):
        x = parameters[i] - parameters[j]
        utility = np.where(degree == 0.5, parameters[n], (degree - 0.5) * x)
        z = np.exp(x / 2) + np.exp(-x / 2) + np.exp(parameters[n])
        prior = parameters[:n] @ parameters[:n] / (2 * 1.5**2) + parameters[n] ** 2 / 200
        return float(np.log(z).sum() - utility.sum() + prior)

    best = minimize(loss_of, np.zeros(n + 1), method="BFGS", options={"gtol": 1e-7}).x
    found = rate(i, j, degree=degree, ties="davidson")
    np.testing.assert_allclose(found.scores, best[:n], atol=1e-4)
    nu = np.exp(best[n])
    assert found.tie_probability == pytest.approx(nu / (2 + nu), abs=1e-4)
    assert rate(i, j, degree=degree).tie_probability is None


def test_adversaries_have_a_negative_reliability():
    winners, losers, theta = table(15, 1200, 5)
    judge = np.arange(1200) % 4
    winners, losers = (
        np.where(judge == 3, losers, winners),
        np.where(judge == 3, winners, losers),
    )
    found = rate(winners, losers, judge=judge)
    assert (found.reliability[:3] > 0.3).all()
    assert found.reliability[3] < -0.3
    assert np.corrcoef(found.scores, theta)[0, 1] > 0.97


def test_bootstrap_errors_agree_with_laplace_errors():
    winners, losers, _ = table(8, 2000, 2)
    exact = rate(winners, losers)
    found = rate(winners, losers, bootstrap=200)
    np.testing.assert_array_equal(found.scores, exact.scores)
    np.testing.assert_allclose(found.standard_errors, exact.standard_errors, rtol=0.2)
    again = rate(winners, losers, bootstrap=200, random_state=0)
    np.testing.assert_array_equal(again.standard_errors, found.standard_errors)


def test_bootstrap_of_rows_with_weights_is_that_of_their_games():
    winners, losers, _ = table(8, 800, 3)
    pairs, counts = np.unique(np.column_stack([winners, losers]), axis=0, return_counts=True)
    games = rate(winners, losers, bootstrap=200)
    rows = rate(pairs[:, 0], pairs[:, 1], weight=counts, bootstrap=200)
    np.testing.assert_allclose(rows.standard_errors, games.standard_errors, rtol=0.25)


@pytest.mark.slow
def test_places_of_a_leaderboard_cover_simultaneously():
    """All places, not each of them, are right in 95% of the tables."""
    whole = []
    for seed in range(200):
        winners, losers, theta = table(8, 400, seed)
        board = rate(winners, losers, scale=10.0).leaderboard(0.95)
        place = np.argsort(np.argsort(-theta)) + 1
        whole.append(all(r.first_place <= place[r.item] <= r.last_place for r in board))
    assert np.mean(whole) > 0.95 - 3 * (0.95 * 0.05 / 200) ** 0.5


@pytest.mark.parametrize(("n", "m"), [(2, 40), (20, 200), (20, 4000)])
def test_leaderboard_places_of_equal_items_cover_simultaneously(n, m):
    """Games are decided by coins, so that any order may be the true one."""
    whole = []
    for seed in range(40):
        rng = np.random.default_rng([seed, n, m])
        i = rng.integers(0, n, m)
        j = (i + rng.integers(1, n, m)) % n
        board = rate(i, j, degree=rng.integers(0, 2, m)).leaderboard(0.95)
        place = rng.permutation(n) + 1
        whole.append(all(r.first_place <= place[r.item] <= r.last_place for r in board))
    assert np.mean(whole) > 0.95 - 3 * (0.95 * 0.05 / 40) ** 0.5


def test_leaderboard_places_cover_simultaneously_after_a_bootstrap():
    rng = np.random.default_rng(0)
    i = rng.integers(0, 10, 500)
    j = (i + rng.integers(1, 10, 500)) % 10
    degree = rng.integers(0, 2, 500)
    board = rate(i, j, degree=degree, bootstrap=200).leaderboard(0.95)
    assert [(row.first_place, row.last_place) for row in board] == [(1, 10)] * 10


def test_leaderboard_rows_are_in_order():
    winners, losers, _ = table(10, 500, 7)
    found = rate(winners, losers)
    board = found.leaderboard()
    assert [row.item for row in board] == found.items[found.ranking].tolist()
    assert [row.place for row in board] == list(range(1, 11))
    for row in board:
        assert row.low < row.rating < row.high
        assert row.first_place <= row.place <= row.last_place
    wide = found.leaderboard(0.99)
    assert all(a.high - a.low < b.high - b.low for a, b in zip(board, wide, strict=True))
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        found.leaderboard(1.0)


ARENA = """model_a,model_b,winner,judge,turns,len_a,len_b
x,y,model_a,ann,1,300,100
y,z,tie (bothbad),bob,1,120,130
x,x,tie,ann,2,1,1
z,x,model_b,bob,1,80,240
y,x,tie,ann,2,90,100
z,y,,ann,1,5,6
"""


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".json", ".jsonl.gz"])
def test_arena_logs_are_read_from_all_formats(tmp_path, suffix):
    rows = list(csv.DictReader(io.StringIO(ARENA)))
    text = ARENA
    if ".json" in suffix:
        lines = [json.dumps(row) for row in rows]
        text = "[" + ",".join(lines) + "]" if suffix == ".json" else "\n".join(lines)
    path = tmp_path / f"log{suffix}"
    with (gzip.open if suffix.endswith("gz") else open)(path, "wt") as file:
        file.write(text)
    games = read_games(path, judge="judge", weight="turns", covariates=["len"])
    assert games.first == ["x", "y", "z", "y"]
    assert games.second == ["y", "z", "x", "x"]
    assert games.degree.tolist() == [1.0, 0.5, 0.0, 0.5]
    assert games.judge == ["ann", "bob", "bob", "ann"]
    assert games.weight.tolist() == [1.0, 1.0, 1.0, 2.0]
    assert games.covariates["len"].tolist() == [200.0, -10.0, -160.0, -10.0]
    assert (games.n_self_play, games.n_missing) == (1, 1)
    ratings = games.rate(ties="davidson")
    assert ratings.items.tolist() == ["x", "y", "z"]
    assert ratings.effects.keys() == {"len"}


def test_frames_are_read():
    frames = [pytest.importorskip("pandas").read_csv(io.StringIO(ARENA))]
    polars = pytest.importorskip("polars")
    frames.append(polars.read_csv(io.StringIO(ARENA)))
    for frame in frames:
        games = read_games(frame, weight="turns")
        assert games.degree.tolist() == [1.0, 0.5, 0.0, 0.5]
        assert (games.n_self_play, games.n_missing) == (1, 1)


def test_missing_values_of_any_kind_drop_the_row():
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {
        "model_a": ["x", "y", None, "z", "x"],
        "model_b": ["y", "z", "x", "", "y"],
        "winner": ["model_a", "tie", "tie", "tie", "model_b"],
        "weight": [1, None, 2, 3, 4],
    }
    whole = pandas.DataFrame(columns)
    for frame in (whole, whole.convert_dtypes(), pyarrow.table(columns)):
        games = read_games(frame, weight="weight")
        assert (games.first, games.second) == (["x", "x"], ["y", "y"])
        assert games.weight.tolist() == [1.0, 4.0]
        assert games.n_missing == 3


def test_lazy_frames_are_rejected():
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"source.collect\(\)"):
        read_games(polars.LazyFrame({"winner": ["a"]}))


SEPARATORS = "a\u2028b\u2029c\x85d\x0be"


def test_separators_of_unicode_do_not_end_lines_of_json(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [{"winner": "x", "loser": "y", "text": SEPARATORS}] * 2
    text = "\r\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(text, encoding="utf-8", newline="")
    assert read_games(path).first == ["x", "x"]


def test_long_fields_are_read_and_the_limit_is_restored(tmp_path):
    limit = csv.field_size_limit()
    path = tmp_path / "log.csv"
    path.write_text(f'winner,loser,text\nx,y,"{"long, " * 100_000}"\n')
    assert read_games(path).first == ["x"]
    assert csv.field_size_limit() == limit


WHOLE = gzip.compress(ARENA.encode() * 100)


@pytest.mark.parametrize(
    ("name", "data", "error", "what"),
    [
        ("log.csv.gz", WHOLE[:-20], OSError, "is not a whole gzip file"),
        ("log.csv.gz", WHOLE[:-6], OSError, "is not a whole gzip file"),
        ("log.csv.gz", WHOLE[:60] + b"??" + WHOLE[62:], OSError, "is not a whole gzip file"),
        ("log.csv.gz", ARENA.encode(), OSError, "is not a whole gzip file"),
        ("log.csv.gz", b"", ValueError, "a column 'model_a' is required; got none"),
        ("log.csv", "winner,loser\nMüller,y\n".encode("latin-1"), ValueError, "text in UTF-8"),
        ("log.csv", ARENA.encode("utf-16"), ValueError, "text in UTF-8"),
        ("log.jsonl", b'{"winner": "\xff"}', ValueError, "text in UTF-8"),
        ("log.csv", b"winner,loser\nx,y,z\n", ValueError, "line 2: at most 2 fields.*got 3"),
        ("log.jsonl", b'{"winner": 1}\n[3]\n', ValueError, r"line 2: .* object; got \[3\]"),
        ("log.jsonl", b'{"winner": 1}\n"x"\n', ValueError, "line 2: .* object; got 'x'"),
        ("log.json", b'[{"winner": 1}, null]', ValueError, "must be an object; got None"),
        ("log.json", b'{\n"winner": 1}', ValueError, "line 1: .*an array of objects, or an object"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, data, error, what):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(error, match=what) as caught:
        read_games(path)
    if data:
        assert str(path) in str(caught.value)
    done = run(path)
    assert done.exit_code == 1
    assert str(caught.value).split(":")[-1].split()[-1] in done.stderr


def test_degrees_are_of_the_winner_or_of_the_first_item():
    text = "model_a,model_b,winner,d\nx,y,model_a,0.8\n"
    with pytest.raises(ValueError, match="must have one column; got 'winner' and degree='d'"):
        read_games(io.StringIO(text), degree="d")
    of_winner = read_games(io.StringIO("winner,loser,d\nx,y,0.8\n"), degree="d")
    assert of_winner.degree == [0.8]
    assert not of_winner.ordered
    scores = io.StringIO("white,black,score\nx,y,1\ny,x,0.5\ny,z,0\nz,x,\n")
    games = read_games(scores, first="white", second="black", degree="score")
    assert games.degree.tolist() == [1.0, 0.5, 0.0]
    assert games.ordered
    assert games.n_missing == 1


def test_results_of_chess_are_outcomes():
    pgn = io.StringIO("White,Black,Result\nx,y,1-0\ny,x,1/2-1/2\ny,z,0-1\n")
    games = read_games(pgn, first="White", second="Black", winner="Result")
    assert games.degree.tolist() == [1.0, 0.5, 0.0]
    assert repr(games) == "Games(3 games of 3 items)"


def test_games_and_covariates_of_wrong_types_are_named():
    with pytest.raises(TypeError, match="a path, a text file or a frame; got"):
        read_games([("x", "y", "model_a")])
    with pytest.raises(TypeError, match="covariates must be a dict of a column"):
        rate(["x", "y"], ["y", "x"], covariates=[1.0, 2.0])


@pytest.mark.parametrize(
    ("text", "params", "what"),
    [
        ("a,b\n", {}, "a column 'model_a' is required; got a, b: name those of first"),
        ("model_a,model_b,winner\nx,y,z\n", {}, "row 1: .* one of the two items; got 'z'"),
        ("winner,loser\nx,y\n", {"weight": "w"}, "a column 'w' is required"),
        (
            "winner,loser,w\nx,y,many\n",
            {"weight": "w"},
            r"w must be >= 0 and finite; got 'many' in row 1",
        ),
        ("winner,loser,w\nx,y,2\ny,x,-1\n", {"weight": "w"}, r"w must be .*; got '-1' in row 2"),
        (
            "winner,loser,d\nx,y,nan\n",
            {"degree": "d"},
            r"d must be in \[0, 1\]; got 'nan' in row 1",
        ),
        ("winner,loser,d\nx,y,7\n", {"degree": "d"}, r"d must be .* 1\]; got '7'"),
        (
            "model_a,model_b,winner,c\nx,y,tie,inf\n",
            {"covariates": ["c"]},
            r"c must be finite; got 'inf'",
        ),
        ("winner,winner\nx,y\n", {}, "names of columns must differ"),
        (
            "winner,loser\n'x\n",
            {"covariates": ["z"]},
            r"a column 'z_a' \(or 'z' itself\) is required",
        ),
    ],
)
def test_wrong_logs_are_rejected(text, params, what):
    with pytest.raises(ValueError, match=what):
        read_games(io.StringIO(text), **params)


def test_disconnected_groups_are_rejected_unless_ordered_by_the_prior():
    winners, losers = ["a", "b", "x"], ["b", "c", "y"]
    with pytest.raises(ValueError, match=r"got 2 groups .* such as those of 'a' and 'x'"):
        rate(winners, losers)
    found = rate(winners, losers, disconnected="prior")
    assert found.components.tolist() == [0, 0, 0, 1, 1]
    assert found.items.tolist() == ["a", "b", "c", "x", "y"]
    assert found.scores[3] > found.scores[4]


@pytest.mark.parametrize(
    ("columns", "what"),
    [
        ({"winners": [], "losers": []}, "at least one comparison"),
        ({"losers": [2]}, "must have the same length"),
        ({"losers": [1, 3]}, "compared with another one; row 0"),
        ({"degree": [1.0, 1.5]}, r"degree must be in \[0, 1\]; got 1.5 in row 1"),
        ({"degree": [np.nan, 1.0]}, "got nan in row 0"),
        ({"winners": ["a", ""], "losers": ["b", "c"]}, "row 1: ids of items must be .*; got ''"),
        ({"judge": ["x"]}, "must have the same length"),
        ({"winners": [1.0, np.nan]}, "winners contains NaN in row 1"),
        ({"winners": ["a", None]}, "winners contains None in row 1"),
        ({"winners": [[1, 2]]}, "winners must have one dimension"),
        ({"scale": 0}, "scale must be positive"),
        ({"scale": np.nan}, "scale must be positive"),
        ({"disconnected": "maybe"}, "disconnected must be one of"),
    ],
)
def test_wrong_tables_are_rejected(columns, what):
    params = {"winners": [1, 2], "losers": [2, 3], **columns}
    with pytest.raises(ValueError, match=what):
        rate(params.pop("winners"), params.pop("losers"), **params)


def run(*arguments, text=None):
    return CliRunner().invoke(app, ["rate", *map(str, arguments)], input=text)


def test_command_prints_the_leaderboard(tmp_path):
    winners, losers, _ = table(9, 200, 3)
    path = tmp_path / "games.csv"
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["loser", "day", "winner"])
        rows.writerows([f"t{b}", 3, f"t{a}"] for a, b in zip(winners, losers, strict=True))
    done = run(path)
    assert done.exit_code == 0
    found = list(csv.DictReader(io.StringIO(done.stdout)))
    ratings = rate([f"t{a}" for a in winners], [f"t{b}" for b in losers])
    assert [row["item"] for row in found] == ratings.items[ratings.ranking].tolist()
    np.testing.assert_allclose(
        [[float(row["rating"]), float(row["standard_error"])] for row in found],
        np.column_stack([ratings.scores, ratings.standard_errors])[ratings.ranking],
        rtol=1e-5,
        atol=1e-5,
    )
    board = ratings.leaderboard(0.95)
    assert [int(row["first_place"]) for row in found] == [row.first_place for row in board]
    assert "200 games of 9 items" in done.stderr
    again = run("-", "--winner", "winner", text=path.read_text())
    assert again.stdout == done.stdout
    output = tmp_path / "board.csv"
    assert run(path, "-o", output).stdout == ""
    assert output.read_text() == done.stdout
    narrow = list(csv.DictReader(io.StringIO(run(path, "--level", "0.5").stdout)))
    assert float(narrow[0]["low"]) > float(found[0]["low"])
    path.write_text("\ufeff" + path.read_text(), encoding="utf-8")  # as spreadsheets write it
    assert run(path).stdout == done.stdout


def test_command_prints_reliability_of_judges(tmp_path):
    rows = [("zoe", *pair) for pair in ("ab", "bc", "ac", "cd")] * 5 + [("amy", "d", "a")]
    path = tmp_path / "games.csv"
    path.write_text("\n".join(["who,winner,loser", *(",".join(row) for row in rows)]) + "\n")
    done = run(path, "--judge", "who")
    winners, losers = [row[1] for row in rows], [row[2] for row in rows]
    ratings = rate(winners, losers, judge=[row[0] for row in rows])
    assert ratings.judges.tolist() == ["amy", "zoe"]
    amy, zoe = ratings.reliability
    assert amy < zoe
    assert done.stderr.splitlines() == [
        "21 games of 4 items",
        f"who amy: reliability {amy:.3f}",
        f"who zoe: reliability {zoe:.3f}",
    ]


def test_command_reads_arena_logs(tmp_path):
    path = tmp_path / "arena.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write(ARENA)
    done = run(path, "--covariate", "len", "--ties", "davidson", "--weight", "turns")
    assert done.exit_code == 0
    for line in ("4 games of 3 items", "dropped: 1 of an item with itself, 1 with gaps",
                 "position bias", "ties between equal items", "len: effect"):  # fmt: skip
        assert line in done.stderr
    assert {row["item"] for row in csv.DictReader(io.StringIO(done.stdout))} == {"x", "y", "z"}


@pytest.mark.parametrize(
    ("text", "options", "what"),
    [
        ("", (), "a column 'model_a' is required; got none"),
        ("winner,loser\n", (), "at least one comparison"),
        ("winner,loser,d\na,b,x\n", ("--degree", "d"), "d must be in [0, 1]"),
        (
            "winner,loser,d\na,b,7\n",
            ("--degree", "d"),
            "d must be in [0, 1]; got '7' in row 1",
        ),
        ('winner,loser\n"a,b\n', (), "line 2"),
        ("winner,loser\na,b\nc,d\n", (), "got 2 groups without comparisons"),
        ("winner,loser\na,b\n", ("--level", "2"), "level must be between 0 and 1"),
    ],
)
def test_command_reports_wrong_files_in_one_line(text, options, what, tmp_path):
    path = tmp_path / "games.csv"
    path.write_text(text)
    done = run(path, *options)
    assert done.exit_code == 1
    assert what in " ".join(done.stderr.split())


def test_plan_predicts_calls_time_and_tau():
    planned = plan(20, budget=100, noise=0.2, price=0.01, latency=2.0, parallel=5, simulations=6)
    assert planned.method == "rating"
    assert (planned.calls, planned.price) == (100, 1.0)
    assert planned.seconds == 2.0 * 100 / 5  # rounds of five pairs
    taus = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 1])
        items = rng.permutation(20).tolist()
        ranker = PreferenceRanker(
            lambda u, v, r=rng: (u < v) ^ (r.random() < 0.2), max_calls=100, random_state=seed
        )
        found = np.array(ranker.rank(items))
        taus.append(1 - 2 * np.mean(np.triu(found[:, None] > found, 1)[np.triu_indices(20, 1)]))
    assert abs(np.mean(taus) - planned.tau) < 4 * planned.tau_spread / 6**0.5


def test_plan_of_other_methods():
    exact = plan(50, noise=0)
    assert (exact.method, exact.tau, exact.tau_spread) == ("quicksort", 1.0, 0.0)
    top = plan(100, 5, noise=0.1)
    assert top.method == "halving"
    assert 0.8 < top.top_share <= 1
    degree = plan(20, noise=0.2, method="degree", repeats_itself=True, latency=1.0, parallel=1000)
    assert (degree.calls, degree.seconds) == (190, 1.0)
    assert 0.5 < degree.tau < 1
    exact = plan(20, noise=0, method="degree", repeats_itself=True)
    assert exact.tau == 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"n": 1}, {"noise": 0.6}, {"noise": np.nan}, {"parallel": 0}, {"price": -1}, {"budget": -1}],
)
def test_wrong_plans_are_rejected(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must be|max_calls must be"):
        plan(**{"n": 10, **wrong})


def test_labels_of_forty_places_do_not_overlap():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from rankcore.plotting import plot_place_intervals

    names = [f"a-model-with-a-long-name-{k}" for k in range(40)]
    winners, losers, _ = table(40, 2000, 0)
    ratings = rate([names[k] for k in winners], [names[k] for k in losers])
    ax = plot_place_intervals(ratings)
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert len(boxes) == 40
    assert all(a.y0 >= b.y1 for a, b in pairwise(boxes))
    segments = ax.collections[0].get_segments()
    expected = ratings.place_interval()[ratings.ranking]
    np.testing.assert_array_equal([segment[:, 0] for segment in segments], expected)
    pyplot.close("all")


def test_integer_items_keep_their_names_beside_missing_ones():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(
        {"model_a": [1, 2, None, 1], "model_b": [2, 1, 1, 1], "winner": ["model_a"] * 4}
    )
    games = read_games(table)
    assert (games.first, games.second) == (["1", "2"], ["2", "1"])
    assert (games.n_missing, games.n_self_play) == (1, 1)
