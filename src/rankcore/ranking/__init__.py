"""Learners of the order of documents within queries."""
