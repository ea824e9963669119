"""scikit-learn's own checks of every learner: with its defaults, and in its declared forms.

The checks know nothing of ranks or queries: to rankers, their rows are of one query, and their
labels (classes 0, 1, 2 or real numbers) are relevance.
"""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import rankcore as rc
from checks_in_turn import EQUIVALENCE, ORDER, checks_in_turn, name_of_case, run_check
from declared import LEARNERS, ORDINAL, RANKERS
from rankcore._core.declaration import declaration_of

PAIRS = (
    "a weight lengthens the steps of a row's pairs; a repeated row makes more of them, in between "
    "which the hypothesis changes"
)
TIES = (
    "of stumps that are equally good, as there are in 15 rows of 30 features, rounding takes one, "
    "and weights round otherwise than repeated rows"
)
DEGREES = {
    "check_methods_subset_invariance": "the degree, or the mean rank, of a row is among the rows "
    "of its query, which the check takes apart",
}
# Forms of few passes or trees are not made to fit the blobs of these; defaults are.
OF_DEFAULTS = ["check_classifiers_train", "check_class_weight", *EQUIVALENCE]


def default_of(kind):
    """Return a learner with its defaults, and the loss under which predict is most probable."""
    if kind is rc.CalibratedOrdinal:
        return kind(rc.PRank(random_state=0), cv=2, loss="zero_one")
    if kind is rc.OrdinalBoost:  # 100 rounds run the same code
        return kind(20, loss="zero_one")
    return kind(loss="zero_one") if hasattr(kind, "predict_proba") else kind()


def differences(estimator):
    """Return checks that fail with reasons: with the defaults, those of docs/scikit_learn.md."""
    if isinstance(estimator, rc.OrdinalBoost):
        return dict.fromkeys(EQUIVALENCE, "a leaf counts rows, not their weights")
    if isinstance(estimator, rc.RankBoost):
        return dict.fromkeys(EQUIVALENCE, TIES)
    if isinstance(estimator, rc.PairwisePerceptron):
        return dict.fromkeys(EQUIVALENCE, PAIRS)
    online = declaration_of(type(estimator)).weights in ("visits", "draws", "steps")
    calibrated = isinstance(estimator, rc.CalibratedOrdinal)
    return dict.fromkeys(EQUIVALENCE, ORDER) if online or calibrated else {}


# RankSVMCV chooses C by queries, of which the checks have one: tests/test_regularization_path.py.
RANKING = [one for one in RANKERS if not isinstance(one, rc.RankSVMCV)]
KINDS = {type(one) for one in (*ORDINAL, *RANKING)}
pytestmark = [
    pytest.mark.filterwarnings("ignore:fit found no qid"),
    pytest.mark.filterwarnings("ignore:.* learned nothing"),  # of 20 rows of random labels
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def checks_of_defaults():
    """Yield the learners with their checks: what fails is shown by one learner a reason.

    Matrices and arrays of SciPy are read by the same code: of matrices, one learner in four.
    """
    shown = set()
    for i, kind in enumerate(one for one in LEARNERS if one in KINDS):
        learner = default_of(kind)
        reasons = differences(learner)
        for case in estimator_checks_generator(
            learner, expected_failed_checks=reasons, mark="xfail"
        ):
            _, check = getattr(case, "values", case)
            name = check.func.__name__
            if name in reasons:
                if (name, reasons[name]) in shown:
                    continue
                shown.add((name, reasons[name]))
            if name != "check_estimator_sparse_matrix" or i % 4 == 0:
                yield case


@pytest.mark.parametrize(("estimator", "check"), [*checks_of_defaults()], ids=name_of_case)
def test_learners_pass_with_their_defaults(estimator, check):
    run_check(estimator, check)


@checks_in_turn(ORDINAL, skipped=OF_DEFAULTS)
def test_learners_of_labels_pass_in_their_declared_forms(estimator, check):
    run_check(estimator, check)


@checks_in_turn(
    RANKING,
    lambda estimator: DEGREES if getattr(estimator, "combine", "") == "rank" else {},
    skipped=OF_DEFAULTS,
)
def test_learners_of_queries_pass_in_their_declared_forms(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [rc.KernelPRank(kernel="precomputed")],
    expected_failed_checks=lambda estimator: {
        **dict.fromkeys(EQUIVALENCE, ORDER),
        "check_fit_score_takes_y": "after a fit, partial_fit has no columns left for more rows",
        "check_classifiers_train": "the check's kernel is linear: one direction",
    },
)
def test_precomputed_kernels_pass(estimator, check):
    run_check(estimator, check)
