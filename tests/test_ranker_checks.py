"""scikit-learn's own checks on the rankers.

The checks know nothing of queries: their rows are all of one query, and their labels (classes 0,
1, 2 or real numbers) are relevance, which any number is. What they assume beyond that and a ranker
does not do is listed here, and nowhere else.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankcore as rc
from checks_in_turn import checks_in_turn

WEIGHTS = (
    "a weight lengthens the steps of a row's pairs; a repeated row makes more of them, in between "
    "which the hypothesis changes"
)
DIFFERENCES = {
    "check_sample_weight_equivalence_on_dense_data": WEIGHTS,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHTS,
}
BY_RANK = {
    "check_methods_subset_invariance": "the mean rank of a row is among the rows of its query, "
    "which the check takes apart",
}
TIES = (
    "of stumps that are equally good, as there are in 15 rows of 30 features, rounding takes one, "
    "and weights round otherwise than repeated rows"
)
DEFAULTS = [rc.PairwisePerceptron(), rc.RankBoost(20)]
VARIANTS = [
    rc.PairwisePerceptron("committee", margin=0.0, shuffle=False),
    rc.PairwisePerceptron("pocket", balance=None, count="query"),
    rc.PairwisePerceptron("voted", combine="rank", max_hypotheses=30),
    # Pairs are counted for smoothing="auto": repeating a row is not the same as its weight then.
    rc.RankBoost(10, step="discrete", select="normalizer", max_bins=None, smoothing=0.01),
    rc.BipartiteRankBoost(20, balance=None, smoothing=0.01),
    rc.RankBoost(10, max_leaf_nodes=4, learning_rate=0.3, min_samples_leaf=1, subsample=0.9),
    rc.BipartiteRankBoost(10, weak="tree", leaf_step="newton", colsample=0.9, random_state=1),
]


def differences(estimator):
    if isinstance(estimator, rc.RankBoost):
        return dict.fromkeys(DIFFERENCES, TIES)
    if isinstance(estimator, rc.BipartiteRankBoost):
        trees = estimator.max_leaf_nodes is not None or estimator.weak == "tree"
        return dict.fromkeys(DIFFERENCES, "a leaf counts rows, not their weights") if trees else {}
    return DIFFERENCES | (BY_RANK if estimator.combine == "rank" else {})


@parametrize_with_checks(DEFAULTS, expected_failed_checks=differences)
@pytest.mark.filterwarnings("ignore:fit found no qid")  # the checks know of no queries
@pytest.mark.filterwarnings("ignore:.* learned nothing")  # of 20 rows of random labels
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@checks_in_turn(VARIANTS, differences)
@pytest.mark.filterwarnings("ignore:fit found no qid")  # the checks know of no queries
@pytest.mark.filterwarnings("ignore:.* learned nothing")  # of 20 rows of random labels
def test_scikit_learn_checks_of_variants(estimator, check):
    check(estimator)
