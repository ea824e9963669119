"""Ordinal learners in dual form: curved boundaries by kernels, flat memory by budgets."""
