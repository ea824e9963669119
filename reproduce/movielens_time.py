"""Ratings of people in the order of time: one ranker per person, without a look at the future.

``python -m reproduce.movielens_time --markdown reproduce/movielens_time.md``

The last rating of each person of MovieLens 100k is held out, and the person's earlier ones train.
Features of a film are made from what other people had rated before the person's first rating: the
logarithm of the number of ratings, their mean, and 20 factors of a singular value decomposition of
the ratings minus 3, renewed after every 2,000 ratings. People who came before the first 10,000
ratings are left out. "Others' ratings, all times" are the features of PRank's and OAP's papers: the
ratings of all other people minus 3, 0 where there are none, among them those that came later.

Figures are mean absolute errors of the held-out ratings, with 95 % intervals of Student's t over
people; differences are paired. Less is better.
"""

import argparse
import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import sem
from scipy.stats import t as student
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankcore as rc
from reproduce.data import DATA, require
from reproduce.pages import publish, table

FACTORS, RENEWED, FIRST = 20, 2_000, 10_000
RANKS = range(1, 6)


class Person(NamedTuple):
    """What a person rated, in the order of time; the last rating is held out."""

    films: np.ndarray
    ratings: np.ndarray
    features: np.ndarray  # of all films, before the first of these ratings
    others: np.ndarray  # ratings of all other people, minus 3: of these films


def film_features(people: np.ndarray, films: np.ndarray, ratings: np.ndarray, shape: Any) -> Any:
    """Return features of all films by some ratings."""
    centred = np.zeros(shape)
    centred[people, films] = ratings - 3.0
    n = np.bincount(films, minlength=shape[1])
    mean = np.bincount(films, ratings - 3.0, minlength=shape[1]) / np.maximum(n, 1)
    _, scale, factors = np.linalg.svd(centred, full_matrices=False)
    return np.column_stack([np.log1p(n), mean, factors[:FACTORS].T * scale[:FACTORS]])


def persons() -> list[Person]:
    """Return the people, with features that are as old as their first rating."""
    with gzip.open(DATA / "movielens-100k" / "u.data.tsv.gz", "rt") as file:
        columns = np.loadtxt(file, dtype=int)
    columns = columns[np.argsort(columns[:, 3], kind="stable")]
    people, films, ratings = columns[:, 0] - 1, columns[:, 1] - 1, columns[:, 2]
    shape = (people.max() + 1, films.max() + 1)
    whole = np.zeros(shape)
    whole[people, films] = ratings - 3.0
    known: dict[int, Any] = {}
    result = []
    for person in range(shape[0]):
        own = np.flatnonzero(people == person)
        before = own[0] // RENEWED * RENEWED
        if before < FIRST:
            continue
        if before not in known:
            some = slice(0, before)
            known[before] = film_features(people[some], films[some], ratings[some], shape)
        others = np.delete(whole, person, axis=0)[:, films[own]].T
        result.append(Person(films[own], ratings[own], known[before], others))
    return result


def film_means(one: Person) -> np.ndarray:
    """Return the mean of the earlier ratings of each film."""
    return one.features[one.films, 1] + 3.0


def rounded(scores: Any) -> Any:
    """Return the nearest ranks."""
    return np.clip(np.rint(scores), RANKS[0], RANKS[-1])


def of_mean(one: Person) -> Any:
    """Predict the mean of the film."""
    return rounded(film_means(one)[-1])


def of_offset(one: Person) -> Any:
    """Predict the mean of the film, plus the person's mean difference from such means."""
    means = film_means(one)
    return rounded(means[-1] + (one.ratings - means)[:-1].mean())


def of_median(one: Person) -> Any:
    """Predict the person's median."""
    return rounded(np.median(one.ratings[:-1]))


def of_learner(make: Callable[[], Any], others: bool = False, nearest: bool = False) -> Any:
    """Return a function that predicts the last rating by a learner of the earlier ones."""

    def predict(one: Person) -> Any:
        X = one.others if others else one.features[one.films]
        label = make().fit(X[:-1], one.ratings[:-1]).predict(X[-1:])[0]
        return rounded(label) if nearest else label

    return predict


WAYS = {
    "person's median": of_median,
    "film's mean": of_mean,
    "film's mean + person's offset": of_offset,
    "ridge regression, rounded": of_learner(
        lambda: make_pipeline(StandardScaler(), Ridge(10.0)), nearest=True
    ),
    "`PRank()`": of_learner(lambda: rc.PRank(classes=RANKS, random_state=0)),
    "`CuSumRank()`": of_learner(lambda: rc.CuSumRank(classes=RANKS, random_state=0)),
    "`OrdinalLogistic()`": of_learner(lambda: rc.OrdinalLogistic(classes=RANKS, random_state=0)),
    "`KernelPRank()`": of_learner(lambda: rc.KernelPRank(classes=RANKS, random_state=0)),
    "`OrdinalBoost(50)`": of_learner(lambda: rc.OrdinalBoost(50, classes=RANKS, random_state=0)),
    "`PRank()`, others' ratings, all times": of_learner(
        lambda: rc.PRank(classes=RANKS, random_state=0), others=True
    ),
    "`OAPBPM()`, others' ratings, all times": of_learner(
        lambda: rc.OAPBPM(classes=RANKS, random_state=0), others=True
    ),
}


def interval(values: np.ndarray) -> str:
    """Return a mean with its 95 % interval."""
    width = student.ppf(0.975, values.size - 1) * sem(values)
    return f"{values.mean():.3f} ± {width:.3f}"


def main() -> None:
    """Measure, and publish the page."""
    parser = argparse.ArgumentParser(prog="python -m reproduce.movielens_time", description=__doc__)
    parser.add_argument("--people", type=int, help="the first so many only")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    require("movielens-100k")
    warnings.simplefilter("ignore", UserWarning)  # some people's ratings are not to be learned
    chosen = persons()[: options.people]
    truth = np.array([one.ratings[-1] for one in chosen])
    errors = {
        name: np.abs(np.array([way(one) for one in chosen]) - truth) for name, way in WAYS.items()
    }
    baseline = errors["film's mean + person's offset"]
    rows = [
        [name, interval(values), interval(values - baseline)] for name, values in errors.items()
    ]
    columns = ["prediction", "mean absolute error", "minus that of mean + offset"]
    lines = [
        "# Ratings of people in the order of time",
        "",
        "    python -m reproduce.movielens_time",
        "",
        (__doc__ or "").split("\n\n", 2)[2].strip(),
        "",
        f"{len(chosen)} people.",
        "",
        *table(rows, columns),
        "",
    ]
    publish("\n".join(lines), options.markdown)


if __name__ == "__main__":
    main()
