"""Shared base of all learners: input checks, locks, random states."""
