"""scikit-learn's own checks on what is learned.

The checks know nothing of queries: their rows are all of one query, and their labels are relevance.
"""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankcore as rc
from rankcore.preference import PairwisePreference

DIFFERENCES = {
    "check_methods_subset_invariance": "the degree of a row is against the rows of its query, "
    "which the check takes apart",
}


@parametrize_with_checks(
    [
        PairwisePreference(LogisticRegression(C=0.1, max_iter=1000)),
        PairwisePreference(DecisionTreeClassifier(random_state=0), features="concatenation"),
        PairwisePreference(rc.PairwisePerceptron(), method="quicksort", random_state=0),
    ],
    expected_failed_checks=lambda estimator: DIFFERENCES,
)
@pytest.mark.filterwarnings("error")
def test_scikit_learn_checks(estimator, check):
    check(estimator)
