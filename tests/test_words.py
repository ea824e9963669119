"""Labels that are words: each figure that scikit-learn gives is that of integers, or an error."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import class_likelihood_ratios, get_scorer, get_scorer_names
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import rankcore as rc

# Lowest rank first; in alphabetical order the middle one comes last, and the two change places.
WORDS = {3: ["bad", "ok", "good"], 2: ["poor", "fine"]}
CV = StratifiedKFold(3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(180, 4))
LATENT = X @ [1.0, 2.0, -1.0, 0.0] + RNG.normal(size=180)
RANKS = {3: np.digitize(LATENT, [-1.0, 1.0]), 2: (LATENT > 0.3).astype(int)}
PAGE = Path(__file__).parent.parent / "docs" / "scikit_learn.md"


def in_words(k):
    return np.array(WORDS[k])[RANKS[k]]


def prank(classes):
    return rc.PRank(max_iter=3, random_state=0, classes=classes)


def calibrated(classes):
    return rc.CalibratedOrdinal(rc.PRank(max_iter=3, random_state=0), cv=3, classes=classes)


def piped(classes):
    return make_pipeline(StandardScaler(), calibrated(classes))


def ranks_of(labels, classes):
    """Ranks of labels that are numbers, or words."""
    labels = np.asarray(labels)
    return labels if classes is None else np.array([classes.index(one) for one in labels])


def by_rank(table, classes):
    """Columns of a result by rank, if words changed their places."""
    table = np.asarray(table)
    if classes is None or table.ndim == 1:
        return table if classes is None or classes == sorted(classes) else -table
    return table[:, np.searchsorted(sorted(classes), classes)]


def outcome(compute, *args):
    """Figures, or the error in their place."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.asarray(compute(*args), dtype=float)
        except (ValueError, TypeError, IndexError, AttributeError, KeyError) as error:
            return error
    return found


def compared(compute, make, k):
    """Words against integers: figures are "equal" or "different", or words "rejected".

    "rejected by both" is what a version of scikit-learn does not have for so many labels.
    """
    numbers = outcome(compute, make(None), RANKS[k], None)
    words = outcome(compute, make(WORDS[k]), in_words(k), WORDS[k])
    if isinstance(words, Exception):
        return "rejected by both" if isinstance(numbers, Exception) else "rejected"
    assert not isinstance(numbers, Exception), numbers
    same = numbers.shape == words.shape and np.allclose(
        numbers, words, rtol=1e-9, atol=1e-12, equal_nan=True
    )
    return "equal" if same else "different"


def agrees(found, documented):
    """Whether a cell is as it is documented; None is not documented, of a later version."""
    if documented is None:
        return found != "different"
    return found == documented or found == "rejected by both"


def tables():
    """Cells of the tables of the page: name, of three ranks, of two."""
    if not PAGE.exists():
        pytest.skip("the guides are not beside the tests")
    text = PAGE.read_text(encoding="utf-8").partition("## Words as labels")[2]
    text = text.partition("\n## ")[0]
    cells = {}
    for line in text.splitlines():
        found = re.match(r"\| (`.*`) \| (\w+) \| (\w+) \|", line)
        if found:
            for name in re.findall(r"`([^`]+)`", found[1]):
                assert name not in cells
                cells[name] = {3: found[2], 2: found[3]}
    return cells


def score_by(name):
    def compute(learner, y, classes):
        return cross_val_score(learner, X, y, scoring=name, cv=CV, error_score="raise")

    return compute


def score_parts_by(name, fits):
    """Return attributes of models fitted once for all names: `fits`, by learner and labels."""

    def compute(learner, y, classes):
        key = (type(learner), str(classes))
        if key not in fits:
            fits[key] = [
                (clone(learner).fit(X[train], y[train]), test) for train, test in CV.split(X, y)
            ]
        scorer = get_scorer(name)
        return [scorer(model, X[test], y[test]) for model, test in fits[key]]

    return compute


SCORERS = sorted(get_scorer_names())
OWN_SCORERS = [
    *("rank_loss", "macro_rank_loss", "max_rank_loss", "quadratic_weighted_kappa"),
    *("accuracy_within", "rps", "brier_score", "log_loss"),
]


@pytest.mark.parametrize("k", [3, 2])
def test_scorers_of_scikit_learn_score_words_as_integers(k):
    cells, fits = tables(), {}
    found = {name: compared(score_parts_by(name, fits), calibrated, k) for name in SCORERS}
    assert {
        name: cell for name, cell in found.items() if not agrees(cell, cells.get(name, {}).get(k))
    } == {}
    # Those that use decision values, of a learner without probabilities.
    for name in ("roc_auc", "accuracy", "balanced_accuracy"):
        assert compared(score_by(name), prank, k) == found[name]
        assert compared(score_by(name), calibrated, k) == found[name]


def test_likelihood_ratios_need_the_order_of_words():
    """Scikit-learn's positive label is the last one, whatever the classifier."""

    def ratios(learner, y, classes):
        predicted = learner.fit(X, y).predict(X)
        return class_likelihood_ratios(y, predicted, labels=classes or [0, 1])

    def of_any(learner, y, classes):
        return cross_val_score(LogisticRegression(), X, y, scoring="positive_likelihood_ratio")

    assert compared(of_any, calibrated, 2) == "different"
    assert compared(ratios, calibrated, 2) == "equal"


@pytest.mark.parametrize("name", OWN_SCORERS)
@pytest.mark.parametrize("k", [3, 2])
def test_own_scorers_score_words_as_integers(name, k):
    compute = score_by(rc.metrics.make_scorer(name))
    assert compared(compute, calibrated, k) == "equal"
    piped = compared(
        compute, lambda classes: make_pipeline(StandardScaler(), calibrated(classes)), k
    )
    assert piped == "equal"


def predicted(tool):
    """Compute by a fitted tool: ranks that it predicts."""

    def compute(learner, y, classes):
        return ranks_of(tool(learner).fit(X, y).predict(X), classes)

    return compute


def searched(search, grid):
    def compute(learner, y, classes):
        found = search(learner, {"max_iter": [1, 3]}, cv=CV, scoring="accuracy", **grid).fit(X, y)
        return [*found.cv_results_["mean_test_score"], *ranks_of(found.predict(X), classes)]

    return compute


def held_out(method, tool=cross_val_predict):
    def compute(learner, y, classes):
        found = tool(learner, X, y, cv=CV, method=method)
        return ranks_of(found, classes) if method == "predict" else by_rank(found, classes)

    return compute


def curves(learner, y, classes):
    _, train, test = learning_curve(
        learner, X, y, cv=CV, train_sizes=[0.5, 1.0], scoring="balanced_accuracy"
    )
    return np.concatenate([train, test])


def validated(learner, y, classes):
    name, values = "max_iter", [1, 3]
    return np.concatenate(
        validation_curve(learner, X, y, param_name=name, param_range=values, cv=CV)
    )


def several(learner, y, classes):
    found = cross_validate(
        learner, X, y, cv=CV, scoring=["accuracy", "roc_auc_ovo"], return_estimator=True
    )
    last = found["estimator"][-1]
    return [
        *found["test_accuracy"],
        *found["test_roc_auc_ovo"],
        *ranks_of(last.predict(X), classes),
    ]


def permuted(learner, y, classes):
    found = permutation_test_score(learner, X, y, cv=CV, n_permutations=3, random_state=0)
    return [found[0], *found[1]]


def important(learner, y, classes):
    fitted = learner.fit(X, y)
    return permutation_importance(
        fitted, X, y, n_repeats=2, random_state=0, scoring="neg_log_loss"
    ).importances_mean


def selected(learner, y, classes):
    chosen = SequentialFeatureSelector(learner, n_features_to_select=2, cv=3, scoring="accuracy")
    return chosen.fit(X, y).support_


def calibrated_by_sklearn(learner, y, classes):
    found = CalibratedClassifierCV(learner, cv=3).fit(X, y)
    return by_rank(found.predict_proba(X), classes)


def chained(learner, y, classes):
    both = np.column_stack([y, y[::-1]])
    found = ClassifierChain(learner).fit(X, both).predict(X)
    return ranks_of(np.asarray(found).astype(both.dtype)[:, 0], classes)


def outputs(learner, y, classes):
    found = MultiOutputClassifier(learner).fit(X, np.column_stack([y, y])).predict(X)
    return ranks_of(found[:, 1], classes)


def self_trained(learner, y, classes):
    labels = np.array(y, dtype=int if classes is None else object)
    labels[::3] = -1  # unlabelled
    found = SelfTrainingClassifier(learner).fit(X, labels)
    return [*ranks_of(found.predict(X), classes), *by_rank(found.predict_proba(X), classes).ravel()]


own_predict = rc.model_selection.cross_val_predict
TOOLS = {
    "cross_validate": (several, calibrated),
    "cross_val_predict(method='predict')": (held_out("predict"), prank),
    "cross_val_predict(method='predict_proba')": (held_out("predict_proba"), calibrated),
    "cross_val_predict(method='decision_function')": (held_out("decision_function"), prank),
    "rankcore.model_selection.cross_val_predict": (
        held_out("predict_proba", own_predict),
        calibrated,
    ),
    "GridSearchCV": (searched(GridSearchCV, {}), prank),
    "RandomizedSearchCV": (searched(RandomizedSearchCV, {"n_iter": 2, "random_state": 0}), prank),
    "HalvingGridSearchCV": (searched(HalvingGridSearchCV, {"random_state": 0}), prank),
    "learning_curve": (curves, prank),
    "validation_curve": (validated, prank),
    "permutation_test_score": (permuted, prank),
    "permutation_importance": (important, calibrated),
    "SequentialFeatureSelector": (selected, prank),
    "RFE": (predicted(lambda learner: RFE(learner, n_features_to_select=2)), prank),
    "CalibratedClassifierCV": (calibrated_by_sklearn, prank),
    "CalibratedClassifierCV(ensemble=False)": (
        predicted(lambda learner: CalibratedClassifierCV(learner, cv=3, ensemble=False)),
        prank,
    ),
    "FixedThresholdClassifier": (predicted(FixedThresholdClassifier), prank),
    "TunedThresholdClassifierCV": (predicted(TunedThresholdClassifierCV), calibrated),
    "VotingClassifier": (predicted(lambda one: VotingClassifier([("one", one)])), prank),
    "StackingClassifier": (
        predicted(lambda one: StackingClassifier([("one", one)], prank(one.classes))),
        prank,
    ),
    "BaggingClassifier": (predicted(lambda one: BaggingClassifier(one, 3, random_state=0)), prank),
    "AdaBoostClassifier": (
        predicted(lambda one: AdaBoostClassifier(one, n_estimators=3, random_state=0)),
        prank,
    ),
    "OneVsRestClassifier": (predicted(OneVsRestClassifier), prank),
    "OneVsOneClassifier": (predicted(OneVsOneClassifier), prank),
    "OutputCodeClassifier": (
        predicted(lambda one: OutputCodeClassifier(one, random_state=0)),
        prank,
    ),
    "SelfTrainingClassifier": (self_trained, calibrated),
    "ClassifierChain": (chained, prank),
    "MultiOutputClassifier": (outputs, prank),
}


@pytest.mark.parametrize("name", TOOLS)
def test_measures_of_scikit_learn_score_words_as_integers(name):
    documented = tables()[name]
    compute, make = TOOLS[name]
    for k in (3, 2):
        assert agrees(compared(compute, make, k), documented[k]), k


def test_docs_page_has_the_whole_table():
    # Names that the oldest versions of scikit-learn do not have.
    later = {"d2_absolute_error_score", "d2_brier_score", "d2_log_loss_score", "neg_max_error"}
    assert set(tables()) <= {*SCORERS, *TOOLS, *later}
    assert {cell for cells in tables().values() for cell in cells.values()} == {
        "equal",
        "rejected",
        "different",
    }
