"""Settings for all tests: no deadlines (machines are shared), more examples in the soak."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, max_examples=150, print_blob=True)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=5_000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
