"""Whole orders from judges that err: Kendall's tau against calls, beside other packages.

``python -m reproduce.whole_orders`` prints the tables; --markdown writes a copy, --png draws them.
The exit status is 1 if a goal is missed.

A judge sees a hidden order of n items and gives the wrong answer with a fixed probability: anew at
each call, or about the same pairs each time (a judge that repeats itself). Compared are

- rating (the default for a budget) and degree of this package, and QuickSort, which stops itself;
- Bradley-Terry of random pairs, by choix (`ilsr_pairwise` and `opt_pairwise`, alpha = 0.01);
- Elo on random pairs (K = 32);
- TrueSkill, where a random item meets the nearest by rating of eight others;
- merge sort, which stops by itself.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.stats import kendalltau

from rankcore.preference import Indexed, PreferenceRanker, call_plan
from reproduce.gates import not_gated
from reproduce.ohsumed import table

SEEDS, SEEDS_1000 = 20, 3

# Tau for 60 items, 20% of the answers wrong, anew each time; for 200 items, three times QuickSort's
# calls, anew, what TrueSkill had; and for QuickSort's calls, the same each time.
GOALS_60 = {300: 0.64, 600: 0.75, 1000: 0.81, 1770: 0.85}
GOALS_200 = {0.1: 0.962, 0.2: 0.880, 0.3: 0.668}
GOALS_FIXED = {0.1: 0.840, 0.2: 0.690, 0.3: 0.442}


class Judge:
    """Answers whether item i comes before item j, wrong with a probability."""

    def __init__(self, places, noise, fixed, rng):
        self.places, self.noise, self.rng = places, noise, rng
        wrong = np.triu(rng.random((places.size,) * 2) < noise, 1)
        self.wrong = wrong | wrong.T if fixed else None

    def __call__(self, i, j):
        right = self.places[i] < self.places[j]
        if self.wrong is not None:
            return right ^ self.wrong[i, j]
        return right ^ (self.rng.random(np.shape(i)) < self.noise)


def ours(method):
    def order(judge, n, calls, rng):
        ranker = PreferenceRanker(
            Indexed(judge), method=method, max_calls=calls, random_state=int(rng.integers(2**32))
        )
        ranker.rank(np.arange(n))
        return ranker.order_, ranker.n_calls_

    return order


def random_pairs(n, calls, rng):
    i = rng.integers(0, n, calls)
    return i, (i + rng.integers(1, n, calls)) % n


def choix_of(name, **params):
    def order(judge, n, calls, rng):
        import choix

        i, j = random_pairs(n, calls, rng)
        first = judge(i, j)
        data = np.column_stack([np.where(first, i, j), np.where(first, j, i)])
        strengths = getattr(choix, name)(n, data.tolist(), alpha=0.01, **params)
        return np.argsort(-strengths), calls

    return order


def elo(judge, n, calls, rng):
    ratings = np.zeros(n)
    for i, j in zip(*random_pairs(n, calls, rng), strict=True):
        expected = 1 / (1 + 10 ** ((ratings[j] - ratings[i]) / 400))
        change = 32 * (bool(judge(i, j)) - expected)
        ratings[i] += change
        ratings[j] -= change
    return np.argsort(-ratings), calls


def trueskill(judge, n, calls, rng):
    from trueskill import TrueSkill

    game = TrueSkill(draw_probability=0.0)
    ratings = [game.create_rating() for _ in range(n)]
    mu = np.full(n, game.mu)
    for _ in range(calls):
        i = int(rng.integers(n))
        others = rng.choice(n - 1, min(8, n - 1), replace=False)
        others += others >= i
        j = int(others[np.argmin(np.abs(mu[others] - mu[i]))])
        winner, loser = (i, j) if judge(i, j) else (j, i)
        ratings[winner], ratings[loser] = game.rate_1vs1(ratings[winner], ratings[loser])
        mu[[i, j]] = ratings[i].mu, ratings[j].mu
    return np.argsort(-mu), calls


def merge_sort(judge, n, calls, rng):
    asked = 0

    def sort(items):
        nonlocal asked
        if len(items) < 2:
            return items
        left, right = sort(items[: len(items) // 2]), sort(items[len(items) // 2 :])
        merged = []
        while left and right:
            asked += 1
            merged.append((left if judge(left[0], right[0]) else right).pop(0))
        return merged + left + right

    return np.array(sort(rng.permutation(n).tolist())), asked


METHODS = {
    "rating": ours("rating"),
    "degree": ours("degree"),
    "QuickSort": ours("quicksort"),
    "ilsr_pairwise, random pairs": choix_of("ilsr_pairwise", max_iter=500, tol=1e-6),
    "opt_pairwise, random pairs": choix_of("opt_pairwise", method="BFGS"),
    "Elo, random pairs": elo,
    "TrueSkill, nearest of 8": trueskill,
    "merge sort": merge_sort,
}


def measure(name, n, calls, noise, fixed, seeds):
    """Mean tau, half a 95% interval of it, and mean calls."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, n, fixed])
        judge = Judge(rng.permutation(n), noise, fixed, rng)
        order, asked = METHODS[name](judge, n, calls, rng)
        found.append((kendalltau(judge.places[order], np.arange(n)).statistic, asked))
    tau, asked = np.mean(found, axis=0)
    half = 1.96 * np.std(found, axis=0, ddof=1)[0] / seeds**0.5
    return tau, half, asked


def all_tables():
    """For each table its title, what its columns are, and its items, calls, noise and errors."""
    shares = [0.0, 0.1, 0.2, 0.3, 0.4]
    found = []
    for fixed, how in ((False, "anew each time"), (True, "the same each time")):
        title = f"60 items, 20% wrong, {how}, by calls"
        found.append((title, {calls: (60, calls, 0.2, fixed) for calls in GOALS_60}))
    for n in (20, 60, 200, 1000):
        sort = round(call_plan(n)["quicksort"].calls)
        for fixed, how in ((False, "anew each time"), (True, "the same each time")):
            calls = 3 * sort if n < 1000 and not fixed else sort
            title = f"{n:,} items, {calls:,} calls, by share wrong, {how}"
            found.append((title, {noise: (n, calls, noise, fixed) for noise in shares}))
    return found


def table_cells(columns, seeds):
    """Figures by method and column, of one table."""
    found = {}
    for name in METHODS:
        for column, (n, calls, noise, fixed) in columns.items():
            lists = min(seeds, SEEDS_1000) if n == 1000 else seeds
            found[name, column] = measure(name, n, calls, noise, fixed, lists)
            print(name, n, calls, noise, fixed, *found[name, column], file=sys.stderr, flush=True)
    return found


def lines_of(title, columns, cells):
    """A table as Markdown."""
    rows = []
    for name in METHODS:
        row = [name]
        for column, (_, calls, _, _) in columns.items():
            tau, half, asked = cells[name, column]
            stopped = "" if asked == calls else f" ({asked:.0f} calls)"
            row.append(f"{tau:.3f} ± {half:.3f}{stopped}")
        rows.append(row)
    return ["", f"## {title}", "", *table(rows, ["", *map(str, columns)])]


def missed_goals(cells):
    """Goals that were not reached; ``cells`` has the figures of each table by its title."""
    missed = []
    for title, columns in all_tables():
        n, _, _, fixed = next(iter(columns.values()))
        goals = {(200, False): GOALS_200, (200, True): GOALS_FIXED}.get((n, fixed), {})
        if title.endswith("by calls") and not fixed:
            goals = GOALS_60
        for column, goal in goals.items():
            tau = cells[title]["rating", column][0]
            if tau <= goal:
                missed.append(f"{title}, {column}: {tau:.3f}, goal {goal:.3f}")
    return missed


def draw(path, cells):
    """Tau by calls, for 60 items."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = [title for title in cells if title.endswith("by calls")]
    figure, axes = plt.subplots(1, len(titles), figsize=(10, 4), sharey=True, layout="constrained")
    for axis, title in zip(axes, titles, strict=True):
        for name in METHODS:
            found = [value for (who, _), value in cells[title].items() if who == name]
            tau, half, asked = np.array(found).T
            if "ort" in name:
                tau, half, asked = tau[-1:], half[-1:], asked[-1:]
            axis.errorbar(asked, tau, half, marker="o", ms=4, label=name)
        axis.set(title=title.removesuffix(", by calls"), xlabel="calls")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("Kendall's tau")
    axes[-1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce.whole_orders", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="lists (default: %(default)s)")
    parser.add_argument("--markdown", type=Path, help="where to write a copy")
    parser.add_argument("--png", type=Path, help="where to draw the tables")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("intervals need at least 2 seeds")
    start = perf_counter()
    cells = {title: table_cells(columns, options.seeds) for title, columns in all_tables()}
    missed = missed_goals(cells)
    small = not_gated(options.seeds, SEEDS, "lists")
    if small:
        missed = []
    reached = f"{small.capitalize() or 'All goals are reached'}."
    packages = ["rankcore", "numpy", "choix", "trueskill"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    lines = [
        "# Whole orders from judges that err",
        "",
        "    python -m reproduce.whole_orders --markdown reproduce/whole_orders.md "
        "--png reproduce/whole_orders.png",
        "",
        f"Python {platform.python_version()}, {versions}; {perf_counter() - start:.0f} s, "
        f"{options.seeds} lists, {min(options.seeds, SEEDS_1000)} of 1,000 items.",
        "",
        *"\n\n".join(__doc__.strip().split("\n\n")[2:]).splitlines(),
        "",
        "Means over lists, ± half a 95% interval.",
        "",
        *([f"* MISSED: {line}" for line in missed] or [reached]),
        "",
        "![Kendall's tau by calls](whole_orders.png)",
        *(
            line
            for title, columns in all_tables()
            for line in lines_of(title, columns, cells[title])
        ),
    ]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if options.png:
        draw(options.png, cells)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
