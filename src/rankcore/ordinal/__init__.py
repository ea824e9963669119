"""Learners of ordered labels."""
