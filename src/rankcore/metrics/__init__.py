"""Evaluators: how well predicted ranks or scores match the true ones."""

from rankcore.metrics.ordinal import accuracy_within, rank_loss

__all__ = ["accuracy_within", "rank_loss"]
