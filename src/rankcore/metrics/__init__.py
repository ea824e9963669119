"""Evaluation of predicted ranks, scores and probabilities."""

from rankcore.metrics.auc import auc_score
from rankcore.metrics.comparison import Comparison
from rankcore.metrics.conventions import CONVENTIONS, Convention
from rankcore.metrics.evaluation import Evaluation, evaluate
from rankcore.metrics.ordinal import (
    accuracy_within,
    confusion_by_rank,
    macro_rank_loss,
    max_rank_loss,
    quadratic_weighted_kappa,
    rank_loss,
)
from rankcore.metrics.overlap import rbo
from rankcore.metrics.pairwise import kendall_tau, margin_loss, pairwise_misranking
from rankcore.metrics.probabilities import brier_score, log_loss, ranked_probability_score
from rankcore.metrics.ranking import (
    average_precision,
    dcg_score,
    hit_rate,
    ndcg_score,
    phi_measure,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from rankcore.metrics.scorers import make_scorer
from rankcore.metrics.significance import compare, compare_evaluations
from rankcore.metrics.weighted_loss import weighted_ranking_loss

__all__ = [
    "CONVENTIONS",
    "Comparison",
    "Convention",
    "Evaluation",
    "accuracy_within",
    "auc_score",
    "average_precision",
    "brier_score",
    "compare",
    "compare_evaluations",
    "confusion_by_rank",
    "dcg_score",
    "evaluate",
    "hit_rate",
    "kendall_tau",
    "log_loss",
    "macro_rank_loss",
    "make_scorer",
    "margin_loss",
    "max_rank_loss",
    "ndcg_score",
    "pairwise_misranking",
    "phi_measure",
    "precision_at_k",
    "quadratic_weighted_kappa",
    "r_precision",
    "rank_loss",
    "ranked_probability_score",
    "rbo",
    "recall_at_k",
    "reciprocal_rank",
    "weighted_ranking_loss",
]
