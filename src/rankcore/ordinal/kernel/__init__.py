"""Ordinal learners in dual form: non-linear boundaries by kernels, bounded memory by budgets."""
