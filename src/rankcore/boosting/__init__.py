"""Boosting: sums of stumps or trees, each fitted to what the ones before leave wrong.

Estimators are in `rankboost`, `bipartite` and `ordinal_boost`; docs/architecture.md explains how a
tree grows, and lists the other modules.
"""
