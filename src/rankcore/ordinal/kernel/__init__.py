"""Ordinal learners in dual form: non-linear boundaries by kernels, constant memory by budgets."""
