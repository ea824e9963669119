"""Hypothesis profiles: HYPOTHESIS_PROFILE=quick, default or nightly."""

import os

from hypothesis import settings

from strategies import examples

for name in ["quick", "default", "nightly"]:
    settings.register_profile(name, max_examples=examples(100, name), deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
