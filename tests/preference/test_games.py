"""Ratings from a table of comparisons, and what a plan says of a ranking."""

import csv
import io

import numpy as np
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from rankcore.cli.app import app
from rankcore.preference import PreferenceRanker, plan, rate
from rankcore.preference.games import Tally


def table(n, m, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    theta = spread * rng.standard_normal(n)
    i = rng.integers(0, n, m)
    j = (i + rng.integers(1, n, m)) % n
    won = rng.random(m) < expit(theta[i] - theta[j])
    return np.where(won, i, j), np.where(won, j, i), theta


@pytest.mark.parametrize("alpha", [0.01, 0.5, 3.0])
def test_ratings_are_those_of_choix_with_the_same_prior(alpha):
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
    np.testing.assert_allclose(
        found.covariance, centre @ np.linalg.inv(hessian) @ centre, atol=1e-9
    )


def test_standard_errors_cover_the_truth():
    inside = []
    for seed in range(20):
        winners, losers, theta = table(30, 900, seed)
        found = rate(winners, losers, scale=1.0)
        off = (found.scores - found.scores.mean()) - (theta - theta.mean())
        inside.append(np.mean(np.abs(off) < 1.645 * found.standard_errors))
    assert 0.86 < np.mean(inside) < 0.94


def test_standard_errors_from_probes(monkeypatch):
    winners, losers, _ = table(300, 9000, 0)
    exact = rate(winners, losers).standard_errors
    monkeypatch.setattr("rankcore.preference.ratings._EXACT", 100)
    np.testing.assert_allclose(rate(winners, losers).standard_errors, exact, rtol=0.05)


def test_blocks_are_added_up():
    winners, losers, _ = table(20, 500, 1)
    rng = np.random.default_rng(0)
    degrees, judges = rng.random(500), rng.integers(0, 3, 500)
    whole = rate(winners, losers, degree=degrees, judge=judges)
    tally = Tally()
    for start in range(0, 500, 90):
        part = slice(start, start + 90)
        tally.add(winners[part], losers[part], degree=degrees[part], judge=judges[part])
    found = tally.ratings(scale=1.5, disconnected="raise")
    np.testing.assert_array_equal(found.items, whole.items)
    np.testing.assert_allclose(found.scores, whole.scores, atol=1e-9)
    assert found.reliability.shape == (3,)
    # A degree below one half is a defeat; rows of the other order are the same.
    turned = rate(losers, winners, degree=1 - degrees, judge=judges)
    np.testing.assert_allclose(turned.scores, whole.scores, atol=1e-8)
    np.testing.assert_allclose(whole.n_answers.sum(), 1000)


def test_groups_without_comparisons_between_them():
    winners, losers = ["a", "b", "x"], ["b", "c", "y"]
    with pytest.raises(ValueError, match=r"found 2 groups .* such as those of 'a' and 'x'"):
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
        ({"degree": [1.0, 1.5]}, r"degree must be in \[0, 1\]; found 1.5 in row 1"),
        ({"degree": [np.nan, 1.0]}, "found nan in row 0"),
        ({"winners": ["a", ""]}, "winners must not be empty; found '' in row 1"),
        ({"judge": ["x"]}, "must have the same length"),
        ({"winners": [1.0, np.nan]}, "winners must be finite; found nan"),
        ({"winners": ["a", None]}, "winners must be all numbers or all strings; found None"),
        ({"winners": [[1, 2]]}, "winners must have one dimension"),
        ({"scale": 0}, "scale must be positive"),
        ({"scale": np.nan}, "scale must be positive"),
        ({"disconnected": "maybe"}, 'disconnected must be "raise" or "prior"'),
    ],
)
def test_wrong_tables_are_refused(columns, what):
    params = {"winners": [1, 2], "losers": [2, 3], **columns}
    with pytest.raises(ValueError, match=what):
        rate(params.pop("winners"), params.pop("losers"), **params)


def run(*arguments, text=None):
    return CliRunner().invoke(app, ["rate", *map(str, arguments)], input=text)


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr("rankcore.cli.commands.rate._BLOCK", 70)
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
    again = run("-", "--winner", "winner", text=path.read_text())
    assert again.stdout == done.stdout
    path.write_text("\ufeff" + path.read_text(), encoding="utf-8")  # as spreadsheets write it
    assert run(path).stdout == done.stdout


def test_the_command_says_how_reliable_judges_are(tmp_path):
    rows = [("zoe", *pair) for pair in ("ab", "bc", "ac", "cd")] * 5 + [("amy", "d", "a")]
    path = tmp_path / "games.csv"
    path.write_text("\n".join(["who,winner,loser", *(",".join(row) for row in rows)]) + "\n")
    done = run(path, "--judge", "who")
    winners, losers = [row[1] for row in rows], [row[2] for row in rows]
    ratings = rate(winners, losers, judge=[row[0] for row in rows])
    assert ratings.judges.tolist() == ["amy", "zoe"]
    amy, zoe = ratings.reliability
    assert amy < 1 < zoe
    assert done.stderr.splitlines() == [
        f"who amy: reliability {amy:.3g}",
        f"who zoe: reliability {zoe:.3g}",
    ]


@pytest.mark.parametrize(
    ("text", "options", "what"),
    [
        ("", (), "a header with one column 'winner' is required; found: none"),
        ("winner,loser\n", (), "at least one comparison"),
        ("winner,loser\na,b\na\n", (), "losers must not be empty; found '' in row 2"),
        (
            "winner,loser\na,b\nb,c\nb,b\n",
            (),
            "be compared with another one; row 3",
        ),
        ("winner,loser\na,b\n,b\n", (), "winners must not be empty; found '' in row 2"),
        ("winner,loser,d\na,b,x\n", ("--degree", "d"), "degree must be a number"),
        ("winner,loser,d\na,b,7\n", ("--degree", "d"), "degree must be in [0, 1]; found 7.0"),
        ("winner,winner\na,b\n", (), "one column 'winner' is required; found: winner, winner"),
        ('winner,loser\n"a,b\n', (), "line 2"),
        ("winner,loser\na,b\nc,d\n", (), "found 2 groups without comparisons"),
    ],
)
def test_wrong_files_end_in_one_line(text, options, what, tmp_path, monkeypatch):
    monkeypatch.setattr("rankcore.cli.commands.rate._BLOCK", 2)
    path = tmp_path / "games.csv"
    path.write_text(text)
    done = run(path, *options)
    assert done.exit_code == 1
    assert what in " ".join(done.stderr.split())


def test_a_plan_is_what_then_happens():
    said = plan(40, budget=300, noise=0.2, price=0.01, latency=2.0, parallel=5, simulations=6)
    assert said.method == "rating"
    assert (said.calls, said.price) == (300, 3.0)
    assert said.seconds == 2.0 * 300 / 5  # rounds of ten pairs
    taus = []
    for seed in range(6):
        rng = np.random.default_rng([seed, 1])
        items = rng.permutation(40).tolist()
        ranker = PreferenceRanker(
            lambda u, v, r=rng: (u < v) ^ (r.random() < 0.2), max_calls=300, random_state=seed
        )
        found = np.array(ranker.rank(items))
        taus.append(1 - 2 * np.mean(np.triu(found[:, None] > found, 1)[np.triu_indices(40, 1)]))
    assert abs(np.mean(taus) - said.tau) < 4 * said.tau_spread / 6**0.5


def test_plans_of_other_methods():
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
def test_wrong_plans_are_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must be|max_calls must be"):
        plan(**{"n": 10, **wrong})
