"""Settings for all tests: no deadlines (machines are shared), many more examples in the soak."""

from __future__ import annotations

import os
import signal
import time

from hypothesis import HealthCheck, settings

# What is printed is compared, wherever and by whatever the tests were started.
os.environ["TZ"] = "UTC"
time.tzset()

# What was started in the background of a plain shell ignores these, and so would all programs
# that tests start and interrupt.
for _number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number,
            signal.default_int_handler if _number is signal.SIGINT else signal.SIG_DFL,
        )

settings.register_profile("default", deadline=None, max_examples=50, print_blob=True)
settings.register_profile(
    "soak",
    settings.get_profile("default"),
    max_examples=1_500,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
