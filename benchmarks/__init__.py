"""Figures, not adjectives: seeded workloads, ratios measured in one run.

``python -m benchmarks NAME`` runs one, ``python -m benchmarks`` lists them.
"""
