"""Settings for all tests: no deadlines (machines are shared), many more examples in the soak."""

from __future__ import annotations

import os
import time

from hypothesis import HealthCheck, settings

# What is printed is compared, wherever and by whatever the tests were started.
os.environ["TZ"] = "UTC"
time.tzset()

settings.register_profile("default", deadline=None, max_examples=50, print_blob=True)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=1_500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
