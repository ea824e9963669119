"""Boosting: sums of weak rankers."""
