"""Data sets: seeded generators."""

from rankcore.datasets.generators import make_ordinal

__all__ = ["make_ordinal"]
