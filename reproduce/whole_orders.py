"""Whole orders from judges that err: Kendall's tau against calls, compared with other packages.

``python -m reproduce.whole_orders`` prints the tables; --markdown writes a copy, --png draws them.
--cache keeps each list that was ordered in a folder, so that a run goes on where one ended, killed
or after --seconds; delete it when rankcore changes. --jobs are processes. The exit status is 1 if a
goal is missed, 2 if the time has ended before the tables are whole; those that are not are named.

A judge sees a hidden order of n items and gives the wrong answer with a fixed probability: anew at
each call, or about the same pairs each time (a judge that repeats itself); or the more often the
closer two items are. Compared are

- rating (the default for a budget) and degree of this package, and QuickSort, which stops itself;
- Bradley-Terry of random pairs, by choix (`ilsr_pairwise_dense`, alpha = 0.01);
- Bradley-Terry by choix of near pairs, chosen anew after each round (active);
- Swiss rounds (neighbours by wins), then Bradley-Terry;
- Elo on random pairs (K = 32);
- TrueSkill, where a random item meets the nearest by rating of eight others;
- merge sort, which stops by itself.

A last table has what a rating claims: 90% intervals of places should cover at least 85% of the
places, and the claimed fraction of inversions be within .05 of the true one.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np
from joblib import Memory, Parallel, delayed
from scipy.stats import t

from rankcore.preference import call_plan
from reproduce.gates import not_gated
from reproduce.pages import publish, table
from reproduce.whole_orders_methods import METHODS, one_claim, one_list

SEEDS = 4

# Tau for 60 items, 20% of the answers wrong, anew each time; for 200 items, three times QuickSort's
# calls, anew, what TrueSkill had; and for QuickSort's calls, the same each time.
GOALS_60 = {300: 0.64, 600: 0.75, 1000: 0.81, 1770: 0.85}
GOALS_200 = {0.1: 0.962, 0.2: 0.880, 0.3: 0.668}
HOW = {"anew": "anew each time", "fixed": "the same each time"}
# Judges of the table of claims: items, calls, noise and errors.
CLAIMS = {
    **{f"{noise:.0%} wrong, anew": (60, 600, noise, "anew") for noise in (0.0, 0.1, 0.2, 0.3, 0.4)},
    **{f"{noise:.0%} of pairs wrong": (60, 600, noise, "fixed") for noise in (0.1, 0.2, 0.3, 0.4)},
    "by distance": (60, 600, 0.08, "distance"),
    "20% wrong, a fifth for the first": (60, 600, 0.2, "position"),
    "40% wrong, 20 items, 400 calls": (20, 400, 0.4, "anew"),
    "a coin, 20 items, 400 calls": (20, 400, 0.5, "anew"),
}
GOALS_FIXED = {0.1: 0.840, 0.2: 0.690, 0.3: 0.442}


def all_tables():
    """For each table its title, its columns, and its items, calls, noise and errors."""
    shares = [0.0, 0.1, 0.2, 0.3, 0.4]
    found = []
    for errors, how in HOW.items():
        title = f"60 items, 20% wrong, {how}, by calls"
        found.append((title, {calls: (60, calls, 0.2, errors) for calls in GOALS_60}))
    title = "60 items, errors by distance, by calls"
    found.append((title, {calls: (60, calls, 0.08, "distance") for calls in GOALS_60}))
    for n in (20, 60, 200):
        sort = round(call_plan(n)["quicksort"].calls)
        for errors, how in HOW.items():
            calls = 3 * sort if errors == "anew" else sort
            title = f"{n:,} items, {calls:,} calls, by share wrong, {how}"
            found.append((title, {noise: (n, calls, noise, errors) for noise in shares}))
    return found


def in_time(cached, calls, end):
    """Yield calls of a function until the time ends; those in the cache take none."""
    for call in calls:
        if perf_counter() > end and not cached.check_call_in_cache(*call):
            return
        yield delayed(cached)(*call)


def measured(columns, lists, cached, jobs, end):
    """Figures by method and column, of one table: mean tau, half a 95% interval, mean calls.

    And seconds of processor time; None, None if the time ends before all lists are ordered. The
    intervals are Student's, for few lists.
    """
    cells = [(name, column) for name in METHODS for column in columns]

    calls = [(name, *columns[column], seed) for name, column in cells for seed in range(lists)]
    found = Parallel(jobs, pre_dispatch=jobs)(in_time(cached, calls, end))
    if len(found) < len(cells) * lists:
        return None, None
    figures = np.array(found).reshape(len(cells), lists, 3)
    tau, asked, _ = figures.mean(axis=1).T
    half = t.ppf(0.975, lists - 1) * figures[:, :, 0].std(axis=1, ddof=1) / lists**0.5
    return dict(zip(cells, zip(tau, half, asked, strict=True), strict=True)), figures[:, :, 2].sum()


def lists_of(columns, seeds):
    """Return the number of lists of a table; half as many if they have 200 items."""
    n = next(iter(columns.values()))[0]
    return seeds if n < 200 else max(2, seeds // 2)


def lines_of(title, columns, cells):
    """Return a table as Markdown."""
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
        if title not in cells:
            continue
        n, _, _, errors = next(iter(columns.values()))
        goals = {(200, "anew"): GOALS_200, (200, "fixed"): GOALS_FIXED}.get((n, errors), {})
        if title.endswith("by calls") and errors == "anew":
            goals = GOALS_60
        for column, goal in goals.items():
            tau = cells[title]["rating", column][0]
            if tau <= goal:
                missed.append(f"{title}, {column}: {tau:.3f}, goal {goal:.3f}")
    return missed


def claims(lists, cached, jobs, end):
    """Return the claims of a rating for each judge, as Markdown, and the goals that it misses.

    And the judges for which the time has ended.
    """
    rows, missed, left = [], [], []
    for name, judge in CLAIMS.items():
        calls = [(*judge, seed) for seed in range(lists)]
        found = np.array(Parallel(jobs, pre_dispatch=jobs)(in_time(cached, calls, end)))
        if len(found) < lists:
            left.append(f"the claims of a judge with {name}")
            continue
        claimed, true, inside, width, complete = found.mean(axis=0)
        rows.append(
            [name, f"{claimed:.3f}", f"{true:.3f}", f"{inside:.1%}", f"{width:.1f}",
             f"{complete:.0%}"]
        )  # fmt: skip
        spread = 2 * found[:, 1].std() / lists**0.5
        if inside < 0.85 or abs(claimed - true) > 0.05 + spread:
            missed.append(f"claims of a judge with {name}: {inside:.3f}, {claimed:.3f}, {true:.3f}")
    columns = ["judge", "claimed inversions", "true", "coverage", "mean width", "complete"]
    return ["", "## What a rating claims", "", *table(rows, columns)], missed, left


def draw(path, cells):
    """Tau by calls, for 60 items."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = [title for title in cells if title.endswith("by calls")]
    size = 10, 4.6
    figure, axes = plt.subplots(1, len(titles), figsize=size, sharey=True, layout="constrained")
    for axis, title in zip(axes, titles, strict=True):
        for name in METHODS:
            found = [value for (who, _), value in cells[title].items() if who == name]
            tau, half, asked = np.array(found).T
            if "ort" in name:
                tau, half, asked = tau[-1:], half[-1:], asked[-1:]
            axis.errorbar(asked, tau, half, marker="o", ms=4, elinewidth=0.6, label=name)
        axis.set(title=title.removeprefix("60 items, ").removesuffix(", by calls"), xlabel="calls")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("Kendall's tau of 60 items")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def arguments():
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.whole_orders", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS, help="lists (default: %(default)s)")
    parser.add_argument("--cache", type=Path, help="folder that keeps what was measured")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin no list after these")
    parser.add_argument("--markdown", type=Path, help="where to write a copy")
    parser.add_argument("--png", type=Path, help="where to draw the tables")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("intervals need at least 2 seeds")
    return options


def main():
    options = arguments()
    memory = Memory(options.cache, verbose=0)
    cached = memory.cache(one_list)
    end, seconds, cells, left = perf_counter() + options.seconds, 0.0, {}, []
    tables = all_tables()
    for title, columns in tables:
        lists = lists_of(columns, options.seeds)
        found, spent = measured(columns, lists, cached, options.jobs, end)
        if spent is None:
            left.append(title)
            continue
        cells[title] = found
        seconds += spent
        print(f"{title}: {spent:.0f} s of processor time", file=sys.stderr, flush=True)
    claimed, overstated, unclaimed = claims(
        options.seeds, memory.cache(one_claim), options.jobs, end
    )
    left = [f"* NOT MEASURED, as the time has ended: {what}" for what in left + unclaimed]
    print(*left, sep="\n", file=sys.stderr)
    missed = missed_goals(cells) + overstated
    small = not_gated(options.seeds, SEEDS, "lists")
    if small:
        missed = []
    whole = "All goals of these tables are reached" if left else "All goals are reached"
    reached = f"{small.capitalize() or whole}."
    packages = ["rankcore", "numpy", "choix", "trueskill"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    sizes = "" if options.seeds == SEEDS else f"--seeds {options.seeds} "
    lines = [
        "# Whole orders from judges that err",
        "",
        f"    python -m reproduce.whole_orders {sizes}--markdown reproduce/whole_orders.md "
        "--png reproduce/whole_orders.png",
        "",
        f"Python {platform.python_version()}, {versions}; {seconds:.0f} s of processor time, "
        f"{options.seeds} lists, {max(2, options.seeds // 2)} of 200 items.",
        "",
        *"\n\n".join(__doc__.strip().split("\n\n")[2:]).splitlines(),
        "",
        "Means over lists, ± half a 95% interval.",
        "",
        *([f"* MISSED: {line}" for line in missed] or [reached]),
        *left,
        "",
        "![Kendall's tau by calls](whole_orders.png)",
        *(
            line
            for title, columns in tables
            if title in cells
            for line in lines_of(title, columns, cells[title])
        ),
        *claimed,
    ]
    text = "\n".join(lines) + "\n"
    publish(text, options.markdown)
    if options.png:
        draw(options.png, cells)
    return 2 if left else 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
