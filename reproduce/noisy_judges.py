"""How methods compare when the judge errs: quality against calls, on real graded queries.

``python -m reproduce.noisy_judges`` prints the tables; --markdown writes a copy, --png draws them.
The exit status is 1 if the default misses its gate.

Three sets of lists are put in order: the queries of OHSUMED (LETOR 3.0), whose documents are graded
0 to 2; the films that a user of MovieLens has rated, 1 to 5 stars; and made lists of 1,000 items.
A judge sees a hidden order that agrees with the grades and is arbitrary among equal ones. It errs

- at random: on 10% of the pairs, and always the same way on one, as a language model at temperature
  0 does; or on 10% of the calls, anew each time;
- by closeness: the likelier, the closer two items are in the hidden order;
- towards the first position: in 20% of the calls it answers the first item, whatever that is.

"Bradley-Terry" is a fit of the same answers by choix, instead of the order of the method itself.
Real data are not part of the project: put them into ../shared/data, or name their folder in
RANKCORE_DATA; sets that are missing are left out.
"""

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

import numpy as np

from rankcore.metrics import ndcg_score
from rankcore.preference import Indexed, PreferenceRanker, order_loss
from reproduce.data import DATA
from reproduce.gates import not_gated
from reproduce.ohsumed import load
from reproduce.pages import publish, table

TOP = 10
LISTS = 20
JUDGES = {
    "random": "10% of the pairs, always the same way",
    "anew": "10% of the calls, anew each time",
    "closeness": "by closeness",
    "first": "20% of the calls: the first item",
}
# What is compared: its name, the parameters, and the judges for which it makes a difference.
ALL = tuple(JUDGES)
METHODS = [
    ("all pairs", {"method": "degree"}, ALL),
    ("all pairs, both orders", {"method": "degree", "both_orders": True}, ("first",)),
    ("halving, default", {"method": "halving"}, ALL),
    ("halving, both orders", {"method": "halving", "both_orders": True}, ("first",)),
    ("QuickSort", {"method": "quicksort"}, ALL),
    ("QuickSort, 3 repeats", {"method": "quicksort", "repeats": 3}, ("anew",)),
    ("QuickSort, 9 repeats", {"method": "quicksort", "repeats": 9}, ("anew",)),
    ("QuickSort, both orders", {"method": "quicksort", "both_orders": True}, ("first",)),
]
# The same, where all items are put in order.
WHOLE = [
    ("all pairs", {"method": "degree"}, ALL),
    ("QuickSort (default)", {"method": "quicksort"}, ALL),
    ("QuickSort, 3 repeats", {"method": "quicksort", "repeats": 3}, ("anew",)),
    ("QuickSort, both orders", {"method": "quicksort", "both_orders": True}, ("first",)),
]
FITTED = ("all pairs", "halving, default", "QuickSort", "QuickSort (default)")
DEFAULT = "halving, default"
# On lists of 1,000 with 10% errors: of the quality of all pairs, and of their calls.
GATE = 0.95, 0.04


def hidden_order(grades, rng):
    """Places from 0, the worst, to n - 1, that agree with the grades."""
    return np.lexsort((rng.random(grades.size), grades)).argsort()


def judge(kind, places, rng):
    """Return a preference that errs."""
    n = places.size
    if kind == "random":
        wrong = np.triu(rng.random((n, n)) < 0.1, 1)
        wrong |= wrong.T
        return Indexed(lambda i, j: (places[i] > places[j]) ^ wrong[i, j])
    if kind == "anew":
        return Indexed(lambda i, j: (places[i] > places[j]) ^ (rng.random(i.size) < 0.1))
    if kind == "closeness":
        # As wrong as right at one place, one in ten at a tenth of the list.
        draws = np.triu(rng.random((n, n)), 1)
        scale = n / 10 / np.log(9)

        def closeness(i, j):
            first, second = np.minimum(i, j), np.maximum(i, j)
            apart = (places[first] - places[second]) / scale
            return (draws[first, second] < 1 / (1 + np.exp(-apart))) ^ (i > j)

        return Indexed(closeness)
    biased = rng.random((n, n)) < 0.2
    return Indexed(lambda i, j: (places[i] > places[j]) | biased[i, j])


def quality(order, grades, places):
    """NDCG@10 of the grades, and two regrets against the hidden order, the least loss being 0.

    The first regret is that of pairs with one of the first ten items, as a share of it when all of
    them are the wrong way round; the second is the share of all pairs that are.
    """
    scores = np.empty(grades.size)
    scores[order] = np.arange(grades.size, 0, -1)
    worst = order_loss(places.argsort(), places, ("top_k", TOP))
    at_top = order_loss(order, places, ("top_k", TOP)) / worst
    return ndcg_score(grades, scores, k=TOP), at_top, order_loss(order, places)


class Recorded:
    """A judge that keeps its answers."""

    def __init__(self, judge):
        self.judge, self.rows = judge, []

    def __call__(self, i, j):
        degrees = self.judge.degrees(i, j)
        self.rows.append((i, j, degrees))
        return degrees

    def bradley_terry(self, n):
        """Return the order of a Bradley-Terry fit of the answers."""
        import choix

        i, j, degrees = (np.concatenate(part) for part in zip(*self.rows, strict=True))
        wins = np.zeros((n, n))
        np.add.at(wins, (i, j), degrees)
        np.add.at(wins, (j, i), 1.0 - degrees)
        # As if every item had won and lost a hundredth of a comparison with every other.
        strengths = choix.ilsr_pairwise_dense(wins, alpha=0.01, max_iter=300, tol=1e-6)
        return np.argsort(-strengths, kind="stable")


def measure_list(grades, seed):
    """Return calls, rounds and quality for a list, by judge, number of items, and method."""
    found = {}
    for kind in JUDGES:
        for top_k, methods in ((TOP, METHODS), (None, WHOLE)):
            for name, params, kinds in methods:
                if kind not in kinds:
                    continue
                rng = np.random.default_rng([seed, list(JUDGES).index(kind)])
                shuffled = rng.permutation(grades)
                places = hidden_order(shuffled, rng)
                recorded = Recorded(judge(kind, places, rng))
                ranker = PreferenceRanker(
                    Indexed(recorded), top_k=top_k, random_state=seed, **params
                )
                ranker.rank(np.arange(grades.size))
                cost = ranker.n_calls_, ranker.n_rounds_
                found[kind, top_k, name] = (*cost, *quality(ranker.order_, shuffled, places))
                if name in FITTED and (top_k or name != "all pairs"):
                    fitted = quality(recorded.bradley_terry(grades.size), shuffled, places)
                    found[kind, top_k, f"Bradley-Terry, {name}"] = (*cost, *fitted)
    return found


def ohsumed():
    """Return the grades of each query."""
    _, y, qid = load("12345")
    return [y[qid == query] for query in np.unique(qid)]


def movielens(n_users, seed):
    """Return the stars that users gave, of some who rated 100 films or more."""
    rows = np.loadtxt(DATA / "movielens-100k" / "u.data.tsv.gz", dtype=np.int64)
    users, counts = np.unique(rows[:, 0], return_counts=True)
    drawn = np.random.default_rng(seed).permutation(users[counts >= 100])[:n_users]
    return [rows[rows[:, 0] == user, 2].astype(float) for user in drawn]


def made(n_lists):
    """Yield lists of 1,000: ten items of grade 4, 20 of grade 3, 50 of grade 2, 120 of grade 1."""
    return [np.repeat([4.0, 3.0, 2.0, 1.0, 0.0], [10, 20, 50, 120, 800])] * n_lists


def summary(all_found):
    """Means and half 95% intervals over lists, by judge and method."""
    result = {}
    for key in all_found[0]:
        values = np.array([found[key] for found in all_found if key in found], dtype=float)
        spread = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        result[key] = values.mean(axis=0), 1.96 * spread
    return result


def tables(result):
    """One table for each judge and number of items asked for."""
    lines = []
    for kind, what in JUDGES.items():
        lines += ["", f"### Errors: {what}"]
        for top_k in (TOP, None):
            rows = []
            for (of, asked, name), (mean, half) in result.items():
                if (of, asked) == (kind, top_k):
                    regret = 3 if top_k else 4
                    rows.append(
                        [
                            name,
                            f"{mean[0]:.0f}",
                            f"{mean[1]:.0f}",
                            f"{mean[2]:.4f} ± {half[2]:.4f}",
                            f"{100 * mean[regret]:.1f} ± {100 * half[regret]:.1f}",
                        ]
                    )
            asked_for, pairs = ("the first 10", "at the top, ") if top_k else ("all in order", "")
            head = [asked_for, "calls", "rounds", "NDCG@10", f"regret {pairs}%"]
            lines += ["", *table(rows, head)]
    return lines


COLOURS = {
    "all pairs": "black",
    "halving": "tab:red",
    "QuickSort": "tab:blue",
}


def draw(path, results):
    """Quality against calls: a row for each set of lists, a column for each judge."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    size = (4 * len(JUDGES), 3.2 * len(results) + 0.9)
    figure, axes = plt.subplots(
        len(results), len(JUDGES), figsize=size, squeeze=False, sharey="row", layout="constrained"
    )
    for k, (title, result) in enumerate(results.items()):
        row = axes[k]
        for axis, (kind, what) in zip(row, JUDGES.items(), strict=True):
            for (of, asked, name), (mean, half) in result.items():
                if (of, asked) != (kind, TOP):
                    continue
                fitted = name.startswith("Bradley-Terry")
                family = name.removeprefix("Bradley-Terry, ").split(",")[0]
                filled = "both orders" not in name
                axis.errorbar(
                    mean[0],
                    mean[2],
                    half[2],
                    fmt="x" if fitted else "o",
                    ms=6 if fitted else 5,
                    color=COLOURS[family],
                    mfc=COLOURS[family] if filled else "white",
                    elinewidth=0.8,
                )
            axis.set_xscale("log")
            axis.grid(alpha=0.3)
            if k == 0:
                axis.set_title(what, fontsize=10)
            if k == len(axes) - 1:
                axis.set_xlabel("calls for a list")
        row[0].set_ylabel(f"{title}\nNDCG@10")
    marks = [plt.Line2D([], [], color=c, marker="o", ls="") for c in COLOURS.values()]
    marks += [
        plt.Line2D([], [], color="grey", marker="o", mfc="white", ls=""),
        plt.Line2D([], [], color="grey", marker="x", ls=""),
    ]
    names = [*COLOURS, "asked in both orders", "Bradley-Terry fit of the same answers"]
    figure.legend(marks, names, loc="outside lower center", ncols=8, frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def verdicts(result):
    """Whether the default reaches its gate on lists of 1,000, for errors of 10%."""
    lines, failed = [], False
    for kind in ("random", "anew"):
        default, every = (result[kind, TOP, name][0] for name in (DEFAULT, "all pairs"))
        share, calls = default[2] / every[2], default[0] / every[0]
        good = share >= GATE[0] and calls <= GATE[1]
        failed |= not good
        lines.append(
            f"* {'Reached' if good else 'MISSED'}, errors on {JUDGES[kind]}: the default has "
            f"{100 * share:.1f}% of the NDCG@10 of all pairs (at least {100 * GATE[0]:.0f}%) at "
            f"{100 * calls:.2f}% of their calls (at most {100 * GATE[1]:.0f}%)."
        )
    return lines, failed


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce.noisy_judges", description=__doc__)
    parser.add_argument(
        "--lists", type=int, default=LISTS, help="made lists (default: %(default)s)"
    )
    parser.add_argument(
        "--users", type=int, default=100, help="of MovieLens (default: %(default)s)"
    )
    parser.add_argument("--markdown", type=Path, help="where to write a copy")
    parser.add_argument("--png", type=Path, help="where to draw the tables")
    options = parser.parse_args()
    if min(options.lists, options.users) < 2:
        parser.error("intervals need at least 2 lists and 2 users")
    start = perf_counter()
    sets = {"1,000 items": made(options.lists)}
    if (DATA / "ohsumed-letor3").is_dir():
        sets["OHSUMED"] = ohsumed()
    if (DATA / "movielens-100k").is_dir():
        sets["MovieLens"] = movielens(options.users, 0)
    results = {
        title: summary([measure_list(grades, seed) for seed, grades in enumerate(lists)])
        for title, lists in sets.items()
    }
    reached, failed = verdicts(results["1,000 items"])
    small = not_gated(options.lists, LISTS, "lists")
    if small:
        reached, failed = [f"* {small.capitalize()}."], False
    packages = ["rankcore", "numpy", "choix"]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    lines = [
        "# Judges that err",
        "",
        "    python -m reproduce.noisy_judges --markdown reproduce/noisy_judges.md "
        "--png reproduce/noisy_judges.png",
        "",
        f"Python {platform.python_version()}, {versions}; {perf_counter() - start:.0f} s.",
        "",
        *"\n\n".join(__doc__.strip().split("\n\n")[2:]).splitlines(),
        "",
        "Means over lists, which are shuffled; ± is half a 95% interval. Regret at the top is that",
        f"of pairs with one of the first {TOP} items, as a share of it when all are the wrong way",
        "round; regret of all in order is the share of all pairs that are.",
        "",
        *reached,
        "",
        "![NDCG@10 against calls](noisy_judges.png)",
    ]
    for title, lists in sets.items():
        sizes = [grades.size for grades in lists]
        about = f"{len(lists)} lists"
        if min(sizes) < max(sizes):
            about += f" of {min(sizes)} to {max(sizes)}, on average {np.mean(sizes):.0f}"
        lines += ["", f"## {title}: {about}", *tables(results[title])]
    text = "\n".join(lines) + "\n"
    publish(text, options.markdown)
    if options.png:
        draw(options.png, results)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
