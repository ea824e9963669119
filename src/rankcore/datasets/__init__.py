"""Data sets: seeded generators."""

from rankcore.datasets.generators import make_oap_synthetic, make_ordinal, quadratic_features

__all__ = ["make_oap_synthetic", "make_ordinal", "quadratic_features"]
