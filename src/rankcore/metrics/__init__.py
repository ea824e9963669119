"""Evaluators: how well predicted ranks or scores match the true ones."""

from rankcore.metrics.auc import auc_score
from rankcore.metrics.conventions import CONVENTIONS, Convention
from rankcore.metrics.evaluation import Evaluation, evaluate
from rankcore.metrics.ordinal import accuracy_within, rank_loss
from rankcore.metrics.pairwise import kendall_tau, margin_loss, pairwise_misranking
from rankcore.metrics.positions import weighted_ranking_loss
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
from rankcore.metrics.significance import Comparison, compare, compare_evaluations

__all__ = [
    "CONVENTIONS",
    "Comparison",
    "Convention",
    "Evaluation",
    "accuracy_within",
    "auc_score",
    "average_precision",
    "compare",
    "compare_evaluations",
    "dcg_score",
    "evaluate",
    "hit_rate",
    "kendall_tau",
    "make_scorer",
    "margin_loss",
    "ndcg_score",
    "pairwise_misranking",
    "phi_measure",
    "precision_at_k",
    "r_precision",
    "rank_loss",
    "recall_at_k",
    "reciprocal_rank",
    "weighted_ranking_loss",
]
